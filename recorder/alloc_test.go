package recorder

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
	"github.com/gobag/gobag/ros"
)

// discard is a storage that keeps nothing.
type discard struct{ plugin.Driver }

func (discard) Name() string { return "discard" }

func (discard) Create(context.Context, string, plugin.WriteOptions) (plugin.Writer, error) {
	return &discardWriter{}, nil
}

type discardWriter struct {
	topics plugin.TopicID
	n      atomic.Int64
}

func (w *discardWriter) AddTopic(plugin.Topic) (plugin.TopicID, error) {
	w.topics++
	return w.topics, nil
}
func (w *discardWriter) Write(b []plugin.Message) error { w.n.Add(int64(len(b))); return nil }
func (w *discardWriter) Sync() error                    { return nil }
func (w *discardWriter) Size() int64                    { return w.n.Load() }
func (w *discardWriter) Close(plugin.Metadata) error    { return nil }

func init() { plugin.Register(discard{plugintest.NewMemory()}) }

// handNode is a node whose subscriptions are fed by hand.
type handNode struct {
	topics   []ros.TopicInfo
	handlers map[string]func(ros.Sample)
}

func newHandNode(names ...string) *handNode {
	n := &handNode{handlers: map[string]func(ros.Sample){}}
	for i, name := range names {
		t := ros.Topic{Name: name, Type: str}
		n.topics = append(n.topics, ros.TopicInfo{Name: name, Types: []string{str},
			Publishers: []ros.Endpoint{{ID: endpoint(i + 1), Topic: t, QoS: ros.DefaultQoS()}}})
	}
	return n
}

func (n *handNode) Graph() ros.Graph         { return n }
func (n *handNode) Topics() []ros.TopicInfo  { return n.topics }
func (n *handNode) Changed() <-chan struct{} { return nil }
func (n *handNode) Close() error             { return nil }
func (n *handNode) Advertise(ros.Topic, ros.QoS) (ros.Publisher, error) {
	return nil, ros.ErrClosed
}

func (n *handNode) Subscribe(t ros.Topic, _ ros.QoS, h func(ros.Sample)) (ros.Subscription, error) {
	n.handlers[t.Name] = h
	return handSubscription{t}, nil
}

type handSubscription struct{ t ros.Topic }

func (s handSubscription) Topic() ros.Topic             { return s.t }
func (s handSubscription) Stats() ros.SubscriptionStats { return ros.SubscriptionStats{} }
func (s handSubscription) Close() error                 { return nil }

// feed records n messages by hand and returns how long it took and how many allocations there were.
func feed(t testing.TB, n, size int) (elapsed time.Duration, allocs uint64) {
	t.Helper()
	node := newHandNode("/a", "/b", "/c")
	subscribed := make(chan struct{}, 3)
	rec, err := New(Options{Node: node, All: true, Output: filepath.Join(t.TempDir(), "bag"), Storage: "discard", MinFreeSpace: -1,
		OnEvent: func(e Event) {
			if e.Kind == EventSubscribed {
				subscribed <- struct{}{}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan Result)
	go func() {
		res, _ := rec.Run(ctx)
		done <- res
	}()
	for range 3 {
		<-subscribed
	}
	hs := []func(ros.Sample){node.handlers["/a"], node.handlers["/b"], node.handlers["/c"]}
	o := &atomicOwner{}
	data := make([]byte, size)
	wait := func(count int) {
		for o.n.Load() < int64(count) {
			time.Sleep(100 * time.Microsecond)
		}
	}
	send := func(from, to int) {
		for i := from; i < to; i++ {
			hs[i%3](ros.Sample{Data: data, RecvTime: int64(i), SourceTime: int64(i), Writer: endpoint(i%3 + 1), Seq: uint64(i), Owner: o})
			if i%500 == 499 { // not further ahead than the queue's nodes
				wait(i + 1 - 8000)
			}
		}
	}
	warm := 20000
	send(0, warm)
	wait(warm)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	send(warm, warm+n)
	wait(warm + n)
	elapsed = time.Since(start)
	runtime.ReadMemStats(&after)
	cancel()
	res := <-done
	if wire, queue, storage := res.Lost(); res.Messages != uint64(warm+n) || wire+queue+storage != 0 {
		t.Fatalf("%d messages of %d recorded", res.Messages, warm+n)
	}
	return elapsed, after.Mallocs - before.Mallocs
}

type atomicOwner struct{ n atomic.Int64 }

func (o *atomicOwner) Release([]byte) { o.n.Add(1) }

// From the handler through queue, writer goroutine and bag nothing is allocated per message.
func TestPathAllocatesNothing(t *testing.T) {
	const n = 200_000
	if _, allocs := feed(t, n, 100); allocs > n/20 { // nodes of the queue, when the writer falls behind
		t.Fatalf("%d allocations for %d messages", allocs, n)
	}
}

func BenchmarkPath(b *testing.B) {
	elapsed, _ := feed(b, b.N, 100)
	b.ReportMetric(float64(elapsed.Nanoseconds())/float64(b.N), "ns/message")
}

// A look at a graph of a thousand topics that are all being recorded.
func BenchmarkScan(b *testing.B) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("/robot/topic%d", i))
	}
	node := newHandNode(names...)
	rec, err := New(Options{Node: node, All: true})
	if err != nil {
		b.Fatal(err)
	}
	rec.queue = bag.NewQueue(bag.QueueOptions{})
	d := newDiscovery(b.Context(), rec)
	d.scan(node.topics)
	for b.Loop() {
		d.scan(node.topics)
	}
}
