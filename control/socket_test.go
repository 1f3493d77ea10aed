package control

import (
	"bufio"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func testCommands() Commands {
	var mu sync.Mutex
	n := 0
	return Commands{
		"count": {Help: "one more", Run: func([]string) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			n++
			return map[string]int{"n": n}, nil
		}},
		"echo": {Args: 2, Run: func(args []string) (any, error) { return args, nil }},
		"fail": {Run: func([]string) (any, error) { return nil, errors.New("it cannot") }},
		"odd":  {Run: func([]string) (any, error) { return func() {}, nil }}, // no JSON
	}
}

func listen(t *testing.T) *Socket {
	t.Helper()
	dir, err := os.MkdirTemp("", "gobag") // the paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	s, err := Listen(filepath.Join(dir, "deep", "a.sock"), testCommands(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), s.Close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSocket(t *testing.T) {
	s := listen(t)
	for _, x := range []struct {
		words  []string
		ok     bool
		result string
	}{
		{[]string{"count"}, true, `{"n":1}`}, {[]string{"count"}, true, `{"n":2}`}, {[]string{"echo", "a", "b c"}, true, `["a","b c"]`},
		{[]string{"echo", "1", "2", "3"}, false, "at most 2 words, 3 are given"}, {[]string{"fail"}, false, "it cannot"},
		{[]string{"dance"}, false, `unknown command "dance" (there is: help, count, echo, fail, odd)`}, {[]string{"odd"}, false, "json"},
		{[]string{"help"}, true, `"count":"one more"`},
	} {
		r, err := Call(s.Path(), x.words[0], x.words[1:]...)
		if err != nil {
			t.Errorf("%v: %v", x.words, err)
			continue
		}
		if r.OK != x.ok || !strings.Contains(string(r.Result)+r.Error, x.result) {
			t.Errorf("%v: %+v", x.words, r)
		}
	}
	if fi, err := os.Stat(s.Path()); err != nil || runtime.GOOS != "windows" && fi.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
	if _, err := Listen(s.Path(), nil, nil); err == nil || !strings.Contains(err.Error(), "listens there already") {
		t.Errorf("a second one: %v", err)
	}
	if _, err := Call(s.Path()+"x", "count"); err == nil {
		t.Error("a call to nobody")
	}
}

// What is no command is answered, and the connection lives on; a line without end does not fill the memory.
func TestSocketOddClients(t *testing.T) {
	s := listen(t)
	c, err := net.Dial("unix", s.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers := bufio.NewScanner(c)
	for _, line := range []string{"not json", `{"command": 5}`, `{"command":"count"}`, `{"command":"echo","args":["x"]}`} {
		if _, err := c.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() {
			t.Fatalf("%s: no answer", line)
		}
		if got := answers.Text(); strings.Contains(line, "count") != strings.Contains(got, `"n":1`) {
			t.Errorf("%s: %s", line, got)
		}
	}
	endless, err := net.Dial("unix", s.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer endless.Close()
	if err := endless.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	chunk := []byte(strings.Repeat("x", 10_000))
	for i := 0; ; i++ {
		if _, err := endless.Write(chunk); err != nil {
			break // it was closed
		}
		if i > 1000 {
			t.Fatal("ten megabytes of one line were read")
		}
	}
}

// Many clients at once are served; a leftover socket of a process that was killed is replaced.
func TestSocketClients(t *testing.T) {
	s := listen(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if r, err := Call(s.Path(), "count"); err != nil || !r.OK {
					t.Errorf("%+v %v", r, err)
				}
			}
		})
	}
	wg.Wait()
	if r, err := Call(s.Path(), "count"); err != nil || string(r.Result) != `{"n":161}` {
		t.Errorf("%s %v", r.Result, err)
	}

	left := filepath.Join(filepath.Dir(s.Path()), "left.sock")
	l, err := net.Listen("unix", left)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Listen(left, testCommands(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestSocketPaths(t *testing.T) {
	s := listen(t)
	env := func(k string) string {
		if k == "XDG_RUNTIME_DIR" {
			return filepath.Dir(filepath.Dir(s.Path()))
		}
		return ""
	}
	if err := os.Rename(filepath.Dir(s.Path()), filepath.Join(filepath.Dir(filepath.Dir(s.Path())), "gobag")); err != nil {
		t.Fatal(err)
	}
	found := Sockets(env)
	if len(found) != 1 || filepath.Base(found[0]) != "a.sock" {
		t.Errorf("%v", found)
	}
	if err := os.Rename(filepath.Dir(found[0]), filepath.Dir(s.Path())); err != nil {
		t.Fatal(err)
	}
	if p := SocketPath(env, "/robot/rec"); !strings.Contains(filepath.ToSlash(p), "/gobag/robot.rec.") || !strings.HasSuffix(p, ".sock") {
		t.Error(p)
	}
	if p := SocketPath(func(string) string { return "" }, ""); !strings.Contains(p, "gobag") {
		t.Error(p)
	}
}

func TestSocketInOpenDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such permissions")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(filepath.Join(dir, "a.sock"), testCommands(), nil); err == nil || !strings.Contains(err.Error(), "others may exchange files") {
		t.Error(err)
	}
}

func TestParseRemote(t *testing.T) {
	for s, want := range map[string]Remote{"": RemoteLimited, "off": RemoteOff, "limited": RemoteLimited, "full": RemoteFull} {
		if got, err := ParseRemote(s); err != nil || got != want {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
	if _, err := ParseRemote("some"); err == nil {
		t.Error("some")
	}
}
