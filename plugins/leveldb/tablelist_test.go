package leveldb

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Tables that overlap in every way: those that are found are all that reach into the span, in order.
func TestTableList(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		parts := make([]part, 1+rng.IntN(3))
		for i := range parts {
			parts[i].db = &database{}
			for range rng.IntN(8) {
				a, b := int64(rng.IntN(40)), int64(rng.IntN(40))
				parts[i].db.tables = append(parts[i].db.tables, messageTable{first: stamp{min(a, b), 0}, last: stamp{max(a, b), 9}})
			}
		}
		l := arrange(parts)
		a, b := int64(rng.IntN(44)-2), int64(rng.IntN(44)-2)
		from, until := stamp{min(a, b), 0}, stamp{max(a, b), math.MaxUint64}
		for _, reverse := range []bool{false, true} {
			got := l.between(from, until, reverse)
			for i := range parts {
				for k := range parts[i].db.tables {
					m := &parts[i].db.tables[k]
					if m.last.less(from) || until.less(m.first) {
						continue
					}
					if !slices.Contains(got, m) {
						t.Fatalf("%v..%v, reverse %v: table %v..%v is missing", from, until, reverse, m.first, m.last)
					}
				}
			}
			for i := 1; i < len(got); i++ {
				if !reverse && got[i].first.less(got[i-1].first) || reverse && got[i].last.less(got[i-1].last) {
					t.Fatalf("reverse %v: table %d is out of order", reverse, i)
				}
			}
		}
	}
}

// The bound of a key, whole, shortened or lengthened, divides stamps as the bytes of their keys do.
func TestBoundOfKey(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	stamps := []stamp{{math.MinInt64, 0}, {math.MinInt64, 1}, {math.MinInt64 + 1, 0}, {-1, math.MaxUint64}, {0, 0}, {0, 1}, {0, math.MaxUint64}, {1, 0},
		{math.MaxInt64, math.MaxUint64 - 1}, {math.MaxInt64, math.MaxUint64}}
	for range 50 {
		stamps = append(stamps, stamp{int64(rng.Uint64()), rng.Uint64() >> rng.IntN(64)})
	}
	var keys [][]byte
	for _, s := range stamps {
		k := appendMessageKey(nil, s)
		for n := range len(k) {
			short := slices.Clone(k[:n])
			keys = append(keys, short)
			if n > 0 && short[n-1] < 0xff {
				up := slices.Clone(short)
				up[n-1]++
				keys = append(keys, up)
			}
		}
		keys = append(keys, k, append(slices.Clone(k), 0), append(slices.Clone(k), 0xff))
	}
	for _, k := range keys {
		p := boundOfKey(k)
		for _, s := range stamps {
			want := bytes.Compare(k, appendMessageKey(nil, s)) >= 0
			if got := !p.before && !p.less(s); got != want {
				t.Fatalf("key %x, bound %+v: stamp %+v is not above it: %v, want %v", k, p, s, got, want)
			}
		}
	}
}
