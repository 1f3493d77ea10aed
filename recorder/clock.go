package recorder

import (
	"sync"
	"time"

	"github.com/gobag/gobag/bag"
)

const (
	clockPeriod  = 50 * time.Millisecond  // between two looks at the clocks
	clockStep    = 100 * time.Millisecond // a jump above this is written down
	clockSpread  = 20 * time.Millisecond  // a look that took longer says nothing
	maxClockKept = 1000                   // steps kept in the bag
)

// clockWatch compares the wall clock with the monotonic one. Slewing disappears in the comparison of neighbouring looks;
// a jump shows. Safe for concurrent use.
type clockWatch struct {
	wall  func() int64 // ns since the Unix epoch
	start time.Time    // carries the monotonic clock

	mu     sync.Mutex
	offset int64 // wall minus monotonic at the last look, ns
	steps  []bag.ClockStep
	count  int
}

func newClockWatch(wall func() int64, start time.Time) *clockWatch {
	return &clockWatch{wall: wall, start: start, offset: wall() - int64(time.Since(start))}
}

// look reads both clocks and reports a step of the wall clock since the last look.
func (c *clockWatch) look() (bag.ClockStep, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mono, wall, ok := c.read()
	if !ok {
		return bag.ClockStep{}, false
	}
	offset := wall - int64(mono)
	jump := offset - c.offset
	step := bag.ClockStep{Monotonic: mono, Before: c.offset + int64(mono), After: wall}
	c.offset = offset
	if -int64(clockStep) <= jump && jump <= int64(clockStep) {
		return bag.ClockStep{}, false
	}
	c.count++
	if len(c.steps) < maxClockKept {
		c.steps = append(c.steps, step)
	}
	return step, true
}

// read reads the wall clock between two readings of the monotonic one, again when the process was interrupted between
// them: a pause there would look like a step.
func (c *clockWatch) read() (mono time.Duration, wall int64, ok bool) {
	for range 3 {
		before := time.Since(c.start)
		wall = c.wall()
		after := time.Since(c.start)
		if after-before <= clockSpread {
			return before + (after-before)/2, wall, true
		}
	}
	return 0, 0, false
}

// all returns the steps seen, oldest first (the first maxClockKept of them).
func (c *clockWatch) all() []bag.ClockStep {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]bag.ClockStep(nil), c.steps...)
}

// total returns how many steps were seen.
func (c *clockWatch) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}
