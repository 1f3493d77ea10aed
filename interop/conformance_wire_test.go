//go:build linux

package interop_test

import (
	"encoding/binary"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// fromGobag selects what gobag sent, by its vendor id.
const fromGobag = "rtps.vendorId == 0x01ff"

// sizes are payloads of every padding, around the sizes at which samples are cut, and up to 70 kB.
var sizes = []lab.Topic{
	{Kind: lab.Blob, Name: "/small", Hz: 500, Count: 130, Size: 1, Grow: 1},
	{Kind: lab.Blob, Name: "/remote_fragment", Hz: 500, Count: 60, Size: 1290, Grow: 1},
	{Kind: lab.Blob, Name: "/local_fragment", Hz: 100, Count: 60, Size: 59940, Grow: 1},
	{Kind: lab.Blob, Name: "/growing", Hz: 50, Count: 70, Size: 1, Grow: 1000},
	{Kind: lab.String, Name: "/varying", Hz: 500, Count: 60, Hash: stringHash},
}

// everyDatagramDecodes: tshark takes apart all that gobag sends, to a peer on another host and to one on this host; all
// submessages are multiples of four long; and the peer calls nothing malformed.
func everyDatagramDecodes(c *cell) {
	for _, tool := range []string{"dumpcap", "tshark"} {
		_, err := lab.Tool(tool)
		needs(c.T, err)
	}
	dir := c.TempDir()
	far := filepath.Join(dir, "far.pcap")
	h := c.hosts(lab.EthernetMTU)
	c.must(h.Relay.Capture(far))
	numbers, pub, sub := c.transfer(h, sizes)
	c.complete(numbers, lab.SentBy(pub))
	c.must(h.Relay.StopCapture())
	total := decodes(c.T, far)
	c.noComplaint(pub, sub)

	near := filepath.Join(dir, "near.pcap")
	n := c.net()
	if n.Namespace == "" {
		c.Skip("needs a network namespace of its own")
	}
	capture, err := n.Capture(near)
	c.must(err)
	c.Cleanup(capture.Kill)
	p, s := c.roles()
	sub, log := c.subscribe(n, s, sizes)
	pub = c.publish(n, p, sizes, "--wait", "1", "--linger", "10")
	c.must(pub.Wait(patience))
	time.Sleep(200 * time.Millisecond)
	numbers = c.end(sub, log, sizes)
	c.must(lab.StopCapture(capture))
	// Cyclone 0.10 may throw away the first fragmented sample of a Fast DDS writer, but we are in between: all must come.
	c.complete(numbers, lab.SentBy(pub))
	total += decodes(c.T, near)
	c.noComplaint(pub, sub)
	c.note("%d datagrams of gobag decoded", total)
}

// noComplaint checks that the peer called nothing malformed.
func (c *cell) noComplaint(procs ...*lab.Proc) {
	c.Helper()
	for _, p := range procs {
		for _, line := range strings.Split(p.Stderr()+p.Stdout(), "\n") {
			if strings.Contains(line, "malformed") && !strings.HasPrefix(line, "{") {
				c.Errorf("%s: %s", p.Name, line)
				return
			}
		}
	}
}

// decodes checks the datagrams of gobag in a capture and returns how many there are.
func decodes(t *testing.T, file string) int {
	t.Helper()
	all, err := lab.Dissect(file, fromGobag, "frame.number", "rtps.sm.octetsToNextHeader")
	must(t, err)
	for _, line := range all {
		f := strings.Split(line, "\t")
		for _, octets := range strings.Split(f[1], ",") {
			if k, err := strconv.Atoi(octets); err != nil || k%4 != 0 {
				t.Fatalf("frame %s: submessages of %s bytes", f[0], f[1])
			}
		}
	}
	if len(all) < 50 {
		t.Errorf("%d datagrams of gobag in the capture", len(all))
	}
	bad, err := lab.Dissect(file, fromGobag+" && (_ws.malformed || _ws.expert.severity >= 0x400000)", "frame.number", "_ws.expert.message",
		"rtps.sm.id", "udp.length")
	must(t, err)
	for i, line := range bad {
		if i < 5 {
			t.Errorf("tshark complains: %s", line)
		}
	}
	return len(all)
}

// bigEndian: what the peer sends is turned to big-endian on the way, submessages, and the payload of its samples too.
func bigEndian(c *cell) {
	h := c.hosts(lab.LargeMTU)
	topic := lab.Topic{Kind: lab.String, Name: "/text", Hz: 200, Count: 200}
	large := lab.Topic{Kind: lab.Blob, Name: "/large", Hz: 20, Count: 20, Size: 100_001}
	turned, payloads, lost := 0, 0, 0
	h.Relay.SetRule(func(p *lab.Packet) lab.Fate {
		if !p.FromA || !p.RTPS {
			return lab.Fate{}
		}
		if s := p.Find("DATA"); s != nil && lost < 20 && s.Seq%7 == 3 { // so that GAP, HEARTBEAT and repairs occur
			lost++
			return lab.Drop
		}
		return lab.Fate{Replace: lab.Rewrite(p.Payload, func(s lab.RawSubmessage) lab.RawSubmessage {
			if body := s.Payload(); len(body) > 12 && !s.Writer().Builtin() && body[1] == 1 {
				if _, err := topic.Number(body); err == nil {
					body = slices.Clone(body)
					body[1] = 0
					slices.Reverse(body[4:8]) // the length of the text; the rest is octets
					s = s.WithPayload(body)
					payloads++
				}
			}
			turned++
			return s.BigEndian()
		})}
	})
	p, s := c.roles()
	sub, log := c.subscribe(h.B, s, []lab.Topic{topic, large})
	pub := c.publish(h.A, p, []lab.Topic{topic, large}, "--wait", "1", "--linger", "10")
	c.must(pub.Wait(patience))
	time.Sleep(200 * time.Millisecond)
	c.must(sub.Stop(patience))
	arrivals, err := lab.ReadArrivals(log)
	c.must(err)
	numbers := map[string][]int64{}
	check := lab.Checker{Topic: large}
	for _, a := range arrivals {
		if a.Topic == large.Name {
			if err := check.CheckHash(a); err != nil {
				c.Error(err)
			}
		} else {
			want := append([]byte{0, 0, 0, 0}, topic.Body(nil, uint32(a.Number), 0)...)
			slices.Reverse(want[4:8])
			if got := a.Length - len(want); a.Header != "00000000" && a.Header[:4] != "0000" || got < 0 || got > 3 ||
				got == 0 && a.Hash != lab.FNV1a(want[4:]) {
				c.Errorf("%s %d: header %s, %d bytes, want %d", a.Topic, a.Number, a.Header, a.Length, len(want))
			}
		}
		numbers[a.Topic] = append(numbers[a.Topic], a.Number)
	}
	c.complete(numbers, lab.SentBy(pub))
	c.note("%d submessages and %d payloads turned to big-endian", turned, payloads)
	if payloads < 150 || turned < 500 {
		c.Error("too few to show anything")
	}
}

// oddSubmessages: PAD, unknown and vendor-specific submessages before, between and after the peer's, and a last submessage
// whose length is 0.
func oddSubmessages(c *cell) {
	h := c.hosts(lab.LargeMTU)
	k, open := 0, 0
	odd := []lab.RawSubmessage{{ID: 1, Flags: 1}, {ID: 1, Flags: 1, Body: make([]byte, 8)}, {ID: 0x2a, Flags: 1, Body: make([]byte, 12)},
		{ID: 0x80, Flags: 1, Body: make([]byte, 56)}, {ID: 0xff, Flags: 0, Body: make([]byte, 4)}, {ID: 0x0d, Flags: 1, Body: make([]byte, 12)}}
	h.Relay.SetRule(func(p *lab.Packet) lab.Fate {
		if !p.FromA || !p.RTPS || len(p.Payload) > 65000 {
			return lab.Fate{}
		}
		header, list, err := lab.SplitMessage(p.Payload)
		if err != nil || len(list) == 0 {
			return lab.Fate{}
		}
		k++
		if k%2 == 0 {
			open++
			last := list[len(list)-1]
			return lab.Fate{Replace: lab.JoinMessage(header, list, len(last.Body) > 0)}
		}
		var more []lab.RawSubmessage
		for i, s := range list {
			more = append(more, odd[(k+i)%len(odd)], s)
		}
		return lab.Fate{Replace: lab.JoinMessage(header, append(more, odd[k%3], odd[3]), false)}
	})
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 200, Count: 200}, {Kind: lab.Blob, Name: "/large", Hz: 20, Count: 20, Size: 40_001}}
	numbers, pub, _ := c.transfer(h, topics)
	c.complete(numbers, lab.SentBy(pub))
	c.note("%d datagrams with odd submessages, %d with length 0 at the end", k-open, open)
	if k < 100 {
		c.Error("too few to show anything")
	}
}

// setBits: losses by a pattern are asked for again and sent again, exactly those, so both sides read the sets alike:
// sequence numbers of ACKNACK, fragment numbers of NACK_FRAG.
func setBits(c *cell) {
	h := c.hosts(c.mtu())
	// Of samples one number in the ranges 0 to 1, 31 to 33, 63 to 65 … of every 256; of fragments the same.
	wanted := func(n int64) bool {
		k := n % 256
		return k%32 == 0 || k%32 == 31 || k%32 == 1 || k == 100 || k == 101
	}
	type key struct {
		seq, frag int64
	}
	seen, dropped, again := map[key]bool{}, map[key]bool{}, map[key]bool{}
	h.Relay.SetRule(func(p *lab.Packet) lab.Fate {
		if !p.FromA {
			return lab.Fate{}
		}
		var keys []key
		if s := p.Find("DATA"); s != nil {
			keys = append(keys, key{s.Seq, 0})
		}
		if s := p.Find("DATA_FRAG"); s != nil {
			for f := range int64(s.Fragments) {
				keys = append(keys, key{s.Seq, s.First + f})
			}
		}
		drop := false
		for _, k := range keys {
			if seen[k] {
				again[k] = true
			} else if k.frag == 0 && wanted(k.seq) || k.frag > 0 && len(keys) == 1 && wanted(k.frag) || k.frag > 0 && k.frag%200 == 191 {
				drop = true
			}
		}
		for _, k := range keys {
			if drop && !seen[k] {
				dropped[k] = true
			}
			seen[k] = true
		}
		return lab.Fate{Drop: drop}
	})
	var options, subOptions []string
	switch {
	case c.peer == lab.Fast && c.sending:
		subOptions = []string{"--rcvbuf", "4194304"} // what the socket loses is asked for too
	case c.peer == lab.Fast:
		options = []string{"--max-message", "2000"} // else one fragment is 65 kB, and no set has more than a few bits
	}
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 2000, Count: 600}}
	numbers, pub, _ := c.transferWith(h, topics, options, subOptions)
	c.complete(numbers, lab.SentBy(pub))
	samples := c.repaired("samples", len(dropped), len(again), func() (extra int) {
		for k := range again {
			if !dropped[k] {
				extra++
			}
		}
		return extra
	}())
	clear(seen)
	clear(dropped)
	clear(again)
	topics = []lab.Topic{{Kind: lab.Blob, Name: "/large", Hz: 2, Count: 3, Size: 900_000}}
	numbers, pub, _ = c.transferWith(h, topics, options, subOptions)
	c.complete(numbers, lab.SentBy(pub))
	fragments := c.repaired("fragments", len(dropped), len(again), func() (extra int) {
		for k := range again {
			if !dropped[k] {
				extra++
			}
		}
		return extra
	}())
	c.note("%s, %s", samples, fragments)
}

// repaired judges what was sent again.
func (c *cell) repaired(what string, dropped, again, extra int) string {
	c.Helper()
	if dropped < 20 {
		c.Errorf("%d %s were lost: too few to show anything", dropped, what)
	}
	// A few may be asked for because they had not arrived yet.
	if extra > dropped/5 {
		c.Errorf("%d %s were lost, %d came again, of them %d that had not been lost", dropped, what, again, extra)
	}
	return strconv.Itoa(dropped) + " " + what + " lost, " + strconv.Itoa(extra) + " sent again without need"
}

// mutated: a third of the peer's datagrams arrive with bytes changed for two seconds; gobag lives, and receives afterwards.
func mutated(c *cell) {
	h := c.hosts(lab.LargeMTU)
	r := rand.New(rand.NewPCG(1, uint64(len(c.peer))))
	var storm atomic.Bool // once all are matched: an announcement changed into another one is never sent again
	changed := 0
	h.Relay.SetRule(func(p *lab.Packet) lab.Fate {
		// Towards gobag, which is on host B when it receives and on host A when it sends.
		if p.FromA == c.sending || !p.RTPS || !storm.Load() || r.IntN(3) > 0 {
			return lab.Fate{}
		}
		changed++
		b := slices.Clone(p.Payload)
		for range 1 + r.IntN(4) {
			at := 20 + r.IntN(len(b)-20) // not the header: it must stay the peer's
			switch r.IntN(3) {
			case 0:
				b[at] = byte(r.Uint32())
			case 1:
				b[at] ^= 1 << r.IntN(8)
			default:
				if at+4 <= len(b) {
					binary.LittleEndian.PutUint32(b[at:], []uint32{0, 1, 0x7fffffff, 0xffffffff, 0x80000000}[r.IntN(5)])
				}
			}
		}
		return lab.Fate{Replace: b[:len(b)-r.IntN(2)*r.IntN(len(b)-20)]}
	})
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 500}, {Kind: lab.Image, Name: "/image", Hz: 10, Size: 100_000}}
	p, s := c.roles()
	sub, log := c.subscribe(h.B, s, topics)
	pub := c.publish(h.A, p, topics, "--wait", "1", "--linger", "1")
	_, err := pub.Await("start", 1, patience)
	c.must(err)
	storm.Store(true)
	time.Sleep(2 * time.Second)
	storm.Store(false)
	// A changed sequence number may have left a hole that only a new beginning closes: readers and writers afresh.
	c.must(pub.Stop(patience))
	pub = c.publish(h.A, p, []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 200, Count: 100}}, "--wait", "1", "--linger", "5")
	c.must(pub.Wait(patience))
	time.Sleep(200 * time.Millisecond)
	c.must(sub.Stop(patience))
	arrivals, err := lab.ReadArrivals(log)
	c.must(err)
	tail := arrivals[max(0, len(arrivals)-100):]
	for i, a := range tail {
		if len(tail) != 100 || a.Number != int64(i) || (&lab.Checker{Topic: topics[0]}).CheckHash(a) != nil {
			c.Fatalf("after the storm: %d samples, number %d has %d", len(tail), i, a.Number)
		}
	}
	c.note("%d datagrams changed", changed)
	if changed < 20 {
		c.Error("too few to show anything")
	}
}

// playedBytes: what the recorder stored of a peer's samples comes out of the player byte for byte, up to three zero bytes.
func playedBytes(c *cell) {
	n := c.net()
	topics := sizes
	rec := record(c.T, n, topics)
	pub := c.publish(n, c.peer, topics, "--wait", "1", "--linger", "5")
	c.must(pub.Wait(patience))
	c.must(rec.Stop(patience))
	whole(c.T, rec.Dir, topics, lab.SentBy(pub))
	lines, err := lab.ReadOwn(rec.Dir)
	c.must(err)
	sub, log := c.subscribe(n, c.peer, topics)
	play, err := gobag.Play(n, rec.Dir, "-d", "1", "--wait-for-all-acked", "5000")
	c.must(err)
	c.Cleanup(play.Kill)
	c.must(play.Wait(patience))
	time.Sleep(200 * time.Millisecond)
	numbers := c.end(sub, log, topics) // compares every byte with what was published
	c.complete(numbers, lab.SentBy(pub))
	c.note("%d messages", len(lines))
}
