package player

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/gobag/gobag/ros"
)

// nullNode publishes nowhere.
type nullNode struct{ published atomic.Uint64 }

func (n *nullNode) Graph() ros.Graph         { return n }
func (n *nullNode) Topics() []ros.TopicInfo  { return nil }
func (n *nullNode) Changed() <-chan struct{} { return nil }
func (n *nullNode) Close() error             { return nil }

func (n *nullNode) Subscribe(ros.Topic, ros.QoS, func(ros.Sample)) (ros.Subscription, error) {
	return nil, ros.ErrClosed
}

func (n *nullNode) Advertise(t ros.Topic, _ ros.QoS) (ros.Publisher, error) {
	return nullPublisher{t, n}, nil
}

type nullPublisher struct {
	t ros.Topic
	n *nullNode
}

func (p nullPublisher) Topic() ros.Topic            { return p.t }
func (p nullPublisher) Publish([]byte, int64) error { p.n.published.Add(1); return nil }
func (p nullPublisher) Stats() ros.PublisherStats   { return ros.PublisherStats{} }
func (p nullPublisher) Close() error                { return nil }

// From the iterator to the publisher nothing is allocated per message.
func TestPathAllocatesNothing(t *testing.T) {
	const n = 20_000
	r := makeBag(t, topics("/a", "/b"), every(n, 0, 2))
	node := &nullNode{}
	p, err := New(Options{Node: node, Bag: r, Rate: 1e9, Loop: true, DiscoveryWait: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var before, after runtime.MemStats
	p.o.OnEvent = func(e Event) {
		if e.Kind != EventLoop {
			return
		}
		switch p.loops.Load() {
		case 2: // the first is to warm up
			runtime.ReadMemStats(&before)
		case 7:
			runtime.ReadMemStats(&after)
			cancel()
		}
	}
	res, err := p.Run(ctx)
	if err != nil || res.Played < 7*n {
		t.Fatal(err, res)
	}
	if allocs := after.Mallocs - before.Mallocs; allocs > 5*n/100 {
		t.Fatalf("%d allocations for %d messages", allocs, 5*n)
	}
}
