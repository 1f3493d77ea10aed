package leveldb

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/gobag/gobag/plugin"
)

// memtable is a write buffer: messages that are not yet in a table.
type memtable struct {
	num     uint64 // of its journal
	data    []byte // values, one behind the other
	entries []memEntry
	seq     uint64 // LevelDB's sequence number, in the journal, of the entry that came first
	sorted  bool
	counts  []count // by topic id − 1

	journal   *journalWriter // nil until something is journaled
	journaled int            // entries that the journal has
}

// memEntry is a message in a memtable.
type memEntry struct {
	stamp
	off, n uint32 // in data
}

const memEntrySize = 24

// size is the memory in use.
func (m *memtable) size() int { return len(m.data) + memEntrySize*len(m.entries) }

// reserve makes room for n bytes: little for a storage that takes little, and the whole write buffer, limit, at once for
// others, since growing bit by bit leaves as much garbage behind.
func (m *memtable) reserve(n, limit int) {
	need := len(m.data) + n
	if need <= cap(m.data) {
		return
	}
	size := limit
	if need < 256<<10 {
		size = 2 * need
	}
	m.data = append(make([]byte, 0, max(need, size)), m.data...)
}

func (m *memtable) add(msg *plugin.Message, order uint64) {
	s := stamp{msg.RecvTime, order}
	off := len(m.data)
	m.data = appendHeader(m.data, msg)
	m.data = append(m.data, msg.Data...)
	if n := len(m.entries); n > 0 && s.less(m.entries[n-1].stamp) {
		m.sorted = false
	}
	m.entries = append(m.entries, memEntry{s, uint32(off), uint32(len(m.data) - off)})
	for int(msg.Topic) > len(m.counts) {
		m.counts = append(m.counts, count{})
	}
	m.counts[msg.Topic-1].add(msg.RecvTime, len(msg.Data))
}

func (m *memtable) value(e *memEntry) []byte { return m.data[e.off : e.off+e.n] }

// pending is the number of bytes that the journal has not.
func (m *memtable) pending() int {
	if m.journaled == len(m.entries) {
		return 0
	}
	return len(m.data) - int(m.entries[m.journaled].off)
}

// journalPending appends to the journal what it has not, as one batch. It needs entries in the order of writing.
func (m *memtable) journalPending(scratch []byte) ([]byte, error) {
	es := m.entries[m.journaled:]
	if len(es) == 0 {
		return scratch, nil
	}
	const perEntry = 1 + 1 + messageKeySize // type, length of the key, key
	total := batchHeader
	for i := range es {
		total += perEntry + uvarintLen(uint64(es[i].n)) + int(es[i].n)
	}
	j := m.journal
	if err := j.begin(total); err != nil {
		return scratch, err
	}
	scratch = appendBatchHeader(scratch[:0], m.seq+uint64(m.journaled), len(es))
	for i := range es {
		scratch = append(scratch, typeValue, messageKeySize)
		scratch = appendMessageKey(scratch, es[i].stamp)
		scratch = binary.AppendUvarint(scratch, uint64(es[i].n))
		if err := j.add(scratch); err != nil {
			return scratch, err
		}
		if err := j.add(m.value(&es[i])); err != nil {
			return scratch, err
		}
		scratch = scratch[:0]
	}
	m.journaled = len(m.entries)
	return scratch, nil
}

func uvarintLen(n uint64) int {
	k := 1
	for ; n >= 0x80; n >>= 7 {
		k++
	}
	return k
}

// sort brings entries into the order of keys.
func (m *memtable) sort() {
	if !m.sorted {
		slices.SortFunc(m.entries, func(a, b memEntry) int {
			return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.order, b.order))
		})
	}
}

// reset empties the memtable, keeping its memory unless that is far more than limit.
func (m *memtable) reset(limit int) {
	if cap(m.data) > 2*limit {
		m.data = nil
	}
	clear(m.counts)
	*m = memtable{data: m.data[:0], entries: m.entries[:0], counts: m.counts, sorted: true}
}

// byTopic returns the counts of topics that have messages.
func (m *memtable) byTopic() counts {
	cs := counts{}
	for i, c := range m.counts {
		if c.messages > 0 {
			cs[plugin.TopicID(i+1)] = c
		}
	}
	return cs
}
