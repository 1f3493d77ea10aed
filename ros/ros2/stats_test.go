package ros2

import (
	"reflect"
	"testing"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
)

func TestStatsMerge(t *testing.T) {
	w := func(id byte, received, lost uint64, first, last int64, matched, reliable bool) rtps.WriterStats {
		return rtps.WriterStats{GUID: guid(id), Received: received, Lost: lost, First: first, Last: last, Matched: matched, Reliable: reliable}
	}
	out := func(id byte, received, lost, first, last uint64, matched, reliable bool) ros.WriterStats {
		return ros.WriterStats{ID: ros.EndpointID(guid(id)), Received: received, Lost: lost, First: first, Last: last, Matched: matched, Reliable: reliable}
	}
	cases := []struct {
		name           string
		readers        []rtps.ReaderStats
		received, lost uint64
		writers        []ros.WriterStats
	}{
		{name: "none"},
		{"two writers of two readers", []rtps.ReaderStats{
			{Received: 5, Lost: 1, Writers: []rtps.WriterStats{w(1, 5, 1, 1, 6, true, true)}},
			{Received: 7, Lost: 0, Writers: []rtps.WriterStats{w(2, 7, 0, 3, 9, false, false)}},
		}, 12, 1, []ros.WriterStats{out(1, 5, 1, 1, 6, true, true), out(2, 7, 0, 3, 9, false, false)}},
		{"one writer twice, samples between are lost", []rtps.ReaderStats{
			{Received: 10, Lost: 2, Writers: []rtps.WriterStats{w(1, 10, 2, 1, 12, false, true)}},
			{Received: 4, Lost: 0, Writers: []rtps.WriterStats{w(1, 4, 0, 20, 23, true, true)}},
		}, 14, 9, []ros.WriterStats{out(1, 14, 9, 1, 23, true, true)}},
		{"the later one first", []rtps.ReaderStats{
			{Received: 4, Writers: []rtps.WriterStats{w(1, 4, 0, 20, 23, true, true)}},
			{Received: 10, Lost: 2, Writers: []rtps.WriterStats{w(1, 10, 2, 1, 12, false, true)}},
		}, 14, 9, []ros.WriterStats{out(1, 14, 9, 1, 23, true, true)}},
		{"directly after it", []rtps.ReaderStats{
			{Received: 3, Writers: []rtps.WriterStats{w(1, 3, 0, 1, 3, false, true), w(2, 0, 0, 0, 0, true, true)}},
			{Received: 2, Writers: []rtps.WriterStats{w(1, 2, 0, 4, 5, true, true), w(2, 0, 0, 0, 0, false, false)}},
		}, 5, 0, []ros.WriterStats{out(1, 5, 0, 1, 5, true, true), out(2, 0, 0, 0, 0, true, true)}},
		{"first seen by the second", []rtps.ReaderStats{
			{Writers: []rtps.WriterStats{w(1, 0, 0, 0, 0, false, true)}},
			{Received: 2, Writers: []rtps.WriterStats{w(1, 2, 0, 4, 5, true, true)}},
		}, 2, 0, []ros.WriterStats{out(1, 2, 0, 4, 5, true, true)}},
	}
	for _, c := range cases {
		var s stats
		for _, r := range c.readers {
			s.add(r)
		}
		got := s.result(&seen{})
		want := ros.SubscriptionStats{Received: c.received, Lost: c.lost, Writers: c.writers}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}

// A latched writer that comes back sends its history again: what was seen is not counted twice.
func TestStatsDuplicates(t *testing.T) {
	var d seen
	for _, c := range []struct {
		writer byte
		seq    int64
		first  bool
	}{{1, 1, true}, {1, 2, true}, {2, 1, true}, {1, 1, false}, {1, 2, false}, {1, 3, true}, {2, 1, false}, {2, 7, true}} {
		if got := d.first(guid(c.writer), c.seq); got != c.first {
			t.Errorf("sample %d of writer %d: first is %v", c.seq, c.writer, got)
		}
	}
	var s stats
	s.add(rtps.ReaderStats{Received: 8, Lost: 5, Writers: []rtps.WriterStats{
		{GUID: guid(1), Received: 2, First: 1, Last: 2}, {GUID: guid(1), Received: 3, First: 1, Last: 3, Matched: true},
		{GUID: guid(2), Received: 3, Lost: 5, First: 1, Last: 7}}})
	got := s.result(&d)
	if got.Received != 5 || got.Lost != 5 || got.Writers[0].Received != 3 || got.Writers[1].Received != 2 {
		t.Errorf("stats are %+v", got)
	}
}

func TestStatsForgetOldWriters(t *testing.T) {
	var s stats
	for i := range maxWriters + 100 {
		g := guid(0)
		g[0], g[1] = byte(i), byte(i>>8)
		s.add(rtps.ReaderStats{Received: 1, Writers: []rtps.WriterStats{{GUID: g, Received: 1, First: 1, Last: 1, Matched: i == 0}}})
	}
	got := s.result(&seen{})
	if len(got.Writers) != maxWriters || got.Received != maxWriters+100 {
		t.Errorf("%d writers, %d received", len(got.Writers), got.Received)
	}
	if !got.Writers[0].Matched || got.Writers[1].ID[0] != 101 {
		t.Errorf("the wrong writers were forgotten: %+v", got.Writers[:2])
	}
}

func TestSeenIsBounded(t *testing.T) {
	var d seen
	for i := range 3 * maxSeen {
		g := guid(0)
		g[0], g[1] = byte(i), byte(i>>8)
		d.first(g, 1)
	}
	if len(d.writers) > maxSeen {
		t.Errorf("%d writers are remembered", len(d.writers))
	}
	if n := testing.AllocsPerRun(100, func() { d.first(guid(1), d.last.seq+1) }); n != 0 {
		t.Errorf("%v allocations for a sample", n)
	}
}

// counter counts what is given back.
type counter struct{ n int }

func (c *counter) Release([]byte) { c.n++ }

// A sample that comes again is given back, not handed over.
func TestDeliverOnce(t *testing.T) {
	var back counter
	var got []uint64
	s := &Subscription{handler: func(s ros.Sample) {
		got = append(got, s.Seq)
		s.Release()
	}}
	for _, seq := range []int64{1, 2, 1, 2, 3} {
		s.deliver(rtps.Sample{Data: []byte{1}, Writer: guid(1), Seq: seq, Owner: &back})
	}
	if !reflect.DeepEqual(got, []uint64{1, 2, 3}) || back.n != 5 {
		t.Errorf("handed over %v, %d of 5 given back", got, back.n)
	}
}
