package nodetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
)

func (s suite) publisherFirst(t *testing.T) {
	n := s.nodes(t, 2)
	topic := ros.Topic{Name: "/first/publisher", Type: stringType}
	pub := advertise(t, n[0], topic, keepAll())
	s.eventually(t, "discovery", func() string { return sees(n[1], topic.Name, 1, 0) })
	sub, c := subscribe(t, n[1], topic, ros.BestAvailableQoS())
	s.exchange(t, pub, sub, c)
}

func (s suite) subscriptionFirst(t *testing.T) {
	n := s.nodes(t, 2)
	topic := ros.Topic{Name: "/first/subscription", Type: stringType}
	sub, c := subscribe(t, n[1], topic, ros.BestAvailableQoS())
	pub := advertise(t, n[0], topic, keepAll())
	s.exchange(t, pub, sub, c)
}

// exchange publishes and checks everything that arrives.
func (s suite) exchange(t *testing.T, pub ros.Publisher, sub ros.Subscription, c *collector) {
	t.Helper()
	if pub.Topic().Name != sub.Topic().Name {
		t.Errorf("topics are called %q and %q", pub.Topic().Name, sub.Topic().Name)
	}
	s.matched(t, pub, 1)
	before := time.Now().UnixNano()
	const count = 300
	publish(t, pub, 1, count)
	s.count(t, c, count)
	after := time.Now().UnixNano()
	c.numbers(t, 1, count)
	all := c.all()
	for i, a := range all {
		if !samePayload(a.data, payload(a.number, 16)) {
			t.Fatalf("sample %d: payload differs", i)
		}
		if d := a.source - int64(a.number)*1000; !s.NoStamps && (d < -1 || d > 1) { // the wire counts in fractions of 2^-32 s
			t.Fatalf("sample %d: source time is %d, want %d", i, a.source, int64(a.number)*1000)
		}
		if a.receive < before || a.receive > after {
			t.Fatalf("sample %d: received at %d, not within %d..%d", i, a.receive, before, after)
		}
		if a.writer == (ros.EndpointID{}) || a.writer != all[0].writer || !s.NoStamps && (a.seq != uint64(i)+all[0].seq || a.seq == 0) {
			t.Fatalf("sample %d: writer %v, sequence number %d", i, a.writer, a.seq)
		}
		if a.cost < len(a.data) {
			t.Fatalf("sample %d: cost %d is less than its %d bytes", i, a.cost, len(a.data))
		}
	}
	st := sub.Stats()
	if st.Received != count || st.Lost != 0 || len(st.Mismatches) != 0 || len(st.Writers) != 1 {
		t.Fatalf("subscription stats are %+v", st)
	}
	w := st.Writers[0]
	if w.ID != all[0].writer || w.Received != count || w.First != all[0].seq || w.Last != all[count-1].seq || !w.Matched {
		t.Errorf("writer stats are %+v", w)
	}
	if !s.NoQoS && !w.Reliable {
		t.Errorf("writer stats are %+v, want reliable", w)
	}
	s.eventually(t, "acknowledgement", func() string {
		if st := pub.Stats(); st.Unacked != 0 || st.Sent != count || st.Dropped != 0 {
			return fmt.Sprintf("publisher stats are %+v", st)
		}
		return ""
	})
}

func (s suite) sizes(t *testing.T) {
	n := s.nodes(t, 2)
	topic := ros.Topic{Name: "/sizes", Type: stringType}
	sub, c := subscribe(t, n[1], topic, ros.BestAvailableQoS())
	pub := advertise(t, n[0], topic, keepAll())
	s.matched(t, pub, 1)
	sizes := []int{0, 1, 2, 3, 4, 5, 1335, 1336, 1337, 1338, 9000, 65400, 65500, 65536, 200001, 1 << 20}
	for i, size := range sizes {
		if err := pub.Publish(payload(uint32(i), size), 1); err != nil {
			t.Fatal(err)
		}
	}
	s.count(t, c, len(sizes))
	for i, a := range c.all() {
		if !samePayload(a.data, payload(uint32(i), sizes[i])) {
			t.Errorf("payload of %d bytes came as %d other ones", sizes[i]+8, len(a.data))
		}
	}
	if st := sub.Stats(); st.Lost != 0 {
		t.Errorf("%d lost", st.Lost)
	}
}

func (s suite) severalTopics(t *testing.T) {
	n := s.nodes(t, 2)
	const topics, count = 20, 25
	var pubs []ros.Publisher
	var sinks []*collector
	for i := range topics {
		topic := ros.Topic{Name: fmt.Sprintf("/several/t%d", i), Type: stringType}
		_, c := subscribe(t, n[i%2], topic, ros.BestAvailableQoS())
		pubs, sinks = append(pubs, advertise(t, n[1-i%2], topic, keepAll())), append(sinks, c)
	}
	for _, p := range pubs {
		s.matched(t, p, 1)
	}
	var group sync.WaitGroup
	for _, p := range pubs {
		group.Go(func() { publish(t, p, 1, count) })
	}
	group.Wait()
	for _, c := range sinks {
		s.count(t, c, count)
		c.numbers(t, 1, count)
	}
}

// A node does not hear itself: a recorder that also publishes would record its own.
func (s suite) ownPublishers(t *testing.T) {
	n := s.nodes(t, 2)
	topic := ros.Topic{Name: "/own_publishers", Type: stringType}
	sub, c := subscribe(t, n[0], topic, ros.BestAvailableQoS())
	own, other := advertise(t, n[0], topic, keepAll()), advertise(t, n[1], topic, keepAll())
	s.matched(t, other, 1)
	publish(t, own, 101, 110)
	publish(t, other, 1, 10)
	s.count(t, c, 10)
	time.Sleep(s.Quiet)
	c.numbers(t, 1, 10)
	if own.Stats().Matched != 0 {
		t.Error("the node's own subscription counts as matched")
	}
	if st := sub.Stats(); len(st.Writers) != 1 || len(st.Mismatches) != 0 {
		t.Errorf("stats are %+v", st)
	}
}

// Two subscriptions of one node get their own copies: the collector clears what it was given.
func (s suite) twoSubscriptions(t *testing.T) {
	n := s.nodes(t, 2)
	topic := ros.Topic{Name: "/two", Type: stringType}
	_, a := subscribe(t, n[1], topic, ros.BestAvailableQoS())
	second, b := subscribe(t, n[1], topic, ros.DefaultQoS())
	pub := advertise(t, n[0], topic, keepAll())
	links := 2
	if s.OneLink {
		links = 1
	}
	s.matched(t, pub, links)
	publish(t, pub, 1, 50)
	s.count(t, a, 50)
	s.count(t, b, 50)
	for _, c := range []*collector{a, b} {
		c.numbers(t, 1, 50)
		for _, got := range c.all() {
			if !samePayload(got.data, payload(got.number, 16)) {
				t.Fatalf("sample %d was changed by the other subscription", got.number)
			}
		}
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	publish(t, pub, 51, 60)
	s.count(t, a, 60)
	if b.len() != 50 {
		t.Errorf("the closed subscription got %d samples", b.len())
	}
}

// Samples stay as they are until they are released, however many come after them.
func (s suite) sampleOwnership(t *testing.T) {
	n := s.nodes(t, 2)
	topic := ros.Topic{Name: "/owned", Type: stringType}
	samples := make(chan ros.Sample, 200)
	if _, err := n[1].Subscribe(topic, ros.BestAvailableQoS(), func(sample ros.Sample) { samples <- sample }); err != nil {
		t.Fatal(err)
	}
	pub := advertise(t, n[0], topic, keepAll())
	s.matched(t, pub, 1)
	data := make([]byte, 0, 5000)
	for i := range uint32(200) {
		data = append(data[:0], payload(i, 100+int(i)*20)...)
		if err := pub.Publish(data, 1); err != nil {
			t.Fatal(err)
		}
		clear(data) // ours again
	}
	var held []ros.Sample
	for range 200 {
		select {
		case sample := <-samples:
			held = append(held, sample)
		case <-time.After(s.Patience):
			t.Fatalf("%d of 200 samples arrived", len(held))
		}
	}
	for i := range held {
		if !samePayload(held[i].Data, payload(uint32(i), 100+i*20)) {
			t.Fatalf("sample %d changed while it was held", i)
		}
	}
	for i := range held {
		held[i].Release()
		if held[i].Data != nil {
			t.Fatal("a released sample still has data")
		}
	}
}

func (s suite) comeAndGo(t *testing.T) {
	n := s.nodes(t, 2)
	topic := ros.Topic{Name: "/come_and_go", Type: stringType}
	sub, c := subscribe(t, n[1], topic, ros.BestAvailableQoS())
	for round := range uint32(3) {
		pub := advertise(t, n[0], topic, keepAll())
		s.matched(t, pub, 1)
		publish(t, pub, round*10+1, round*10+10)
		s.count(t, c, int(round+1)*10)
		if err := pub.Close(); err != nil {
			t.Fatal(err)
		}
		s.receiving(t, sub, 0)
	}
	c.numbers(t, 1, 30)
	st := sub.Stats()
	if st.Received != 30 || st.Lost != 0 || len(st.Writers) != 3 {
		t.Fatalf("stats are %+v", st)
	}
	ids := map[ros.EndpointID]bool{}
	for _, w := range st.Writers {
		ids[w.ID] = true
		if w.Received != 10 || w.Matched {
			t.Errorf("writer stats are %+v", w)
		}
	}
	if len(ids) != 3 {
		t.Error("two publishers had the same id")
	}
}

// sees says what is missing in the graph of a node, "" if the topic has these numbers of endpoints.
func sees(n ros.Node, topic string, publishers, subscriptions int) string {
	info := find(n, topic)
	if len(info.Publishers) == publishers && len(info.Subscriptions) == subscriptions {
		return ""
	}
	return fmt.Sprintf("%s has %d publishers and %d subscriptions, want %d and %d", topic, len(info.Publishers), len(info.Subscriptions), publishers, subscriptions)
}

func find(n ros.Node, topic string) ros.TopicInfo {
	for _, info := range n.Graph().Topics() {
		if info.Name == topic {
			return info
		}
	}
	return ros.TopicInfo{}
}
