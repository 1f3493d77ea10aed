package rtps

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// handReader is a participant with readers that a test plays by hand against a writer, in simulated time.
type handReader struct {
	t    *testing.T
	p    *Participant
	w    *Writer
	link *silent
	mu   sync.Mutex
	said []string
	hb   uint32
	ack  uint32
	live int
}

var handPrefix = wire.Prefix{1, 2, 3}

func handEntity(n byte) wire.EntityID { return wire.EntityID{0, 0, n, wire.KindReaderKeyless} }

func readerByHand(t *testing.T, cfg WriterConfig, test func(h *handReader)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &handReader{t: t}
		h.link = &silent{sent: h.note}
		p, err := NewParticipant(Config{Transport: h.link})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		cfg.Topic, cfg.Type = topic, typ
		h.p = p
		if h.w, err = p.NewWriter(cfg); err != nil {
			t.Fatal(err)
		}
		addr := []wire.Locator{wire.LocatorFrom(netip.MustParseAddrPort("10.0.0.9:7410"))}
		d := wire.ParticipantData{GUID: wire.MakeGUID(handPrefix, wire.EntityParticipant), Endpoints: wire.BuiltinAll, DomainID: 0, MetaUnicast: addr, DefaultUnicast: addr}
		h.send(func(b []byte) []byte {
			return wire.AppendData(b, &wire.Data{Writer: wire.EntitySPDPWriter, Seq: 1, Payload: d.Append(nil)})
		})
		h.send(func(b []byte) []byte {
			return wire.AppendHeartbeat(b, &wire.Heartbeat{Writer: wire.EntitySubWriter, First: 1, Last: 0, Count: 1})
		})
		test(h)
	})
}

func (h *handReader) send(build func(b []byte) []byte) {
	h.link.receive([][]byte{build(wire.AppendHeader(nil, wire.Header{Prefix: handPrefix}))})
}

// announce announces reader n, the n-th announcement.
func (h *handReader) announce(n byte, q QoS) {
	h.send(func(b []byte) []byte {
		d := wire.EndpointData{GUID: wire.MakeGUID(handPrefix, handEntity(n)), Topic: topic, Type: typ, QoS: q}
		return wire.AppendData(b, &wire.Data{Writer: wire.EntitySubWriter, Seq: int64(n), Payload: d.Append(nil, false)})
	})
}

func (h *handReader) acknack(n byte, base int64, final bool, missing ...int64) {
	h.ack++
	a := wire.AckNack{Reader: handEntity(n), Writer: h.w.entity, Set: wire.SeqSet{Base: base}, Count: h.ack, Final: final}
	for _, seq := range missing {
		a.Set.Add(seq)
	}
	h.send(func(b []byte) []byte { return wire.AppendAckNack(b, &a) })
	synctest.Wait()
}

func (h *handReader) nackfrag(n byte, seq int64, frags ...uint32) {
	h.ack++
	a := wire.NackFrag{Reader: handEntity(n), Writer: h.w.entity, Seq: seq, Set: wire.FragSet{Base: frags[0]}, Count: h.ack}
	for _, f := range frags {
		a.Set.Add(f)
	}
	h.send(func(b []byte) []byte { return wire.AppendNackFrag(b, &a) })
	synctest.Wait()
}

func (h *handReader) write(sizes ...int) {
	h.t.Helper()
	for _, n := range sizes {
		if _, err := h.w.Write(payload(n, 1), 1); err != nil {
			h.t.Fatal(err)
		}
		synctest.Wait()
	}
}

func (h *handReader) note(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := wire.Decode(b, (*readerNotes)(h)); err != nil {
		h.t.Errorf("the writer sent %x: %v", b, err)
	}
	if len(b)%4 != 0 {
		h.t.Errorf("datagram of %d bytes", len(b))
	}
}

func (h *handReader) take() string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	s := strings.Join(h.said, "; ")
	h.said = nil
	return s
}

func (h *handReader) expect(what, want string) {
	h.t.Helper()
	if got := h.take(); got != want {
		h.t.Fatalf("%s: the writer says\n%q, want\n%q", what, got, want)
	}
}

type readerNotes handReader

func to(e wire.EntityID) string {
	if e == wire.EntityUnknown {
		return "all"
	}
	return fmt.Sprint(e[2])
}
func (n *readerNotes) Data(_ *wire.Context, d *wire.Data) {
	if !d.Writer.Builtin() {
		n.said = append(n.said, fmt.Sprintf("data %d to %s", d.Seq, to(d.Reader)))
	}
}
func (n *readerNotes) DataFrag(_ *wire.Context, d *wire.DataFrag) {
	n.said = append(n.said, fmt.Sprintf("frag %d.%d to %s", d.Seq, d.First, to(d.Reader)))
}
func (n *readerNotes) Heartbeat(_ *wire.Context, h *wire.Heartbeat) {
	if h.Writer.Builtin() {
		return
	}
	if h.Count <= n.hb || h.First < 1 || h.Last < h.First-1 {
		n.t.Errorf("heartbeat %+v after count %d", *h, n.hb)
	}
	n.hb = h.Count
	s := fmt.Sprintf("heartbeat %d-%d to %s", h.First, h.Last, to(h.Reader))
	if h.Final {
		s += " final"
	}
	if h.Liveliness {
		n.live++
		s += " alive"
	}
	n.said = append(n.said, s)
}
func (n *readerNotes) HeartbeatFrag(*wire.Context, *wire.HeartbeatFrag) {}
func (n *readerNotes) Gap(_ *wire.Context, g *wire.Gap) {
	n.said = append(n.said, fmt.Sprintf("gap %d-%d to %s", g.Start, g.Set.Base-1, to(g.Reader)))
}
func (n *readerNotes) AckNack(*wire.Context, *wire.AckNack)   {}
func (n *readerNotes) NackFrag(*wire.Context, *wire.NackFrag) {}

func TestWriterHandshake(t *testing.T) {
	readerByHand(t, WriterConfig{QoS: reliable(Volatile, 0)}, func(h *handReader) {
		h.write(10, 10) // nobody there yet
		h.announce(1, reliable(Volatile, 0))
		h.expect("before any data", "heartbeat 3-2 to 1")
		h.write(10, 10)
		h.expect("no data before the answer", "")
		h.acknack(1, 1, false) // preemptive: no HEARTBEAT was seen
		h.expect("preemptive", "heartbeat 3-2 to 1")
		h.acknack(1, 3, true)
		h.expect("now it may know what there is", "heartbeat 3-4 to 1")
		h.acknack(1, 3, false, 3, 4)
		h.expect("asked for", "data 3 to 1; data 4 to 1; heartbeat 3-4 to 1")
		h.write(10)
		h.expect("pushed", "data 5 to 1; heartbeat 3-5 to 1")
		h.acknack(1, 6, true)
		if st := h.w.Stats(); st.Unacked != 0 || st.Resent != 2 {
			t.Errorf("%+v", st)
		}
		time.Sleep(5 * time.Second)
		h.expect("all acknowledged", "")
		h.acknack(1, 6, false)
		h.expect("every ACKNACK that wants an answer gets one", "heartbeat 6-5 to 1 final")
		h.acknack(1, 0, false)
		h.expect("Fast DDS asks so", "heartbeat 6-5 to 1")
		h.acknack(1, 99, true) // beyond what there is
		if st := h.w.Stats(); st.Unacked != 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestWriterRepeatsHeartbeats(t *testing.T) {
	readerByHand(t, WriterConfig{QoS: reliable(Volatile, 0)}, func(h *handReader) {
		h.announce(1, reliable(Volatile, 0))
		h.acknack(1, 1, true)
		h.take()
		time.Sleep(15 * time.Millisecond)
		h.write(10)
		h.take()
		time.Sleep(10 * time.Second)
		if n := strings.Count(h.take(), "heartbeat 1-1 to 1"); n < 8 || n > 20 {
			t.Errorf("%d HEARTBEATs within 10 s", n)
		}
		h.acknack(1, 2, true)
		time.Sleep(10 * time.Second)
		h.expect("acknowledged", "")
	})
}

func TestWriterSaysWhatIsGone(t *testing.T) {
	readerByHand(t, WriterConfig{QoS: reliable(TransientLocal, 3)}, func(h *handReader) {
		h.write(10, 10, 10, 10, 10, 10)
		h.announce(1, reliable(TransientLocal, 1))
		h.expect("the last three are there", "heartbeat 4-6 to 1")
		h.acknack(1, 1, false, 1, 2, 5)
		h.expect("older ones are not", "gap 1-3 to 1; data 5 to 1; heartbeat 4-6 to 1")
		h.announce(2, reliable(Volatile, 1))
		h.expect("nothing old for a volatile reader", "heartbeat 7-6 to 2")
		h.acknack(2, 1, false, 1, 5)
		if s := h.take(); !strings.HasPrefix(s, "gap 1-6 to 2") {
			t.Errorf("asked for old ones: %q", s)
		}
		h.nackfrag(2, 5, 1)
		h.expect("nor fragments", "gap 5-5 to 2; heartbeat 7-6 to 2")
	})
}

func TestWriterSendsFragments(t *testing.T) {
	readerByHand(t, WriterConfig{QoS: reliable(Volatile, 0), FragmentSize: 1000}, func(h *handReader) {
		h.announce(1, reliable(Volatile, 0))
		h.acknack(1, 1, true)
		time.Sleep(20 * time.Millisecond)
		h.take()
		h.write(3500)
		h.expect("the HEARTBEAT is behind the last", "frag 1.1 to 1; frag 1.2 to 1; frag 1.3 to 1; frag 1.4 to 1; heartbeat 1-1 to 1")
		h.nackfrag(1, 1, 2, 4)
		h.expect("those asked for", "frag 1.2 to 1; frag 1.4 to 1; heartbeat 1-1 to 1")
		h.nackfrag(1, 1, 2, 3, 4)
		h.expect("not again what is on its way", "frag 1.3 to 1; heartbeat 1-1 to 1")
		h.nackfrag(1, 1, 9)
		h.expect("there is none", "heartbeat 1-1 to 1")
		h.acknack(1, 1, false, 1)
		h.expect("a whole sample is sent in fragments again", "frag 1.1 to 1; frag 1.2 to 1; frag 1.3 to 1; frag 1.4 to 1; heartbeat 1-1 to 1")
	})
}

func TestWriterServesReadersTogether(t *testing.T) {
	readerByHand(t, WriterConfig{QoS: reliable(Volatile, 0)}, func(h *handReader) {
		h.announce(1, reliable(Volatile, 0))
		h.announce(2, QoS{})
		h.write(10)
		h.expect("one is not ready", "heartbeat 1-0 to 1; data 1 to 2")
		h.acknack(1, 1, true)
		h.acknack(1, 2, true)
		h.take()
		time.Sleep(20 * time.Millisecond)
		h.write(10)
		h.expect("one datagram for both", "data 2 to all; heartbeat 2-2 to 1")
		h.acknack(1, 3, true)
		h.announce(3, reliable(Volatile, 0))
		h.take()
		h.write(10)
		if s := h.take(); strings.Contains(s, "all") || strings.Contains(s, "data 3 to 3") || !strings.Contains(s, "data 3 to 1") || !strings.Contains(s, "data 3 to 2") {
			t.Errorf("a third one is not ready: %q", s)
		}
	})
}

func TestWriterLiveliness(t *testing.T) {
	q := reliable(Volatile, 0)
	q.Liveliness, q.LeaseDuration = ManualByTopic, time.Second
	readerByHand(t, WriterConfig{QoS: q}, func(h *handReader) {
		h.announce(1, reliable(Volatile, 0))
		h.acknack(1, 1, true)
		time.Sleep(10 * time.Second)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.live < 11 || h.live > 14 {
			t.Errorf("asserted %d times in 10 s", h.live)
		}
	})
	for _, kind := range []wire.Liveliness{Automatic, ManualByParticipant} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			link := &silent{}
			p, err := NewParticipant(Config{Transport: link})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			q.Liveliness = kind
			if _, err := p.NewWriter(WriterConfig{Topic: topic, Type: typ, QoS: q}); err != nil {
				t.Fatal(err)
			}
			for range 10 {
				time.Sleep(time.Second)
				p.lock()
				if s := p.liveWriter.hist.at(p.liveWriter.last); s != nil {
					m, err := wire.ParseLiveliness(s.data)
					if err == nil && m.Prefix == p.prefix && m.Kind == uint32(kind)+1 {
						n = int(p.liveWriter.last)
					}
				}
				if p.liveWriter.hist.len() > 1 {
					t.Errorf("%d liveliness messages kept", p.liveWriter.hist.len())
				}
				p.unlock()
			}
			if n < 11 || n > 14 {
				t.Errorf("%v: asserted %d times in 10 s", kind, n)
			}
		})
	}
}

// A reader that asks for fragments gets on: the HEARTBEAT behind what is sent again is repeated soon, however often it was
// repeated before.
func TestWriterHeartbeatsAfterRepair(t *testing.T) {
	readerByHand(t, WriterConfig{QoS: reliable(Volatile, 0), FragmentSize: 1000}, func(h *handReader) {
		h.announce(1, reliable(Volatile, 0))
		h.acknack(1, 1, true)
		time.Sleep(20 * time.Millisecond)
		h.write(3500)
		time.Sleep(5 * time.Second) // ever rarer
		h.take()
		h.nackfrag(1, 1, 2, 4)
		h.expect("those asked for", "frag 1.2 to 1; frag 1.4 to 1; heartbeat 1-1 to 1")
		time.Sleep(30 * time.Millisecond)
		h.expect("nothing came back", "heartbeat 1-1 to 1")
	})
}

// The HEARTBEAT behind what was sent again is repeated as soon as the reader should have reacted to it, by what it did
// before.
func TestWriterKnowsReaction(t *testing.T) {
	readerByHand(t, WriterConfig{QoS: reliable(Volatile, 0), FragmentSize: 1000}, func(h *handReader) {
		h.announce(1, reliable(Volatile, 0))
		h.acknack(1, 1, true)
		time.Sleep(20 * time.Millisecond)
		h.write(3500)
		for range 20 { // as Fast DDS does
			time.Sleep(5 * time.Millisecond)
			h.nackfrag(1, 1, 2)
			time.Sleep(6 * time.Millisecond) // beyond resendPause, without another HEARTBEAT
		}
		h.take()
		time.Sleep(20 * time.Millisecond)
		h.acknack(1, 1, true)
		h.nackfrag(1, 1, 2)
		if s := h.take(); !strings.HasSuffix(s, "heartbeat 1-1 to 1") {
			t.Fatalf("%q", s)
		}
		time.Sleep(12 * time.Millisecond)
		h.expect("it may still react", "")
		time.Sleep(16 * time.Millisecond)
		h.expect("it has not", "heartbeat 1-1 to 1")
	})
}

// Losses here and there do not slow a writer down, a row of them does, once for each sample and for what was sent again.
func TestWriterSlowsDown(t *testing.T) {
	readerByHand(t, WriterConfig{QoS: reliable(Volatile, 0), FragmentSize: 1000}, func(h *handReader) {
		h.announce(1, reliable(Volatile, 0))
		h.acknack(1, 1, true)
		rate := func() float64 {
			h.p.lock()
			defer h.p.unlock()
			for _, k := range h.w.sinks {
				return k.pacer.rate
			}
			return 0
		}
		before := rate()
		h.write(200_000)
		h.nackfrag(1, 1, 3, 14, 25, 36, 37, 58, 69, 80, 91)
		if rate() != before {
			t.Error("slowed down by losses at random")
		}
		time.Sleep(30 * time.Millisecond)
		h.nackfrag(1, 1, 101, 102, 103, 104, 105)
		once := rate()
		if once >= before {
			t.Error("not slowed down by a row of losses")
		}
		time.Sleep(30 * time.Millisecond)
		h.nackfrag(1, 1, 151, 152, 153, 154, 155)
		if rate() != once {
			t.Error("slowed down twice for one sample")
		}
		time.Sleep(30 * time.Millisecond)
		h.nackfrag(1, 1, 151, 152, 153, 154)
		twice := rate()
		if twice >= once {
			t.Error("not slowed down where a row of what was sent again is lost")
		}
		time.Sleep(30 * time.Millisecond)
		h.acknack(1, 2, true)
		h.write(200_000)
		time.Sleep(time.Second)
		h.acknack(1, 2, true, 2)
		if rate() >= twice {
			t.Error("not slowed down where all of a sample is lost")
		}
	})
}

// What was sent again and lost again is sent twice from then on, while little is asked for.
func TestWriterRepairsTwice(t *testing.T) {
	readerByHand(t, WriterConfig{QoS: reliable(Volatile, 0), FragmentSize: 1000}, func(h *handReader) {
		h.announce(1, reliable(Volatile, 0))
		h.acknack(1, 1, true)
		time.Sleep(20 * time.Millisecond)
		h.write(3500)
		h.take()
		h.nackfrag(1, 1, 2)
		h.expect("once", "frag 1.2 to 1; heartbeat 1-1 to 1")
		time.Sleep(15 * time.Millisecond)
		h.nackfrag(1, 1, 2, 4)
		h.expect("twice", "frag 1.2 to 1; frag 1.4 to 1; frag 1.2 to 1; frag 1.4 to 1; heartbeat 1-1 to 1")
		time.Sleep(6 * time.Second)
		h.take()
		h.nackfrag(1, 1, 3)
		h.expect("once again", "frag 1.3 to 1; heartbeat 1-1 to 1")
	})
}

func TestFragmentFor(t *testing.T) {
	for _, tc := range []struct {
		local bool
		mtu   int
		want  int
	}{{true, 0, 60000}, {true, 1500, 60000}, {false, 0, 1344}, {false, 1280, 1344}, {false, 1500, 1344}, {false, 9000, 8856},
		{false, 1504, 1360}, {false, 65535, 60000}} {
		got := fragmentFor(tc.local, tc.mtu)
		if got != tc.want || got%4 != 0 {
			t.Errorf("local %v, mtu %d: %d, want %d", tc.local, tc.mtu, got, tc.want)
		}
	}
}
