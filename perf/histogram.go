package perf

import (
	"math/bits"
	"time"
)

// subBuckets is the number of buckets per power of two: quantiles are exact to 1/16 of their value.
const subBuckets = 16

// Histogram counts durations in buckets of about 6 % width. The zero value is ready; memory is constant. Not safe for
// concurrent use; merge the histograms of several goroutines.
type Histogram struct {
	counts [60 * subBuckets]uint64
	n      uint64
	max    time.Duration
}

func bucket(d time.Duration) int {
	u := uint64(max(d, 0))
	if u < subBuckets {
		return int(u)
	}
	exp := bits.Len64(u) - 5 // u>>exp is in [16, 32)
	return (exp+1)*subBuckets + int(u>>exp) - subBuckets
}

// upper is the largest duration that falls into bucket i.
func upper(i int) time.Duration {
	if i < subBuckets {
		return time.Duration(i)
	}
	exp := i/subBuckets - 1
	return time.Duration((uint64(i%subBuckets)+subBuckets+1)<<exp - 1)
}

// Add counts one duration; a negative one counts as 0.
func (h *Histogram) Add(d time.Duration) { h.addN(d, 1) }

// addN counts n equal durations.
func (h *Histogram) addN(d time.Duration, n uint64) {
	h.counts[bucket(d)] += n
	h.n += n
	h.max = max(h.max, d)
}

// Merge adds the counts of o.
func (h *Histogram) Merge(o *Histogram) {
	for i, c := range o.counts {
		h.counts[i] += c
	}
	h.n += o.n
	h.max = max(h.max, o.max)
}

// Count is the number of durations.
func (h *Histogram) Count() uint64 { return h.n }

// Max is the longest duration, exactly.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile is a duration that the share q (0..1) of all does not exceed, to 1/16 of its value; 0 without durations.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := uint64(q * float64(h.n))
	var seen uint64
	for i, c := range h.counts {
		seen += c
		if seen > rank || seen == h.n {
			return min(upper(i), h.max)
		}
	}
	return h.max
}
