package wire

import (
	"encoding/binary"
	"fmt"
)

// reader takes values off the front of b. Callers check lengths beforehand; it is only used where they have.
type reader struct {
	b      []byte
	little bool
}

func (r *reader) raw(n int) []byte {
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) skip(n int) { r.b = r.b[n:] }

func (r *reader) u16() uint16 {
	if r.little {
		return binary.LittleEndian.Uint16(r.raw(2))
	}
	return binary.BigEndian.Uint16(r.raw(2))
}

func (r *reader) u32() uint32 {
	if r.little {
		return binary.LittleEndian.Uint32(r.raw(4))
	}
	return binary.BigEndian.Uint32(r.raw(4))
}

// seq reads a sequence number: the high half as i32, then the low half as u32.
func (r *reader) seq() int64 {
	high := r.u32()
	return int64(high)<<32 | int64(r.u32())
}

func (r *reader) entity() EntityID { return EntityID(r.raw(4)) }

// bits reads numBits and the words of a set and clears the bits beyond numBits.
func (r *reader) bits(numBits *uint32, m *bitmap) (what string) {
	n := r.u32()
	if n > SetBits {
		return fmt.Sprintf("set of %d bits, 256 at most", n)
	}
	w := words(n)
	if len(r.b) < 4*w {
		return fmt.Sprintf("set of %d bits, %d bytes left", n, len(r.b))
	}
	*numBits, *m = n, bitmap{}
	for i := range w {
		m[i] = r.u32()
	}
	if n%32 != 0 {
		m[w-1] &= ^uint32(0) << (32 - n%32)
	}
	return ""
}

func badSeq(what string, sn int64) string {
	return fmt.Sprintf("%s %d, 1 to 2^63-1025 expected", what, sn)
}

func validSeq(sn int64) bool { return sn >= 1 && sn <= MaxSeq }
