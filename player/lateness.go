package player

import (
	"math/bits"
	"sync"
	"time"
)

// lateAfter is how much later than due a message must be sent to count as late.
const lateAfter = time.Millisecond

// Lateness says how much later than due messages were sent, over all that had a due time. Quantiles are exact to 3 %.
type Lateness struct {
	Count         uint64 // messages measured
	Late          uint64 // of them more than 1 ms late
	P50, P99, Max time.Duration
}

// histogram counts durations in buckets that grow by a 32nd of a power of two: quantiles in constant memory, for any
// number of messages. Safe for concurrent use.
type histogram struct {
	mu      sync.Mutex
	buckets [59 * subBuckets]uint64
	count   uint64
	late    uint64
	max     time.Duration
}

const (
	subBits    = 5
	subBuckets = 1 << subBits
)

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buckets[bucket(uint64(d))]++
	h.count++
	h.max = max(h.max, d)
	if d > lateAfter {
		h.late++
	}
}

func (h *histogram) summary() Lateness {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Lateness{Count: h.count, Late: h.late, P50: h.quantile(0.5), P99: h.quantile(0.99), Max: h.max}
}

// quantile returns the upper end of the bucket that holds the q-th part of the durations.
func (h *histogram) quantile(q float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	rank := uint64(q * float64(h.count))
	var seen uint64
	for i, n := range h.buckets {
		if seen += n; seen > rank {
			return min(time.Duration(upper(i)), h.max)
		}
	}
	return h.max
}

// bucket returns the bucket of v: below 32 one per value, above 32 per power of two.
func bucket(v uint64) int {
	if v < subBuckets {
		return int(v)
	}
	shift := bits.Len64(v) - subBits - 1
	return (shift+1)*subBuckets + int(v>>shift) - subBuckets
}

// upper returns the largest value of a bucket.
func upper(i int) uint64 {
	if i < subBuckets {
		return uint64(i)
	}
	shift := i/subBuckets - 1
	return uint64(i%subBuckets+subBuckets+1)<<shift - 1
}
