package player

import (
	"context"
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

func init() { plugin.Register(plugintest.NewMemory()) }

type msg struct {
	at    int64
	topic int
}

func (m msg) data(n int) []byte {
	return fmt.Appendf(nil, "topic %d message %d %s", m.topic, n, strings.Repeat("x", n%50))
}

func topics(names ...string) []plugin.Topic {
	var ts []plugin.Topic
	for _, n := range names {
		ts = append(ts, plugin.Topic{Name: n, Type: str, SerializationFormat: "cdr", TypeHash: "RIHS01_" + strings.Repeat("cd", 32)})
	}
	return ts
}

func makeBag(t *testing.T, ts []plugin.Topic, msgs []msg) *bag.Reader {
	t.Helper()
	return makeBagWith(t, "memory", ts, msgs)
}

func makeBagIn(t *testing.T, d *faultyReads, ts []plugin.Topic, msgs []msg) *bag.Reader {
	t.Helper()
	d.Driver, d.name = plugintest.NewMemory(), fmt.Sprintf("faulty%d", drivers.Add(1))
	plugin.Register(d)
	return makeBagWith(t, d.name, ts, msgs)
}

func makeBagWith(t *testing.T, storage string, ts []plugin.Topic, msgs []msg) *bag.Reader {
	t.Helper()
	return makeBagOf(t, storage, ts, len(msgs), func(i int) (int, plugin.Message) {
		return msgs[i].topic, plugin.Message{RecvTime: start + msgs[i].at*ms, Data: msgs[i].data(i)}
	})
}

// makeBagOf makes a bag of n messages: at says of each its topic, by index, and the rest.
func makeBagOf(t *testing.T, storage string, ts []plugin.Topic, n int, at func(i int) (int, plugin.Message)) *bag.Reader {
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
	for i := range n {
		topic, m := at(i)
		m.Topic = ids[topic]
		if err := w.Write([]plugin.Message{m}); err != nil {
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

type heard struct {
	topic string
	data  string
	after time.Duration // since the ear was made
}

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
