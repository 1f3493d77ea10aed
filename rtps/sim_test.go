package rtps

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/internal/netsim"
	"github.com/gobag/gobag/rtps/wire"
)

// The tests of this file run in simulated time over a simulated network.

// sim is a network with two hosts.
type sim struct {
	t    *testing.T
	net  *netsim.Network
	a, b *Participant
}

func newSim(t *testing.T, f netsim.Faults) *sim {
	t.Helper()
	s := &sim{t: t, net: netsim.New(f)}
	s.a, s.b = s.join("10.0.0.1", Config{}), s.join("10.0.0.2", Config{})
	return s
}

func (s *sim) join(addr string, cfg Config) *Participant {
	s.t.Helper()
	cfg.Transport = s.net.Host(netip.MustParseAddr(addr))
	p, err := NewParticipant(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *sim) close() {
	s.a.Close()
	s.b.Close()
	s.net.Close()
}

func (s *sim) reader(p *Participant, q QoS, c *collector) *Reader {
	s.t.Helper()
	r, err := p.NewReader(ReaderConfig{Topic: topic, Type: typ, QoS: q, Handler: c.handle})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *sim) writer(p *Participant, q QoS) *Writer {
	s.t.Helper()
	w, err := p.NewWriter(WriterConfig{Topic: topic, Type: typ, QoS: q})
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

// until waits in simulated time.
func until(t *testing.T, what string, limit time.Duration, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(began)
}

func (s *sim) write(w *Writer, n, size int, gap time.Duration) [][]byte {
	s.t.Helper()
	var sent [][]byte
	for i := range n {
		b := payload(size, i)
		sent = append(sent, b)
		if seq, err := w.Write(b, time.Now().UnixNano()); err != nil || seq != int64(i+1) {
			s.t.Fatalf("write %d: sequence number %d, %v", i, seq, err)
		}
		time.Sleep(gap)
	}
	return sent
}

// checkAll wants every sample, in order, once, unchanged.
func checkAll(t *testing.T, c *collector, sent [][]byte) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seqs) != len(sent) {
		t.Fatalf("%d samples received, %d sent", len(c.seqs), len(sent))
	}
	for i, seq := range c.seqs {
		if seq != int64(i+1) {
			t.Fatalf("sample %d has sequence number %d", i, seq)
		}
		if !bytes.Equal(c.data[i], sent[i]) {
			t.Fatalf("sample %d differs", i)
		}
	}
}

func TestReliableUnderLoss(t *testing.T) {
	for _, loss := range []float64{0, 0.01, 0.05, 0.1, 0.3} {
		for _, size := range []int{40, 1344, 5000, 300_000} {
			t.Run(fmt.Sprintf("%v%%/%d", 100*loss, size), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSim(t, netsim.Faults{Seed: uint64(size), Loss: loss, Duplicate: loss / 2, Reorder: loss, Delay: 200 * time.Microsecond, Jitter: time.Millisecond})
					defer s.close()
					c := newCollector()
					c.keep = true
					r := s.reader(s.a, reliable(Volatile, 0), c)
					w := s.writer(s.b, reliable(Volatile, 0))
					until(t, "match", 10*time.Second, func() bool { return w.Stats().Matched == 1 })
					sent := s.write(w, 2_000_000/size/10+20, size, 500*time.Microsecond)
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					if err := w.WaitAcked(ctx); err != nil {
						t.Fatal(err)
					}
					until(t, "delivery", time.Second, func() bool { return c.len() == len(sent) })
					checkAll(t, c, sent)
					if st := r.Stats(); st.Lost != 0 || st.Received != uint64(len(sent)) {
						t.Fatalf("%+v", st)
					}
					if st := w.Stats(); st.Dropped != 0 || st.Unacked != 0 {
						t.Fatalf("%+v", st)
					}
					if st := s.a.Stats(); st.Reassembly != 0 || st.Malformed != 0 {
						t.Fatalf("%+v", st)
					}
				})
			})
		}
	}
}

func TestBestEffortCountsLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{})
		defer s.close()
		c := newCollector()
		r := s.reader(s.a, QoS{}, c)
		w := s.writer(s.b, QoS{})
		until(t, "match", time.Second, func() bool { return w.Stats().Matched == 1 && len(r.Stats().Writers) == 1 })
		s.net.SetFaults(netsim.Faults{Seed: 3, Loss: 0.2, Duplicate: 0.1, Reorder: 0.1})
		s.write(w, 1000, 3000, time.Millisecond)
		time.Sleep(time.Second)
		st := r.Stats()
		ws := st.Writers[0]
		if st.Lost == 0 || st.Received+st.Lost != uint64(ws.Last-ws.First+1) || ws.Received != st.Received {
			t.Fatalf("%+v", st)
		}
		for seqs, i := c.list(), 1; i < len(seqs); i++ {
			if seqs[i] <= seqs[i-1] {
				t.Fatalf("%d after %d", seqs[i], seqs[i-1])
			}
		}
		if n := s.a.Stats().Reassembly; n != 0 {
			t.Fatalf("%d bytes of incomplete samples kept", n)
		}
	})
}

func TestTransientLocalHistory(t *testing.T) {
	for _, size := range []int{50, 200_000} {
		for _, loss := range []float64{0, 0.2} {
			t.Run(fmt.Sprintf("%d/%v", size, loss), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSim(t, netsim.Faults{Seed: 9, Loss: loss})
					defer s.close()
					w := s.writer(s.b, reliable(TransientLocal, 3))
					s.write(w, 7, size, time.Millisecond)
					time.Sleep(2 * time.Second)
					c := newCollector()
					s.reader(s.a, reliable(TransientLocal, 10), c)
					if d := until(t, "history", 5*time.Second, func() bool { return c.len() >= 3 }); loss == 0 && d > 200*time.Millisecond {
						t.Errorf("took %v", d)
					}
					w.Write(payload(size, 8), 1)
					until(t, "the next one", 5*time.Second, func() bool { return c.len() >= 4 })
					time.Sleep(time.Second)
					if got := fmt.Sprint(c.list()); got != "[5 6 7 8]" {
						t.Fatalf("received %s, the last three and the new one expected", got)
					}
					v := newCollector()
					s.reader(s.a, reliable(Volatile, 10), v)
					time.Sleep(time.Second)
					w.Write(payload(size, 9), 1)
					until(t, "a volatile reader gets the next one", 5*time.Second, func() bool { return v.len() >= 1 })
					time.Sleep(time.Second)
					if got := fmt.Sprint(v.list()); got != "[9]" {
						t.Fatalf("volatile reader received %s, only the new one expected", got)
					}
				})
			})
		}
	}
}

// A reader that comes while a volatile writer publishes gets everything written after the match.
func TestJoinWhilePublishing(t *testing.T) {
	for _, loss := range []float64{0, 0.1} {
		synctest.Test(t, func(t *testing.T) {
			s := newSim(t, netsim.Faults{Seed: 5, Loss: loss, Delay: 2 * time.Millisecond})
			defer s.close()
			w := s.writer(s.b, reliable(Volatile, 0))
			stop := make(chan struct{})
			var wg sync.WaitGroup
			var matchedAt int64
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					seq, err := w.Write(payload(2000, i), 1)
					if err != nil {
						t.Error(err)
					}
					if matchedAt == 0 && w.Stats().Matched == 1 {
						matchedAt = seq + 1
					}
					time.Sleep(200 * time.Microsecond)
				}
			})
			time.Sleep(3 * time.Second)
			c := newCollector()
			r := s.reader(s.a, reliable(Volatile, 0), c)
			time.Sleep(2 * time.Second)
			close(stop)
			wg.Wait()
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := w.WaitAcked(ctx); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			st, seqs := r.Stats(), c.list()
			if seqs[0] > matchedAt || st.Lost != 0 {
				t.Fatalf("matched at %d, first sample %d, %d lost", matchedAt, seqs[0], st.Lost)
			}
			for i, seq := range seqs {
				if seq != seqs[0]+int64(i) {
					t.Fatalf("%d after %d", seq, seqs[i-1])
				}
			}
			if last := int64(w.Stats().Sent); seqs[len(seqs)-1] != last {
				t.Fatalf("last received %d, last sent %d", seqs[len(seqs)-1], last)
			}
		})
	}
}

// What a rule loses is made up for within three seconds.
func TestRecovery(t *testing.T) {
	user, any := netsim.User, netsim.Any
	for name, drop := range map[string]func(*netsim.Datagram) bool{
		"first HEARTBEATs":       netsim.DropNth(user(netsim.Heartbeat), 1, 2, 3),
		"first ACKNACKs":         netsim.DropNth(user(netsim.AckNack), 1, 2, 3),
		"first DATA":             netsim.DropNth(user(netsim.Data), 1, 2, 3),
		"last DATA":              netsim.DropNth(user(netsim.Data), 20),
		"every second HEARTBEAT": netsim.DropEvery(user(netsim.Heartbeat), 2),
		"every second ACKNACK":   netsim.DropEvery(user(netsim.AckNack), 2),
		"first discovery samples": netsim.DropNth(func(s *netsim.Submessage) bool {
			return s.Kind == netsim.Data && s.Writer.Builtin() && s.Writer[1] != 1
		}, 1, 2, 3, 4),
		"announcements": netsim.DropNth(func(s *netsim.Submessage) bool {
			return s.Kind == netsim.Data && s.Writer[1] == 1 && s.Writer.Builtin()
		}, 1, 2, 3, 4, 5, 6),
		"first of everything": netsim.DropNth(any(netsim.Data, netsim.Heartbeat, netsim.AckNack), 1, 2, 3, 4, 5, 6, 7, 8),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(t, netsim.Faults{Drop: drop})
				defer s.close()
				c := newCollector()
				c.keep = true
				w := s.writer(s.b, reliable(TransientLocal, 0))
				s.reader(s.a, reliable(TransientLocal, 0), c)
				began := time.Now()
				sent := s.write(w, 20, 100, time.Millisecond)
				until(t, "all samples", 3*time.Second, func() bool { return c.len() == 20 })
				checkAll(t, c, sent)
				t.Logf("complete after %v", time.Since(began))
				until(t, "all acknowledged", 3*time.Second, func() bool { return w.Stats().Unacked == 0 })
			})
		})
	}
}

// A writer that keeps less than the reader is behind says what is gone, and the reader counts exactly that.
func TestOverrunIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{})
		defer s.close()
		c := newCollector()
		r := s.reader(s.a, reliable(Volatile, 10), c)
		q := reliable(Volatile, 10)
		q.MaxBlocking = time.Millisecond
		w, err := s.b.NewWriter(WriterConfig{Topic: topic, Type: typ, QoS: q, Window: 20_000})
		if err != nil {
			t.Fatal(err)
		}
		until(t, "match", time.Second, func() bool { return w.Stats().Matched == 1 })
		s.write(w, 10, 1000, time.Millisecond)
		until(t, "the first ten", time.Second, func() bool { return c.len() == 10 && w.Stats().Unacked == 0 })
		s.net.SetFaults(netsim.Faults{Loss: 1})
		for i := range 100 {
			w.Write(payload(1000, i), 1)
		}
		s.net.SetFaults(netsim.Faults{})
		w.Write(payload(1000, 0), 1)
		until(t, "all acknowledged", 3*time.Second, func() bool { return w.Stats().Unacked == 0 })
		time.Sleep(100 * time.Millisecond)
		st, ws := r.Stats(), w.Stats()
		if ws.Dropped == 0 || st.Lost != ws.Dropped || st.Received+st.Lost != ws.Sent {
			t.Fatalf("reader %+v\nwriter %+v", st, ws)
		}
	})
}

// A reader that does not react holds the writer up for its blocking time, then for a while, then no more.
func TestSilentReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{})
		defer s.close()
		c := newCollector()
		s.reader(s.a, reliable(Volatile, 0), c)
		q := reliable(Volatile, 0)
		q.MaxBlocking = 50 * time.Millisecond
		w, err := s.b.NewWriter(WriterConfig{Topic: topic, Type: typ, QoS: q, Window: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		until(t, "match", time.Second, func() bool { return w.Stats().Matched == 1 })
		s.write(w, 3, 1000, 10*time.Millisecond)
		s.net.SetFaults(netsim.Faults{Loss: 1})
		began := time.Now()
		for i := range 500 {
			at := time.Now()
			w.Write(payload(1000, i), 1)
			if d := time.Since(at); d > 51*time.Millisecond {
				t.Fatalf("write %d took %v", i, d)
			}
		}
		if d := time.Since(began); d > 5*time.Second {
			t.Fatalf("500 writes took %v", d)
		}
		s.net.SetFaults(netsim.Faults{})
		w.Write(payload(1000, 0), 1)
		until(t, "reader is back", 3*time.Second, func() bool {
			seqs := c.list()
			return seqs[len(seqs)-1] == int64(w.Stats().Sent)
		})
		if st := w.Stats(); st.Dropped < 480 {
			t.Fatalf("%+v", st)
		}
	})
}

func TestGoodbyeAndLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{})
		defer s.close()
		b2 := s.join("10.0.0.3", Config{Lease: 5 * time.Second})
		w1, w2 := s.writer(s.b, reliable(Volatile, 0)), s.writer(b2, reliable(Volatile, 0))
		c := newCollector()
		r := s.reader(s.a, reliable(Volatile, 0), c)
		until(t, "match", time.Second, func() bool { return w1.Stats().Matched == 1 && w2.Stats().Matched == 1 })
		remote := func() int {
			n := 0
			for _, e := range s.a.Endpoints() {
				if !e.Local {
					n++
				}
			}
			return n
		}
		changed := s.a.Changed()
		w1.Close()
		until(t, "endpoint goodbye", 100*time.Millisecond, func() bool { return remote() == 1 })
		synctest.Wait() // it is told after it is done
		select {
		case <-changed:
		default:
			t.Error("change not told")
		}
		s.b.Close()
		until(t, "participant goodbye", 100*time.Millisecond, func() bool { return len(s.a.Peers()) == 1 })

		s.net.SetFaults(netsim.Faults{Loss: 1}) // as if the other was killed
		d := until(t, "lease", 6*time.Second, func() bool { return len(s.a.Peers()) == 0 })
		if d < 2*time.Second || remote() != 0 {
			t.Fatalf("lease of 5s ended after %v, %d endpoints left", d, remote())
		}
		for _, ws := range r.Stats().Writers {
			if ws.Matched {
				t.Fatalf("%+v", ws)
			}
		}
		s.net.SetFaults(netsim.Faults{})
		until(t, "found again", 4*time.Second, func() bool { return len(s.a.Peers()) == 1 && remote() == 1 })
		b2.Close()
	})
}

// What is behind a hole when its writer goes is delivered, and the hole counted.
func TestHolesOfGoneWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{})
		defer s.close()
		c := newCollector()
		r := s.reader(s.a, reliable(Volatile, 0), c)
		w := s.writer(s.b, reliable(Volatile, 0))
		until(t, "match", time.Second, func() bool { return w.Stats().Matched == 1 })
		s.write(w, 5, 100, 5*time.Millisecond)
		for i := range 10 { // only the seventh and the tenth arrive
			lost := i != 1 && i != 4
			s.net.SetFaults(netsim.Faults{Drop: func(d *netsim.Datagram) bool {
				return lost && d.Has(netsim.User(netsim.Data)) || d.Has(netsim.User(netsim.AckNack))
			}})
			w.Write(payload(100, i), 1)
			time.Sleep(time.Millisecond)
		}
		s.net.SetFaults(netsim.Faults{Drop: func(d *netsim.Datagram) bool { return d.Has(netsim.User(netsim.Data, netsim.AckNack)) }})
		time.Sleep(time.Second) // HEARTBEATs say that there are 15
		s.b.Close()
		until(t, "goodbye", 2*time.Second, func() bool { return len(s.a.Peers()) == 0 })
		st := r.Stats()
		if got := fmt.Sprint(c.list()); got != "[1 2 3 4 5 7 10]" || st.Lost != 8 || st.Received != 7 {
			t.Fatalf("received %s, stats %+v", got, st)
		}
	})
}

func TestLifespan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{})
		defer s.close()
		q := reliable(TransientLocal, 10)
		q.Lifespan = time.Second
		w := s.writer(s.b, q)
		s.write(w, 3, 100, 400*time.Millisecond) // at 0, 0.4 and 0.8 s; it is 1.2 s now
		c := newCollector()
		s.reader(s.a, reliable(TransientLocal, 10), c)
		time.Sleep(time.Second)
		if got := fmt.Sprint(c.list()); got != "[2 3]" {
			t.Fatalf("received %s, what is older than a second is not wanted any more", got)
		}
	})
}

// Participants of another domain, with a domain tag, or that send back our own announcement are not peers.
func TestStrangersAreIgnored(t *testing.T) {
	link := &silent{}
	p, err := NewParticipant(Config{Transport: link, Domain: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	announce := func(prefix wire.Prefix, change func(*wire.ParticipantData)) int {
		a := []wire.Locator{wire.LocatorFrom(netip.MustParseAddrPort("10.0.0.9:7410"))}
		d := wire.ParticipantData{GUID: wire.MakeGUID(prefix, wire.EntityParticipant), DomainID: 7, MetaUnicast: a, DefaultUnicast: a}
		change(&d)
		b := wire.AppendHeader(nil, wire.Header{Prefix: prefix})
		link.receive([][]byte{wire.AppendData(b, &wire.Data{Writer: wire.EntitySPDPWriter, Seq: 1, Payload: d.Append(nil)})})
		return len(p.Peers())
	}
	for i, change := range []func(*wire.ParticipantData){
		func(d *wire.ParticipantData) { d.DomainID = 8 },
		func(d *wire.ParticipantData) { d.DomainTag = "x" },
		func(d *wire.ParticipantData) { d.GUID = wire.MakeGUID(wire.Prefix{9, 9}, wire.EntityParticipant) },
	} {
		if n := announce(wire.Prefix{1, byte(i)}, change); n != 0 {
			t.Errorf("stranger %d is taken for a peer", i)
		}
	}
	if n := announce(p.prefix, func(*wire.ParticipantData) {}); n != 0 {
		t.Error("we are our own peer")
	}
	if n := announce(wire.Prefix{2}, func(d *wire.ParticipantData) { d.DomainID = -1 }); n != 1 {
		t.Error("a participant that tells no domain is ignored")
	}
	shm := []wire.Locator{{Kind: wire.LocatorSHM, Port: 7413}}
	announce(wire.Prefix{3}, func(d *wire.ParticipantData) { d.MetaUnicast, d.DefaultUnicast = shm, shm })
	for _, q := range p.Peers() {
		if q.Prefix == (wire.Prefix{3}) && (q.Reachable || q.Reason != "no UDP unicast locator for discovery (shared memory port 7413)") {
			t.Errorf("%+v", q)
		}
		if q.Prefix == (wire.Prefix{2}) && (!q.Reachable || q.Reason != "") {
			t.Errorf("%+v", q)
		}
	}
}

// A participant that stood still for longer than the leases keeps its peers and tells them that it is back.
func TestResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{})
		defer s.close()
		c := newCollector()
		r := s.reader(s.a, reliable(Volatile, 0), c)
		w := s.writer(s.b, reliable(Volatile, 0))
		until(t, "match", time.Second, func() bool { return w.Stats().Matched == 1 })
		s.write(w, 10, 100, time.Millisecond)
		until(t, "samples", time.Second, func() bool { return c.len() == 10 })
		s.b.lock() // b has given a up, as after a lease that expired
		for _, q := range s.b.peers {
			s.b.dropPeer(q, "test")
		}
		s.b.unlock()
		w.Write(payload(100, 11), 1) // into the void
		s.a.lock()
		for _, q := range s.a.peers {
			q.seen = 1
		}
		s.a.resumed()
		s.a.unlock()
		until(t, "match again", time.Second, func() bool { return w.Stats().Matched == 1 })
		for i := range 5 {
			w.Write(payload(100, 12+i), 1)
			time.Sleep(time.Millisecond)
		}
		until(t, "the rest", 3*time.Second, func() bool { return c.len() == 15 })
		if st := r.Stats(); st.Received != 15 || st.Lost != 1 || st.Writers[0].Last != 16 {
			t.Fatalf("%+v", st)
		}
	})
}

// A peer that gives us up just after we are back, since the lease was as long as we stood still, finds us again soon.
func TestResumedAtTheEndOfTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{})
		defer s.close()
		c := newCollector()
		s.reader(s.a, reliable(Volatile, 0), c)
		w := s.writer(s.b, reliable(Volatile, 0))
		until(t, "match", time.Second, func() bool { return w.Stats().Matched == 1 })
		time.Sleep(7 * time.Second) // the usual announcements are three seconds apart
		s.a.lock()
		s.a.resumed()
		s.a.unlock()
		time.Sleep(10 * time.Millisecond)
		s.b.lock()
		for _, q := range s.b.peers {
			s.b.dropPeer(q, "test")
		}
		s.b.unlock()
		until(t, "match again", 2*quickAnnouncing, func() bool { return w.Stats().Matched == 1 })
	})
}

// Endpoints that are made in a row are announced together, a few in a datagram, with and without losses; and those that go
// are withdrawn the same way.
func TestManyEndpointsAreAnnouncedTogether(t *testing.T) {
	for _, loss := range []float64{0, 0.1} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const readers = 400
				var datagrams, beats atomic.Int64
				s := newSim(t, netsim.Faults{Seed: 3, Loss: loss, Delay: 100 * time.Microsecond, Tap: func(d *netsim.Datagram, _ bool) {
					if d.Has(func(m *netsim.Submessage) bool { return m.Writer == wire.EntitySubWriter && m.Kind == netsim.Data }) {
						datagrams.Add(1)
					}
					if d.Has(func(m *netsim.Submessage) bool { return m.Writer == wire.EntitySubWriter && m.Kind == netsim.Heartbeat }) {
						beats.Add(1)
					}
				}})
				defer s.close()
				time.Sleep(time.Second)
				datagrams.Store(0)
				beats.Store(0)
				var all []*Reader
				for i := range readers {
					r, err := s.a.NewReader(ReaderConfig{Topic: fmt.Sprint("rt/many_", i), Type: typ, Handler: func(s Sample) { s.Release() }})
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, r)
				}
				known := func() int {
					return len(s.b.Select(func(e *Endpoint) bool { return !e.Local && !e.Writer }))
				}
				time.Sleep(time.Second)
				if n := known(); n != readers {
					t.Errorf("%d of %d readers are known", n, readers)
				}
				if d, h := datagrams.Load(), beats.Load(); loss == 0 && (d > readers/2 || h > readers/8) {
					t.Errorf("%d readers took %d datagrams and %d HEARTBEATs", readers, d, h)
				}
				for _, r := range all {
					r.Close()
				}
				time.Sleep(time.Second)
				if n := known(); n != 0 {
					t.Errorf("%d readers that are gone are still known", n)
				}
			})
		})
	}
}
