package wire

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestSubmessages holds Append and Decode against the bytes of the specification, in both byte orders.
func TestSubmessages(t *testing.T) {
	for _, c := range submessageCases {
		t.Run(c.name, func(t *testing.T) {
			for _, form := range []struct{ name, bytes string }{{"LE", c.le}, {"BE", c.be}} {
				body := unhex(form.bytes)
				if len(body)%4 != 0 {
					t.Fatalf("%s: case of %d bytes", form.name, len(body))
				}
				var r recorder
				if err := Decode(slices.Concat(headerBytes, body), &r); err != nil {
					t.Fatalf("decode %s: %v", form.name, err)
				}
				if len(r.got) != 1 || !reflect.DeepEqual(r.got[0], c.want) {
					t.Errorf("decode %s\n got %+v\nwant %+v", form.name, r.got, c.want)
				}
			}
			if got := appendAny(nil, c.want); !bytes.Equal(got, unhex(c.le)) {
				t.Errorf("append\n got %x\nwant %x", got, unhex(c.le))
			}
			// Behind other bytes, in a slice with room, the same comes out.
			pre := append(make([]byte, 0, 4096), headerBytes...)
			if got := appendAny(pre, c.want); !bytes.Equal(got, slices.Concat(headerBytes, unhex(c.le))) {
				t.Errorf("append behind a header: %x", got)
			}
		})
	}
}

func TestHeaderAndInfo(t *testing.T) {
	if got := AppendHeader(nil, testHeader); !bytes.Equal(got, headerBytes) {
		t.Errorf("header %x", got)
	}
	if got := AppendHeader(nil, Header{Vendor: VendorGobag, Prefix: testPrefix}); !bytes.Equal(got, headerBytes) {
		t.Errorf("header of version zero %x", got)
	}
	if got, want := AppendInfoDst(nil, testPrefix), unhex("0e01 0c00 01ff0304 05060708 090a0b0c"); !bytes.Equal(got, want) {
		t.Errorf("INFO_DST %x", got)
	}
	if got, want := AppendInfoTS(nil, 0x0102030405060708), unhex("0901 0800 04030201 08070605"); !bytes.Equal(got, want) {
		t.Errorf("INFO_TS %x", got)
	}
}

// TestContext follows INFO_SRC, INFO_DST and INFO_TS through a datagram.
func TestContext(t *testing.T) {
	const hb = "07 01 1c00" + rw + "00000000 01000000 00000000 00000000 01000000 "
	b := slices.Concat(headerBytes, unhex(
		hb+
			"0901 0800 04030201 08070605"+hb+ // LE time
			"0900 0008 01020305 05060708"+hb+ // BE time
			"0e01 0c00 a0a1a2a3 a4a5a6a7 a8a9aaab"+hb+
			"0903 0000"+hb+ // no time any more
			"0901 0800 ffffffff ffffffff"+hb+ // said otherwise
			"0901 0800 04030201 08070605"+
			"0c01 1400 00000000 0201 0110 b0b1b2b3 b4b5b6b7 b8b9babb"+hb+ // another source, whose time is unknown
			"0e00 000c 00000000 00000000 00000000"+hb)) // for anyone again
	var r recorder
	if err := Decode(b, &r); err != nil {
		t.Fatal(err)
	}
	dst, src := Prefix(unhex("a0a1a2a3 a4a5a6a7 a8a9aaab")), Prefix(unhex("b0b1b2b3 b4b5b6b7 b8b9babb"))
	want := []Context{
		{testHeader, testPrefix, VendorGobag, Prefix{}, 0, false},
		{testHeader, testPrefix, VendorGobag, Prefix{}, 0x0102030405060708, true},
		{testHeader, testPrefix, VendorGobag, Prefix{}, 0x0102030505060708, true},
		{testHeader, testPrefix, VendorGobag, dst, 0x0102030505060708, true},
		{testHeader, testPrefix, VendorGobag, dst, 0, false},
		{testHeader, testPrefix, VendorGobag, dst, TimestampInvalid, false},
		{testHeader, src, VendorCyclone, dst, 0, false},
		{testHeader, src, VendorCyclone, Prefix{}, 0, false},
	}
	if !reflect.DeepEqual(r.ctx, want) {
		t.Errorf("contexts\n got %v\nwant %v", r.ctx, want)
	}
	// State does not outlive the datagram.
	var d Decoder
	var again recorder
	if err := errors.Join(d.Decode(b, &again), d.Decode(slices.Concat(headerBytes, unhex(hb)), &again)); err != nil {
		t.Fatal(err)
	}
	if got := again.ctx[len(again.ctx)-1]; got != want[0] {
		t.Errorf("context of the next datagram %v", got)
	}
}

// TestTolerated has what is legal though unusual: it must be read, and what follows it too.
func TestTolerated(t *testing.T) {
	const hb = "07 01 1c00" + rw + "00000000 01000000 00000000 00000000 01000000 "
	beat := Heartbeat{testReader, testWriter, 1, 0, 1, false, false}
	data := Data{Reader: testReader, Writer: testWriter, Seq: 3, Payload: unhex(dummy)}
	inline := func(q InlineQoS) Data { d := data; q.Present = true; d.InlineQoS = q; return d }
	for _, c := range []struct {
		name, bytes string
		want        []any
	}{
		{"only a header", "", nil},
		{"PAD with length 0", "0101 0000" + hb, []any{beat}},
		{"PAD with a body", "0101 0800 0102030405060708" + hb, []any{beat}},
		{"INFO_TS with length 0 and no time", "0903 0000" + hb, []any{beat}},
		{"INFO_REPLY, INFO_REPLY_IP4", "0f01 0400 00000000 0d01 0400 00000000" + hb, []any{beat}},
		{"unknown id", "2a01 0400 01020304" + hb, []any{beat}},
		{"security ids", "3101 0400 01020304 3000 0004 01020304 3201 0400 01020304 3301 0400 01020304 3401 0400 01020304" + hb, []any{beat}},
		{"Fast's statistics", hb + "8001 1000 00000000 00000000 00000000 00000000", []any{beat}},
		{"vendor id with length 0 at the end", hb + "8001 0000 0102030405", []any{beat}},
		{"length 0 at the end", hb + "15 05 0000 | 0000 1000" + rw + "00000000 03000000" + dummy, []any{beat, data}},
		{"length 0 at the end, BE", hb + "15 04 0000 | 0000 0010" + rw + "00000000 00000003" + dummy, []any{beat, data}},
		{"length not a multiple of 4", "15 05 1e00 | 0000 1000" + rw + "00000000 03000000" + dummy + "0000" + hb,
			[]any{Data{Reader: testReader, Writer: testWriter, Seq: 3, Payload: unhex(dummy + "0000")}, beat}},
		{"HEARTBEAT with later versions' tail", "07 11 2800" + rw + "00000000 01000000 00000000 00000000 01000000 010203040506070809101112" + hb, []any{beat, beat}},
		{"ACKNACK with unused words", "06 01 2000" + rw + "00000000 07000000 | 00000000 | 01000000 ffffffff ffffffff", []any{AckNack{testReader, testWriter, seqSet(7, 0), 1, false}}},
		{"bits beyond numBits", "06 01 2000" + rw + "00000000 0a000000 | 21000000 01000040 ffffffff | 05000000", []any{AckNack{testReader, testWriter, seqSet(10, 33, 11, 41, 42), 5, false}}},
		{"GAP that ends before it begins", "08 01 2000" + rw + "00000000 05000000 | 00000000 03000000 01000000 00000080", []any{Gap{testReader, testWriter, 3, seqSet(3, 1, 3)}}},
		{"largest sequence number", "07 01 1c00" + rw + "ffffff7f fffbffff ffffff7f fffbffff 01000000", []any{Heartbeat{testReader, testWriter, MaxSeq, MaxSeq, 1, false, false}}},
		{"fields before the inline QoS", "15 07 2c00 | 0000 1800" + rw + "00000000 03000000 | dededededededede | 7100 0400 00000001 0100 0000 | 00010000", []any{
			Data{Reader: testReader, Writer: testWriter, Seq: 3, Payload: unhex("00010000"), InlineQoS: InlineQoS{Present: true, Status: 1}}}},
		{"fields before the payload", "15 05 2000 | 0000 1400" + rw + "00000000 03000000 | dededede" + dummy, []any{data}},
		{"non-standard payload is passed over", "15 15 1c00 | 0000 1000" + rw + "00000000 03000000" + dummy + hb, []any{beat}},
		{"inline PAD and unknown parameters", "15 07 3000 | 0000 1000" + rw + "00000000 03000000 | 0000 0400 01020304 5555 0400 01020304 0100 1234 |" + dummy, []any{inline(InlineQoS{})}},
		{"status info is big-endian always", "15 06 0028 | 0000 0010" + rw + "00000000 00000003 | 0071 0004 00000002 0001 0000 |" + dummy, []any{inline(InlineQoS{Status: 2})}},
		{"unknown parameter to be understood empties the list", "15 07 3000 | 0000 1000" + rw + "00000000 03000000 | 7100 0400 00000001 5540 0400 01020304 0100 0000 |" + dummy, []any{inline(InlineQoS{})}},
		{"related identity under the standard's id", "15 07 3c00 | 0000 1000" + rw + "00000000 03000000 | 8300 1800 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 00000000 02000000 0100 0000 |" + dummy,
			[]any{inline(InlineQoS{HasRelated: true, RelatedGUID: testGUID, RelatedSeq: 2})}},
		{"Fast's related identity is Fast's alone", "0c01 1400 00000000 0201 0110 b0b1b2b3 b4b5b6b7 b8b9babb" +
			"15 07 3c00 | 0000 1000" + rw + "00000000 03000000 | 0f80 1800 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 00000000 02000000 0100 0000 |" + dummy, []any{inline(InlineQoS{})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r recorder
			if err := Decode(slices.Concat(headerBytes, unhex(c.bytes)), &r); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(r.got, c.want) {
				t.Errorf("\n got %+v\nwant %+v", r.got, c.want)
			}
		})
	}
}

// TestMalformed has what must end a datagram: one heartbeat before it is delivered, the one behind it is not.
func TestMalformed(t *testing.T) {
	const hb = "07 01 1c00" + rw + "00000000 01000000 00000000 00000000 01000000 "
	for _, c := range []struct{ name, bytes, want string }{
		{"rest of a submessage header", "0701", "2 bytes left"},
		{"beyond the datagram", "0601 4000" + rw, "ACKNACK: 64 bytes, 8 left in the datagram"},
		{"unknown id beyond the datagram", "2a01 ff00 01020304", "submessage 0x2a: 255 bytes"},
		{"INFO_TS with length 0", "0901 0000" + hb, "INFO_TS: 0 bytes, at least 8"},
		{"INFO_DST too short", "0e01 0800 0102030405060708" + hb, "INFO_DST: 8 bytes"},
		{"INFO_SRC too short", "0c01 1000 00000000 0201 0110 b0b1b2b3 b4b5b6b7" + hb, "INFO_SRC: 16 bytes"},
		{"HEARTBEAT too short", "0701 1800" + rw + "00000000 01000000 00000000 00000000" + hb, "HEARTBEAT: 24 bytes, at least 28"},
		{"HEARTBEAT (2, 0)", "07 01 1c00" + rw + "00000000 02000000 00000000 00000000 01000000" + hb, "last sequence number 0 after first 2"},
		{"HEARTBEAT (0, 0)", "07 01 1c00" + rw + "00000000 00000000 00000000 00000000 01000000" + hb, "first sequence number 0"},
		{"HEARTBEAT negative", "07 01 1c00" + rw + "ffffffff 00000000 00000000 00000000 01000000" + hb, "first sequence number -4294967296"},
		{"HEARTBEAT too large", "07 01 1c00" + rw + "00000000 01000000 ffffff7f fffcffff 01000000" + hb, "last sequence number 9223372036854775039"},
		{"HEARTBEAT_FRAG of sequence number 0", "13 01 1800" + rw + "00000000 00000000 0a000000 03000000" + hb, "sequence number 0"},
		{"HEARTBEAT_FRAG of fragment 0", "13 01 1800" + rw + "00000000 05000000 00000000 03000000" + hb, "last fragment 0"},
		{"ACKNACK with 257 bits", "06 01 3c00" + rw + "00000000 01000000 | 01010000" + strings.Repeat("ffffffff", 9) + "01000000" + hb, "set of 257 bits"},
		{"ACKNACK words missing", "06 01 1800" + rw + "00000000 01000000 | 21000000 ffffffff" + hb, "set of 33 bits, 4 bytes left"},
		{"ACKNACK count missing", "06 01 1800" + rw + "00000000 01000000 | 20000000 ffffffff" + hb, "count missing"},
		{"ACKNACK base 0 with bits", "06 01 1c00" + rw + "00000000 00000000 | 01000000 00000080 | 03000000" + hb, "base 0"},
		{"NACK_FRAG base 0", "12 01 2000" + rw + "00000000 09000000 | 00000000 01000000 00000080 | 01000000" + hb, "fragment base 0"},
		{"NACK_FRAG base overflows", "12 01 2000" + rw + "00000000 09000000 | 00ffffff 01000000 00000080 | 01000000" + hb, "fragment base 4294967040"},
		{"NACK_FRAG of sequence number 0", "12 01 2000" + rw + "00000000 00000000 | 01000000 01000000 00000080 | 01000000" + hb, "sequence number 0"},
		{"GAP from 0", "08 01 1c00" + rw + "00000000 00000000 | 00000000 08000000 00000000" + hb, "start 0"},
		{"GAP base 0", "08 01 1c00" + rw + "00000000 01000000 | 00000000 00000000 00000000" + hb, "base 0"},
		{"DATA of sequence number 0", "15 05 1c00 | 0000 1000" + rw + "00000000 00000000" + dummy + hb, "sequence number 0"},
		{"DATA with data and key", "15 0d 1c00 | 0000 1000" + rw + "00000000 03000000" + dummy + hb, "both data and key"},
		{"DATA with a short payload", "15 05 1600 | 0000 1000" + rw + "00000000 03000000 0001" + hb, "payload of 2 bytes"},
		{"DATA inline QoS before the fixed part's end", "15 05 1c00 | 0000 0c00" + rw + "00000000 03000000" + dummy + hb, "inline QoS -4 bytes"},
		{"DATA inline QoS beyond the end", "15 05 1c00 | 0000 1c00" + rw + "00000000 03000000" + dummy + hb, "inline QoS 12 bytes behind the fixed part, 8 bytes left"},
		{"inline QoS without end", "15 03 1c00 | 0000 1000" + rw + "00000000 03000000 7100 0400 00000001" + hb, "without sentinel"},
		{"inline QoS parameter too long", "15 03 1c00 | 0000 1000" + rw + "00000000 03000000 7100 0800 00000001" + hb, "parameter 0x0071: length 8, 4 bytes left"},
		{"inline QoS parameter of odd length", "15 03 2000 | 0000 1000" + rw + "00000000 03000000 7100 0300 00000001 01000000" + hb, "not a multiple of 4"},
		{"DATA_FRAG fragment 0", "16 01 2800 | 0000 1c00" + rw + "00000000 07000000 | 00000000 0100 0800 13000000 |" + dummy + hb, "1 fragments from 0"},
		{"DATA_FRAG no fragments", "16 01 2800 | 0000 1c00" + rw + "00000000 07000000 | 01000000 0000 0800 13000000 |" + dummy + hb, "0 fragments"},
		{"DATA_FRAG of size 0", "16 01 2800 | 0000 1c00" + rw + "00000000 07000000 | 01000000 0100 0000 13000000 |" + dummy + hb, "0 bytes each"},
		{"DATA_FRAG of an empty sample", "16 01 2800 | 0000 1c00" + rw + "00000000 07000000 | 01000000 0100 0800 00000000 |" + dummy + hb, "sample of 0 bytes"},
		{"DATA_FRAG behind the sample", "16 01 2800 | 0000 1c00" + rw + "00000000 07000000 | 04000000 0100 0800 13000000 |" + dummy + hb, "exceed the sample"},
		{"DATA_FRAG far behind the sample", "16 01 2800 | 0000 1c00" + rw + "00000000 07000000 | ffffffff ffff ffff 13000000 |" + dummy + hb, "exceed the sample"},
		{"DATA_FRAG bytes missing", "16 01 2800 | 0000 1c00" + rw + "00000000 07000000 | 01000000 0200 0800 13000000 |" + dummy + hb, "2 fragments of 8 bytes, 8 bytes there"},
		{"DATA_FRAG last one's bytes missing", "16 01 2400 | 0000 1c00" + rw + "00000000 07000000 | 02000000 0100 0800 0d000000 | 01020304" + hb, "1 fragments of 8 bytes, 4 bytes there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r recorder
			err := Decode(slices.Concat(headerBytes, unhex(hb+c.bytes)), &r)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v, an *Error expected", err)
			}
			if e.Offset != HeaderSize+32 || !strings.Contains(e.What, c.want) {
				t.Errorf("error %q at %d, %q at 52 expected", e.What, e.Offset, c.want)
			}
			if len(r.got) != 1 {
				t.Errorf("%d submessages delivered, 1 expected", len(r.got))
			}
		})
	}
}

func TestNotRTPS(t *testing.T) {
	for _, b := range [][]byte{nil, {0}, []byte("RTPS"), headerBytes[:19], slices.Concat([]byte("RTPX"), headerBytes[4:]), make([]byte, 100)} {
		if err := Decode(b, new(recorder)); err != ErrNotRTPS {
			t.Errorf("%x: %v", b, err)
		}
	}
	for version, ok := range map[Version]bool{{2, 0}: false, {2, 1}: true, {2, 2}: true, {2, 5}: true, {1, 1}: false, {3, 0}: false} {
		b := AppendHeader(nil, Header{Version: version})
		if err := Decode(b, new(recorder)); (err == nil) != ok {
			t.Errorf("version %s: %v", version, err)
		}
	}
}

// TestDataHead has the form for scattered writes: head, payload and pad make the same bytes as the whole.
func TestDataHead(t *testing.T) {
	for _, n := range []int{0, 4, 5, 6, 7, 8, 1343, 1344, 65000} {
		d := Data{Reader: testReader, Writer: testWriter, Seq: 9, Payload: bytes.Repeat([]byte{0xee}, n), InlineQoS: InlineQoS{Status: 1}}
		head, pad := AppendDataHead(nil, &Data{Reader: d.Reader, Writer: d.Writer, Seq: d.Seq, InlineQoS: d.InlineQoS}, n)
		whole := AppendData(nil, &d)
		if got := slices.Concat(head, d.Payload, make([]byte, pad)); !bytes.Equal(got, whole) || len(whole)%4 != 0 {
			t.Errorf("DATA of %d bytes differs", n)
		}
		f := DataFrag{Reader: testReader, Writer: testWriter, Seq: 9, First: 2, Count: 1, Size: uint16(n), SampleSize: uint32(2 * n), Payload: d.Payload}
		g := f
		g.Payload = nil
		head, pad = AppendDataFragHead(nil, &g, n)
		whole = AppendDataFrag(nil, &f)
		if got := slices.Concat(head, d.Payload, make([]byte, pad)); !bytes.Equal(got, whole) || len(whole)%4 != 0 {
			t.Errorf("DATA_FRAG of %d bytes differs", n)
		}
	}
	// More than a length field can say is said by 0, at the end of a datagram.
	d := Data{Reader: testReader, Writer: testWriter, Seq: 9, Payload: make([]byte, 65520)}
	b := AppendData(slices.Clone(headerBytes), &d)
	var r recorder
	if err := Decode(b, &r); err != nil || len(r.got) != 1 || len(r.got[0].(Data).Payload) != 65520 {
		t.Errorf("DATA of 65520 bytes: %v, %d delivered", err, len(r.got))
	}
}
