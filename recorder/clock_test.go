package recorder

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestClockSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var offset time.Duration
		wall := func() int64 { return time.Now().UnixNano() + int64(offset) }
		c := newClockWatch(wall, time.Now())
		look := func(want bool) {
			t.Helper()
			time.Sleep(clockPeriod)
			if _, stepped := c.look(); stepped != want {
				t.Fatalf("stepped %v with offset %v, want %v", stepped, offset, want)
			}
		}
		look(false)
		offset = 99 * time.Millisecond
		look(false)
		for range 100 { // slewing, 10 %
			offset += 5 * time.Millisecond
			look(false)
		}
		steps := []time.Duration{-time.Hour, 50 * 365 * 24 * time.Hour, -101 * time.Millisecond}
		for _, s := range steps {
			offset += s
			look(true)
			look(false)
		}
		all := c.all()
		if len(all) != len(steps) || c.total() != len(steps) {
			t.Fatalf("%d steps, want %d", len(all), len(steps))
		}
		for i, s := range all {
			if got := time.Duration(s.After - s.Before); got != steps[i] {
				t.Errorf("step %d: %v, want %v", i, got, steps[i])
			}
		}
		if got := all[0].Monotonic; got != 103*clockPeriod {
			t.Errorf("first step after %v", got)
		}
	})
}

func TestClockStepsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at int64
		c := newClockWatch(func() int64 { at += int64(time.Hour); return at }, time.Now())
		for range maxClockKept + 10 {
			c.look()
		}
		if len(c.all()) != maxClockKept || c.total() != maxClockKept+10 {
			t.Fatalf("%d kept of %d", len(c.all()), c.total())
		}
	})
}

// A process that is stopped between two readings of the clocks must not see a step.
func TestClockInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stops := 0
		c := newClockWatch(func() int64 {
			now := time.Now().UnixNano()
			if stops > 0 {
				stops--
				time.Sleep(time.Second)
			}
			return now
		}, time.Now())
		for stops = range 5 {
			if step, stepped := c.look(); stepped {
				t.Fatalf("step %v", step)
			}
		}
	})
}

func TestClockExtremes(t *testing.T) {
	for _, wall := range []int64{math.MinInt64, -1, 0, math.MaxInt64} {
		c := newClockWatch(func() int64 { return wall }, time.Now())
		c.look()
	}
}
