package leveldb

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// A value must fit into a block, and its place in the write buffer into 32 bits.
const maxMessageSize = 1 << 30

// messageSeq is the sequence number of the first message in a journal. LevelDBs that recover a storage replay the journal
// of the description first and want sequence numbers to ascend from there on, beginning with that of the MANIFEST, which
// is 0 until Close. In tables all messages have number 0: none ever replaces another.
const messageSeq = 1 << 40

const (
	// littlePending is how many bytes are journaled for what they are worth: more than that soon is a table.
	littlePending = 1 << 20

	// handOverEvery is how often a preset that journals at each Sync hands little to the system between.
	handOverEvery = 100 * time.Millisecond
)

// writer records into one database. Messages go into mem; when it is full it becomes frozen, which the flusher turns
// into a table while mem, the other one, fills.
type writer struct {
	dir  string
	set  settings
	lock *dirLock
	size atomic.Int64

	syncing     sync.Mutex // one Sync, or Close, at a time
	syncScratch []byte     // its holder's

	mu      sync.Mutex
	changed *sync.Cond // frozen, sealed, flushed, pinned, err or closed have changed

	mem        *memtable
	frozen     *memtable // flushLoop's
	frozenSize int64
	spare      *memtable
	sealed     *sealedTables // written tables that wait for the disk; sealLoop's
	flushed    uint64        // messages in tables that count
	handed     time.Time     // when mem was journaled last without a Sync
	workers    sync.WaitGroup

	meta         *journalWriter // everything but messages
	metaGen      uint64         // counts what meta takes in of topics …
	metaSafe     uint64         // … and how far it is synced
	manifest     *journalWriter
	manifestGen  uint64 // counts edits …
	manifestSafe uint64 // … and how far they are synced

	nextFile uint64
	seq      uint64 // LevelDB's number of the last entry that is no message
	messages uint64 // written
	order    uint64
	scratch  []byte
	spareBuf []byte // of a journal

	topics      []writerTopic // by topic id − 1
	definitions map[plugin.Definition]uint32
	format      []byte
	metadata    plugin.Metadata

	tables     counts      // what the tables hold
	levels     [7]levelEnd // by level
	tableBytes int64       // on disk
	rawBytes   int64       // of values in the tables, before compression
	metaBytes  int64       // that the description will take
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
		if len(w.mem.entries) > 0 && w.mem.size()+len(m.Data)+memOverhead+memEntrySize > w.set.writeBuf {
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
		w.mem.reserve(len(m.Data)+memOverhead, w.set.writeBuf)
		w.mem.add(m, w.order)
	}
	if err := w.handOver(); err != nil {
		return w.fail("write", err)
	}
	w.measure()
	return nil
}

// handOver journals what mem has where the preset wants it: at once, or from time to time as long as that is little; more
// will soon be a table or is left to the next Sync. mu is held.
func (w *writer) handOver() error {
	m := w.mem
	switch w.set.journal {
	case journalWrites:
		return w.journal(m)
	case journalSyncs:
		if m.pinned || m.journaled == len(m.entries) || w.metaGen != w.metaSafe || w.frozen != nil || w.sealed != nil {
			return nil // no message is to survive without its topic, or without those before it
		}
		now := time.Now()
		if now.Sub(w.handed) < handOverEvery {
			return nil
		}
		w.handed = now
		if m.pending() > littlePending {
			return nil
		}
		if err := w.journal(m); err != nil {
			return err
		}
		return m.journal.flush()
	}
	return nil
}

// journal appends to m's journal what it has not. mu is held.
func (w *writer) journal(m *memtable) error {
	if m.journaled == len(m.entries) {
		return nil
	}
	if m.journal == nil {
		j, err := createJournal(w.path(journalName(m.num)), w.spareBuf)
		if err != nil {
			return err
		}
		m.journal, w.spareBuf = j, nil
	}
	var err error
	w.scratch, err = m.unjournaled().appendTo(m.journal, w.scratch)
	m.journaled = len(m.entries)
	return err
}

// dropJournal is called when m's journal is not needed any more. mu is held.
func (w *writer) dropJournal(j *journalWriter) {
	if w.spareBuf == nil && cap(j.buf) <= 4*journalBuffer {
		w.spareBuf, j.buf = j.buf[:0], nil
	}
	j.discard()
}

// freeze hands mem to the flusher, after the one before is written. mu is held; it is given up while waiting.
func (w *writer) freeze() error {
	for w.frozen != nil && w.err == nil {
		w.changed.Wait()
	}
	if w.err != nil || len(w.mem.entries) == 0 {
		return w.err
	}
	if w.set.journal == journalWrites {
		if err := w.journal(w.mem); err != nil {
			return w.fail("write", err)
		}
		if err := w.mem.journal.flush(); err != nil {
			return w.fail("write", err)
		}
	}
	w.frozen, w.frozenSize = w.mem, int64(w.mem.size())
	if w.mem = w.spare; w.mem == nil {
		w.mem = newMemtable(&w.set)
	}
	w.spare = nil
	w.mem.num = w.newNumber()
	w.changed.Broadcast()
	return nil
}

// flushNow makes a table of mem and waits for it.
func (w *writer) flushNow() error {
	if err := w.freeze(); err != nil {
		return err
	}
	return w.waitFlushed(w.messages)
}

// waitFlushed waits until the first n messages are in tables that count.
func (w *writer) waitFlushed(n uint64) error {
	for w.flushed < n && w.err == nil {
		w.changed.Wait()
	}
	return w.err
}

// Size implements plugin.Writer. It never falls while messages are written.
func (w *writer) Size() int64 { return w.size.Load() }

// measure brings Size up to date. What is pending counts as it has compressed so far.
func (w *writer) measure() {
	pending := int64(w.mem.size()) + w.frozenSize
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
