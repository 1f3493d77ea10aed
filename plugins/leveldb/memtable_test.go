package leveldb

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Entries come into the order of keys, none lost, whether they were a little or wholly out of it.
func TestMemtableSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, late := range []int{1, 2, 20, 100_000} {
		for _, n := range []int{0, 1, 2, 1000} {
			m := memtable{}
			for i := range n {
				m.entries = append(m.entries, memEntry{stamp{int64(i + rng.IntN(late)), uint64(i + 1)}, uint32(i), 1})
			}
			m.sort()
			if !slices.IsSortedFunc(m.entries, func(a, b memEntry) int { return compareStamps(a.stamp, b.stamp) }) {
				t.Fatalf("%d entries up to %d late: not in order", n, late)
			}
			seen := map[uint32]bool{}
			for _, e := range m.entries {
				if seen[e.off] || uint64(e.off)+1 != e.order {
					t.Fatalf("%d entries up to %d late: %+v is there twice or mixed up", n, late, e)
				}
				seen[e.off] = true
			}
		}
	}
}
