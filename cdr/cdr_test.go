package cdr

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// mixed writes one of everything, with gaps to be aligned over.
func mixed(e *Encoder) {
	e.Uint8(0x01)
	e.Uint16(0x0203)
	e.Bool(true)
	e.Uint32(0x04050607)
	e.Int8(-2)
	e.Uint64(0x08090a0b0c0d0e0f)
	e.Bool(false)
	e.Float64(1)
	e.Int16(-3)
	e.Float32(-2)
	e.Str("héj")
	e.Int64(-4)
	e.ByteSeq([]byte{0xaa, 0xbb})
	e.Int32(-5)
	e.WStr("a😀")
	e.SeqLen(0)
}

// TestMixed holds the four plain representations against bytes worked out by hand.
func TestMixed(t *testing.T) {
	for kind, want := range map[Kind]string{
		CDRLE: "00010000 0100 0302 01000000 07060504 fe000000 0f0e0d0c0b0a0908 00 00000000000000 000000000000f03f fdff 0000 000000c0" +
			"05000000 68c3a96a00 00000000000000 fcffffffffffffff 02000000 aabb0000 fbffffff 03000000 61000000 3dd80000 00de0000 00000000",
		CDRBE: "00000000 0100 0203 01000000 04050607 fe000000 08090a0b0c0d0e0f 00 00000000000000 3ff0000000000000 fffd 0000 c0000000" +
			"00000005 68c3a96a00 00000000000000 fffffffffffffffc 00000002 aabb0000 fffffffb 00000003 00000061 0000d83d 0000de00 00000000",
		CDR2LE: "00070000 0100 0302 01000000 07060504 fe000000 0f0e0d0c0b0a0908 00 000000 000000000000f03f fdff 0000 000000c0" +
			"05000000 68c3a96a00 000000 fcffffffffffffff 02000000 aabb0000 fbffffff 03000000 61000000 3dd80000 00de0000 00000000",
		CDR2BE: "00060000 0100 0203 01000000 04050607 fe000000 08090a0b0c0d0e0f 00 000000 3ff0000000000000 fffd 0000 c0000000" +
			"00000005 68c3a96a00 000000 fffffffffffffffc 00000002 aabb0000 fffffffb 00000003 00000061 0000d83d 0000de00 00000000",
	} {
		raw := unhex(want)
		e := NewEncoder(nil, kind)
		mixed(e)
		if got := e.Bytes(); !bytes.Equal(got, raw) {
			t.Errorf("%s\n got %x\nwant %x", kind, got, raw)
		}
		d, err := NewDecoder(raw)
		if err != nil {
			t.Fatal(err)
		}
		got := []any{d.Uint8(), d.Uint16(), d.Bool(), d.Uint32(), d.Int8(), d.Uint64(), d.Bool(), d.Float64(), d.Int16(), d.Float32(),
			d.Str(), d.Int64(), string(d.ByteSeq()), d.Int32(), d.WStr(), d.Len(8)}
		wantValues := []any{uint8(1), uint16(0x0203), true, uint32(0x04050607), int8(-2), uint64(0x08090a0b0c0d0e0f), false, 1.0, int16(-3), float32(-2),
			"héj", int64(-4), "\xaa\xbb", int32(-5), "a😀", 0}
		if !slices.Equal(got, wantValues) || d.Err() != nil || d.Left() != 0 {
			t.Errorf("%s\n got %v, %v, %d left\nwant %v", kind, got, d.Err(), d.Left(), wantValues)
		}
		if d.Kind() != kind || d.Pos() != len(raw) || e.Len() != len(raw) {
			t.Errorf("%s: kind %s, position %d, length %d of %d", kind, d.Kind(), d.Pos(), e.Len(), len(raw))
		}
	}
}

func TestKind(t *testing.T) {
	for k, want := range map[Kind]struct {
		name    string
		big     bool
		version int
		list    bool
	}{
		CDRBE: {"CDR_BE", true, 1, false}, CDRLE: {"CDR_LE", false, 1, false}, PLCDRBE: {"PL_CDR_BE", true, 1, true},
		PLCDRLE: {"PL_CDR_LE", false, 1, true}, XML: {"XML", true, 0, false}, CDR2BE: {"CDR2_BE", true, 2, false},
		CDR2LE: {"CDR2_LE", false, 2, false}, DCDR2BE: {"D_CDR2_BE", true, 2, false}, DCDR2LE: {"D_CDR2_LE", false, 2, false},
		PLCDR2BE: {"PL_CDR2_BE", true, 2, true}, PLCDR2LE: {"PL_CDR2_LE", false, 2, true},
		5: {"encapsulation 0x0005", false, 0, false}, 0x1234: {"encapsulation 0x1234", true, 0, false},
	} {
		if k.String() != want.name || k.BigEndian() != want.big || k.Version() != want.version || k.ParameterList() != want.list {
			t.Errorf("%s: %s, %v, %d, %v", want.name, k, k.BigEndian(), k.Version(), k.ParameterList())
		}
	}
	kind, options, body, err := Split(unhex("0007 0003 01 000000"))
	if kind != CDR2LE || Padding(options) != 3 || !bytes.Equal(body, unhex("01000000")) || err != nil {
		t.Errorf("%s, %d, %x, %v", kind, options, body, err)
	}
	if _, _, _, err := Split(unhex("000100")); err == nil {
		t.Error("payload without header accepted")
	}
}

// TestPadding has the pad bytes that vendors put behind a value: declared ones are cut off, others are left over.
func TestPadding(t *testing.T) {
	for payload, left := range map[string]int{
		"00010000 01000000 61": 1, "00010003 01000000 61000000": 1, "00010000 01000000 61000000": 4, "00010001 01000000 6100": 1, "00010003 0100": 2, "00010003": 0,
	} {
		d, err := NewDecoder(unhex(payload))
		if err != nil {
			t.Fatal(err)
		}
		if d.Left() > 4 {
			d.Uint32()
		}
		if d.Left() != left {
			t.Errorf("%s: %d left, %d expected", payload, d.Left(), left)
		}
	}
	for n, want := range map[int]string{0: "00010000", 1: "0001000301000000", 2: "0001000201020000", 3: "0001000101020300", 4: "0001000001020304"} {
		e := NewEncoder(nil, CDRLE)
		for i := range n {
			e.Uint8(uint8(i + 1))
		}
		e.Pad()
		if got := hex.EncodeToString(e.Bytes()); got != want {
			t.Errorf("%d bytes padded to %s, %s expected", n, got, want)
		}
	}
	var e Encoder
	e.ResetBody([]byte{9}, CDRLE)
	e.Uint8(1)
	e.Pad()
	if got := e.Bytes(); !bytes.Equal(got, []byte{9, 1, 0, 0, 0}) || e.Len() != 4 {
		t.Errorf("body padded to %x, length %d", got, e.Len())
	}
}

// TestDecoderErrors has the ways to run out of bytes. After the first error everything is zero and the error stays.
func TestDecoderErrors(t *testing.T) {
	for _, c := range []struct {
		name, payload string
		read          func(d *Decoder)
		want          string
	}{
		{"uint8", "00010000", func(d *Decoder) { d.Uint8() }, "cdr: offset 4: 1 bytes wanted, 0 left"},
		{"uint16", "00010000 01", func(d *Decoder) { d.Uint16() }, "cdr: offset 4: 2 bytes wanted, 1 left"},
		{"uint32 behind alignment", "00010000 01020304 05060708", func(d *Decoder) { d.Uint32(); d.Uint8(); d.Uint32() }, "cdr: offset 9: 4 bytes wanted, 0 left"},
		{"alignment beyond the end", "00010000 0102", func(d *Decoder) { d.Uint16(); d.Align(4) }, "cdr: offset 6: 0 bytes wanted, 0 left"},
		{"uint64", "00010000 01020304", func(d *Decoder) { d.Uint64() }, "8 bytes wanted, 4 left"},
		{"float64", "00010000 01020304", func(d *Decoder) { d.Float64() }, "8 bytes wanted, 4 left"},
		{"string", "00010000 05000000 61626300", func(d *Decoder) { d.Str() }, "cdr: offset 8: sequence of 5 elements, 4 bytes left"},
		{"string of 4 GiB", "00010000 ffffffff 61626300", func(d *Decoder) { d.Str() }, "sequence of 4294967295 elements"},
		{"string length cut", "00010000 0500", func(d *Decoder) { d.Str() }, "4 bytes wanted, 2 left"},
		{"wide string", "00010000 02000000 61000000", func(d *Decoder) { d.WStr() }, "sequence of 2 elements, 4 bytes left"},
		{"sequence", "00010000 02000000 0000000000000000", func(d *Decoder) { d.Len(8) }, "sequence of 2 elements, 8 bytes left"},
		{"sequence of empty elements", "00010000 09000000 0000000000000000", func(d *Decoder) { d.Len(0) }, "sequence of 9 elements, 8 bytes left"},
		{"octets", "00010000 02000000 00", func(d *Decoder) { d.ByteSeq() }, "sequence of 2 elements, 1 bytes left"},
		{"bytes", "00010000 02", func(d *Decoder) { d.Bytes(2) }, "2 bytes wanted, 1 left"},
		{"negative", "00010000 02", func(d *Decoder) { d.Bytes(-1) }, "-1 bytes wanted"},
		{"skip", "00010000 02", func(d *Decoder) { d.Skip(math.MaxInt) }, "1 left"},
		{"the caller's", "00010000 02", func(d *Decoder) { d.Uint8(); d.Fail("kind 2"); d.Fail("later") }, "cdr: offset 5: kind 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := NewDecoder(unhex(c.payload))
			if err != nil {
				t.Fatal(err)
			}
			c.read(d)
			var e *Error
			if err := d.Err(); !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, %q expected", err, c.want)
			}
			if d.Uint8() != 0 || d.Uint64() != 0 || d.Float32() != 0 || d.Str() != "" || d.WStr() != "" || d.ByteSeq() != nil || d.Len(1) != 0 || d.Left() != 0 {
				t.Error("values behind an error")
			}
			d.Align(8)
			if d.Err() != error(e) {
				t.Errorf("error became %v", d.Err())
			}
		})
	}
	for payload, want := range map[string]string{"": "no encapsulation header", "000400003c": "unsupported XML", "00990000": "unsupported encapsulation 0x0099"} {
		d, err := NewDecoder(unhex(payload))
		if err == nil || !strings.Contains(err.Error(), want) || d.Err() == nil || d.Uint8() != 0 {
			t.Errorf("%s: %v, %v", payload, err, d.Err())
		}
	}
}

func TestStrings(t *testing.T) {
	for body, want := range map[string]string{"01000000 00": "", "00000000": "", "03000000 616200": "ab", "02000000 6162": "ab", "03000000 610000": "a\x00"} {
		var d Decoder
		d.ResetBody(unhex(body), CDRLE)
		if got := d.Str(); got != want || d.Err() != nil || d.Left() != 0 {
			t.Errorf("%s: %q, %v", body, got, d.Err())
		}
	}
	var d Decoder
	d.ResetBody(unhex("01000000 3dd80000"), CDRLE) // half a pair
	if got := d.WStr(); got != "\ufffd" || d.Err() != nil {
		t.Errorf("%q, %v", got, d.Err())
	}
	// What Bytes lends cannot be appended over what follows.
	d.ResetBody(unhex("02000000 aabbcc"), CDRLE)
	_ = append(d.ByteSeq(), 0)
	if d.Uint8() != 0xcc {
		t.Error("a borrowed slice reaches beyond its end")
	}
}

func TestParams(t *testing.T) {
	e := NewEncoder([]byte{9, 9}, PLCDRBE)
	e.BeginParam(0x0015)
	e.Raw([]byte{2, 3})
	if !e.EndParam() {
		t.Error("not ended")
	}
	e.BeginParam(0x0005)
	e.Str("abcd") // 9 bytes, padded to 12
	e.EndParam()
	e.BeginParam(0x4014)
	e.EndParam()
	e.BeginParam(0x7777)
	e.Uint8(1)
	e.Uint64(2) // aligned from the parameter's first byte
	e.EndParam()
	e.BeginParam(0x6666)
	e.Raw(make([]byte, 65533))
	if e.EndParam() {
		t.Error("a parameter of 65533 bytes was taken")
	}
	e.Sentinel()
	want := unhex("0909 00020000 0015 0004 02030000 0005 000c 00000005 6162636400 000000 4014 0000 7777 0010 01 00000000000000 0000000000000002 0001 0000")
	if got := e.Bytes(); !bytes.Equal(got, want) {
		t.Errorf("list\n got %x\nwant %x", got, want)
	}
	e = NewEncoder(nil, PLCDRLE)
	e.BeginParam(0x1234)
	e.Raw(make([]byte, 65532))
	e.EndParam()
	e.Sentinel()
	var r ParamReader
	r.Reset(e.Bytes()[4:], false)
	var p Param
	if !r.Next(&p) || p.ID != 0x1234 || len(p.Value) != 65532 || r.Next(&p) || r.Err() != nil {
		t.Errorf("largest parameter: %d bytes, %v", len(p.Value), r.Err())
	}
}

func TestParamReader(t *testing.T) {
	for _, c := range []struct {
		name, list string
		big        bool
		ids        []uint16
		pos        int
		err        string
	}{
		{"empty", "0100 0000", false, nil, 4, ""},
		{"sentinel's length means nothing", "0100 ffff 99", false, nil, 4, ""},
		{"two", "0500 0400 01020304 0600 0000 0100 0000", false, []uint16{5, 6}, 16, ""},
		{"big-endian", "0005 0004 01020304 0001 0000", true, []uint16{5}, 12, ""},
		{"PAD", "0000 0400 01020304 0500 0000 0000 0000 0100 0000", false, []uint16{5}, 20, ""},
		{"bytes behind the sentinel", "0500 0000 0100 0000 0600 0000", false, []uint16{5}, 8, ""},
		{"no sentinel", "0500 0000", false, []uint16{5}, 4, "cdr: offset 4: parameter list without sentinel"},
		{"nothing", "", false, nil, 0, "without sentinel"},
		{"head cut", "0500 00", false, nil, 0, "without sentinel"},
		{"value cut", "0500 0000 0600 0800 01020304", false, []uint16{5}, 4, "cdr: offset 4: parameter 0x0006: length 8, 4 bytes left"},
		{"odd length", "0500 0300 01020300 0100 0000", false, nil, 0, "parameter 0x0005: length 3 is not a multiple of 4"},
		{"PAD too long", "0000 0400 0102", false, nil, 0, "parameter 0x0000: length 4, 2 bytes left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r ParamReader
			r.Reset(unhex(c.list), c.big)
			var ids []uint16
			for p := (Param{}); r.Next(&p); {
				ids = append(ids, p.ID)
			}
			if !slices.Equal(ids, c.ids) || r.Pos() != c.pos {
				t.Errorf("parameters %v, position %d", ids, r.Pos())
			}
			if err := r.Err(); (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, %q expected", err, c.err)
			}
			if r.Next(new(Param)) {
				t.Error("more behind the end")
			}
		})
	}
}

// FuzzDecoder reads foreign bytes by a foreign plan: nothing panics, and what is read lies inside.
func FuzzDecoder(f *testing.F) {
	plan := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	for _, kind := range []Kind{CDRLE, CDRBE, CDR2LE, CDR2BE} {
		e := NewEncoder(nil, kind)
		mixed(e)
		f.Add(e.Bytes(), plan)
	}
	f.Add(unhex("00030000 0500 0400 01020304 0100 0000"), []byte{16})
	f.Fuzz(func(t *testing.T, payload, plan []byte) {
		d, err := NewDecoder(payload)
		if (err != nil) != (d.Err() != nil) {
			t.Fatalf("error %v, %v", err, d.Err())
		}
		read := 0
		for _, op := range plan {
			switch op % 17 {
			case 0:
				d.Uint8()
			case 1:
				d.Int8()
			case 2:
				d.Bool()
			case 3:
				d.Uint16()
			case 4:
				d.Int16()
			case 5:
				d.Uint32()
			case 6:
				d.Int32()
			case 7:
				d.Uint64()
			case 8:
				d.Int64()
			case 9:
				d.Float32()
			case 10:
				d.Float64()
			case 11:
				read += len(d.Str())
			case 12:
				read += len(d.WStr()) / 3
			case 13:
				read += len(d.ByteSeq())
			case 14:
				read += d.Len(3) * 0
			case 15:
				d.Align(1 << (op % 4))
			case 16:
				var r ParamReader
				r.Reset(d.Bytes(d.Left()), op&1 == 0)
				for p := (Param{}); r.Next(&p); {
					read += len(p.Value)
				}
			}
		}
		if read > len(payload) || d.Pos() > len(payload) || d.Left() < 0 {
			t.Fatalf("%d bytes read of %d, position %d", read, len(payload), d.Pos())
		}
	})
}

func TestNoAllocations(t *testing.T) {
	var e Encoder
	var d Decoder
	buf := make([]byte, 0, 4096)
	payload := NewEncoder(nil, CDRLE)
	mixed(payload)
	if n := testing.AllocsPerRun(100, func() {
		e.Reset(buf[:0], CDRLE)
		e.Uint32(1)
		e.Str("frame")
		e.Float64(2)
		e.ByteSeq(buf[:16])
		e.Pad()
		if d.Reset(e.Bytes()) != nil {
			t.Error("refused")
		}
		d.Uint32()
		d.StrBytes()
		d.Float64()
		d.ByteSeq()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecoder(b *testing.B) {
	e := NewEncoder(nil, CDRLE)
	for i := range 37 {
		e.Float64(float64(i))
	}
	payload := e.Bytes()
	var d Decoder
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Reset(payload); err != nil {
			b.Fatal(err)
		}
		for range 37 {
			d.Float64()
		}
	}
}

func BenchmarkEncoder(b *testing.B) {
	var e Encoder
	buf := make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		e.Reset(buf[:0], CDRLE)
		for i := range 37 {
			e.Float64(float64(i))
		}
	}
}
