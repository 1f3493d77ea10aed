package rtps

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

func TestLanesFor(t *testing.T) {
	for _, c := range []struct {
		name             string
		asked, got, want int
	}{
		{"stock kernel", 16 << 20, 2 * 212992, 16},
		{"a megabyte", 16 << 20, 2 << 20, 4},
		{"enough", 16 << 20, 8 << 20, 0},
		{"all that was asked for", 200 << 10, 400 << 10, 0},
		{"not known", 16 << 20, 0, 0},
	} {
		if n := lanesFor(c.asked, c.got); n != c.want {
			t.Errorf("%s: %d lanes, want %d", c.name, n, c.want)
		}
	}
}

// Readers are spread over the lanes by topic, a peer on this host sends there, and everything arrives.
func TestLanes(t *testing.T) {
	const lanes, topics, samples = 3, 6, 20
	d := domain(t)
	a, b := participant(t, Config{Domain: d, lanes: lanes}), participant(t, Config{Domain: d})
	name := func(i int) string { return fmt.Sprint("rt/lane_", i) }
	var got [topics]*collector
	for i := range topics {
		got[i] = newCollector()
		for k, h := range []func(Sample){got[i].handle, func(s Sample) { s.Release() }} { // the second reader has the lane of the first
			q := reliable(Volatile, 0)
			if k > 0 {
				q.Reliability = BestEffort
			}
			if _, err := a.NewReader(ReaderConfig{Topic: name(i), Type: typ, QoS: q, Handler: h}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var writers []*Writer
	for i := range topics {
		w, err := b.NewWriter(WriterConfig{Topic: name(i), Type: typ, QoS: reliable(Volatile, 0)})
		if err != nil {
			t.Fatal(err)
		}
		matched(t, w, 2)
		writers = append(writers, w)
	}
	for n := range samples {
		for _, w := range writers {
			if _, err := w.Write(payload(5000*(n%3)+12, n), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, c := range got {
		eventually(t, name(i), 10*time.Second, func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.seqs) == samples
		})
	}
	used := map[netip.AddrPort]int{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range topics {
		first := netip.AddrPort{}
		for _, e := range b.topics[name(i)] {
			if e.Writer {
				continue
			}
			if first.IsValid() && e.addr != first {
				t.Errorf("%s: readers at %v and %v", name(i), first, e.addr)
			}
			first = e.addr
		}
		used[first]++
	}
	for _, lane := range a.lanes {
		if used[lane] != topics/lanes {
			t.Errorf("lane %v has %d of %d topics", lane, used[lane], topics)
		}
	}
}

// Only peers on this host hear of lanes.
func TestLanesAreLocal(t *testing.T) {
	var mu sync.Mutex
	said := map[string]int{} // number of locators in announcements of readers, by peer
	link := &silent{sent: func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		_ = wire.Decode(b, laneNotes(said))
	}}
	p := participant(t, Config{Transport: link})
	p.mu.Lock()
	p.lanes = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:50001")}
	p.mu.Unlock()
	if _, err := p.NewReader(ReaderConfig{Topic: topic, Type: typ, Handler: func(s Sample) { s.Release() }}); err != nil {
		t.Fatal(err)
	}
	for i, at := range []string{"127.0.0.1:7410", "10.9.9.9:7410"} {
		prefix := wire.Prefix{9, 9, byte(i)}
		l := []wire.Locator{wire.LocatorFrom(netip.MustParseAddrPort(at))}
		d := wire.ParticipantData{GUID: wire.MakeGUID(prefix, wire.EntityParticipant), Version: wire.Protocol, Vendor: wire.VendorCyclone,
			Endpoints: wire.BuiltinAll, Lease: time.Minute, MetaUnicast: l, DefaultUnicast: l}
		header := wire.Header{Version: wire.Protocol, Vendor: wire.VendorCyclone, Prefix: prefix}
		b := wire.AppendHeader(nil, header)
		b = wire.AppendData(b, &wire.Data{Reader: wire.EntitySPDPReader, Writer: wire.EntitySPDPWriter, Seq: 1, Payload: d.Append(nil)})
		b = wire.AppendAckNack(b, &wire.AckNack{Reader: wire.EntitySubReader, Writer: wire.EntitySubWriter, Set: wire.SeqSet{Base: 1}, Count: 1, Final: true})
		link.receive([][]byte{b})
		b = wire.AppendHeader(nil, header)
		set := wire.SeqSet{Base: 1}
		set.Add(1)
		b = wire.AppendAckNack(b, &wire.AckNack{Reader: wire.EntitySubReader, Writer: wire.EntitySubWriter, Set: set, Count: 2})
		link.receive([][]byte{b})
	}
	mu.Lock()
	defer mu.Unlock()
	near, far := wire.Prefix{9, 9, 0}, wire.Prefix{9, 9, 1}
	if n, ok := said[near.String()]; !ok || n != 1 {
		t.Errorf("a peer on this host hears of %d locators (%v)", n, said)
	}
	if n, ok := said[far.String()]; !ok || n != 0 {
		t.Errorf("a peer elsewhere hears of %d locators (%v)", n, said)
	}
}

// laneNotes counts locators in announcements of readers.
type laneNotes map[string]int

func (n laneNotes) Data(ctx *wire.Context, d *wire.Data) {
	if d.Writer == wire.EntitySubWriter {
		if e, err := wire.ParseEndpoint(d.Payload, &d.InlineQoS, wire.VendorGobag, false); err == nil {
			n[ctx.Dest.String()] = len(e.Unicast)
		}
	}
}
func (laneNotes) DataFrag(*wire.Context, *wire.DataFrag)           {}
func (laneNotes) Heartbeat(*wire.Context, *wire.Heartbeat)         {}
func (laneNotes) HeartbeatFrag(*wire.Context, *wire.HeartbeatFrag) {}
func (laneNotes) Gap(*wire.Context, *wire.Gap)                     {}
func (laneNotes) AckNack(*wire.Context, *wire.AckNack)             {}
func (laneNotes) NackFrag(*wire.Context, *wire.NackFrag)           {}
