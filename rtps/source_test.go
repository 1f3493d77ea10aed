package rtps

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// handWriter is a remote writer that a test plays by hand against a reader, in simulated time. It notes what the reader
// says to it.
type handWriter struct {
	t      *testing.T
	p      *Participant
	r      *Reader
	send   func(func([]byte, wire.EntityID) []byte)
	mu     sync.Mutex
	said   []string
	counts []uint32
	got    []int64
	hb     uint32
}

func byHand(t *testing.T, vendor wire.VendorID, offered Durability, q QoS, test func(h *handWriter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &handWriter{t: t}
		link := &silent{sent: h.note}
		h.p, h.r, h.send = victimOf(t, link, Config{}, q, vendor, offered, func(s Sample) {
			h.got = append(h.got, s.Seq)
			s.Release()
		})
		defer h.p.Close()
		test(h)
	})
}

func (h *handWriter) note(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := wire.Decode(b, (*handNotes)(h)); err != nil {
		h.t.Errorf("the reader sent %x: %v", b, err)
	}
}

// take returns what the reader said since the last call.
func (h *handWriter) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := strings.Join(h.said, "; ")
	h.said = nil
	return s
}

func (h *handWriter) expect(what, want string) {
	h.t.Helper()
	if got := h.take(); got != want {
		h.t.Fatalf("%s: the reader says %q, want %q", what, got, want)
	}
}

func (h *handWriter) received(want ...int64) {
	h.t.Helper()
	if fmt.Sprint(h.got) != fmt.Sprint(want) {
		h.t.Fatalf("received %v, want %v", h.got, want)
	}
}

func (h *handWriter) heartbeat(first, last int64, final bool) {
	h.hb++
	h.send(func(b []byte, w wire.EntityID) []byte {
		return wire.AppendHeartbeat(b, &wire.Heartbeat{Writer: w, First: first, Last: last, Count: h.hb, Final: final})
	})
}

func (h *handWriter) data(seqs ...int64) {
	for _, seq := range seqs {
		h.send(func(b []byte, w wire.EntityID) []byte {
			return wire.AppendData(b, &wire.Data{Writer: w, Seq: seq, Payload: payload(20, int(seq))})
		})
	}
}

// frag sends count fragments of 100 bytes of a sample of size bytes.
func (h *handWriter) frag(seq int64, first uint32, count uint16, size int) {
	h.send(func(b []byte, w wire.EntityID) []byte {
		from := int(first-1) * 100
		return wire.AppendDataFrag(b, &wire.DataFrag{Writer: w, Seq: seq, First: first, Count: count, Size: 100, SampleSize: uint32(size),
			Payload: payload(size, int(seq))[from:min(size, from+100*int(count))]})
	})
}

func (h *handWriter) gap(a, b int64) {
	h.send(func(buf []byte, w wire.EntityID) []byte {
		return wire.AppendGap(buf, &wire.Gap{Writer: w, Start: a, Set: wire.SeqSet{Base: b}})
	})
}

// handNotes notes submessages to user writers.
type handNotes handWriter

func (n *handNotes) Data(*wire.Context, *wire.Data)                   {}
func (n *handNotes) DataFrag(*wire.Context, *wire.DataFrag)           {}
func (n *handNotes) Heartbeat(*wire.Context, *wire.Heartbeat)         {}
func (n *handNotes) HeartbeatFrag(*wire.Context, *wire.HeartbeatFrag) {}
func (n *handNotes) Gap(*wire.Context, *wire.Gap)                     {}
func (n *handNotes) AckNack(ctx *wire.Context, a *wire.AckNack) {
	if a.Writer.Builtin() {
		return
	}
	s := fmt.Sprintf("ack %d", a.Set.Base)
	for seq := range a.Set.All() {
		s += fmt.Sprintf(" -%d", seq)
	}
	if a.Final {
		s += " final"
	}
	n.add(ctx, s, a.Count)
}
func (n *handNotes) NackFrag(ctx *wire.Context, f *wire.NackFrag) {
	var all []uint32
	for k := range f.Set.All() {
		all = append(all, k)
	}
	s := fmt.Sprintf("frags of %d: %v", f.Seq, all)
	if len(all) > 5 {
		s = fmt.Sprintf("frags of %d: %d..%d", f.Seq, all[0], all[len(all)-1])
	}
	n.add(ctx, s, f.Count)
}
func (n *handNotes) add(ctx *wire.Context, s string, count uint32) {
	if len(n.counts) > 0 && count <= n.counts[len(n.counts)-1] || count < 1 {
		n.t.Errorf("count %d after %v", count, n.counts)
	}
	if ctx.Dest != (wire.Prefix{1, 2, 3}) {
		n.t.Errorf("%s is sent to %v", s, ctx.Dest)
	}
	n.counts = append(n.counts, count)
	n.said = append(n.said, s)
}

func TestPreemptiveAckNack(t *testing.T) {
	for vendor, base := range map[wire.VendorID]int{wire.VendorFast: 0, wire.VendorCyclone: 1, wire.VendorUnknown: 1} {
		byHand(t, vendor, Volatile, reliable(Volatile, 0), func(h *handWriter) {
			ask := fmt.Sprintf("ack %d", base)
			h.expect("at the match", ask)
			time.Sleep(510 * time.Millisecond)
			h.expect("until a HEARTBEAT comes", strings.Repeat(ask+"; ", 4)+ask)
			h.heartbeat(1, 0, false)
			h.expect("empty history", "ack 1 final")
			time.Sleep(5 * time.Second)
			h.expect("nothing more to say", "")
			h.heartbeat(1, 0, true)
			h.expect("a final HEARTBEAT wants no answer", "")
		})
	}
}

func TestNacksOnlyWhatWasSent(t *testing.T) {
	byHand(t, wire.VendorCyclone, Volatile, reliable(Volatile, 0), func(h *handWriter) {
		h.heartbeat(1, 0, false)
		h.take()
		h.data(1, 2, 5)
		h.expect("a hole without HEARTBEAT", "")
		h.heartbeat(1, 8, false) // 6 to 8 are on their way
		h.expect("the hole at once, the tail not yet", "ack 3 -3 -4")
		h.heartbeat(1, 8, false)
		h.expect("the same hole is not asked for again at once", "ack 3 final")
		h.data(3)
		time.Sleep(35 * time.Millisecond)
		h.expect("tail and hole when nothing comes", "ack 4 -4 -6 -7 -8")
		h.data(4, 6, 8, 7)
		h.expect("holes closed: acknowledged without HEARTBEAT", "ack 9 final")
		h.received(1, 2, 3, 4, 5, 6, 7, 8)
		h.data(7, 3, 8)
		h.received(1, 2, 3, 4, 5, 6, 7, 8)
		time.Sleep(time.Second)
		h.expect("all is well", "")
	})
}

func TestHoleWithoutHeartbeat(t *testing.T) {
	byHand(t, wire.VendorCyclone, Volatile, reliable(Volatile, 0), func(h *handWriter) {
		h.heartbeat(1, 0, false)
		h.take()
		h.data(1, 3)
		time.Sleep(25 * time.Millisecond)
		h.expect("after a while", "ack 2 -2")
		time.Sleep(2 * time.Second)
		n := strings.Count(h.take(), "ack 2 -2")
		if n < 3 || n > 8 {
			t.Errorf("asked %d times within 2 s", n)
		}
		h.gap(2, 3)
		h.received(1, 3)
		if st := h.r.Stats(); st.Lost != 1 {
			t.Errorf("%+v", st)
		}
	})
}

func TestStartOfReader(t *testing.T) {
	for _, c := range []struct {
		name          string
		offered, mine Durability
		play          func(h *handWriter)
		want          []int64
		lost          uint64
	}{
		{"history from the oldest", TransientLocal, TransientLocal, func(h *handWriter) {
			h.heartbeat(3, 5, false)
			h.data(3, 4, 5, 6)
		}, []int64{3, 4, 5, 6}, 0},
		{"data before the HEARTBEAT is kept", TransientLocal, TransientLocal, func(h *handWriter) {
			h.data(5, 6)
			h.heartbeat(4, 6, false)
			h.data(4)
		}, []int64{4, 5, 6}, 0},
		{"volatile reader of a writer with history: new ones only", TransientLocal, Volatile, func(h *handWriter) {
			h.heartbeat(1, 5, false)
			h.data(3, 6)
		}, []int64{6}, 0},
		{"but not behind data that was seen", TransientLocal, Volatile, func(h *handWriter) {
			h.data(4)
			h.heartbeat(1, 5, false)
			h.data(5, 6)
		}, []int64{4, 5, 6}, 0},
		{"volatile writer: everything it still has", Volatile, Volatile, func(h *handWriter) {
			h.data(8)
			h.heartbeat(7, 8, false)
			h.data(7, 9)
		}, []int64{7, 8, 9}, 0},
		{"a volatile writer that does not send what was before", Volatile, Volatile, func(h *handWriter) {
			h.heartbeat(1, 7, false)
			h.data(8)
			time.Sleep(time.Second)
			h.data(9)
		}, []int64{8, 9}, 0},
		{"GAP of what is not for us", Volatile, Volatile, func(h *handWriter) {
			h.gap(1, 8)
			h.data(8)
			h.heartbeat(1, 8, false)
		}, []int64{8}, 0},
		{"no HEARTBEAT ever", Volatile, Volatile, func(h *handWriter) {
			h.data(4, 3, 5)
			time.Sleep(time.Second)
			h.data(6)
		}, []int64{3, 4, 5, 6}, 0},
		{"gone before it was fetched", Volatile, Volatile, func(h *handWriter) {
			h.heartbeat(1, 0, false)
			h.data(1, 4)
			h.heartbeat(4, 9, false)
			h.heartbeat(8, 9, false)
			h.data(9, 8)
		}, []int64{1, 4, 8, 9}, 5},
		{"an older HEARTBEAT comes late", Volatile, Volatile, func(h *handWriter) {
			h.heartbeat(1, 0, false)
			h.data(1, 2, 3)
			h.hb += 10
			h.heartbeat(4, 3, false)
			h.hb -= 5
			h.heartbeat(1, 3, false)
			h.data(4, 2)
		}, []int64{1, 2, 3, 4}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			byHand(t, wire.VendorUnknown, c.offered, reliable(c.mine, 0), func(h *handWriter) {
				c.play(h)
				h.received(c.want...)
				if st := h.r.Stats(); st.Lost != c.lost || st.Received != uint64(len(c.want)) {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

func TestFragmentShapes(t *testing.T) {
	byHand(t, wire.VendorCyclone, Volatile, reliable(Volatile, 0), func(h *handWriter) {
		h.heartbeat(1, 0, false)
		h.take()
		h.frag(1, 1, 10, 1950) // ten in a submessage, the last one short
		h.frag(1, 11, 10, 1950)
		h.received(1)
		h.frag(2, 2, 1, 250) // backwards, twice
		h.frag(2, 2, 1, 250)
		h.frag(2, 3, 1, 250)
		h.frag(2, 1, 1, 250)
		h.received(1, 2)
		h.frag(3, 1, 1, 250) // another size, then a whole DATA
		h.frag(3, 2, 2, 260)
		h.data(3)
		h.received(1, 2, 3)
		h.frag(4, 1, 1, 250) // out of order with whole ones
		h.data(5)
		h.frag(4, 2, 2, 250)
		h.received(1, 2, 3, 4, 5)
		if n := h.p.Stats().Reassembly; n != 0 {
			t.Errorf("%d bytes held", n)
		}
	})
}

func TestAsksForFragments(t *testing.T) {
	byHand(t, wire.VendorCyclone, Volatile, reliable(Volatile, 0), func(h *handWriter) {
		h.heartbeat(1, 0, false)
		h.take()
		h.frag(1, 1, 1, 2000)
		h.frag(1, 4, 1, 2000)
		h.heartbeat(1, 1, false)
		h.expect("below the highest seen at once, the rest may be on its way", "ack 1 final; frags of 1: [2 3]")
		h.heartbeat(1, 1, false)
		h.expect("not again at once", "ack 1 final")
		time.Sleep(65 * time.Millisecond)
		h.expect("in silence all of them", "frags of 1: 2..20")
		h.frag(1, 2, 3, 2000)
		h.expect("some came, the rest is on its way", "")
		h.frag(1, 5, 16, 2000)
		h.received(1)
		h.expect("acknowledged at once", "ack 2 final")
	})
}

// Cyclone DDS sends the first fragment of a sample that is asked for whole, and the others when asked for by number.
func TestPullsFragments(t *testing.T) {
	byHand(t, wire.VendorCyclone, TransientLocal, reliable(TransientLocal, 0), func(h *handWriter) {
		h.heartbeat(1, 1, false)
		time.Sleep(15 * time.Millisecond)
		h.take()
		h.frag(1, 1, 1, 60_000)
		h.heartbeat(1, 1, false)
		time.Sleep(25 * time.Millisecond)
		h.expect("the next 256", "ack 1 final; frags of 1: 2..257")
		h.frag(1, 2, 256, 60_000)
		h.expect("and the next at once", "frags of 1: 258..513")
		h.frag(1, 258, 256, 60_000)
		h.expect("and the last", "frags of 1: 514..600")
		h.frag(1, 514, 87, 60_000)
		h.received(1)
	})
}

// When the last one of those asked for has come, the writer is through: what is missing then is lost again.
func TestAsksAgainForLostRepairs(t *testing.T) {
	byHand(t, wire.VendorCyclone, TransientLocal, reliable(TransientLocal, 0), func(h *handWriter) {
		h.heartbeat(1, 1, false)
		time.Sleep(15 * time.Millisecond)
		h.take()
		h.frag(1, 1, 1, 60_000)
		h.heartbeat(1, 1, false)
		time.Sleep(25 * time.Millisecond)
		h.expect("the next 256", "ack 1 final; frags of 1: 2..257")
		h.frag(1, 2, 98, 60_000)
		h.frag(1, 101, 156, 60_000)
		h.expect("the last one is on its way", "")
		h.frag(1, 257, 1, 60_000)
		h.expect("with what was lost", "frags of 1: 100..355")
	})
}

// A Fast DDS writer does not repeat its HEARTBEAT for three seconds: it is asked once after silence.
// What does not come is asked for again when the writer should have answered, by how long it took before.
func TestAsksAgainInTime(t *testing.T) {
	byHand(t, wire.VendorCyclone, TransientLocal, reliable(TransientLocal, 0), func(h *handWriter) {
		h.heartbeat(1, 0, false)
		h.take()
		h.frag(1, 1, 1, 1000)
		h.heartbeat(1, 1, true)
		time.Sleep(25 * time.Millisecond)
		h.expect("the rest", "frags of 1: 2..10")
		time.Sleep(50 * time.Millisecond)
		h.expect("nobody knows this writer yet", "")
		time.Sleep(6 * time.Millisecond)
		h.expect("again", "frags of 1: 2..10")
		time.Sleep(2 * time.Millisecond)
		h.frag(1, 2, 5, 1000)
		time.Sleep(10 * time.Millisecond)
		h.expect("the others may follow", "")
		time.Sleep(12 * time.Millisecond)
		h.expect("they do not, and the writer is a quick one", "frags of 1: [7 8 9 10]")
	})
}

// In silence within a sample its holes are asked for first: its rest may still be on the way.
func TestHolesBeforeTheRest(t *testing.T) {
	byHand(t, wire.VendorFast, Volatile, reliable(Volatile, 0), func(h *handWriter) {
		h.heartbeat(1, 0, false)
		h.take()
		h.frag(1, 1, 2, 1000)
		h.frag(1, 5, 1, 1000)
		time.Sleep(partDelay - time.Millisecond)
		h.expect("it goes on", "")
		time.Sleep(2 * time.Millisecond)
		h.expect("the holes", "frags of 1: [3 4]")
		h.frag(1, 3, 2, 1000)
		time.Sleep(fragDelay - time.Millisecond)
		h.expect("they came", "")
		time.Sleep(2 * time.Millisecond)
		h.expect("the rest", "frags of 1: [6 7 8 9 10]")
	})
}

// A request that was cut short goes on when what was asked for is here, without a HEARTBEAT.
func TestAsksOn(t *testing.T) {
	byHand(t, wire.VendorCyclone, Volatile, reliable(Volatile, 0), func(h *handWriter) {
		h.p.askLimit = 10 * (100 + socketOverhead)
		h.heartbeat(1, 0, false)
		h.take()
		h.frag(1, 1, 1, 3000)
		h.frag(1, 30, 1, 3000)
		h.heartbeat(1, 1, false)
		h.expect("as many as the socket takes", "ack 1 final; frags of 1: 2..11")
		h.frag(1, 2, 10, 3000)
		h.expect("the next", "frags of 1: 12..21")
		h.frag(1, 12, 10, 3000)
		h.expect("the last", "frags of 1: 22..29")
		h.frag(1, 22, 8, 3000)
		h.received(1)
	})
}

// On one host nothing is overtaken: a hole is asked for soon, also one within a sample when the next one has begun.
func TestHoleOnThisHost(t *testing.T) {
	byHand(t, wire.VendorFast, Volatile, reliable(Volatile, 0), func(h *handWriter) {
		h.p.lock()
		for _, q := range h.p.peers {
			q.local = true
		}
		h.p.unlock()
		h.heartbeat(1, 0, false)
		h.take()
		h.data(1, 3)
		h.expect("not at once", "")
		time.Sleep(localHole + time.Millisecond)
		h.expect("soon", "ack 2 -2")
		h.data(2)
		h.take()
		h.frag(4, 1, 1, 300)
		time.Sleep(2 * localHole)
		h.expect("the rest is on its way", "")
		h.frag(5, 1, 3, 300)
		time.Sleep(localHole + time.Millisecond)
		h.expect("the writer has gone on", "frags of 4: [2 3]")
	})
}

func TestProbesFast(t *testing.T) {
	byHand(t, wire.VendorFast, Volatile, reliable(Volatile, 0), func(h *handWriter) {
		h.heartbeat(1, 0, false)
		h.take()
		for seq := range int64(10) {
			h.data(seq + 1)
			time.Sleep(time.Millisecond)
		}
		h.expect("while data comes", "")
		time.Sleep(200 * time.Millisecond)
		h.expect("after silence, once", "ack 0")
		time.Sleep(10 * time.Second)
		h.expect("again while no HEARTBEAT answers", "ack 0; ack 0; ack 0")
		h.data(11)
		time.Sleep(1100 * time.Millisecond)
		h.expect("after more data", "ack 0")
		h.heartbeat(1, 11, true)
		time.Sleep(10 * time.Second)
		h.expect("answered", "")
		for seq := range int64(30) {
			h.data(seq + 12)
			time.Sleep(100 * time.Millisecond)
		}
		if n := strings.Count(h.take(), "ack"); n > 15 {
			t.Errorf("a writer at a steady 10 Hz is asked %d times in 30 samples", n)
		}
	})
}

// The end of an instance is no sample, and no loss either.
func TestDisposeOnUserTopic(t *testing.T) {
	for _, q := range []QoS{reliable(Volatile, 0), {}} {
		byHand(t, wire.VendorCyclone, Volatile, q, func(h *handWriter) {
			h.heartbeat(1, 0, false)
			h.data(1)
			h.send(func(b []byte, w wire.EntityID) []byte {
				return wire.AppendData(b, &wire.Data{Writer: w, Seq: 2, InlineQoS: wire.InlineQoS{Status: 3}})
			})
			h.send(func(b []byte, w wire.EntityID) []byte {
				return wire.AppendData(b, &wire.Data{Writer: w, Seq: 3, Key: true, Payload: payload(8, 1)})
			})
			h.data(4)
			h.received(1, 4)
			if st := h.r.Stats(); st.Lost != 0 || st.Received != 2 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestBestEffortFragments(t *testing.T) {
	byHand(t, wire.VendorFast, Volatile, QoS{}, func(h *handWriter) {
		h.data(1)
		h.frag(2, 1, 1, 250) // overtaken by 3
		h.frag(3, 1, 3, 250)
		h.frag(2, 2, 2, 250)
		h.data(4, 3)
		h.received(1, 3, 4)
		for seq := int64(10); seq < 20; seq++ {
			h.frag(seq, 1, 1, 250)
		}
		h.frag(19, 2, 2, 250)
		h.frag(20, 1, 1, 250)
		h.received(1, 3, 4, 19)
		time.Sleep(2 * time.Second)
		if st, n := h.r.Stats(), h.p.Stats().Reassembly; st.Lost != 15 || n != 0 {
			t.Errorf("%+v, %d bytes held", st, n)
		}
		h.expect("best effort says nothing", "")
	})
}

// Goodbyes come as a key payload from Cyclone DDS and as a key hash alone from Fast DDS.
func TestGoodbyeForms(t *testing.T) {
	for _, form := range []string{"payload", "hash"} {
		byHand(t, wire.VendorFast, Volatile, reliable(Volatile, 0), func(h *handWriter) {
			peer := wire.Prefix{1, 2, 3}
			bye := func(writer wire.EntityID, seq int64, g GUID) {
				d := wire.Data{Writer: writer, Seq: seq, InlineQoS: wire.InlineQoS{Status: 3}}
				if form == "payload" {
					d.Key, d.Payload = true, wire.AppendKey(nil, g)
				} else {
					d.InlineQoS.HasKeyHash, d.InlineQoS.KeyHash = true, g
				}
				h.send(func(b []byte, _ wire.EntityID) []byte { return wire.AppendData(b, &d) })
			}
			bye(wire.EntityPubWriter, 2, wire.MakeGUID(peer, wire.EntityID{0, 0, 1, wire.KindWriterKeyless}))
			if n := len(h.p.Endpoints()); n != 1 {
				t.Errorf("%s: %d endpoints after the goodbye", form, n)
			}
			bye(wire.EntitySPDPWriter, 2, wire.MakeGUID(peer, wire.EntityParticipant))
			if n := len(h.p.Peers()); n != 0 {
				t.Errorf("%s: %d peers after the goodbye", form, n)
			}
		})
	}
}

// A hole is asked for even while data goes on to come.
func TestHoleInAStream(t *testing.T) {
	byHand(t, wire.VendorFast, Volatile, reliable(Volatile, 0), func(h *handWriter) {
		h.heartbeat(1, 0, false)
		h.take()
		h.data(1)
		for seq := int64(3); seq < 103; seq++ {
			h.data(seq)
			time.Sleep(time.Millisecond)
		}
		if s := h.take(); !strings.HasPrefix(s, "ack 2 -2") {
			t.Errorf("the reader says %q", s)
		}
		h.data(2)
		if len(h.got) != 102 {
			t.Errorf("%d received", len(h.got))
		}
	})
}
