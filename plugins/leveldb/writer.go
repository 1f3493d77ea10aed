package leveldb

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// A value must fit into a block, and its place in the write buffer into 32 bits.
const maxMessageSize = 1 << 30

// messageSeq is the sequence number of the first message in a journal. LevelDBs that recover a storage replay the journal
// of the description first and want sequence numbers to ascend from there on, beginning with that of the MANIFEST, which
// is 0 until Close. In tables all messages have number 0: none ever replaces another.
const messageSeq = 1 << 40

// littlePending is up to how many bytes a Sync journals where the preset has no journal; more becomes a table.
const littlePending = 1 << 20

// writer records into one database. Messages go into mem; when it is full it becomes frozen, which the flusher turns
// into a table while mem, a new one, fills.
type writer struct {
	dir  string
	set  settings
	lock *dirLock
	size atomic.Int64

	mu       sync.Mutex
	changed  *sync.Cond // frozen, err or closed have changed
	mem      *memtable
	frozen   *memtable
	spare    *memtable
	meta     *journalWriter // everything but messages
	metaGen  uint64         // counts what meta takes in of topics …
	metaSafe uint64         // … and how far it is synced
	manifest *journalWriter
	nextFile uint64
	seq      uint64 // LevelDB's number of the last entry that is no message
	messages uint64 // written
	order    uint64
	scratch  []byte
	flushers sync.WaitGroup

	topics      []writerTopic // by topic id − 1
	definitions map[plugin.Definition]uint32
	format      []byte
	metadata    plugin.Metadata

	tables     counts      // what the tables hold
	levels     [7]levelEnd // by level
	tableBytes int64       // on disk
	rawBytes   int64       // of values in the tables, before compression
	metaBytes  int64       // that the description will take
	oldLogs    []uint64    // journals that are no longer needed and not yet removed
	tw         tableWriter // the flusher's
	err        error       // of a failed write, flush or sync; stays
	closed     bool
}

type writerTopic struct {
	plugin.Topic
	def uint32
}

// levelEnd is the last key of a level that holds tables.
type levelEnd struct {
	used bool
	end  stamp
}

func (w *writer) usable() error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return plugin.ErrClosed
	}
	return nil
}

// fail keeps the error for all later calls.
func (w *writer) fail(op string, err error) error {
	if w.err == nil {
		w.err = fmt.Errorf("%s storage %s: %w", op, w.dir, err)
		w.changed.Broadcast()
	}
	return w.err
}

func (w *writer) path(name string) string { return filepath.Join(w.dir, name) }

func (w *writer) newNumber() uint64 {
	n := w.nextFile
	w.nextFile++
	return n
}

// Write implements plugin.Writer.
func (w *writer) Write(batch []plugin.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	for i := range batch {
		m := &batch[i]
		if m.Topic == 0 || int64(m.Topic) > int64(len(w.topics)) {
			return fmt.Errorf("write storage %s: topic %d: %w", w.dir, m.Topic, plugin.ErrUnknownTopic)
		}
		if len(m.Data) > maxMessageSize {
			return fmt.Errorf("write storage %s: a message of %d bytes is larger than %d: %w", w.dir, len(m.Data), maxMessageSize, plugin.ErrUnsupported)
		}
	}
	for i := range batch {
		m := &batch[i]
		if len(w.mem.entries) > 0 && w.mem.size()+len(m.Data)+maxHeader+memEntrySize > w.set.writeBuf {
			if err := w.freeze(); err != nil {
				return err
			}
		}
		if m.Order > w.order && m.Order < 1<<63 {
			w.order = m.Order
		} else {
			w.order++
		}
		if len(w.mem.entries) == 0 {
			w.mem.seq = messageSeq + w.messages
		}
		w.messages++
		w.mem.reserve(len(m.Data)+maxHeader, w.set.writeBuf)
		w.mem.add(m, w.order)
	}
	if w.set.journal {
		if err := w.journal(); err != nil {
			return w.fail("write", err)
		}
	}
	w.measure()
	return nil
}

// journal appends what mem holds beyond its journal.
func (w *writer) journal() (err error) {
	if w.mem.journaled == len(w.mem.entries) {
		return nil
	}
	if w.mem.journal == nil {
		if w.mem.journal, err = createJournal(w.path(journalName(w.mem.num))); err != nil {
			return err
		}
	}
	w.scratch, err = w.mem.journalPending(w.scratch)
	return err
}

// freeze hands mem to the flusher, after the one before is done. mu is held; it is given up while waiting.
func (w *writer) freeze() error {
	if err := w.waitFrozen(); err != nil {
		return err
	}
	if len(w.mem.entries) == 0 {
		return nil
	}
	if w.set.journal {
		if err := w.journal(); err != nil {
			return w.fail("write", err)
		}
		if err := w.mem.journal.flush(); err != nil {
			return w.fail("write", err)
		}
	}
	w.frozen = w.mem
	if w.mem = w.spare; w.mem == nil {
		w.mem = &memtable{sorted: true}
	}
	w.spare = nil
	w.mem.num = w.newNumber()
	w.changed.Broadcast()
	return nil
}

// waitFrozen waits until no flush is due.
func (w *writer) waitFrozen() error {
	for w.frozen != nil && w.err == nil {
		w.changed.Wait()
	}
	return w.err
}

// Sync implements plugin.Writer.
func (w *writer) Sync() error {
	w.mu.Lock()
	if err := w.usable(); err != nil {
		w.mu.Unlock()
		return err
	}
	js, err := w.syncBegin()
	gen, safe := w.metaGen, w.metaSafe
	for _, j := range js {
		j.refs++
	}
	w.mu.Unlock()
	if err != nil {
		return err
	}
	if w.set.syncs {
		for _, j := range js {
			if j == w.meta && gen == safe {
				continue
			}
			if err == nil {
				err = j.sync(w.dir)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range js {
		j.release()
	}
	if err != nil {
		return w.fail("sync", err)
	}
	w.metaSafe = max(w.metaSafe, gen)
	return nil
}

// syncBegin brings everything as far as journals, or tables, and returns the journals that must be synced, in their
// order. mu is held; it may be given up while waiting.
func (w *writer) syncBegin() ([]*journalWriter, error) {
	js := []*journalWriter{w.meta}
	if !w.set.journal {
		// The table in work comes first: what is journaled here must not survive without it.
		if err := w.waitFrozen(); err != nil {
			return nil, err
		}
		if w.closed {
			return nil, plugin.ErrClosed
		}
		if w.mem.pending() > littlePending {
			return js[:1], w.flushNow()
		}
		if err := w.journal(); err != nil {
			return nil, w.fail("sync", err)
		}
	} else if w.frozen != nil && w.frozen.journal != nil {
		js = append(js, w.frozen.journal)
	}
	if j := w.mem.journal; j != nil {
		if err := j.flush(); err != nil {
			return nil, w.fail("sync", err)
		}
		js = append(js, j)
	}
	return js, nil
}

// flushNow makes a table of mem and waits for it.
func (w *writer) flushNow() error {
	if err := w.freeze(); err != nil {
		return err
	}
	m := w.frozen
	for w.frozen == m && m != nil && w.err == nil {
		w.changed.Wait()
	}
	return w.err
}

// Size implements plugin.Writer. It never falls while messages are written.
func (w *writer) Size() int64 { return w.size.Load() }

// measure brings Size up to date. What is pending counts as it has compressed so far.
func (w *writer) measure() {
	pending := int64(len(w.mem.data) + 24*len(w.mem.entries))
	if w.frozen != nil {
		pending += int64(len(w.frozen.data) + 24*len(w.frozen.entries))
	}
	if w.rawBytes > 0 {
		pending = int64(float64(pending) * float64(w.tableBytes) / float64(w.rawBytes))
	}
	n := w.tableBytes + pending + w.metaBytes + w.manifest.size
	if n > w.size.Load() {
		w.size.Store(n)
	}
}

// AddTopic implements plugin.Writer.
func (w *writer) AddTopic(t plugin.Topic) (plugin.TopicID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return 0, err
	}
	i := slices.IndexFunc(w.topics, func(o writerTopic) bool { return o.Name == t.Name && o.Type == t.Type })
	if i < 0 {
		i = len(w.topics)
		w.topics = append(w.topics, writerTopic{Topic: plugin.Topic{Name: t.Name, Type: t.Type, SerializationFormat: t.SerializationFormat}})
	}
	o := &w.topics[i]
	o.ID = plugin.TopicID(i + 1)
	if t.OfferedQoS != "" {
		o.OfferedQoS = t.OfferedQoS
	}
	if t.TypeHash != "" {
		o.TypeHash = t.TypeHash
	}
	if t.Sources != nil {
		o.Sources = slices.Clone(t.Sources)
	}
	var puts []entry
	if t.Definition.Text != "" {
		o.Definition = t.Definition
		n, known := w.definitions[t.Definition]
		if !known {
			n = uint32(len(w.definitions) + 1)
			w.definitions[t.Definition] = n
			puts = append(puts, entry{numberKey(kindDefinition, n), encodeDefinition(t.Definition)})
		}
		o.def = n
	}
	puts = append(puts, entry{numberKey(kindTopic, uint32(o.ID)), encodeTopic(&o.Topic, o.def)})
	if err := w.put(puts...); err != nil {
		return 0, w.fail("add topic", err)
	}
	w.metaGen++
	w.measure()
	return o.ID, nil
}

// entry is a record beside the messages.
type entry struct{ key, value []byte }

// put appends records to the journal of the description, as one batch, and hands it to the system.
func (w *writer) put(es ...entry) error {
	b := appendBatchHeader(nil, w.seq+1, len(es))
	for _, e := range es {
		b = append(b, typeValue)
		b = appendBytes(b, e.key)
		b = appendBytes(b, e.value)
		w.metaBytes += int64(len(e.key) + len(e.value) + trailerSize)
	}
	w.seq += uint64(len(es))
	return w.meta.record(b)
}

// countsKey is the key of the counts of the tables that one write buffer became.
func countsKey(first, last uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte{kindCounts}, first), last)
}

// syncDir syncs the directory, unless nothing of this storage waits for the disk.
func (w *writer) syncDir() error {
	if !w.set.syncTables {
		return nil
	}
	return fsx.SyncDir(w.dir)
}
