package player

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

const (
	str   = "std_msgs/msg/String"
	ms    = int64(time.Millisecond)
	start = int64(1_000_000_000_000)
)

func init() { plugin.Register(plugintest.NewMemory()) }

// msg is a message of a test bag: at so many ms after the start, of topic number so, counted from 0.
type msg struct {
	at    int64
	topic int
}

func (m msg) data(n int) []byte {
	return fmt.Appendf(nil, "topic %d message %d %s", m.topic, n, strings.Repeat("x", n%50))
}

// topics makes topics of strings.
func topics(names ...string) []plugin.Topic {
	var ts []plugin.Topic
	for _, n := range names {
		ts = append(ts, plugin.Topic{Name: n, Type: str, SerializationFormat: "cdr", TypeHash: "RIHS01_" + strings.Repeat("cd", 32)})
	}
	return ts
}

// makeBag writes a bag and opens it.
func makeBag(t *testing.T, ts []plugin.Topic, msgs []msg) *bag.Reader {
	t.Helper()
	return makeBagWith(t, "memory", ts, msgs)
}

// makeBagIn is makeBag for a storage with faults.
func makeBagIn(t *testing.T, d *faultyReads, ts []plugin.Topic, msgs []msg) *bag.Reader {
	t.Helper()
	d.Driver, d.name = plugintest.NewMemory(), fmt.Sprintf("faulty%d", drivers.Add(1))
	plugin.Register(d)
	return makeBagWith(t, d.name, ts, msgs)
}

func makeBagWith(t *testing.T, storage string, ts []plugin.Topic, msgs []msg) *bag.Reader {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bag")
	w, err := bag.Create(context.Background(), dir, bag.WriterOptions{StorageID: storage, SyncInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]plugin.TopicID, len(ts))
	for i, topic := range ts {
		if ids[i], err = w.AddTopic(topic); err != nil {
			t.Fatal(err)
		}
	}
	for i, m := range msgs {
		if err := w.Write([]plugin.Message{{Topic: ids[m.topic], RecvTime: start + m.at*ms, Data: m.data(i)}}); err != nil {
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
	t.Cleanup(func() { r.Close() })
	return r
}

// heard is a message that a subscription got.
type heard struct {
	topic string
	data  string
	after time.Duration // since the ear was made
}

// rig is a network with a player and a listener.
type rig struct {
	*testing.T
	net            *rostest.Network
	node, listener *rostest.Node
	began          time.Time

	mu     sync.Mutex
	got    []heard
	events []Event

	p *Player
}

func inBubble(t *testing.T, f func(g *rig)) {
	synctest.Test(t, func(t *testing.T) {
		g := &rig{T: t, net: rostest.NewNetwork(rostest.Options{}), began: time.Now()}
		g.node, g.listener = g.net.Node("player"), g.net.Node("listener")
		defer func() {
			g.node.Close()
			g.listener.Close()
		}()
		f(g)
	})
}

func (g *rig) listen(name string, q ros.QoS) {
	g.Helper()
	_, err := g.listener.Subscribe(ros.Topic{Name: name, Type: str}, q, func(s ros.Sample) {
		g.mu.Lock()
		g.got = append(g.got, heard{name, string(s.Data), time.Since(g.began)})
		g.mu.Unlock()
		s.Release()
	})
	if err != nil {
		g.Fatal(err)
	}
}

func (g *rig) heard() []heard {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.got)
}

func (g *rig) make(o Options) *Player {
	g.Helper()
	if o.Node == nil {
		o.Node = g.node
	}
	o.OnEvent = func(e Event) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.events = append(g.events, e)
	}
	p, err := New(o)
	if err != nil {
		g.Fatal(err)
	}
	p.sleeper = sleeper{span: ms3, lock: func() func() { return func() {} }, until: func(at time.Time) { time.Sleep(time.Until(at)) }}
	g.p = p
	return p
}

const ms3 = 3 * time.Millisecond

// play plays to the end.
func (g *rig) play(o Options) Result {
	g.Helper()
	res, err := g.make(o).Run(context.Background())
	if err != nil {
		g.Fatal(err)
	}
	return res
}

func (g *rig) countEvents(kind EventKind, part string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.events {
		if e.Kind == kind && strings.Contains(e.Text, part) {
			n++
		}
	}
	return n
}

// wantTimes checks when messages came, relative to the first, in ms.
func (g *rig) wantTimes(want ...int64) {
	g.Helper()
	var got []int64
	all := g.heard()
	for _, h := range all {
		got = append(got, int64((h.after-all[0].after)/time.Millisecond))
	}
	if !slices.Equal(got, want) {
		g.Errorf("heard at %v ms, want %v", got, want)
	}
}

// wantData checks which messages of the bag came, in order.
func (g *rig) wantData(msgs []msg, want ...int) {
	g.Helper()
	all := g.heard()
	var got []string
	for _, h := range all {
		got = append(got, h.data)
	}
	var texts []string
	for _, i := range want {
		texts = append(texts, string(msgs[i].data(i)))
	}
	if !slices.Equal(got, texts) {
		g.Errorf("heard %q, want %q", got, texts)
	}
}

func every(n int, step int64, topics int) []msg {
	var ms []msg
	for i := range n {
		ms = append(ms, msg{int64(i) * step, i % topics})
	}
	return ms
}

func upTo(from, to int) []int {
	var is []int
	for i := from; i < to; i++ {
		is = append(is, i)
	}
	return is
}

// Everything arrives, byte for byte, in order and in its time, at a subscription that was there before.
func TestPlay(t *testing.T) {
	inBubble(t, func(g *rig) {
		msgs := []msg{{0, 0}, {10, 1}, {10, 0}, {10, 1}, {500, 0}, {2000, 1}}
		r := makeBag(t, topics("/a", "/b"), msgs)
		g.listen("/a", ros.DefaultQoS())
		g.listen("/b", ros.BestAvailableQoS())
		res := g.play(Options{Bag: r})
		g.wantData(msgs, upTo(0, len(msgs))...)
		g.wantTimes(0, 10, 10, 10, 500, 2000)
		if res.Played != 6 || res.Lateness.Count != 6 || res.Lateness.Max != 0 || res.Lateness.Late != 0 || res.Unacked != 0 {
			t.Errorf("%+v", res)
		}
		if len(res.Topics) != 2 || res.Topics[0].Played != 3 || res.Topics[0].Matched != 1 {
			t.Errorf("%+v", res.Topics)
		}
		if s := g.p.Snapshot(); s.State != StateStopped || s.Played != 6 || s.Total != 2*time.Second || s.Elapsed != 2*time.Second {
			t.Errorf("%+v", s)
		}
		if _, err := g.p.Run(context.Background()); !errors.Is(err, ErrRunning) {
			t.Errorf("second run: %v", err)
		}
	})
}

func TestRates(t *testing.T) {
	msgs := []msg{{0, 0}, {100, 0}, {1000, 0}}
	for rate, want := range map[float64][]int64{0.5: {0, 200, 2000}, 2: {0, 50, 500}, 1e12: {0, 0, 0}} {
		inBubble(t, func(g *rig) {
			r := makeBag(t, topics("/a"), msgs)
			g.listen("/a", ros.DefaultQoS())
			g.play(Options{Bag: r, Rate: rate})
			g.wantTimes(want...)
		})
	}
}

// The schedule is absolute: a publisher that blocks now and then makes messages late, and they catch up.
func TestLatenessDoesNotAddUp(t *testing.T) {
	inBubble(t, func(g *rig) {
		msgs := every(100, 10, 1)
		r := makeBag(t, topics("/a"), msgs)
		g.listen("/a", ros.DefaultQoS())
		slow := &slowNode{Node: g.node, every: 25, by: 45 * time.Millisecond}
		res := g.play(Options{Bag: r, Node: slow})
		g.wantData(msgs, upTo(0, 100)...)
		all := g.heard()
		if d := all[98].after - all[0].after; d != 980*time.Millisecond { // the last one is slow itself
			t.Errorf("message 98 after %v", d)
		}
		// After each slow call four messages are late, by 35, 25, 15 and 5 ms; nothing follows the last call.
		if res.Starved != 0 {
			t.Errorf("%d messages were late because of reading", res.Starved)
		}
		if l := res.Lateness; l.Late != 12 || l.Max != 35*time.Millisecond || l.P50 != 0 || l.P99 < 25*time.Millisecond {
			t.Errorf("%+v", l)
		}
	})
}

// slowNode makes publishers of which each so many-th call takes a while.
type slowNode struct {
	ros.Node
	every int
	by    time.Duration
	err   error // returned instead, if set
}

func (n *slowNode) Advertise(t ros.Topic, q ros.QoS) (ros.Publisher, error) {
	p, err := n.Node.Advertise(t, q)
	return &slowPublisher{p, n, 0}, err
}

type slowPublisher struct {
	ros.Publisher
	node  *slowNode
	calls int
}

func (p *slowPublisher) Publish(data []byte, at int64) error {
	if p.calls++; p.calls%p.node.every == 0 {
		if p.node.err != nil {
			return p.node.err
		}
		time.Sleep(p.node.by)
	}
	return p.Publisher.Publish(data, at)
}

func TestLoop(t *testing.T) {
	inBubble(t, func(g *rig) {
		msgs := []msg{{0, 0}, {100, 0}, {300, 0}}
		r := makeBag(t, topics("/a"), msgs)
		g.listen("/a", ros.DefaultQoS())
		ctx, cancel := context.WithCancel(context.Background())
		p := g.make(Options{Bag: r, Loop: true})
		p.o.OnEvent = func(e Event) {
			if e.Kind == EventLoop && p.loops.Load() == 3 {
				cancel()
			}
		}
		res, err := p.Run(ctx)
		if err != nil || res.Loops != 3 || res.Played < 9 {
			t.Fatal(err, res)
		}
		g.got = g.heard()[:9]
		g.wantData(msgs, 0, 1, 2, 0, 1, 2, 0, 1, 2)
		g.wantTimes(0, 100, 300, 300, 400, 600, 600, 700, 900)
	})
	inBubble(t, func(g *rig) { // nothing to repeat: no endless loop
		r := makeBag(t, topics("/a"), nil)
		if res := g.play(Options{Bag: r, Loop: true}); res.Loops != 0 {
			t.Errorf("%+v", res)
		}
	})
}

func TestSelection(t *testing.T) {
	msgs := every(6, 100, 3)
	cases := []struct {
		name string
		o    Options
		want []int
	}{
		{"topics", Options{Topics: []string{"a", "/c"}}, []int{0, 2, 3, 5}},
		{"exclude", Options{ExcludeTopics: []string{"/a"}}, []int{1, 2, 4, 5}},
		{"offset", Options{StartOffset: 200 * time.Millisecond}, []int{2, 3, 4, 5}},
		{"duration", Options{PlaybackDuration: 200 * time.Millisecond}, []int{0, 1, 2}},
		{"offset and duration", Options{StartOffset: 100 * time.Millisecond, PlaybackDuration: 150 * time.Millisecond}, []int{1, 2}},
		{"offset beyond the end", Options{StartOffset: time.Hour}, nil},
		{"small read-ahead", Options{ReadAhead: 1, ReadAheadBytes: 1}, upTo(0, 6)},
		{"no waiting", Options{DiscoveryWait: -1, WaitAcked: -1}, upTo(0, 6)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(g *rig) {
				c.o.Bag = makeBag(t, topics("/a", "/b", "/c"), msgs)
				for _, n := range []string{"/a", "/b", "/c"} {
					g.listen(n, ros.DefaultQoS())
				}
				g.play(c.o)
				g.wantData(msgs, c.want...)
			})
		})
	}
}

// With a start offset the bag's time begins there, not at the first message.
func TestStartOffsetKeepsTime(t *testing.T) {
	inBubble(t, func(g *rig) {
		r := makeBag(t, topics("/a"), []msg{{0, 0}, {1000, 0}, {1500, 0}})
		g.listen("/a", ros.DefaultQoS())
		p := g.make(Options{Bag: r, StartOffset: 400 * time.Millisecond})
		var began time.Time
		p.o.OnEvent = func(e Event) {
			if e.Kind == EventStarted {
				began = time.Now()
			}
		}
		if _, err := p.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		g.wantTimes(0, 500)
		if d := g.heard()[0].after - began.Sub(g.began); d != 600*time.Millisecond {
			t.Errorf("first message %v after the start", d)
		}
	})
}

func TestSelectionErrors(t *testing.T) {
	inBubble(t, func(g *rig) {
		r := makeBag(t, topics("/a"), []msg{{0, 0}})
		_, err := g.make(Options{Bag: r, Topics: []string{"/x"}}).Run(context.Background())
		if !errors.Is(err, ErrNoTopics) || g.countEvents(EventSkipped, "topic '/x' is not in the bag") != 1 {
			t.Fatal(err, g.events)
		}
	})
	inBubble(t, func(g *rig) { // an empty bag plays at once and is no error
		r := makeBag(t, topics("/a"), nil)
		if res := g.play(Options{Bag: r}); res.Played != 0 {
			t.Errorf("%+v", res)
		}
		r = makeBag(t, nil, nil)
		g.play(Options{Bag: r})
	})
}

func TestRemapping(t *testing.T) {
	inBubble(t, func(g *rig) {
		msgs := every(4, 10, 2)
		r := makeBag(t, topics("/a", "/b"), msgs)
		g.listen("/all", ros.DefaultQoS())
		res := g.play(Options{Bag: r, Remap: []string{"/a:=/all", "b:=all"}})
		g.wantData(msgs, 0, 1, 2, 3)
		if len(res.Topics) != 1 || res.Topics[0].Topic != "/all" || res.Topics[0].From != "/a" || res.Topics[0].Played != 4 {
			t.Errorf("%+v", res.Topics)
		}
	})
	inBubble(t, func(g *rig) { // two types cannot share a name
		ts := topics("/a", "/b")
		ts[1].Type = "std_msgs/msg/Int32"
		r := makeBag(t, ts, every(2, 10, 2))
		res := g.play(Options{Bag: r, Remap: []string{"/b:=/a"}})
		if res.Played != 1 || len(res.Skipped) != 1 || res.Skipped[0].Topic != "/b" {
			t.Errorf("%+v", res)
		}
	})
}

func TestWhatCannotBePlayed(t *testing.T) {
	inBubble(t, func(g *rig) {
		ts := topics("/json", "/bad type", "/ok", "noslash", "/bad/type")
		ts[0].SerializationFormat = "json"
		ts[4].Type = "nonsense"
		msgs := every(5, 10, 5)
		r := makeBag(t, ts, msgs)
		g.listen("/ok", ros.DefaultQoS())
		g.listen("/noslash", ros.DefaultQoS())
		res := g.play(Options{Bag: r})
		g.wantData(msgs, 2, 3)
		if len(res.Skipped) != 3 {
			t.Errorf("%+v", res.Skipped)
		}
		for _, part := range []string{"'/json' is not played: its serialization format is \"json\"", "'/bad type' is not played", "'/bad/type' is not played"} {
			if g.countEvents(EventSkipped, part) != 1 {
				t.Errorf("no event with %q in %v", part, g.events)
			}
		}
	})
	inBubble(t, func(g *rig) {
		ts := topics("/a")
		ts[0].SerializationFormat = "json"
		r := makeBag(t, ts, every(1, 10, 1))
		if _, err := g.make(Options{Bag: r}).Run(context.Background()); !errors.Is(err, ErrNoTopics) {
			t.Fatal(err)
		}
	})
}

func TestPauseResume(t *testing.T) {
	inBubble(t, func(g *rig) {
		msgs := every(10, 100, 1)
		r := makeBag(t, topics("/a"), msgs)
		g.listen("/a", ros.DefaultQoS())
		p := g.make(Options{Bag: r, StartPaused: true})
		done := make(chan Result)
		go func() {
			res, err := p.Run(context.Background())
			if err != nil {
				t.Error(err)
			}
			done <- res
		}()
		time.Sleep(5 * time.Second)
		if n := len(g.heard()); n != 0 || !p.Paused() || p.Snapshot().State != StatePaused {
			t.Fatalf("%d messages while paused", n)
		}
		if p.Toggle() {
			t.Fatal("still paused")
		}
		time.Sleep(250 * time.Millisecond) // 0, 100, 200
		p.Pause()
		p.Pause()
		time.Sleep(time.Hour)
		if n := len(g.heard()); n != 3 {
			t.Fatalf("%d messages", n)
		}
		if s := p.Snapshot(); s.State != StatePaused || s.Position != start+250*ms {
			t.Errorf("%+v", s)
		}
		if !p.PlayNext() {
			t.Fatal("no step while paused")
		}
		time.Sleep(10 * time.Millisecond)
		if n := len(g.heard()); n != 4 {
			t.Fatalf("%d messages after a step", n)
		}
		p.Resume() // from 300
		p.Resume()
		if p.PlayNext() {
			t.Fatal("a step while playing")
		}
		time.Sleep(99 * time.Millisecond)
		if n := len(g.heard()); n != 4 {
			t.Fatalf("%d messages 99 ms after the step", n)
		}
		time.Sleep(2 * time.Millisecond) // 400
		if n := len(g.heard()); n != 5 {
			t.Fatalf("%d messages 101 ms after the step", n)
		}
		time.Sleep(49 * time.Millisecond)
		if err := p.SetRate(0); err == nil {
			t.Fatal("rate 0")
		}
		if err := p.SetRate(10); err != nil || p.Rate() != 10 { // 500 is due in 5 ms
			t.Fatal(err, p.Rate())
		}
		at := time.Now()
		res := <-done
		if d := time.Since(at); d < 45*time.Millisecond || d > 60*time.Millisecond {
			t.Errorf("the rest took %v", d)
		}
		g.wantData(msgs, upTo(0, 10)...)
		if res.Lateness.Late != 0 || res.Lateness.Count != 9 {
			t.Errorf("%+v", res.Lateness)
		}
		for kind, n := range map[EventKind]int{EventPaused: 1, EventResumed: 2, EventRate: 1} {
			if got := g.countEvents(kind, ""); got != n {
				t.Errorf("event %d: %d times, want %d", kind, got, n)
			}
		}
	})
}

func TestStopWhilePaused(t *testing.T) {
	for _, paused := range []bool{true, false} {
		inBubble(t, func(g *rig) {
			r := makeBag(t, topics("/a"), []msg{{0, 0}, {3600_000, 0}})
			g.listen("/a", ros.DefaultQoS())
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(10*time.Second, cancel)
			began := time.Now()
			res, err := g.make(Options{Bag: r, StartPaused: paused}).Run(ctx)
			if err != nil || time.Since(began) != 10*time.Second || res.Played > 1 {
				t.Fatalf("%v after %v, %+v", err, time.Since(began), res)
			}
			if !paused && g.countEvents(EventGap, "the next message comes in 1h0m0s") != 1 {
				t.Error(g.events)
			}
		})
	}
}

func TestDelay(t *testing.T) {
	inBubble(t, func(g *rig) {
		r := makeBag(t, topics("/a"), []msg{{0, 0}})
		g.listen("/a", ros.DefaultQoS())
		g.play(Options{Bag: r, Delay: time.Minute})
		if at := g.heard()[0].after; at < time.Minute || at > time.Minute+3*time.Second {
			t.Errorf("first message after %v", at)
		}
	})
}

func TestLive(t *testing.T) {
	inBubble(t, func(g *rig) {
		if _, err := g.listener.Advertise(ros.Topic{Name: "/a", Type: str}, ros.DefaultQoS()); err != nil {
			t.Fatal(err)
		}
		if _, err := g.node.Advertise(ros.Topic{Name: "/b", Type: str}, ros.DefaultQoS()); err != nil { // our own does not count
			t.Fatal(err)
		}
		r := makeBag(t, topics("/a", "/b"), every(2, 10, 2))
		_, err := g.make(Options{Bag: r}).Run(context.Background())
		var live *LiveError
		if !errors.As(err, &live) || !errors.Is(err, ErrLive) || !slices.Equal(live.Topics, []string{"/a"}) || !slices.Equal(live.Nodes, []string{"/listener"}) {
			t.Fatal(err)
		}
		for _, info := range g.node.Graph().Topics() {
			if info.Name == "/a" && len(info.Publishers) != 1 {
				t.Error("advertised all the same")
			}
		}
		if res := g.play(Options{Bag: r, AllowLive: true}); res.Played != 2 {
			t.Errorf("%+v", res)
		}
		if res := g.play(Options{Bag: r, Remap: []string{"/a:=/replayed/a"}}); res.Played != 2 {
			t.Errorf("%+v", res)
		}
	})
}

// The recorded profile is offered, also to those who come late.
func TestRecordedQoS(t *testing.T) {
	inBubble(t, func(g *rig) {
		ts := topics("/latched", "/best", "/mixed", "/unreadable")
		latched, best := bag.DefaultQoSProfile(), bag.DefaultQoSProfile()
		latched.Durability, best.Reliability = int(ros.TransientLocal), int(ros.BestEffort)
		ts[0].OfferedQoS = bag.EncodeQoS([]bag.QoSProfile{latched, latched}, true)
		ts[1].OfferedQoS = bag.EncodeQoS([]bag.QoSProfile{best}, false)
		ts[2].OfferedQoS = bag.EncodeQoS([]bag.QoSProfile{bag.DefaultQoSProfile(), best}, true)
		ts[3].OfferedQoS = "- depth: 3"
		msgs := append(every(4, 10, 4), msg{5000, 1})
		r := makeBag(t, ts, msgs)
		p := g.make(Options{Bag: r, QoSOverrides: map[string]ros.QoS{"/x": ros.DefaultQoS()}})
		done := make(chan error)
		go func() {
			_, err := p.Run(context.Background())
			done <- err
		}()
		time.Sleep(4 * time.Second)
		late := ros.DefaultQoS()
		late.Durability = ros.TransientLocal
		g.listen("/latched", late)
		time.Sleep(100 * time.Millisecond)
		g.wantData(msgs, 0)
		qos := map[string]ros.QoS{}
		for _, info := range g.listener.Graph().Topics() {
			for _, pub := range info.Publishers {
				qos[info.Name] = pub.QoS
				if pub.Topic.TypeHash != ts[0].TypeHash {
					t.Errorf("hash of %s: %q", info.Name, pub.Topic.TypeHash)
				}
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if q := qos["/latched"]; q.Durability != ros.TransientLocal || q.Reliability != ros.Reliable {
			t.Errorf("/latched: %v", q)
		}
		if q := qos["/best"]; q.Reliability != ros.BestEffort {
			t.Errorf("/best: %v", q)
		}
		if qos["/mixed"] != ros.DefaultQoS() || g.countEvents(EventQoS, "topic '/mixed': the 2 recorded publishers did not offer the same reliability") != 1 {
			t.Errorf("/mixed: %v, %v", qos["/mixed"], g.events)
		}
		if qos["/unreadable"] != ros.DefaultQoS() || g.countEvents(EventQoS, "topic '/unreadable' is published with the default QoS") != 1 {
			t.Errorf("/unreadable: %v, %v", qos["/unreadable"], g.events)
		}
	})
}

func TestQoSOverride(t *testing.T) {
	inBubble(t, func(g *rig) {
		best := ros.BestAvailableQoS()
		best.Reliability = ros.BestEffort
		r := makeBag(t, topics("/a", "/b"), every(2, 10, 2))
		g.listen("/a", ros.DefaultQoS()) // reliable: cannot receive best effort
		g.play(Options{Bag: r, Remap: []string{"/b:=/c"}, QoSOverrides: map[string]ros.QoS{"/a": best, "/c": best}})
		if len(g.heard()) != 0 {
			t.Error("heard a best-effort message reliably")
		}
		if n := g.countEvents(EventQoS, "to topic '/a' receives nothing: reliability: offered best_effort, requested reliable"); n != 1 {
			t.Errorf("%d events: %v", n, g.events)
		}
	})
}

// A playback from the middle begins with what latched topics still hold there.
func TestLatchedBeforeStart(t *testing.T) {
	inBubble(t, func(g *rig) {
		ts := topics("/map", "/odom")
		q := bag.DefaultQoSProfile()
		q.Durability, q.Depth = int(ros.TransientLocal), 1
		ts[0].OfferedQoS = bag.EncodeQoS([]bag.QoSProfile{q}, true)
		msgs := []msg{{0, 0}, {10, 1}, {20, 0}, {500, 1}, {1000, 1}}
		r := makeBag(t, ts, msgs)
		late := ros.DefaultQoS()
		late.Durability = ros.TransientLocal
		g.listen("/map", late)
		g.listen("/odom", ros.DefaultQoS())
		res := g.play(Options{Bag: r, StartOffset: 100 * time.Millisecond})
		g.wantData(msgs, 0, 2, 3, 4) // the player keeps the last ten, whatever was recorded
		if res.Played != 4 || res.Lateness.Count != 2 {
			t.Errorf("%+v", res)
		}
		if g.countEvents(EventOther, "topic '/map' is latched: 2 messages") != 1 {
			t.Error(g.events)
		}
	})
	inBubble(t, func(g *rig) { // no more than the publisher keeps
		ts := topics("/map")
		q := bag.DefaultQoSProfile()
		q.Durability = int(ros.TransientLocal)
		ts[0].OfferedQoS = bag.EncodeQoS([]bag.QoSProfile{q}, true)
		msgs := every(30, 10, 1)
		r := makeBag(t, ts, msgs)
		g.listen("/map", ros.DefaultQoS())
		g.play(Options{Bag: r, StartOffset: 200 * time.Millisecond})
		g.wantData(msgs, upTo(10, 30)...)
	})
}

// The end waits for acknowledgements as long as it is told to.
func TestWaitAcked(t *testing.T) {
	cases := []struct {
		wait, took time.Duration
		unacked    bool
	}{{0, 5 * time.Second, false}, {time.Minute, 5 * time.Second, false}, {2 * time.Second, 2 * time.Second, true}, {-1, 0, true}}
	for _, c := range cases {
		inBubble(t, func(g *rig) {
			g.net.SetLink("/a", rostest.Link{Delay: 5 * time.Second})
			r := makeBag(t, topics("/a"), []msg{{0, 0}})
			g.listen("/a", ros.DefaultQoS())
			p := g.make(Options{Bag: r, WaitAcked: c.wait})
			var began time.Time
			p.o.OnEvent = func(e Event) {
				if e.Kind == EventStarted {
					began = time.Now()
				}
			}
			res, err := p.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if d := time.Since(began) - c.took; d < 0 || d > 2*matchPolling || (res.Unacked > 0) != c.unacked {
				t.Errorf("wait %v: ended after %v, %d unacknowledged", c.wait, time.Since(began), res.Unacked)
			}
		})
	}
}

// A subscription that appears while the graph settles gets the first message.
func TestFirstMessageIsNotLost(t *testing.T) {
	for _, after := range []time.Duration{0, 250 * time.Millisecond, 450 * time.Millisecond} {
		inBubble(t, func(g *rig) {
			msgs := every(3, 10, 1)
			r := makeBag(t, topics("/a"), msgs)
			time.AfterFunc(after, func() { g.listen("/a", ros.DefaultQoS()) })
			g.play(Options{Bag: r})
			g.wantData(msgs, 0, 1, 2)
		})
	}
	inBubble(t, func(g *rig) { // a graph that never settles does not keep us
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
				if p, err := g.listener.Advertise(ros.Topic{Name: "/noise", Type: str}, ros.DefaultQoS()); err == nil {
					p.Close()
				}
			}
		}()
		r := makeBag(t, topics("/a"), []msg{{0, 0}})
		began := time.Now()
		g.play(Options{Bag: r, WaitAcked: -1})
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

// A subscription that is in the graph and not matched yet is waited for.
func TestWaitsForMatch(t *testing.T) {
	for _, wait := range []time.Duration{800 * time.Millisecond, time.Hour} {
		inBubble(t, func(g *rig) {
			r := makeBag(t, topics("/a"), []msg{{0, 0}})
			g.listen("/a", ros.DefaultQoS())
			g.play(Options{Bag: r, Node: &hesitantNode{g.node, time.Now().Add(wait)}, DiscoveryWait: time.Second})
			want := 900 * time.Millisecond
			if wait > time.Second {
				want = 1300 * time.Millisecond // settling and one second more
			}
			if at := g.heard()[0].after; at < want || at > want+50*time.Millisecond {
				t.Errorf("first message after %v", at)
			}
		})
	}
}

// hesitantNode is a node whose publishers are not matched before some time.
type hesitantNode struct {
	ros.Node
	until time.Time
}

func (n *hesitantNode) Advertise(t ros.Topic, q ros.QoS) (ros.Publisher, error) {
	p, err := n.Node.Advertise(t, q)
	return &hesitantPublisher{p, n}, err
}

type hesitantPublisher struct {
	ros.Publisher
	n *hesitantNode
}

func (p *hesitantPublisher) Stats() ros.PublisherStats {
	st := p.Publisher.Stats()
	if time.Now().Before(p.n.until) {
		st.Matched = 0
	}
	return st
}

func TestPublishFails(t *testing.T) {
	inBubble(t, func(g *rig) {
		failure := errors.New("node is gone")
		r := makeBag(t, topics("/a"), every(10, 10, 1))
		res, err := g.make(Options{Bag: r, Node: &slowNode{Node: g.node, every: 3, err: failure}}).Run(context.Background())
		if !errors.Is(err, failure) || !strings.Contains(err.Error(), "/a") || res.Played != 2 {
			t.Fatal(err, res)
		}
	})
}

// When reading is slower than playing, messages are late, none is lost, and it is said.
func TestStarved(t *testing.T) {
	inBubble(t, func(g *rig) {
		msgs := every(50, 1, 1)
		r := makeBagIn(t, &faultyReads{before: func(n int) error {
			if n > 10 {
				time.Sleep(5 * time.Millisecond)
			}
			return nil
		}}, topics("/a"), msgs)
		g.listen("/a", ros.DefaultQoS())
		res := g.play(Options{Bag: r})
		g.wantData(msgs, upTo(0, 50)...)
		if res.Starved < 30 || g.countEvents(EventStarved, "Message queue starved") != 1 {
			t.Errorf("%+v %v", res, g.events)
		}
	})
}

// A damaged storage plays up to the damage, which is the error in the end.
func TestDamagedBag(t *testing.T) {
	for _, damage := range []error{&plugin.CorruptError{Path: "x", Offset: 7, Err: errors.New("bad page")}, errors.New("I/O error")} {
		inBubble(t, func(g *rig) {
			msgs := every(10, 10, 1)
			r := makeBagIn(t, &faultyReads{before: func(n int) error {
				if n == 6 {
					return damage
				}
				return nil
			}}, topics("/a"), msgs)
			g.listen("/a", ros.DefaultQoS())
			res, err := g.make(Options{Bag: r}).Run(context.Background())
			if !errors.Is(err, damage) || res.Played != 6 {
				t.Fatal(err, res)
			}
			g.wantData(msgs, upTo(0, 6)...)
		})
	}
}

// faultyReads is the reference format whose iterators can be slow or break.
type faultyReads struct {
	plugin.Driver
	name   string
	before func(n int) error // called before the n-th message of an iterator, counted from 0
}

var drivers atomic.Int64

func (d *faultyReads) Name() string { return d.name }

func (d *faultyReads) OpenReader(ctx context.Context, path string, o plugin.ReadOptions) (plugin.Reader, error) {
	r, err := d.Driver.OpenReader(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return &faultyReader{r, d}, nil
}

type faultyReader struct {
	plugin.Reader
	d *faultyReads
}

func (r *faultyReader) Messages(q plugin.Query) (plugin.Iterator, error) {
	it, err := r.Reader.Messages(q)
	return &faultyIterator{it, r.d, 0}, err
}

type faultyIterator struct {
	plugin.Iterator
	d *faultyReads
	n int
}

func (it *faultyIterator) Next(m *plugin.Message) error {
	if err := it.d.before(it.n); err != nil {
		return err
	}
	it.n++
	return it.Iterator.Next(m)
}

// Messages read ahead are copies; what the storage does with its memory afterwards does not matter.
func TestPayloadsAreOwned(t *testing.T) {
	inBubble(t, func(g *rig) {
		var msgs []msg
		for i := range 3000 {
			msgs = append(msgs, msg{int64(i / 10), i % 3})
		}
		r := makeBag(t, topics("/a", "/b", "/c"), msgs)
		for _, n := range []string{"/a", "/b", "/c"} {
			g.listen(n, ros.DefaultQoS())
		}
		g.play(Options{Bag: r, ReadAhead: 100, ReadAheadBytes: 8 << 10})
		all := g.heard()
		if len(all) != len(msgs) {
			t.Fatalf("%d messages", len(all))
		}
		for i, h := range all {
			if !bytes.Equal([]byte(h.data), msgs[i].data(i)) {
				t.Fatalf("message %d: %q", i, h.data)
			}
		}
	})
}
