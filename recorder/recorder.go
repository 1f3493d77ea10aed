package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

// Recorder records topics into one bag. Make one with New and call Run once; the other methods may be called from any
// goroutine at any time.
type Recorder struct {
	o      Options
	filter *filter
	wanted []Wanted // what is named

	state   atomic.Int32
	started atomic.Bool
	start   time.Time
	ended   atomic.Int64 // elapsed when the recording was over, ns
	free    atomic.Int64
	bag     atomic.Pointer[bag.Writer]
	queue   *bag.Queue
	clock   *clockWatch
	busy    busy
	gate    gate

	clockSub     ros.Subscription // of /clock; nil without simulated time
	simJumped    atomic.Bool      // the bag is to be told
	undiscovered atomic.Bool      // discovery was stopped
	stalled      atomic.Bool      // the watchdog has bitten
	commands     commands
	overloads    overloads
	rounds       int // of sample, by watch
	taken        takenSnapshots

	topicsChanged atomic.Bool // a topic has something to tell the bag

	topicsMu sync.Mutex
	topics   []*topic
	byName   map[string]*topic

	stopOnce sync.Once
	stopped  chan struct{}
	reason   StopReason // valid after stopped is closed
	cause    error

	abortOnce sync.Once
	aborted   chan struct{}

	events chan Event
	onceMu sync.Mutex
	once   map[string]bool
}

// StopReason says why a recording ended.
type StopReason string

// The reasons for the end of a recording.
const (
	StopAsked    StopReason = "asked"    // the context ended
	StopDuration StopReason = "duration" // Options.Duration
	StopMessages StopReason = "messages" // Options.MaxMessages
	StopDisk     StopReason = "disk"     // Options.MinFreeSpace
	StopFailure  StopReason = "failure"  // the storage failed
)

// Result describes a finished recording.
type Result struct {
	Output   string // with StorageNull nothing is there
	Storage  string
	Reason   StopReason
	Elapsed  time.Duration // from the opening of the bag to the end of the last subscription, monotonic
	Messages uint64        // recorded
	Bytes    uint64        // payload bytes recorded
	Files    int
	Ledger   bag.Ledger
	Topics   []TopicSnapshot // by name
	Missing  []Wanted        // what was named and never appeared

	Undefined  []UndefinedType // types without a definition in the bag
	ClockSteps []bag.ClockStep
	Snapshots  []SnapshotBag // in snapshot mode
}

// Lost sums the messages lost, by reason.
func (r *Result) Lost() (wire, queue, storage uint64) {
	for _, t := range r.Ledger.Topics {
		wire += t.Lost.Wire
		queue += t.Lost.Queue
		storage += t.Lost.Storage
	}
	return wire, queue, storage
}

// New checks the options. Nothing is created or subscribed before Run.
func New(o Options) (*Recorder, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	r := &Recorder{o: o.withDefaults(), wanted: o.wanted(), stopped: make(chan struct{}), aborted: make(chan struct{}),
		byName: map[string]*topic{}, once: map[string]bool{}, events: make(chan Event, maxEvents)}
	r.commands.init()
	r.gate.paused.Store(o.StartPaused)
	if o.UseSimTime {
		r.gate.sim = &simClock{stepped: r.simStepped}
		r.gate.sim.now.Store(noSimTime)
	}
	var err error
	if r.filter, err = newFilter(r.o); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return r, nil
}

// Output returns the directory of the bag.
func (r *Recorder) Output() string { return r.o.Output }

// Run records until ctx ends, a limit of the options is reached, the disk is nearly full or the storage fails; then it
// stops in order: discovery, subscriptions, what is queued, the bag. It waits for all goroutines, unless the storage
// makes no progress for Options.StopTimeout or Abort is called: then the error is ErrGaveUp and a goroutine may stay
// behind in a call to the storage.
//
// The Result is valid with an error too, once the bag was opened. Errors: what bag.Create returns (plugin.ErrExists when
// the directory is there), *DiskFullError, *MissingTopicsError, ErrNothingRecorded, ErrGaveUp, and those of the storage.
// They can come joined; test with errors.Is.
func (r *Recorder) Run(ctx context.Context) (Result, error) {
	if !r.started.CompareAndSwap(false, true) {
		return Result{}, ErrRunning
	}
	w, err := r.open(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("record: %w", err)
	}

	told, allSaid := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		r.tell(allSaid)
	}()
	written := make(chan error, 1)
	go func() {
		err := w.run()
		r.commands.close()
		written <- err
	}()
	work, stopWork := context.WithCancel(ctx)
	watching, stopWatching := context.WithCancel(context.Background())
	var workers, watchers sync.WaitGroup
	diskWatched := make(chan struct{})
	d := newDiscovery(work, r)
	workers.Go(func() { d.run(work) })
	go func() {
		defer close(diskWatched)
		r.watchDisk(work)
	}()
	watchers.Go(func() { r.watch(watching) })
	watchers.Go(func() { r.watchClock(watching) })
	if err := r.followClock(); err != nil {
		r.stop(StopFailure, err)
	}
	r.emit(EventRecording, slog.LevelInfo, "", "Recording...")
	if r.Paused() {
		r.emit(EventPaused, slog.LevelInfo, "", "Paused: nothing is recorded yet.")
	}

	r.waitForEnd(ctx)
	stopWork()
	workers.Wait()
	d.define.wait()
	r.closeSubscriptions()
	r.ended.Store(int64(time.Since(r.start)))
	r.state.Store(int32(StateStopping))
	r.queue.Close()
	err = r.waitForWriter(written)
	r.waitBriefly(diskWatched) // a network file system may not answer
	stopWatching()
	watchers.Wait()
	r.state.Store(int32(StateClosed))
	res, err := r.finish(err)
	if len(res.Undefined) > 0 {
		r.emit(EventDefinition, slog.LevelWarn, "", undefinedText(res.Undefined))
	}
	r.emit(EventStopped, slog.LevelInfo, "", "Recording stopped")
	close(allSaid)
	r.waitBriefly(told) // a terminal may stand still
	return res, err
}

// waitBriefly waits for something that can hang for reasons outside of this program.
func (r *Recorder) waitBriefly(done <-chan struct{}) {
	t := time.NewTimer(r.o.StopTimeout)
	defer t.Stop()
	select {
	case <-done:
	case <-r.aborted:
	case <-t.C:
	}
}

// Abort stops the recording without waiting for what is queued. The bag is left as a crash would leave it.
func (r *Recorder) Abort() {
	r.stop(StopAsked, nil)
	r.abortOnce.Do(func() { close(r.aborted) })
}

// open makes the bag and the queue.
func (r *Recorder) open(ctx context.Context) (*writer, error) {
	if r.o.MinFreeSpace >= 0 {
		if err := r.checkDisk(existing(r.o.Output)); errors.Is(err, ErrDiskFull) {
			return nil, err
		}
	}
	w := &writer{r: r, byQueue: map[*bag.QueueTopic]*topic{}}
	q := bag.QueueOptions{MaxBytes: r.o.MaxCacheSize, Priority: r.o.Priority, Held: r.o.Backpressure}
	if r.o.SnapshotMode {
		if err := w.openSnapshots(); err != nil {
			return nil, err
		}
	} else if r.o.Storage != StorageNull {
		b, err := bag.Create(ctx, r.o.Output, r.bagOptions())
		if err != nil {
			return nil, err
		}
		w.bag = b
		r.bag.Store(b)
	}
	if !r.o.SnapshotMode {
		q.MaxSpan = r.o.MaxCacheDuration
	}
	if drv, err := plugin.Lookup(r.o.Storage); err == nil {
		w.maxLen = drv.Features().MaxMessageSize
	}
	r.start = time.Now()
	r.busy.start = r.start
	if r.gate.sim != nil {
		r.gate.sim.start = r.start
	}
	r.clock = newClockWatch(r.o.Now, r.start)
	r.queue = bag.NewQueue(q)
	r.state.Store(int32(StateRecording))
	return w, nil
}

// bagOptions describe the bag that is written.
func (r *Recorder) bagOptions() bag.WriterOptions {
	o := bag.WriterOptions{
		StorageID: r.o.Storage, Preset: r.o.Preset, StorageConfig: r.o.Config, MaxBagSize: r.o.MaxBagSize,
		MaxBagDuration: r.o.MaxBagDuration, SplitByStamp: r.o.UseSimTime, SyncInterval: r.o.SyncInterval, Compat: r.o.Compat,
		ROSDistro: r.o.ROSDistro, CustomData: r.o.CustomData, Compression: r.o.Compression, Logger: r.o.Logger,
		OnSplit: r.emitSplit,
	}
	if r.o.SnapshotMode {
		return o
	}
	o.MaxBagFiles, o.MaxTotalSize = r.o.MaxBagFiles, r.o.MaxTotalSize
	if o.MaxTotalSize > 0 && o.MaxBagSize == 0 && o.MaxBagDuration == 0 {
		o.MaxBagSize = max(o.MaxTotalSize/10, 1)
		if drv, err := plugin.Lookup(r.o.Storage); err == nil {
			o.MaxBagSize = max(o.MaxBagSize, drv.Features().MinSplitSize)
		}
	}
	o.OnDelete = func(file string, messages uint64) {
		deleted := map[string]uint64{}
		for _, s := range r.bag.Load().Topics() {
			deleted[s.Name] += s.Deleted
		}
		for _, t := range r.allTopics() {
			t.deleted.Store(deleted[t.name])
		}
		r.emit(EventDeleted, slog.LevelInfo, "", fmt.Sprintf("deleted %s with %d messages to make room", file, messages))
	}
	return o
}

// existing returns path or the nearest directory above it that exists.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil {
			return path
		}
		up := filepath.Dir(path)
		if up == path {
			return path
		}
		path = up
	}
}

// waitForEnd returns when the recording is to end.
func (r *Recorder) waitForEnd(ctx context.Context) {
	var limit <-chan time.Time
	if r.o.Duration > 0 {
		t := time.NewTimer(r.o.Duration)
		defer t.Stop()
		limit = t.C
	}
	select {
	case <-ctx.Done():
		r.stop(StopAsked, nil)
	case <-limit:
		r.stop(StopDuration, nil)
	case <-r.stopped:
	}
}

// stop ends the recording. The first call decides the reason.
func (r *Recorder) stop(reason StopReason, cause error) {
	r.stopOnce.Do(func() {
		r.reason, r.cause = reason, cause
		close(r.stopped)
	})
}

// closeSubscriptions ends reception and takes over the transport's last counts.
func (r *Recorder) closeSubscriptions() {
	if r.clockSub != nil {
		if err := r.clockSub.Close(); err != nil {
			r.emit(EventOther, slog.LevelWarn, clockTopic, fmt.Sprintf("closing the subscription to /clock: %v", err))
		}
	}
	for _, t := range r.allTopics() {
		sub := t.subscription()
		if sub == nil {
			continue
		}
		r.sampleWire(t)
		if err := sub.Close(); err != nil {
			r.emit(EventOther, slog.LevelWarn, t.name, fmt.Sprintf("closing the subscription to topic '%s': %v", t.name, err))
		}
		r.sampleWire(t) // what came between the two
	}
}

// waitForWriter waits for the writer goroutine as long as it makes progress.
func (r *Recorder) waitForWriter(written <-chan error) error {
	t := time.NewTicker(r.o.StopTimeout)
	defer t.Stop()
	progress := func() uint64 { // calls of the storage, and what Close compresses
		calls := r.busy.calls.Load()
		if b := r.bag.Load(); b != nil {
			calls += uint64(b.Stats().Compressed)
		}
		return calls
	}
	for last := progress(); ; {
		select {
		case err := <-written:
			return err
		case <-r.aborted:
			return ErrGaveUp
		case <-t.C:
			now := progress()
			if now == last {
				return fmt.Errorf("%w: no progress for %s", ErrGaveUp, r.o.StopTimeout)
			}
			last = now
		}
	}
}

// finish puts the result together. err is that of the writer goroutine.
func (r *Recorder) finish(err error) (Result, error) {
	res := Result{Output: r.o.Output, Storage: r.o.Storage, Reason: r.reason, Elapsed: time.Duration(r.ended.Load()), Ledger: r.finalLedger(),
		Missing: r.missing(), Undefined: r.undefined(), ClockSteps: r.clock.all(), Snapshots: r.taken.all()}
	if b := r.bag.Load(); b != nil && !r.o.SnapshotMode {
		res.Files = b.Stats().Files
	}
	for _, t := range r.allTopics() {
		ts := TopicSnapshot{Name: t.name, Type: t.typ, TopicLedger: res.Ledger.Topics[t.name], Bytes: t.bytes.Load()}
		if s := res.Elapsed.Seconds(); s > 0 {
			ts.Rate, ts.ByteRate = float64(ts.Received)/s, float64(ts.Bytes)/s
		}
		res.Topics = append(res.Topics, ts)
		res.Messages += ts.Recorded
		res.Bytes += ts.Bytes
	}
	sort.Slice(res.Topics, func(i, j int) bool { return res.Topics[i].Name < res.Topics[j].Name })
	err = errors.Join(r.cause, err)
	if err == nil && len(res.Missing) > 0 {
		err = &MissingTopicsError{res.Missing}
	}
	if r.stalled.Load() {
		err = errors.Join(err, ErrStalled)
	}
	var received uint64
	for _, t := range res.Topics {
		received += t.Received
	}
	if res.Messages == 0 && !(r.o.SnapshotMode && received > 0) { // a snapshot that nobody asked for is no failure
		err = errors.Join(err, ErrNothingRecorded)
	}
	if err != nil {
		return res, fmt.Errorf("record: %w", err)
	}
	return res, nil
}

// emitOnce emits an event once per key.
func (r *Recorder) emitOnce(key string, kind EventKind, level slog.Level, topic, text string) {
	r.onceMu.Lock()
	said := r.once[key]
	r.once[key] = true
	r.onceMu.Unlock()
	if !said {
		r.emit(kind, level, topic, text)
	}
}

func (r *Recorder) addTopic(t *topic) {
	r.topicsMu.Lock()
	defer r.topicsMu.Unlock()
	r.topics = append(r.topics, t) // readers keep their own length
	r.byName[t.name] = t
}

func (r *Recorder) removeTopic(t *topic) {
	r.topicsMu.Lock()
	defer r.topicsMu.Unlock()
	delete(r.byName, t.name)
	var rest []*topic
	for _, o := range r.topics {
		if o != t {
			rest = append(rest, o)
		}
	}
	r.topics = rest
}

// allTopics returns the topics in the order they were found. The slice is never changed.
func (r *Recorder) allTopics() []*topic {
	r.topicsMu.Lock()
	defer r.topicsMu.Unlock()
	return r.topics
}

func (r *Recorder) topicNamed(name string) *topic {
	r.topicsMu.Lock()
	defer r.topicsMu.Unlock()
	return r.byName[name]
}
