package parquet

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

var le = binary.LittleEndian

// nativeLittle says that numbers lie in memory as they do in files.
var nativeLittle = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// memory is the memory of s as bytes.
func memory[T int32 | int64 | float32 | float64](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// word is the bits of a number.
func word[T int32 | int64 | float32 | float64](x T) uint64 {
	if unsafe.Sizeof(x) == 8 {
		return *(*uint64)(unsafe.Pointer(&x))
	}
	return uint64(*(*uint32)(unsafe.Pointer(&x)))
}

// appendPlain appends numbers as PLAIN has them.
func appendPlain[T int32 | int64 | float32 | float64](dst []byte, v []T) []byte {
	if nativeLittle {
		return append(dst, memory(v)...)
	}
	for _, x := range v {
		if unsafe.Sizeof(x) == 4 {
			dst = le.AppendUint32(dst, uint32(word(x)))
		} else {
			dst = le.AppendUint64(dst, word(x))
		}
	}
	return dst
}

// cutPlain reads n numbers onto out.
func cutPlain[T int32 | int64 | float32 | float64](b []byte, out []T, n int) ([]byte, []T, error) {
	var x T
	size := int(unsafe.Sizeof(x))
	if n > len(b)/size {
		return nil, out, errShort
	}
	at := len(out)
	out = slices.Grow(out, n)[:at+n]
	if nativeLittle {
		copy(memory(out[at:]), b)
		return b[n*size:], out, nil
	}
	for i := range out[at:] {
		if size == 4 {
			u := le.Uint32(b[i*4:])
			out[at+i] = *(*T)(unsafe.Pointer(&u))
		} else {
			u := le.Uint64(b[i*8:])
			out[at+i] = *(*T)(unsafe.Pointer(&u))
		}
	}
	return b[n*size:], out, nil
}

// appendSplit appends numbers as BYTE_STREAM_SPLIT: first the lowest byte of all, last the highest.
func appendSplit[T float32 | float64](dst []byte, v []T) []byte {
	var x T
	size, n := int(unsafe.Sizeof(x)), len(v)
	at := len(dst)
	dst = slices.Grow(dst, n*size)[:at+n*size]
	b := dst[at:]
	if nativeLittle {
		src := memory(v)
		if size == 8 {
			split8(b, src, n)
		} else {
			split4(b, src, n)
		}
		return dst
	}
	for i, x := range v {
		w := word(x)
		for s := range size {
			b[s*n+i] = byte(w >> (8 * s))
		}
	}
	return dst
}

func split8(dst, src []byte, n int) {
	d0, d1, d2, d3 := dst[:n], dst[n:2*n], dst[2*n:3*n], dst[3*n:4*n]
	d4, d5, d6, d7 := dst[4*n:5*n], dst[5*n:6*n], dst[6*n:7*n], dst[7*n:8*n]
	for i := range n {
		w := le.Uint64(src[8*i:])
		d0[i], d1[i], d2[i], d3[i] = byte(w), byte(w>>8), byte(w>>16), byte(w>>24)
		d4[i], d5[i], d6[i], d7[i] = byte(w>>32), byte(w>>40), byte(w>>48), byte(w>>56)
	}
}

func split4(dst, src []byte, n int) {
	d0, d1, d2, d3 := dst[:n], dst[n:2*n], dst[2*n:3*n], dst[3*n:4*n]
	for i := range n {
		w := le.Uint32(src[4*i:])
		d0[i], d1[i], d2[i], d3[i] = byte(w), byte(w>>8), byte(w>>16), byte(w>>24)
	}
}

// cutSplit reads n numbers onto out.
func cutSplit[T float32 | float64](b []byte, out []T, n int) ([]byte, []T, error) {
	var x T
	size := int(unsafe.Sizeof(x))
	if n > len(b)/size {
		return nil, out, errShort
	}
	at := len(out)
	out = slices.Grow(out, n)[:at+n]
	if size == 8 {
		b0, b1, b2, b3 := b[:n], b[n:2*n], b[2*n:3*n], b[3*n:4*n]
		b4, b5, b6, b7 := b[4*n:5*n], b[5*n:6*n], b[6*n:7*n], b[7*n:8*n]
		for i := range n {
			u := uint64(b0[i]) | uint64(b1[i])<<8 | uint64(b2[i])<<16 | uint64(b3[i])<<24 |
				uint64(b4[i])<<32 | uint64(b5[i])<<40 | uint64(b6[i])<<48 | uint64(b7[i])<<56
			out[at+i] = *(*T)(unsafe.Pointer(&u))
		}
	} else {
		b0, b1, b2, b3 := b[:n], b[n:2*n], b[2*n:3*n], b[3*n:4*n]
		for i := range n {
			u := uint32(b0[i]) | uint32(b1[i])<<8 | uint32(b2[i])<<16 | uint32(b3[i])<<24
			out[at+i] = *(*T)(unsafe.Pointer(&u))
		}
	}
	return b[n*size:], out, nil
}

// appendBools packs bools, eight to a byte.
func appendBools(dst []byte, v []uint8) []byte {
	for ; len(v) >= 8; v = v[8:] {
		dst = append(dst, v[0]|v[1]<<1|v[2]<<2|v[3]<<3|v[4]<<4|v[5]<<5|v[6]<<6|v[7]<<7)
	}
	if len(v) > 0 {
		var c byte
		for i, x := range v {
			c |= x << i
		}
		dst = append(dst, c)
	}
	return dst
}

func cutBools(b []byte, out []uint8, n int) ([]byte, []uint8, error) {
	if (n+7)/8 > len(b) {
		return nil, out, errShort
	}
	for i := range n {
		out = append(out, b[i>>3]>>(i&7)&1)
	}
	return b[(n+7)/8:], out, nil
}
