package recorder

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

const (
	chunkSize    = 1024                   // messages handed to the bag at a time; bounds the scratch below
	chunkBytes   = 4 << 20                // payload of those: their memory is free for new messages that soon
	writerTick   = 200 * time.Millisecond // topics that have no messages reach the bag within this
	ledgerPeriod = 2 * time.Second        // between two updates of the ledger in the bag
)

// writer is the goroutine that owns the bag: it alone adds topics, writes and closes.
type writer struct {
	r      *Recorder
	bag    *bag.Writer // nil in snapshot mode while none is written, and with StorageNull
	maxLen int64       // the largest message the storage takes; 0 = any
	held   bool        // topics keep messages that are to be recorded first of all
	snap   *snapshots  // nil unless in snapshot mode

	byQueue map[*bag.QueueTopic]*topic
	msgs    []plugin.Message // scratch
	topics  []*topic         // of msgs, scratch

	took time.Time // when the last messages were taken

	total      uint64 // messages recorded
	failed     error  // the bag takes nothing more
	nextLedger time.Time
	sums       totals // and number of topics, when the ledger was stored last
	known      int
	ledgerText string
}

// run takes what is queued and writes it until the queue is closed and empty, then closes the bag. The error is that of
// the bag; one that run met while recording has stopped the recorder already.
func (w *writer) run() error {
	w.msgs = make([]plugin.Message, 0, chunkSize)
	w.topics = make([]*topic, 0, chunkSize)
	w.nextLedger = time.Now()
	var entries []bag.Entry
	ctx, cancel := w.r.commands.context()
	for {
		if ctx.Err() != nil {
			w.tick()
			cancel()
			ctx, cancel = w.r.commands.context()
		}
		w.r.commands.run(w)
		w.resumeHeld() // also where the last message was written before the refusal was noted
		var err error
		entries, err = w.r.queue.Take(ctx, entries[:0])
		gather := w.gathers(entries, time.Now())
		for rest := entries; len(rest) > 0; {
			chunk := rest[:chunkLen(rest)]
			rest = rest[len(chunk):]
			if w.snap != nil && w.bag == nil {
				w.hold(chunk)
				continue
			}
			w.write(chunk)
			w.r.queue.Done(chunk)
			w.resumeHeld()
		}
		w.endSnapshot(false)
		if errors.Is(err, io.EOF) {
			break
		}
		if gather {
			sleep(ctx, gatherFor)
		}
	}
	cancel()
	return w.close()
}

// Small messages that come by the thousand would wake the writer for each: what it takes is little and followed soon by
// more, so it lets some come together.
const (
	gatherFor   = 2 * time.Millisecond
	gatherSoon  = 4 * gatherFor // since the last messages were taken
	gatherCount = 256           // messages that are worth a call by themselves,
	gatherBytes = 256 << 10     // and bytes
)

// gathers says whether to wait a moment behind these messages, which were just taken.
func (w *writer) gathers(entries []bag.Entry, now time.Time) bool {
	soon := now.Sub(w.took) < gatherSoon
	w.took = now
	if !soon || len(entries) >= gatherCount {
		return false
	}
	bytes := 0
	for i := range entries {
		bytes += len(entries[i].Data)
	}
	return bytes < gatherBytes
}

// chunkLen returns how many of the entries make a chunk, at least one.
func chunkLen(entries []bag.Entry) int {
	bytes := 0
	for i := range entries[:min(chunkSize, len(entries))] {
		if bytes += len(entries[i].Data); bytes > chunkBytes {
			return max(i, 1)
		}
	}
	return min(chunkSize, len(entries))
}

// tick does what is due from time to time: topics that were found or changed and have no new message, the ledger.
func (w *writer) tick() {
	if w.failed != nil || w.bag == nil {
		return
	}
	if w.r.topicsChanged.Swap(false) {
		for _, t := range w.r.allTopics() {
			if t.dirty.Load() {
				if err := w.addTopic(t); err != nil {
					w.fail(err)
					return
				}
			}
		}
	}
	if now := time.Now(); !now.Before(w.nextLedger) {
		w.nextLedger = now.Add(ledgerPeriod)
		if sums := w.r.sum(); sums != w.sums || w.snap != nil || len(w.r.allTopics()) != w.known {
			w.sums, w.known = sums, len(w.r.allTopics())
			w.storeLedger(w.ledger())
		}
	}
}

// write hands a chunk to the bag and counts each message of it as recorded, refused or surplus.
func (w *writer) write(chunk []bag.Entry) {
	w.r.lookAtClock()
	w.msgs, w.topics = w.msgs[:0], w.topics[:0]
	for i := range chunk {
		e := &chunk[i]
		t := w.topic(e.Topic)
		switch {
		case e.Mark == markSkip:
			w.skip(t, e)
			continue
		case w.full():
			t.surplus.Add(1)
			continue
		case w.failed != nil:
			t.refused.Add(1)
			continue
		case w.maxLen > 0 && int64(len(e.Data)) > w.maxLen:
			t.refused.Add(1)
			w.r.emitOnce("too large "+t.name, EventStorage, slog.LevelError, t.name,
				fmt.Sprintf("message of %d bytes on topic '%s' is larger than the storage takes (%d bytes); it is lost and counted", len(e.Data), t.name, w.maxLen))
			continue
		case t.id == 0 || t.dirty.Load() || int(e.Source) > t.stored:
			if err := w.addTopic(t); err != nil {
				w.fail(err)
				t.refused.Add(1)
				continue
			}
		}
		if w.held {
			w.flushHeld(e.RecvTime)
		}
		w.msgs = append(w.msgs, plugin.Message{Topic: t.id, RecvTime: e.RecvTime, SendTime: e.SendTime, Source: e.Source,
			Seq: e.Seq, Order: e.Order, Data: e.Data})
		w.topics = append(w.topics, t)
		if w.snap != nil {
			w.watchFor(t, e)
			if depth := w.r.repeatDepth(t); depth > 0 {
				t.keep.add(e, depth)
			}
		}
	}
	w.flush()
}

// skip counts a message that is not to be recorded. Those of latched topics are kept for when recording goes on.
func (w *writer) skip(t *topic, e *bag.Entry) {
	t.skipped.Add(1)
	if depth := w.r.repeatDepth(t); depth > 0 {
		t.keep.add(e, depth)
		w.held = w.snap == nil
	}
}

// flushHeld records what latched topics published while the recording paused, with stamps just before the given one.
func (w *writer) flushHeld(stamp int64) {
	w.held = false
	w.flush()
	w.msgs, w.topics = w.msgs[:0], w.topics[:0]
	for _, t := range w.r.allTopics() {
		if len(t.keep.last) == 0 {
			continue
		}
		if t.id == 0 {
			if err := w.addTopic(t); err != nil {
				w.fail(err)
				return
			}
		}
		for _, m := range t.keep.last {
			m.Topic, m.RecvTime = t.id, stamp-1
			w.msgs, w.topics = append(w.msgs, m), append(w.topics, t)
			t.skipped.Add(^uint64(0)) // recorded, or refused, after all
		}
		t.keep.clear()
	}
	w.flush()
	w.msgs, w.topics = w.msgs[:0], w.topics[:0]
}

// full says that as many messages are recorded, or about to be, as were asked for.
func (w *writer) full() bool {
	return w.r.o.MaxMessages > 0 && w.total+uint64(len(w.msgs)) >= w.r.o.MaxMessages
}

// flush writes the scratch. After an error of the bag the messages before the one that failed are recorded.
func (w *writer) flush() {
	if len(w.msgs) == 0 {
		return
	}
	written := len(w.msgs)
	if w.failed != nil { // a topic could not be added while the chunk was put together
		written = 0
	} else if w.bag == nil {
		w.r.busy.begin()
		w.r.busy.end()
	} else {
		before := w.bag.Stats().Messages
		w.r.busy.begin()
		err := w.bag.Write(w.msgs)
		w.r.busy.end()
		if err != nil {
			written = int(min(uint64(written), w.bag.Stats().Messages-before))
			w.fail(err)
		}
	}
	for i, t := range w.topics {
		if i < written {
			t.recorded.Add(1)
			t.bytes.Add(uint64(len(w.msgs[i].Data)))
			t.flow.add(w.msgs[i].RecvTime)
		} else {
			t.refused.Add(1)
		}
	}
	clear(w.msgs) // the payloads go back to their owner
	w.total += uint64(written)
	if w.r.o.MaxMessages > 0 && w.total >= w.r.o.MaxMessages {
		w.r.stop(StopMessages, nil)
	}
}

// topic returns the topic of a queued entry.
func (w *writer) topic(q *bag.QueueTopic) *topic {
	if n := len(w.topics); n > 0 && w.topics[n-1].queued == q {
		return w.topics[n-1]
	}
	t := w.byQueue[q]
	if t == nil {
		for _, t := range w.r.allTopics() {
			w.byQueue[t.queued] = t
		}
		t = w.byQueue[q]
	}
	return t
}

// addTopic tells the bag about a topic, or what is new about it.
func (w *writer) addTopic(t *topic) error {
	d := t.describe()
	if w.bag == nil { // StorageNull: the number means nothing
		t.id, t.stored = 1, len(d.Sources)
		return nil
	}
	w.r.busy.begin()
	id, err := w.bag.AddTopic(d)
	w.r.busy.end()
	if err != nil {
		return err
	}
	t.id, t.stored = id, len(d.Sources)
	if depth := w.r.repeatDepth(t); depth != t.depth {
		t.depth = depth
		return w.bag.Retain(id, depth)
	}
	return nil
}

// fail notes that the bag takes nothing more and stops the recording. Messages that still come are counted as lost.
func (w *writer) fail(err error) {
	w.failed = err
	w.r.emit(EventStorage, slog.LevelError, "", fmt.Sprintf("writing failed, recording stops: %v", err))
	w.r.stop(StopFailure, w.r.diskError(err))
}

// ledger is what the bag being written is to say.
func (w *writer) ledger() bag.Ledger {
	if w.snap != nil {
		return w.snapshotLedger()
	}
	return w.r.ledger()
}

// storeLedger puts the ledger into the bag's custom data.
func (w *writer) storeLedger(l bag.Ledger) {
	w.bag.SetCustomData(bag.KeyOverloads, bag.EncodeOverloads(w.r.overloads.list()))
	if w.r.simJumped.Swap(false) {
		w.bag.SetCustomData(bag.KeySimJumps, bag.EncodeClockSteps(w.r.gate.sim.all()))
	}
	if text := l.Encode(); text != w.ledgerText {
		w.ledgerText = text
		w.bag.SetCustomData(bag.KeyLedger, text)
	}
}

// close stores the last state and closes the bag.
func (w *writer) close() error {
	if w.snap != nil {
		return w.closeSnapshots()
	}
	if w.bag == nil {
		return nil
	}
	w.r.busy.begin()
	defer w.r.busy.end()
	if w.failed == nil { // topics found at the last moment
		w.r.topicsChanged.Store(true)
		w.nextLedger = time.Now().Add(time.Hour)
		w.tick()
	}
	w.storeLedger(w.r.finalLedger())
	last := w.bag.Stats().File
	err := w.bag.Close()
	w.takeBack()
	w.r.emitSplit(last, "")
	if w.failed != nil {
		return nil // reported already; Close repeats it
	}
	return err
}

// takeBack counts as lost what the bag had taken and its storage turned out not to hold after a failure.
func (w *writer) takeBack() {
	stats := w.bag.Topics()
	for _, t := range w.r.allTopics() {
		if t.id == 0 || int(t.id) > len(stats) {
			continue
		}
		if n, kept := t.recorded.Load(), stats[t.id-1].Messages; kept < n {
			t.recorded.Store(kept)
			t.refused.Add(n - kept)
		}
	}
}
