package shred

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gobag/gobag/msg"
)

// compileText compiles the lines of a .msg file.
func compileText(t testing.TB, text string) *Program {
	t.Helper()
	d, err := msg.DescribeText("t/msg/T", "ros2msg", text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(&d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestReasons: what is refused and why, and what is made of it loosely.
func TestReasons(t *testing.T) {
	const le = "\x00\x01\x00\x00"
	cases := []struct {
		name, text, payload string
		reason              Reason
		at                  int
		loose               string // what is assembled of the loose row; "" it is refused too
	}{
		{"padding", "uint8 a\nuint32 b\n", le + "\x01\x00\x07\x00\x02\x00\x00\x00", DirtyPadding, 6, le + "\x01\x00\x00\x00\x02\x00\x00\x00"},
		{"bool", "bool a\nbool b\n", le + "\x01\x02", BadBool, 5, le + "\x01\x01"},
		{"bools", "bool[2] a\n", le + "\x01\xff", BadBool, 5, le + "\x01\x01"},
		{"no NUL", "string s\n", le + "\x01\x00\x00\x00x", NoNUL, 8, le + "\x02\x00\x00\x00x\x00"},
		{"empty string without length", "string s\n", le + "\x00\x00\x00\x00", NoNUL, 8, le + "\x01\x00\x00\x00\x00"},
		{"utf-8", "string s\n", le + "\x04\x00\x00\x00a\xffb\x00", BadUTF8, 8, le + "\x04\x00\x00\x00a?b\x00"},
		{"surrogate as utf-8", "string s\n", le + "\x04\x00\x00\x00\xed\xa0\x80\x00", BadUTF8, 8, le + "\x04\x00\x00\x00???\x00"},
		{"utf-16", "wstring s\n", le + "\x01\x00\x00\x00\x00\xd8\x00\x00", BadUTF16, 8, le + "\x01\x00\x00\x00\xfd\xff\x00\x00"},
		{"second half first", "wstring s\n", le + "\x01\x00\x00\x00\x00\xdc\x00\x00", BadUTF16, 8, le + "\x01\x00\x00\x00\xfd\xff\x00\x00"},
		{"second half with a high bit", "wstring s\n", le + "\x02\x00\x00\x00\x34\xd8\x00\x00\x1e\xdd\x00\x80", BadUTF16, 8, le + "\x02\x00\x00\x00\xfd\xff\x00\x00\xfd\xff\x00\x00"},
		{"utf-32", "wstring s\n", le + "\x01\x00\x00\x00\x1e\xd1\x01\x00", BadUTF16, 8, le + "\x01\x00\x00\x00\xfd\xff\x00\x00"},
		{"nanoseconds", "builtin_interfaces/Time t\n", le + "\x01\x00\x00\x00\x00\xca\x9a\x3b", BadNanosec, 8, le + "\x02\x00\x00\x00\x00\x00\x00\x00"},
		{"options", "uint8 a\n", "\x00\x01\x01\x00\x05", BadOptions, 2, le + "\x05"},
		{"options above padding", "uint8 a\n", "\x00\x01\x00\x04\x05", BadOptions, 2, le + "\x05"},
		{"tail", "uint8 a\n", le + "\x05\x00\x01", DirtyTail, 6, le + "\x05\x00\x00"},
		{"trailing", "uint8 a\n", le + "\x05\x00\x00\x00\x00", Trailing, 5, le + "\x05"},

		{"short", "uint32 a\n", le + "\x05\x00\x00", Short, 7, ""},
		{"short in padding", "uint8 a\nuint32 b\n", le + "\x05\x00", Short, 6, ""},
		{"short list", "float64[] a\n", le + "\x02\x00\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08", Short, 12, ""},
		{"huge list", "float64[] a\n", le + "\xff\xff\xff\xff", Short, 8, ""},
		{"huge list of structs", "builtin_interfaces/Time[] a\n", le + "\xff\xff\xff\xff12345678", Short, 8, ""},
		{"huge string", "string a\n", le + "\xff\xff\xff\xff", Short, 8, ""},
		{"huge wide string", "wstring a\n", le + "\xff\xff\xff\xff", Short, 8, ""},
		{"huge bytes", "byte[] a\n", le + "\xff\xff\xff\x7f", Short, 8, ""},
		{"huge array", "string[4294967295] a\n", le + "\xff\xff\xff\x7f", Short, 4, ""},
		{"huge array of bytes", "byte[4294967295] a\n", le + "\xff\xff\xff\x7f", Short, 8, ""},
		{"big-endian and short", "uint32 a\n", "\x00\x00\x00\x00\x05\x00\x00", Short, 7, ""},
		{"delimiter", "string[] a\n", "\x00\x07\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00", Delimiter, 12, ""},
		{"delimiter beyond the end", "string[] a\n", "\x00\x07\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00", Short, 8, ""},
		{"parameter list", "uint8 a\n", "\x00\x03\x00\x00\x05", Encoding, 0, ""},
		{"delimited", "uint8 a\n", "\x00\x09\x00\x00\x05", Encoding, 0, ""},
		{"no header", "uint8 a\n", "\x00\x01\x00", Short, 3, ""},
		{"nothing", "uint8 a\n", "", Short, 0, ""},
	}
	const timeText = "\n================================================================================\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if strings.Contains(c.text, "Time") {
				c.text += timeText
			}
			p := compileText(t, c.text)
			b := p.NewBatch()
			var not *NotCanonical
			if err := p.Append(b, []byte(c.payload)); !errors.As(err, &not) || not.Reason != c.reason || not.Offset != c.at {
				t.Errorf("%v, want %v at %d", err, c.reason, c.at)
			}
			if b.Rows() != 0 || b.Cols[0].Len(&p.cols[0]) != 0 {
				t.Error("the batch has changed")
			}
			reason, err := p.AppendLoose(b, []byte(c.payload))
			if c.loose == "" {
				if !errors.As(err, &not) || not.Reason != c.reason {
					t.Errorf("loosely %v, %v", reason, err)
				}
				return
			}
			if err != nil || reason != c.reason {
				t.Fatalf("loosely %v, %v", reason, err)
			}
			if got, err := p.Assemble(nil, b, p.NewCursor()); err != nil || !bytes.Equal(got, []byte(c.loose)) {
				t.Errorf("assembled %q, %v", got, err)
			}
		})
	}
	for r := Canonical; r < lastReason; r++ {
		if (r.String() == "") != (r == Structure) {
			t.Errorf("reason %d has no name", r)
		}
	}
}

// TestFull: a batch says when it has no room, and has it again after Reset.
func TestFull(t *testing.T) {
	p := compileText(t, "uint8 a\n")
	b := p.NewBatch()
	b.size = maxBatch - 4
	if err := p.Append(b, []byte{0, 1, 0, 0, 7}); !errors.Is(err, ErrFull) || b.Rows() != 0 {
		t.Error(err)
	}
	b.Reset()
	if err := p.Append(b, []byte{0, 1, 0, 0, 7}); err != nil {
		t.Error(err)
	}
}

// TestCheck: batches from elsewhere whose parts do not go together.
func TestCheck(t *testing.T) {
	p := compileText(t, "bool b\nuint8 u\nint16 i\nbuiltin_interfaces/Time t\nstring s\nbyte[2] f\nfloat64[] l\nstring[2] a\n"+
		"\n================================================================================\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n")
	good := func() *Batch {
		b := p.NewBatch()
		b.Forms = []Form{0, FormBigEndian}
		b.Cols = []Values{{U8: []uint8{0, 1}}, {I32: []int32{0, 255}}, {I32: []int32{-32768, 32767}}, {I64: []int64{-1, 1e18}}, {Data: []byte("ab"), Ends: []uint32{0, 2}},
			{Data: []byte{1, 2, 3, 4}}, {F64: []float64{1, 2, 3}}, {Data: []byte("x"), Ends: []uint32{0, 0, 1, 1}}}
		b.Counts = [][]uint32{{3, 0}, nil}
		return b
	}
	b := good()
	if err := p.Check(b); err != nil {
		t.Fatal(err)
	}
	c := p.NewCursor()
	for range 2 {
		payload, err := p.Assemble(nil, b, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Append(p.NewBatch(), payload); err != nil {
			t.Errorf("%x: %v", payload, err)
		}
	}
	for i, breakIt := range []func(b *Batch){
		func(b *Batch) { b.Cols = b.Cols[1:] },
		func(b *Batch) { b.Counts = b.Counts[1:] },
		func(b *Batch) { b.Forms[0] = 0x40 },
		func(b *Batch) { b.Forms = b.Forms[1:] },
		func(b *Batch) { b.Cols[0].U8[0] = 2 },
		func(b *Batch) { b.Cols[1].I32[0] = 256 },
		func(b *Batch) { b.Cols[1].I32[0] = -1 },
		func(b *Batch) { b.Cols[2].I32[0] = -32769 },
		func(b *Batch) { b.Cols[3].I64[0] = 1 << 62 },
		func(b *Batch) { b.Cols[4].Ends[0] = 3 },
		func(b *Batch) { b.Cols[4].Ends[1] = 4 },
		func(b *Batch) { b.Cols[5].Data = b.Cols[5].Data[1:] },
		func(b *Batch) { b.Counts[0][1] = 1 },
		func(b *Batch) { b.Counts[0][0] = 1 << 31 },
		func(b *Batch) { b.Cols[7].Ends = b.Cols[7].Ends[1:] },
	} {
		b := good()
		breakIt(b)
		if err := p.Check(b); err == nil || !strings.HasPrefix(err.Error(), "check batch of t/msg/T") {
			t.Errorf("case %d: %v", i, err)
		}
	}
}

// TestOccurrences: levels that no lists have.
func TestOccurrences(t *testing.T) {
	p := compileText(t, "A[] a\nuint16[2] f\n\n================================================================================\nMSG: t/A\nint32[] b\n")
	for i, c := range []struct {
		list     int
		def, rep []uint8
	}{
		{0, []uint8{0}, []uint8{0, 0}},    // not of one length
		{0, []uint8{1}, []uint8{1}},       // begins within a list
		{0, []uint8{0, 1}, []uint8{0, 1}}, // goes on in a list that is empty
		{1, []uint8{1, 2}, []uint8{0, 2}},
		{2, []uint8{1}, []uint8{0}}, // 1 of 2
		{2, []uint8{1, 1, 1}, []uint8{0, 1, 1}},
		{2, []uint8{0}, []uint8{0}},
	} {
		if got, err := p.Occurrences(c.list, c.def, c.rep, nil); err == nil {
			t.Errorf("case %d: %v", i, got)
		}
	}
	if got, err := p.Occurrences(1, []uint8{0, 1, 2, 2, 2}, []uint8{0, 0, 1, 2, 0}, []uint32{9}); err != nil || fmt.Sprint(got) != "[9 0 2 1]" {
		t.Errorf("%v, %v", got, err)
	}
}

// TestCompile: types that are refused.
func TestCompile(t *testing.T) {
	wide := msg.Description{Type: msg.Message{Name: "t/msg/T"}}
	for i := range maxColumns + 1 {
		wide.Type.Fields = append(wide.Type.Fields, msg.Field{Name: fmt.Sprintf("f%d", i), Type: msg.Type{Base: msg.Int8}})
	}
	// 2 to the power of 40 leaves
	bomb := msg.Description{Type: msg.Message{Name: "t/msg/T0"}}
	for i := range 40 {
		m := msg.Message{Name: fmt.Sprintf("t/msg/T%d", i+1), Fields: []msg.Field{{Name: "a", Type: msg.Type{Base: msg.Int8}}}}
		inner := []msg.Field{{Name: "a", Type: msg.Type{Base: msg.Nested, Name: m.Name}}, {Name: "b", Type: msg.Type{Base: msg.Nested, Name: m.Name}}}
		if i == 0 {
			bomb.Type.Fields = inner
		} else {
			bomb.Referenced[i-1].Fields = inner
		}
		bomb.Referenced = append(bomb.Referenced, m)
	}
	self := msg.Description{Type: msg.Message{Name: "t/msg/T", Fields: []msg.Field{{Name: "a", Type: msg.Type{Base: msg.Nested, Name: "t/msg/T", Array: msg.Unbounded}}}}}
	one := func(typ msg.Type) msg.Description {
		return msg.Description{Type: msg.Message{Name: "t/msg/T", Fields: []msg.Field{{Name: "a", Type: typ}}}}
	}
	for want, d := range map[string]msg.Description{
		"more than 10000 leaves": wide, "more than 10000 leaves ": bomb, "nested deeper than 64": self, "field a: type 14": one(msg.Type{Base: msg.WChar}),
		"field a: type 12": one(msg.Type{Base: msg.LongDouble}), "lacks type t/msg/None": one(msg.Type{Base: msg.Nested, Name: "t/msg/None"}),
	} {
		if _, err := Compile(&d); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
