package shred

import (
	"io"
	"slices"

	"github.com/gobag/gobag/msg"
)

// Struct is a message as a value: its fields in the order of the definition.
type Struct []Field

// Field is a field of a Struct. Its Value is a bool, an int or uint of 8 to 64 bits, a float32 or float64, a string, a
// Struct, or a slice of one of these for a sequence or array; times and durations are a Struct of sec and nanosec.
type Field struct {
	Name  string
	Type  msg.Type
	Value any
}

// Get returns the value of the field with that name.
func (s Struct) Get(name string) (any, bool) {
	for i := range s {
		if s[i].Name == name {
			return s[i].Value, true
		}
	}
	return nil, false
}

// Value returns the next row of b as a value, which is a copy, and moves c behind it. io.EOF behind the last row. Of a
// program made by Select, fields without anything kept are left out.
func (p *Program) Value(b *Batch, c *Cursor) (Struct, error) {
	if c.row >= len(b.Forms) {
		return nil, io.EOF
	}
	c.row++
	v := valuer{b: b, c: c}
	return v.structure(&p.root), nil
}

// Decode returns a payload as a value. It takes what AppendLoose takes; the Reason says whether anything was odd.
func (p *Program) Decode(payload []byte) (Struct, Reason, error) {
	b := p.NewBatch()
	reason, err := p.AppendLoose(b, payload)
	if err != nil {
		return nil, reason, err
	}
	s, err := p.Value(b, p.NewCursor())
	return s, reason, err
}

type valuer struct {
	b *Batch
	c *Cursor
}

func (v *valuer) structure(n *node) Struct {
	s := make(Struct, len(n.body))
	for i := range n.body {
		s[i] = Field{n.body[i].name, n.body[i].typ, v.value(&n.body[i])}
	}
	return s
}

// next takes n values of a column and returns the index of the first.
func (v *valuer) next(col, n int) int {
	i := v.c.cols[col]
	v.c.cols[col] = i + n
	return i
}

func (v *valuer) value(n *node) any {
	switch n.code {
	case opStruct:
		return v.structure(n)
	case opNumbers:
		return v.numbers(n, v.elements(n))
	case opList:
		return v.list(n, v.elements(n))
	}
	col, i := &v.b.Cols[n.col], v.next(n.col, 1)
	switch n.kind {
	case Bytes:
		return bytesOf(n, col, i)
	case String, WString:
		return string(col.Bytes(i))
	case Time, Duration:
		return stamp(col.I64[i])
	}
	return number(n, col, i)
}

// elements is the number of elements of the next occurrence of a list.
func (v *valuer) elements(n *node) int {
	if n.n > 0 {
		return n.n
	}
	i := v.c.lists[n.list]
	v.c.lists[n.list]++
	return int(v.b.Counts[n.list][i])
}

// bytesOf is the i-th value of a Bytes column: []uint8 or []int8.
func bytesOf(n *node, col *Values, i int) any {
	s := col.Data
	if n.n > 0 {
		s = s[i*n.n : (i+1)*n.n]
	} else {
		s = col.Bytes(i)
	}
	if n.elem == msg.Int8 {
		return converted[int8](s)
	}
	return append(make([]byte, 0, len(s)), s...)
}

// stamp is a time or duration of ns.
func stamp(ns int64) Struct {
	sec := ns / 1e9
	if ns -= sec * 1e9; ns < 0 {
		sec, ns = sec-1, ns+1e9
	}
	return Struct{{"sec", msg.Type{Base: msg.Int32}, int32(sec)}, {"nanosec", msg.Type{Base: msg.UInt32}, uint32(ns)}}
}

func number(n *node, col *Values, i int) any {
	switch n.kind {
	case Bool:
		return col.U8[i] != 0
	case Int8:
		return int8(col.I32[i])
	case UInt8:
		return uint8(col.I32[i])
	case Int16:
		return int16(col.I32[i])
	case UInt16:
		return uint16(col.I32[i])
	case Int32:
		return col.I32[i]
	case UInt32:
		return uint32(col.I32[i])
	case Int64:
		return col.I64[i]
	case UInt64:
		return uint64(col.I64[i])
	case Float32:
		return col.F32[i]
	}
	return col.F64[i]
}

// numbers is a list of the next count numbers of a column.
func (v *valuer) numbers(n *node, count int) any {
	col, i := &v.b.Cols[n.col], v.next(n.col, count)
	switch n.kind {
	case Bool:
		out := make([]bool, count)
		for j, x := range col.U8[i : i+count] {
			out[j] = x != 0
		}
		return out
	case Int16:
		return converted[int16](col.I32[i : i+count])
	case UInt16:
		return converted[uint16](col.I32[i : i+count])
	case Int32:
		return append([]int32{}, col.I32[i:i+count]...)
	case UInt32:
		return converted[uint32](col.I32[i : i+count])
	case Int64:
		return append([]int64{}, col.I64[i:i+count]...)
	case UInt64:
		return converted[uint64](col.I64[i : i+count])
	case Float32:
		return append([]float32{}, col.F32[i:i+count]...)
	}
	return append([]float64{}, col.F64[i:i+count]...)
}

func converted[T, S int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64](in []S) []T {
	out := make([]T, len(in))
	for i, x := range in {
		out[i] = T(x)
	}
	return out
}

// list is a list of strings or structs.
func (v *valuer) list(n *node, count int) any {
	elem := &n.body[0]
	if elem.kind == String || elem.kind == WString {
		out := make([]string, 0, min(count, len(v.b.Cols[elem.col].Ends)))
		for range count {
			out = append(out, string(v.b.Cols[elem.col].Bytes(v.next(elem.col, 1))))
		}
		return out
	}
	out := []Struct{}
	for range count {
		out = append(out, v.value(elem).(Struct))
	}
	return slices.Clip(out)
}
