package wire

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// unhex reads hexadecimal with blanks, line ends and bars in between.
func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "", "\t", "", "|", "").Replace(s))
	if err != nil {
		panic(err)
	}
	return b
}

// recorder is a Handler that keeps copies of what it is given.
type recorder struct {
	got []any
	ctx []Context
}

func (r *recorder) add(c *Context, v any) { r.got, r.ctx = append(r.got, v), append(r.ctx, *c) }

func (r *recorder) Data(c *Context, d *Data) {
	v := *d
	v.Payload = slices.Clone(d.Payload)
	r.add(c, v)
}

func (r *recorder) DataFrag(c *Context, d *DataFrag) {
	v := *d
	v.Payload = slices.Clone(d.Payload)
	r.add(c, v)
}
func (r *recorder) AckNack(c *Context, a *AckNack)             { r.add(c, *a) }
func (r *recorder) NackFrag(c *Context, n *NackFrag)           { r.add(c, *n) }
func (r *recorder) Heartbeat(c *Context, h *Heartbeat)         { r.add(c, *h) }
func (r *recorder) HeartbeatFrag(c *Context, h *HeartbeatFrag) { r.add(c, *h) }
func (r *recorder) Gap(c *Context, g *Gap)                     { r.add(c, *g) }

// appendAny appends a submessage as the recorder keeps it.
func appendAny(b []byte, v any) []byte {
	switch v := v.(type) {
	case Data:
		return AppendData(b, &v)
	case DataFrag:
		return AppendDataFrag(b, &v)
	case AckNack:
		return AppendAckNack(b, &v)
	case NackFrag:
		return AppendNackFrag(b, &v)
	case Heartbeat:
		return AppendHeartbeat(b, &v)
	case HeartbeatFrag:
		return AppendHeartbeatFrag(b, &v)
	case Gap:
		return AppendGap(b, &v)
	}
	panic(fmt.Sprintf("no submessage: %T", v))
}

var (
	testPrefix = Prefix{1, 0xff, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	testHeader = Header{Version: Version{2, 3}, Vendor: VendorGobag, Prefix: testPrefix}
	testReader = EntityID{0, 0, 1, 4}
	testWriter = EntityID{0, 0, 2, 3}
	testGUID   = GUID{0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf}

	// headerBytes is testHeader.
	headerBytes = unhex("52545053 0203 01ff 01ff0304 05060708 090a0b0c")
)

const (
	rw    = "00000104 00000203 " // testReader, testWriter
	dummy = "00010000 11223344 " // a payload
)

func seqSet(base int64, n uint32, members ...int64) SeqSet {
	s := SeqSet{Base: base}
	for _, m := range members {
		if !s.Add(m) {
			panic(m)
		}
	}
	s.NumBits = n
	return s
}

func fragSet(base uint32, n uint32, members ...uint32) FragSet {
	s := FragSet{Base: base}
	for _, m := range members {
		if !s.Add(m) {
			panic(m)
		}
	}
	s.NumBits = n
	return s
}

// submessageCases holds every submessage in both byte orders. One table feeds the golden test, the fuzz seeds and the
// benchmarks. The little-endian form is what Append must produce.
var submessageCases = []struct {
	name   string
	le, be string
	want   any
}{
	{
		name: "ACKNACK 0 bits",
		le:   "06 03 1800" + rw + "00000000 07000000 | 00000000 | 01000000",
		be:   "06 02 0018" + rw + "00000000 00000007 | 00000000 | 00000001",
		want: AckNack{testReader, testWriter, seqSet(7, 0), 1, true},
	},
	{
		name: "ACKNACK Fast's first, base 0",
		le:   "06 01 1800" + rw + "00000000 00000000 | 00000000 | 02000000",
		be:   "06 00 0018" + rw + "00000000 00000000 | 00000000 | 00000002",
		want: AckNack{testReader, testWriter, SeqSet{}, 2, false},
	},
	{
		name: "ACKNACK 1 bit",
		le:   "06 01 1c00" + rw + "01000000 02000000 | 01000000 00000080 | 03000000",
		be:   "06 00 001c" + rw + "00000001 00000002 | 00000001 80000000 | 00000003",
		want: AckNack{testReader, testWriter, seqSet(1<<32+2, 1, 1<<32+2), 3, false},
	},
	{
		name: "ACKNACK 32 bits",
		le:   "06 01 1c00" + rw + "00000000 0a000000 | 20000000 01000080 | 04000000",
		be:   "06 00 001c" + rw + "00000000 0000000a | 00000020 80000001 | 00000004",
		want: AckNack{testReader, testWriter, seqSet(10, 32, 10, 41), 4, false},
	},
	{
		name: "ACKNACK 33 bits",
		le:   "06 01 2000" + rw + "00000000 0a000000 | 21000000 01000040 00000080 | 05000000",
		be:   "06 00 0020" + rw + "00000000 0000000a | 00000021 40000001 80000000 | 00000005",
		want: AckNack{testReader, testWriter, seqSet(10, 33, 11, 41, 42), 5, false},
	},
	{
		name: "ACKNACK 256 bits",
		le:   "06 01 3800" + rw + "00000000 01000000 | 00010000 00000080 00000000 00000000 00000000 00000000 00000000 00000000 01000000 | 06000000",
		be:   "06 00 0038" + rw + "00000000 00000001 | 00000100 80000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 | 00000006",
		want: AckNack{testReader, testWriter, seqSet(1, 256, 1, 256), 6, false},
	},
	{
		name: "NACK_FRAG 0 bits",
		le:   "12 01 1c00" + rw + "00000000 09000000 | 01000000 00000000 | 01000000",
		be:   "12 00 001c" + rw + "00000000 00000009 | 00000001 00000000 | 00000001",
		want: NackFrag{testReader, testWriter, 9, fragSet(1, 0), 1},
	},
	{
		name: "NACK_FRAG 1 bit",
		le:   "12 01 2000" + rw + "00000000 09000000 | 02000000 01000000 00000080 | 01000000",
		be:   "12 00 0020" + rw + "00000000 00000009 | 00000002 00000001 80000000 | 00000001",
		want: NackFrag{testReader, testWriter, 9, fragSet(2, 1, 2), 1},
	},
	{
		name: "NACK_FRAG 33 bits",
		le:   "12 01 2400" + rw + "00000000 09000000 | 02000000 21000000 02000000 00000080 | 01000000",
		be:   "12 00 0024" + rw + "00000000 00000009 | 00000002 00000021 00000002 80000000 | 00000001",
		want: NackFrag{testReader, testWriter, 9, fragSet(2, 33, 32, 34), 1},
	},
	{
		name: "NACK_FRAG 256 bits",
		le:   "12 01 3c00" + rw + "00000000 09000000 | 64000000 00010000 00000000 00000080 00000000 00000000 00000000 00000000 00000000 01000000 | 07000000",
		be:   "12 00 003c" + rw + "00000000 00000009 | 00000064 00000100 00000000 80000000 00000000 00000000 00000000 00000000 00000000 00000001 | 00000007",
		want: NackFrag{testReader, testWriter, 9, fragSet(100, 256, 132, 355), 7},
	},
	{
		name: "HEARTBEAT",
		le:   "07 01 1c00" + rw + "00000000 05000000 | 01000000 02000000 | 09000000",
		be:   "07 00 001c" + rw + "00000000 00000005 | 00000001 00000002 | 00000009",
		want: Heartbeat{testReader, testWriter, 5, 1<<32 + 2, 9, false, false},
	},
	{
		name: "HEARTBEAT empty, final, liveliness",
		le:   "07 07 1c00" + rw + "00000000 01000000 | 00000000 00000000 | 01000000",
		be:   "07 06 001c" + rw + "00000000 00000001 | 00000000 00000000 | 00000001",
		want: Heartbeat{testReader, testWriter, 1, 0, 1, true, true},
	},
	{
		name: "HEARTBEAT_FRAG",
		le:   "13 01 1800" + rw + "00000000 05000000 | 0a000000 | 03000000",
		be:   "13 00 0018" + rw + "00000000 00000005 | 0000000a | 00000003",
		want: HeartbeatFrag{testReader, testWriter, 5, 10, 3},
	},
	{
		name: "GAP 0 bits",
		le:   "08 01 1c00" + rw + "00000000 05000000 | 00000000 08000000 00000000",
		be:   "08 00 001c" + rw + "00000000 00000005 | 00000000 00000008 00000000",
		want: Gap{testReader, testWriter, 5, seqSet(8, 0)},
	},
	{
		name: "GAP 33 bits",
		le:   "08 01 2400" + rw + "00000000 05000000 | 00000000 08000000 21000000 00000040 00000080",
		be:   "08 00 0024" + rw + "00000000 00000005 | 00000000 00000008 00000021 40000000 80000000",
		want: Gap{testReader, testWriter, 5, seqSet(8, 33, 9, 40)},
	},
	{
		name: "DATA",
		le:   "15 05 1c00 | 0000 1000" + rw + "00000000 03000000" + dummy,
		be:   "15 04 001c | 0000 0010" + rw + "00000000 00000003" + dummy,
		want: Data{Reader: testReader, Writer: testWriter, Seq: 3, Payload: unhex(dummy)},
	},
	{
		name: "DATA without payload",
		le:   "15 01 1400 | 0000 1000" + rw + "00000000 03000000",
		be:   "15 00 0014 | 0000 0010" + rw + "00000000 00000003",
		want: Data{Reader: testReader, Writer: testWriter, Seq: 3},
	},
	{
		name: "DATA key, dispose and unregister",
		le:   "15 0b 3c00 | 0000 1000" + rw + "00000000 04000000 | 7000 1000 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 7100 0400 00000003 0100 0000 |" + dummy,
		be:   "15 0a 003c | 0000 0010" + rw + "00000000 00000004 | 0070 0010 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 0071 0004 00000003 0001 0000 |" + dummy,
		want: Data{Reader: testReader, Writer: testWriter, Seq: 4, Key: true, Payload: unhex(dummy),
			InlineQoS: InlineQoS{Present: true, Status: 3, HasKeyHash: true, KeyHash: testGUID}},
	},
	{
		name: "DATA with empty inline QoS",
		le:   "15 07 2000 | 0000 1000" + rw + "00000000 05000000 | 0100 0000 |" + dummy,
		be:   "15 06 0020 | 0000 0010" + rw + "00000000 00000005 | 0001 0000 |" + dummy,
		want: Data{Reader: testReader, Writer: testWriter, Seq: 5, Payload: unhex(dummy), InlineQoS: InlineQoS{Present: true}},
	},
	{
		name: "DATA with related sample identity",
		le: "15 07 5800 | 0000 1000" + rw + "00000000 06000000 | 0f80 1800 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 01000000 02000000" +
			"8300 1800 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 01000000 02000000 0100 0000 |" + dummy,
		be: "15 06 0058 | 0000 0010" + rw + "00000000 00000006 | 800f 0018 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 00000001 00000002" +
			"0083 0018 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 00000001 00000002 0001 0000 |" + dummy,
		want: Data{Reader: testReader, Writer: testWriter, Seq: 6, Payload: unhex(dummy),
			InlineQoS: InlineQoS{Present: true, HasRelated: true, RelatedGUID: testGUID, RelatedSeq: 1<<32 + 2}},
	},
	{
		name: "DATA_FRAG first",
		le:   "16 01 2800 | 0000 1c00" + rw + "00000000 07000000 | 01000000 0100 0800 13000000 |" + dummy,
		be:   "16 00 0028 | 0000 001c" + rw + "00000000 00000007 | 00000001 0001 0008 00000013 |" + dummy,
		want: DataFrag{Reader: testReader, Writer: testWriter, Seq: 7, First: 1, Count: 1, Size: 8, SampleSize: 19, Payload: unhex(dummy)},
	},
	{
		name: "DATA_FRAG last two, the last one short, padding behind it",
		le:   "16 01 2c00 | 0000 1c00" + rw + "00000000 07000000 | 02000000 0200 0800 13000000 | 0102030405060708 090a0b 00",
		be:   "16 00 002c | 0000 001c" + rw + "00000000 00000007 | 00000002 0002 0008 00000013 | 0102030405060708 090a0b 00",
		want: DataFrag{Reader: testReader, Writer: testWriter, Seq: 7, First: 2, Count: 2, Size: 8, SampleSize: 19, Payload: unhex("0102030405060708 090a0b")},
	},
	{
		name: "DATA_FRAG key with inline QoS",
		le:   "16 07 3400 | 0000 1c00" + rw + "00000000 08000000 | 01000000 0100 0800 13000000 | 7100 0400 00000001 0100 0000 |" + dummy,
		be:   "16 06 0034 | 0000 001c" + rw + "00000000 00000008 | 00000001 0001 0008 00000013 | 0071 0004 00000001 0001 0000 |" + dummy,
		want: DataFrag{Reader: testReader, Writer: testWriter, Seq: 8, First: 1, Count: 1, Size: 8, SampleSize: 19, Payload: unhex(dummy), Key: true,
			InlineQoS: InlineQoS{Present: true, Status: StatusDisposed}},
	},
}
