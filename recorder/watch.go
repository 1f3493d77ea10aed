package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gobag/gobag/bag"
)

const (
	watchPeriod  = time.Second     // between two looks at counters and disk
	missingAfter = 5 * time.Second // what has not come by then is named
	stallAfter   = 3 * time.Second // a call into the storage that takes longer is reported
)

// watch looks at losses, rates and the storage every second until ctx ends.
func (r *Recorder) watch(ctx context.Context) {
	tick := time.NewTicker(watchPeriod)
	defer tick.Stop()
	last := r.start
	var lost lossReport
	missingSaid, stalled := false, false
	var dog watchdog
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		r.sample(now.Sub(last))
		last = now
		sums := r.sum()
		lost.report(r, sums)
		if !missingSaid && now.Sub(r.start) >= missingAfter {
			missingSaid = true
			r.reportMissing()
		}
		stalled = r.reportStall(stalled)
		dog.look(r, sums, now)
	}
}

// watchdog notices that messages come and nothing of them goes anywhere.
type watchdog struct {
	done  uint64    // messages that the writer goroutine was through with, at the last look that found progress
	since time.Time // of that look
	bit   bool
}

func (d *watchdog) look(r *Recorder, sums totals, now time.Time) {
	done := sums.recorded + sums.skipped + sums.storage
	if r.o.SnapshotMode && r.bag.Load() == nil { // nothing is being written
		done = sums.received
	}
	waiting := r.queue.Stats().Len > 0 || r.busy.time() > 0
	if done != d.done || !waiting || d.since.IsZero() {
		if d.bit {
			d.bit = false
			r.emit(EventStorage, slog.LevelInfo, "", "messages reach the storage again")
		}
		d.done, d.since = done, now
		return
	}
	if r.o.Watchdog > 0 && !d.bit && now.Sub(d.since) >= r.o.Watchdog {
		d.bit = true
		r.stalled.Store(true)
		r.emit(EventStorage, slog.LevelError, "", fmt.Sprintf("messages come but nothing has reached the storage for %s; what does not fit into memory is lost and counted", seconds(now.Sub(d.since))))
	}
}

// silentAtOnce is how many topics on which nothing comes are looked at in one round; of more than that, others in the next.
const silentAtOnce = 100

// sample reads the transport's counts and measures rates.
func (r *Recorder) sample(elapsed time.Duration) {
	topics := r.allTopics()
	shards := 1 + len(topics)/silentAtOnce
	r.rounds++
	for i, t := range topics {
		received := t.received.Load()
		if received != t.sampled || !t.looked || (r.rounds+i)%shards == 0 {
			r.sampleWire(t)
		}
		t.sampled, t.looked = received, true
		t.rates.update(received, t.bytes.Load(), elapsed)
	}
}

// sampleWire takes over the transport's counts of one topic and warns about publishers that cannot be received.
func (r *Recorder) sampleWire(t *topic) {
	sub := t.subscription()
	if sub == nil {
		return
	}
	for _, m := range t.wire.update(sub.Stats()) {
		hint := ""
		if _, overridden := r.o.QoSOverrides[t.name]; overridden {
			hint = "; the QoS override of the topic asks for more than is offered"
		}
		r.emit(EventQoS, slog.LevelWarn, t.name,
			fmt.Sprintf("publisher %s of topic '%s' cannot be received: %s%s", m.ID, t.name, m.Reason, hint))
	}
}

// reportMissing names what has not come after missingAfter.
func (r *Recorder) reportMissing() {
	if missing := r.missing(); len(missing) > 0 {
		r.emit(EventMissing, slog.LevelWarn, "", r.missingText(missing, r.o.Node.Graph().Topics()))
		return
	}
	var received uint64
	for _, t := range r.allTopics() {
		received += t.received.Load()
	}
	if received == 0 {
		r.emit(EventMissing, slog.LevelWarn, "", fmt.Sprintf("no message has come yet; %d topics are subscribed", len(r.allTopics())))
	}
}

// lossReport remembers what was reported, so that a loss is reported once.
type lossReport struct{ wire, queue uint64 }

func (l *lossReport) report(r *Recorder, sums totals) {
	wire, queue, worst := sums.wire, sums.queue, sums.worst
	r.overloads.note(time.Since(r.start), queue-l.queue, worst)
	if queue > l.queue {
		r.emit(EventLoss, slog.LevelWarn, worst, fmt.Sprintf(
			"%d messages dropped, since the storage is slower than the messages come; %d so far, most on topic '%s'", queue-l.queue, queue, worst))
	}
	if wire > l.wire {
		r.emit(EventLoss, slog.LevelWarn, worst, fmt.Sprintf(
			"%d messages lost on the way; %d so far, most losses on topic '%s'", wire-l.wire, wire, worst))
	}
	l.wire, l.queue = wire, queue
}

// busy says since when the writer goroutine is inside a call to the bag, and how many calls have returned.
type busy struct {
	start time.Time
	since atomic.Int64 // monotonic ns after start, 0 = it is not
	calls atomic.Uint64

	spent, longest atomic.Int64 // ns, of the calls that have ended; longest is written by the calling goroutine only
}

func (b *busy) begin() { b.since.Store(max(1, int64(time.Since(b.start)))) }

func (b *busy) end() {
	took := int64(b.time())
	b.spent.Add(took)
	b.longest.Store(max(b.longest.Load(), took))
	b.since.Store(0)
	b.calls.Add(1)
}

// time returns how long the call has lasted; 0 when there is none.
func (b *busy) time() time.Duration {
	since := b.since.Load()
	if since == 0 {
		return 0
	}
	return time.Since(b.start) - time.Duration(since)
}

// reportStall says when the storage stops answering and when it answers again.
func (r *Recorder) reportStall(stalled bool) bool {
	d := r.busy.time()
	switch {
	case !stalled && d > stallAfter:
		r.emit(EventStorage, slog.LevelWarn, "", fmt.Sprintf("the storage has not answered for %s; messages wait in memory", seconds(d)))
		return true
	case stalled && d <= stallAfter:
		r.emit(EventStorage, slog.LevelInfo, "", "the storage answers again")
		return false
	}
	return stalled
}

// watchClock looks for steps of the wall clock until ctx ends.
func (r *Recorder) watchClock(ctx context.Context) {
	tick := time.NewTicker(clockPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.lookAtClock()
		}
	}
}

// lookAtClock writes a step of the wall clock down.
func (r *Recorder) lookAtClock() {
	step, stepped := r.clock.look()
	if !stepped {
		return
	}
	if b := r.bag.Load(); b != nil {
		b.SetCustomData(bag.KeyClockSteps, bag.EncodeClockSteps(r.clock.all()))
	}
	r.emit(EventClockStep, slog.LevelWarn, "", fmt.Sprintf("the wall clock was set from %s to %s (%+.3f s)",
		wallText(step.Before), wallText(step.After), float64(step.After-step.Before)/1e9))
}

func wallText(ns int64) string {
	return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z")
}

// watchDisk stops the recording when the disk is nearly full, until ctx ends.
func (r *Recorder) watchDisk(ctx context.Context) {
	if r.o.MinFreeSpace < 0 {
		return
	}
	tick := time.NewTicker(watchPeriod)
	defer tick.Stop()
	said := false
	for {
		if err := r.checkDisk(r.o.Output); errors.Is(err, ErrDiskFull) {
			r.emit(EventDiskLow, slog.LevelError, "", fmt.Sprintf("recording stops: %v", err))
			r.stop(StopDisk, err)
			return
		} else if err != nil && !said {
			said = true
			r.emit(EventOther, slog.LevelWarn, "", fmt.Sprintf("free space of the disk is unknown: %v", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// checkDisk returns a *DiskFullError when the file system of path has less left than Options.MinFreeSpace.
func (r *Recorder) checkDisk(path string) error {
	free, total, err := r.o.FreeSpace(path)
	if err != nil {
		return err
	}
	need := r.o.MinFreeSpace
	if need == 0 {
		need = max(defaultFree, total/defaultFreeShare)
	}
	r.free.Store(free)
	if free < need {
		return &DiskFullError{Path: path, Free: free, Need: need}
	}
	return nil
}

const (
	defaultFree      = 500e6    // bytes
	defaultFreeShare = 50       // one part in so many
	nearlyNothing    = 16 << 20 // bytes; a write that fails with less left failed for lack of space
)

// diskError turns a write error into a *DiskFullError when the disk is full: storages report that in their own words.
func (r *Recorder) diskError(err error) error {
	free, _, freeErr := r.o.FreeSpace(r.o.Output)
	if errors.Is(err, syscall.ENOSPC) || freeErr == nil && free < nearlyNothing {
		return &DiskFullError{Path: r.o.Output, Free: free, Need: max(r.o.MinFreeSpace, nearlyNothing), Err: err}
	}
	return err
}
