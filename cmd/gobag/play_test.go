package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gobag/gobag/player"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros2"
)

// listener counts what comes on a topic.
type listener struct {
	mu  sync.Mutex
	got int
}

func listen(t *testing.T, domain int, topic, typ string) *listener {
	t.Helper()
	node, err := ros2.New(ros2.Options{Domain: domain, Range: ros2.RangeLocalhost, Name: "listener"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Close() })
	l := &listener{}
	_, err = node.Subscribe(ros.Topic{Name: topic, Type: typ}, ros.BestAvailableQoS(), func(s ros.Sample) {
		l.mu.Lock()
		l.got++
		l.mu.Unlock()
		s.Release()
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *listener) await(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		l.mu.Lock()
		got := l.got
		l.mu.Unlock()
		if got == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d messages came, want %d", got, n)
		}
	}
}

func TestPlay(t *testing.T) {
	domain := testDomain(t)
	dir := filepath.Join(t.TempDir(), "small")
	makeBag(t, dir, nil)
	base := []string{"--domain-id", strconv.Itoa(domain), "--localhost"}

	l := listen(t, domain, "/heard", "std_msgs/msg/String")
	r := cli(nil, append([]string{"play", dir, "-r", "20", "--topics", "/chatter", "/imu", "--services", "/none", "--exclude-actions", "/fib", "-m", "/chatter:=/heard", "--wait-for-all-acked", "2000"}, base...)...)
	if r.code != 0 || !strings.Contains(r.out, "Played 4 messages") || !strings.Contains(r.out, "/heard (from /chatter)") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	checkPlain(t, r)
	l.await(t, 3)
	if !strings.Contains(r.errOut, "service '/none' is not in the bag") {
		t.Errorf("%s", r.errOut)
	}

	// The classes that nothing is named of are played whole.
	r = cli(nil, append([]string{"play", dir, "-r", "20", "--topics", "/chatter", "--exclude-services", "/add"}, base...)...)
	if r.code != 0 || !strings.Contains(r.out, "Played 5 messages") || !strings.Contains(r.out, "/fib/_action/status") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}

	r = cli(nil, append([]string{"play", dir, "-r", "20", "--topics", "/nobody", "-x", ".*_(service_event|action).*"}, base...)...)
	if r.code != 1 || !strings.Contains(r.errOut, "no topic to play") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
}

// TestPlayLive: topics that somebody publishes are named and refused.
func TestPlayLive(t *testing.T) {
	domain := testDomain(t)
	talk(t, domain)
	dir := filepath.Join(t.TempDir(), "small")
	makeBag(t, dir, nil)
	words := []string{"play", dir, "-r", "20", "--domain-id", strconv.Itoa(domain), "--localhost"}
	if r := cli(nil, words...); r.code != 1 || !strings.Contains(r.errOut, "/chatter") || !strings.Contains(r.errOut, "--allow-live") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	if r := cli(nil, append(words, "--allow-live")...); r.code != 0 || !strings.Contains(r.out, "Played") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
}

func TestPlaySignal(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir := filepath.Join(t.TempDir(), "small")
	makeBag(t, dir, nil)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := launch(t, nil, "play", dir, "--loop", "-r", "0.1", "--domain-id", strconv.Itoa(testDomain(t)), "--localhost")
		p.await("Playback started")
		p.cmd.Process.Signal(sig)
		if r := p.result(); r.code != 0 || !strings.Contains(r.out, "Played") {
			t.Errorf("%v: exit %d\n%s%s", sig, r.code, r.out, r.errOut)
		}
	}
}

func TestPlayStatus(t *testing.T) {
	s := player.Snapshot{State: player.StatePaused, Position: start, Elapsed: 1500 * time.Millisecond, Total: 2 * time.Second, Rate: 0.5, Played: 7, Loops: 1}
	if got, want := playStatus(s), "[1796041461.000000001] Duration 1.50/2.00 [P] | rate 0.5 | 7 played | loop 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestQoSFile(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "qos.yaml")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	m, err := readQoS(file(`/a:
  reliability: best_effort
  depth: 3
b: {durability: transient_local, deadline: {sec: 1, nsec: 5}}
/every:
  history: keep_all
  depth: 7
  reliability: reliable
  durability: volatile
  deadline: {sec: 2, nsec: 0}
  lifespan: {sec: 0, nsec: 500000000}
  liveliness: manual_by_topic
  liveliness_lease_duration: {sec: 3, nsec: 1}
  avoid_ros_namespace_conventions: true
/numbers: {history: 2, reliability: 2, durability: 1, liveliness: 3}
/open: {history: system_default, reliability: system_default, durability: system_default, liveliness: system_default}
/infinite: {deadline: {sec: 9223372036, nsec: 854775807}, lifespan: {sec: 2147483647, nsec: 4294967295}}
/available: {reliability: best_available, durability: best_available}
`))
	if err != nil {
		t.Fatal(err)
	}
	d := ros.DefaultQoS()
	change := func(f func(q *ros.QoS)) ros.QoS {
		q := d
		f(&q)
		return q
	}
	for topic, want := range map[string]ros.QoS{
		"/a": change(func(q *ros.QoS) { q.Reliability, q.Depth = ros.BestEffort, 3 }),
		"/b": change(func(q *ros.QoS) { q.Durability, q.Deadline = ros.TransientLocal, time.Second+5 }),
		"/every": {History: ros.KeepAll, Depth: 7, Reliability: ros.Reliable, Durability: ros.Volatile, Deadline: 2 * time.Second,
			Lifespan: 500 * time.Millisecond, Liveliness: ros.ManualByTopic, LivelinessLeaseDuration: 3*time.Second + 1, AvoidROSNamespaceConventions: true},
		"/numbers": change(func(q *ros.QoS) {
			q.History, q.Reliability, q.Durability, q.Liveliness = ros.KeepAll, ros.BestEffort, ros.TransientLocal, ros.ManualByTopic
		}),
		"/open":     d,
		"/infinite": d,
		"/available": change(func(q *ros.QoS) {
			q.Reliability, q.Durability = ros.ReliabilityBestAvailable, ros.DurabilityBestAvailable
		}),
	} {
		if got := m[topic].Normalized(); got != want {
			t.Errorf("%s: %+v, want %+v", topic, got, want)
		}
	}
	if len(m) != 7 {
		t.Errorf("%d topics", len(m))
	}
	for text, want := range map[string]string{
		"/a: {depth: 1}\na: {depth: 2}":            "/a is given with and without its slash",
		"/a: {history: keep_some}":                 "/a.history",
		"/a: {depht: 1}":                           "depht",
		"/a: {deadline: {sec: 1}}":                 "/a.deadline.nsec",
		"/a: [1":                                   "line 1",
		"/a: {lifespan: {sec: -1, nsec: 0}}":       "/a.lifespan.sec",
		"/a: {liveliness: by_hand}":                "/a.liveliness",
		"/a: {depth: 10, depth: 11}":               "depth",
		strings.Repeat("# long\n", 200*1024):       "larger than",
		"/a: {avoid_ros_namespace_conventions: 1}": "neither true nor false",
	} {
		if _, err := readQoS(file(text)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "qos.yaml") {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}
