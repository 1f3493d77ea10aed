package nodetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
)

// What a latched publisher sent before the subscription began arrives, at those who ask for it.
func (s suite) latched(t *testing.T) {
	n := s.nodes(t, 2)
	topic := ros.Topic{Name: "/latched", Type: stringType}
	pub := advertise(t, n[0], topic, latched(3))
	publish(t, pub, 1, 3)
	s.eventually(t, "discovery", func() string { return sees(n[1], topic.Name, 1, 0) })

	_, best := subscribe(t, n[1], topic, ros.BestAvailableQoS())
	_, asked := subscribe(t, n[1], topic, latched(3))
	volatile, later := subscribe(t, n[1], topic, ros.DefaultQoS())
	s.count(t, best, 3)
	s.count(t, asked, 3)
	best.numbers(t, 1, 3)
	asked.numbers(t, 1, 3)
	s.receiving(t, volatile, 1)
	s.matched(t, pub, 3)
	publish(t, pub, 4, 4)
	s.count(t, best, 4)
	s.count(t, later, 1)
	later.numbers(t, 4, 4)
	if st := volatile.Stats(); st.Lost != 0 {
		t.Errorf("the history that a volatile subscription does not get counts as %d lost", st.Lost)
	}
}

// A subscription that was there first gets a latched message although the publisher does not wait for it.
func (s suite) latchedAfterSubscribe(t *testing.T) {
	n := s.nodes(t, 2)
	topic := ros.Topic{Name: "/latched_late", Type: stringType}
	sub, c := subscribe(t, n[1], topic, ros.BestAvailableQoS())
	pub := advertise(t, n[0], topic, latched(5))
	publish(t, pub, 1, 5)
	s.count(t, c, 5)
	c.numbers(t, 1, 5)
	if st := sub.Stats(); st.Lost != 0 || st.Received != 5 {
		t.Errorf("stats are %+v", st)
	}
}

// A latched publisher of depth 2 serves the last two.
func (s suite) latchedDepth(t *testing.T) {
	n := s.nodes(t, 2)
	topic := ros.Topic{Name: "/latched_depth", Type: stringType}
	pub := advertise(t, n[0], topic, latched(2))
	publish(t, pub, 1, 7)
	sub, c := subscribe(t, n[1], topic, ros.BestAvailableQoS())
	s.count(t, c, 2)
	time.Sleep(s.Quiet)
	c.numbers(t, 6, 7)
	if w := sub.Stats().Writers; len(w) != 1 || w[0].First != 6 || w[0].Last != 7 {
		t.Errorf("writer stats are %+v, want 6 to 7", w)
	}
}

// One subscription receives publishers of every kind with the most each offers, whatever the order they appear in.
func (s suite) mixedQoS(t *testing.T) {
	kinds := []struct {
		name string
		qos  ros.QoS
	}{{"reliable", keepAll()}, {"best effort", bestEffort()}, {"latched", latched(10)}}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for _, first := range []bool{true, false} { // is the subscription there before the first publisher?
			t.Run(fmt.Sprintf("%v/%v", order, first), func(t *testing.T) {
				n := s.nodes(t, 4)
				topic := ros.Topic{Name: "/mixed", Type: stringType}
				var sub ros.Subscription
				var c *collector
				if first {
					sub, c = subscribe(t, n[3], topic, ros.BestAvailableQoS())
				}
				var pubs []ros.Publisher
				sent := 0
				for i, k := range order {
					pubs = append(pubs, advertise(t, n[i], topic, kinds[k].qos))
					if sub == nil {
						s.eventually(t, "discovery", func() string { return sees(n[3], topic.Name, 1, 0) })
						sub, c = subscribe(t, n[3], topic, ros.BestAvailableQoS())
					}
					s.receiving(t, sub, i+1)
					s.matched(t, pubs[i], 1)
					// Samples that the publisher sends before it knows the reader that takes them may be lost; find
					// out that it does with samples nobody counts.
					s.probe(t, pubs[i], c)
					for j, p := range pubs {
						publish(t, p, uint32(1000*(i+1)+100*j+1), uint32(1000*(i+1)+100*j+20))
						sent += 20
					}
				}
				real := func() (all []arrival) {
					for _, a := range c.all() {
						if a.number != probeNumber {
							all = append(all, a)
						}
					}
					return all
				}
				s.eventually(t, "samples", func() string {
					if got := len(real()); got < sent {
						return fmt.Sprintf("%d of %d arrived: %+v", got, sent, sub.Stats())
					}
					return ""
				})
				time.Sleep(s.Quiet)
				last := map[ros.EndpointID]arrival{}
				for _, a := range c.all() {
					if before := last[a.writer]; a.seq <= before.seq {
						t.Fatalf("writer %v: sample %d after %d", a.writer, a.seq, before.seq)
					}
					last[a.writer] = a
				}
				if got := len(real()); got != sent || len(last) != 3 {
					t.Errorf("%d samples of %d publishers arrived, want %d of 3", got, len(last), sent)
				}
				st := sub.Stats()
				if st.Lost != 0 || len(st.Mismatches) != 0 || len(st.Writers) != 3 {
					t.Fatalf("stats are %+v", st)
				}
				reliable := 0
				for _, w := range st.Writers {
					if w.Reliable {
						reliable++
					}
				}
				if reliable != 2 {
					t.Errorf("%d writers are received reliably, want 2: %+v", reliable, st.Writers)
				}
			})
		}
	}
}

const probeNumber = 0xffffffff

// probe publishes samples until one arrives.
func (s suite) probe(t *testing.T, p ros.Publisher, c *collector) {
	t.Helper()
	before := c.len()
	s.eventually(t, "a probe", func() string {
		if err := p.Publish(payload(probeNumber, 16), 1); err != nil {
			t.Fatal(err)
		}
		if c.len() > before {
			return ""
		}
		return "none arrived"
	})
	// Let the rest arrive, so that it does not mix with what follows.
	for quiet, n := 0, c.len(); quiet < 5; quiet++ {
		time.Sleep(5 * time.Millisecond)
		if now := c.len(); now != n {
			quiet, n = 0, now
		}
	}
}

func (s suite) mismatch(t *testing.T) {
	n := s.nodes(t, 2)
	for name, c := range map[string]struct {
		offered, requested ros.QoS
	}{"reliability": {bestEffort(), ros.DefaultQoS()}, "durability": {ros.DefaultQoS(), latched(1)}} {
		topic := ros.Topic{Name: "/mismatch/" + name, Type: stringType}
		sub, sink := subscribe(t, n[1], topic, c.requested)
		pub := advertise(t, n[0], topic, c.offered)
		s.eventually(t, "mismatch", func() string {
			m, back := sub.Stats().Mismatches, pub.Stats().Mismatches
			if len(m) != 1 || len(back) != 1 {
				return fmt.Sprintf("subscription says %+v, publisher says %+v", m, back)
			}
			if m[0].ID != find(n[1], topic.Name).Publishers[0].ID {
				t.Errorf("mismatch names %v", m[0].ID)
			}
			for _, reason := range []string{m[0].Reason, back[0].Reason} {
				if !strings.HasPrefix(reason, name) || !strings.Contains(reason, "offered") || !strings.Contains(reason, "requested") {
					t.Errorf("the reason is %q, want %s: offered …, requested …", reason, name)
				}
			}
			return ""
		})
		publish(t, pub, 1, 5)
		time.Sleep(s.Quiet)
		if sink.len() != 0 || pub.Stats().Matched != 0 {
			t.Errorf("%s: %d samples arrived", name, sink.len())
		}
		if err := pub.Close(); err != nil {
			t.Fatal(err)
		}
		s.eventually(t, "end of the mismatch", func() string {
			if m := sub.Stats().Mismatches; len(m) != 0 {
				return fmt.Sprintf("subscription still says %+v", m)
			}
			return ""
		})
	}
}

// The profile that an endpoint was made with is what others see.
func (s suite) graphQoS(t *testing.T) {
	n := s.nodes(t, 2)
	full := ros.QoS{History: ros.KeepLast, Depth: 7, Reliability: ros.Reliable, Durability: ros.TransientLocal, Deadline: 1500 * time.Millisecond,
		Lifespan: 2 * time.Second, Liveliness: ros.Automatic, LivelinessLeaseDuration: 10 * time.Second}
	profiles := []ros.QoS{ros.DefaultQoS(), bestEffort(), latched(1), keepAll(), full}
	for i, q := range profiles {
		advertise(t, n[0], ros.Topic{Name: fmt.Sprintf("/qos/t%d", i), Type: stringType}, q)
	}
	for i, q := range profiles {
		topic := fmt.Sprintf("/qos/t%d", i)
		s.eventually(t, "discovery", func() string { return sees(n[1], topic, 1, 0) })
		e := find(n[1], topic).Publishers[0]
		if e.QoS != q {
			t.Errorf("%+v is seen as %+v", q, e.QoS)
		}
		if e.Reliable != (q.Reliability == ros.Reliable) {
			t.Errorf("%+v is seen as reliable %v", q, e.Reliable)
		}
	}
}

// A subscription without a hash repeats the publishers'; others see it.
func (s suite) hashEcho(t *testing.T) {
	const hash = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
	n := s.nodes(t, 2)
	for _, given := range []string{"", hash} {
		topic := ros.Topic{Name: "/hash/given", Type: stringType, TypeHash: hash}
		if given == "" {
			topic.Name = "/hash/echo"
		}
		advertise(t, n[0], topic, ros.DefaultQoS())
		s.eventually(t, "discovery", func() string { return sees(n[1], topic.Name, 1, 0) })
		if got := find(n[1], topic.Name).Publishers[0].Topic; got != topic {
			t.Errorf("the publisher is seen as %+v, want %+v", got, topic)
		}
		subscribe(t, n[1], ros.Topic{Name: topic.Name, Type: topic.Type, TypeHash: given}, ros.BestAvailableQoS())
		s.eventually(t, "discovery", func() string { return sees(n[0], topic.Name, 1, 1) })
		if got := find(n[0], topic.Name).Subscriptions[0].Topic; got != topic {
			t.Errorf("the subscription is seen as %+v, want %+v", got, topic)
		}
	}
	plain := ros.Topic{Name: "/hash/none", Type: stringType}
	advertise(t, n[0], plain, ros.DefaultQoS())
	s.eventually(t, "discovery", func() string { return sees(n[1], plain.Name, 1, 0) })
	if got := find(n[1], plain.Name).Publishers[0].Topic; got != plain {
		t.Errorf("a publisher without hash is seen as %+v", got)
	}
}

func (s suite) typeConflict(t *testing.T) {
	n := s.nodes(t, 2)
	const name = "/conflict"
	advertise(t, n[0], ros.Topic{Name: name, Type: stringType}, ros.DefaultQoS())
	other := advertise(t, n[0], ros.Topic{Name: name, Type: "std_msgs/msg/Int32"}, ros.DefaultQoS())
	s.eventually(t, "discovery", func() string { return sees(n[1], name, 2, 0) })
	if got, want := find(n[1], name).Types, []string{"std_msgs/msg/Int32", stringType}; !slices.Equal(got, want) {
		t.Errorf("types are %q, want %q", got, want)
	}
	_, c := subscribe(t, n[1], ros.Topic{Name: name, Type: stringType}, ros.BestAvailableQoS())
	s.eventually(t, "discovery", func() string { return sees(n[0], name, 2, 1) })
	publish(t, other, 1, 3)
	time.Sleep(s.Quiet)
	if c.len() != 0 {
		t.Errorf("%d samples of another type arrived", c.len())
	}
}
