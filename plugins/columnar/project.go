package columnar

import (
	"errors"
	"slices"
	"strings"

	"github.com/gobag/gobag/msg/shred"
)

// wanted tells which columns of a type a query looks at; nil all of them.
func (d *decoder) wanted(prog *shred.Program) []bool {
	if d.fields == nil {
		return nil
	}
	keep := make([]bool, len(prog.Columns()))
	for i := range keep {
		name := prog.Columns()[i].Name()
		keep[i] = slices.ContainsFunc(d.fields, func(f string) bool {
			return strings.HasPrefix(name, f) && (len(name) == len(f) || name[len(f)] == '.')
		})
	}
	return keep
}

// errTooMany says that a page group claims more values than payloads could hold.
var errTooMany = errors.New("more values than a page group has")

// fillRest makes the columns and counts that were not read: zeros, empty texts, empty lists. filled tells which lists
// have their counts.
func fillRest(prog *shred.Program, b *shred.Batch, rows int, keep, filled []bool) error {
	const most = maxMessage + groupBytes // elements of a list, and bytes of all that is made
	lists := prog.Lists()
	elements := make([]int, len(lists)) // parents come first
	occurrences := func(list int) int {
		if list < 0 {
			return rows
		}
		return elements[list]
	}
	for i := range lists {
		l := &lists[i]
		n := occurrences(l.Parent)
		switch {
		case l.Fixed > 0:
			elements[i] = n * l.Fixed // n is bounded below, Fixed by 32 bits
		case filled[i]:
			for _, c := range b.Counts[i] {
				elements[i] += int(c)
			}
		default:
			b.Counts[i] = zeros(b.Counts[i], n)
		}
		if elements[i] > most {
			return errTooMany
		}
	}
	left := most
	for i, kept := range keep {
		if kept {
			continue
		}
		c := &prog.Columns()[i]
		n, v := occurrences(c.List), &b.Cols[i]
		if left -= n * max(1, c.Fixed); left < 0 {
			return errTooMany
		}
		switch c.Kind {
		case shred.Bool:
			v.U8 = zeros(v.U8, n)
		case shred.Int64, shred.UInt64, shred.Time, shred.Duration:
			v.I64 = zeros(v.I64, n)
		case shred.Float32:
			v.F32 = zeros(v.F32, n)
		case shred.Float64:
			v.F64 = zeros(v.F64, n)
		case shred.String, shred.WString, shred.Bytes:
			if v.Data = v.Data[:0]; c.Fixed > 0 {
				v.Data = zeros(v.Data, n*c.Fixed)
			} else {
				v.Ends = zeros(v.Ends, n)
			}
		default:
			v.I32 = zeros(v.I32, n)
		}
	}
	return nil
}

// zeros is n zeros in the memory of s.
func zeros[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}
