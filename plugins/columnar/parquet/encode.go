package parquet

import (
	"encoding/binary"
	"math/bits"
)

// encoding is how the values of a page are written; the numbers are Parquet's.
type encoding int8

const (
	plain       encoding = 0
	rleLevels   encoding = 3
	delta       encoding = 5
	deltaLength encoding = 6
	dictionary  encoding = 8
	byteSplit   encoding = 9
	undecided   encoding = -1
)

// candidates are the encodings that are tried for a leaf, cheapest first.
func candidates(l *Leaf) []encoding {
	switch l.physical() {
	case typeBoolean:
		return []encoding{plain}
	case typeInt32, typeInt64:
		return []encoding{delta, dictionary, plain}
	case typeFloat, typeDouble:
		return []encoding{byteSplit, plain, dictionary}
	case typeBytes:
		return []encoding{deltaLength, dictionary}
	}
	return []encoding{plain, dictionary}
}

// window returns the values from i to j of v. It aliases v; string ends are copied to ends.
func window(l *Leaf, v *Values, i, j int, ends []uint32) (Values, []uint32) {
	switch l.physical() {
	case typeBoolean:
		return Values{U8: v.U8[i:j]}, ends
	case typeInt32:
		return Values{I32: v.I32[i:j]}, ends
	case typeInt64:
		return Values{I64: v.I64[i:j]}, ends
	case typeFloat:
		return Values{F32: v.F32[i:j]}, ends
	case typeDouble:
		return Values{F64: v.F64[i:j]}, ends
	case typeFixed:
		return Values{Data: v.Data[i*l.Fixed : j*l.Fixed]}, ends
	}
	start := uint32(0)
	if i > 0 {
		start = v.Ends[i-1]
	}
	ends = ends[:0]
	for _, e := range v.Ends[i:j] {
		ends = append(ends, e-start)
	}
	data := v.Data[start:start]
	if j > i {
		data = v.Data[start:v.Ends[j-1]]
	}
	return Values{Data: data, Ends: ends}, ends
}

// appendValues appends v in encoding e, dictionary excepted. lens is scratch.
func appendValues(dst []byte, l *Leaf, v *Values, e encoding, lens *[]int32) []byte {
	switch l.physical() {
	case typeBoolean:
		return appendBools(dst, v.U8)
	case typeInt32:
		if e == delta {
			return appendDelta(dst, v.I32)
		}
		return appendPlain(dst, v.I32)
	case typeInt64:
		if e == delta {
			return appendDelta(dst, v.I64)
		}
		return appendPlain(dst, v.I64)
	case typeFloat:
		if e == byteSplit {
			return appendSplit(dst, v.F32)
		}
		return appendPlain(dst, v.F32)
	case typeDouble:
		if e == byteSplit {
			return appendSplit(dst, v.F64)
		}
		return appendPlain(dst, v.F64)
	case typeFixed:
		return append(dst, v.Data...)
	}
	start := uint32(0)
	if e == deltaLength {
		n := (*lens)[:0]
		for _, end := range v.Ends {
			n = append(n, int32(end-start))
			start = end
		}
		*lens = n
		return append(appendDelta(dst, n), v.Data...)
	}
	for _, end := range v.Ends {
		dst = append(le.AppendUint32(dst, end-start), v.Data[start:end]...)
		start = end
	}
	return dst
}

// index finds the dictionary numbers of v; false where the dictionary is full.
func (d *dict) index(l *Leaf, v *Values, idx []uint32) ([]uint32, bool) {
	switch l.physical() {
	case typeInt32:
		return indexNumbers(d, idx, v.I32)
	case typeInt64:
		return indexNumbers(d, idx, v.I64)
	case typeFloat:
		return indexNumbers(d, idx, v.F32)
	case typeDouble:
		return indexNumbers(d, idx, v.F64)
	case typeBytes:
		return indexBytes(d, idx, v.Data, v.Ends)
	case typeFixed:
		n := l.Fixed
		for i := 0; i < len(v.Data); i += n {
			idx = append(idx, d.addBytes(v.Data[i:i+n]))
			if d.full() {
				return idx, false
			}
		}
		return idx, true
	}
	return idx, false
}

// appendIndexes appends dictionary numbers as the values of a page. Widths of five to seven bits become eight, and those
// between a byte and two become 16 where wide is set: entropy coding finds bytes, not bits.
func appendIndexes(dst []byte, idx []uint32, wide bool) []byte {
	width := indexWidth(idx, wide)
	return appendHybrid(append(dst, byte(width)), idx, width)
}

func indexWidth(idx []uint32, wide bool) int {
	top := uint32(0)
	for _, x := range idx {
		top |= x
	}
	width := max(bits.Len32(top), 1)
	if wide && width > 4 {
		width = (width + 7) &^ 7
	}
	return width
}

// repeats says whether the values are the first p again and again.
func (v *Values) repeats(l *Leaf, p int) bool {
	switch l.physical() {
	case typeInt32:
		return shifted(memory(v.I32), 4*p)
	case typeInt64:
		return shifted(memory(v.I64), 8*p)
	case typeFloat:
		return shifted(memory(v.F32), 4*p)
	case typeDouble:
		return shifted(memory(v.F64), 8*p)
	case typeFixed:
		return l.Fixed*p <= maxDictBytes/4 && shifted(v.Data, l.Fixed*p)
	case typeBytes:
		n := len(v.Ends)
		if n < p {
			return false
		}
		size := v.Ends[p-1]
		if uint64(size)*uint64(n) != uint64(v.Ends[n-1])*uint64(p) || size > maxDictBytes/4 || !shifted(v.Data, int(size)) {
			return false
		}
		for i, e := range v.Ends[p:] {
			if e-v.Ends[i] != size {
				return false
			}
		}
		return true
	}
	return false
}

// shifted says whether b is its first n bytes again and again.
func shifted(b []byte, n int) bool {
	return len(b) >= n && string(b[n:]) == string(b[:len(b)-n])
}

// appendRepeated appends n dictionary numbers, which are those in idx again and again, as the values of a page. It returns
// its scratch too.
func appendRepeated(dst []byte, idx []uint32, n int, wide bool, scratch []uint32) ([]byte, []uint32) {
	width := indexWidth(idx, wide)
	if len(idx) == 1 {
		dst = binary.AppendUvarint(append(dst, byte(width)), uint64(n)<<1)
		for b := 0; b < width; b += 8 {
			dst = append(dst, byte(idx[0]>>b))
		}
		return dst, scratch
	}
	if n < 64 {
		all := scratch[:0]
		for i := range n {
			all = append(all, idx[i%len(idx)])
		}
		return appendIndexes(dst, all, wide), all
	}
	dst = binary.AppendUvarint(append(dst, byte(width)), uint64((n+7)/8)<<1|1)
	eight := scratch[:0] // is a whole number of bytes
	for range 8 {
		eight = append(eight, idx...)
	}
	at := len(dst)
	dst = appendPacked(dst, eight, len(eight), width)
	block := len(dst) - at
	times := n / len(eight)
	for range times - 1 {
		dst = append(dst, dst[at:at+block]...)
	}
	if times == 0 {
		dst = dst[:at]
	}
	rest := n % len(eight)
	return appendPacked(dst, eight[:rest], (rest+7)/8*8, width), eight
}
