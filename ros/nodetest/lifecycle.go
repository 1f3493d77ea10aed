package nodetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
)

// After Close of a subscription no call of the handler runs or starts.
func (s suite) closeSubscription(t *testing.T) {
	n := s.nodes(t, 2)
	topic := ros.Topic{Name: "/closing", Type: stringType}
	pub := advertise(t, n[0], topic, bestEffort())
	stop := make(chan struct{})
	var flood sync.WaitGroup
	flood.Go(func() {
		for i := uint32(0); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := pub.Publish(payload(i, 100), 1); err != nil {
				t.Error(err)
				return
			}
			if i%10 == 0 {
				time.Sleep(100 * time.Microsecond)
			}
		}
	})
	defer flood.Wait()
	defer close(stop)
	for range 5 {
		var closed, running, calls atomic.Int64
		sub, err := n[1].Subscribe(topic, ros.BestAvailableQoS(), func(sample ros.Sample) {
			running.Add(1)
			defer running.Add(-1)
			if closed.Load() != 0 {
				t.Error("the handler was called after Close")
			}
			calls.Add(1)
			sample.Release()
		})
		if err != nil {
			t.Fatal(err)
		}
		s.eventually(t, "samples", func() string {
			if calls.Load() == 0 {
				return "no sample"
			}
			return ""
		})
		for range 2 {
			if err := sub.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if running.Load() != 0 {
			t.Error("the handler runs after Close")
		}
		closed.Store(1)
		time.Sleep(5 * time.Millisecond)
	}
}

func (s suite) closePublisher(t *testing.T) {
	n := s.nodes(t, 2)
	topic := ros.Topic{Name: "/closed/publisher", Type: stringType}
	sub, c := subscribe(t, n[1], topic, ros.BestAvailableQoS())
	pub := advertise(t, n[0], topic, keepAll())
	s.matched(t, pub, 1)
	publish(t, pub, 1, 10)
	s.count(t, c, 10)
	for range 2 {
		if err := pub.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Publish(payload(1, 1), 1); !errors.Is(err, ros.ErrClosed) {
		t.Errorf("publish after close: %v", err)
	}
	if st := pub.Stats(); st.Sent != 10 {
		t.Errorf("stats after close are %+v", st)
	}
	s.receiving(t, sub, 0)
	s.eventually(t, "end of the publisher", func() string { return sees(n[1], topic.Name, 0, 1) })
}

func (s suite) closeNode(t *testing.T) {
	n := s.nodes(t, 2)
	topic := ros.Topic{Name: "/closed/node", Type: stringType}
	var closed atomic.Bool
	sub, err := n[1].Subscribe(topic, ros.BestAvailableQoS(), func(sample ros.Sample) {
		if closed.Load() {
			t.Error("the handler was called after Close of the node")
		}
		sample.Release()
	})
	if err != nil {
		t.Fatal(err)
	}
	pub := advertise(t, n[0], topic, keepAll())
	own := advertise(t, n[1], ros.Topic{Name: "/own", Type: stringType}, keepAll())
	s.matched(t, pub, 1)
	publish(t, pub, 1, 50)
	s.eventually(t, "discovery", func() string { return sees(n[0], "/own", 1, 0) })
	for range 2 {
		if err := n[1].Close(); err != nil {
			t.Fatal(err)
		}
	}
	closed.Store(true)
	for range 50 {
		_ = pub.Publish(payload(1, 1), 1)
	}
	if _, err := n[1].Subscribe(topic, ros.DefaultQoS(), func(ros.Sample) {}); !errors.Is(err, ros.ErrClosed) {
		t.Errorf("subscribe: %v", err)
	}
	if _, err := n[1].Advertise(topic, ros.DefaultQoS()); !errors.Is(err, ros.ErrClosed) {
		t.Errorf("advertise: %v", err)
	}
	if err := own.Publish(payload(1, 1), 1); !errors.Is(err, ros.ErrClosed) {
		t.Errorf("publish: %v", err)
	}
	if err := errors.Join(own.Close(), sub.Close()); err != nil {
		t.Errorf("close after the node's: %v", err)
	}
	own.Stats()
	sub.Stats()
	n[1].Graph().Topics()
	n[1].Graph().Changed()
	s.eventually(t, "goodbye", func() string {
		if problem := sees(n[0], "/own", 0, 0); problem != "" {
			return problem
		}
		return sees(n[0], topic.Name, 1, 0)
	})
}

func (s suite) statsOutliveClose(t *testing.T) {
	n := s.nodes(t, 2)
	topic := ros.Topic{Name: "/stats", Type: stringType}
	sub, c := subscribe(t, n[1], topic, ros.BestAvailableQoS())
	pub := advertise(t, n[0], topic, keepAll())
	s.matched(t, pub, 1)
	publish(t, pub, 1, 10)
	s.count(t, c, 10)
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	if st := sub.Stats(); st.Received != 10 || st.Lost != 0 || len(st.Writers) != 1 || st.Writers[0].Received != 10 || st.Writers[0].Matched {
		t.Errorf("stats after close are %+v", st)
	}
	s.eventually(t, "the subscription's end", func() string {
		if st := pub.Stats(); st.Matched != 0 || st.Unacked != 0 {
			return fmt.Sprintf("publisher stats are %+v", st)
		}
		return ""
	})
}

func (s suite) badRequests(t *testing.T) {
	n := s.nodes(t, 1)
	good := ros.Topic{Name: "/good", Type: stringType}
	ignore := func(sample ros.Sample) { sample.Release() }
	for _, bad := range []ros.Topic{{Type: stringType}, {Name: "relative", Type: stringType}, {Name: "/a b", Type: stringType}, {Name: "/no_type"}} {
		if _, err := n[0].Subscribe(bad, ros.DefaultQoS(), ignore); !errors.Is(err, ros.ErrName) {
			t.Errorf("subscribe %+v: %v", bad, err)
		}
		if _, err := n[0].Advertise(bad, ros.DefaultQoS()); !errors.Is(err, ros.ErrName) {
			t.Errorf("advertise %+v: %v", bad, err)
		}
	}
	if _, err := n[0].Subscribe(good, ros.DefaultQoS(), nil); err == nil {
		t.Error("a subscription without handler was accepted")
	}
	if _, err := n[0].Advertise(good, ros.BestAvailableQoS()); err == nil && !s.NoQoS {
		t.Error("a publisher with best_available was accepted")
	}
	if infos := n[0].Graph().Topics(); len(infos) != 0 {
		t.Errorf("refused requests are in the graph: %+v", infos)
	}
}

// Everything may be called by several goroutines at once; run this with -race.
func (s suite) concurrentUse(t *testing.T) {
	n := s.nodes(t, 2)
	var done atomic.Bool
	var watchers, users sync.WaitGroup
	for _, node := range n {
		watchers.Go(func() {
			for !done.Load() {
				changed := node.Graph().Changed()
				node.Graph().Topics()
				select {
				case <-changed:
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	for i := range 4 {
		topic := ros.Topic{Name: fmt.Sprintf("/concurrent/t%d", i%2), Type: stringType}
		users.Go(func() {
			for range 4 {
				pub, err := n[0].Advertise(topic, keepAll())
				if err != nil {
					t.Error(err)
					return
				}
				var inner sync.WaitGroup
				for range 2 {
					inner.Go(func() {
						for k := range uint32(20) {
							if err := pub.Publish(payload(k, 50), 1); err != nil {
								t.Error(err)
							}
							pub.Stats()
						}
					})
				}
				inner.Wait()
				if err := pub.Close(); err != nil {
					t.Error(err)
				}
			}
		})
		users.Go(func() {
			for range 4 {
				var received atomic.Int64
				sub, err := n[1].Subscribe(topic, ros.BestAvailableQoS(), func(sample ros.Sample) {
					received.Add(1)
					sample.Release()
				})
				if err != nil {
					t.Error(err)
					return
				}
				for range 20 {
					sub.Stats()
					time.Sleep(time.Millisecond)
				}
				var closers sync.WaitGroup
				for range 2 {
					closers.Go(func() {
						if err := sub.Close(); err != nil {
							t.Error(err)
						}
					})
				}
				closers.Wait()
				if st := sub.Stats(); st.Received != uint64(received.Load()) {
					t.Errorf("the handler was called %d times, the stats say %d", received.Load(), st.Received)
				}
			}
		})
	}
	users.Wait()
	done.Store(true)
	watchers.Wait()
}
