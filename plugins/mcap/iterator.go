package mcap

import (
	"cmp"
	"container/heap"
	"fmt"
	"io"
	"slices"

	"github.com/gobag/gobag/plugin"
)

const (
	loadedBytes = 8 << 20 // of blocks an iterator keeps in memory, one always
	loadedCount = 16
	singleReads = 2 // messages of a block read one by one before the whole block is
)

// iterator merges the blocks by time: those that overlap are open at the same time, each a position in its index.
type iterator struct {
	r      *reader
	topics []bool // by topic, nil: all
	lo, hi int64
	rev    bool
	todo   []int // blocks not yet open, by start (reverse: by end, backwards)
	open   cursors
	loaded []*loaded
	one    []byte // a message read by itself
	clock  uint64
	err    error
}

// cursor is an open block and the position of its next message.
type cursor struct {
	block   int
	x       *blockIndex
	pos     int
	singles int
}

func (c *cursor) entry() *entry { return &c.x.entries[c.pos] }

// loaded are the records of a block in memory.
type loaded struct {
	block   int
	records []byte
	used    uint64
	buf     buffers
}

type cursors struct {
	c   []*cursor
	rev bool
}

func (h *cursors) Len() int { return len(h.c) }
func (h *cursors) Less(i, j int) bool {
	a, b := h.c[i].entry(), h.c[j].entry()
	return (cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.order, b.order)) < 0) != h.rev
}
func (h *cursors) Swap(i, j int) { h.c[i], h.c[j] = h.c[j], h.c[i] }
func (h *cursors) Push(x any)    { h.c = append(h.c, x.(*cursor)) }
func (h *cursors) Pop() any {
	c := h.c[len(h.c)-1]
	h.c = h.c[:len(h.c)-1]
	return c
}

// Messages returns the messages that match q.
func (r *reader) Messages(q plugin.Query) (plugin.Iterator, error) {
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("read storage %s: %w", r.path, plugin.ErrClosed)
	}
	it := &iterator{r: r, lo: -1 << 63, hi: 1<<63 - 1, rev: q.Reverse, open: cursors{rev: q.Reverse}}
	if q.Range != nil {
		it.lo, it.hi = q.Range.Start, q.Range.End
	}
	if q.Topics != nil {
		it.topics = make([]bool, len(r.topics)+1)
		for _, id := range q.Topics {
			if int64(id) < int64(len(it.topics)) {
				it.topics[id] = true
			}
		}
	}
	for i := range r.blocks {
		if it.wants(&r.blocks[i]) {
			it.todo = append(it.todo, i)
		}
	}
	slices.SortStableFunc(it.todo, func(a, b int) int {
		if it.rev {
			return cmp.Compare(r.blocks[b].end, r.blocks[a].end)
		}
		return cmp.Compare(r.blocks[a].start, r.blocks[b].start)
	})
	return it, nil
}

// wants says whether a block may hold messages that are asked for.
func (it *iterator) wants(k *block) bool {
	if k.end < it.lo || k.start > it.hi {
		return false
	}
	if it.topics == nil || k.channels == nil {
		return true
	}
	return slices.ContainsFunc(k.channels, func(c uint16) bool { return it.topics[it.r.byChannel[c]] })
}

// Next fills m with the next message.
func (it *iterator) Next(m *plugin.Message) error {
	if it.err != nil {
		return it.err
	}
	if it.err = it.next(m); it.err != nil {
		it.free()
	}
	return it.err
}

func (it *iterator) next(m *plugin.Message) error {
	for len(it.todo) > 0 && (it.open.Len() == 0 || it.due(&it.r.blocks[it.todo[0]])) {
		if err := it.openBlock(it.todo[0]); err != nil {
			return err
		}
		it.todo = it.todo[1:]
	}
	if it.open.Len() == 0 {
		return io.EOF
	}
	c := it.open.c[0]
	rec, err := it.content(c)
	if err != nil {
		return err
	}
	*m = c.entry().message(rec)
	if c.pos += it.step(); it.seek(c) {
		heap.Fix(&it.open, 0)
	} else {
		heap.Pop(&it.open)
	}
	return nil
}

func (it *iterator) step() int {
	if it.rev {
		return -1
	}
	return 1
}

// message is the message of e, whose record's content is rec. It lends rec.
func (e *entry) message(rec []byte) plugin.Message {
	m := plugin.Message{Topic: e.topic, RecvTime: e.time, SendTime: int64(le.Uint64(rec[14:])), Source: e.source,
		Seq: uint64(e.high)<<32 | uint64(le.Uint32(rec[2:])), Order: e.order, Data: rec[messageHead:]}
	if e.noSend {
		m.SendTime = 0
	}
	return m
}

// due says whether a block may hold the next message.
func (it *iterator) due(k *block) bool {
	t := it.open.c[0].entry().time
	if it.rev {
		return k.end >= t
	}
	return k.start <= t
}

// openBlock puts the block's first wanted message into the merge.
func (it *iterator) openBlock(i int) error {
	x := it.r.indexOf(i)
	if x == nil || it.r.blocks[i].bad != nil {
		var err error
		if x, err = it.load(i); err != nil {
			return err
		}
	}
	c := &cursor{block: i, x: x}
	byTime := func(e entry, t int64) int { return cmp.Compare(e.time, t) }
	if it.rev {
		c.pos = len(x.entries) - 1
		if it.hi < 1<<63-1 {
			n, _ := slices.BinarySearchFunc(x.entries, it.hi+1, byTime)
			c.pos = n - 1
		}
	} else {
		c.pos, _ = slices.BinarySearchFunc(x.entries, it.lo, byTime)
	}
	if it.seek(c) {
		heap.Push(&it.open, c)
	}
	return nil
}

// seek moves c to the next message that is asked for, from its position on; false: there is none.
func (it *iterator) seek(c *cursor) bool {
	for ; c.pos >= 0 && c.pos < len(c.x.entries); c.pos += it.step() {
		e := c.entry()
		if e.time > it.hi || e.time < it.lo {
			return false
		}
		if it.topics == nil || it.topics[e.topic] {
			return true
		}
	}
	return false
}

// content returns the content of the message record c stands at.
func (it *iterator) content(c *cursor) ([]byte, error) {
	e := c.entry()
	l := it.find(c.block)
	if l == nil && c.x.base >= 0 && (c.singles < singleReads || it.open.Len() > loadedCount) {
		c.singles++
		if int64(cap(it.one)) > 1<<20 && int64(e.n) < 1<<20 {
			it.one = nil
		}
		it.one = grow(it.one, int64(e.n))
		if _, err := it.r.f.ReadAt(it.one, c.x.base+int64(e.off)); err != nil {
			return nil, it.r.corrupt(c.x.base+int64(e.off), err)
		}
		return it.one, nil
	}
	if l == nil {
		if _, err := it.load(c.block); err != nil {
			return nil, err
		}
		l = it.find(c.block)
	}
	if uint64(e.off)+uint64(e.n) > uint64(len(l.records)) {
		return nil, it.r.corrupt(it.r.blocks[c.block].off, fmt.Errorf("the chunk has changed"))
	}
	return l.records[e.off : e.off+e.n], nil
}

func (it *iterator) find(block int) *loaded {
	for _, l := range it.loaded {
		if l.block == block {
			it.clock++
			l.used = it.clock
			return l
		}
	}
	return nil
}

// load reads a block into memory, in place of the one not used for longest if there are too many.
func (it *iterator) load(i int) (*blockIndex, error) {
	total := it.r.blocks[i].length
	for _, l := range it.loaded {
		total += int64(cap(l.buf.raw) + cap(l.buf.out))
	}
	var l *loaded
	if len(it.loaded) > 0 && (total > loadedBytes || len(it.loaded) >= loadedCount) {
		l = slices.MinFunc(it.loaded, func(a, b *loaded) int { return cmp.Compare(a.used, b.used) })
	} else {
		l = &loaded{}
		it.loaded = append(it.loaded, l)
	}
	l.block = -1
	if cap(l.buf.raw)+cap(l.buf.out) > loadedBytes && it.r.blocks[i].length < loadedBytes {
		l.buf.raw, l.buf.out = nil, nil
	}
	records, base, crc, err := it.r.records(&it.r.blocks[i], &l.buf)
	if err != nil {
		return nil, err
	}
	x := it.r.indexOf(i)
	if x == nil {
		if x, err = it.r.index(i, records, base, crc); err != nil {
			return nil, err
		}
		it.r.keep(i, x)
	}
	it.clock++
	l.block, l.records, l.used = i, records, it.clock
	return x, nil
}

func (it *iterator) free() {
	for _, l := range it.loaded {
		l.buf.close()
	}
	it.loaded, it.open.c, it.todo, it.one = nil, nil, nil, nil
}

// Close ends the iteration.
func (it *iterator) Close() error {
	it.free()
	it.err = fmt.Errorf("read storage %s: %w", it.r.path, plugin.ErrClosed)
	return nil
}
