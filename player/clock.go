package player

import (
	"math"
	"sync"
	"time"
)

// clock maps bag time to the monotonic clock: due(stamp) = reference time + (stamp - reference stamp) / rate. Every
// change of rate, pause or position sets a new reference pair; nothing else moves it. Safe for concurrent use.
type clock struct {
	mu      sync.Mutex
	rate    float64
	paused  bool
	refBag  int64     // bag stamp at ref, ns
	ref     time.Time // carries the monotonic clock; meaningless while paused
	changed chan struct{}
}

func newClock(rate float64, paused bool) *clock {
	return &clock{rate: rate, paused: paused, ref: time.Now(), changed: make(chan struct{})}
}

// due returns when a stamp is due. While paused it never is. The channel is closed when the answer changes.
func (c *clock) due(stamp int64) (at time.Time, paused bool, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ref.Add(scale(sub(stamp, c.refBag), c.rate)), c.paused, c.changed
}

// now returns the bag time.
func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nowLocked()
}

func (c *clock) nowLocked() int64 {
	if c.paused {
		return c.refBag
	}
	passed := float64(time.Since(c.ref)) * c.rate
	return add(c.refBag, int64(min(passed, float64(farAway))))
}

// jump sets the bag time.
func (c *clock) jump(stamp int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(stamp)
}

// setPaused stops or starts the bag time and reports whether that was a change.
func (c *clock) setPaused(paused bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused == paused {
		return false
	}
	now := c.nowLocked()
	c.paused = paused
	c.set(now)
	return true
}

func (c *clock) isPaused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused
}

func (c *clock) setRate(rate float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.nowLocked()
	c.rate = rate
	c.set(now)
}

func (c *clock) getRate() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rate
}

func (c *clock) set(stamp int64) {
	c.refBag, c.ref = stamp, time.Now()
	close(c.changed)
	c.changed = make(chan struct{})
}

// farAway is the longest wait that is told apart from a longer one: 100 years, ns. Stamps may be anything.
const farAway = 100 * 365 * 24 * int64(time.Hour)

// scale divides a span of bag time by the rate.
func scale(span int64, rate float64) time.Duration {
	d := float64(span) / rate
	return time.Duration(math.Max(-float64(farAway), math.Min(d, float64(farAway))))
}

// sub is a - b, held at the ends of int64.
func sub(a, b int64) int64 {
	d := a - b
	switch {
	case b < 0 && d < a:
		return math.MaxInt64
	case b > 0 && d > a:
		return math.MinInt64
	}
	return d
}

// add is a + b, held at the ends of int64.
func add(a, b int64) int64 {
	s := a + b
	switch {
	case b > 0 && s < a:
		return math.MaxInt64
	case b < 0 && s > a:
		return math.MinInt64
	}
	return s
}
