package wire

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"testing"
)

// checker is a Handler that fails where Decode breaks its word, and reads discovery data as a participant would.
type checker struct {
	t      testing.TB
	again  Decoder
	within bool // decoding the reencoded submessage
	buf    []byte
	copied any // the submessage that within must deliver again
	parsed int // discovery payloads that were good
}

func (c *checker) seq(sn int64) {
	if sn < 1 || sn > MaxSeq {
		c.t.Fatalf("sequence number %d", sn)
	}
}

// reencode appends a submessage, decodes that, and compares.
func (c *checker) reencode(v any) {
	if c.within {
		if !reflect.DeepEqual(v, c.copied) {
			c.t.Fatalf("encoded and decoded again\n got %+v\nwant %+v", v, c.copied)
		}
		c.copied = nil
		return
	}
	c.within, c.copied = true, v
	defer func() { c.within = false }()
	c.buf = AppendHeader(c.buf[:0], testHeader)
	c.buf = appendAny(c.buf, v)
	if len(c.buf)%4 != 0 {
		c.t.Fatalf("appended to %d bytes: %+v", len(c.buf), v)
	}
	if err := c.again.Decode(c.buf, c); err != nil || c.copied != nil {
		c.t.Fatalf("decode again: %v, %+v", err, v)
	}
}

// trimmed makes payloads comparable: the one that comes back has been padded.
func (c *checker) trimmed(p []byte) []byte {
	if c.within {
		if d, ok := c.copied.(Data); ok && len(p) >= len(d.Payload) && len(p)-len(d.Payload) < 4 {
			p = p[:len(d.Payload)]
		}
	}
	if len(p) == 0 {
		return nil
	}
	return p
}

func (c *checker) Data(ctx *Context, d *Data) {
	c.seq(d.Seq)
	if d.Payload != nil && (len(d.Payload) < 4 || cap(d.Payload) != len(d.Payload)) {
		c.t.Fatalf("payload of %d bytes, capacity %d", len(d.Payload), cap(d.Payload))
	}
	v := *d
	v.Payload = c.trimmed(d.Payload)
	c.reencode(v)
	if c.within {
		return
	}
	switch d.Writer {
	case EntitySPDPWriter:
		c.participant(d.Payload, &d.InlineQoS, ctx.Vendor)
	case EntityPubWriter, EntitySubWriter:
		c.endpoint(d.Payload, &d.InlineQoS, ctx.Vendor, d.Writer == EntityPubWriter)
	case EntityLivelinessWriter:
		if m, err := ParseLiveliness(d.Payload); err == nil {
			c.parsed++
			if again, err := ParseLiveliness(m.Append(nil)); err != nil || again.Key() != m.Key() || !bytes.Equal(again.Data, m.Data) {
				c.t.Fatalf("liveliness %+v, again %+v, %v", m, again, err)
			}
		}
	}
}

func (c *checker) DataFrag(ctx *Context, d *DataFrag) {
	c.seq(d.Seq)
	size := uint64(d.SampleSize)
	if d.First < 1 || d.Count < 1 || d.Size < 1 || d.Offset() >= size || d.Offset()+uint64(len(d.Payload)) > size ||
		len(d.Payload) <= int(d.Count-1)*int(d.Size) || len(d.Payload) > int(d.Count)*int(d.Size) {
		c.t.Fatalf("DATA_FRAG %+v with %d bytes", d, len(d.Payload))
	}
	c.reencode(*d)
}

func (c *checker) AckNack(ctx *Context, a *AckNack) {
	if a.Set.Base != 0 || a.Set.NumBits != 0 {
		c.seq(a.Set.Base)
	}
	c.set(&a.Set)
	c.reencode(*a)
}

func (c *checker) set(s *SeqSet) {
	if s.NumBits > SetBits || s.Highest() >= s.Base+int64(s.NumBits) || s.Empty() != (s.Highest() < s.Base) {
		c.t.Fatalf("set %+v, highest %d", s, s.Highest())
	}
	n := 0
	for sn := range s.All() {
		if n++; !s.Contains(sn) {
			c.t.Fatalf("set %+v lacks %d", s, sn)
		}
	}
	if n > SetBits {
		c.t.Fatalf("set %+v has %d members", s, n)
	}
}

func (c *checker) NackFrag(ctx *Context, n *NackFrag) {
	c.seq(n.Seq)
	if n.Set.Base < 1 || n.Set.NumBits > SetBits || uint64(n.Set.Highest()) >= uint64(n.Set.Base)+uint64(n.Set.NumBits) && !n.Set.Empty() {
		c.t.Fatalf("set %+v", n.Set)
	}
	for f := range n.Set.All() {
		if !n.Set.Contains(f) {
			c.t.Fatalf("set %+v lacks %d", n.Set, f)
		}
	}
	c.reencode(*n)
}

func (c *checker) Heartbeat(ctx *Context, h *Heartbeat) {
	c.seq(h.First)
	if h.Last < h.First-1 || h.Last > MaxSeq {
		c.t.Fatalf("HEARTBEAT %+v", h)
	}
	c.reencode(*h)
}

func (c *checker) HeartbeatFrag(ctx *Context, h *HeartbeatFrag) {
	c.seq(h.Seq)
	if h.LastFrag < 1 {
		c.t.Fatalf("HEARTBEAT_FRAG %+v", h)
	}
	c.reencode(*h)
}

func (c *checker) Gap(ctx *Context, g *Gap) {
	c.seq(g.Start)
	c.seq(g.Set.Base)
	if g.Start > g.Set.Base {
		c.t.Fatalf("GAP %+v", g)
	}
	c.set(&g.Set)
	c.reencode(*g)
}

// participant parses participant data; what is good must survive being written and read again.
func (c *checker) participant(payload []byte, inline *InlineQoS, vendor VendorID) {
	ParseKey(payload, inline)
	p, err := ParseParticipant(payload, inline, vendor)
	if err != nil {
		return
	}
	c.parsed++
	p.Secured = false // we never say so
	if p.Version == (Version{}) {
		p.Version = Protocol
	}
	if p.Vendor != VendorCyclone {
		p.RecvBuffer = 0
	}
	if len(p.UserData) == 0 {
		p.UserData = nil
	}
	again, err := ParseParticipant(p.Append(nil), nil, p.Vendor)
	if err != nil || !reflect.DeepEqual(again, p) {
		c.t.Fatalf("participant %+v\nagain %+v, %v", p, again, err)
	}
}

func (c *checker) endpoint(payload []byte, inline *InlineQoS, vendor VendorID, writer bool) {
	ParseKey(payload, inline)
	e, err := ParseEndpoint(payload, inline, vendor, writer)
	if err != nil {
		return
	}
	c.parsed++
	if e.Version == (Version{}) {
		e.Version = Protocol
	}
	if e.QoS.MaxBlocking == 0 {
		e.QoS.MaxBlocking = defaultMaxBlocking
	}
	e.QoS.Depth = max(1, e.QoS.Depth)
	e.Participant = MakeGUID(e.GUID.Prefix(), EntityParticipant)
	if writer {
		e.ExpectsInlineQoS = false
	} else {
		e.QoS.Lifespan, e.QoS.OwnershipStrength = 0, 0
	}
	if len(e.UserData) == 0 {
		e.UserData = nil
	}
	b := e.Append(nil, writer)
	again, err := ParseEndpoint(b, nil, vendor, writer)
	if err != nil || !reflect.DeepEqual(again, e) {
		c.t.Fatalf("endpoint %+v\nagain %+v, %v", e, again, err)
	}
}

// decode decodes a datagram and checks the error.
func (c *checker) decode(d *Decoder, b []byte) {
	err := d.Decode(b, c)
	var e *Error
	if err != nil && err != ErrNotRTPS && (!errors.As(err, &e) || e.Offset < 4 || e.Offset >= len(b) || e.What == "") {
		c.t.Fatalf("error %v", err)
	}
}

// seedDatagrams are datagrams of our own encoder and, one of each length, of the captures.
func seedDatagrams(t testing.TB) (list [][]byte) {
	all := slices.Clone(headerBytes)
	for _, c := range submessageCases {
		list = append(list, slices.Concat(headerBytes, unhex(c.le)), slices.Concat(headerBytes, unhex(c.be)))
		all = append(all, unhex(c.le)...)
	}
	list = append(list, all)
	files, _ := filepath.Glob("testdata/*.pcap")
	if len(files) == 0 {
		t.Fatal("no captures")
	}
	for _, f := range files {
		seen := map[int]bool{}
		for _, d := range readPcap(t, f) {
			if !seen[len(d.data)] && len(d.data) <= 4096 {
				seen[len(d.data)] = true
				list = append(list, d.data)
			}
		}
	}
	return list
}

// seedPayloads are the payloads of a discovery writer: our own and those of the captures.
func seedPayloads(t testing.TB, writer EntityID) (list [][]byte) {
	var r recorder
	files, _ := filepath.Glob("testdata/*.pcap")
	for _, f := range files {
		for _, d := range readPcap(t, f) {
			Decode(d.data, &r)
		}
	}
	for _, v := range r.got {
		if d, ok := v.(Data); ok && d.Writer == writer && d.Payload != nil {
			if !slices.ContainsFunc(list, func(b []byte) bool { return len(b) == len(d.Payload) }) {
				list = append(list, d.Payload)
			}
		}
	}
	if len(list) < 2 {
		t.Fatalf("%d payloads of %s in the captures", len(list), writer)
	}
	p, e := fullParticipant(), fullEndpoint()
	switch writer {
	case EntitySPDPWriter:
		return append(list, p.Append(nil), AppendKey(nil, p.GUID))
	default:
		return append(list, e.Append(nil, writer == EntityPubWriter), AppendKey(nil, e.GUID))
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range seedDatagrams(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := checker{t: t}
		c.decode(new(Decoder), b)
	})
}

func FuzzParticipant(f *testing.F) {
	for _, b := range seedPayloads(f, EntitySPDPWriter) {
		f.Add(b, false)
		f.Add(b, true)
	}
	f.Fuzz(func(t *testing.T, b []byte, cyclone bool) {
		c := checker{t: t}
		vendor := VendorFast
		if cyclone {
			vendor = VendorCyclone
		}
		c.participant(b, &InlineQoS{HasKeyHash: cyclone, KeyHash: testGUID}, vendor)
	})
}

func FuzzEndpoint(f *testing.F) {
	for _, b := range seedPayloads(f, EntityPubWriter) {
		f.Add(b, true)
	}
	for _, b := range seedPayloads(f, EntitySubWriter) {
		f.Add(b, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, writer bool) {
		c := checker{t: t}
		c.endpoint(b, nil, VendorFast, writer)
	})
}

// TestMutatedDatagrams decodes a million damaged datagrams (GOBAG_MUTATIONS sets another number): nothing panics, what
// is delivered keeps the Decoder's word, and memory does not grow.
func TestMutatedDatagrams(t *testing.T) {
	n := 1_000_000
	if testing.Short() || raceEnabled {
		n = 50_000
	}
	if s := os.Getenv("GOBAG_MUTATIONS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	const seed = 20261130
	rnd := rand.New(rand.NewPCG(seed, 0))
	seeds := seedDatagrams(t)
	c := checker{t: t}
	var d Decoder
	buf := make([]byte, 0, 8192)
	var before, after runtime.MemStats
	for i := range n {
		if i == n/10 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		buf = mutate(rnd, buf[:0], seeds)
		c.decode(&d, buf)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+1<<20 {
		t.Errorf("heap grew from %d to %d bytes", before.HeapAlloc, after.HeapAlloc)
	}
	perDatagram := (after.TotalAlloc - before.TotalAlloc) / uint64(n-n/10)
	if perDatagram > 16<<10 {
		t.Errorf("%d bytes allocated per datagram, checks included", perDatagram)
	}
	if c.parsed < n/1000 {
		t.Errorf("only %d discovery payloads were good", c.parsed)
	}
	t.Logf("%d datagrams, seed %d: %d good discovery payloads, %d bytes allocated per datagram", n, seed, c.parsed, perDatagram)
}

// mutate appends a damaged datagram to b.
func mutate(rnd *rand.Rand, b []byte, seeds [][]byte) []byte {
	b = append(b, seeds[rnd.IntN(len(seeds))]...)
	for range 1 + rnd.IntN(4) {
		if len(b) == 0 {
			return b
		}
		i := rnd.IntN(len(b))
		if rnd.IntN(3) == 0 && len(b) > 64 { // headers and first fields matter most
			i = 20 + rnd.IntN(44)
		}
		switch rnd.IntN(8) {
		case 0:
			b[i] ^= 1 << rnd.IntN(8)
		case 1:
			b[i] = byte(rnd.Uint32())
		case 2:
			b[i] = [...]byte{0, 1, 2, 4, 0x7f, 0x80, 0xff}[rnd.IntN(7)]
		case 3: // a number
			v := [...]uint32{0, 1, 0xff, 0x100, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff}[rnd.IntN(8)]
			i &^= 3
			if i+4 <= len(b) {
				le.PutUint32(b[i:], v)
			}
		case 4: // a submessage id or a length, with the other byte order at times
			i &^= 3
			if i+4 <= len(b) && i >= HeaderSize {
				b[i] = [...]byte{idData, idDataFrag, idHeartbeat, idHeartbeatFrag, idAckNack, idNackFrag, idGap, idInfoTS, idInfoSrc, idInfoDst}[rnd.IntN(10)]
				b[i+1] = byte(rnd.IntN(16))
				le.PutUint16(b[i+2:], uint16(rnd.IntN(len(b))&^rnd.IntN(4)))
			}
		case 5:
			b = b[:i]
		case 6: // cut something out
			b = append(b[:i], b[min(len(b), i+rnd.IntN(16)):]...)
		case 7: // go on with the tail of another datagram
			other := seeds[rnd.IntN(len(seeds))]
			b = append(b[:i], other[min(i, len(other)):]...)
		}
	}
	return b
}
