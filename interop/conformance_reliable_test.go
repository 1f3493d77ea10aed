//go:build linux

package interop_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/rtps/wire"
)

// eightMiB is three samples of 8 MiB.
var eightMiB = []lab.Topic{{Kind: lab.Blob, Name: "/large", Hz: 0.5, Count: 3, Size: 8 << 20}}

// largeSamples: samples of 8 MiB arrive whole within two seconds though one datagram in a hundred is lost. small gives the
// subscriber the receive buffer of a stock Linux.
func largeSamples(small bool) func(c *cell) {
	return func(c *cell) {
		c.tries(2, func() error {
			h := c.hosts(lab.LargeMTU)
			h.Relay.SetRule(lab.Lossy(1, 0.01))
			var subOptions []string
			if small {
				h.B.CycloneURI = strings.Replace(h.B.CycloneURI, "</Domain>",
					`<Internal><SocketReceiveBufferSize min="212992B" max="212992B"/></Internal></Domain>`, 1)
				if c.peer == lab.Fast || !c.sending {
					subOptions = []string{"--rcvbuf", "212992"}
				}
			}
			p, s := c.roles()
			calls := filepath.Join(c.TempDir(), "calls")
			sub, log := c.subscribe(h.B, s, eightMiB, subOptions...)
			pub := c.publish(h.A, p, eightMiB, "--wait", "1", "--linger", "10", "--calls", calls)
			if err := pub.Wait(2 * patience); err != nil {
				return err
			}
			time.Sleep(500 * time.Millisecond)
			c.complete(c.end(sub, log, eightMiB), lab.SentBy(pub))
			written, err := lab.ReadCalls(calls)
			c.must(err)
			arrivals, err := lab.ReadArrivals(log)
			c.must(err)
			worst := time.Duration(0)
			for i := range min(len(written), len(arrivals)) {
				worst = max(worst, time.Duration(arrivals[i].Mono-written[i].Mono))
			}
			c.Logf("slowest sample took %v", worst)
			if worst > 2*time.Second {
				return fmt.Errorf("a sample of 8 MiB took %v", worst)
			}
			c.note("8 MiB within %.1f s", (worst + 100*time.Millisecond).Truncate(100*time.Millisecond).Seconds())
			return nil
		})
	}
}

// lateLarge: a latched sample of 1 MB of a Cyclone writer comes on request only; the requests are as few as can be.
func lateLarge(c *cell) {
	c.only(lab.Cyclone, "Fast DDS sends all fragments when a sample is asked for")
	h := c.hosts(lab.LargeMTU)
	topics := []lab.Topic{{Kind: lab.Blob, Name: "/map", Count: 1, Size: 1_000_000, TransientLocal: true, Depth: 1, Early: true}}
	nacks, fragments := 0, 0
	h.Relay.SetTap(func(p *lab.Packet, _ lab.Fate) {
		if p.FromA {
			if s := p.Find("DATA_FRAG"); s != nil {
				fragments += s.Fragments
			}
		} else if p.Has("NACK_FRAG") {
			nacks++
		}
	})
	pub := c.publish(h.A, c.peer, topics, "--seconds", "60")
	_, err := pub.Await("start", 1, patience)
	c.must(err)
	time.Sleep(500 * time.Millisecond)
	sub, log := c.subscribe(h.B, lab.Own, topics, "--expect", "1", "--seconds", "10")
	c.must(sub.Wait(patience))
	if got := numbersOf(c.T, log, topics)["/map"]; len(got) != 1 {
		c.Fatalf("%d samples", len(got))
	}
	const least = 1_000_000/1344/256 + 1 // fragments, at most 256 a request
	c.note("%d NACK_FRAGs (%d at least), %d fragments", nacks, least, fragments)
	if nacks > 2*least || nacks == 0 {
		c.Errorf("%d NACK_FRAGs, %d at least are needed", nacks, least)
	}
}

// fragmentShapes: samples of a byte more or less than whole fragments, ten fragments to a submessage where the peer does
// that.
func fragmentShapes(c *cell) {
	h := c.hosts(c.mtu())
	// Bytes of a sample, encapsulation header included; 24 of them are not data.
	shapes := []int{1344, 1345, 1346, 2688, 2689, 13440, 13441, 13444, 14000, 65324, 65325, 65326, 130649, 200_003}
	var topics []lab.Topic
	for _, n := range shapes {
		topics = append(topics, lab.Topic{Kind: lab.Blob, Name: fmt.Sprintf("/bytes_%d", n), Hz: 20, Count: 10, Size: n - 24})
	}
	most, short := 0, 0
	h.Relay.SetTap(func(p *lab.Packet, _ lab.Fate) {
		if s := p.Find("DATA_FRAG"); s != nil && p.FromA {
			most = max(most, s.Fragments)
			if s.Size%1344 != 0 && s.Size%65324 != 0 {
				short++
			}
		}
	})
	numbers, pub, _ := c.transfer(h, topics)
	c.complete(numbers, lab.SentBy(pub))
	c.note("up to %d fragments to a submessage, %d short tails", most, short)
	want := 1
	if c.peer == lab.Cyclone && !c.sending {
		want = 10
	}
	if most != want || short == 0 {
		c.Errorf("up to %d fragments to a submessage (want %d), %d short tails: this does not show what it should", most, want, short)
	}
}

// disorder: datagrams that are repeated, overtaken and late change nothing in the output.
func disorder(c *cell) {
	h := c.hosts(lab.LargeMTU)
	r := rand.New(rand.NewPCG(3, 3))
	h.Relay.SetRule(func(p *lab.Packet) lab.Fate {
		var f lab.Fate
		if r.IntN(5) == 0 {
			f.Copies = 1 + r.IntN(2)
		}
		if r.IntN(4) == 0 {
			f.Delay = time.Duration(r.IntN(30)) * time.Millisecond
		}
		return f
	})
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 500, Count: 500}, {Kind: lab.Image, Name: "/image", Hz: 20, Count: 20, Size: 150_000},
		{Kind: lab.Imu, Name: "/best_effort", Hz: 500, Count: 500, BestEffort: true}}
	numbers, pub, _ := c.transfer(h, topics)
	sent := lab.SentBy(pub)
	if seq := lab.Sequence(numbers["/best_effort"]); len(numbers["/best_effort"]) < 100 || seq.Disorder > 0 {
		c.Errorf("best effort: %d arrived, %+v", len(numbers["/best_effort"]), seq)
	}
	delete(sent, "/best_effort")
	c.complete(numbers, sent)
}

// control: the loss of HEARTBEATs, of ACKNACKs and of endpoint announcements is made good within three seconds.
func control(c *cell) {
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 1000, Count: 50}}
	p, s := c.roles()
	sedp := func(p *lab.Packet) bool {
		return p.FindFrom("DATA", wire.EntityPubWriter) != nil || p.FindFrom("DATA", wire.EntitySubWriter) != nil
	}
	for _, x := range []struct {
		name string
		lose int
		is   func(*lab.Packet) bool
	}{
		{"HEARTBEATs", 3, func(p *lab.Packet) bool { return p.Has("HEARTBEAT") }},
		{"ACKNACKs", 3, func(p *lab.Packet) bool { return p.Has("ACKNACK") }},
		{"endpoint announcements", 3, sedp},
		{"participant announcements", 4, func(p *lab.Packet) bool { return p.FindFrom("DATA", wire.EntitySPDPWriter) != nil }},
	} {
		c.tries(2, func() error {
			h := c.hosts(lab.LargeMTU)
			lost, tail := 0, false
			h.Relay.SetRule(func(p *lab.Packet) lab.Fate {
				if !p.RTPS {
					return lab.Fate{}
				}
				if d := p.Find("DATA"); d != nil && p.FromA && d.Seq == 50 && !tail { // the last one
					tail = true
					return lab.Drop
				}
				// ACKNACKs and HEARTBEATs that matter are those around the samples: not those of the handshake only.
				if x.is(p) && lost < x.lose {
					lost++
					return lab.Drop
				}
				return lab.Fate{}
			})
			calls := filepath.Join(c.TempDir(), "calls")
			sub, log := c.subscribe(h.B, s, topics, "--expect", "50", "--seconds", "15")
			began := lab.Mono()
			pub := c.publish(h.A, p, topics, "--wait", "1", "--linger", "10", "--calls", calls)
			start, err := pub.Await("start", 1, patience)
			if err != nil {
				return err
			}
			if err := sub.Wait(patience); err != nil {
				return err
			}
			if err := pub.Wait(patience); err != nil {
				return err
			}
			arrivals, err := lab.ReadArrivals(log)
			c.must(err)
			written, err := lab.ReadCalls(calls)
			c.must(err)
			if len(arrivals) != 50 || lost < x.lose || !tail {
				return fmt.Errorf("%s: %d of 50 samples arrived, %d lost", x.name, len(arrivals), lost)
			}
			match, repair := time.Duration(start.Int("mono_ns")-began), time.Duration(arrivals[49].Mono-written[len(written)-1].Mono)
			c.Logf("%s: matched after %v, last sample after %v", x.name, match, repair)
			if match > 3*time.Second || repair > 3*time.Second {
				return fmt.Errorf("%s: matched after %v, last sample after %v", x.name, match, repair)
			}
			return nil
		})
	}
}

// manyTopics: a hundred topics at a hundred samples a second, nothing lost.
func manyTopics(c *cell) {
	n := c.net()
	topics := []lab.Topic{{Kind: lab.Blob, Name: "/load", Instances: 100, Hz: 100, Size: 100}}
	seconds := "4"
	if soak() {
		seconds = "60"
	}
	if !c.sending {
		rec := record(c.T, n, topics)
		pub := c.publish(n, c.peer, topics, "--wait", "1", "--seconds", seconds, "--linger", "10")
		c.must(pub.Wait(4 * patience))
		c.must(rec.Stop(patience))
		whole(c.T, rec.Dir, topics, lab.SentBy(pub))
	} else {
		sub, log := c.subscribe(n, c.peer, topics)
		pub := c.publish(n, lab.Own, topics, "--wait", "1", "--seconds", seconds, "--linger", "10")
		c.must(pub.Wait(4 * patience))
		time.Sleep(500 * time.Millisecond)
		c.complete(c.end(sub, log, topics), lab.SentBy(pub))
	}
	c.note("for %s s", seconds)
}

// preemptive: the ACKNACKs with which a reader asks a writer that has nothing for its first HEARTBEAT end at once.
func preemptive(c *cell) {
	h := c.hosts(lab.LargeMTU)
	asked := map[string]int{}
	h.Relay.SetTap(func(p *lab.Packet, _ lab.Fate) {
		if s := p.Find("ACKNACK"); s != nil && !p.FromA && s.Seq <= 1 && len(s.Set) == 0 && !s.Final {
			asked[s.Writer.String()]++
		}
	})
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu"}, {Kind: lab.String, Name: "/latched", TransientLocal: true, Depth: 5}}
	c.publish(h.A, lab.Own, topics, "--wait", "2", "--wait-timeout", "60") // it waits, and writes nothing
	sub, _ := c.subscribe(h.B, c.peer, topics)
	_, err := sub.Await("matched", 2, patience)
	c.must(err)
	time.Sleep(3 * time.Second)
	c.must(sub.Stop(patience))
	h.Relay.SetTap(nil)
	most := 0
	for _, k := range asked {
		most = max(most, k)
	}
	c.note("%d at most", most)
	if most > 2 {
		c.Errorf("asked for a HEARTBEAT again and again: %v", asked)
	}
}

// gapsIn: samples that the writer says will not come, here because the relay puts a GAP in their place, stop nothing; nor
// do the GAPs of a writer for a reader that comes while its history is not empty.
func gapsIn(c *cell) {
	h := c.hosts(lab.LargeMTU)
	made, theirs := 0, 0
	var longest time.Duration
	h.Relay.SetRule(func(p *lab.Packet) lab.Fate {
		if p.FromA && p.Has("GAP") {
			theirs++
		}
		s := p.Find("DATA")
		if s == nil || !p.FromA || s.Seq > 5 && s.Seq%10 != 4 && s.Seq/20 != 15 { // the first ones, single ones, a run
			return lab.Fate{}
		}
		made++
		b := wire.AppendHeader(nil, wire.Header{Version: wire.Protocol, Vendor: p.Vendor, Prefix: p.Prefix})
		return lab.Fate{Replace: wire.AppendGap(b, &wire.Gap{Reader: s.Reader, Writer: s.Writer, Start: s.Seq, Set: wire.SeqSet{Base: s.Seq + 1}})}
	})
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 200, Count: 600}}
	numbers, pub, _ := c.transfer(h, topics)
	seq := lab.Sequence(numbers["/imu"])
	if want := lab.SentBy(pub)["/imu"].Count - 1; made < 50 || seq.Last != want || seq.Disorder > 0 || seq.Missing > int64(made) {
		c.Errorf("%d GAPs put in, %d arrived: %+v", made, len(numbers["/imu"]), seq)
	}

	h.Relay.SetRule(func(p *lab.Packet) lab.Fate {
		if p.FromA && p.Has("GAP") {
			theirs++
		}
		return lab.Fate{}
	})
	// One subscriber stands still, so that the history fills; then another one comes.
	topics = []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 200, Count: 500}}
	first, firstLog := c.subscribe(h.B, lab.Own, topics)
	pub = c.publish(h.A, c.peer, topics, "--wait", "1", "--linger", "10")
	_, err := pub.Await("start", 1, patience)
	c.must(err)
	time.Sleep(300 * time.Millisecond)
	c.must(first.Signal(syscall.SIGSTOP))
	time.Sleep(500 * time.Millisecond)
	second, secondLog := c.subscribe(h.B, lab.Own, topics)
	time.Sleep(800 * time.Millisecond)
	c.must(first.Signal(syscall.SIGCONT))
	c.must(pub.Wait(patience))
	time.Sleep(200 * time.Millisecond)
	c.complete(c.end(first, firstLog, topics), lab.SentBy(pub))
	late := c.end(second, secondLog, topics)["/imu"]
	if seq := lab.Sequence(late); len(late) < 100 || seq.Missing > 0 || seq.Disorder > 0 || seq.Last != 499 {
		c.Errorf("the subscriber that came later: %d samples, %+v", len(late), seq)
	}
	arrivals, err := lab.ReadArrivals(secondLog)
	c.must(err)
	for i := 1; i < len(arrivals); i++ {
		longest = max(longest, time.Duration(arrivals[i].Mono-arrivals[i-1].Mono))
	}
	c.note("%d GAPs put in, %d of the peer's own; longest pause %v", made, theirs, longest.Round(10*time.Millisecond))
	if longest > 2*time.Second {
		c.Errorf("a pause of %v", longest)
	}
}

// gapsOut: samples that gobag has given up, because nobody acknowledged them in time, stop nothing at the peer.
func gapsOut(c *cell) {
	h := c.hosts(lab.LargeMTU)
	said := 0
	h.Relay.SetRule(func(p *lab.Packet) lab.Fate {
		if p.FromA && p.Has("GAP") {
			said++
		}
		if s := p.Find("DATA"); s != nil && p.FromA && s.Seq%100 >= 20 && s.Seq%100 < 40 {
			return lab.Drop // the repairs too
		}
		return lab.Fate{}
	})
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 200, Count: 600, BlockMS: 5}}
	numbers, pub, _ := c.transfer(h, topics, "--window", "2000")
	seq := lab.Sequence(numbers["/imu"])
	c.note("%d samples given up, %d GAPs", seq.Missing, said)
	if seq.Last != lab.SentBy(pub)["/imu"].Count-1 || seq.Disorder > 0 || seq.Missing < 50 || seq.Missing > 200 {
		c.Errorf("%d arrived: %+v", len(numbers["/imu"]), seq)
	}
}

// idle: once everything is acknowledged, gobag sends at most two datagrams a second to a peer.
func idle(c *cell) {
	h := c.hosts(lab.LargeMTU)
	ours, theirs := 0, 0
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 100, Count: 50}, {Kind: lab.String, Name: "/latched", Count: 5, TransientLocal: true, Depth: 5}}
	p, s := c.roles()
	sub, _ := c.subscribe(h.B, s, topics)
	pub := c.publish(h.A, p, topics, "--wait", "1", "--seconds", "120")
	_, err := pub.Await("start", 1, patience)
	c.must(err)
	time.Sleep(6 * time.Second)
	seconds := 12
	if soak() {
		seconds = 60
	}
	h.Relay.SetTap(func(p *lab.Packet, _ lab.Fate) {
		switch {
		case !p.RTPS:
		case p.Vendor == wire.VendorGobag:
			ours++
		default:
			theirs++
		}
	})
	time.Sleep(time.Duration(seconds) * time.Second)
	h.Relay.SetTap(nil)
	c.must(sub.Stop(patience))
	c.note("%.1f datagrams a second from gobag, %.1f from the peer", float64(ours)/float64(seconds), float64(theirs)/float64(seconds))
	if ours > 2*seconds || ours == 0 {
		c.Errorf("%d datagrams in %d s", ours, seconds)
	}
}
