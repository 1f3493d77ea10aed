package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/perf"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros2"
)

// talk lets a small robot publish in domain until the test ends and returns when it has begun.
func talk(t *testing.T, domain int) {
	t.Helper()
	node, err := ros2.New(ros2.Options{Domain: domain, Range: ros2.RangeLocalhost, Name: "talker"})
	if err != nil {
		t.Fatal(err)
	}
	var streams []*perf.Stream
	for _, s := range perf.DemoStreams(time.Now().UnixNano()) {
		if s.Topic.Name != "/camera/image_raw" { // light on machines that are busy
			streams = append(streams, s)
		}
	}
	robot, err := perf.NewRobot(node, streams)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { robot.Run(ctx, time.Hour) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		robot.Close()
		node.Close()
	})
}

// talkLikeHumble publishes, without type hashes, a topic of a type that is not known here, a service's events and what is
// seen of an action.
func talkLikeHumble(t *testing.T, domain int) {
	t.Helper()
	node, err := ros2.New(ros2.Options{Domain: domain, Range: ros2.RangeLocalhost})
	if err != nil {
		t.Fatal(err)
	}
	var pubs []ros.Publisher
	for name, typ := range map[string]string{"/secret": "secret_msgs/msg/Reading", "/add/_service_event": "example_interfaces/srv/AddTwoInts_Event",
		"/fib/_action/feedback": "example_interfaces/action/Fibonacci_FeedbackMessage", "/fib/_action/status": "action_msgs/msg/GoalStatusArray"} {
		p, err := node.Advertise(ros.Topic{Name: name, Type: typ}, ros.DefaultQoS())
		if err != nil {
			t.Fatal(err)
		}
		pubs = append(pubs, p)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for _, p := range pubs {
				p.Publish(make([]byte, 32), time.Now().UnixNano())
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		node.Close()
	})
}

// process is the built program at work.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  syncBuffer
	err  syncBuffer
	done chan struct{}
}

// launch runs the built program; what is left of it at the end of the test is killed.
func launch(t *testing.T, env []string, words ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(binary(t), words...), done: make(chan struct{})}
	p.cmd.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// await waits until the program's log holds text.
func (p *process) await(text string) {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if strings.Contains(p.err.String(), text) {
			return
		}
		select {
		case <-p.done:
			if !strings.Contains(p.err.String(), text) {
				p.t.Fatalf("ended without %q:\n%s%s", text, p.out.String(), p.err.String())
			}
			return
		default:
		}
	}
	p.t.Fatalf("no %q within 20 s:\n%s", text, p.err.String())
}

// wait returns the exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		p.t.Fatalf("still running after 30 s:\n%s%s", p.out.String(), p.err.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) result() result { return result{p.wait(), p.out.String(), p.err.String()} }

// syncBuffer is a buffer that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// counts are the messages per topic in a bag.
func counts(t *testing.T, dir string) map[string]uint64 {
	t.Helper()
	r := cli(nil, "info", dir, "--json")
	if r.code != 0 {
		t.Fatal(r.errOut)
	}
	var j struct {
		CutOff bool `json:"cut_off"`
		Topics []struct {
			Name  string
			Count uint64
		}
	}
	if err := json.Unmarshal([]byte(r.out), &j); err != nil {
		t.Fatal(err)
	}
	if j.CutOff {
		t.Errorf("%s was cut off", dir)
	}
	m := map[string]uint64{}
	for _, topic := range j.Topics {
		m[topic.Name] = topic.Count
	}
	return m
}

func TestRecordSignals(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	domain := testDomain(t)
	talk(t, domain)
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // under nohup the children ignore it too, as they should
		signals = append(signals, syscall.SIGHUP)
	}
	for _, sig := range signals {
		t.Run(sig.String(), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			p := launch(t, []string{"ROS_DOMAIN_ID=" + strconv.Itoa(domain), "ROS_LOCALHOST_ONLY=1"},
				"record", "-a", "-o", dir, "--custom-data", "a=1", "b=x,y")
			for _, line := range []string{"Recording...", "Listening for topics...", "Subscribed to topic '/chatter'", "Subscribed to topic '/robot_description'"} {
				p.await(line)
			}
			time.Sleep(500 * time.Millisecond)
			p.cmd.Process.Signal(sig)
			r := p.result()
			if r.code != 0 || !strings.Contains(r.errOut, "Recording stopped") || !strings.Contains(r.out, "Recorded ") {
				t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
			}
			checkPlain(t, r)
			got := counts(t, dir)
			if got["/robot_description"] != 1 || got["/chatter"] == 0 || got["/imu/data"] < 100 || got["/tf"] == 0 {
				t.Errorf("%v", got)
			}
			for _, topic := range []string{"/chatter", "/imu/data", "/robot_description", "/tf"} {
				if !strings.Contains(r.out, topic) {
					t.Errorf("the report lacks %s:\n%s", topic, r.out)
				}
			}
			if text := cli(nil, "info", dir).out; !strings.Contains(text, "a: 1") || !strings.Contains(text, "b: x,y") || !strings.Contains(text, "Lost while recording") {
				t.Errorf("info:\n%s", text)
			}
		})
	}
}

// TestRecordTwice: wrappers send a signal twice within a moment; that is still a stop in order.
func TestRecordTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	domain := testDomain(t)
	talk(t, domain)
	dir := filepath.Join(t.TempDir(), "run")
	p := launch(t, nil, "record", "/imu/data", "-o", dir, "--domain-id", strconv.Itoa(domain), "--localhost")
	p.await("All requested topics are subscribed")
	time.Sleep(700 * time.Millisecond)
	p.cmd.Process.Signal(syscall.SIGINT)
	p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 || counts(t, dir)["/imu/data"] == 0 {
		t.Errorf("exit %d\n%s", code, p.err.String())
	}
}

// TestRecordAbort: the second signal ends a recording whose storage does not answer.
func TestRecordAbort(t *testing.T) {
	rec := &stuckRecorder{aborted: make(chan struct{})}
	a := newApp(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" })
	stop := newStopper(t.Context(), nil)
	defer stop.Close()
	stop.stop()
	stop.rush()
	code, text := explain(record(a, rec, stop))
	if code != 1 || !strings.Contains(text, "gave up") {
		t.Errorf("exit %d, %q", code, text)
	}
}

// stuckRecorder runs until it is aborted.
type stuckRecorder struct{ aborted chan struct{} }

func (r *stuckRecorder) Run(context.Context) (recorder.Result, error) {
	<-r.aborted
	return recorder.Result{}, recorder.ErrGaveUp
}
func (r *stuckRecorder) Abort()                      { close(r.aborted) }
func (r *stuckRecorder) Snapshot() recorder.Snapshot { return recorder.Snapshot{} }

func TestRecordLimits(t *testing.T) {
	domain := testDomain(t)
	talk(t, domain)
	base := []string{"--domain-id", strconv.Itoa(domain), "--localhost"}
	dir := func() string { return filepath.Join(t.TempDir(), "run") }
	other := testDomain(t)
	talkLikeHumble(t, other)
	quiet := []string{"--domain-id", strconv.Itoa(other), "--localhost"}

	t.Run("messages", func(t *testing.T) {
		d := dir()
		r := cli(nil, append([]string{"record", "--topics", "/imu/data,/tf", "-o", d, "--max-messages", "200"}, base...)...)
		got := counts(t, d)
		if r.code != 0 || got["/imu/data"]+got["/tf"] != 200 || !strings.Contains(r.out, "--max-messages") {
			t.Errorf("exit %d, %v\n%s%s", r.code, got, r.out, r.errOut)
		}
		checkPlain(t, r)
	})
	t.Run("duration and exclusion", func(t *testing.T) {
		d := dir()
		r := cli(nil, append([]string{"record", "-e", "^/(imu|tf|chatter)", "-x", "chat", "-o", d, "--duration", "1"}, base...)...)
		got := counts(t, d)
		if r.code != 0 || got["/imu/data"] == 0 || got["/tf"] == 0 || len(got) != 2 {
			t.Errorf("exit %d, %v\n%s%s", r.code, got, r.out, r.errOut)
		}
	})
	t.Run("one missing", func(t *testing.T) {
		d := dir()
		r := cli(nil, append([]string{"record", "/chatter", "/never", "-o", d, "--duration", "1"}, base...)...)
		if r.code != 3 || !strings.Contains(r.errOut, "/never") || !strings.Contains(r.out, "topic '/never' never appeared") || counts(t, d)["/chatter"] == 0 {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
		}
	})
	t.Run("a service and an action missing", func(t *testing.T) {
		d := dir()
		r := cli(nil, append([]string{"record", "/chatter", "--services", "/add", "--actions", "fib", "-o", d, "--duration", "6"}, base...)...)
		if r.code != 3 || !strings.Contains(r.errOut, "service '/add', action '/fib' have not appeared yet") ||
			!strings.Contains(r.out, "service '/add' never appeared\naction '/fib' never appeared\n") || counts(t, d)["/chatter"] == 0 {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		r := cli(nil, append([]string{"record", "-e", "^/nothing$", "-o", dir(), "--duration", "0.3"}, base...)...)
		if r.code != 3 || !strings.Contains(r.errOut, "no message was recorded") {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
		}
	})
	t.Run("disk", func(t *testing.T) {
		d := dir()
		r := cli(nil, append([]string{"record", "-a", "-o", d, "--min-free-space", "1000000TB"}, base...)...)
		if r.code != 4 || exists(d) {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
		}
	})
	t.Run("humble", func(t *testing.T) {
		d := dir()
		r := cli(nil, append([]string{"record", "/chatter", "-o", d, "--duration", "0.5", "--compat", "humble"}, base...)...)
		text, err := os.ReadFile(filepath.Join(d, "metadata.yaml"))
		if r.code != 0 || err != nil || !strings.Contains(string(text), "version: 5") {
			t.Errorf("exit %d, %v\n%s\n%s", r.code, err, text, r.errOut)
		}
	})
	t.Run("everything of an action and a service", func(t *testing.T) {
		d := dir()
		r := cli(nil, append([]string{"record", "--services", "add", "--actions", "/fib", "-o", d, "--duration", "1"}, quiet...)...)
		got := counts(t, d)
		if r.code != 0 || len(got) != 3 || got["/add/_service_event"] == 0 || got["/fib/_action/feedback"] == 0 || got["/fib/_action/status"] == 0 {
			t.Errorf("exit %d, %v\n%s%s", r.code, got, r.out, r.errOut)
		}
		info := cli(nil, "info", d).out
		if !strings.Contains(info, "Service: /add | Type: example_interfaces/srv/AddTwoInts | Event Count: ") ||
			!strings.Contains(info, "Action: /fib | Type: example_interfaces/action/Fibonacci | Topics: 2") || !strings.Contains(info, "Messages:          0\n") {
			t.Errorf("info:\n%s", info)
		}
		if strings.Contains(r.errOut, "definition") { // all of them are in the built-in table
			t.Errorf("%s", r.errOut)
		}
	})
	t.Run("unknown type", func(t *testing.T) {
		d := dir()
		r := cli(nil, append([]string{"record", "/secret", "-o", d, "--duration", "3"}, quiet...)...)
		if r.code != 0 || counts(t, d)["/secret"] == 0 {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
		}
		for _, once := range []string{"messages of type secret_msgs/msg/Reading (topic '/secret') are recorded without their definition: no secret_msgs/msg/Reading.* in ",
			"--msg-path", "the bag has no definition of secret_msgs/msg/Reading (/secret)"} {
			if strings.Count(r.errOut, once) != 1 {
				t.Errorf("%q is not said once:\n%s", once, r.errOut)
			}
		}
	})
	t.Run("humble since no publisher has a type hash", func(t *testing.T) {
		d := dir()
		r := cli(nil, append([]string{"record", "-a", "-o", d, "--duration", "1", "--custom-data", "who=me"}, quiet...)...)
		text, err := os.ReadFile(filepath.Join(d, "metadata.yaml"))
		if r.code != 0 || err != nil || !strings.Contains(string(text), "version: 5\n") || strings.Contains(string(text), "custom_data") {
			t.Errorf("exit %d, %v\n%s\n%s", r.code, err, text, r.errOut)
		}
		if strings.Count(r.errOut, "no publisher announces a type hash: writing a bag that Humble can open (--compat jazzy overrides)") != 1 {
			t.Errorf("not said once:\n%s", r.errOut)
		}
		if info := cli(nil, "info", d).out; !strings.Contains(info, "who: me") || !strings.Contains(info, "Lost while recording: nothing") {
			t.Errorf("info:\n%s", info)
		}
	})
	t.Run("jazzy though no publisher has a type hash", func(t *testing.T) {
		d := dir()
		r := cli(nil, append([]string{"record", "-a", "-o", d, "--duration", "1", "--compat", "jazzy"}, quiet...)...)
		text, err := os.ReadFile(filepath.Join(d, "metadata.yaml"))
		if r.code != 0 || err != nil || !strings.Contains(string(text), "version: 9\n") || strings.Contains(r.errOut, "Humble") {
			t.Errorf("exit %d, %v\n%s\n%s", r.code, err, text, r.errOut)
		}
	})
	t.Run("jazzy since a publisher has a type hash", func(t *testing.T) {
		d := dir()
		r := cli(nil, append([]string{"record", "/chatter", "-o", d, "--duration", "0.5"}, base...)...)
		text, err := os.ReadFile(filepath.Join(d, "metadata.yaml"))
		if r.code != 0 || err != nil || !strings.Contains(string(text), "version: 9") || !strings.Contains(string(text), "RIHS01_df668c") {
			t.Errorf("exit %d, %v\n%s\n%s", r.code, err, text, r.errOut)
		}
	})
	t.Run("split", func(t *testing.T) {
		d := dir()
		r := cli(nil, append([]string{"record", "/imu/data", "-o", d, "--duration", "2.5", "-d", "1"}, base...)...)
		files, _ := filepath.Glob(filepath.Join(d, "*.mcap"))
		if r.code != 0 || len(files) < 2 || !strings.Contains(r.out, "files)") || !strings.Contains(r.errOut, "split: closed") {
			t.Errorf("exit %d, %d files\n%s%s", r.code, len(files), r.out, r.errOut)
		}
	})
}

// TestRecordError: each cause has its exit code, alone and joined.
func TestRecordError(t *testing.T) {
	missing := &recorder.MissingTopicsError{Missing: []recorder.Wanted{{Kind: "topic", Name: "/a"}}}
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, 0},
		{fmt.Errorf("record x: %w", recorder.ErrNothingRecorded), 3},
		{fmt.Errorf("record x: %w", missing), 3},
		{fmt.Errorf("record x: %w", joined(missing, recorder.ErrNothingRecorded)), 3},
		{joined(&recorder.DiskFullError{}, recorder.ErrNothingRecorded), 4},
		{joined(fmt.Errorf("disk on fire"), recorder.ErrNothingRecorded), 1},
		{fmt.Errorf("record x: %w", plugin.ErrExists), 1},
		{recorder.ErrGaveUp, 1},
	} {
		code, text := explain(recordError(c.err))
		if code != c.code || strings.Contains(text, "\n") || (text == "") != (c.err == nil) {
			t.Errorf("%v: exit %d, %q, want %d", c.err, code, text, c.code)
		}
	}
}

func joined(errs ...error) error { return fmt.Errorf("record x: %w", errors.Join(errs...)) }

func TestStatusLine(t *testing.T) {
	s := recorder.Snapshot{State: recorder.StateRecording, Elapsed: 3661 * time.Second, Rate: 1234.5, ByteRate: 45.6e6, Messages: 99, DiskBytes: 5 << 20, FreeBytes: 7 << 30,
		Queue: bag.QueueStats{Bytes: 50, MaxBytes: 100}}
	if got, want := recordStatus(s), "01:01:01 | 1234/s, 45.6 MB/s | 99 recorded | lost 0 | queue 50 % | bag 5.0 MiB, free 7.0 GiB"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Lost.Wire, s.Lost.Queue, s.Stalled, s.Missing, s.State = 1, 2, 4*time.Second, []recorder.Wanted{{Kind: "topic", Name: "/a"}}, recorder.StateStopping
	if got, want := recordStatus(s), "stopping | 01:01:01 | 1234/s, 45.6 MB/s | 99 recorded | LOST wire 1 queue 2 storage 0 | DISK SILENT 4 s | queue 50 % | bag 5.0 MiB, free 7.0 GiB | 1 missing"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLogHandler(t *testing.T) {
	var b bytes.Buffer
	var level slog.LevelVar
	l := slog.New(&logHandler{w: &b, level: &level})
	l.Debug("hidden")
	l.With("topic", "/a b").WithGroup("g").Warn("a\nline\x1b[2J", "n", 3, slog.Group("h", "k", "v"))
	got := b.String()
	if !strings.HasPrefix(got, "[WARN] [") || !strings.HasSuffix(got, `] [gobag]: a\nline\x1b[2J topic="/a b" g.n=3 g.h.k=v`+"\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("%q", got)
	}
}
