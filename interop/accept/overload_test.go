//go:build linux

package main

import (
	"testing"
	"time"
)

func TestSlowerByChance(t *testing.T) {
	d := func(ms ...float64) (ds []time.Duration) {
		for _, m := range ms {
			ds = append(ds, time.Duration(m*float64(time.Millisecond)))
		}
		return ds
	}
	for _, c := range []struct {
		name         string
		ours, theirs []time.Duration
		low, high    float64
	}{
		{"apart", d(6, 7, 8, 9, 10), d(1, 2, 3, 4, 5), 1. / 252, 1. / 252}, // one deal of 252
		{"one overlaps", d(4.5, 7, 8, 9, 10), d(1, 2, 3, 4, 5), 2. / 252, 2. / 252},
		{"same spread", d(1, 3, 5, 7, 9), d(2, 4, 6, 8, 10), 0.5, 0.75},
		{"faster", d(1, 2, 3, 4, 5), d(6, 7, 8, 9, 10), 1, 1},
		{"too few", d(1, 2), d(3, 4), 0, 0},
	} {
		if p := slowerByChance(c.ours, c.theirs); p < c.low-1e-9 || p > c.high+1e-9 {
			t.Errorf("%s: %v, want %v to %v", c.name, p, c.low, c.high)
		}
	}
}
