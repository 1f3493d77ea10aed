package bag

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// A split is to cost the messages no time. So the next file is opened ahead, while the current one fills up, by a goroutine
// of its own; the split itself exchanges two pointers; and what the old file still needs, its last pages and its index, is
// written by another goroutine while messages go into the new one. A file that was opened and not needed is removed by
// Close. A crash can leave it: it is empty, and a Reader passes over it.

// How long before its limit a file has a successor: an eighth of the limit, or what a slow disk needs if that is more.
const (
	aheadShare = 8
	aheadTime  = 2 * time.Second
	aheadBytes = 64 << 20
)

// aheadFile is the next file, opened before it is needed.
type aheadFile struct {
	done   chan struct{} // closed when the rest is valid
	file   *writerFile
	ids    []plugin.TopicID // of the topics that there were, in their order
	topics []topicState     // these
	err    error
}

// room says how much there is left until a limit, in the unit of the limit, and whether it is time for a successor.
func room(limit, used, atLeast int64) (left int64, soon bool) {
	left = limit - used
	return left, left <= max(limit/aheadShare, min(limit/2, atLeast))
}

// splitIfDue begins a new file when the current one has reached a limit before the message of the given stamp. A file
// without messages is never left behind. When no new file can be opened, recording goes on in the old one and it is tried
// again later.
func (w *Writer) splitIfDue(stamp int64) error {
	if w.file.count == 0 || w.o.MaxBagSize == 0 && w.o.MaxBagDuration == 0 {
		return nil
	}
	due, soon := false, false
	now := time.Now()
	if w.o.MaxBagSize > 0 {
		left, near := room(w.o.MaxBagSize, w.file.w.Size(), aheadBytes)
		due, soon = left <= 0, near
	}
	switch limit := int64(w.o.MaxBagDuration); {
	case limit == 0:
	case w.o.SplitByStamp:
		left, near := room(limit, stamp-w.file.span.start, int64(aheadTime))
		due, soon = due || left < 0, soon || near
	default:
		left, near := room(limit, int64(now.Sub(w.file.begun)), int64(aheadTime))
		due, soon = due || left <= 0, soon || near
	}
	if !soon && !due || now.Before(w.noSplit) {
		return nil
	}
	if !due {
		w.openAhead()
		return nil
	}
	if err := w.split(); err != nil {
		if poisoned := w.usable(); poisoned != nil {
			return poisoned
		}
		w.noSplit = time.Now().Add(splitRetry)
		w.log.Warn("no new file could be begun; recording goes on in the old one", "file", w.file.name, "err", err)
	}
	return nil
}

// Split closes the current file and begins a new one with the same topics. Without messages in the current file it does
// nothing. When the new file cannot be opened, the error is returned and the old one goes on.
func (w *Writer) Split() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	if w.file.count == 0 {
		return nil
	}
	if err := w.split(); err != nil {
		return err
	}
	if err := w.finishOld(); err != nil {
		return err
	}
	return w.usable() // it may have been closed in the background, and failed
}

// split goes over to the next file. The old one is closed in the background. w.mu is held.
func (w *Writer) split() error {
	if err := w.finishOld(); err != nil { // one at a time
		return err
	}
	next, ids, err := w.nextFile()
	if err != nil {
		return fmt.Errorf("write bag %s: begin a new file: %w", w.dir, err)
	}
	meta := w.metadata(StateRecording)
	old := &oldFile{w.file, next.name, w.file.w.Size(), meta}
	size := next.w.Size()
	w.stateMu.Lock()
	w.old = old
	w.size = size
	w.files = append(w.files, old.metadata())
	w.perFile = append(w.perFile, w.countsInFile())
	w.filesSize += old.size
	w.file = next
	w.begun++
	for i, id := range ids {
		w.topics[i].id, w.topics[i].inFile = id, 0
	}
	w.written++
	w.stateMu.Unlock()
	w.atHead = true
	w.background.Go(func() { _ = w.finishOld() }) // later calls say so
	return nil
}

// openAhead begins to open the next file, unless that was done. w.mu is held.
func (w *Writer) openAhead() {
	if w.ahead != nil {
		return
	}
	w.stateMu.Lock() // closeOld counts in them
	a := &aheadFile{done: make(chan struct{}), topics: slices.Clone(w.topics)}
	w.stateMu.Unlock()
	w.ahead = a
	n := w.begun
	w.background.Go(func() {
		defer close(a.done)
		a.file, a.ids, a.err = w.openWith(n, a.topics)
	})
}

// nextFile returns the file after the current one, with all topics as they are now.
func (w *Writer) nextFile() (*writerFile, []plugin.TopicID, error) {
	a := w.ahead
	w.ahead = nil
	if a != nil {
		<-a.done
	}
	if a == nil || a.err != nil { // what was in the way may be gone
		return w.openWith(w.begun, w.topics)
	}
	for i := range w.topics {
		if i < len(a.topics) && a.topics[i].version == w.topics[i].version {
			continue
		}
		id, err := a.file.w.AddTopic(w.topics[i].topic)
		if err != nil {
			w.discard(a.file)
			return nil, nil, fmt.Errorf("add topic %q: %w", w.topics[i].topic.Name, err)
		}
		if i < len(a.ids) {
			a.ids[i] = id
		} else {
			a.ids = append(a.ids, id)
		}
	}
	return a.file, a.ids, nil
}

// openWith makes storage number n and adds topics.
func (w *Writer) openWith(n int, topics []topicState) (*writerFile, []plugin.TopicID, error) {
	f, err := w.openFile(context.Background(), n)
	if err != nil {
		return nil, nil, err
	}
	ids := make([]plugin.TopicID, len(topics))
	for i := range topics {
		if ids[i], err = f.w.AddTopic(topics[i].topic); err != nil {
			w.discard(f)
			return nil, nil, fmt.Errorf("add topic %q: %w", topics[i].topic.Name, err)
		}
	}
	return f, ids, nil
}

// discard removes a file that was opened and holds no messages.
func (w *Writer) discard(f *writerFile) {
	_ = f.w.Close(plugin.Metadata{}) // it goes away
	w.remove(f.name)
}

// dropAhead removes the file that was opened ahead and is not needed.
func (w *Writer) dropAhead() {
	a := w.ahead
	w.ahead = nil
	if a == nil {
		return
	}
	if <-a.done; a.err == nil {
		w.discard(a.file)
	}
}

// oldFile is a file that is full and not closed yet.
type oldFile struct {
	*writerFile
	next string    // name of the one after it
	size int64     // as it is counted in filesSize
	meta *Metadata // of the bag as it was at the split
}

// finishOld closes the file before the current one, unless that was done.
func (w *Writer) finishOld() error {
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	return w.closeOld()
}

// closeOld does so with w.syncMu held.
func (w *Writer) closeOld() error {
	w.stateMu.Lock()
	old := w.old
	w.stateMu.Unlock()
	if old == nil {
		return nil
	}
	err := old.w.Close(old.meta.EncodeStorage(0))
	size := fsx.DiskSize(filepath.Join(w.dir, old.name))
	w.stateMu.Lock()
	w.old = nil
	w.filesSize += size - old.size
	if err != nil {
		w.broken = append(w.broken, old.name)
	}
	w.stateMu.Unlock()
	if err != nil {
		return w.fail(fmt.Errorf("close %s: %w", old.name, err))
	}

	gone := w.forgetOldest()
	if w.shrinker != nil && !slices.ContainsFunc(gone, func(f FileMetadata) bool { return f.Path == old.name }) {
		w.shrinker.add(old.name)
	}
	w.republish()
	if w.o.OnSplit != nil {
		w.o.OnSplit(old.name, old.next)
	}
	w.deleteFiles(gone)
	return nil
}
