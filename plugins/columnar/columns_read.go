package columnar

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugins/columnar/parquet"
)

// Columns that every topic has, for ColumnReader.Read: below 0.
const (
	ColumnLogTime = -1 - iota
	ColumnPubTime
	ColumnOrder
)

// Vector is a column of a chunk. It is not changed after it was read. Numbers lie in the slice that their kind names in
// shred; UInt8 and the like in I32.
type Vector struct {
	parquet.Vector
	Dict *Dictionary // what the codes number, where there are codes
}

// Dictionary holds the different values of a column in a part. It is not changed.
type Dictionary struct {
	parquet.Values
	Entries int
}

// Find returns the number of a text; false where it is not among the entries.
func (d *Dictionary) Find(s string) (int, bool) {
	for i := range d.Entries {
		if string(d.At(i)) == s {
			return i, true
		}
	}
	return 0, false
}

// ErrNoColumn says that a part has no such column: it was written with another definition of the type.
var ErrNoColumn = errors.New("no such column")

// Column finds a field of the type by its name, "linear_acceleration.x"; ErrNoColumn where it is not there, is in a list, or
// is of another kind.
func (k *Chunk) Column(name string, kind shred.Kind) (int, error) {
	cols := k.prog.Columns()
	for i := range cols {
		if c := &cols[i]; c.List < 0 && c.Fixed == 0 && c.Kind == kind && c.Name() == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w: %s", ErrNoColumn, name)
}

// Bounds returns the least and largest value of a number's column in the part, as floats that are not above and not below
// them; false where they are not known.
func (k *Chunk) Bounds(col int) (lo, hi float64, ok bool) {
	if k.part == nil || col < 0 {
		return 0, 0, false
	}
	pq := k.part.part.pq
	a, b, ok := pq.Bounds(typedOwn + col)
	if !ok {
		return 0, 0, false
	}
	number := func(b []byte) (float64, bool) {
		switch kind := pq.Leaves()[typedOwn+col].Kind; {
		case kind == parquet.Bool && len(b) == 1:
			return float64(b[0]), true
		case kind == parquet.Float32 && len(b) == 4:
			return float64(math.Float32frombits(le.Uint32(b))), true
		case kind == parquet.Float64 && len(b) == 8:
			return math.Float64frombits(le.Uint64(b)), true
		case kind == parquet.UInt32 && len(b) == 4:
			return float64(le.Uint32(b)), true
		case (kind == parquet.Int64 || kind == parquet.Timestamp) && len(b) == 8:
			return float64(int64(le.Uint64(b))), true
		case kind < parquet.Int64 && len(b) == 4:
			return float64(int32(le.Uint32(b))), true
		}
		return 0, false
	}
	lo, okLo := number(a)
	hi, okHi := number(b)
	return math.Nextafter(lo, math.Inf(-1)), math.Nextafter(hi, math.Inf(1)), okLo && okHi
}

// ColumnReader reads columns of chunks. It belongs to one goroutine.
type ColumnReader struct {
	pages *parquet.PageReader
	spare []*Vector
}

// NewColumnReader returns a reader. Close gives its memory back.
func NewColumnReader() (*ColumnReader, error) {
	p, err := parquet.NewPageReader()
	if err != nil {
		return nil, err
	}
	return &ColumnReader{pages: p}, nil
}

// Close ends the use of r.
func (r *ColumnReader) Close() { r.pages.Close() }

// Read reads columns of a chunk: those of Chunk.Column, or of the system. Errors are *plugin.CorruptError where the storage
// is damaged.
func (r *ColumnReader) Read(k *Chunk, cols []int) ([]*Vector, error) {
	out := make([]*Vector, len(cols))
	if k.part == nil {
		for i, col := range cols {
			out[i] = k.looseVector(col)
		}
		return out, nil
	}
	p := k.part.part
	f := *p // with a file of its own: parts are read by several goroutines
	err := f.with(func() error {
		for i, col := range cols {
			v := r.vector()
			entries := 0
			leaf := typedOwn + col
			switch col {
			case ColumnLogTime:
				leaf = colLogTime
			case ColumnPubTime:
				leaf = colPubTime
			case ColumnOrder:
				leaf = colOrder
			}
			if col >= 0 {
				var err error
				if v.Dict, err = r.dictionary(k.part, &f, col); err != nil {
					return err
				}
				entries = v.Dict.Entries
			} else if l := &f.pq.Leaves()[leaf]; l.Name != systemFields[leaf].Name || l.Kind != systemFields[leaf].Kind {
				return &parquet.DamageError{Offset: 0, Err: fmt.Errorf("column %d is %.100q", leaf, l.Name)}
			}
			if col >= 0 {
				want, err := kindOf(k.prog.Columns()[col].Kind)
				if l := &f.pq.Leaves()[leaf]; err != nil || l.Kind != want || l.List >= 0 {
					return &parquet.DamageError{Offset: 0, Err: fmt.Errorf("column %.100q is not that of the definition", l.Name)}
				}
			}
			if col < 0 { // hardly ever coded: its dictionary is not kept
				v.Codes8, v.Codes16, v.Codes32 = nil, nil, nil
				if err := r.plain(&f, k.group, leaf, &v.Values); err != nil {
					return err
				}
			} else if err := r.pages.Vector(f.reader(), k.group, leaf, entries, &v.Vector); err != nil {
				return err
			}
			if !v.Coded() {
				v.Dict = nil
			}
			out[i] = v
		}
		return nil
	})
	return out, err
}

// Recycle gives a vector that Read has returned back; nobody may look at it any more.
func (r *ColumnReader) Recycle(k *Chunk, v *Vector) {
	if k.part != nil && len(r.spare) < 32 {
		r.spare = append(r.spare, v)
	}
}

// vector is an empty vector, with memory of one that was given back.
func (r *ColumnReader) vector() *Vector {
	n := len(r.spare)
	if n == 0 {
		return &Vector{}
	}
	v := r.spare[n-1]
	r.spare = r.spare[:n-1]
	v.Dict = nil
	return v
}

// plain reads values, whatever their encoding.
func (r *ColumnReader) plain(f *partFile, group, leaf int, v *parquet.Values) error {
	return r.pages.Read(f.reader(), group, leaf, v)
}

// reader is the Parquet file that reads from f's own file.
func (p *partFile) reader() *parquet.File { return p.pq.From(p) }

// dictionary reads the dictionary of a column, once for a part.
func (r *ColumnReader) dictionary(part *columnPart, f *partFile, col int) (*Dictionary, error) {
	if d := part.dicts[col].Load(); d != nil {
		return d, nil
	}
	d := &Dictionary{}
	var err error
	if d.Entries, err = r.pages.Dictionary(f.reader(), typedOwn+col, &d.Values); err != nil {
		return nil, err
	}
	d.Data = bytes.Clone(d.Data)
	part.dicts[col].Store(d)
	return d, nil
}

func (k *Chunk) looseVector(col int) *Vector {
	v := &Vector{}
	if col >= 0 {
		v.Values = parquet.Values(k.batch.Cols[col])
		return v
	}
	v.I64 = make([]int64, len(k.loose))
	for i, l := range k.loose {
		switch col {
		case ColumnLogTime:
			v.I64[i] = l.time
		case ColumnPubTime:
			v.I64[i] = l.send
		default:
			v.I64[i] = int64(l.order)
		}
	}
	return v
}

// AllCoded tells whether every page of a column of the chunk's part has numbers of the dictionary, so that what is not in the
// dictionary is not in the part.
func (k *Chunk) AllCoded(col int) bool {
	if k.part == nil || col < 0 {
		return false
	}
	known := &k.part.coded[col]
	if known.Load() == 0 {
		f, all := *k.part.part, true
		err := f.with(func() (err error) {
			for g := 0; g < len(k.part.groups) && all && err == nil; g++ {
				all, err = f.reader().Coded(g, typedOwn+col)
			}
			return err
		})
		if err != nil {
			return false // whoever reads the pages learns why
		}
		known.Store(1)
		if all {
			known.Store(2)
		}
	}
	return known.Load() == 2
}
