package rosbag1

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/gobag/gobag/plugin"
)

const (
	loadedBytes = 8 << 20 // of chunks an iterator keeps in memory, one always
	loadedCount = 16
)

// iterator merges the chunks by time: those that overlap are open at the same time, each a position in its messages.
// Chunks that cannot be read are passed over; that they were is the error at the end.
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
	lost   int
	first  error // of what was passed over
	err    error
}

// cursor is an open block and the position of its next message.
type cursor struct {
	block   int
	order   uint64
	entries []entry
	pos     int
}

// loaded is the content of a block in memory.
type loaded struct {
	block int
	src   source
	buf   []byte
	used  uint64
}

type cursors struct {
	c   []*cursor
	rev bool
}

func (h *cursors) Len() int { return len(h.c) }
func (h *cursors) Less(i, j int) bool {
	a, b := h.c[i], h.c[j]
	x, y := &a.entries[a.pos], &b.entries[b.pos]
	return (cmp.Or(cmp.Compare(x.time, y.time), cmp.Compare(a.order+uint64(x.seq), b.order+uint64(y.seq))) < 0) != h.rev
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
	it := &iterator{r: r, lo: math.MinInt64, hi: math.MaxInt64, rev: q.Reverse, open: cursors{rev: q.Reverse}}
	if q.Range != nil {
		it.lo, it.hi = q.Range.Start, q.Range.End
	}
	if q.Topics != nil {
		it.topics = make([]bool, len(r.info.Topics)+1)
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
func (it *iterator) wants(b *block) bool {
	if it.lo > it.hi || it.topics != nil && !slices.Contains(it.topics, true) {
		return false
	}
	if b.bad != nil { // what is missing of it may be anything
		return true
	}
	if b.end < it.lo || b.start > it.hi {
		return false
	}
	return it.topics == nil || slices.ContainsFunc(b.counts, func(c connCount) bool { return c.count > 0 && it.topics[it.r.route[c.conn].topic] })
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
	for {
		for len(it.todo) > 0 && (it.open.Len() == 0 || it.due(&it.r.blocks[it.todo[0]])) {
			i := it.todo[0]
			it.todo = it.todo[1:]
			if err := it.openBlock(i); err != nil {
				return err
			}
		}
		if it.open.Len() == 0 {
			if it.first == nil {
				return io.EOF
			}
			return it.damage()
		}
		c := it.open.c[0]
		e := &c.entries[c.pos]
		data, err := it.payload(c, e)
		if err != nil {
			if err := it.pass(&it.r.blocks[c.block], err); err != nil {
				return err
			}
			heap.Pop(&it.open)
			continue
		}
		to := it.r.route[e.conn]
		*m = plugin.Message{Topic: to.topic, RecvTime: e.time, Source: to.source, Order: c.order + uint64(e.seq) + 1, Data: data}
		if c.pos += it.step(); it.seek(c) {
			heap.Fix(&it.open, 0)
		} else {
			heap.Pop(&it.open)
		}
		return nil
	}
}

// damage is the end of an iteration that had to pass something over.
func (it *iterator) damage() error {
	var c *plugin.CorruptError
	errors.As(it.first, &c)
	if it.lost == 1 {
		return c
	}
	return &plugin.CorruptError{Path: c.Path, Offset: c.Offset, Err: fmt.Errorf("%w (the first of %d places that cannot be read)", c.Err, it.lost)}
}

// pass notes that a block, or the rest of it, is left out. An error that is not about the content ends everything.
func (it *iterator) pass(b *block, err error) error {
	if fatal(err) {
		return fmt.Errorf("read storage %s: %w", it.r.path, err)
	}
	it.lost++
	if it.first == nil {
		it.first = it.r.corrupt(b.off, err)
	}
	return nil
}

func (it *iterator) step() int {
	if it.rev {
		return -1
	}
	return 1
}

// due says whether a block may hold the next message.
func (it *iterator) due(b *block) bool {
	c := it.open.c[0]
	t := c.entries[c.pos].time
	if it.rev {
		return b.end >= t
	}
	return b.start <= t
}

// openBlock puts the block's first wanted message into the merge.
func (it *iterator) openBlock(i int) error {
	b := &it.r.blocks[i]
	if b.bad != nil {
		if err := it.pass(b, b.bad); err != nil {
			return err
		}
		if b.gone {
			return nil
		}
	}
	l, err := it.load(i)
	if err != nil {
		return it.pass(b, err)
	}
	entries, err := it.r.parse(l.src, false)
	if err == nil || b.bad != nil || b.cut {
		err = b.compare(entries)
	}
	if err != nil {
		return it.pass(b, err)
	}
	slices.SortStableFunc(entries, func(x, y entry) int { return cmp.Compare(x.time, y.time) })
	c := &cursor{block: i, order: b.order, entries: entries}
	if it.rev {
		c.pos = len(entries) - 1
	}
	if it.seek(c) {
		heap.Push(&it.open, c)
	}
	return nil
}

// compare says where the messages of a chunk are not those that were announced.
func (b *block) compare(entries []entry) error {
	if uint64(len(entries)) != b.count {
		return fmt.Errorf("the chunk holds %d messages, %d were expected", len(entries), b.count)
	}
	counts := make(map[uint32]uint32, len(b.counts))
	for _, e := range entries {
		counts[e.conn]++
		if e.time < b.start || e.time > b.end {
			return fmt.Errorf("a message of the chunk has a time that the index does not give it")
		}
	}
	for _, c := range b.counts {
		if counts[c.conn] != c.count {
			return fmt.Errorf("the chunk holds %d messages of connection %d, %d were expected", counts[c.conn], c.conn, c.count)
		}
	}
	return nil
}

// seek moves c to the next message that is asked for, from its position on; false: there is none.
func (it *iterator) seek(c *cursor) bool {
	for ; c.pos >= 0 && c.pos < len(c.entries); c.pos += it.step() {
		e := &c.entries[c.pos]
		if e.time < it.lo || e.time > it.hi {
			continue
		}
		to, ok := it.r.route[e.conn]
		if ok && (it.topics == nil || it.topics[to.topic]) {
			return true
		}
	}
	return false
}

// payload returns the message that c stands at.
func (it *iterator) payload(c *cursor, e *entry) ([]byte, error) {
	l := it.find(c.block)
	if l == nil {
		var err error
		if l, err = it.load(c.block); err != nil {
			return nil, err
		}
	}
	if w, ok := l.src.(*window); ok && int64(e.n) > windowStep {
		if int64(cap(it.one)) > wholeChunk && int64(e.n) <= wholeChunk {
			it.one = nil
		}
		it.one = grow(it.one, int64(e.n))
		_, err := w.f.ReadAt(it.one, w.base+int64(e.off))
		return it.one, err
	}
	return l.src.peek(int64(e.off), int64(e.n))
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

// load brings a block into memory, in place of the one not used for longest if there are too many.
func (it *iterator) load(i int) (*loaded, error) {
	if l := it.find(i); l != nil {
		return l, nil
	}
	b := &it.r.blocks[i]
	total := int64(0)
	for _, l := range it.loaded {
		total += int64(cap(l.buf))
	}
	var l *loaded
	if len(it.loaded) > 0 && (total >= loadedBytes || len(it.loaded) >= loadedCount) {
		l = slices.MinFunc(it.loaded, func(a, b *loaded) int { return cmp.Compare(a.used, b.used) })
	} else {
		l = &loaded{}
		it.loaded = append(it.loaded, l)
	}
	l.block, l.src = -1, nil
	if cap(l.buf) > loadedBytes {
		l.buf = nil
	}
	src, buf, err := it.r.content(b, l.buf)
	l.buf = buf
	if err != nil {
		return nil, err
	}
	it.clock++
	l.block, l.src, l.used = i, src, it.clock
	return l, nil
}

func (it *iterator) free() { it.loaded, it.open.c, it.todo, it.one = nil, nil, nil, nil }

// Close ends the iteration.
func (it *iterator) Close() error {
	it.free()
	it.err = fmt.Errorf("read storage %s: %w", it.r.path, plugin.ErrClosed)
	return nil
}
