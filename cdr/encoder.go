package cdr

import (
	"encoding/binary"
	"math"
	"unicode/utf16"
)

// Encoder appends primitive values to a byte slice. Methods are named as the Decoder's.
type Encoder struct {
	buf    []byte
	start  int // where the encapsulation header is, -1 if there is none
	origin int // alignment counts from here
	order  byteOrder
	max    int
}

// NewEncoder appends an encapsulation header of the given kind to b and encodes behind it. Take the result with Bytes.
func NewEncoder(b []byte, kind Kind) *Encoder {
	e := new(Encoder)
	e.Reset(b, kind)
	return e
}

// Reset starts anew as NewEncoder does, without allocating.
func (e *Encoder) Reset(b []byte, kind Kind) {
	start := len(b)
	*e = Encoder{buf: AppendHeader(b, kind), start: start, origin: start + HeaderSize, order: byteOrder(kind.BigEndian()), max: kind.maxAlign()}
}

// ResetBody starts anew without an encapsulation header; alignment counts from the end of b.
func (e *Encoder) ResetBody(b []byte, kind Kind) {
	*e = Encoder{buf: b, start: -1, origin: len(b), order: byteOrder(kind.BigEndian()), max: kind.maxAlign()}
}

// Bytes is everything so far, the bytes before the header included. It stays valid until the next call.
func (e *Encoder) Bytes() []byte { return e.buf }

// Len is the number of bytes encoded so far, header included.
func (e *Encoder) Len() int {
	if e.start >= 0 {
		return len(e.buf) - e.start
	}
	return len(e.buf) - e.origin
}

// Align appends zeros up to the next multiple of n (1, 2, 4 or 8; 8 counts as 4 in XCDR2).
func (e *Encoder) Align(n int) {
	for range -(len(e.buf) - e.origin) & (min(n, e.max) - 1) {
		e.buf = append(e.buf, 0)
	}
}

// Pad appends zeros up to a multiple of 4 and declares their number in the options of the header, if there is one.
func (e *Encoder) Pad() {
	n := -(len(e.buf) - e.origin) & 3
	e.Align(4)
	if e.start >= 0 {
		e.buf[e.start+3] = e.buf[e.start+3]&^3 | byte(n)
	}
}

// Raw appends bytes as they are, without alignment.
func (e *Encoder) Raw(b []byte) { e.buf = append(e.buf, b...) }

// Uint8 appends an octet, uint8, char or byte.
func (e *Encoder) Uint8(v uint8) { e.buf = append(e.buf, v) }

// Int8 appends an int8.
func (e *Encoder) Int8(v int8) { e.Uint8(uint8(v)) }

// Bool appends a boolean as 1 or 0.
func (e *Encoder) Bool(v bool) {
	if v {
		e.Uint8(1)
	} else {
		e.Uint8(0)
	}
}

// Uint16 appends a uint16.
func (e *Encoder) Uint16(v uint16) {
	e.Align(2)
	if e.order {
		e.buf = binary.BigEndian.AppendUint16(e.buf, v)
	} else {
		e.buf = binary.LittleEndian.AppendUint16(e.buf, v)
	}
}

// Int16 appends an int16.
func (e *Encoder) Int16(v int16) { e.Uint16(uint16(v)) }

// Uint32 appends a uint32.
func (e *Encoder) Uint32(v uint32) {
	e.Align(4)
	if e.order {
		e.buf = binary.BigEndian.AppendUint32(e.buf, v)
	} else {
		e.buf = binary.LittleEndian.AppendUint32(e.buf, v)
	}
}

// Int32 appends an int32.
func (e *Encoder) Int32(v int32) { e.Uint32(uint32(v)) }

// Uint64 appends a uint64.
func (e *Encoder) Uint64(v uint64) {
	e.Align(8)
	if e.order {
		e.buf = binary.BigEndian.AppendUint64(e.buf, v)
	} else {
		e.buf = binary.LittleEndian.AppendUint64(e.buf, v)
	}
}

// Int64 appends an int64.
func (e *Encoder) Int64(v int64) { e.Uint64(uint64(v)) }

// Float32 appends a float32.
func (e *Encoder) Float32(v float32) { e.Uint32(math.Float32bits(v)) }

// Float64 appends a float64.
func (e *Encoder) Float64(v float64) { e.Uint64(math.Float64bits(v)) }

// SeqLen appends the length of a sequence whose elements follow.
func (e *Encoder) SeqLen(n int) { e.Uint32(uint32(n)) }

// ByteSeq appends a sequence of octets.
func (e *Encoder) ByteSeq(b []byte) {
	e.SeqLen(len(b))
	e.Raw(b)
}

// Str appends a string: its length with the NUL, its bytes, the NUL.
func (e *Encoder) Str(s string) {
	e.SeqLen(len(s) + 1)
	e.buf = append(e.buf, s...)
	e.buf = append(e.buf, 0)
}

// WStr appends a wide string as ROS 2's middlewares write it: the number of UTF-16 units, then 4 bytes for each, no NUL.
func (e *Encoder) WStr(s string) {
	units := utf16.Encode([]rune(s))
	e.SeqLen(len(units))
	for _, u := range units {
		e.Uint32(uint32(u))
	}
}
