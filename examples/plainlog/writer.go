package plainlog

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gobag/gobag/plugin"
)

// keptBuffer is the size up to which the buffer of a batch is kept for the next one, bytes.
const keptBuffer = 4 << 20

type topicKey struct{ name, typ string }

// writer appends records. AddTopic, Write and Close come from one goroutine; Sync and Size may come from another.
type writer struct {
	f      *os.File
	size   atomic.Int64 // of the file, bytes; all of it is with the operating system
	buf    []byte
	topics []plugin.Topic // by ID-1
	byKey  map[topicKey]plugin.TopicID
	order  uint64 // of the last message

	syncing sync.Mutex // held by Sync, and by Close so that no Sync is under way when the file is closed
	mu      sync.Mutex // guards err and closed
	err     error      // of the first failed write or sync: the answer to all later calls
	closed  bool
}

func newWriter(f *os.File) *writer { return &writer{f: f, byKey: map[topicKey]plugin.TopicID{}} }

func (w *writer) begin(o plugin.WriteOptions) error {
	b := appendSynced([]byte(magic), 0)
	b, at := beginRecord(b, kindOptions)
	b = endRecord(appendString(b, o.ROSDistro), at)
	if o.Metadata.Version != 0 {
		b = appendMetadata(b, o.Metadata)
	}
	return w.append(b)
}

// append writes b behind what is there. A failure poisons the writer: what lies behind the end is not known then.
func (w *writer) append(b []byte) error {
	if _, err := w.f.WriteAt(b, w.size.Load()); err != nil {
		return w.fail(err)
	}
	w.size.Add(int64(len(b)))
	return nil
}

func (w *writer) fail(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = fmt.Errorf("write storage %s: %w", w.f.Name(), err)
	}
	return w.err
}

// usable returns the error that a call gets, if any.
func (w *writer) usable() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return plugin.ErrClosed
	}
	return w.err
}

// AddTopic implements plugin.Writer.
func (w *writer) AddTopic(t plugin.Topic) (plugin.TopicID, error) {
	if err := w.usable(); err != nil {
		return 0, err
	}
	key := topicKey{t.Name, t.Type}
	id, known := w.byKey[key]
	if known {
		t = updated(w.topics[id-1], t)
	} else {
		id = plugin.TopicID(len(w.topics) + 1)
		t.ID = id
		t.Sources = slices.Clone(t.Sources) // the caller's
	}
	if err := w.append(appendTopic(nil, &t)); err != nil {
		return 0, err
	}
	if known {
		w.topics[id-1] = t
	} else {
		w.topics, w.byKey[key] = append(w.topics, t), id
	}
	return id, nil
}

// updated is old with what t has; a zero field leaves what is there.
func updated(old, t plugin.Topic) plugin.Topic {
	if t.OfferedQoS != "" {
		old.OfferedQoS = t.OfferedQoS
	}
	if t.TypeHash != "" {
		old.TypeHash = t.TypeHash
	}
	if t.Definition.Text != "" {
		old.Definition = t.Definition
	}
	if t.Sources != nil {
		old.Sources = slices.Clone(t.Sources)
	}
	return old
}

// Write implements plugin.Writer. The batch is checked as a whole, put together in one buffer and written by one call, so
// that it is there whole or not at all unless the machine stops within that call.
func (w *writer) Write(batch []plugin.Message) error {
	if err := w.usable(); err != nil {
		return err
	}
	for i := range batch {
		m := &batch[i]
		if m.Topic == 0 || uint64(m.Topic) > uint64(len(w.topics)) {
			return fmt.Errorf("write message %d of %d: topic %d: %w", i+1, len(batch), m.Topic, plugin.ErrUnknownTopic)
		}
		if len(m.Data) > maxPayload {
			return fmt.Errorf("write message %d of %d: %d bytes are more than %d: %w", i+1, len(batch), len(m.Data), maxPayload, plugin.ErrUnsupported)
		}
	}
	b := w.buf[:0]
	for i := range batch {
		order := batch[i].Order
		if order <= w.order || order >= 1<<63 {
			order = w.order + 1
		}
		w.order = order
		b = appendMessage(b, &batch[i], order)
	}
	if w.buf = b; cap(b) > keptBuffer {
		w.buf = nil
	}
	return w.append(b)
}

// Sync implements plugin.Writer. Writing goes on meanwhile.
func (w *writer) Sync() error {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	return w.sync()
}

// sync makes what is there durable, and then says so in the header: never the other way round.
func (w *writer) sync() error {
	n := w.size.Load()
	if err := w.f.Sync(); err != nil {
		return w.fail(err)
	}
	if _, err := w.f.WriteAt(appendSynced(nil, n), int64(len(magic))); err != nil {
		return w.fail(err)
	}
	return nil
}

// Size implements plugin.Writer: nothing is pending in this format.
func (w *writer) Size() int64 { return w.size.Load() }

// Close implements plugin.Writer. After a failed write the file gets no end record: it was not closed in order.
func (w *writer) Close(m plugin.Metadata) error {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	err := w.usable()
	if errors.Is(err, plugin.ErrClosed) {
		return nil
	}
	if err == nil {
		var b []byte
		if m.Version != 0 {
			b = appendMetadata(b, m)
		}
		b, at := beginRecord(b, kindEnd)
		if err = w.append(endRecord(b, at)); err == nil {
			err = w.sync()
		}
		if err == nil {
			err = w.f.Sync() // the header
		}
	}
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	return errors.Join(err, w.f.Close())
}
