package plugintest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/plugin"
)

// The crash cases start the test binary again. The child writes and reports every batch, and after a Sync how many
// messages are safe, through a pipe, which is the log outside of the storage; the parent kills it and compares.
const (
	envPath   = "GOBAG_PLUGINTEST_PATH"
	envPreset = "GOBAG_PLUGINTEST_PRESET"
	envSync   = "GOBAG_PLUGINTEST_SYNC"
	envPace   = "GOBAG_PLUGINTEST_PACE"
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
		if os.Getenv(envPace) == "yes" {
			time.Sleep(5 * time.Millisecond)
		}
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
		p := startChild(t, o, path, sync, false)
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond) // long enough for some transactions
		p.kill(t)
		checkKilled(t, d, path, int(p.safe.Load()), int(p.wrote.Load()))
	}
}

// readingAnotherProcess reads a storage again and again that another process writes, syncing many times a second.
func readingAnotherProcess(t T, d plugin.Driver, o Options) {
	path := newPath(t, d)
	p := startChild(t, o, path, true, true)
	rounds, messages := 0, 0
	for start := time.Now(); time.Since(start) < 700*time.Millisecond || rounds < 3; rounds++ {
		safe := int(p.safe.Load())
		r, err := d.OpenReader(background, path, plugin.ReadOptions{})
		if err != nil {
			p.kill(t)
			t.Fatalf("open while another process writes: %v", err)
		}
		info := r.Info()
		got, err := ReadAll(r, plugin.Query{})
		closeReader(t, r)
		if err != nil || len(got) < safe || !info.Unclean {
			p.kill(t)
			t.Fatalf("while another process writes: %d messages, %d were synced, unclean %v, %v", len(got), safe, info.Unclean, err)
		}
		checkCrashMessages(t, d, got)
		messages = len(got)
	}
	p.kill(t)
	t.Logf("read %d times, at last %d messages", rounds, messages)
	checkKilled(t, d, path, int(p.safe.Load()), int(p.wrote.Load()))
}

// process is a child that writes.
type process struct {
	cmd         *exec.Cmd
	safe, wrote atomic.Int64 // messages reported as synced and as written
	failure     string       // what it said beside that; read after done
	stderr      bytes.Buffer
	done        chan struct{} // its output has ended
}

// startChild returns when the child has created its storage.
func startChild(t T, o Options, path string, sync, pace bool) *process {
	t.Helper()
	top, _, _ := strings.Cut(o.test, "/")
	p := &process{cmd: exec.Command(os.Args[0], "-test.run=^"+regexp.QuoteMeta(top)+"$"), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), envPath+"="+path, envPreset+"="+o.Create.Preset, envFault+"="+string(o.fault))
	if sync {
		p.cmd.Env = append(p.cmd.Env, envSync+"=yes")
	}
	if pace {
		p.cmd.Env = append(p.cmd.Env, envPace+"=yes")
	}
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("%v", err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start the child process: %v", err)
	}
	created := make(chan struct{})
	go p.listen(out, created)
	select {
	case <-created:
	case <-p.done:
		_ = p.cmd.Wait()
		t.Fatalf("the child process did not write: %s%s", p.failure, p.stderr.String())
	}
	return p
}

func (p *process) listen(out io.Reader, created chan<- struct{}) {
	defer close(p.done)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.Atoi(rest)
		switch word {
		case "created":
			close(created)
		case "safe":
			p.safe.Store(int64(n))
		case "wrote":
			p.wrote.Store(int64(n))
		default:
			p.failure += lines.Text() + "\n"
		}
	}
}

// kill sends SIGKILL and takes in what the child had still said.
func (p *process) kill(t T) {
	t.Helper()
	_ = p.cmd.Process.Kill()
	<-p.done
	_ = p.cmd.Wait() // says that it was killed
	if p.failure != "" {
		t.Fatalf("the child process failed: %s%s", p.failure, p.stderr.String())
	}
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
	got, err := ReadAll(r, plugin.Query{})
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
	checkCrashMessages(t, d, got)
	t.Logf("killed: %d messages there, %d synced, %d written", len(got), safe, wrote)
}

// checkCrashMessages compares messages with the first ones that a child writes.
func checkCrashMessages(t T, d plugin.Driver, got []plugin.Message) {
	t.Helper()
	f := d.Features()
	for i := range got {
		want := crashMessage(i)
		if !f.SendTime {
			want.SendTime = 0
		}
		if !f.Source {
			want.Source, want.Seq = 0, 0
		}
		if !SameMessage(&got[i], &want) {
			t.Fatalf("of the child's messages, number %d is\n%s\nwant\n%s", i, show(&got[i]), show(&want))
		}
	}
}
