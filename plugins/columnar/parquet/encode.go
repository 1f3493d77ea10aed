package parquet

import (
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
	top := uint32(0)
	for _, x := range idx {
		top = max(top, x)
	}
	width := max(bits.Len32(top), 1)
	if wide && width > 4 {
		width = (width + 7) &^ 7
	}
	return appendHybrid(append(dst, byte(width)), idx, width)
}

// constant says whether all values are the same bits.
func constant(l *Leaf, v *Values) bool {
	switch l.physical() {
	case typeInt32:
		return allSame(v.I32)
	case typeInt64:
		return allSame(v.I64)
	case typeFloat:
		return allSame(v.F32)
	case typeDouble:
		return allSame(v.F64)
	case typeBytes:
		n := len(v.Ends)
		if n == 0 || uint64(v.Ends[0])*uint64(n) != uint64(v.Ends[n-1]) || v.Ends[0] > maxDictBytes/4 {
			return false
		}
		return repeats(v.Data, int(v.Ends[0]))
	case typeFixed:
		return len(v.Data) > 0 && l.Fixed <= maxDictBytes/4 && repeats(v.Data, l.Fixed)
	}
	return false
}

func allSame[T int32 | int64 | float32 | float64](v []T) bool {
	if len(v) == 0 {
		return false
	}
	first := word(v[0])
	for _, x := range v {
		if word(x) != first {
			return false
		}
	}
	return true
}

// repeats says whether b is its first n bytes again and again.
func repeats(b []byte, n int) bool {
	return string(b[n:]) == string(b[:len(b)-n])
}
