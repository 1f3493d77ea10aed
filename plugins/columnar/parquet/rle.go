package parquet

import (
	"encoding/binary"
	"errors"
	"slices"
)

// The hybrid of run lengths and bit packing (specification: "RLE / Bit-Packing Hybrid").

var errShort = errors.New("values end too early")

// appendHybrid appends v with width bits each, 0 to 32.
func appendHybrid[T uint8 | uint32](dst []byte, v []T, width int) []byte {
	for i := 0; i < len(v); {
		// A stretch of values to pack, in groups of eight, until a run that is worth its head.
		j := i
		for j < len(v) {
			k := j + 1
			for end := min(len(v), j+16); k < end && v[k] == v[j]; k++ {
			}
			if k-j >= 16 || k == len(v) && j == i {
				break
			}
			j += 8
		}
		j = min(j, len(v))
		if j > i {
			groups := (j - i + 7) / 8
			dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
			dst = appendPacked(dst, v[i:j], groups*8, width)
			i = j
			continue
		}
		k := i + 1
		for k < len(v) && v[k] == v[i] {
			k++
		}
		dst = binary.AppendUvarint(dst, uint64(k-i)<<1)
		for b := 0; b < width; b += 8 {
			dst = append(dst, byte(uint32(v[i])>>b))
		}
		i = k
	}
	return dst
}

// appendPacked appends n values of width bits, v and zeros behind it.
func appendPacked[T uint8 | uint32](dst []byte, v []T, n, width int) []byte {
	at, size := len(dst), (n*width+7)/8
	dst = slices.Grow(dst, size+8)
	b := dst[at : at+size+8] // so that words can be written behind the end
	o := 0
	if width == 8 {
		for i, x := range v {
			b[i] = byte(x)
		}
		o = len(v)
	} else if width < 8 {
		for ; len(v) >= 8; v = v[8:] {
			w := width & 7
			g := v[:8:8]
			lo := uint32(g[0]) | uint32(g[1])<<w | uint32(g[2])<<(2*w) | uint32(g[3])<<(3*w)
			hi := uint32(g[4]) | uint32(g[5])<<w | uint32(g[6])<<(2*w) | uint32(g[7])<<(3*w)
			le.PutUint64(b[o:], uint64(lo)|uint64(hi)<<(4*w))
			o += width
		}
		o = packSlowly(b, o, v, width)
	} else {
		o = packSlowly(b, o, v, width)
	}
	clear(b[min(o, size):])
	return dst[:at+size]
}

// packSlowly packs v from byte o of b on, which has room for four bytes more, and returns where the last byte ends.
func packSlowly[T uint8 | uint32](b []byte, o int, v []T, width int) int {
	var acc uint64
	bits := 0
	for _, x := range v {
		acc |= uint64(x) << bits
		if bits += width; bits >= 32 {
			le.PutUint32(b[o:], uint32(acc))
			o += 4
			acc >>= 32
			bits -= 32
		}
	}
	if bits > 0 {
		le.PutUint32(b[o:], uint32(acc))
		o += (bits + 7) / 8
	}
	return o
}

// cutHybrid reads len(out) values of width bits and returns what follows them.
func cutHybrid[T uint8 | uint32](b []byte, out []T, width int) ([]byte, error) {
	for len(out) > 0 {
		h, k := binary.Uvarint(b)
		if k <= 0 {
			return nil, errShort
		}
		b = b[k:]
		if h&1 == 0 {
			n, bytes := h>>1, (width+7)/8
			if n == 0 || n > uint64(len(out)) || len(b) < bytes {
				return nil, errShort
			}
			var x uint32
			for i := range bytes {
				x |= uint32(b[i]) << (8 * i)
			}
			b = b[bytes:]
			if width < 32 && x>>width != 0 {
				return nil, errors.New("run of a value that is too large")
			}
			run := out[:n]
			for i := range run {
				run[i] = T(x)
			}
			out = out[n:]
			continue
		}
		n := min(h>>1, uint64(len(b))+1) // a group of width 0 takes no bytes
		if width > 0 && n*uint64(width) > uint64(len(b)) || n == 0 {
			return nil, errShort
		}
		count := len(out)
		if uint64(count) > n*8 {
			count = int(n * 8)
		}
		unpack(b, out[:count], width)
		out, b = out[count:], b[n*uint64(width):]
	}
	return b, nil
}

// unpack reads values of width bits, 32 at most; b is long enough.
func unpack[T uint8 | uint32](b []byte, out []T, width int) {
	mask := uint64(1)<<width - 1
	var acc uint64
	bits := 0
	for i := range out {
		for bits < width {
			acc |= uint64(b[0]) << bits
			b = b[1:]
			bits += 8
		}
		out[i] = T(acc & mask)
		acc >>= width
		bits -= width
	}
}
