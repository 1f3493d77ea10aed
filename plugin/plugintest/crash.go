package plugintest

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/plugin"
)

// The crash cases start the test binary again. The child writes and reports every batch, and after a Sync how many
// messages are safe, through a pipe, which is the log outside of the storage; the parent kills it and compares.
const (
	envPath   = "GOBAG_PLUGINTEST_PATH"
	envPreset = "GOBAG_PLUGINTEST_PRESET"
	envSync   = "GOBAG_PLUGINTEST_SYNC"
	envFault  = "GOBAG_PLUGINTEST_FAULT"
)

func isChild() bool { return os.Getenv(envPath) != "" }

// crashMessage is message number n, from 0 on, of the child.
func crashMessage(n int) plugin.Message {
	size := 100 + n%7*500
	if n%97 == 0 {
		size = 300_000
	}
	return plugin.Message{
		Topic: plugin.TopicID(n%3 + 1), RecvTime: 1e18 + int64(n)*1000, SendTime: 1e18 + int64(n)*1000 - 7,
		Source: uint32(n%2 + 1), Seq: uint64(n), Order: uint64(n + 1), Data: payload(uint64(n), size),
	}
}

// child writes until it is killed. It returns an exit code if something fails.
func child(d plugin.Driver) int {
	fail := func(err error) int {
		fmt.Println("error", err)
		return 1
	}
	w, err := d.Create(background, os.Getenv(envPath), plugin.WriteOptions{Preset: os.Getenv(envPreset)})
	if err != nil {
		return fail(err)
	}
	fmt.Println("created")
	for i := range 3 {
		if _, err := w.AddTopic(plugin.Topic{Name: "/t" + strconv.Itoa(i), Type: "a/msg/B", Sources: []string{"x", "y"}}); err != nil {
			return fail(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 0; ; {
		batch := make([]plugin.Message, 1+rng.IntN(40))
		for i := range batch {
			batch[i] = crashMessage(n + i)
		}
		if err := w.Write(batch); err != nil {
			return fail(err)
		}
		n += len(batch)
		fmt.Println("wrote", n)
		if os.Getenv(envSync) == "yes" && rng.IntN(3) == 0 {
			if err := w.Sync(); err != nil {
				return fail(err)
			}
			fmt.Println("safe", n)
		}
	}
}

func killedAfterSync(t T, d plugin.Driver, o Options)   { kill(t, d, o, true) }
func killedWithoutSync(t T, d plugin.Driver, o Options) { kill(t, d, o, false) }

func kill(t T, d plugin.Driver, o Options, sync bool) {
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for range o.Kills {
		path := newPath(t, d)
		// Long enough for some transactions, and on a busy machine for the process to begin.
		delay := time.Duration(rng.IntN(150)) * time.Millisecond
		safe, wrote := runChild(t, o, path, sync, delay)
		checkKilled(t, d, path, safe, wrote)
	}
}

// runChild returns how many messages were reported as safe and as written before the kill, which comes after the
// child has created the storage and delay has passed.
func runChild(t T, o Options, path string, sync bool, delay time.Duration) (safe, wrote int) {
	t.Helper()
	top, _, _ := strings.Cut(o.test, "/")
	cmd := exec.Command(os.Args[0], "-test.run=^"+regexp.QuoteMeta(top)+"$")
	cmd.Env = append(os.Environ(), envPath+"="+path, envPreset+"="+o.Create.Preset, envFault+"="+string(o.fault))
	if sync {
		cmd.Env = append(cmd.Env, envSync+"=yes")
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("%v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the child process: %v", err)
	}
	created := false
	var failure string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.Atoi(rest)
		switch word {
		case "created":
			created = true
			time.AfterFunc(delay, func() { _ = cmd.Process.Kill() })
		case "safe":
			safe = n
		case "wrote":
			wrote = n
		default:
			failure += lines.Text() + "\n"
		}
	}
	_ = cmd.Wait() // killed
	if failure != "" || !created {
		t.Fatalf("the child process did not write: %s%s", failure, stderr.String())
	}
	return safe, wrote
}

// checkKilled compares a storage with what its killed writer had reported. One batch more than reported may be there.
func checkKilled(t T, d plugin.Driver, path string, safe, wrote int) {
	t.Helper()
	r := openReader(t, d, path)
	defer closeReader(t, r)
	info := r.Info()
	if !info.Unclean {
		t.Errorf("the writer was killed, but Info does not say Unclean")
	}
	got, err := readAll(r, plugin.Query{})
	if err != nil {
		t.Fatalf("read after the kill: %v", err)
	}
	if len(got) < safe {
		t.Fatalf("%d messages after the kill, %d had been synced (%d written)", len(got), safe, wrote)
	}
	if len(got) > wrote+40 {
		t.Fatalf("%d messages after the kill, only %d had been written", len(got), wrote)
	}
	if info.Messages != uint64(len(got)) {
		t.Errorf("info: %d messages, read were %d", info.Messages, len(got))
	}
	f := d.Features()
	for i := range got {
		want := crashMessage(i)
		if !f.SendTime {
			want.SendTime = 0
		}
		if !f.Source {
			want.Source, want.Seq = 0, 0
		}
		if !sameMessage(&got[i], &want) {
			t.Fatalf("after the kill, message %d is\n%s\nwant\n%s", i, show(&got[i]), show(&want))
		}
	}
	t.Logf("killed: %d messages there, %d synced, %d written", len(got), safe, wrote)
}
