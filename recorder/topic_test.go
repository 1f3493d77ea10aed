package recorder

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/ros"
)

func endpoint(n int) (id ros.EndpointID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

func TestSources(t *testing.T) {
	var s sources
	if n := s.number(ros.EndpointID{}); n != 0 {
		t.Fatalf("unknown writer has number %d", n)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1000 {
				s.number(endpoint(i%50 + 1))
			}
		})
	}
	wg.Wait()
	names := s.all()
	if len(names) != 50 {
		t.Fatalf("%d names", len(names))
	}
	for i := range 50 {
		id := endpoint(i + 1)
		n := s.number(id)
		if n == 0 || names[n-1] != id.String() {
			t.Fatalf("writer %v has number %d, name %q", id, n, names[n-1])
		}
	}
	for i := range maxSources {
		s.number(endpoint(100 + i))
	}
	if n := s.number(endpoint(1 << 30)); n != 0 {
		t.Fatalf("one writer too many has number %d", n)
	}
	if n := s.number(endpoint(1)); n == 0 {
		t.Fatal("a known writer was forgotten")
	}
}

// The receive path allocates nothing, for one writer and for several in turn.
func TestHandleAllocatesNothing(t *testing.T) {
	q := bag.NewQueue(bag.QueueOptions{MaxBytes: 1 << 20})
	q.Close() // what is pushed is released at once
	tp := &topic{gate: &gate{}, queue: q, queued: q.Topic("/a")}
	o := new(countingOwner)
	data := make([]byte, 100)
	i := 0
	allocs := testing.AllocsPerRun(1000, func() {
		i++
		tp.handle(ros.Sample{Data: data, RecvTime: 1, Writer: endpoint(i%3 + 1), Seq: uint64(i), Owner: o})
	})
	if allocs != 0 {
		t.Fatalf("%v allocations per message", allocs)
	}
	if o.n != i || tp.received.Load() != uint64(i) {
		t.Fatalf("%d messages: %d released, %d counted", i, o.n, tp.received.Load())
	}
}

type countingOwner struct{ n int }

func (o *countingOwner) Release([]byte) { o.n++ }

func TestProfilesAreBounded(t *testing.T) {
	encode := func(ps []bag.QoSProfile) string { return bag.EncodeQoS(ps, true) }
	tp := &topic{gate: &gate{}, typ: str, publishers: map[ros.EndpointID]bool{}}
	for i := range 1000 {
		tp.addPublishers([]ros.Endpoint{{ID: endpoint(i + 1), Topic: ros.Topic{Type: str}, QoS: ros.DefaultQoS()}}, encode)
	}
	if n := len(tp.profiles); n != maxProfiles/2 {
		t.Fatalf("%d equal profiles kept", n)
	}
	other := ros.DefaultQoS()
	other.Reliability = ros.BestEffort
	if !tp.addPublishers([]ros.Endpoint{{ID: endpoint(5000), Topic: ros.Topic{Type: str}, QoS: other}}, encode) {
		t.Fatal("a different profile was not kept")
	}
	got, err := bag.DecodeQoS(tp.desc.OfferedQoS)
	if err != nil || len(got) != maxProfiles/2+1 || got[maxProfiles/2] != profile(other) {
		t.Fatalf("%v, %d profiles", err, len(got))
	}
}

func TestWireStats(t *testing.T) {
	var w wireStats
	st := ros.SubscriptionStats{Lost: 5, Writers: []ros.WriterStats{
		{ID: endpoint(1), First: 1, Matched: true, Reliable: true}, {ID: endpoint(2), First: 3, Matched: true}, {ID: endpoint(3)},
	}, Mismatches: []ros.Mismatch{{ID: endpoint(9), Reason: "type"}}}
	if fresh := w.update(st); len(fresh) != 1 {
		t.Fatalf("mismatches: %v", fresh)
	}
	if fresh := w.update(st); len(fresh) != 0 {
		t.Fatalf("reported again: %v", fresh)
	}
	if lost, unknown := w.lost(); lost != 5 || unknown != 1 || w.matched() != 2 {
		t.Fatalf("lost %d, unknown %d, matched %d", lost, unknown, w.matched())
	}
	w.update(ros.SubscriptionStats{}) // a closed subscription that forgot
	if lost, unknown := w.lost(); lost != 5 || unknown != 1 {
		t.Fatalf("forgotten: lost %d, unknown %d", lost, unknown)
	}
}
