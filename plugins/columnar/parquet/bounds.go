package parquet

import (
	"bytes"
	"math"
)

// maxBound is the longest string that is kept as a bound.
const maxBound = 64

// bounds are the least and the largest value of a page or column, as PLAIN has them without a length. There are none
// where a NaN is among the values: readers that order NaNs would skip it.
type bounds struct {
	min, max []byte
	known    bool
	none     bool // there are no values
}

// boundsOf looks through the values of a page. -0 and +0 count as equal, and a zero that is a bound is written as the
// specification asks: -0 as the least, +0 as the largest.
func boundsOf(l *Leaf, v *Values) bounds {
	if v.Len(l) == 0 {
		return bounds{none: true}
	}
	switch l.physical() {
	case typeBoolean:
		lo, hi := v.U8[0], v.U8[0]
		for _, x := range v.U8 {
			lo, hi = min(lo, x), max(hi, x)
		}
		return bounds{min: []byte{lo}, max: []byte{hi}, known: true}
	case typeInt32:
		lo, hi := v.I32[0], v.I32[0]
		if l.Kind == UInt32 {
			const flip = math.MinInt32
			lo, hi = lo^flip, hi^flip
			for _, x := range v.I32 {
				lo, hi = min(lo, x^flip), max(hi, x^flip)
			}
			lo, hi = lo^flip, hi^flip
		} else {
			for _, x := range v.I32 {
				lo, hi = min(lo, x), max(hi, x)
			}
		}
		b := le.AppendUint32(le.AppendUint32(make([]byte, 0, 8), uint32(lo)), uint32(hi))
		return bounds{min: b[:4:4], max: b[4:], known: true}
	case typeInt64:
		lo, hi := v.I64[0], v.I64[0]
		if l.Kind == UInt64 {
			const flip = math.MinInt64
			lo, hi = lo^flip, hi^flip
			for _, x := range v.I64 {
				lo, hi = min(lo, x^flip), max(hi, x^flip)
			}
			lo, hi = lo^flip, hi^flip
		} else {
			for _, x := range v.I64 {
				lo, hi = min(lo, x), max(hi, x)
			}
		}
		b := le.AppendUint64(le.AppendUint64(make([]byte, 0, 16), uint64(lo)), uint64(hi))
		return bounds{min: b[:8:8], max: b[8:], known: true}
	case typeFloat:
		lo, hi, ok := floatBounds(v.F32)
		b := le.AppendUint32(le.AppendUint32(make([]byte, 0, 8), math.Float32bits(lo)), math.Float32bits(hi))
		return bounds{min: b[:4:4], max: b[4:], known: ok}
	case typeDouble:
		lo, hi, ok := floatBounds(v.F64)
		b := le.AppendUint64(le.AppendUint64(make([]byte, 0, 16), math.Float64bits(lo)), math.Float64bits(hi))
		return bounds{min: b[:8:8], max: b[8:], known: ok}
	}
	if l.Kind != String {
		return bounds{}
	}
	lo, hi := v.At(0), v.At(0)
	for i := 1; i < len(v.Ends); i++ {
		s := v.At(i)
		if bytes.Compare(s, lo) < 0 {
			lo = s
		} else if bytes.Compare(s, hi) > 0 {
			hi = s
		}
	}
	if len(lo) > maxBound || len(hi) > maxBound {
		return bounds{}
	}
	b := append(append(make([]byte, 0, len(lo)+len(hi)), lo...), hi...)
	return bounds{min: b[:len(lo):len(lo)], max: b[len(lo):], known: true}
}

// floatBounds returns false if there is a NaN.
func floatBounds[T float32 | float64](v []T) (lo, hi T, ok bool) {
	lo, hi = v[0], v[0]
	nan := false
	for _, x := range v {
		if x < lo {
			lo = x
		}
		if x > hi {
			hi = x
		}
		nan = nan || x != x
	}
	if lo == 0 {
		lo = T(math.Copysign(0, -1))
	}
	if hi == 0 {
		hi = 0
	}
	return lo, hi, !nan
}

// widen makes b the bounds of a column by those of one more page.
func (b *bounds) widen(l *Leaf, page bounds) {
	switch {
	case page.none:
	case b.none:
		*b = page
	case !b.known || !page.known:
		*b = bounds{}
	default:
		if less(l, page.min, b.min) {
			b.min = page.min
		}
		if less(l, b.max, page.max) {
			b.max = page.max
		}
	}
}

// less compares two bounds in the order of the column.
func less(l *Leaf, a, b []byte) bool {
	switch l.physical() {
	case typeInt32:
		if l.Kind == UInt32 {
			return le.Uint32(a) < le.Uint32(b)
		}
		return int32(le.Uint32(a)) < int32(le.Uint32(b))
	case typeInt64:
		if l.Kind == UInt64 {
			return le.Uint64(a) < le.Uint64(b)
		}
		return int64(le.Uint64(a)) < int64(le.Uint64(b))
	case typeFloat:
		return math.Float32frombits(le.Uint32(a)) < math.Float32frombits(le.Uint32(b))
	case typeDouble:
		return math.Float64frombits(le.Uint64(a)) < math.Float64frombits(le.Uint64(b))
	}
	return bytes.Compare(a, b) < 0
}
