package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// Snapshot mode: the writer goroutine takes messages out of the queue and holds them in a ring, where their cost still
// counts as that of the queue. A snapshot writes the ring into a new bag and goes on writing for the post-roll.

// ringShare of the cache is the ring; the rest is for what comes while a snapshot is written.
const ringShare = 0.8

// protectedFile in a snapshot's directory keeps the quota away from it.
const protectedFile = "gobag.protected"

// SnapshotBag is a bag made in snapshot mode.
type SnapshotBag struct {
	Dir       string
	Reason    string // who asked for it
	Messages  uint64 // repeats of latched topics excepted
	Protected bool
}

// takenSnapshots lists them.
type takenSnapshots struct {
	mu   sync.Mutex
	list []SnapshotBag
}

func (t *takenSnapshots) add(s SnapshotBag) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, s)
}

func (t *takenSnapshots) all() []SnapshotBag {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list)
}

// snapshots is the state of snapshot mode. It belongs to the writer goroutine.
type snapshots struct {
	ring    ring
	limit   int64 // bytes of the ring
	number  int   // of the last snapshot
	current SnapshotBag
	until   time.Time // end of the post-roll
	drop    []bag.Entry
	asked   string // why a snapshot is to be taken after this chunk; "" none
	byTopic map[string][]*Trigger
}

// TakeSnapshot writes what is in memory into a bag of its own, which goes on for Options.PostRoll. While one is being
// written its end moves. reason is stored in the bag. A protected snapshot is never deleted by Options.MaxTotalSize. The
// call returns at once; an event tells what became of it.
func (r *Recorder) TakeSnapshot(reason string, protect bool) error {
	if !r.o.SnapshotMode {
		return fmt.Errorf("%w is off", ErrNoSnapshotMode)
	}
	if State(r.state.Load()) != StateRecording {
		return ErrNotRecording
	}
	return r.commands.post(func(w *writer) { w.beginSnapshot(reason, protect) })
}

// openSnapshots prepares snapshot mode.
func (w *writer) openSnapshots() error {
	o := w.r.o
	if _, err := os.Stat(filepath.Join(o.Output, bag.MetadataFile)); err == nil {
		return fmt.Errorf("%s: %w: it is a bag; snapshots go into a directory of their own", o.Output, plugin.ErrExists)
	}
	w.snap = &snapshots{limit: int64(float64(o.MaxCacheSize) * ringShare), byTopic: map[string][]*Trigger{}}
	for i := range o.Triggers {
		t := &o.Triggers[i]
		w.snap.byTopic[t.Topic] = append(w.snap.byTopic[t.Topic], t)
	}
	return w.r.bagOptions().Validate() // else it would fail with the first snapshot
}

// hold puts entries into the ring.
func (w *writer) hold(chunk []bag.Entry) {
	s := w.snap
	for i := range chunk {
		e := chunk[i]
		t := w.topic(e.Topic)
		if e.Mark == markSkip {
			w.skip(t, &e)
			s.drop = append(s.drop, e)
			continue
		}
		s.ring.push(e)
		w.watchFor(t, &e)
	}
	clear(chunk)
	w.evict(s.limit)
	if s.asked != "" {
		reason := s.asked
		s.asked = ""
		w.beginSnapshot(reason, false)
	}
}

// watchFor asks the triggers of a topic about a message.
func (w *writer) watchFor(t *topic, e *bag.Entry) {
	for _, tr := range w.snap.byTopic[t.name] {
		if tr.Match(t.typ, t.definition(), e.Data) {
			if w.bag != nil { // it is being written already
				w.snap.until = time.Now().Add(w.r.o.PostRoll)
			} else {
				w.snap.asked = tr.Text
			}
		}
	}
}

// evict lets the oldest messages go until the ring has at most limit bytes and not more than the longest span.
func (w *writer) evict(limit int64) {
	s := w.snap
	for s.ring.len() > 0 && (s.ring.cost > limit || w.r.o.MaxCacheDuration > 0 && s.ring.span() > w.r.o.MaxCacheDuration) {
		e := s.ring.pop()
		w.skip(w.topic(e.Topic), &e)
		s.drop = append(s.drop, e)
	}
	w.r.queue.Done(s.drop)
	s.drop = s.drop[:0]
}

// beginSnapshot makes a bag and writes the ring into it.
func (w *writer) beginSnapshot(reason string, protect bool) {
	s := w.snap
	if w.failed != nil {
		return
	}
	if w.bag != nil {
		s.until = time.Now().Add(w.r.o.PostRoll)
		if protect {
			w.protect()
		}
		w.r.emit(EventSnapshot, slog.LevelInfo, "", fmt.Sprintf("snapshot %s goes on: %s", s.current.Dir, reason))
		return
	}
	w.r.busy.begin()
	err := w.createSnapshot(reason, protect)
	w.r.busy.end()
	if err != nil {
		w.r.emit(EventSnapshot, slog.LevelError, "", fmt.Sprintf("no snapshot: %v", err))
		return
	}
	w.r.emit(EventSnapshot, slog.LevelInfo, "", fmt.Sprintf("snapshot %s: %s", s.current.Dir, reason))
	stamp := w.r.o.Now()
	if s.ring.len() > 0 {
		stamp = s.ring.at(0).RecvTime
	}
	w.repeatLatched(stamp)
	chunk := make([]bag.Entry, 0, chunkSize)
	for s.ring.len() > 0 {
		bytes := 0
		for chunk = chunk[:0]; s.ring.len() > 0 && len(chunk) < chunkSize && bytes < chunkBytes; {
			e := s.ring.pop()
			bytes += len(e.Data)
			chunk = append(chunk, e)
		}
		w.write(chunk)
		w.r.queue.Done(chunk)
	}
	s.until = time.Now().Add(w.r.o.PostRoll)
	if w.r.o.PostRoll == 0 {
		w.endSnapshot(true)
	}
}

// createSnapshot makes the bag.
func (w *writer) createSnapshot(reason string, protect bool) error {
	s, o := w.snap, w.r.o
	if err := w.makeRoom(s.ring.cost); err != nil {
		return err
	}
	abs, err := filepath.Abs(o.Output)
	if err != nil {
		return err
	}
	custom := maps.Clone(o.CustomData)
	if custom == nil {
		custom = map[string]string{}
	}
	custom[bag.KeyTrigger] = reason
	bo := w.r.bagOptions()
	bo.CustomData = custom
	var b *bag.Writer
	for tries := 0; ; tries++ {
		s.number++
		dir := filepath.Join(o.Output, fmt.Sprintf("%s_%04d_%s", filepath.Base(abs), s.number, time.Now().Format("2006_01_02-15_04_05")))
		b, err = bag.Create(context.Background(), dir, bo)
		if !errors.Is(err, plugin.ErrExists) || tries > 1000 {
			s.current = SnapshotBag{Dir: dir, Reason: reason}
			break
		}
	}
	if err != nil {
		return err
	}
	w.bag, w.ledgerText = b, ""
	for _, t := range w.r.allTopics() {
		t.id, t.stored, t.depth = 0, 0, 0
		t.flow.reset()
	}
	w.r.topicsChanged.Store(true)
	w.r.bag.Store(b)
	if protect {
		w.protect()
	}
	return nil
}

// protect keeps the quota away from the snapshot being written.
func (w *writer) protect() {
	err := os.WriteFile(filepath.Join(w.snap.current.Dir, protectedFile), []byte("gobag deletes this snapshot for no quota while this file is here\n"), 0o666)
	if err != nil {
		w.r.emit(EventSnapshot, slog.LevelError, "", fmt.Sprintf("snapshot %s is not protected: %v", w.snap.current.Dir, err))
		return
	}
	w.snap.current.Protected = true
}

// repeatLatched begins a snapshot with what latched topics published before it.
func (w *writer) repeatLatched(stamp int64) {
	var batch []plugin.Message
	for _, t := range w.r.allTopics() {
		if len(t.keep.last) == 0 {
			continue
		}
		if err := w.addTopic(t); err != nil {
			w.fail(err)
			return
		}
		for _, m := range t.keep.last {
			m.Topic, m.Order = t.id, 0
			batch = append(batch, m)
		}
	}
	if err := w.bag.WriteRepeats(batch, stamp); err != nil {
		w.fail(err)
	}
}

// endSnapshot closes the bag when the post-roll is over, or now.
func (w *writer) endSnapshot(now bool) {
	s := w.snap
	if s == nil || w.bag == nil || !now && time.Now().Before(s.until) {
		return
	}
	w.r.busy.begin()
	defer w.r.busy.end()
	w.r.topicsChanged.Store(true)
	w.nextLedger = time.Now().Add(time.Hour)
	w.tick()
	w.nextLedger = time.Now()
	w.storeLedger(w.snapshotLedger())
	s.current.Messages = w.bag.Stats().Messages
	err := w.bag.Close()
	w.bag = nil
	w.r.bag.Store(nil)
	for _, t := range w.r.allTopics() {
		t.before = t.counts()
	}
	w.r.taken.add(s.current)
	w.r.emitSplit(s.current.Dir, "")
	if err != nil && w.failed == nil {
		w.r.emit(EventSnapshot, slog.LevelError, "", fmt.Sprintf("snapshot %s: %v", s.current.Dir, err))
		return
	}
	w.r.emit(EventSnapshot, slog.LevelInfo, "", fmt.Sprintf("snapshot %s is finished: %d messages", s.current.Dir, s.current.Messages))
	if err := w.makeRoom(0); err != nil {
		w.r.emit(EventSnapshot, slog.LevelWarn, "", err.Error())
	}
}

// snapshotLedger counts since the end of the snapshot before.
func (w *writer) snapshotLedger() bag.Ledger {
	l := bag.Ledger{Topics: map[string]bag.TopicLedger{}}
	for _, t := range w.r.allTopics() {
		c := t.counts()
		c.Recorded -= t.before.Recorded
		c.Skipped -= t.before.Skipped
		c.Lost.Wire -= t.before.Lost.Wire
		c.Lost.Queue -= t.before.Lost.Queue
		c.Lost.Storage -= t.before.Lost.Storage
		c.Received = c.Recorded + c.Skipped + c.Lost.Queue + c.Lost.Storage // what is on its way belongs to the next
		l.Topics[t.name] = c
	}
	return l
}

// closeSnapshots ends snapshot mode: what nobody asked for is let go.
func (w *writer) closeSnapshots() error {
	w.endSnapshot(true)
	w.evict(-1)
	return nil
}

// makeRoom deletes the oldest snapshots that are not protected until so many bytes more fit Options.MaxTotalSize.
func (w *writer) makeRoom(need int64) error {
	quota := w.r.o.MaxTotalSize
	if quota == 0 {
		return nil
	}
	entries, err := os.ReadDir(w.r.o.Output)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("quota: %w", err)
	}
	type old struct {
		dir  string
		size int64
	}
	var total int64
	var olds []old
	for _, e := range entries { // by name, so by age
		dir := filepath.Join(w.r.o.Output, e.Name())
		if _, err := os.Stat(filepath.Join(dir, bag.MetadataFile)); err != nil {
			continue // no bag
		}
		size := fsx.DiskSize(dir)
		total += size
		if _, err := os.Stat(filepath.Join(dir, protectedFile)); errors.Is(err, os.ErrNotExist) {
			olds = append(olds, old{dir, size})
		}
	}
	for ; total+need > quota && len(olds) > 0; olds = olds[1:] {
		if err := os.RemoveAll(olds[0].dir); err != nil {
			return fmt.Errorf("quota: %w", err)
		}
		total -= olds[0].size
		w.r.emit(EventDeleted, slog.LevelInfo, "", fmt.Sprintf("deleted snapshot %s to make room", olds[0].dir))
	}
	if total+need > quota {
		return fmt.Errorf("the quota of %s is full: %s are kept, %s are needed, and nothing may be deleted", size(quota), size(total), size(need))
	}
	return nil
}
