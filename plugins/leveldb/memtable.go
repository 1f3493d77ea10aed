package leveldb

import (
	"encoding/binary"
	"slices"

	"github.com/gobag/gobag/plugin"
)

// memtable is a write buffer: messages that are not yet in a table. Where they come in order, and are not to be
// compressed, it has the bytes that the table will have, so that these need not be copied again.
type memtable struct {
	num     uint64 // of its journal
	plain   bool   // table holds values only
	table   tableWriter
	entries []memEntry
	seq     uint64 // LevelDB's sequence number, in the journal, of the entry that came first
	sorted  bool
	counts  []count // by topic id − 1
	header  []byte  // memory for add
	key     []byte  // the same

	journal   *journalWriter // nil until something is journaled
	journaled int            // entries that the journal has
	pinned    bool           // a Sync reads it; entries and data may grow meanwhile
}

// memEntry is a message in a memtable.
type memEntry struct {
	stamp
	off, n uint32 // of the value, in table.out
}

const (
	memEntrySize = 24
	memOverhead  = maxHeader + 3*binary.MaxVarintLen32 + messageKeySize + trailerSize + 2*4 + blockTrailer // around a payload, at most
)

func newMemtable(s *settings) *memtable {
	return &memtable{sorted: true, plain: s.snappy, table: tableWriter{blockSize: s.block, unpushed: !s.syncTables}}
}

// size is the memory in use.
func (m *memtable) size() int { return len(m.table.out) + memEntrySize*len(m.entries) }

// reserve makes room for n bytes: little for a storage that takes little, and the whole write buffer, limit, at once for
// others, since growing bit by bit leaves as much garbage behind.
func (m *memtable) reserve(n, limit int) {
	need := len(m.table.out) + n
	if need <= cap(m.table.out) {
		return
	}
	size := limit
	if need < 256<<10 {
		size = 2 * need
	} else if n := len(m.entries); n > 0 {
		whole := limit / (len(m.table.out)/n + memEntrySize) // entries, if all are as those that are there
		m.entries = slices.Grow(m.entries, max(0, whole+whole/16-n))
	}
	m.table.out = append(make([]byte, 0, max(need, size)), m.table.out...)
}

// add takes in a message. There must be room.
func (m *memtable) add(msg *plugin.Message, order uint64) {
	s := stamp{msg.RecvTime, order}
	if n := len(m.entries); n > 0 && s.less(m.entries[n-1].stamp) {
		m.sorted = false
	}
	m.header = appendHeader(m.header[:0], msg)
	t := &m.table
	inTable := m.sorted && !m.plain
	if inTable {
		m.key = binary.LittleEndian.AppendUint64(appendMessageKey(m.key[:0], s), typeValue)
		t.addKey(m.key, len(m.header)+len(msg.Data))
	}
	off := len(t.out)
	t.out = append(append(t.out, m.header...), msg.Data...)
	if len(m.entries) == cap(m.entries) { // append grows by less and leaves more behind
		m.entries = slices.Grow(m.entries, max(256, len(m.entries)))
	}
	m.entries = append(m.entries, memEntry{s, uint32(off), uint32(len(t.out) - off)})
	if inTable && t.blockLen() >= t.blockSize {
		_ = t.endBlock() // nothing is written here
	}
	for int(msg.Topic) > len(m.counts) {
		m.counts = append(m.counts, count{})
	}
	m.counts[msg.Topic-1].add(msg.RecvTime, len(msg.Data))
}

func (m *memtable) value(e *memEntry) []byte { return m.table.out[e.off : e.off+e.n] }

// pending is about the number of bytes that the journal has not.
func (m *memtable) pending() int {
	if m.journaled == len(m.entries) {
		return 0
	}
	return len(m.table.out) - int(m.entries[m.journaled].off)
}

// sort brings entries into the order of keys.
func (m *memtable) sort() {
	if !m.sorted && !settle(m.entries) {
		slices.SortFunc(m.entries, func(a, b memEntry) int { return compareStamps(a.stamp, b.stamp) })
	}
}

// settle sorts by insertion, which costs next to nothing where topics were merely a little late among each other. It
// returns false, and leaves some other order, when that becomes too much.
func settle(es []memEntry) bool {
	moves := 16 * len(es)
	for i := 1; i < len(es); i++ {
		e := es[i]
		k := i
		for ; k > 0 && e.less(es[k-1].stamp); k-- {
			es[k] = es[k-1]
			if moves--; moves < 0 {
				es[k-1] = e
				return false
			}
		}
		es[k] = e
	}
	return true
}

// reset empties the memtable, keeping its memory unless that is far more than limit.
func (m *memtable) reset(limit int) {
	if cap(m.table.out) > 2*limit {
		m.table.out = nil
	}
	clear(m.counts)
	m.table.reset(nil)
	*m = memtable{plain: m.plain, table: m.table, entries: m.entries[:0], sorted: true, counts: m.counts, header: m.header, key: m.key}
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

// unjournaled is what a journal does not have of a memtable. It stays valid while the memtable is pinned.
type unjournaled struct {
	entries []memEntry
	data    []byte
	seq     uint64
}

func (m *memtable) unjournaled() unjournaled {
	return unjournaled{m.entries[m.journaled:], m.table.out, m.seq + uint64(m.journaled)}
}

// journalRecord is about how many bytes a record of the journal has: of one that is torn all messages are lost.
const journalRecord = 16 << 10

// appendTo appends it to a journal as batches.
func (u unjournaled) appendTo(j *journalWriter, scratch []byte) ([]byte, error) {
	const perEntry = 1 + 1 + messageKeySize // type, length of the key, key
	for len(u.entries) > 0 {
		n, total := 0, batchHeader
		for ; n < len(u.entries) && total < journalRecord; n++ {
			v := u.entries[n].n
			total += perEntry + uvarintLen(uint64(v)) + int(v)
		}
		if err := j.begin(total); err != nil {
			return scratch, err
		}
		scratch = appendBatchHeader(scratch[:0], u.seq, n)
		for i := range u.entries[:n] {
			e := &u.entries[i]
			scratch = append(scratch, typeValue, messageKeySize)
			scratch = appendMessageKey(scratch, e.stamp)
			scratch = binary.AppendUvarint(scratch, uint64(e.n))
			if err := j.add(scratch); err != nil {
				return scratch, err
			}
			if err := j.add(u.data[e.off : e.off+e.n]); err != nil {
				return scratch, err
			}
			scratch = scratch[:0]
		}
		u.entries = u.entries[n:]
		u.seq += uint64(n)
	}
	return scratch, nil
}

func uvarintLen(n uint64) int {
	k := 1
	for ; n >= 0x80; n >>= 7 {
		k++
	}
	return k
}
