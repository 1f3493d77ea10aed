package cdr

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf16"
)

// Decoder reads primitive values one after the other. It keeps the first error; after it every read returns zero, so
// that a caller may check Err once at the end. It borrows the bytes it reads from.
type Decoder struct {
	buf    []byte
	pos    int // next byte in buf
	origin int // alignment counts from here
	order  byteOrder
	max    int // largest alignment
	kind   Kind
	err    *Error
}

// byteOrder is true for big-endian; a branch on a bool is cheaper than an interface.
type byteOrder bool

func (o byteOrder) u16(b []byte) uint16 {
	if o {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (o byteOrder) u32(b []byte) uint32 {
	if o {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (o byteOrder) u64(b []byte) uint64 {
	if o {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// NewDecoder reads a payload with its encapsulation header, which must be one of the XCDR1 or XCDR2 kinds. Declared
// padding at the end is cut off.
func NewDecoder(payload []byte) (*Decoder, error) {
	d := new(Decoder)
	return d, d.Reset(payload)
}

// Reset makes d read payload from its start, as NewDecoder does, without allocating.
func (d *Decoder) Reset(payload []byte) error {
	kind, options, body, err := Split(payload)
	if err != nil {
		*d = Decoder{err: &Error{What: "no payload"}}
		return err
	}
	if kind.Version() == 0 {
		*d = Decoder{err: &Error{What: "unsupported " + kind.String()}}
		return d.err
	}
	n := len(payload)
	if p := Padding(options); p <= len(body) {
		n -= p
	}
	*d = Decoder{buf: payload[:n], pos: HeaderSize, origin: HeaderSize, order: byteOrder(kind.BigEndian()), max: kind.maxAlign(), kind: kind}
	return nil
}

// ResetBody makes d read body, which has no encapsulation header; alignment counts from its first byte.
func (d *Decoder) ResetBody(body []byte, kind Kind) {
	*d = Decoder{buf: body, order: byteOrder(kind.BigEndian()), max: kind.maxAlign(), kind: kind}
}

// Err is the first error, or nil.
func (d *Decoder) Err() error {
	if d.err == nil {
		return nil
	}
	return d.err
}

// Fail records an error of the caller at the current offset, unless there is one already.
func (d *Decoder) Fail(what string) {
	if d.err == nil {
		d.err = &Error{Offset: d.pos, What: what}
	}
}

// Kind is the encapsulation that is being read.
func (d *Decoder) Kind() Kind { return d.kind }

// Pos is the offset of the next byte.
func (d *Decoder) Pos() int { return d.pos }

// Left is the number of bytes not read yet; 0 after an error.
func (d *Decoder) Left() int {
	if d.err != nil {
		return 0
	}
	return len(d.buf) - d.pos
}

// take aligns to align (a power of two) and returns the next n bytes, nil after an error.
func (d *Decoder) take(align, n int) []byte {
	if d.err != nil {
		return nil
	}
	p := d.pos
	if align > 1 {
		p += -(p - d.origin) & (align - 1)
	}
	if n < 0 || p > len(d.buf) || n > len(d.buf)-p {
		d.err = &Error{Offset: d.pos, What: fmt.Sprintf("%d bytes wanted, %d left", n, max(0, len(d.buf)-p))}
		return nil
	}
	d.pos = p + n
	return d.buf[p : p+n : p+n]
}

// Align skips to the next multiple of n (1, 2, 4 or 8; 8 counts as 4 in XCDR2).
func (d *Decoder) Align(n int) { d.take(min(n, d.max), 0) }

// Bytes returns the next n bytes without copying or aligning.
func (d *Decoder) Bytes(n int) []byte { return d.take(1, n) }

// Skip moves over n bytes.
func (d *Decoder) Skip(n int) { d.take(1, n) }

// Uint8 reads an octet, uint8, char or byte.
func (d *Decoder) Uint8() uint8 {
	if b := d.take(1, 1); b != nil {
		return b[0]
	}
	return 0
}

// Int8 reads an int8.
func (d *Decoder) Int8() int8 { return int8(d.Uint8()) }

// Bool reads a boolean; any value but 0 is true.
func (d *Decoder) Bool() bool { return d.Uint8() != 0 }

// Uint16 reads a uint16.
func (d *Decoder) Uint16() uint16 {
	if b := d.take(2, 2); b != nil {
		return d.order.u16(b)
	}
	return 0
}

// Int16 reads an int16.
func (d *Decoder) Int16() int16 { return int16(d.Uint16()) }

// Uint32 reads a uint32.
func (d *Decoder) Uint32() uint32 {
	if b := d.take(4, 4); b != nil {
		return d.order.u32(b)
	}
	return 0
}

// Int32 reads an int32.
func (d *Decoder) Int32() int32 { return int32(d.Uint32()) }

// Uint64 reads a uint64.
func (d *Decoder) Uint64() uint64 {
	if b := d.take(d.max, 8); b != nil {
		return d.order.u64(b)
	}
	return 0
}

// Int64 reads an int64.
func (d *Decoder) Int64() int64 { return int64(d.Uint64()) }

// Float32 reads a float32.
func (d *Decoder) Float32() float32 { return math.Float32frombits(d.Uint32()) }

// Float64 reads a float64.
func (d *Decoder) Float64() float64 { return math.Float64frombits(d.Uint64()) }

// Len reads the length of a sequence whose elements take at least minSize bytes each (0 counts as 1), and fails when
// so many cannot follow. A slice of that length may therefore be made.
func (d *Decoder) Len(minSize int) int {
	n := d.Uint32()
	if d.err != nil {
		return 0
	}
	if uint64(n)*uint64(max(1, minSize)) > uint64(len(d.buf)-d.pos) {
		d.Fail(fmt.Sprintf("sequence of %d elements, %d bytes left", n, len(d.buf)-d.pos))
		return 0
	}
	return int(n)
}

// ByteSeq reads a sequence of octets without copying.
func (d *Decoder) ByteSeq() []byte { return d.Bytes(d.Len(1)) }

// StrBytes reads a string without copying; the terminating NUL is cut off. A length of 0, which some writers send for
// the empty string, is accepted.
func (d *Decoder) StrBytes() []byte {
	b := d.Bytes(d.Len(1))
	if n := len(b); n > 0 && b[n-1] == 0 {
		b = b[:n-1]
	}
	return b
}

// Str reads a string. It is a copy.
func (d *Decoder) Str() string { return string(d.StrBytes()) }

// WStr reads a wide string as ROS 2's middlewares write it: the number of UTF-16 units, then 4 bytes for each, no NUL.
// Unpaired surrogates become U+FFFD.
func (d *Decoder) WStr() string {
	n := d.Len(4)
	units := make([]uint16, n)
	for i := range units {
		units[i] = uint16(d.Uint32())
	}
	return string(utf16.Decode(units))
}
