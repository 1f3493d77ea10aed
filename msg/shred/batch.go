package shred

import (
	"errors"
	"math"
	"slices"
)

// ErrFull says that a batch has no room for a payload: byte columns count in 32 bits. Reset it first.
var ErrFull = errors.New("shred: batch is full")

// maxBatch bounds the payload bytes of a batch, so that no offset or count leaves its type.
const maxBatch = math.MaxInt32

// Values are the values of a column, in the slice that its Kind names, elements of all lists and rows one after the
// other.
type Values struct {
	U8   []uint8
	I32  []int32
	I64  []int64
	F32  []float32
	F64  []float64
	Data []byte   // all byte values
	Ends []uint32 // where each ends in Data
}

// Len is the number of values of a column.
func (v *Values) Len(c *Column) int {
	switch c.Kind {
	case Bool:
		return len(v.U8)
	case Int64, UInt64, Time, Duration:
		return len(v.I64)
	case Float32:
		return len(v.F32)
	case Float64:
		return len(v.F64)
	case String, WString, Bytes:
		if c.Fixed > 0 {
			return len(v.Data) / c.Fixed
		}
		return len(v.Ends)
	}
	return len(v.I32)
}

// Bytes is the i-th value of a String, WString or Bytes column that is not fixed. It aliases v.
func (v *Values) Bytes(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = v.Ends[i-1]
	}
	return v.Data[start:v.Ends[i]]
}

// truncate leaves the first n values.
func (v *Values) truncate(c *Column, n int) {
	switch c.Kind {
	case Bool:
		v.U8 = v.U8[:n]
	case Int64, UInt64, Time, Duration:
		v.I64 = v.I64[:n]
	case Float32:
		v.F32 = v.F32[:n]
	case Float64:
		v.F64 = v.F64[:n]
	case String, WString, Bytes:
		if c.Fixed > 0 {
			v.Data = v.Data[:n*c.Fixed]
			return
		}
		v.Ends = v.Ends[:n]
		end := uint32(0)
		if n > 0 {
			end = v.Ends[n-1]
		}
		v.Data = v.Data[:end]
	default:
		v.I32 = v.I32[:n]
	}
}

// Form is what a payload has beside its values: encoding, declared and real padding at the end. The zero value is the
// usual one, CDR_LE without padding.
type Form uint8

// The parts of a Form.
const (
	FormBigEndian Form = 1 << 0
	FormXCDR2     Form = 1 << 1
	formDeclared       = 2 // shift of the number of pad bytes that the header declares, 0..3
	formTail           = 4 // shift of the number of zero bytes behind the value, 0..3
	formMask      Form = 0x3f
)

// Tail is the number of zero bytes behind the value, 0..3.
func (f Form) Tail() int { return int(f>>formTail) & 3 }

// Declared is the number of pad bytes that the encapsulation header declares, 0..3. Middlewares differ in whether they
// declare what they pad.
func (f Form) Declared() int { return int(f>>formDeclared) & 3 }

// Batch holds rows of one Program as columns. It belongs to one goroutine. The exported fields are filled by Append, or
// by a reader that has them from elsewhere and then calls Program.Check.
type Batch struct {
	Cols   []Values   // as Program.Columns
	Counts [][]uint32 // as Program.Lists: elements of each occurrence; empty for a list that is fixed
	Forms  []Form     // one a row

	elems   []int // elements of each list
	size    int   // payload bytes
	pending []int // scratch: elements of each list with the row that is being walked
	scratch []byte
}

// NewBatch returns an empty batch for rows of p.
func (p *Program) NewBatch() *Batch {
	return &Batch{Cols: make([]Values, len(p.cols)), Counts: make([][]uint32, len(p.lists)), elems: make([]int, len(p.lists)), pending: make([]int, len(p.lists))}
}

// Rows is the number of rows.
func (b *Batch) Rows() int { return len(b.Forms) }

// Size is the number of payload bytes that were appended: about what the values take in memory.
func (b *Batch) Size() int { return b.size }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	for i := range b.Cols {
		c := &b.Cols[i]
		*c = Values{U8: c.U8[:0], I32: c.I32[:0], I64: c.I64[:0], F32: c.F32[:0], F64: c.F64[:0], Data: c.Data[:0], Ends: c.Ends[:0]}
	}
	for i := range b.Counts {
		b.Counts[i] = b.Counts[i][:0]
	}
	clear(b.elems)
	b.Forms, b.size = b.Forms[:0], 0
}

// double makes room for as many values again: append alone would grow long slices in small steps and copy them each time.
func (b *Batch) double() {
	for i := range b.Cols {
		c := &b.Cols[i]
		c.U8, c.I32, c.I64 = slices.Grow(c.U8, len(c.U8)), slices.Grow(c.I32, len(c.I32)), slices.Grow(c.I64, len(c.I64))
		c.F32, c.F64 = slices.Grow(c.F32, len(c.F32)), slices.Grow(c.F64, len(c.F64))
		c.Data, c.Ends = slices.Grow(c.Data, len(c.Data)), slices.Grow(c.Ends, len(c.Ends))
	}
	for i := range b.Counts {
		b.Counts[i] = slices.Grow(b.Counts[i], len(b.Counts[i]))
	}
}

// Elements is the number of elements of all occurrences of a list.
func (b *Batch) Elements(list int) int { return b.elems[list] }
