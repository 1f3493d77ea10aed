package recorder

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/ros"
)

// Marks of a queued message (bag.Entry.Mark).
const (
	markRecord uint8 = iota // it is to be recorded
	markSkip                // it came while the recording paused, or before the first /clock
)

// gate decides for every sample, on the receive goroutines, whether it is to be recorded and with which stamp.
type gate struct {
	paused atomic.Bool
	sim    *simClock // nil: stamps are those of the wall clock
}

// pass returns the mark and the stamp of a sample.
func (g *gate) pass(recvTime int64) (mark uint8, stamp int64) {
	if g.sim != nil {
		if recvTime = g.sim.now.Load(); recvTime == noSimTime {
			return markSkip, 0
		}
	}
	if g.paused.Load() {
		return markSkip, recvTime
	}
	return markRecord, recvTime
}

// Pause stops recording: what comes is received and counted as skipped. Calling it again does nothing.
func (r *Recorder) Pause() {
	if !r.gate.paused.Swap(true) {
		r.emit(EventPaused, slog.LevelInfo, "", "Pausing recording.")
	}
}

// Resume goes on recording. The last messages of latched topics that came while it paused are recorded first, since nobody
// will publish them again. Calling it again does nothing.
func (r *Recorder) Resume() {
	if r.gate.paused.Swap(false) {
		r.emit(EventResumed, slog.LevelInfo, "", "Resuming recording.")
	}
}

// Toggle pauses or resumes and reports whether the recording is paused now.
func (r *Recorder) Toggle() bool {
	if r.Paused() {
		r.Resume()
	} else {
		r.Pause()
	}
	return r.Paused()
}

// Paused says whether the recording is paused.
func (r *Recorder) Paused() bool { return r.gate.paused.Load() }

// The topic of simulated time.
const (
	clockTopic = "/clock"
	clockType  = "rosgraph_msgs/msg/Clock"
	noSimTime  = -1 << 63
)

// simClock follows /clock.
type simClock struct {
	now     atomic.Int64 // noSimTime before the first message
	start   time.Time    // of the recording
	stepped func(bag.ClockStep, bool)

	mu    sync.Mutex
	jumps []bag.ClockStep
}

// take is the handler of /clock. A jump backwards is handed to stepped, and so is the first message, with first set.
func (c *simClock) take(s ros.Sample) {
	d, err := cdr.NewDecoder(s.Data)
	var now int64
	if err == nil {
		now = int64(d.Int32())*int64(time.Second) + int64(d.Uint32())
		err = d.Err()
	}
	s.Release()
	if err != nil {
		return
	}
	before := c.now.Swap(now)
	switch {
	case before == noSimTime:
		c.stepped(bag.ClockStep{After: now}, true)
	case now < before:
		step := bag.ClockStep{Monotonic: time.Since(c.start), Before: before, After: now}
		c.mu.Lock()
		if len(c.jumps) < maxClockKept {
			c.jumps = append(c.jumps, step)
		}
		c.mu.Unlock()
		c.stepped(step, false)
	}
}

func (c *simClock) all() []bag.ClockStep {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]bag.ClockStep(nil), c.jumps...)
}

// followClock subscribes to /clock. The subscription is beside one that records the topic.
func (r *Recorder) followClock() error {
	if !r.o.UseSimTime {
		return nil
	}
	q := ros.BestAvailableQoS()
	q.History, q.Depth = ros.KeepLast, 1
	sub, err := r.o.Node.Subscribe(ros.Topic{Name: clockTopic, Type: clockType}, q, r.gate.sim.take)
	if err != nil {
		return fmt.Errorf("simulated time: %w", err)
	}
	r.clockSub = sub
	r.emit(EventOther, slog.LevelInfo, "", "Waiting for /clock before recording.")
	return nil
}

// simStepped runs on a receive goroutine.
func (r *Recorder) simStepped(step bag.ClockStep, first bool) {
	if first {
		r.emit(EventOther, slog.LevelInfo, "", fmt.Sprintf("/clock is there, at %s", simText(step.After)))
		return
	}
	r.simJumped.Store(true)
	r.emit(EventClockStep, slog.LevelWarn, clockTopic, fmt.Sprintf("/clock went backwards, from %s to %s: stamps of the bag do too",
		simText(step.Before), simText(step.After)))
}

func simText(ns int64) string {
	return fmt.Sprintf("%.3f s", float64(ns)/1e9)
}
