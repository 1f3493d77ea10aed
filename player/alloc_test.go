package player

import (
	"context"
	"runtime"
	"testing"

	"github.com/gobag/gobag/ros"
)

// nullNode publishes nowhere.
type nullNode struct {
	published int
	at        map[int]func() // called when so many messages were published
}

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

func (p nullPublisher) Topic() ros.Topic          { return p.t }
func (p nullPublisher) Stats() ros.PublisherStats { return ros.PublisherStats{} }
func (p nullPublisher) Close() error              { return nil }

func (p nullPublisher) Publish([]byte, int64) error {
	p.n.published++
	if f := p.n.at[p.n.published]; f != nil {
		f()
	}
	return nil
}

// From the iterator to the publisher nothing is allocated per message.
func TestPathAllocatesNothing(t *testing.T) {
	const n = 20_000
	r := makeBag(t, topics("/a", "/b"), every(n, 0, 2))
	var before, after runtime.MemStats
	ctx, cancel := context.WithCancel(context.Background())
	node := &nullNode{at: map[int]func(){
		2 * n: func() { runtime.ReadMemStats(&before) }, // what comes before is to warm up
		7 * n: func() {
			runtime.ReadMemStats(&after)
			cancel()
		},
	}}
	p, err := New(Options{Node: node, Bag: r, Rate: 1e9, Loop: true, DiscoveryWait: -1})
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Run(ctx)
	if err != nil || res.Played != 7*n {
		t.Fatal(err, res)
	}
	if allocs := after.Mallocs - before.Mallocs; allocs > 5*n/100 {
		t.Fatalf("%d allocations for %d messages", allocs, 5*n)
	}
}
