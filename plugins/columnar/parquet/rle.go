package parquet

import (
	"encoding/binary"
	"errors"
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
	var acc uint64
	bits := 0
	for _, x := range v {
		acc |= uint64(x) << bits
		for bits += width; bits >= 8; bits -= 8 {
			dst = append(dst, byte(acc))
			acc >>= 8
		}
	}
	for bits += (n - len(v)) * width; bits > 0; bits -= 8 {
		dst = append(dst, byte(acc))
		acc >>= 8
	}
	return dst
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
