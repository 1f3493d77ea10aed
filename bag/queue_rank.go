package bag

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	rateDecay   = 2 * time.Second        // time in which a topic's past weighs 1/e
	rateStep    = 50 * time.Millisecond  // bytes that come within this are added without decaying
	rankingLife = 100 * time.Millisecond // who gives way is decided anew after this
)

// rate is a decaying count of bytes; divided by rateDecay it is the bandwidth in bytes per second.
type rate struct {
	bytes float64
	at    time.Duration // of the last decay
}

func (r *rate) add(now time.Duration, n int) {
	if now-r.at >= rateStep {
		r.decay(now)
	}
	r.bytes += float64(n)
}

func (r *rate) decay(now time.Duration) {
	if dt := now - r.at; dt > 0 {
		r.bytes *= math.Exp(-float64(dt) / float64(rateDecay))
		r.at = now
	}
}

// rank orders the topics by who gives way first, those that never do last. q.mu is held.
func (q *Queue) rank(now time.Duration) {
	if !q.stale && now-q.ranked < rankingLife {
		return
	}
	q.ranked, q.stale = now, false
	for _, t := range q.ranking {
		t.rate.decay(now)
	}
	q.givers = 0
	for _, t := range q.ranking {
		if !t.held {
			q.givers++
		}
	}
	slices.SortStableFunc(q.ranking, func(a, b *QueueTopic) int {
		if a.held != b.held {
			if b.held {
				return -1
			}
			return 1
		}
		if c := cmp.Compare(a.priority, b.priority); c != 0 {
			return c
		}
		return cmp.Compare(b.rate.bytes, a.rate.bytes)
	})
	for i, t := range q.ranking {
		t.rank = i
	}
}

// makeRoom evicts queued messages of topics that give way before e's topic until e fits, and puts them into evicted. It
// evicts nothing and reports false when that would not be enough. q.mu is held.
func (q *Queue) makeRoom(e *Entry, now time.Duration, evicted **node) bool {
	cost := int64(e.Cost)
	need := q.bytes + cost - q.o.MaxBytes // what has to go, of any size
	needBig := int64(0)                   // what has to go of big messages
	if !q.isSmall(e) {
		needBig = q.bytes - q.small + cost - q.bigLimit
		if cost > q.bigLimit {
			return false
		}
	}
	if max(need, needBig) > q.queued {
		return false
	}
	q.rank(now)
	first := q.ranking[:min(e.Topic.rank, q.givers)]
	var big, all int64
	for _, t := range first {
		big += t.big.bytes
		all += t.big.bytes + t.small.bytes
	}
	if needBig > big || need > all {
		return false
	}
	before := q.bytes
	for _, t := range first {
		for t.big.newest != nil && before-q.bytes < needBig {
			q.evict(&t.big, evicted)
		}
	}
	for _, t := range first {
		for t.big.newest != nil && before-q.bytes < need {
			q.evict(&t.big, evicted)
		}
		for t.small.newest != nil && before-q.bytes < need {
			q.evict(&t.small, evicted)
		}
	}
	return true
}
