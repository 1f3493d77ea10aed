package parquet

import (
	"encoding/binary"
	"errors"
)

// Types of the thrift compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftStruct = 12
)

// thriftWriter appends structs of the thrift compact protocol. Fields come in ascending order of their numbers.
type thriftWriter struct {
	b    []byte
	last int
	open []int
}

func (t *thriftWriter) reset() { t.b, t.last, t.open = t.b[:0], 0, t.open[:0] }

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func (t *thriftWriter) number(v int64) { t.b = binary.AppendUvarint(t.b, zigzag(v)) }

func (t *thriftWriter) field(id, typ int) {
	if d := id - t.last; d > 0 && d < 16 {
		t.b = append(t.b, byte(d<<4|typ))
	} else {
		t.b = append(t.b, byte(typ))
		t.number(int64(id))
	}
	t.last = id
}

func (t *thriftWriter) i32(id int, v int64) { t.field(id, thriftI32); t.number(v) }
func (t *thriftWriter) i64(id int, v int64) { t.field(id, thriftI64); t.number(v) }

func (t *thriftWriter) flag(id int, v bool) {
	if v {
		t.field(id, thriftTrue)
	} else {
		t.field(id, thriftFalse)
	}
}

func (t *thriftWriter) binary(id int, v []byte) { t.field(id, thriftBinary); t.bytes(v) }
func (t *thriftWriter) text(id int, v string)   { t.field(id, thriftBinary); t.string(v) }

func (t *thriftWriter) bytes(v []byte) { t.b = append(binary.AppendUvarint(t.b, uint64(len(v))), v...) }
func (t *thriftWriter) string(v string) {
	t.b = append(binary.AppendUvarint(t.b, uint64(len(v))), v...)
}

// begin opens a struct field, element a struct in a list; end closes either.
func (t *thriftWriter) begin(id int) { t.field(id, thriftStruct); t.element() }
func (t *thriftWriter) element()     { t.open = append(t.open, t.last); t.last = 0 }
func (t *thriftWriter) end() {
	t.b = append(t.b, 0)
	t.last = t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
}

// stop closes the outermost struct.
func (t *thriftWriter) stop() { t.b = append(t.b, 0) }

func (t *thriftWriter) list(id, typ, n int) {
	t.field(id, thriftList)
	if n < 15 {
		t.b = append(t.b, byte(n<<4|typ))
		return
	}
	t.b = binary.AppendUvarint(append(t.b, byte(0xf0|typ)), uint64(n))
}

var errThrift = errors.New("thrift structure is damaged")

// thriftReader takes structs apart. After the first mistake bad is set and everything is zero.
type thriftReader struct {
	b     []byte
	bad   bool
	depth int
}

func (t *thriftReader) fail() { t.bad, t.b = true, nil }

func (t *thriftReader) uvarint() uint64 {
	v, n := binary.Uvarint(t.b)
	if n <= 0 {
		t.fail()
		return 0
	}
	t.b = t.b[n:]
	return v
}

func (t *thriftReader) number() int64 { return unzigzag(t.uvarint()) }

func (t *thriftReader) byte() byte {
	if len(t.b) == 0 {
		t.fail()
		return 0
	}
	c := t.b[0]
	t.b = t.b[1:]
	return c
}

// bytes aliases what is read.
func (t *thriftReader) bytes() []byte {
	n := t.uvarint()
	if n > uint64(len(t.b)) {
		t.fail()
		return nil
	}
	s := t.b[:n:n]
	t.b = t.b[n:]
	return s
}

// structure calls f with every field of a struct; f reads the field's value, or returns false to have it skipped.
func (t *thriftReader) structure(f func(id, typ int) bool) {
	if t.depth++; t.depth > 32 {
		t.fail()
	}
	for id := 0; !t.bad; {
		c := t.byte()
		typ := int(c & 15)
		if typ == 0 {
			break
		}
		if d := int(c >> 4); d != 0 {
			id += d
		} else {
			id = int(int16(t.number()))
		}
		if !f(id, typ) {
			t.skip(typ)
		}
	}
	t.depth--
}

// list calls f for every element of a list of the wanted type.
func (t *thriftReader) list(typ int, f func()) {
	c := t.byte()
	n := uint64(c >> 4)
	if n == 15 {
		n = t.uvarint()
	}
	if int(c&15) != typ && n > 0 || n > uint64(len(t.b)) { // an element takes a byte at least
		t.fail()
		return
	}
	for ; n > 0 && !t.bad; n-- {
		f()
	}
}

func (t *thriftReader) skip(typ int) {
	switch typ {
	case thriftTrue, thriftFalse:
	case thriftByte:
		t.byte()
	case thriftI16, thriftI32, thriftI64:
		t.uvarint()
	case thriftDouble:
		if len(t.b) < 8 {
			t.fail()
			return
		}
		t.b = t.b[8:]
	case thriftBinary:
		t.bytes()
	case thriftList, thriftSet:
		t.skipList()
	case thriftStruct:
		t.structure(func(int, int) bool { return false })
	default:
		t.fail()
	}
}

func (t *thriftReader) skipList() {
	c := t.byte()
	n := uint64(c >> 4)
	if n == 15 {
		n = t.uvarint()
	}
	typ := int(c & 15)
	if n > uint64(len(t.b)) {
		t.fail()
	}
	if t.depth++; t.depth > 32 {
		t.fail()
	}
	for ; n > 0 && !t.bad; n-- {
		if typ == thriftTrue || typ == thriftFalse {
			t.byte() // one byte each in a list
		} else {
			t.skip(typ)
		}
	}
	t.depth--
}
