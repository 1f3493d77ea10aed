package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unsafe"
)

// DELTA_BINARY_PACKED: blocks of 128 values in four miniblocks, as all writers have them.
const (
	deltaBlock = 128
	deltaMini  = 32
)

// appendDelta appends v. Differences wrap around in the width of T.
func appendDelta[T int32 | int64](dst []byte, v []T) []byte {
	dst = append(dst, deltaBlock&0x7f|0x80, deltaBlock>>7, deltaBlock/deltaMini)
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	if len(v) == 0 {
		return append(dst, 0)
	}
	dst = binary.AppendUvarint(dst, zigzag(int64(v[0])))
	var d [deltaBlock]T
	for i := 1; i < len(v); i += deltaBlock {
		n := min(deltaBlock, len(v)-i)
		least := v[i] - v[i-1]
		prev := v[i-1]
		for j, x := range v[i : i+n] {
			d[j] = x - prev
			prev = x
			least = min(least, d[j])
		}
		dst = binary.AppendUvarint(dst, zigzag(int64(least)))
		widths := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		for m := 0; m*deltaMini < n; m++ {
			var mini [deltaMini]uint64
			var all uint64
			for j, x := range d[m*deltaMini : min(n, (m+1)*deltaMini)] {
				u := uint64(x - least)
				if unsafe.Sizeof(x) == 4 {
					u = uint64(uint32(u))
				}
				mini[j] = u
				all |= u
			}
			w := bits.Len64(all)
			dst[widths+m] = byte(w)
			dst = appendMini(dst, &mini, w)
		}
	}
	return dst
}

func appendMini(dst []byte, v *[deltaMini]uint64, width int) []byte {
	if width == 0 {
		return dst
	}
	at := len(dst)
	var room [4*64 + 16]byte
	dst = append(dst, room[:4*width+16]...)
	b := dst[at:]
	bit := 0
	for _, x := range v {
		o, s := bit>>3, bit&7
		binary.LittleEndian.PutUint64(b[o:], binary.LittleEndian.Uint64(b[o:])|x<<s)
		if s+width > 64 {
			b[o+8] = byte(x >> (64 - s))
		}
		bit += width
	}
	return dst[:at+4*width]
}

// cutDelta reads n values onto out and returns what follows them.
func cutDelta[T int32 | int64](b []byte, out []T, n int) ([]byte, []T, error) {
	var head [4]uint64
	for i := range head {
		v, k := binary.Uvarint(b)
		if k <= 0 {
			return nil, out, errShort
		}
		head[i], b = v, b[k:]
	}
	if head[0] != deltaBlock || head[1] != deltaBlock/deltaMini {
		return nil, out, fmt.Errorf("delta blocks of %d values in %d miniblocks", head[0], head[1])
	}
	if head[2] != uint64(n) {
		return nil, out, fmt.Errorf("%d delta values, there should be %d", head[2], n)
	}
	if n == 0 {
		return b, out, nil
	}
	x := T(unzigzag(head[3]))
	out = append(out, x)
	for n--; n > 0; {
		u, k := binary.Uvarint(b)
		if k <= 0 || len(b) < k+4 {
			return nil, out, errShort
		}
		least, widths := T(unzigzag(u)), b[k:k+4]
		b = b[k+4:]
		for m := 0; m < 4 && n > 0; m++ {
			w := int(widths[m])
			if w > 64 || w > 8*int(unsafe.Sizeof(x)) {
				return nil, out, errors.New("delta wider than its values")
			}
			if len(b) < 4*w {
				return nil, out, errShort
			}
			var mini [deltaMini]uint64
			cutMini(b, &mini, w)
			b = b[4*w:]
			for _, d := range mini[:min(n, deltaMini)] {
				x += least + T(d)
				out = append(out, x)
			}
			n -= min(n, deltaMini)
		}
	}
	return b, out, nil
}

// cutMini reads a miniblock; b has 4*width bytes at least.
func cutMini(b []byte, v *[deltaMini]uint64, width int) {
	if width == 0 {
		return
	}
	var room [4*64 + 16]byte // so that words can be read behind the end
	copy(room[:], b[:4*width])
	mask := ^uint64(0) >> (64 - width)
	bit := 0
	for i := range v {
		o, s := bit>>3, bit&7
		x := binary.LittleEndian.Uint64(room[o:]) >> s
		if s+width > 64 {
			x |= uint64(room[o+8]) << (64 - s)
		}
		v[i] = x & mask
		bit += width
	}
}
