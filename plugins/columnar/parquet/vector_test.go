package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// vectorFile is a file whose columns have dictionaries of all widths, and pages without.
func vectorFile(t *testing.T) ([]byte, []Field) {
	t.Helper()
	schema := []Field{{Name: "time", Kind: Timestamp}, {Name: "few", Kind: Int64}, {Name: "host", Kind: String}, {Name: "noise", Kind: Float64}, {Name: "same", Kind: Float32},
		{Name: "b", Kind: Bool}, {Name: "small", Kind: Int8}}
	w := newTestWriter(t, schema, Options{})
	rng := rand.New(rand.NewPCG(1, 5))
	for range 3 {
		b := &Batch{Rows: 3000, Bytes: 100_000}
		for range schema {
			b.Cols = append(b.Cols, &Values{})
		}
		for i := range b.Rows {
			b.Cols[0].I64 = append(b.Cols[0].I64, int64(i)*1e6)
			b.Cols[1].I64 = append(b.Cols[1].I64, int64(rng.IntN(100)))
			b.Cols[2].Data = append(b.Cols[2].Data, fmt.Sprintf("host_%d", rng.IntN(700))...)
			b.Cols[2].Ends = append(b.Cols[2].Ends, uint32(len(b.Cols[2].Data)))
			b.Cols[3].F64 = append(b.Cols[3].F64, rng.NormFloat64())
			b.Cols[4].F32 = append(b.Cols[4].F32, 1.5)
			b.Cols[5].U8 = append(b.Cols[5].U8, uint8(rng.IntN(2)))
			b.Cols[6].I32 = append(b.Cols[6].I32, int32(rng.IntN(200)-100))
		}
		if err := w.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	return finish(t, w), schema
}

// decoded are the values of a vector.
func (v *Vector) decoded(l *Leaf, dict *Values, rows int) *Values {
	if !v.Coded() {
		return &v.Values
	}
	idx := make([]uint32, rows)
	for i := range idx {
		switch {
		case v.Codes8 != nil:
			idx[i] = uint32(v.Codes8[i])
		case v.Codes16 != nil:
			idx[i] = uint32(v.Codes16[i])
		default:
			idx[i] = v.Codes32[i]
		}
	}
	out := &Values{}
	switch l.physical() {
	case typeInt32:
		out.I32 = lookup(out.I32, dict.I32, idx)
	case typeInt64:
		out.I64 = lookup(out.I64, dict.I64, idx)
	case typeFloat:
		out.F32 = lookup(out.F32, dict.F32, idx)
	case typeDouble:
		out.F64 = lookup(out.F64, dict.F64, idx)
	default:
		for _, k := range idx {
			out.Data = append(out.Data, dict.At(int(k))...)
			out.Ends = append(out.Ends, uint32(len(out.Data)))
		}
	}
	return out
}

// A vector has the values that Read gives, and pages with numbers are known as such.
func TestVector(t *testing.T) {
	b, _ := vectorFile(t)
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewPageReader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	coded := map[string]bool{}
	for g := range f.Groups() {
		for i := range f.Leaves() {
			l := &f.Leaves()[i]
			var dict, want Values
			var v Vector
			n, err := r.Dictionary(f, i, &dict)
			if err == nil {
				err = r.Vector(f.From(bytes.NewReader(b)), g, i, n, &v)
			}
			if err == nil {
				err = r.Read(f, g, i, &want)
			}
			if err != nil {
				t.Fatalf("%s: %v", l.Name, err)
			}
			if got := v.decoded(l, &dict, f.GroupRows(g)); normal(got) != normal(&want) {
				t.Errorf("%s: group %d differs", l.Name, g)
			}
			is, err := f.Coded(g, i)
			if err != nil || is != v.Coded() {
				t.Errorf("%s: coded %v, %v", l.Name, is, err)
			}
			coded[l.Name] = coded[l.Name] || v.Coded()
			if v.Codes8 != nil && n > 256 || v.Codes16 != nil && n <= 256 {
				t.Errorf("%s: numbers of %d entries have another width", l.Name, n)
			}
		}
	}
	if !coded["few"] || !coded["host"] || coded["noise"] || coded["b"] {
		t.Errorf("columns with numbers: %v", coded)
	}
	list, err := Open(bytes.NewReader(listFile(t)), int64(len(listFile(t))))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Vector(list, 0, 0, 0, &Vector{}); err == nil {
		t.Error("a column of lists has a vector")
	}
}

func listFile(t *testing.T) []byte {
	t.Helper()
	w := newTestWriter(t, []Field{{Name: "n", Kind: Float64, List: true}}, Options{})
	if err := w.Append(&Batch{Rows: 1, Cols: []*Values{{F64: []float64{1}}}, Counts: [][]uint32{{1}}, Bytes: 8}); err != nil {
		t.Fatal(err)
	}
	return finish(t, w)
}

// Damage is said, whatever it is; with checksums that fit it must not do more harm than an error.
func TestVectorDamage(t *testing.T) {
	b, _ := vectorFile(t)
	r, err := NewPageReader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rng := rand.New(rand.NewPCG(2, 5))
	for k := range 400 {
		at := rng.IntN(len(b))
		old := b[at]
		b[at] ^= byte(1 << rng.IntN(8))
		f, err := open(bytes.NewReader(b), int64(len(b)), k%2 == 0)
		if err == nil {
			for i := range f.Leaves() {
				var dict Values
				var v Vector
				n, err := r.Dictionary(f, i, &dict)
				for g := 0; g < f.Groups() && err == nil; g++ {
					if err = r.Vector(f, g, i, n, &v); err == nil {
						v.decoded(&f.Leaves()[i], &dict, f.GroupRows(g)) // no number is beyond the dictionary
					}
				}
				var damage *DamageError
				if err != nil && !errors.As(err, &damage) {
					t.Fatalf("byte %d: %v is no DamageError", at, err)
				}
			}
		}
		b[at] = old
	}
}
