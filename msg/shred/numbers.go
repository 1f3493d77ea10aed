package shred

import (
	"encoding/binary"
	"math"
	"slices"
)

// row adds one number of s to each of cols. s is at pos.
func (w *walker) row(kind Kind, cols []Values, s []byte, pos int) {
	switch kind {
	case Bool:
		for i, c := range s[:len(cols)] {
			if c > 1 {
				w.odd(BadBool, pos+i)
				c = 1
			}
			cols[i].U8 = append(cols[i].U8, c)
		}
	case Int8:
		for i, c := range s[:len(cols)] {
			cols[i].I32 = append(cols[i].I32, int32(int8(c)))
		}
	case UInt8:
		for i, c := range s[:len(cols)] {
			cols[i].I32 = append(cols[i].I32, int32(c))
		}
	case Int16:
		for i := range cols {
			cols[i].I32 = append(cols[i].I32, int32(int16(binary.LittleEndian.Uint16(s[2*i:]))))
		}
	case UInt16:
		for i := range cols {
			cols[i].I32 = append(cols[i].I32, int32(binary.LittleEndian.Uint16(s[2*i:])))
		}
	case Int32, UInt32:
		for i := range cols {
			cols[i].I32 = append(cols[i].I32, int32(binary.LittleEndian.Uint32(s[4*i:])))
		}
	case Int64, UInt64:
		for i := range cols {
			cols[i].I64 = append(cols[i].I64, int64(binary.LittleEndian.Uint64(s[8*i:])))
		}
	case Float32:
		for i := range cols {
			cols[i].F32 = append(cols[i].F32, math.Float32frombits(binary.LittleEndian.Uint32(s[4*i:])))
		}
	case Float64:
		for i := range cols {
			cols[i].F64 = append(cols[i].F64, math.Float64frombits(binary.LittleEndian.Uint64(s[8*i:])))
		}
	}
}

// grown is s with room for n more elements, as which it is already counted; the tail is what is new.
func grown[T any](s []T, n int) (all, tail []T) {
	all = slices.Grow(s, n)[:len(s)+n]
	return all, all[len(s):]
}

// many adds all numbers of s to a column. s is at pos.
func (w *walker) many(kind Kind, v *Values, s []byte, pos int) {
	switch kind {
	case Bool:
		var tail []uint8
		v.U8, tail = grown(v.U8, len(s))
		copy(tail, s)
		for i, c := range tail {
			if c > 1 {
				w.odd(BadBool, pos+i)
				tail[i] = 1
			}
		}
	case Int16:
		var tail []int32
		v.I32, tail = grown(v.I32, len(s)/2)
		for i := range tail {
			tail[i] = int32(int16(binary.LittleEndian.Uint16(s)))
			s = s[2:]
		}
	case UInt16:
		var tail []int32
		v.I32, tail = grown(v.I32, len(s)/2)
		for i := range tail {
			tail[i] = int32(binary.LittleEndian.Uint16(s))
			s = s[2:]
		}
	case Int32, UInt32:
		var tail []int32
		v.I32, tail = grown(v.I32, len(s)/4)
		for i := range tail {
			tail[i] = int32(binary.LittleEndian.Uint32(s))
			s = s[4:]
		}
	case Int64, UInt64:
		var tail []int64
		v.I64, tail = grown(v.I64, len(s)/8)
		for i := range tail {
			tail[i] = int64(binary.LittleEndian.Uint64(s))
			s = s[8:]
		}
	case Float32:
		var tail []float32
		v.F32, tail = grown(v.F32, len(s)/4)
		for i := range tail {
			tail[i] = math.Float32frombits(binary.LittleEndian.Uint32(s))
			s = s[4:]
		}
	case Float64:
		var tail []float64
		v.F64, tail = grown(v.F64, len(s)/8)
		for i := range tail {
			tail[i] = math.Float64frombits(binary.LittleEndian.Uint64(s))
			s = s[8:]
		}
	}
}

// numbers writes the next n numbers of a column.
func (a *assembler) numbers(kind Kind, col, n int) {
	v, i := &a.b.Cols[col], a.next(col, n)
	size := int(wireSize[kind])
	var out []byte
	a.dst, out = grown(a.dst, n*size)
	switch kind {
	case Bool:
		copy(out, v.U8[i:i+n])
	case Int8, UInt8:
		for j, x := range v.I32[i : i+n] {
			out[j] = byte(x)
		}
	case Int16, UInt16:
		for _, x := range v.I32[i : i+n] {
			binary.LittleEndian.PutUint16(out, uint16(x))
			out = out[2:]
		}
	case Int32, UInt32:
		for _, x := range v.I32[i : i+n] {
			binary.LittleEndian.PutUint32(out, uint32(x))
			out = out[4:]
		}
	case Int64, UInt64:
		for _, x := range v.I64[i : i+n] {
			binary.LittleEndian.PutUint64(out, uint64(x))
			out = out[8:]
		}
	case Float32:
		for _, x := range v.F32[i : i+n] {
			binary.LittleEndian.PutUint32(out, math.Float32bits(x))
			out = out[4:]
		}
	case Float64:
		for _, x := range v.F64[i : i+n] {
			binary.LittleEndian.PutUint64(out, math.Float64bits(x))
			out = out[8:]
		}
	}
}
