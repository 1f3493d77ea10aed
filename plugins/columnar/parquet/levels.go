package parquet

import (
	"errors"
	"fmt"
	"math/bits"
)

// levels are the repetition and definition levels of a list's elements for the rows of a page. All leaves of a list
// share them: since every field is required, both only say where lists begin and end.
type levels struct {
	rep, def []uint8
	encoded  []byte   // both as a page of version 1 begins with them
	elements int      // values there are: levels with the largest definition
	period   int      // elements of every row, where all rows have as many, at all depths; else 0
	shape    []uint32 // what was built last: rows and element counts, outermost first; only with a period
	chain    []occurrences
}

// occurrences are the element counts of a list that are still to come.
type occurrences struct {
	counts []uint32
	fixed  uint32
}

// build makes the levels of list number l from the element counts of all lists.
func (v *levels) build(lists []List, l int, counts [][]uint32, rows int) error {
	depth := lists[l].Depth
	v.chain = grown(v.chain, depth)
	for i := l; i >= 0; i = lists[i].Parent {
		v.chain[lists[i].Depth-1] = occurrences{counts[i], uint32(lists[i].Count)}
	}
	if v.same(rows) {
		return nil
	}
	v.rep, v.def, v.elements = v.rep[:0], v.def[:0], 0
	for range rows {
		if !v.row(v.chain, 0, 0) {
			return fmt.Errorf("list %s has fewer counts than occurrences", lists[l].Name)
		}
	}
	for _, c := range v.chain {
		if len(c.counts) != 0 {
			return fmt.Errorf("list %s has more counts than occurrences", lists[l].Name)
		}
	}
	width := bits.Len(uint(depth))
	v.encoded = v.encoded[:0]
	for _, s := range [][]uint8{v.rep, v.def} {
		at := len(v.encoded)
		v.encoded = appendHybrid(append(v.encoded, 0, 0, 0, 0), s, width)
		le.PutUint32(v.encoded[at:], uint32(len(v.encoded)-at-4))
	}
	return nil
}

// same finds the period, and says whether the levels are those that were built last.
func (v *levels) same(rows int) bool {
	occurrences, period := rows, 1
	same := len(v.shape) == 1+len(v.chain) && v.shape[0] == uint32(rows)
	shape := append(v.shape[:0], uint32(rows))
	for _, c := range v.chain {
		n := c.fixed
		if n == 0 {
			if len(c.counts) != occurrences || occurrences == 0 || !constantCounts(c.counts) || c.counts[0] == 0 {
				v.period, v.shape = 0, v.shape[:0]
				return false
			}
			n = c.counts[0]
		}
		same = same && v.shape[len(shape)] == n
		shape = append(shape, n)
		occurrences *= int(n)
		period *= int(n)
	}
	v.period, v.shape = period, shape
	return same
}

func constantCounts(c []uint32) bool {
	for _, n := range c {
		if n != c[0] {
			return false
		}
	}
	return true
}

// row appends the levels of one occurrence of the list at depth d of the chain, which begins with the repetition level r.
func (v *levels) row(chain []occurrences, d int, r uint8) bool {
	n := chain[d].fixed
	if n == 0 {
		c := chain[d].counts
		if len(c) == 0 {
			return false
		}
		n, chain[d].counts = c[0], c[1:]
	}
	if n == 0 {
		v.rep, v.def = append(v.rep, r), append(v.def, uint8(d))
		return true
	}
	inner := uint8(d + 1)
	if d == len(chain)-1 {
		v.rep, v.def = append(v.rep, r), append(v.def, inner)
		for range n - 1 {
			v.rep, v.def = append(v.rep, inner), append(v.def, inner)
		}
		v.elements += int(n)
		return true
	}
	for range n {
		if !v.row(chain, d+1, r) {
			return false
		}
		r = inner
	}
	return true
}

// counts turns levels into the element counts of the list at depth d (from 1 on), appended to out.
func (v *levels) counts(out []uint32, d uint8) ([]uint32, error) {
	for i, r := range v.rep {
		def := v.def[i]
		switch {
		case def < d-1: // an outer list is empty here
			if r >= d {
				return out, errors.New("levels contradict each other")
			}
		case r < d: // an occurrence of the list begins
			n := uint32(1)
			if def < d {
				n = 0
			}
			out = append(out, n)
		case r == d: // its next element
			if len(out) == 0 || def < d {
				return out, errors.New("levels contradict each other")
			}
			out[len(out)-1]++
		default: // inside an element
			if len(out) == 0 {
				return out, errors.New("levels contradict each other")
			}
		}
	}
	return out, nil
}

// cutLevels reads the levels of n values from the beginning of a page.
func (v *levels) cut(b []byte, n, depth int) ([]byte, error) {
	width := bits.Len(uint(depth))
	v.rep, v.def, v.elements = grown(v.rep, n), grown(v.def, n), 0
	for _, s := range [][]uint8{v.rep, v.def} {
		if len(b) < 4 || uint64(le.Uint32(b)) > uint64(len(b)-4) {
			return nil, errShort
		}
		size := int(le.Uint32(b))
		rest, err := cutHybrid(b[4:4+size], s, width)
		if err != nil {
			return nil, fmt.Errorf("levels: %w", err)
		}
		if len(rest) > 0 {
			return nil, errors.New("levels: bytes too many")
		}
		for _, x := range s {
			if int(x) > depth {
				return nil, errors.New("levels: too large")
			}
		}
		b = b[4+size:]
	}
	for _, x := range v.def {
		if int(x) == depth {
			v.elements++
		}
	}
	return b, nil
}

// grown returns s with length n; its values are whatever was there.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
