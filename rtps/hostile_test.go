package rtps

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/internal/netsim"
	"github.com/gobag/gobag/rtps/wire"
)

// record gathers what a talkative peer sends to a participant: discovery, samples whole and in fragments, gaps.
func record(t *testing.T) (datagrams [][]byte) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{Seed: 4, Loss: 0.1, Tap: func(d *netsim.Datagram, _ bool) {
			if d.To.Addr() == netip.MustParseAddr("10.0.0.1") && d.From != d.To && len(datagrams) < 3000 {
				datagrams = append(datagrams, append([]byte(nil), d.Bytes...))
			}
		}})
		defer s.close()
		victimEndpoints(t, s.a)
		w := s.writer(s.b, reliable(TransientLocal, 5))
		s.reader(s.b, reliable(Volatile, 0), newCollector())
		time.Sleep(time.Second)
		for i := range 60 {
			w.Write(payload(10+i%7*1500, i), 1)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
	})
	return datagrams
}

// victimEndpoints gives a participant a reader and a writer with something to ask for.
func victimEndpoints(t *testing.T, p *Participant) {
	for _, q := range []QoS{reliable(TransientLocal, 0), reliable(Volatile, 0), {}} {
		_, err := p.NewReader(ReaderConfig{Topic: topic, Type: typ, QoS: q, Handler: func(s Sample) {
			if len(s.Data) < 4 || s.Seq < 1 || s.Cost < len(s.Data) {
				t.Errorf("sample of %d bytes, sequence number %d, cost %d", len(s.Data), s.Seq, s.Cost)
			}
			s.Release()
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := p.NewWriter(WriterConfig{Topic: topic, Type: typ, QoS: reliable(TransientLocal, 20)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		w.Write(payload(10+i%5*2000, i), 1)
	}
}

// silent is a transport that nothing comes from.
type silent struct {
	receive func([][]byte)
	sent    func(datagram []byte) // may be nil
}

func (s *silent) Start(receive func([][]byte)) error { s.receive = receive; return nil }
func (s *silent) Locators(netip.Addr) (a, b []netip.AddrPort) {
	l := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:7410")}
	return l, l
}
func (s *silent) Send(_ netip.AddrPort, b []byte) error {
	if s.sent != nil {
		s.sent(b)
	}
	return nil
}
func (s *silent) Announce(func(_, _ []netip.AddrPort) []byte) error { return nil }
func (s *silent) Local(netip.Addr) bool                             { return false }
func (s *silent) Close() error                                      { return nil }

// mutate damages a datagram in one of the ways that hurt parsers and state machines.
func mutate(rnd *rand.Rand, in [][]byte) []byte {
	b := append([]byte(nil), in[rnd.IntN(len(in))]...)
	evil := []uint64{0, 1, 2, 255, 256, 257, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 40, 1 << 62, 1<<63 - 1, 1<<63 - 1024, math.MaxUint64}
	for range 1 + rnd.IntN(4) {
		if len(b) < 24 {
			return b
		}
		at := 20 + rnd.IntN(len(b)-20)
		switch rnd.IntN(8) {
		case 0:
			b[at] ^= 1 << rnd.IntN(8)
		case 1:
			b[at] = byte(rnd.Uint32())
		case 2:
			b = b[:at]
		case 3: // a field of 4 bytes
			at = at &^ 3
			if at+4 <= len(b) {
				binary.LittleEndian.PutUint32(b[at:], uint32(evil[rnd.IntN(len(evil))]))
			}
		case 4: // a sequence number
			at = at &^ 3
			if at+8 <= len(b) {
				v := evil[rnd.IntN(len(evil))] - uint64(rnd.IntN(3))
				binary.LittleEndian.PutUint32(b[at:], uint32(v>>32))
				binary.LittleEndian.PutUint32(b[at+4:], uint32(v))
			}
		case 5: // another one behind it
			b = append(b, in[rnd.IntN(len(in))][20:]...)
		case 6:
			copy(b[at:], in[rnd.IntN(len(in))][20:])
		case 7: // unharmed
		}
	}
	return b[:min(len(b), maxDatagram)]
}

func TestMutatedDatagrams(t *testing.T) {
	seeds := record(t)
	if len(seeds) < 50 {
		t.Fatalf("only %d datagrams recorded", len(seeds))
	}
	n := 1_000_000
	if testing.Short() || raceDetector {
		n = 50_000
	}
	link := &silent{}
	p, err := NewParticipant(Config{Transport: link, MaxReassembly: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	victimEndpoints(t, p)
	// The recorded peer talks to the recorded participant: make that us.
	for _, b := range seeds {
		readdress(b, p.prefix)
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	batch := make([][]byte, 0, 16)
	var held int64
	var slowest time.Duration
	for i := 0; i < n; i += 16 {
		batch = batch[:0]
		for k := range 16 {
			if (i+k)%5000 < len(seeds) { // keep the acquaintance alive
				batch = append(batch, seeds[(i+k)%5000])
				continue
			}
			batch = append(batch, mutate(rnd, seeds))
		}
		began := time.Now()
		link.receive(batch)
		slowest = max(slowest, time.Since(began))
		held = max(held, p.Stats().Reassembly)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	st := p.Stats()
	t.Logf("%+v, %d bytes held at most, heap %d MiB before, %d after, slowest batch %v, %d peers", st, held, before.HeapAlloc>>20, after.HeapAlloc>>20, slowest, len(p.Peers()))
	if st.Malformed == 0 || held == 0 || held > 8<<20 {
		t.Errorf("%+v, %d bytes held at most", st, held)
	}
	if after.HeapAlloc > before.HeapAlloc+100<<20 {
		t.Errorf("heap grew from %d to %d bytes", before.HeapAlloc, after.HeapAlloc)
	}
}

// readdress makes the destination prefixes of a datagram ours.
func readdress(b []byte, to wire.Prefix) {
	for pos := 20; pos+4 <= len(b); {
		n := int(binary.LittleEndian.Uint16(b[pos+2:]))
		if b[pos] == 0x0e && pos+16 <= len(b) {
			copy(b[pos+4:], to[:])
		}
		if n == 0 && b[pos] != 0x01 && b[pos] != 0x09 {
			return
		}
		pos += 4 + n
	}
}

// victim is a participant with one matched writer that the test plays by hand.
func victim(t testing.TB, cfg Config, q QoS) (p *Participant, r *Reader, send func(build func(b []byte, w wire.EntityID) []byte)) {
	link := &silent{}
	p, r, send = victimOf(t, link, cfg, q, wire.VendorUnknown, TransientLocal, func(s Sample) { s.Release() })
	t.Cleanup(func() { p.Close() })
	return p, r, send
}

func victimOf(t testing.TB, link *silent, cfg Config, q QoS, vendor wire.VendorID, offered Durability, handler func(Sample)) (p *Participant, r *Reader, send func(build func(b []byte, w wire.EntityID) []byte)) {
	cfg.Transport = link
	p, err := NewParticipant(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err = p.NewReader(ReaderConfig{Topic: topic, Type: typ, QoS: q, Handler: handler})
	if err != nil {
		t.Fatal(err)
	}
	peer := wire.Prefix{1, 2, 3}
	addr := wire.LocatorFrom(netip.MustParseAddrPort("10.0.0.9:7410"))
	h := wire.Header{Vendor: vendor, Prefix: peer}
	announce := wire.ParticipantData{GUID: wire.MakeGUID(peer, wire.EntityParticipant), Vendor: vendor, Endpoints: wire.BuiltinAll,
		DomainID: 0, MetaUnicast: []wire.Locator{addr}, DefaultUnicast: []wire.Locator{addr}}
	b := wire.AppendHeader(nil, h)
	link.receive([][]byte{wire.AppendData(b, &wire.Data{Writer: wire.EntitySPDPWriter, Seq: 1, Payload: announce.Append(nil)})})
	id := wire.EntityID{0, 0, 1, wire.KindWriterKeyless}
	ep := wire.EndpointData{GUID: wire.MakeGUID(peer, id), Topic: topic, Type: typ, QoS: QoS{Reliability: Reliable, Durability: offered}}
	b = wire.AppendHeader(nil, h)
	b = wire.AppendHeartbeat(b, &wire.Heartbeat{Writer: wire.EntityPubWriter, First: 1, Last: 1, Count: 1})
	link.receive([][]byte{wire.AppendData(b, &wire.Data{Writer: wire.EntityPubWriter, Seq: 1, Payload: ep.Append(nil, true)})})
	if len(r.Stats().Writers) != 1 {
		t.Fatal("not matched")
	}
	one := make([][]byte, 1)
	buf := make([]byte, 0, maxDatagram)
	return p, r, func(build func(b []byte, w wire.EntityID) []byte) {
		one[0] = build(wire.AppendHeader(buf[:0], h), id)
		link.receive(one)
	}
}

// Jumps in sequence numbers cost nothing.
func TestHugeJumps(t *testing.T) {
	p, r, send := victim(t, Config{}, reliable(TransientLocal, 0))
	count := uint32(0)
	heartbeat := func(first, last int64) {
		count++
		send(func(b []byte, w wire.EntityID) []byte {
			return wire.AppendHeartbeat(b, &wire.Heartbeat{Writer: w, First: first, Last: last, Count: count})
		})
	}
	data := func(seq int64) {
		send(func(b []byte, w wire.EntityID) []byte {
			return wire.AppendData(b, &wire.Data{Writer: w, Seq: seq, Payload: payload(100, 1)})
		})
	}
	gap := func(a, b int64) {
		send(func(buf []byte, w wire.EntityID) []byte {
			return wire.AppendGap(buf, &wire.Gap{Writer: w, Start: a, Set: wire.SeqSet{Base: b}})
		})
	}
	began := time.Now()
	heartbeat(1, 3)
	data(1)
	data(2)
	data(1 << 40)
	heartbeat(1, wire.MaxSeq)
	gap(3, 1<<40)
	for i := range int64(50_000) {
		gap(1<<41+2*i, 1<<41+2*i+1)
		data(1<<42 + 2*i)
	}
	heartbeat(1<<50, 1<<51)
	data(1 << 50)
	heartbeat(wire.MaxSeq, wire.MaxSeq)
	data(wire.MaxSeq)
	st := r.Stats()
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
	w := st.Writers[0]
	if st.Received < 5 || st.Received+st.Lost != wire.MaxSeq || w.Last != wire.MaxSeq || w.First != 1 {
		t.Errorf("%+v", st)
	}
	if n := p.Stats().Reassembly; n != 0 {
		t.Errorf("%d bytes held", n)
	}
}

// Claims of large samples reserve no more than the limit, and what can never fit is lost and said so.
func TestReassemblyIsBounded(t *testing.T) {
	p, r, send := victim(t, Config{MaxReassembly: 4 << 20}, reliable(TransientLocal, 0))
	frag := func(seq int64, first, size uint32, n int) {
		send(func(b []byte, w wire.EntityID) []byte {
			return wire.AppendDataFrag(b, &wire.DataFrag{Writer: w, Seq: seq, First: first, Count: 1, Size: 1000, SampleSize: size, Payload: payload(n, 0)})
		})
	}
	send(func(b []byte, w wire.EntityID) []byte {
		return wire.AppendHeartbeat(b, &wire.Heartbeat{Writer: w, First: 1, Last: 3, Count: 1})
	})
	for seq := int64(1); seq < 200; seq++ {
		frag(seq, 1, 1_000_000, 1000)
		if n := p.Stats().Reassembly; n > 4<<20 {
			t.Fatalf("%d bytes held", n)
		}
	}
	if p.Stats().Refused == 0 {
		t.Error("nothing refused")
	}
	for i := range uint32(1000) {
		frag(1, i+1, 1_000_000, 1000)
	}
	if st := r.Stats(); st.Received != 1 {
		t.Fatalf("the sample at the head did not get through: %+v", st)
	}
	frag(2, 5, 50_000_000, 1000) // not the size that was begun with
	frag(201, 1, 50_000_000, 1000)
	frag(202, 1, math.MaxUint32, 1000)
	send(func(b []byte, w wire.EntityID) []byte {
		return wire.AppendHeartbeat(b, &wire.Heartbeat{Writer: w, First: 201, Last: 203, Count: 2})
	})
	send(func(b []byte, w wire.EntityID) []byte {
		return wire.AppendData(b, &wire.Data{Writer: w, Seq: 203, Payload: payload(100, 1)})
	})
	st := r.Stats()
	if st.Received != 2 || st.Lost != 201 || st.Writers[0].Last != 203 {
		t.Fatalf("%+v", st)
	}
}

// Floods of participants and endpoints are refused beyond a limit.
func TestDiscoveryFlood(t *testing.T) {
	link := &silent{}
	p, err := NewParticipant(Config{Transport: link})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for i := range maxPeers + 500 {
		addr := []wire.Locator{wire.LocatorFrom(netip.MustParseAddrPort("10.0.0.9:7410"))}
		if i >= maxHostPeers+300 { // of these 300 are too many for one host, and 200 in all
			addr[0] = wire.LocatorFrom(netip.MustParseAddrPort("10.0.0.8:7410"))
		}
		peer := wire.Prefix{1, 2, byte(i >> 8), byte(i)}
		d := wire.ParticipantData{GUID: wire.MakeGUID(peer, wire.EntityParticipant), DomainID: -1, MetaUnicast: addr, DefaultUnicast: addr}
		b := wire.AppendHeader(nil, wire.Header{Prefix: peer})
		link.receive([][]byte{wire.AppendData(b, &wire.Data{Writer: wire.EntitySPDPWriter, Seq: 1, Payload: d.Append(nil)})})
	}
	if n := len(p.Peers()); n != maxPeers || p.Stats().Refused != 500 {
		t.Fatalf("%d peers, %+v", n, p.Stats())
	}
	peer := wire.Prefix{1, 2}
	count := 0
	endpoint := func(seq int64, text int) {
		ep := wire.EndpointData{GUID: wire.MakeGUID(peer, wire.EntityID{byte(seq >> 16), byte(seq >> 8), byte(seq), 3}), Topic: topic, Type: typ, UserData: make([]byte, text)}
		b := wire.AppendHeader(nil, wire.Header{Prefix: peer})
		b = wire.AppendHeartbeat(b, &wire.Heartbeat{Writer: wire.EntityPubWriter, First: 1, Last: seq, Count: uint32(seq)})
		link.receive([][]byte{wire.AppendData(b, &wire.Data{Writer: wire.EntityPubWriter, Seq: seq, Payload: ep.Append(nil, true)})})
		count++
	}
	for seq := range int64(maxPeerEndpoints + 100) {
		endpoint(seq+1, 0)
	}
	if n := len(p.Endpoints()); n != maxPeerEndpoints {
		t.Fatalf("%d endpoints", n)
	}
	endpoint(maxPeerEndpoints+101, 20_000)
	if n := p.Stats().Refused; n != 500+100+1 {
		t.Fatalf("%d refused", n)
	}
	p.lock()
	for _, q := range p.peers {
		p.dropPeer(q, "test")
	}
	endpoints, announced := p.endpoints, p.announced
	p.unlock()
	if endpoints != 0 || announced != 0 {
		t.Fatalf("%d endpoints and %d bytes left in the books", endpoints, announced)
	}
}

// FuzzReceive gives arbitrary datagrams to a participant that is in the middle of a conversation.
func FuzzReceive(f *testing.F) {
	h := wire.Header{Prefix: wire.Prefix{1, 2, 3}}
	w := wire.EntityID{0, 0, 1, wire.KindWriterKeyless}
	f.Add(wire.AppendData(wire.AppendHeader(nil, h), &wire.Data{Writer: w, Seq: 1, Payload: payload(20, 1)}))
	f.Add(wire.AppendDataFrag(wire.AppendHeader(nil, h), &wire.DataFrag{Writer: w, Seq: 2, First: 1, Count: 1, Size: 10, SampleSize: 25, Payload: payload(10, 1)}))
	f.Add(wire.AppendHeartbeat(wire.AppendHeader(nil, h), &wire.Heartbeat{Writer: w, First: 1, Last: 5, Count: 1}))
	f.Add(wire.AppendHeartbeatFrag(wire.AppendHeader(nil, h), &wire.HeartbeatFrag{Writer: w, Seq: 2, LastFrag: 2, Count: 1}))
	f.Add(wire.AppendGap(wire.AppendHeader(nil, h), &wire.Gap{Writer: w, Start: 2, Set: wire.SeqSet{Base: 4}}))
	f.Add(wire.AppendAckNack(wire.AppendHeader(nil, h), &wire.AckNack{Reader: wire.EntitySubReader, Writer: wire.EntitySubWriter, Set: wire.SeqSet{Base: 1, NumBits: 1, Bits: [8]uint32{1 << 31}}, Count: 1}))
	f.Add(wire.AppendNackFrag(wire.AppendHeader(nil, h), &wire.NackFrag{Reader: wire.EntitySubReader, Writer: wire.EntitySubWriter, Seq: 1, Set: wire.FragSet{Base: 1, NumBits: 1, Bits: [8]uint32{1 << 31}}, Count: 1}))
	p, _, _ := victim(f, Config{MaxReassembly: 1 << 20}, reliable(TransientLocal, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		p.receive([][]byte{b})
		if n := p.Stats().Reassembly; n < 0 || n > 1<<20 {
			t.Errorf("%d bytes held", n)
		}
	})
}
