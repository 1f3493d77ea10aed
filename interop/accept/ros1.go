//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros/ros1"
	_ "github.com/gobag/gobag/rosbag1" // the peer's bags
)

// ros1Suite is what is asked of ROS 1.
var ros1Suite = suite{lab.Cyclone, []check{
	{"hermetic", "tests with a master in the process, with the race detector", checkROS1Hermetic},
	{"peers", "String, Imu, Image 1 MB and 20 MB, latched: recorded beside C++ rosbag, replayed, echoed, recorded again", checkROS1Peers},
	{"types", "every type of the installed packages: recorded, replayed, received typed, recorded again", checkROS1Types},
	{"restarts", "publisher and master killed and restarted", checkROS1Restarts},
	{"control", "steered by rosservice, its log on /rosout", checkROS1Control},
	{"load", "interleaved with C++ rosbag record", checkROS1Load},
	{"ros2", "a recording of ROS 1 played to Cyclone and Fast DDS", checkROS1ToROS2},
	{"decoder", "random messages of every common type, both ways, beside decoders of npm", checkROS1Decoder},
	{"damage", "damaged .bag files", checkROS1Damage},
}}

const python = "/usr/bin/python3" // Debian's modules belong to it

// ros1Net is a ROS 1 network on loopback: a master and what it needs.
type ros1Net struct {
	b      *bench
	net    *lab.Net
	dir    string
	port   int
	env    []string
	master *lab.Proc
}

func newROS1(b *bench) (*ros1Net, error) {
	for _, path := range []string{"/usr/bin/rosmaster", "/usr/bin/rostopic", "/usr/lib/rosbag/record"} {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("ROS 1 of Debian is not installed (%w): run make -C interop install", err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &ros1Net{b: b, net: &lab.Net{}, port: l.Addr().(*net.TCPAddr).Port}
	if err := l.Close(); err != nil {
		return nil, err
	}
	if r.dir, err = b.dir("ros1"); err != nil {
		return nil, err
	}
	r.env = []string{"ROS_MASTER_URI=" + r.uri(), "ROS_IP=127.0.0.1", "ROS_HOME=" + r.dir, "ROS_LOG_DIR=" + r.dir, "PYTHONUNBUFFERED=1"}
	return r, r.startMaster()
}

func (r *ros1Net) uri() string { return fmt.Sprintf("http://127.0.0.1:%d", r.port) }

func (r *ros1Net) start(args ...string) (*lab.Proc, error) { return r.net.Start(r.env, args...) }

// startMaster starts rosmaster and waits until it answers.
func (r *ros1Net) startMaster() (err error) {
	if r.master, err = r.start(python, "/usr/bin/rosmaster", "--core", "-p", fmt.Sprint(r.port)); err != nil {
		return err
	}
	for end := time.Now().Add(20 * time.Second); ; {
		n, err := ros1.New(ros1.Options{Master: r.uri(), Host: "127.0.0.1", Name: "probe"})
		if err == nil {
			return n.Close()
		}
		if time.Now().After(end) {
			return err
		}
		if err := r.b.sleep(100 * time.Millisecond); err != nil {
			return err
		}
	}
}

func (r *ros1Net) close() {
	if r.master != nil {
		r.master.Kill()
	}
}

// node is a node of this process.
func (r *ros1Net) node(name string) (*ros1.Node, error) {
	return ros1.New(ros1.Options{Master: r.uri(), Host: "127.0.0.1", Name: name, Window: 32 << 20, MaxBlocking: time.Millisecond})
}

// script starts a script of interop/ros1.
func (r *ros1Net) script(name string, args ...string) (*lab.Proc, error) {
	root, err := lab.Root()
	if err != nil {
		return nil, err
	}
	return r.start(append([]string{python, filepath.Join(root, "interop", "ros1", name)}, args...)...)
}

// record starts gobag record.
func (r *ros1Net) record(dir string, flags ...string) (*lab.Proc, error) {
	return r.start(append([]string{r.b.gobag.Path, "record", "--ros", "1", "-o", dir, "--disable-keyboard-controls"}, flags...)...)
}

// play runs gobag play to its end.
func (r *ros1Net) play(dir string, flags ...string) error {
	p, err := r.start(append([]string{r.b.gobag.Path, "play", dir, "--ros", "1", "--disable-keyboard-controls"}, flags...)...)
	if err != nil {
		return err
	}
	return p.Wait(2 * time.Minute)
}

// rosbag starts C++ rosbag record.
func (r *ros1Net) rosbag(file string, flags ...string) (*lab.Proc, error) {
	return r.start(append([]string{"/usr/lib/rosbag/record", "-O", file}, flags...)...)
}

// subscribed waits until a topic has n subscriptions that are not ours.
func (r *ros1Net) subscribed(n int, topics ...string) error {
	node, err := r.node("watch")
	if err != nil {
		return err
	}
	defer node.Close()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		changed := node.Graph().Changed()
		have := map[string]int{}
		for _, t := range node.Graph().Topics() {
			have[t.Name] = len(t.Subscriptions)
		}
		if !slices.ContainsFunc(topics, func(t string) bool { return have[t] < n }) {
			return r.b.sleep(500 * time.Millisecond)
		}
		select {
		case <-changed:
		case <-time.After(time.Second):
		case <-r.b.ctx.Done():
			return r.b.ctx.Err()
		}
	}
	return fmt.Errorf("%v have fewer than %d subscriptions", topics, n)
}

// payloads are the hashes of the payloads in a bag, by topic, in order.
func payloads(path string) (map[string][]string, error) {
	return contents(path, func(_ string, payload []byte) []byte { return payload })
}

// afterSeq leaves out the number that a latching publisher of rospy gives a header anew for each of its subscribers.
func afterSeq(typ string, payload []byte) []byte {
	d, err := msg.BuiltinROS1(typ)
	for err == nil && len(d.Root().Fields) > 0 && d.Root().Fields[0].Nested {
		if typ = d.Root().Fields[0].Type; typ == "std_msgs/Header" {
			return payload[4:]
		}
		d, err = msg.BuiltinROS1(typ)
	}
	if typ == "std_msgs/Header" {
		return payload[4:]
	}
	return payload
}

// contents are the hashes of what part takes of the payloads in a bag, by topic, in order.
func contents(path string, part func(typ string, payload []byte) []byte) (map[string][]string, error) {
	r, err := bag.Open(context.Background(), path, bag.ReaderOptions{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	names, types := map[plugin.TopicID]string{}, map[plugin.TopicID]string{}
	out := map[string][]string{}
	for _, t := range r.Info().Topics {
		names[t.ID], types[t.ID] = t.Name, t.Type
	}
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for m := (plugin.Message{}); ; {
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out[names[m.Topic]] = append(out[names[m.Topic]], digest(part(types[m.Topic], m.Data)))
	}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// within says whether part stands in whole without a gap.
func within(whole, part []string) bool {
	for i := 0; i+len(part) <= len(whole); i++ {
		if slices.Equal(whole[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

func stopAll(ps ...*lab.Proc) error {
	var errs []error
	for _, p := range ps {
		errs = append(errs, p.Stop(60*time.Second))
	}
	return errors.Join(errs...)
}

// checkROS1Hermetic runs the tests of the packages that need nothing installed.
func checkROS1Hermetic(b *bench) error {
	for _, pkg := range []string{"ros1", "transcode"} {
		binary := filepath.Join(b.scratch, pkg+".test")
		if text, err := exec.CommandContext(b.ctx, "go", "test", "-race", "-c", "-o", binary, "./ros/"+pkg).CombinedOutput(); err != nil {
			return fmt.Errorf("go test -c ./ros/%s: %w: %s", pkg, err, text)
		}
		cmd := exec.CommandContext(b.ctx, binary)
		cmd.Dir = filepath.Join("ros", pkg)
		began := time.Now()
		text, err := cmd.CombinedOutput()
		took := time.Since(began)
		if err != nil {
			b.note("%s", strings.TrimSpace(string(text)))
		}
		b.figure(err == nil && took < 5*time.Second, "tests of ros/"+pkg+" with -race", "pass within 5 s, nothing installed", "%s in %.1f s", either(err == nil, "pass", "fail"), took.Seconds())
	}
	return nil
}

// checkROS1Peers records a stream beside rosbag record, replays it and records it again.
func checkROS1Peers(b *bench) error {
	r, err := newROS1(b)
	if err != nil {
		return err
	}
	defer r.close()
	topics := []string{"/str", "/imu", "/img1", "/img20", "/lat"}
	pub, err := r.script("pub.py", "stream", fmt.Sprint(pick(b, 10, 4)))
	if err != nil {
		return err
	}
	defer pub.Kill()
	if _, err := pub.Await("ready", 1, 20*time.Second); err != nil {
		return err
	}
	ours, theirs := filepath.Join(r.dir, "ours"), filepath.Join(r.dir, "theirs.bag")
	rec, err := r.record(ours, append([]string{"--max-cache-size", "500MB", "--topics"}, topics...)...)
	if err != nil {
		return err
	}
	defer rec.Kill()
	other, err := r.rosbag(theirs, append([]string{"-b", "0"}, topics...)...)
	if err != nil {
		return err
	}
	defer other.Kill()
	sent, err := pub.Await("sent", 1, 90*time.Second)
	if err != nil {
		return err
	}
	if err := errors.Join(b.sleep(time.Second), stopAll(rec, other)); err != nil {
		return err
	}
	got, err := payloads(ours)
	if err != nil {
		return err
	}
	want, err := payloads(theirs)
	if err != nil {
		return err
	}
	for _, t := range topics {
		n := int(sent.Int(t))
		if t == "/lat" {
			n = 1
		}
		b.figure(len(got[t]) >= len(want[t]) && within(got[t], want[t]) && len(want[t]) > 0, t+" recorded", "what C++ rosbag recorded, byte for byte", "%d of %d sent; rosbag %d",
			len(got[t]), n, len(want[t]))
	}
	return b.replay(r, ours, got, topics)
}

// replay plays a bag of ROS 1 to rosbag record and rostopic echo.
func (b *bench) replay(r *ros1Net, ours string, got map[string][]string, topics []string) error {
	again := filepath.Join(r.dir, "again.bag")
	other, err := r.rosbag(again, append([]string{"-b", "0"}, topics...)...)
	if err != nil {
		return err
	}
	defer other.Kill()
	echoes := map[string]*lab.Proc{}
	for _, t := range []string{"/str", "/imu", "/lat", "/img1"} {
		p, err := r.start(python, "/usr/bin/rostopic", "echo", "-n", "1", "--noarr", t)
		if err != nil {
			return err
		}
		defer p.Kill()
		echoes[t] = p
	}
	if err := r.subscribed(2, "/str", "/imu", "/lat"); err != nil {
		return err
	}
	if err := errors.Join(r.play(ours), b.sleep(time.Second), other.Stop(60*time.Second)); err != nil {
		return err
	}
	want, err := payloads(again)
	if err != nil {
		return err
	}
	for _, t := range topics {
		b.figure(slices.Equal(want[t], got[t]), t+" replayed", "C++ rosbag records the same payloads", "%d of %d", len(want[t]), len(got[t]))
	}
	for t, text := range map[string]string{"/str": "data: \"message", "/imu": "frame_id: \"imu\"", "/lat": "latched", "/img1": "encoding: \"mono8\""} {
		err := echoes[t].Wait(20 * time.Second)
		b.figure(err == nil && strings.Contains(echoes[t].Stdout(), text), t+" in rostopic echo", "shows "+text, "%s", either(err == nil, "shown", "not shown"))
	}
	return nil
}

// checkROS1Types does the same with one message of every type.
func checkROS1Types(b *bench) error {
	r, err := newROS1(b)
	if err != nil {
		return err
	}
	defer r.close()
	pub, err := r.script("pub.py", "types", "300")
	if err != nil {
		return err
	}
	defer pub.Kill()
	ready, err := pub.Await("ready", 1, 60*time.Second)
	if err != nil {
		return err
	}
	n := int(ready.Int("types"))
	ours, theirs := filepath.Join(r.dir, "ours"), filepath.Join(r.dir, "theirs.bag")
	rec, err := r.record(ours, "-e", "^/types/")
	if err != nil {
		return err
	}
	defer rec.Kill()
	other, err := r.rosbag(theirs, "-e", "/types/.*")
	if err != nil {
		return err
	}
	defer other.Kill()
	turned := filepath.Join(r.dir, "turned")
	recCDR, err := r.record(turned, "-e", "^/types/", "--ros1-as", "cdr")
	if err != nil {
		return err
	}
	defer recCDR.Kill()
	names, err := typeTopics("msg/testdata/ros1-md5.tsv")
	if err != nil {
		return err
	}
	if err := errors.Join(r.subscribed(3, names...), b.sleep(3*time.Second), stopAll(rec, other, recCDR)); err != nil {
		return err
	}
	if err := pub.Stop(20 * time.Second); err != nil { // a node that is killed stays in the master's list
		return err
	}
	got, err := payloads(ours)
	if err != nil {
		return err
	}
	want, err := contents(theirs, afterSeq)
	if err != nil {
		return err
	}
	have, err := contents(ours, afterSeq)
	if err != nil {
		return err
	}
	same := 0
	for t, p := range want {
		if slices.Equal(p, have[t]) {
			same++
		} else {
			b.note("%s: %d payloads, rosbag has %d", t, len(got[t]), len(p))
		}
	}
	b.figure(n >= 100 && same == len(want) && len(want) > n/2 && len(got) == n, "types recorded", "every one, what C++ rosbag has as that has it", "%d of %d, rosbag %d, %d alike",
		len(got), n, len(want), same)
	cdr, err := payloads(turned)
	if err != nil {
		return err
	}
	b.figure(len(cdr) == n, "types recorded as cdr", "every one", "%d of %d", len(cdr), n)

	again := filepath.Join(r.dir, "again.bag")
	if other, err = r.rosbag(again, "-e", "/types/.*"); err != nil {
		return err
	}
	defer other.Kill()
	typed, err := r.script("sub.py", "60", fmt.Sprint(n))
	if err != nil {
		return err
	}
	defer typed.Kill()
	if _, err := typed.Await("ready", 1, 20*time.Second); err != nil {
		return err
	}
	// The topics are there while the bag is played only: it is begun late enough that all are found.
	if err := r.play(ours, "--delay", "12"); err != nil {
		return err
	}
	e, err := typed.Await("got", 1, 70*time.Second)
	if err != nil {
		return err
	}
	if err := other.Stop(60 * time.Second); err != nil {
		return err
	}
	if want, err = payloads(again); err != nil {
		return err
	}
	same = 0
	for t, p := range got {
		if slices.Equal(p, want[t]) {
			same++
		} else if want[t] != nil {
			b.note("%s: replayed are %d payloads, recorded were %d", t, len(want[t]), len(p))
		}
	}
	b.figure(same == n, "types replayed", "C++ rosbag records the same payloads", "%d of %d", same, n)
	hashes, _ := e["topics"].(map[string]any)
	same = 0
	for t, p := range got {
		if len(p) == 1 && hashes[t] == p[0] {
			same++
		}
	}
	b.figure(same == n, "types received by typed rospy subscriptions", "the same payloads", "%d of %d", same, n)
	return nil
}

// typeTopics are the topics of pub.py types, by the list of the built-in table. Packages of tf are not installed.
func typeTopics(list string) (topics []string, err error) {
	text, err := os.ReadFile(list)
	for l := range strings.Lines(string(text)) {
		if name, _, _ := strings.Cut(l, "\t"); !strings.HasPrefix(name, "tf") {
			topics = append(topics, "/types/"+name)
		}
	}
	return topics, err
}

// checkROS1Restarts kills publishers and the master.
func checkROS1Restarts(b *bench) error {
	r, err := newROS1(b)
	if err != nil {
		return err
	}
	defer func() { r.close() }()
	dir := filepath.Join(r.dir, "restarts")
	rec, err := r.record(dir, "--topics", "/chatter", "/after")
	if err != nil {
		return err
	}
	defer rec.Kill()
	talk := func(topic, text string) (*lab.Proc, error) {
		return r.start(python, "/usr/bin/rostopic", "pub", "-r", "50", topic, "std_msgs/String", "data: "+text)
	}
	for i, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		p, err := talk("/chatter", fmt.Sprintf("life%d", i))
		if err != nil {
			return err
		}
		if err := errors.Join(b.sleep(4*time.Second), p.Signal(sig)); err != nil {
			return err
		}
		p.Kill()
	}
	steady, err := talk("/chatter", "steady")
	if err != nil {
		return err
	}
	defer steady.Kill()
	if err := b.sleep(4 * time.Second); err != nil {
		return err
	}
	r.master.Kill()
	if err := errors.Join(b.sleep(3*time.Second), r.startMaster(), b.sleep(3*time.Second)); err != nil {
		return err
	}
	after, err := talk("/after", "after")
	if err != nil {
		return err
	}
	defer after.Kill()
	if err := errors.Join(b.sleep(5*time.Second), rec.Stop(30*time.Second)); err != nil {
		return err
	}
	got, err := payloads(dir)
	if err != nil {
		return err
	}
	distinct := map[string]int{}
	for _, p := range got["/chatter"] {
		distinct[p]++
	}
	b.figure(len(distinct) == 4, "publisher killed 3 times (TERM, KILL, TERM) and restarted", "all four lives recorded", "%d of 4, %d messages", len(distinct), len(got["/chatter"]))
	longest := 0
	for _, n := range distinct {
		longest = max(longest, n)
	}
	b.figure(longest >= 400, "connection through a restart of the master", "at least 400 of 50 Hz over 15 s with the master gone for 3", "%d", longest)
	b.figure(len(got["/after"]) > 50, "new topic after the restart of the master", "recorded", "%d messages", len(got["/after"]))
	return nil
}
