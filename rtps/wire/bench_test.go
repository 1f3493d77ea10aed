package wire

import (
	"bytes"
	"slices"
	"testing"
)

// sink is a Handler that looks at what it is given and keeps nothing.
type sink struct{ n, bytes int }

func (s *sink) Data(_ *Context, d *Data)               { s.n++; s.bytes += len(d.Payload) }
func (s *sink) DataFrag(_ *Context, d *DataFrag)       { s.n++; s.bytes += len(d.Payload) }
func (s *sink) AckNack(*Context, *AckNack)             { s.n++ }
func (s *sink) NackFrag(*Context, *NackFrag)           { s.n++ }
func (s *sink) Heartbeat(*Context, *Heartbeat)         { s.n++ }
func (s *sink) HeartbeatFrag(*Context, *HeartbeatFrag) { s.n++ }
func (s *sink) Gap(*Context, *Gap)                     { s.n++ }

// sampleDatagram is what a reliable writer sends most: INFO_DST, INFO_TS, DATA, HEARTBEAT.
func sampleDatagram(payload int) []byte {
	b := AppendHeader(nil, testHeader)
	b = AppendInfoDst(b, testPrefix)
	b = AppendInfoTS(b, TimestampFromUnix(1796042341186541653))
	b = AppendData(b, &Data{Reader: testReader, Writer: testWriter, Seq: 77, Payload: bytes.Repeat([]byte{1}, payload)})
	return AppendHeartbeat(b, &Heartbeat{Reader: testReader, Writer: testWriter, First: 68, Last: 77, Count: 12})
}

// TestNoAllocations holds that neither decoding nor appending allocates, whatever the submessage.
func TestNoAllocations(t *testing.T) {
	var d Decoder
	var s sink
	buf := make([]byte, 0, 64<<10)
	check := func(name string, f func()) {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	for _, c := range submessageCases {
		for order, form := range map[string]string{"LE": c.le, "BE": c.be} {
			b := slices.Concat(headerBytes, unhex(form))
			check("decode "+c.name+" "+order, func() {
				if d.Decode(b, &s) != nil {
					t.Error("malformed")
				}
			})
		}
		v := c.want
		check("append "+c.name, func() { buf = appendAny(buf[:0], v) })
	}
	b := sampleDatagram(324)
	check("decode a sample", func() { d.Decode(b, &s) })
	check("not RTPS", func() { d.Decode(b[:1], &s) })
	p, e := fullParticipant(), fullEndpoint()
	check("append participant", func() { buf = p.Append(buf[:0]) })
	check("append endpoint", func() { buf = e.Append(buf[:0], true) })
	check("append key", func() { buf = AppendKey(buf[:0], e.GUID) })
	l := LivelinessMessage{Prefix: testPrefix, Kind: LivelinessAutomatic}
	check("append liveliness", func() { buf = l.Append(buf[:0]) })
	payload := l.Append(nil)
	check("parse liveliness", func() { ParseLiveliness(payload) })
	key := AppendKey(nil, e.GUID)
	check("parse key", func() { ParseKey(key, nil) })
}

func BenchmarkDecode(b *testing.B) {
	bench := func(name string, datagram []byte) {
		b.Run(name, func(b *testing.B) {
			var d Decoder
			var s sink
			b.SetBytes(int64(len(datagram)))
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Decode(datagram, &s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	bench("sample 24 B", sampleDatagram(24))
	bench("sample 324 B", sampleDatagram(324))
	bench("sample 60 kB", sampleDatagram(60000))
	for _, c := range submessageCases {
		bench(c.name, slices.Concat(headerBytes, unhex(c.le)))
	}
}

func BenchmarkAppend(b *testing.B) {
	buf := make([]byte, 0, 64<<10)
	for _, c := range submessageCases {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				buf = appendAny(buf[:0], c.want)
			}
		})
	}
	payload := make([]byte, 60000)
	d := Data{Reader: testReader, Writer: testWriter, Seq: 77, Payload: payload}
	b.Run("DATA head, payload not copied", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = AppendDataHead(buf[:0], &d, len(payload))
		}
	})
}

func BenchmarkDiscovery(b *testing.B) {
	p, e := fullParticipant(), fullEndpoint()
	pb, eb := p.Append(nil), e.Append(nil, true)
	b.Run("parse participant", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ParseParticipant(pb, nil, VendorCyclone); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parse endpoint", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ParseEndpoint(eb, nil, VendorCyclone, true); err != nil {
				b.Fatal(err)
			}
		}
	})
}
