package recorder

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/gobag/gobag/bag"
)

// flow measures how evenly the recorded messages of a topic came, by their receive stamps. The writer goroutine adds, any
// goroutine reads.
type flow struct {
	mu    sync.Mutex
	count uint64 // messages
	last  int64
	n     uint64  // intervals
	mean  float64 // of the intervals, ns
	m2    float64 // sum of squared deviations (Welford)
	gap   int64
	gapAt int64
}

// add takes the stamps of messages in the order of recording. A stamp before the one of the message before, as after a step
// of the wall clock, begins anew.
func (f *flow) add(stamp int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count++; f.count == 1 || stamp < f.last {
		f.last = stamp
		return
	}
	d := stamp - f.last
	if d > f.gap {
		f.gap, f.gapAt = d, f.last
	}
	f.last = stamp
	f.n++
	delta := float64(d) - f.mean
	f.mean += delta / float64(f.n)
	f.m2 += delta * (float64(d) - f.mean)
}

// fill puts the figures into a ledger.
func (f *flow) fill(l *bag.TopicLedger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == 0 {
		return
	}
	l.Gap, l.GapAt = f.gap, f.gapAt
	if f.mean > 0 {
		l.Rate = math.Round(1e9/f.mean*1e3) / 1e3
	}
	if f.n > 1 {
		l.Jitter = int64(math.Sqrt(f.m2 / float64(f.n)))
	}
}

// reset begins anew, for the next bag.
func (f *flow) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count, f.last, f.n, f.mean, f.m2, f.gap, f.gapAt = 0, 0, 0, 0, 0, 0, 0
}

// maxOverloads bounds the history of overloads.
const maxOverloads = 1000

// overloads is the history of times in which the queue dropped messages.
type overloads struct {
	mu  sync.Mutex
	all []bag.Overload
}

// note is called once every watchPeriod with what was dropped since the last call.
func (o *overloads) note(now time.Duration, dropped uint64, worst string) {
	if dropped == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	from := max(0, now-watchPeriod)
	if n := len(o.all); n > 0 && (from-o.all[n-1].To < watchPeriod || n == maxOverloads) {
		last := &o.all[n-1]
		last.To, last.Dropped, last.Worst = now, last.Dropped+dropped, worst
		return
	}
	o.all = append(o.all, bag.Overload{From: from, To: now, Dropped: dropped, Worst: worst})
}

func (o *overloads) list() []bag.Overload {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.all)
}
