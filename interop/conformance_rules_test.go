//go:build linux

package interop_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/rtps/wire"
)

// said is a datagram that gobag sent.
type said struct {
	to        string
	multicast bool
	fromA     bool
	size      int
	dest      wire.Prefix // of INFO_DST; zero: none
	list      []lab.Submessage
	raw       []byte
}

// session is what gobag sent to one peer while everything happened that happens on the wire: samples small and large,
// latched ones, both ways, with losses.
type session struct {
	peer  lab.Vendor
	said  []said
	fast  map[wire.Prefix]bool // participants of Fast DDS
	ids   map[string]int       // participants that read ros_discovery_info, and the size of the ids they know
	bytes int
}

// wireRule is a rule that every datagram of gobag keeps.
type wireRule struct {
	name, text string
	check      func(t *testing.T, s *session)
}

var wireRules = []wireRule{
	{"counts", "counts of ACKNACK and NACK_FRAG begin with 1, no count is 0 or comes twice, all rise", countsRise},
	{"heartbeats", "HEARTBEAT: first ≥ 1, last ≥ first − 1", heartbeatsValid},
	{"preemptive", "an ACKNACK without anything missing has base 0 for Fast DDS only, else at least 1", preemptiveBase},
	{"heartbeat_first", "a HEARTBEAT comes before the first sample to a reliable reader", heartbeatFirst},
	{"whole_sample", "no HEARTBEAT among the fragments of a sample", heartbeatAfterSample},
	{"sizes", "samples are sent again in fragments like the first time; no datagram is larger than UDP takes", sizesBounded},
	{"info_dst", "what is meant for one participant says so", infoDst},
	{"discovery", "no type information, no multicast locators, no foreign vendor id", discoveryPlain},
	{"node_forms", "a sample of ros_discovery_info is for one reader, in the form of its generation", nodeForms},
}

// TestWireRules records what gobag sends to a peer of each vendor over a lossy cable, and checks every datagram.
func TestWireRules(t *testing.T) {
	if testing.Short() {
		t.Skip("real peers")
	}
	needPeers(t)
	for _, peer := range reportPeers {
		t.Run(string(peer), func(t *testing.T) {
			t.Parallel()
			s := recordSession(t, peer)
			for _, r := range wireRules {
				t.Run(r.name, func(t *testing.T) { r.check(t, s) })
			}
		})
	}
}

// withoutSecond is a rule that also drops the fragment after the first of every large sample, the first time it is sent, so
// that a NACK_FRAG is due however the dice of the other rule fall.
func withoutSecond(rule lab.Rule) lab.Rule {
	type sample struct {
		prefix wire.Prefix
		writer wire.EntityID
		seq    int64
	}
	seen := map[sample]bool{}
	return func(p *lab.Packet) lab.Fate {
		if f := p.Find("DATA_FRAG"); f != nil && f.First > 1 {
			if k := (sample{p.Prefix, f.Writer, f.Seq}); !seen[k] {
				seen[k] = true
				return lab.Drop
			}
		}
		return rule(p)
	}
}

func recordSession(t *testing.T, peer lab.Vendor) *session {
	t.Helper()
	c := &cell{T: t, peer: peer, result: &result{}}
	h := c.hosts(lab.LargeMTU)
	s := &session{peer: peer, fast: map[wire.Prefix]bool{}, ids: map[string]int{}}
	var mu sync.Mutex
	h.Relay.SetRule(withoutSecond(lab.Lossy(11, 0.03)))
	h.Relay.SetTap(func(p *lab.Packet, _ lab.Fate) {
		mu.Lock()
		defer mu.Unlock()
		if p.Vendor == wire.VendorFast {
			s.fast[p.Prefix] = true
		}
		if p.Vendor != wire.VendorGobag {
			return
		}
		d := said{to: p.To.String(), multicast: p.Multicast, fromA: p.FromA, size: len(p.Payload), raw: append([]byte(nil), p.Payload...)}
		if _, list, err := lab.SplitMessage(p.Payload); err == nil {
			for _, m := range list {
				if m.ID == 0x0e && len(m.Body) >= 12 {
					d.dest = wire.Prefix(m.Body[:12])
				}
			}
		}
		d.list = append(d.list, p.Submessage...)
		s.said = append(s.said, d)
	})
	topics := func(prefix string) []lab.Topic {
		return []lab.Topic{{Kind: lab.Imu, Name: prefix + "/imu", Hz: 200, Count: 200}, {Kind: lab.Blob, Name: prefix + "/large", Hz: 10, Count: 10, Size: 300_000},
			{Kind: lab.String, Name: prefix + "/latched", Count: 10, TransientLocal: true, Depth: 10, Early: true},
			{Kind: lab.Imu, Name: prefix + "/best_effort", Hz: 100, Count: 100, BestEffort: true}}
	}
	out, in := topics("/out"), topics("/in")
	var watchers []nodeWatcher
	for _, size := range []int{24, 16} {
		w := watch(t, h.B, peer, size)
		watchers = append(watchers, w)
		s.ids[w.id()] = size
	}
	rec := record(t, h.A, in)
	theirs, theirLog := c.subscribe(h.B, peer, out)
	ours, ourLog := c.subscribe(h.A, lab.Own, in)
	pubs := []*lab.Proc{c.publish(h.A, lab.Own, out, "--wait", "1", "--linger", "10"), c.publish(h.B, peer, in, "--wait", "1", "--linger", "10")}
	sent := map[string]lab.Sent{}
	for _, p := range pubs {
		c.must(p.Wait(2 * patience))
		for name, n := range lab.SentBy(p) {
			if !strings.HasSuffix(name, "/best_effort") {
				sent[name] = n
			}
		}
	}
	time.Sleep(300 * time.Millisecond)
	numbers := c.end(theirs, theirLog, out)
	for name, list := range c.end(ours, ourLog, in) {
		numbers[name] = list
	}
	c.complete(numbers, sent)
	c.must(rec.Stop(patience))
	for _, w := range watchers {
		w.misread(t, hex.EncodeToString(wire.VendorGobag[:])) // our ids begin with it
	}
	h.Relay.SetTap(nil)
	kinds := map[string]int{}
	for _, d := range s.said {
		s.bytes += d.size
		for _, m := range d.list {
			kinds[m.Kind]++
		}
	}
	for _, kind := range []string{"DATA", "DATA_FRAG", "HEARTBEAT", "ACKNACK", "NACK_FRAG"} {
		if kinds[kind] == 0 {
			t.Errorf("gobag sent no %s: this shows nothing (%v)", kind, kinds)
		}
	}
	return s
}

// each hands every submessage of gobag to f.
func (s *session) each(f func(d *said, m *lab.Submessage)) {
	for i := range s.said {
		for k := range s.said[i].list {
			f(&s.said[i], &s.said[i].list[k])
		}
	}
}

// countsRise: no count comes twice, and none lies far below another before it. Two datagrams that two threads send at the
// same moment may overtake each other: the peer ignores the older one, in which there is nothing new. A datagram may also
// be lost before the relay sees it, the first one too, but not most of the first ones.
func countsRise(t *testing.T, s *session) {
	const overtaken = 4
	last := map[string]uint32{}
	seen := map[string]bool{}
	begun, with1 := 0, 0 // counters of ACKNACK, those seen with 1
	s.each(func(d *said, m *lab.Submessage) {
		var key string
		switch m.Kind {
		case "HEARTBEAT": // one counter a writer
			key = fmt.Sprint("hb", d.raw[8:20], m.Writer)
		case "ACKNACK", "NACK_FRAG": // one counter a reader and writer, both kinds
			key = fmt.Sprint("ack", d.raw[8:20], d.dest, m.Reader, m.Writer)
		default:
			return
		}
		// A writer has one counter for all readers, some of which may be on its own host.
		before, ok := last[key]
		once := fmt.Sprint(key, " ", m.Count)
		if m.Kind == "ACKNACK" {
			if !ok {
				begun++
			}
			if m.Count == 1 {
				with1++
			}
		}
		if !ok && m.Kind == "ACKNACK" && m.Count > 1+overtaken || m.Count == 0 || seen[once] || m.Count+overtaken < before {
			t.Errorf("%s of %v to %v has count %d after %d", m.Kind, m.Writer, d.dest, m.Count, before)
		}
		seen[once] = true
		last[key] = max(before, m.Count)
	})
	if with1 <= begun/2 {
		t.Errorf("of %d readers' counts of ACKNACK %d begin with 1", begun, with1)
	}
}

func heartbeatsValid(t *testing.T, s *session) {
	s.each(func(d *said, m *lab.Submessage) {
		if m.Kind == "HEARTBEAT" && (m.First < 1 || m.Seq < m.First-1) {
			t.Errorf("HEARTBEAT of %v: %d to %d", m.Writer, m.First, m.Seq)
		}
	})
}

func preemptiveBase(t *testing.T, s *session) {
	zero := 0
	s.each(func(d *said, m *lab.Submessage) {
		if m.Kind != "ACKNACK" {
			return
		}
		if m.Seq < 1 {
			zero++
		}
		if m.Seq < 0 || m.Seq == 0 && (!s.fast[d.dest] || len(m.Set) > 0) {
			t.Errorf("ACKNACK with base %d and %d bits to %v", m.Seq, len(m.Set), d.dest)
		}
	})
	if s.peer == lab.Fast && zero == 0 {
		t.Error("Fast DDS was never asked with base 0, the only one that it answers at once")
	}
}

func heartbeatFirst(t *testing.T, s *session) {
	beaten := map[string]bool{}
	s.each(func(d *said, m *lab.Submessage) {
		if m.Writer.Builtin() {
			return
		}
		key := fmt.Sprint(d.raw[8:20], d.dest, m.Writer)
		switch m.Kind {
		case "HEARTBEAT":
			beaten[key] = true
		case "DATA", "DATA_FRAG":
			if !beaten[key] && m.Writer != bestEffortWriter {
				t.Errorf("%s %d of %v before any HEARTBEAT", m.Kind, m.Seq, m.Writer)
				beaten[key] = true
			}
		}
	})
}

// bestEffortWriter is the fourth user endpoint of the publisher in a session.
var bestEffortWriter = wire.EntityID{0, 0, 4, wire.KindWriterKeyless}

func heartbeatAfterSample(t *testing.T, s *session) {
	open := map[string]int64{} // of a writer: the sample of which not all fragments were sent for the first time
	done := map[string]bool{}
	total := map[string]int64{} // fragments of a sample
	s.each(func(d *said, m *lab.Submessage) {
		if m.Writer.Builtin() {
			return
		}
		key := fmt.Sprint(d.raw[8:20], m.Writer)
		switch m.Kind {
		case "DATA_FRAG":
			sample := fmt.Sprint(key, m.Seq)
			if m.First == 1 {
				total[key] = int64((300_000 + 24 + m.Size - 1) / m.Size)
			}
			if open[key] = m.Seq; m.First == total[key] || done[sample] {
				open[key], done[sample] = 0, true
			}
		case "HEARTBEAT":
			if open[key] != 0 && m.Seq >= open[key] {
				t.Errorf("HEARTBEAT up to %d of %v while sample %d is being sent", m.Seq, m.Writer, open[key])
			}
		}
	})
}

func sizesBounded(t *testing.T, s *session) {
	s.each(func(d *said, m *lab.Submessage) {
		if d.size > 65507 || m.Kind == "DATA" && m.Size > 60000 {
			t.Errorf("datagram of %d bytes with %s of %d bytes", d.size, m.Kind, m.Size)
		}
	})
}

func infoDst(t *testing.T, s *session) {
	for i := range s.said {
		d := &s.said[i]
		for _, m := range d.list {
			// Announcements are for everyone.
			if m.Writer != wire.EntitySPDPWriter && d.dest == (wire.Prefix{}) {
				t.Errorf("%s of %v to %s without INFO_DST", m.Kind, m.Writer, d.to)
			}
		}
	}
}

func discoveryPlain(t *testing.T, s *session) {
	seen := 0
	for i := range s.said {
		_, list, err := lab.SplitMessage(s.said[i].raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			if !m.Writer().Builtin() || m.Flags&8 != 0 {
				continue
			}
			parameters, err := lab.ParameterList(m.Payload())
			if err != nil {
				continue
			}
			for _, p := range parameters {
				seen++
				switch p.ID {
				case 0x0075, 0x0030, 0x0033, 0x0048: // TYPE_INFORMATION, multicast locators
					t.Errorf("parameter %#04x of %v", p.ID, m.Writer())
				case 0x0016:
					if wire.VendorID(p.Value[:2]) != wire.VendorGobag {
						t.Errorf("vendor id %x", p.Value[:2])
					}
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d parameters seen: this shows nothing", seen)
	}
}

// nodeForms: ids in ros_discovery_info have 16 bytes from Iron on and 24 before, and a node of Humble crashes of the shorter.
func nodeForms(t *testing.T, s *session) {
	size := map[string]int{} // of the ids of gobag's writers
	for i := range s.said {
		_, list, err := lab.SplitMessage(s.said[i].raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			parameters, err := lab.ParameterList(m.Payload())
			if m.Writer() != wire.EntityPubWriter || err != nil {
				continue
			}
			var id, topic, userData string
			for _, p := range parameters {
				switch p.ID {
				case 0x005a:
					id = string(p.Value)
				case 0x0005:
					topic = string(p.Value)
				case 0x002c:
					userData = string(p.Value)
				}
			}
			if !strings.Contains(topic, "ros_discovery_info") {
				continue
			}
			size[id] = 24
			if strings.Contains(userData, "typehash=") {
				size[id] = 16
			}
		}
	}
	sent := map[int]int{}
	s.each(func(d *said, m *lab.Submessage) {
		n := size[string(d.raw[8:20])+string(m.Writer[:])]
		if n == 0 || m.Kind != "DATA" && m.Kind != "DATA_FRAG" {
			return
		}
		if to := s.ids[hex.EncodeToString(d.dest[:])]; to != n || m.Reader == wire.EntityUnknown {
			t.Errorf("%d-byte ids sent to %v of a participant that knows ids of %d bytes", n, m.Reader, to)
		}
		sent[n]++
	})
	if sent[16] == 0 || sent[24] == 0 {
		t.Errorf("samples sent by size of ids: %v, this shows nothing", sent)
	}
}

// Off the host no datagram is larger than a frame of the cable takes: a lost IP fragment would make the kernel keep the
// others for 30 s.
func TestNoIPFragments(t *testing.T) {
	t.Parallel()
	needPeers(t)
	c := &cell{T: t, peer: lab.Cyclone, sending: true, result: &result{}}
	h := c.hosts(lab.EthernetMTU)
	cut, ours := 0, 0
	h.Relay.SetTap(func(p *lab.Packet, _ lab.Fate) {
		if p.FromA {
			ours++
			if p.Fragmented {
				cut++
			}
		}
	})
	numbers, pub, _ := c.transfer(h, []lab.Topic{{Kind: lab.Image, Name: "/image", Hz: 10, Count: 10, Size: 1 << 20}})
	c.complete(numbers, lab.SentBy(pub))
	if cut > 0 || ours < 7000 {
		t.Errorf("%d of %d datagrams were cut into IP fragments", cut, ours)
	}
}

// lo without the MULTICAST flag, as most machines have it: found without any setting, by Cyclone, which turns multicast off
// then, and by Fast DDS.
func TestLoopbackWithoutFlag(t *testing.T) {
	t.Parallel()
	needPeers(t)
	for _, peer := range reportPeers {
		t.Run(string(peer), func(t *testing.T) {
			n := newNet(t)
			if n.Namespace == "" {
				t.Skip("needs a network namespace of its own")
			}
			must(t, n.LoopbackFlag(false))
			n.CycloneURI = `<CycloneDDS><Domain id="any"><General><Interfaces><NetworkInterface name="lo"/></Interfaces></General></Domain></CycloneDDS>`
			topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 100}}
			rec, err := gobag.RecordEnv(n, []string{"CYCLONEDDS_URI="}, t.TempDir()+"/bag", topics)
			must(t, err)
			t.Cleanup(rec.Kill)
			pub := publishAs(t, n, peer, topics, "--wait", "1", "--seconds", "1")
			must(t, pub.Wait(patience))
			must(t, rec.Stop(patience))
			whole(t, rec.Dir, topics, lab.SentBy(pub))
		})
	}
}
