package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// everything is a schema with every kind, lists in lists and structs.
var everything = []Field{
	{Name: "_log_time", Kind: Timestamp},
	{Name: "flag", Kind: Bool},
	{Name: "i8", Kind: Int8}, {Name: "u8", Kind: UInt8}, {Name: "i16", Kind: Int16}, {Name: "u16", Kind: UInt16},
	{Name: "i32", Kind: Int32}, {Name: "u32", Kind: UInt32}, {Name: "i64", Kind: Int64}, {Name: "u64", Kind: UInt64},
	{Name: "f32", Kind: Float32}, {Name: "f64", Kind: Float64},
	{Name: "text", Kind: String}, {Name: "blob", Kind: Bytes}, {Name: "id", Kind: Bytes, Fixed: 16},
	{Name: "header", Fields: []Field{{Name: "stamp", Kind: Timestamp}, {Name: "frame", Kind: String}}},
	{Name: "numbers", Kind: Float64, List: true},
	{Name: "matrix", Kind: Float64, List: true, Count: 9},
	{Name: "names", Kind: String, List: true},
	{Name: "parts", List: true, Fields: []Field{
		{Name: "x", Kind: Float32}, {Name: "tags", Kind: String, List: true}, {Name: "flags", Kind: Bool, List: true, Count: 3},
		{Name: "deep", List: true, Fields: []Field{{Name: "n", Kind: UInt16}, {Name: "more", Kind: Int64, List: true}}},
	}},
}

// randomBatch makes rows; style says how the values of a column are.
func randomBatch(rng *rand.Rand, l *layout, rows int) *Batch {
	b := &Batch{Rows: rows, Cols: make([]*Values, len(l.leaves)), Counts: make([][]uint32, len(l.lists)), Bytes: int64(rows)}
	occurrences := make([]int, len(l.lists))
	elements := make([]int, len(l.lists))
	for i, li := range l.lists {
		occurrences[i] = rows
		if li.Parent >= 0 {
			occurrences[i] = elements[li.Parent]
		}
		if li.Count > 0 {
			elements[i] = occurrences[i] * li.Count
			continue
		}
		style := rng.IntN(4)
		for range occurrences[i] {
			n := rng.IntN(5)
			switch style {
			case 0:
				n = 0
			case 1:
				n = 4
			}
			b.Counts[i] = append(b.Counts[i], uint32(n))
			elements[i] += n
		}
	}
	for i := range l.leaves {
		n := rows
		if li := l.leaves[i].List; li >= 0 {
			n = elements[li]
		}
		b.Cols[i] = randomValues(rng, &l.leaves[i], n)
		b.Bytes += int64(n * 8)
	}
	return b
}

func randomValues(rng *rand.Rand, l *Leaf, n int) *Values {
	v := &Values{}
	style := rng.IntN(5)
	x := rng.Uint64()
	for i := range n {
		switch style {
		case 0: // constant
		case 1: // ascending
			x += uint64(i)
		case 2: // few
			x = uint64(rng.IntN(7))
		default:
			x = rng.Uint64()
		}
		switch l.physical() {
		case typeBoolean:
			v.U8 = append(v.U8, uint8(x&1))
		case typeInt32:
			v.I32 = append(v.I32, int32(x))
		case typeInt64:
			v.I64 = append(v.I64, int64(x))
		case typeFloat:
			v.F32 = append(v.F32, math.Float32frombits(uint32(x)))
		case typeDouble:
			f := math.Float64frombits(x)
			if style == 2 {
				f = []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), 1, -1, 2}[x]
			}
			v.F64 = append(v.F64, f)
		case typeFixed:
			for k := range l.Fixed {
				v.Data = append(v.Data, byte(x>>k))
			}
		case typeBytes:
			s := fmt.Sprint(x)
			switch x % 9 {
			case 0:
				s = ""
			case 1:
				s = strings.Repeat("ö", int(x%100))
			}
			v.Data = append(v.Data, s...)
			v.Ends = append(v.Ends, uint32(len(v.Data)))
		}
	}
	return v
}

// bits makes values comparable: NaNs by their bits, nil and empty alike.
func normal(v *Values) string {
	return fmt.Sprintf("%x %x %x %x %x %q %x", v.U8, v.I32, v.I64, memory(v.F32), memory(v.F64), v.Data, v.Ends)
}

func newTestWriter(t testing.TB, schema []Field, o Options) *Writer {
	t.Helper()
	comp, err := NewCompressor(0)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(schema, comp, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func finish(t testing.TB, w *Writer, kv ...KeyValue) []byte {
	t.Helper()
	var out bytes.Buffer
	n, err := w.Finish(&out, kv)
	if err != nil || n != int64(out.Len()) {
		t.Fatal(n, out.Len(), err)
	}
	return out.Bytes()
}

func checkFile(t *testing.T, b []byte, want []*Batch, schema []Field) {
	t.Helper()
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewPageReader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if f.Groups() != len(want) {
		t.Fatalf("%d groups, want %d", f.Groups(), len(want))
	}
	l, err := newLayout(schema)
	if err != nil {
		t.Fatal(err)
	}
	plainLists := append([]List(nil), l.lists...)
	for i := range plainLists {
		plainLists[i].Count = 0
	}
	if !reflect.DeepEqual(f.Leaves(), l.leaves) || !reflect.DeepEqual(f.Lists(), plainLists) {
		t.Fatalf("schema is\n%+v\n%+v\nwant\n%+v\n%+v", f.Leaves(), f.Lists(), l.leaves, plainLists)
	}
	for g, b := range want {
		if f.GroupRows(g) != b.Rows || f.GroupBytes(g) != b.Bytes {
			t.Fatalf("group %d: %d rows of %d bytes, want %d of %d", g, f.GroupRows(g), f.GroupBytes(g), b.Rows, b.Bytes)
		}
		for i := range f.Leaves() {
			var v Values
			if err := r.Read(f, g, i, &v); err != nil {
				t.Fatal(err)
			}
			if a, b := normal(&v), normal(b.Cols[i]); a != b {
				t.Fatalf("group %d, column %s is\n%.300s\nwant\n%.300s", g, f.Leaves()[i].Name, a, b)
			}
			for li := l.leaves[i].List; li >= 0; li = l.lists[li].Parent {
				counts, err := r.Counts(nil, l.lists[li].Depth)
				if err != nil {
					t.Fatal(err)
				}
				if n := l.lists[li].Count; n > 0 {
					for _, c := range counts {
						if int(c) != n {
							t.Fatalf("group %d, column %s: %d elements of %d", g, f.Leaves()[i].Name, c, n)
						}
					}
				} else if fmt.Sprint(counts) != fmt.Sprint(b.Counts[li]) {
					t.Fatalf("group %d, column %s: counts\n%v\nwant\n%v", g, f.Leaves()[i].Name, counts, b.Counts[li])
				}
			}
		}
	}
}

func TestRoundTrip(t *testing.T) {
	l, err := newLayout(everything)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newTestWriter(t, everything, Options{Store: seed%2 == 0})
		for range 3 { // files of one writer
			var want []*Batch
			for range 1 + rng.IntN(4) {
				b := randomBatch(rng, l, 1+rng.IntN([]int{3, 200, 3000}[rng.IntN(3)]))
				if err := w.Append(b); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				want = append(want, b)
			}
			checkFile(t, finish(t, w, KeyValue{"topic", "/a"}), want, everything)
		}
	}
}

// Every byte of a small file matters or is checked: the reader notices any change of what it uses.
func TestFlipEveryByte(t *testing.T) {
	schema := []Field{{Name: "t", Kind: Timestamp}, {Name: "s", Kind: String}, {Name: "n", Kind: Float64, List: true}, {Name: "d", Kind: Int32}}
	l, err := newLayout(schema)
	if err != nil {
		t.Fatal(err)
	}
	w := newTestWriter(t, schema, Options{})
	want := []*Batch{randomBatch(rand.New(rand.NewPCG(3, 3)), l, 50), randomBatch(rand.New(rand.NewPCG(3, 4)), l, 20)}
	for _, b := range want {
		if err := w.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	b := finish(t, w)
	r, err := NewPageReader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	unnoticed := 0
	for i := range b {
		for _, bit := range []byte{1, 0x40} {
			b[i] ^= bit
			noticed := false
			f, err := Open(bytes.NewReader(b), int64(len(b)))
			if err != nil {
				noticed = true
				var damage *DamageError
				if !errors.As(err, &damage) {
					t.Fatalf("byte %d: %v is no DamageError", i, err)
				}
			} else {
				for g := range want {
					for c := range f.Leaves() {
						var v Values
						if err := r.Read(f, g, c, &v); err != nil {
							noticed = true
						} else if normal(&v) != normal(want[g].Cols[c]) {
							t.Fatalf("byte %d: column %d of group %d changed and nothing was said", i, c, g)
						}
					}
				}
			}
			if !noticed {
				unnoticed++
			}
			b[i] ^= bit
		}
	}
	t.Logf("%d bytes, %d flips of indexes that this reader does not use", len(b), unnoticed)
	if unnoticed > len(b) {
		t.Errorf("%d of %d flips were not noticed", unnoticed, 2*len(b))
	}
}

func TestBounds(t *testing.T) {
	nan := math.NaN()
	negZero := math.Copysign(0, -1)
	for _, c := range []struct {
		leaf   Leaf
		v      Values
		lo, hi []byte
		known  bool
	}{
		{Leaf{Kind: Float64}, Values{F64: []float64{1, nan, 2}}, nil, nil, false},
		{Leaf{Kind: Float64}, Values{F64: []float64{nan}}, nil, nil, false},
		{Leaf{Kind: Float64}, Values{F64: []float64{0, negZero}}, le.AppendUint64(nil, 1<<63), make([]byte, 8), true},
		{Leaf{Kind: Float64}, Values{F64: []float64{negZero}}, le.AppendUint64(nil, 1<<63), make([]byte, 8), true},
		{Leaf{Kind: Float32}, Values{F32: []float32{3, -1}}, le.AppendUint32(nil, math.Float32bits(-1)), le.AppendUint32(nil, math.Float32bits(3)), true},
		{Leaf{Kind: UInt32}, Values{I32: []int32{-1, 5}}, le.AppendUint32(nil, 5), le.AppendUint32(nil, math.MaxUint32), true},
		{Leaf{Kind: Int32}, Values{I32: []int32{-1, 5}}, le.AppendUint32(nil, math.MaxUint32), le.AppendUint32(nil, 5), true},
		{Leaf{Kind: UInt64}, Values{I64: []int64{-1, 5}}, le.AppendUint64(nil, 5), le.AppendUint64(nil, math.MaxUint64), true},
		{Leaf{Kind: Bool}, Values{U8: []uint8{1, 1}}, []byte{1}, []byte{1}, true},
		{Leaf{Kind: String}, Values{Data: []byte("bac"), Ends: []uint32{1, 2, 3}}, []byte("a"), []byte("c"), true},
		{Leaf{Kind: String}, Values{Data: make([]byte, 65), Ends: []uint32{65}}, nil, nil, false},
		{Leaf{Kind: Bytes}, Values{Data: []byte("bac"), Ends: []uint32{1, 2, 3}}, nil, nil, false},
	} {
		b := boundsOf(&c.leaf, &c.v)
		if b.known != c.known || c.known && (!bytes.Equal(b.min, c.lo) || !bytes.Equal(b.max, c.hi)) {
			t.Errorf("%+v: %x %x %v, want %x %x %v", c.v, b.min, b.max, b.known, c.lo, c.hi, c.known)
		}
	}
}
