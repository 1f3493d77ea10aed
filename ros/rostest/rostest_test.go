package rostest_test

import (
	"encoding/binary"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var topic = ros.Topic{Name: "/a", Type: "std_msgs/msg/String"}

// sink collects what a subscription gets.
type sink struct {
	mu    sync.Mutex
	seqs  []uint64
	recv  []int64
	src   []int64
	times []time.Time
	keep  bool // do not release
	kept  []ros.Sample
}

func (k *sink) handle(s ros.Sample) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seqs, k.recv, k.src, k.times = append(k.seqs, s.Seq), append(k.recv, s.RecvTime), append(k.src, s.SourceTime), append(k.times, time.Now())
	if k.keep {
		k.kept = append(k.kept, s)
		return
	}
	s.Release()
}

// pairUp makes two nodes with a publisher and a subscription of one topic.
func pairUp(t *testing.T, net *rostest.Network, q ros.QoS) (ros.Publisher, ros.Subscription, *sink) {
	t.Helper()
	a, b := net.Node("pub"), net.Node("sub")
	t.Cleanup(func() { a.Close(); b.Close() })
	k := new(sink)
	sub, err := b.Subscribe(topic, ros.BestAvailableQoS(), k.handle)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := a.Advertise(topic, q)
	if err != nil {
		t.Fatal(err)
	}
	return pub, sub, k
}

func publish(t *testing.T, p ros.Publisher, n int) {
	t.Helper()
	for range n {
		if err := p.Publish([]byte{0, 1, 0, 0, 1, 2, 3, 4}, 0); err != nil {
			t.Fatal(err)
		}
	}
}

var bestEffort = ros.QoS{Reliability: ros.BestEffort}

// The same seed loses the same samples, another one others, and traffic of other topics changes nothing.
func TestLossIsSeeded(t *testing.T) {
	run := func(seed uint64, other bool) (seqs []uint64) {
		synctest.Test(t, func(t *testing.T) {
			net := rostest.NewNetwork(rostest.Options{Seed: seed, Link: rostest.Link{Loss: 0.2}})
			pub, _, k := pairUp(t, net, bestEffort)
			if other {
				n, m := net.Node("other"), net.Node("another")
				defer n.Close()
				defer m.Close()
				p, _ := n.Advertise(ros.Topic{Name: "/b", Type: "a/msg/B"}, bestEffort)
				_, _ = m.Subscribe(p.Topic(), bestEffort, func(s ros.Sample) { s.Release() })
				publish(t, p, 50)
			}
			publish(t, pub, 1000)
			synctest.Wait()
			seqs = k.seqs
		})
		return seqs
	}
	one, again, two := run(1, false), run(1, true), run(2, false)
	if !reflect.DeepEqual(one, again) {
		t.Error("the same seed lost other samples")
	}
	if reflect.DeepEqual(one, two) {
		t.Error("another seed lost the same samples")
	}
	if len(one) < 700 || len(one) > 900 {
		t.Errorf("%d of 1000 arrived at 20 %% loss", len(one))
	}
}

// Received + lost = sent when the first and last sample are spared; without that the ends are unknown.
func TestLossAccounting(t *testing.T) {
	for _, q := range []ros.QoS{bestEffort, ros.DefaultQoS()} {
		synctest.Test(t, func(t *testing.T) {
			net := rostest.NewNetwork(rostest.Options{Seed: 7, Link: rostest.Link{Loss: 0.3, Spare: 1}})
			pub, sub, k := pairUp(t, net, q)
			publish(t, pub, 999)
			net.SetLink(topic.Name, rostest.Link{})
			publish(t, pub, 1)
			synctest.Wait()
			st, traffic := sub.Stats(), net.Traffic(topic.Name)
			if st.Received+st.Lost != 1000 || st.Lost != traffic.Dropped || st.Lost < 200 || st.Received != uint64(len(k.seqs)) {
				t.Errorf("%v: received %d, lost %d, dropped %d", q, st.Received, st.Lost, traffic.Dropped)
			}
			if traffic.Published != 1000 || traffic.Offered != 1000 {
				t.Errorf("traffic is %+v", traffic)
			}
			w := st.Writers[0]
			if w.First != 1 || w.Last != 1000 || w.Received != st.Received || w.Lost != st.Lost || !w.Matched {
				t.Errorf("writer stats %+v", w)
			}
		})
	}
}

// What a best-effort writer lost before its first and after its last sample seen is not counted; a reliable writer tells.
func TestLossAtTheEnds(t *testing.T) {
	for name, c := range map[string]struct {
		q    ros.QoS
		lost uint64
	}{"best effort": {bestEffort, 1}, "reliable": {ros.DefaultQoS(), 6}} {
		synctest.Test(t, func(t *testing.T) {
			drop := map[uint64]bool{1: true, 2: true, 5: true, 8: true, 9: true, 10: true}
			net := rostest.NewNetwork(rostest.Options{Link: rostest.Link{Drop: func(_ ros.EndpointID, seq uint64) bool { return drop[seq] }}})
			pub, sub, k := pairUp(t, net, c.q)
			publish(t, pub, 10)
			synctest.Wait()
			if st := sub.Stats(); st.Received != 4 || st.Lost != c.lost {
				t.Errorf("%s: received %d, lost %d, want 4 and %d", name, st.Received, st.Lost, c.lost)
			}
			if want := []uint64{3, 4, 6, 7}; !reflect.DeepEqual(k.seqs, want) {
				t.Errorf("%s: got %v, want %v", name, k.seqs, want)
			}
		})
	}
}

func TestDelayKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := rostest.NewNetwork(rostest.Options{})
		pub, _, k := pairUp(t, net, bestEffort)
		start := time.Now()
		net.SetLink(topic.Name, rostest.Link{Delay: time.Second})
		publish(t, pub, 2)
		net.SetLink(topic.Name, rostest.Link{Delay: time.Millisecond})
		publish(t, pub, 1)
		if n := pub.Stats().Unacked; n != 0 {
			t.Errorf("best effort has %d unacked", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !reflect.DeepEqual(k.seqs, []uint64{1, 2, 3}) {
			t.Fatalf("got %v", k.seqs)
		}
		for _, at := range k.times {
			if d := at.Sub(start); d != time.Second {
				t.Errorf("delivered after %v, want 1s", d)
			}
		}
	})
}

func TestUnackedUntilDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := rostest.NewNetwork(rostest.Options{Link: rostest.Link{Delay: time.Second}})
		pub, _, _ := pairUp(t, net, ros.DefaultQoS())
		publish(t, pub, 3)
		if st := pub.Stats(); st.Unacked != 3 || st.Reliable != 1 || st.Matched != 1 || st.Sent != 3 {
			t.Errorf("stats %+v", st)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if st := pub.Stats(); st.Unacked != 0 {
			t.Errorf("stats %+v after delivery", st)
		}
	})
}

// The wall clock moves the receive stamps, never the delivery.
func TestClockSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := rostest.NewNetwork(rostest.Options{Link: rostest.Link{Delay: time.Second}})
		pub, _, k := pairUp(t, net, ros.DefaultQoS())
		publish(t, pub, 1)
		time.Sleep(time.Second)
		synctest.Wait()
		const year = 365 * 24 * time.Hour
		for _, step := range []time.Duration{-time.Hour, 50 * year} {
			net.Clock().Step(step)
			publish(t, pub, 1)
			time.Sleep(time.Second)
			synctest.Wait()
			got := k.recv[len(k.recv)-1] - k.recv[len(k.recv)-2]
			if want := int64(step + time.Second); got != want {
				t.Errorf("stamps are %v apart after a step of %v", time.Duration(got), step)
			}
		}
		if !reflect.DeepEqual(k.src, k.recv) {
			t.Error("a sample without source time does not carry its receive time")
		}
	})
}

// A reliable publisher waits for a full receiver, then gives up; a best-effort one never waits.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := rostest.NewNetwork(rostest.Options{QueueBytes: 20, MaxBlocking: time.Second, Link: rostest.Link{Delay: 10 * time.Second}})
		pub, sub, _ := pairUp(t, net, ros.DefaultQoS())
		start := time.Now()
		publish(t, pub, 3) // 8 bytes each: the third has no room
		if d := time.Since(start); d != time.Second {
			t.Errorf("publishing took %v, want 1s", d)
		}
		if st := pub.Stats(); st.Dropped != 1 {
			t.Errorf("stats %+v", st)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if st := sub.Stats(); st.Received != 2 || st.Lost != 1 {
			t.Errorf("stats %+v", st)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		net := rostest.NewNetwork(rostest.Options{QueueBytes: 20, Link: rostest.Link{Delay: 10 * time.Second}})
		pub, _, _ := pairUp(t, net, bestEffort)
		start := time.Now()
		publish(t, pub, 3)
		if d := time.Since(start); d != 0 {
			t.Errorf("publishing took %v", d)
		}
		if tr := net.Traffic(topic.Name); tr.Dropped != 1 {
			t.Errorf("traffic %+v", tr)
		}
	})
	synctest.Test(t, func(t *testing.T) { // room appears in time
		net := rostest.NewNetwork(rostest.Options{QueueBytes: 20, MaxBlocking: 20 * time.Second, Link: rostest.Link{Delay: 10 * time.Second}})
		pub, sub, _ := pairUp(t, net, ros.DefaultQoS())
		start := time.Now()
		publish(t, pub, 3)
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("publishing took %v, want 10s", d)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if st := sub.Stats(); st.Received != 3 || st.Lost != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestOutstandingAndRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := rostest.NewNetwork(rostest.Options{})
		pub, _, k := pairUp(t, net, ros.DefaultQoS())
		k.keep = true
		publish(t, pub, 2)
		synctest.Wait()
		if n := net.Outstanding(); n != 2 {
			t.Errorf("%d outstanding, want 2", n)
		}
		first, second := k.kept[0], k.kept[0]
		data := first.Data
		first.Release()
		if binary.BigEndian.Uint32(data) != 0xdbdbdbdb {
			t.Error("released data is not overwritten")
		}
		if n := net.Outstanding(); n != 1 {
			t.Errorf("%d outstanding, want 1", n)
		}
		defer func() {
			if r := recover(); r == nil || !strings.Contains(r.(string), "twice") {
				t.Errorf("second release: %v", r)
			}
		}()
		second.Release()
	})
}

// A closed node gives back what was on its way to it.
func TestCloseWithSamplesOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := rostest.NewNetwork(rostest.Options{Link: rostest.Link{Delay: time.Hour}})
		a, b := net.Node("a"), net.Node("b")
		k := new(sink)
		if _, err := b.Subscribe(topic, ros.DefaultQoS(), k.handle); err != nil {
			t.Fatal(err)
		}
		pub, err := a.Advertise(topic, ros.DefaultQoS())
		if err != nil {
			t.Fatal(err)
		}
		publish(t, pub, 5)
		b.Close()
		publish(t, pub, 1)
		a.Close()
		if n := net.Outstanding(); n != 0 || len(k.seqs) != 0 {
			t.Errorf("%d outstanding, %d delivered", n, len(k.seqs))
		}
	})
}
