package rtps

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/internal/netsim"
	"github.com/gobag/gobag/rtps/wire"
)

// tap looks at what goes over a simulated network.
type tap struct {
	mu   sync.Mutex
	list []netsim.Submessage // those of user endpoints
}

func (x *tap) see(d *netsim.Datagram, _ bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range d.Submessages {
		if !s.Writer.Builtin() {
			x.list = append(x.list, s)
		}
	}
}

func (x *tap) count(match func(*netsim.Submessage) bool) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.list {
		if match(&x.list[i]) {
			n++
		}
	}
	return n
}

// hasMark is the Accept of the tests.
func hasMark(e Endpoint, p Peer) bool { return string(e.UserData) == "mark" && p.UserData == "good" }

// A writer never sends a sample to a reader that it refuses, whatever order they are discovered in, however many readers
// the participant has and whatever gets lost; and the reader, which has matched the writer all the same, is content.
func TestRefusedReaderGetsNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		loss  float64
		first bool // the readers are there before the writer
		size  int
	}{
		{"readers first", 0, true, 40}, {"writer first", 0, false, 40}, {"loss", 0.2, false, 40}, {"loss, readers first", 0.2, true, 5000},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := new(tap)
				s := &sim{t: t, net: netsim.New(netsim.Faults{Seed: 7, Loss: c.loss, Delay: 200 * time.Microsecond, Tap: x.see})}
				s.a, s.b = s.join("10.0.0.1", Config{}), s.join("10.0.0.2", Config{UserData: []byte("good")})
				defer s.close()
				bad := s.join("10.0.0.3", Config{UserData: []byte("bad")})
				defer bad.Close()
				var w *Writer
				write := func() {
					t.Helper()
					var err error
					if w, err = s.a.NewWriter(WriterConfig{Topic: topic, Type: typ, QoS: reliable(TransientLocal, 5), Accept: hasMark}); err != nil {
						t.Fatal(err)
					}
					s.write(w, 20, c.size, time.Millisecond)
				}
				if !c.first {
					write()
				}
				var good []*collector
				var accepted []wire.EntityID
				refused := newCollector()
				reader := func(p *Participant, q QoS, mark string) {
					t.Helper()
					into := refused
					if p == s.b && mark == "mark" {
						into = newCollector()
						good = append(good, into)
					}
					r, err := p.NewReader(ReaderConfig{Topic: topic, Type: typ, QoS: q, UserData: []byte(mark), Handler: into.handle})
					if err != nil {
						t.Fatal(err)
					}
					if into != refused {
						accepted = append(accepted, r.entity)
					}
				}
				// Several in one participant: a DATA for all of them would reach the wrong ones too.
				reader(s.b, reliable(TransientLocal, 0), "")
				reader(s.b, reliable(TransientLocal, 0), "mark")
				reader(s.b, reliable(Volatile, 0), "other")
				reader(s.b, reliable(TransientLocal, 0), "mark")
				reader(s.b, QoS{}, "")
				reader(bad, reliable(TransientLocal, 0), "mark")
				if c.first {
					time.Sleep(2 * time.Second)
					write()
				}
				until(t, "match", 20*time.Second, func() bool { return w.Stats().Ready == 2 })
				before := 5 // of the history
				if c.first {
					before = 20
				}
				until(t, "history", 20*time.Second, func() bool { return good[0].len() >= before && good[1].len() >= before })
				for range 20 {
					if _, err := w.Write(payload(c.size, 1), time.Now().UnixNano()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(10 * time.Millisecond)
				}
				until(t, "delivery", 20*time.Second, func() bool { return good[0].len() == before+20 && good[1].len() == before+20 && w.Stats().Unacked == 0 })
				time.Sleep(10 * time.Second) // retries of whoever is not content
				if n := refused.len(); n != 0 {
					t.Errorf("%d samples reached readers that were refused", n)
				}
				if n := x.count(func(m *netsim.Submessage) bool {
					return (m.Kind == netsim.Data || m.Kind == netsim.DataFrag || m.Kind == netsim.Gap) && (m.Writer != w.entity || !slices.Contains(accepted, m.Reader))
				}); n != 0 {
					t.Errorf("%d submessages were for others than the two readers", n)
				}
				talk := x.count(netsim.User(netsim.AckNack, netsim.Heartbeat))
				time.Sleep(20 * time.Second)
				if n := x.count(netsim.User(netsim.AckNack, netsim.Heartbeat)) - talk; n != 0 {
					t.Errorf("%d ACKNACKs and HEARTBEATs in 20 s although all is said", n)
				}
				if st := w.Stats(); st.Matched != 2 || st.Dropped != 0 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// hushed is a transport without multicast of our own: what the participant says of itself goes out when the test says so.
type hushed struct{ Transport }

func (hushed) Announce(func(_, _ []netip.AddrPort) []byte) error { return nil }

// What a participant says of itself can change; a reader follows it both ways.
func TestAcceptIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sim{t: t, net: netsim.New(netsim.Faults{})}
		s.a = s.join("10.0.0.1", Config{})
		b, err := NewParticipant(Config{Transport: hushed{s.net.Host(netip.MustParseAddr("10.0.0.2"))}})
		if err != nil {
			t.Fatal(err)
		}
		s.b = b
		defer s.close()
		w, err := s.a.NewWriter(WriterConfig{Topic: topic, Type: typ, QoS: reliable(TransientLocal, 10), Accept: hasMark})
		if err != nil {
			t.Fatal(err)
		}
		c := newCollector()
		r, err := s.b.NewReader(ReaderConfig{Topic: topic, Type: typ, QoS: reliable(TransientLocal, 0), UserData: []byte("mark"), Handler: c.handle})
		if err != nil {
			t.Fatal(err)
		}
		announce := func(userData string) {
			s.b.lock()
			s.b.cfg.UserData = []byte(userData)
			s.b.announceToPeers()
			s.b.unlock()
			time.Sleep(100 * time.Millisecond)
		}
		refused := func() (n int) {
			s.a.lock()
			defer s.a.unlock()
			return len(w.refused)
		}
		for i, step := range []struct {
			userData string
			samples  int
		}{{"enclave=/;", 0}, {"good", 2}, {"bad", 2}, {"good", 4}} {
			announce(step.userData)
			if _, err := w.Write(payload(40, i), 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if c.len() != step.samples {
				t.Errorf("after %q: samples %v, %d expected", step.userData, c.list(), step.samples)
			}
			if want := map[bool]int{true: 0, false: 1}[step.userData == "good"]; refused() != want {
				t.Errorf("after %q: %d readers refused", step.userData, refused())
			}
		}
		announce("bad")
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		until(t, "the reader's end", time.Second, func() bool { return refused() == 0 })
	})
}

// A sample says which other sample it belongs to, whole or in fragments.
func TestRelated(t *testing.T) {
	for _, loss := range []float64{0, 0.1} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(t, netsim.Faults{Seed: 3, Loss: loss, Reorder: loss, Delay: time.Millisecond})
				defer s.close()
				var mu sync.Mutex
				var got, plain []Sample
				for _, related := range []bool{true, false} {
					_, err := s.b.NewReader(ReaderConfig{Topic: topic, Type: typ, QoS: reliable(Volatile, 0), Related: related, Handler: func(x Sample) {
						mu.Lock()
						defer mu.Unlock()
						x.Data = bytes.Clone(x.Data)
						if related {
							got = append(got, x)
						} else {
							plain = append(plain, x)
						}
					}})
					if err != nil {
						t.Fatal(err)
					}
				}
				w, err := s.a.NewWriter(WriterConfig{Topic: topic, Type: typ, QoS: reliable(Volatile, 0), Related: true})
				if err != nil {
					t.Fatal(err)
				}
				until(t, "match", 10*time.Second, func() bool { return w.Stats().Ready == 2 })
				sizes := []int{24, 1280, 1284, 1288, 1344, 1348, 200_000}
				var sent [][]byte
				for i, size := range sizes {
					b := payload(size, i)
					sent = append(sent, b)
					if _, err := w.WriteRelated(b, 1, SampleID{Writer: w.GUID(), Seq: int64(i) + 1<<33}); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := w.Write(payload(8, 0), 1); err != nil {
					t.Fatal(err)
				}
				count := func() int {
					mu.Lock()
					defer mu.Unlock()
					return len(got) + len(plain)
				}
				until(t, "delivery", 20*time.Second, func() bool { return count() == 2*len(sizes)+2 })
				for i, x := range got[:len(sizes)] {
					if x.Related == nil || *x.Related != (SampleID{w.GUID(), int64(i) + 1<<33}) || !bytes.Equal(x.Data, sent[i]) {
						t.Errorf("%d bytes: related to %+v", sizes[i], x.Related)
					}
				}
				if got[len(sizes)].Related != nil {
					t.Errorf("a plain sample is related to %v", *got[len(sizes)].Related)
				}
				for _, x := range plain {
					if x.Related != nil {
						t.Error("a reader that did not ask is told")
					}
				}
			})
		})
	}
	if _, err := new(Writer).WriteRelated([]byte{0, 1, 0, 0}, 1, SampleID{}); err == nil {
		t.Error("a writer not made for it took a related sample")
	}
}

// One fragment with inline parameters is enough, whichever comes first.
func TestRelatedInLaterFragment(t *testing.T) {
	for _, q := range []QoS{reliable(Volatile, 0), {}} {
		synctest.Test(t, func(t *testing.T) {
			s := newSim(t, netsim.Faults{})
			defer s.close()
			var got []Sample
			_, err := s.a.NewReader(ReaderConfig{Topic: topic, Type: typ, QoS: q, Related: true, Handler: func(x Sample) { got = append(got, x) }})
			if err != nil {
				t.Fatal(err)
			}
			w := s.writer(s.b, q)
			until(t, "match", time.Second, func() bool { return w.Stats().Matched == 1 })
			time.Sleep(100 * time.Millisecond)
			data := payload(2000, 1)
			related := wire.InlineQoS{HasRelated: true, RelatedGUID: w.GUID(), RelatedSeq: UnknownSeq}
			for _, f := range []uint32{2, 1} {
				d := wire.DataFrag{Writer: w.entity, Seq: 1, First: f, Count: 1, Size: 1000, SampleSize: 2000, Payload: data[1000*(f-1) : 1000*f]}
				if f == 1 {
					d.InlineQoS = related
				}
				s.a.receive([][]byte{wire.AppendDataFrag(wire.AppendHeader(nil, s.b.header), &d)})
			}
			time.Sleep(time.Second)
			if len(got) != 1 || got[0].Related == nil || *got[0].Related != (SampleID{w.GUID(), UnknownSeq}) {
				t.Errorf("%v: %d samples, none related to the right one", q.Reliability, len(got))
			}
		})
	}
}

// sendOnly keeps what was sent last.
type sendOnly struct {
	Transport
	last []byte
}

func (s *sendOnly) Send(_ netip.AddrPort, b []byte) error {
	s.last = bytes.Clone(b)
	return nil
}

// The bytes of a related sample: both parameters, as Fast DDS of every age reads them.
func TestRelatedBytes(t *testing.T) {
	out := new(sendOnly)
	p := &Participant{link: plainLink{out}, header: wire.Header{Version: wire.Protocol, Vendor: wire.VendorGobag}, pause: time.Sleep}
	var id GUID
	for i := range id {
		id[i] = byte(0xa0 + i)
	}
	e := emitter{p: p, msgs: make([]outMsg, 0, emitMsgs), bufs: make([][]byte, 0, emitParts), hdr: make([]byte, 0, emitHeaders)}
	s := wsample{seq: 3, data: []byte{0, 1, 0, 0, 1, 2, 3, 4, 5}, inline: &wire.InlineQoS{HasRelated: true, RelatedGUID: id, RelatedSeq: UnknownSeq}}
	e.sample(&target{fragment: 1284, reader: wire.EntityID{0, 0, 1, wire.KindReaderKeyless}, pacer: newPacer(new(peer))}, wire.EntityID{0, 0, 2, wire.KindWriterKeyless}, &s, nil)
	e.flush()
	want := []byte("\x15\x07\x5c\x00" + // DATA, little-endian, inline QoS and data
		"\x00\x00\x10\x00" + "\x00\x00\x01\x04" + "\x00\x00\x02\x03" + "\x00\x00\x00\x00\x03\x00\x00\x00" +
		"\x0f\x80\x18\x00" + "\xa0\xa1\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xab\xac\xad\xae\xaf" + "\xff\xff\xff\xff\x00\x00\x00\x00" +
		"\x83\x00\x18\x00" + "\xa0\xa1\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xab\xac\xad\xae\xaf" + "\xff\xff\xff\xff\x00\x00\x00\x00" +
		"\x01\x00\x00\x00" +
		"\x00\x01\x00\x00\x01\x02\x03\x04\x05\x00\x00\x00")
	sent := out.last
	if len(sent) < headerBytes+infoTSBytes || !bytes.Equal(sent[headerBytes+infoTSBytes:], want) {
		t.Errorf("sent\n%x, want a datagram that ends with\n%x", sent, want)
	}
}
