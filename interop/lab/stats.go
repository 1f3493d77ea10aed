//go:build linux

package lab

import (
	"cmp"
	"slices"
)

// Quantile returns the q-quantile (0…1) of values, nearest rank; the zero value where there are none.
func Quantile[T cmp.Ordered](values []T, q float64) T {
	var zero T
	if len(values) == 0 {
		return zero
	}
	v := Sorted(values)
	return v[int(q*float64(len(v)-1)+0.5)]
}

// Sorted returns a sorted copy.
func Sorted[T cmp.Ordered](values []T) []T {
	v := slices.Clone(values)
	slices.Sort(v)
	return v
}
