package rtps

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// TestGreedyPeer: a peer that fills the memory for incomplete samples has to make room for another one's.
func TestGreedyPeer(t *testing.T) {
	p := &Participant{pool: newPool(0), timers: newTimers(), cfg: Config{MaxReassembly: 1 << 20}, peers: map[wire.Prefix]*peer{}, sources: map[GUID][]*source{}}
	p.fill.pool = p.pool
	source := func(id byte) *source {
		q := &peer{prefix: wire.Prefix{id}}
		p.peers[q.prefix] = q
		s := &source{p: p, peer: q, reliable: true, next: 1, first: 1, guid: GUID{id}}
		p.sources[s.guid] = []*source{s}
		return s
	}
	greedy, modest := source(1), source(2)
	taken := 0
	for seq := int64(1); greedy.newPend(seq, 60_000, 0) != nil; seq++ {
		taken++
	}
	if taken < 10 || p.held > 1<<20 || greedy.peer.held != p.held || greedy.peer.refused != 1 {
		t.Fatalf("%d samples, %d bytes, %+v", taken, p.held, greedy.peer)
	}
	n := 0
	for seq := int64(1); seq <= 100 && modest.newPend(seq, 60_000, 0) != nil; seq++ {
		n++
	}
	if n < taken/2-1 || n > taken/2+1 || p.held > 1<<20 || p.held != greedy.peer.held+modest.peer.held {
		t.Fatalf("%d and %d samples, %d bytes of %d and %d", len(greedy.pending), len(modest.pending), p.held, greedy.peer.held, modest.peer.held)
	}
	if greedy.pending[1] == nil || modest.pending[1] == nil {
		t.Fatal("the sample that comes next was dropped before those behind it")
	}
	if greedy.peer.refused < uint64(n) || modest.peer.refused != 1 || p.refused.Load() != greedy.peer.refused+modest.peer.refused {
		t.Fatalf("refused %d and %d, %d in all", greedy.peer.refused, modest.peer.refused, p.refused.Load())
	}
	greedy.drop()
	modest.drop()
	if p.held != 0 || greedy.peer.held != 0 || modest.peer.held != 0 {
		t.Fatalf("%d bytes left in the books, %d and %d", p.held, greedy.peer.held, modest.peer.held)
	}
}

// TestAnnouncedPerPeer: one peer's announcements do not use up what is there for all.
func TestAnnouncedPerPeer(t *testing.T) {
	p, err := NewParticipant(Config{Transport: &silent{}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.lock()
	defer p.unlock()
	p.addPeer(wire.ParticipantData{GUID: wire.MakeGUID(wire.Prefix{1}, wire.EntityParticipant)}, 1, 1024)
	p.addPeer(wire.ParticipantData{GUID: wire.MakeGUID(wire.Prefix{2}, wire.EntityParticipant)}, 1, 1024)
	loud, other := p.peers[wire.Prefix{1}], p.peers[wire.Prefix{2}]
	add := func(q *peer, i int) {
		e := wire.EntityID{byte(i >> 16), byte(i >> 8), byte(i), wire.KindWriterKeyless}
		p.addEndpoint(q, wire.EndpointData{GUID: wire.MakeGUID(q.prefix, e), Topic: topic, Type: typ, UserData: make([]byte, maxTextBytes-1000)}, true)
	}
	for i := range 2000 {
		add(loud, i)
	}
	if loud.texts > maxPeerAnnounced || len(loud.writers) > 1100 || loud.refused != 2000-uint64(len(loud.writers)) || loud.public().Refused != loud.refused {
		t.Fatalf("%d bytes, %d endpoints, %d refused", loud.texts, len(loud.writers), loud.refused)
	}
	add(other, 1)
	if len(other.writers) != 1 || other.refused != 0 || p.announced != loud.texts+other.texts {
		t.Fatalf("%d endpoints of the other one, %d bytes in all", len(other.writers), p.announced)
	}
}

// TestDataMulticast: the group is announced, joined, and what comes to it is received.
func TestDataMulticast(t *testing.T) {
	d := domain(t)
	a := participant(t, Config{Domain: d, Range: RangeLocalhost, DataMulticast: true})
	b := participant(t, Config{Domain: d, Range: RangeLocalhost})
	group := netip.AddrPortFrom(spdpGroup, uint16(7401+250*d))
	eventually(t, "the group is announced", 10*time.Second, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		q := b.peers[a.prefix]
		return q != nil && len(q.data.DefaultMulticast) == 1 && q.data.DefaultMulticast[0] == wire.LocatorFrom(group) && q.user.Addr().IsLoopback()
	})
	if _, data := b.link.Locators(loopback); len(data) != 1 {
		t.Fatalf("announced without being asked for: %v", data)
	}
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}) // multicast goes out by lo
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	bad := []byte("RTPS, but no more than that")
	before := a.Stats().Malformed
	eventually(t, "a datagram to the group arrives", 5*time.Second, func() bool {
		if _, err := c.WriteToUDPAddrPort(bad, group); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		return a.Stats().Malformed > before
	})
	if n := b.Stats().Malformed; n != 0 {
		t.Fatalf("%d datagrams to the group arrive where nobody asked for them", n)
	}
	if err := (Config{DataMulticast: true, NoMulticast: true}).Validate(); err == nil {
		t.Error("data by multicast without multicast is accepted")
	}
}
