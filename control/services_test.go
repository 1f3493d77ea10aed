package control

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/player"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

func init() { plugin.Register(plugintest.NewMemory()) }

// servicesNode is a node that keeps what is served on it.
type servicesNode struct {
	ros.Node
	mu     sync.Mutex
	served map[string]func([]byte) []byte
	specs  map[string]ros.Service
}

func newServicesNode(n ros.Node) *servicesNode {
	return &servicesNode{Node: n, served: map[string]func([]byte) []byte{}, specs: map[string]ros.Service{}}
}

func (n *servicesNode) Serve(s ros.Service, h func([]byte) []byte) (ros.Server, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.served[s.Name], n.specs[s.Name] = h, s
	return served{n, s.Name}, nil
}

func (n *servicesNode) Client(ros.Service) (ros.Client, error) { return nil, ros.ErrClosed }

type served struct {
	n    *servicesNode
	name string
}

func (s served) Close() error {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	delete(s.n.served, s.name)
	return nil
}

func (n *servicesNode) call(t *testing.T, name string, fill func(*cdr.Encoder)) *cdr.Decoder {
	t.Helper()
	n.mu.Lock()
	h := n.served[name]
	n.mu.Unlock()
	if h == nil {
		t.Fatalf("%s is not offered", name)
	}
	e := cdr.NewEncoder(nil, cdr.CDRLE)
	if fill != nil {
		fill(e)
	} else {
		e.Uint8(0)
	}
	reply := h(e.Bytes())
	d, err := cdr.NewDecoder(reply)
	if err != nil || len(reply) < 5 {
		t.Fatalf("%s: reply %x: %v", name, reply, err)
	}
	return d
}

func (n *servicesNode) names() (all []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name := range n.served {
		all = append(all, name[strings.LastIndexByte(name, '/')+1:])
	}
	slices.Sort(all)
	return all
}

func TestRecorderServices(t *testing.T) {
	net := rostest.NewNetwork(rostest.Options{})
	talker, own := net.Node("talker"), net.Node("recorder")
	defer talker.Close()
	defer own.Close()
	pub, err := talker.Advertise(ros.Topic{Name: "/a", Type: "std_msgs/msg/String"}, ros.DefaultQoS())
	if err != nil {
		t.Fatal(err)
	}
	node := newServicesNode(own)
	events, err := NewEvents(node, "rec", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var splits []string
	if _, err := talker.Subscribe(ros.Topic{Name: writeSplitTopic, Type: interfaces + "/msg/WriteSplitEvent"}, ros.DefaultQoS(), func(s ros.Sample) {
		d, err := cdr.NewDecoder(s.Data)
		if err == nil {
			mu.Lock()
			splits = append(splits, d.Str()+" "+d.Str()+" "+d.Str())
			mu.Unlock()
		}
		s.Release()
	}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "bag")
	rec, err := recorder.New(recorder.Options{Node: node, Output: dir, Storage: "memory", Topics: []string{"/a"}, StartPaused: true, MinFreeSpace: -1, OnSplit: events.Split})
	if err != nil {
		t.Fatal(err)
	}
	limited, err := ServeRecorder(node, "/rec", rec, RemoteLimited, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := node.names(); !slices.Equal(got, []string{"is_discovery_running", "is_paused", "pause", "resume", "snapshot", "split_bagfile"}) {
		t.Errorf("offered: %v", got)
	}
	if s := node.specs["/rec/split_bagfile"]; s.Type != "rosbag2_interfaces/srv/SplitBagfile" || !strings.HasPrefix(s.RequestHash, "RIHS01_") || s.RequestHash == s.ResponseHash {
		t.Errorf("%+v", s)
	}
	if err := limited.Close(); err != nil {
		t.Fatal(err)
	}
	full, err := ServeRecorder(node, "/rec", rec, RemoteFull, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()

	if d := node.call(t, "/rec/split_bagfile", nil); d.Int32() != codeNotRecording || !strings.Contains(d.Str(), "not recording") {
		t.Error("split before the recording")
	}
	done := make(chan error, 1)
	go func() {
		_, err := rec.Run(context.Background())
		done <- err
	}()
	await := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("not within 10 s: " + what)
			}
		}
	}
	await("subscribed", func() bool { return len(rec.Snapshot().Topics) == 1 })
	if d := node.call(t, "/rec/is_paused", nil); !d.Bool() {
		t.Error("it is not paused")
	}
	if d := node.call(t, "/rec/resume", nil); d.Int32() != codeOK {
		t.Error("resume")
	}
	send := func() {
		if err := pub.Publish([]byte{0, 1, 0, 0, 1}, 1); err != nil {
			t.Fatal(err)
		}
	}
	send()
	await("recorded", func() bool { return rec.Snapshot().Messages == 1 })
	if d := node.call(t, "/rec/split_bagfile", nil); d.Int32() != codeOK {
		t.Error("split")
	}
	lyrical := func(mode int32) func(*cdr.Encoder) {
		return func(e *cdr.Encoder) {
			e.Int32(100)
			e.Uint32(0)
			e.Int32(mode)
			e.Str("")
		}
	}
	send()
	await("recorded", func() bool { return rec.Snapshot().Messages == 2 })
	if d := node.call(t, "/rec/split_bagfile", lyrical(0)); d.Int32() != codeOK { // in the past: now
		t.Error("split at a time")
	}
	if d := node.call(t, "/rec/split_bagfile", lyrical(1)); d.Int32() != codeBadMode || d.Str() == "" {
		t.Error("split in another mode")
	}
	if n := rec.Snapshot().Files; n != 3 {
		t.Errorf("%d files", n)
	}
	if d := node.call(t, "/rec/snapshot", nil); d.Bool() {
		t.Error("a snapshot without the mode")
	}
	node.call(t, "/rec/stop_discovery", nil)
	if d := node.call(t, "/rec/is_discovery_running", nil); d.Bool() {
		t.Error("discovery runs")
	}
	node.call(t, "/rec/start_discovery", nil)
	if d := node.call(t, "/rec/record", nil); d.Int32() != codeNotRecording {
		t.Error("record")
	}
	node.call(t, "/rec/pause", nil)
	if !rec.Paused() {
		t.Error("it is not paused")
	}
	commands := RecorderCommands(rec)
	for name, c := range commands {
		if name == "stop" {
			continue
		}
		if _, err := c.Run(nil); (err != nil) != (name == "snapshot") {
			t.Errorf("%s: %v", name, err)
		}
	}
	node.call(t, "/rec/stop", nil)
	if err := <-done; err != nil {
		t.Error(err)
	}
	await("the last event", func() bool { mu.Lock(); defer mu.Unlock(); return len(splits) >= 3 })
	if err := events.Close(); err != nil {
		t.Error(err)
	}
	events.Split("after", "the end") // silent
	if splits[0] != "bag_0.memory bag_1.memory rec" && !strings.HasPrefix(splits[0], "bag_0") {
		t.Errorf("%q", splits)
	}
}

func TestLossEvents(t *testing.T) {
	s := recorder.Snapshot{Topics: []recorder.TopicSnapshot{{Name: "/a"}, {Name: "/b", TopicLedger: bag.TopicLedger{Lost: bag.Lost{Wire: 1, Queue: 2, Storage: 4}}}}}
	d, err := cdr.NewDecoder(encodeLost("rec", s))
	if err != nil {
		t.Fatal(err)
	}
	if node, n := d.Str(), d.Uint32(); node != "rec" || n != 1 || d.Str() != "/b" || d.Uint64() != 1 || d.Uint64() != 6 || d.Err() != nil || d.Left() != 0 {
		t.Error("not as rosbag2 has it")
	}
}

func TestPlayerServices(t *testing.T) {
	net := rostest.NewNetwork(rostest.Options{})
	own := net.Node("player")
	defer own.Close()
	node := newServicesNode(own)
	dir := filepath.Join(t.TempDir(), "bag")
	w, err := bag.Create(context.Background(), dir, bag.WriterOptions{StorageID: "memory", SyncInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "std_msgs/msg/String"})
	if err != nil {
		t.Fatal(err)
	}
	const start = int64(1_700_000_000e9)
	for i := range int64(50) {
		if err := w.Write([]plugin.Message{{Topic: id, RecvTime: start + i*1e9, Data: []byte{0, 1, 0, 0, 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := bag.Open(context.Background(), dir, bag.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := player.New(player.Options{Node: node, Bag: r, StartPaused: true, WaitAcked: -1, DiscoveryWait: -1})
	if err != nil {
		t.Fatal(err)
	}
	limited, err := ServePlayer(node, "/p", p, RemoteLimited, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := node.names(); !slices.Equal(got, []string{"get_rate", "is_paused", "pause", "resume", "toggle_paused"}) {
		t.Errorf("offered: %v", got)
	}
	if err := limited.Close(); err != nil {
		t.Fatal(err)
	}
	full, err := ServePlayer(node, "/p", p, RemoteFull, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	done := make(chan player.Result, 1)
	go func() {
		res, err := p.Run(context.Background())
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	for p.Snapshot().State != player.StatePaused {
		time.Sleep(time.Millisecond)
	}
	if !node.call(t, "/p/is_paused", nil).Bool() {
		t.Error("not paused")
	}
	if n := node.call(t, "/p/burst", func(e *cdr.Encoder) { e.Uint64(3) }).Uint64(); n != 3 {
		t.Errorf("a burst of %d", n)
	}
	if !node.call(t, "/p/play_next", nil).Bool() {
		t.Error("no next message")
	}
	if !node.call(t, "/p/set_rate", func(e *cdr.Encoder) { e.Float64(2) }).Bool() || node.call(t, "/p/set_rate", func(e *cdr.Encoder) { e.Float64(-1) }).Bool() ||
		node.call(t, "/p/set_rate", func(e *cdr.Encoder) { e.Float64(math.NaN()) }).Bool() || node.call(t, "/p/get_rate", nil).Float64() != 2 {
		t.Error("the rate")
	}
	seek := func(ns int64) bool {
		return node.call(t, "/p/seek", func(e *cdr.Encoder) { e.Int32(int32(ns / 1e9)); e.Uint32(uint32(ns % 1e9)) }).Bool()
	}
	if seek(start+1000e9) || !seek(start+40e9) {
		t.Error("seek")
	}
	if node.call(t, "/p/play", nil).Bool() {
		t.Error("it plays already")
	}
	node.call(t, "/p/toggle_paused", nil)
	node.call(t, "/p/pause", nil)
	if d := node.call(t, "/p/resume", nil); d.Int32() != codeOK || p.Paused() {
		t.Error("resume")
	}
	commands := PlayerCommands(p)
	for _, x := range []struct {
		name string
		args []string
		ok   bool
	}{
		{"pause", nil, true}, {"status", nil, true}, {"rate", nil, true}, {"rate", []string{"x"}, false}, {"rate", []string{"-1"}, false}, {"rate", []string{"0.5"}, true},
		{"next", nil, true}, {"burst", []string{"2"}, true}, {"burst", []string{"x"}, false}, {"seek", nil, false}, {"seek", []string{"+40"}, true},
		{"seek", []string{"1700000041"}, true}, {"seek", []string{"1700000042500000000"}, true}, {"seek", []string{"+1000"}, false}, {"seek", []string{"x"}, false},
		{"seek", []string{"+nan"}, false}, {"toggle", nil, true}, {"burst", nil, false}, {"next", nil, false}, {"resume", nil, true},
	} {
		if _, err := commands[x.name].Run(x.args); (err == nil) != x.ok {
			t.Errorf("%s %v: %v", x.name, x.args, err)
		}
	}
	node.call(t, "/p/stop", nil)
	<-done
}

// Without services on the node, or with them switched off, nothing is offered and nothing fails.
func TestNoServices(t *testing.T) {
	net := rostest.NewNetwork(rostest.Options{})
	own := net.Node("recorder")
	defer own.Close()
	rec, err := recorder.New(recorder.Options{Node: own, Storage: "memory", All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []ros.Node{own, newServicesNode(own)} {
		s, err := ServeRecorder(n, "/rec", rec, RemoteOff, nil)
		if err != nil || len(s.list) != 0 {
			t.Error(err)
		}
	}
	if s, err := ServeRecorder(own, "/rec", rec, RemoteFull, nil); err != nil || len(s.list) != 0 {
		t.Error(err)
	}
}
