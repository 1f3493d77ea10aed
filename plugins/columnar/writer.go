package columnar

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// writer appends to the log and hands what it has written to the sealer. mu guards everything but Sync's wait for the
// disk, which syncMu keeps apart from Close.
type writer struct {
	syncMu sync.Mutex
	mu     sync.Mutex
	dir    string
	set    settings
	err    error // of a failed write or sync; stays
	closed bool
	done   error // what Close returned

	topics []plugin.Topic
	byKey  map[topicKey]plugin.TopicID
	order  uint64 // of the last message

	f        *os.File // the log's newest file
	segment  uint64
	off      int64 // its length
	pushed   int64 // the system was asked to write it back up to here
	synced   int64 // it is durable up to here
	named    bool  // its name is durable
	older    []*os.File
	syncing  *os.File // the file that Sync waits for the disk with, without holding mu
	unsynced int64    // bytes of the log that are not durable
	syncedAt time.Time

	block    *block
	queue    []piece       // for the sealer
	inFlight int           // memory of blocks that the sealer has not done with
	room     *sync.Cond    // inFlight fell, or err was set
	wake     chan struct{} // the queue is not empty, or closed was set; holds one
	sealed   chan struct{} // closed when the sealer has ended
	finished chan struct{} // closed when Close is done
	sealer   *sealer

	taken atomic.Int64 // payload bytes the sealer has not taken apart
	size  atomic.Int64
}

type topicKey struct{ name, typ string }

func (w *writer) usable() error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return plugin.ErrClosed
	}
	return nil
}

// AddTopic adds or updates a topic, in the log.
func (w *writer) AddTopic(t plugin.Topic) (plugin.TopicID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return 0, err
	}
	if t.Definition.Text == "" {
		t.Definition = plugin.Definition{}
	}
	key := topicKey{t.Name, t.Type}
	id, ok := w.byKey[key]
	if !ok {
		id = plugin.TopicID(len(w.topics) + 1)
		t.ID, t.Sources = id, slices.Clone(t.Sources)
		w.topics = append(w.topics, t)
		w.byKey[key] = id
		return id, w.record(recordTopic, appendTopic(nil, &t))
	}
	s := &w.topics[id-1]
	old := *s
	s.OfferedQoS, s.TypeHash = cmp.Or(t.OfferedQoS, s.OfferedQoS), cmp.Or(t.TypeHash, s.TypeHash)
	if t.Definition.Text != "" {
		s.Definition = t.Definition
	}
	if t.Sources != nil {
		s.Sources = slices.Clone(t.Sources)
	}
	if s.OfferedQoS == old.OfferedQoS && s.TypeHash == old.TypeHash && s.Definition == old.Definition && slices.Equal(s.Sources, old.Sources) {
		return id, nil
	}
	return id, w.record(recordTopic, appendTopic(nil, s))
}

// record puts a record into the log.
func (w *writer) record(kind byte, content []byte) error {
	if err := w.reserve(recordHead + len(content)); err != nil {
		return w.poison(err)
	}
	w.block.record(kind, content)
	return nil
}

// reserve makes sure that n bytes can be appended to w.block.
func (w *writer) reserve(n int) error {
	if k := w.block; k != nil && len(k.b)+n > blockSize && len(k.b) > frameHead {
		if err := w.flush(true); err != nil {
			return err
		}
	}
	if w.block == nil {
		w.block = newBlock()
	}
	if need := len(w.block.b) + n; need > cap(w.block.b) {
		w.block.free()
		w.block = &block{b: make([]byte, frameHead, need)}
	}
	return nil
}

// Write appends a batch to the log. It waits while the sealer lags behind by more than maxInFlight bytes.
func (w *writer) Write(batch []plugin.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	for i := range batch {
		if m := &batch[i]; m.Topic == 0 || int(m.Topic) > len(w.topics) {
			return fmt.Errorf("write: topic %d: %w", m.Topic, plugin.ErrUnknownTopic)
		} else if len(m.Data) > maxMessage {
			return fmt.Errorf("write: message of %d bytes, at most %d: %w", len(m.Data), maxMessage, plugin.ErrUnsupported)
		}
	}
	payload := int64(0)
	for i := range batch {
		m := &batch[i]
		if m.Order > w.order && m.Order < 1<<63 {
			w.order = m.Order
		} else {
			w.order++
		}
		if err := w.reserve(messageHead + len(m.Data)); err != nil {
			return w.poison(err)
		}
		w.block.message(recordMessage, m, w.order)
		payload += int64(len(m.Data))
		for w.inFlight > maxInFlight && w.err == nil {
			w.room.Wait()
		}
		if w.err != nil {
			return w.err
		}
	}
	w.taken.Add(payload)
	w.updateSize()
	return nil
}

func (w *writer) poison(err error) error {
	if w.err == nil {
		w.err = fmt.Errorf("write storage %s: %w", w.dir, err)
		w.room.Broadcast()
	}
	return w.err
}

// fail is poison for the sealer.
func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.poison(err) // kept in w.err
}

// writeback is how many bytes are written between two requests to the system to write them to the disk.
const writeback = 4 << 20

// pushBack asks the system to write f to the disk from one offset to the other, if that is much. It returns up to where it has.
func pushBack(f *os.File, from, to int64) int64 {
	if to-from < writeback {
		return from
	}
	_ = fsx.StartWriteback(f, from, to-from) // only a hint
	return to
}

// flush writes the frame that is being made to the log and hands it to the sealer. The next one goes into the same block
// unless last is set or there is little room in it.
func (w *writer) flush(last bool) error {
	k := w.block
	if k == nil || k.empty() && !(last && k.handed) {
		return nil
	}
	n := len(k.b) - k.start
	if k.empty() {
		n = 0
	} else if err := w.writeFrame(k, n); err != nil {
		return err
	}
	last = last || len(k.b) > blockSize*3/4
	w.hand(piece{k, k.start, k.b[k.start : k.start+n], w.segment, last})
	if last {
		w.block = nil
	} else {
		k.next()
	}
	return nil
}

// writeFrame writes the frame that k ends with, of n bytes, to the log.
func (w *writer) writeFrame(k *block, n int) error {
	if w.off+int64(n) > w.set.segment && w.off > 0 {
		if err := w.nextSegment(); err != nil {
			return err
		}
	}
	k.seal(w.segment, w.synced)
	if _, err := w.f.Write(k.b[k.start:]); err != nil {
		return err
	}
	w.off += int64(n)
	w.unsynced += int64(n)
	if w.set.syncEvery == 0 { // else most of it is in parts before the disk is waited for
		w.pushed = pushBack(w.f, w.pushed, w.off)
	}
	return nil
}

// wakeSize is how much the sealer is woken up for; for less it comes once a second.
const wakeSize = 64 << 10

// hand gives frames to the sealer, together with those before them where these wait still.
func (w *writer) hand(p piece) {
	if !p.k.handed {
		w.inFlight += cap(p.k.b)
		p.k.handed = true
	}
	if n := len(w.queue); n > 0 && w.queue[n-1].k == p.k && w.queue[n-1].segment == p.segment {
		q := &w.queue[n-1]
		q.b, q.last = p.k.b[q.from:p.from+len(p.b)], p.last
		p = *q
	} else {
		w.queue = append(w.queue, p)
	}
	if !p.last && len(p.b) < wakeSize {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// nextSegment begins a new file of the log.
func (w *writer) nextSegment() error {
	f, err := createSegment(w.dir, w.segment+1)
	if err != nil {
		return err
	}
	if w.f != nil {
		w.older = append(w.older, w.f)
	}
	w.f, w.segment, w.off, w.pushed, w.synced, w.named = f, w.segment+1, 0, 0, 0, false
	return nil
}

func createSegment(dir string, number uint64) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, logDir, segmentName(number)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// Sync writes the block out and waits for the disk as often as the preset says.
func (w *writer) Sync() error { return w.sync(false) }

func (w *writer) sync(always bool) error {
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	w.mu.Lock()
	if err := w.usable(); err != nil && !always {
		w.mu.Unlock()
		return err
	}
	if err := w.flush(false); err != nil {
		defer w.mu.Unlock()
		return w.poison(err)
	}
	if wait := w.unsynced > 0 && (always || w.set.syncEvery == 0 ||
		w.set.syncEvery > 0 && (time.Since(w.syncedAt) >= w.set.syncEvery || w.unsynced >= w.set.syncBytes)); !wait {
		w.mu.Unlock()
		return nil
	}
	f, upTo, older, unsynced, named, segment := w.f, w.off, w.older, w.unsynced, w.named, w.segment
	w.older, w.syncing = nil, f
	w.mu.Unlock()

	var err error
	for _, o := range older {
		err = errors.Join(err, datasync(o), o.Close())
	}
	if err == nil {
		err = datasync(f)
	}
	if err == nil && !named {
		err = fsx.SyncDir(filepath.Join(w.dir, logDir))
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	w.syncing = nil
	if err != nil {
		if w.err == nil {
			w.err = fmt.Errorf("sync storage %s: %w", w.dir, err)
			w.room.Broadcast()
		}
		return w.err
	}
	if w.segment == segment {
		w.synced, w.named = upTo, true
	}
	w.unsynced -= unsynced
	w.syncedAt = time.Now()
	return nil
}

// Size is about what the directory would have if closed now.
func (w *writer) Size() int64 { return w.size.Load() }

func (w *writer) updateSize() {
	n := w.sealer.estimate(w.taken.Load())
	for {
		old := w.size.Load()
		if n <= old || w.size.CompareAndSwap(old, n) {
			return
		}
	}
}
