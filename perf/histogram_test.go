package perf

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var a, b Histogram
	var all []time.Duration
	for i := range 20000 {
		d := time.Duration(r.ExpFloat64() * float64(time.Millisecond) * float64(1+i%7))
		all = append(all, d)
		if i%2 == 0 {
			a.Add(d)
		} else {
			b.Add(d)
		}
	}
	a.Merge(&b)
	slices.Sort(all)
	if a.Count() != 20000 || a.Max() != all[len(all)-1] {
		t.Errorf("count %d, max %v, want %v", a.Count(), a.Max(), all[len(all)-1])
	}
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.9999, 1} {
		want := all[min(int(q*20000), 19999)]
		got := a.Quantile(q)
		if got < want || got > want+want/16+1 {
			t.Errorf("quantile %g: %v, want %v", q, got, want)
		}
	}
}

func TestHistogramEdges(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Max() != 0 {
		t.Error("empty")
	}
	h.Add(-5)
	h.Add(1<<63 - 1)
	if h.Quantile(0) != 0 || h.Quantile(1) != 1<<63-1 {
		t.Errorf("%v %v", h.Quantile(0), h.Quantile(1))
	}
	for i := range 60 * subBuckets { // every bucket's upper end lies in it, and the next value in the next
		u := upper(i)
		if u < 0 {
			break
		}
		if bucket(u) != i || u < 1<<62 && bucket(u+1) != i+1 {
			t.Fatalf("bucket %d: upper %d lands in %d, next in %d", i, u, bucket(u), bucket(u+1))
		}
	}
}
