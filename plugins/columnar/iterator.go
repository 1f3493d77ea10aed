package columnar

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"

	"github.com/gobag/gobag/plugin"
)

// loadedBytes bounds the page groups that an iterator holds beside the one it reads from.
const loadedBytes = 48 << 20

// iterator merges parts and the log by (time, order). A part's footer is read when the part may hold the next message,
// a page group the same.
type iterator struct {
	r      *reader
	dec    decoder
	lo, hi int64
	rev    bool
	topics []bool // nil: all
	parts  []*partRef
	groups []group // not yet open, of parts that are: in the order in which they are due
	open   cursors
	loaded []*cursor // that hold a page, least recently used first
	held   int64
	spare  []*page
	one    []byte // payload of a message in the log
	err    error
}

// cursor stands at a message of an open page group, or of the log where group is nil.
type cursor struct {
	group *group
	page  *page // nil: to be loaded again
	pos   int
	time  int64 // of the message
	order uint64
	log   []entry
}

// cursors is a heap: the next message on top.
type cursors struct {
	c   []*cursor
	rev bool
}

func (h *cursors) Len() int { return len(h.c) }
func (h *cursors) Less(i, j int) bool {
	a, b := h.c[i], h.c[j]
	if h.rev {
		a, b = b, a
	}
	if a.time != b.time {
		return a.time < b.time
	}
	return a.order < b.order
}
func (h *cursors) Swap(i, j int) { h.c[i], h.c[j] = h.c[j], h.c[i] }
func (h *cursors) Push(x any)    { h.c = append(h.c, x.(*cursor)) } //nolint:forcetypeassert // by this file only
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
		return nil, fmt.Errorf("read storage %s: %w", r.dir, plugin.ErrClosed)
	}
	it := &iterator{r: r, dec: decoder{r: r, fields: q.Fields}, lo: -1 << 63, hi: 1<<63 - 1, rev: q.Reverse, open: cursors{rev: q.Reverse}}
	if q.Range != nil {
		it.lo, it.hi = q.Range.Start, q.Range.End
	}
	if q.Topics != nil {
		it.topics = make([]bool, len(r.state.topics)+1)
		for _, id := range q.Topics {
			if int64(id) < int64(len(it.topics)) {
				it.topics[id] = true
			}
		}
	}
	for i := range r.state.parts {
		p := &r.state.parts[i]
		if p.end >= it.lo && p.start <= it.hi && (p.topic == 0 || it.wants(p.topic)) {
			it.parts = append(it.parts, p)
		}
	}
	slices.SortStableFunc(it.parts, func(a, b *partRef) int {
		if it.rev {
			return cmp.Compare(b.end, a.end)
		}
		return cmp.Compare(a.start, b.start)
	})
	if len(r.loose) > 0 {
		it.push(&cursor{log: r.loose})
	}
	return it, nil
}

func (it *iterator) wants(id plugin.TopicID) bool { return it.topics == nil || it.topics[id] }

// push puts a cursor in front of its first message that is asked for, and into the merge if there is one.
func (it *iterator) push(c *cursor) {
	n := c.len()
	first := sort.Search(n, func(i int) bool { t, _, _ := c.key(i); return t >= it.lo })
	if c.pos = first; it.rev {
		c.pos = sort.Search(n, func(i int) bool { t, _, _ := c.key(i); return t > it.hi }) - 1
	}
	if it.seek(c) {
		heap.Push(&it.open, c)
	} else {
		it.drop(c)
	}
}

func (c *cursor) len() int {
	if c.group == nil {
		return len(c.log)
	}
	return len(c.page.rows)
}

func (c *cursor) key(i int) (int64, uint64, plugin.TopicID) {
	if c.group == nil {
		e := &c.log[i]
		return e.time, e.order, e.topic
	}
	w := &c.page.rows[i]
	return w.time, w.order, w.topic
}

// seek moves c to the next message that is asked for, from its position on; false: there is none.
func (it *iterator) seek(c *cursor) bool {
	for n := c.len(); c.pos >= 0 && c.pos < n; c.pos += it.step() {
		t, order, topic := c.key(c.pos)
		if t > it.hi || t < it.lo {
			return false
		}
		if it.wants(topic) {
			c.time, c.order = t, order
			return true
		}
	}
	return false
}

func (it *iterator) step() int {
	if it.rev {
		return -1
	}
	return 1
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
	if err := it.openDue(); err != nil {
		return err
	}
	if it.open.Len() == 0 {
		if it.r.logErr != nil {
			return it.r.logErr
		}
		return io.EOF
	}
	c := it.open.c[0]
	if c.group == nil {
		if err := it.fromLog(&c.log[c.pos], m); err != nil {
			return err
		}
	} else {
		if err := it.use(c); err != nil {
			return err
		}
		w := &c.page.rows[c.pos]
		*m = plugin.Message{Topic: w.topic, RecvTime: w.time, SendTime: w.send, Source: w.source, Seq: w.seq, Order: w.order, Data: c.page.data[w.off : w.off+w.n : w.off+w.n]}
	}
	c.pos += it.step()
	switch {
	case it.seek(c):
		if len(it.open.c) > 1 {
			heap.Fix(&it.open, 0)
		}
	case c.group == nil:
		heap.Pop(&it.open)
	default:
		heap.Pop(&it.open)
		it.finished(c)
	}
	return nil
}

// due says whether something that begins at start, or ends at end, may hold the next message.
func (it *iterator) due(start, end int64) bool {
	if it.open.Len() == 0 {
		return true
	}
	if it.rev {
		return end >= it.open.c[0].time
	}
	return start <= it.open.c[0].time
}

// openDue opens parts and page groups until none that may hold the next message is left.
func (it *iterator) openDue() error {
	for {
		switch {
		case len(it.parts) > 0 && it.due(it.parts[0].start, it.parts[0].end) && (len(it.groups) == 0 || !it.later(it.parts[0], &it.groups[0])):
			gs, err := it.r.openPart(it.parts[0])
			if err != nil {
				return err
			}
			it.parts = it.parts[1:]
			for i := range gs {
				if gs[i].end >= it.lo && gs[i].start <= it.hi {
					it.groups = append(it.groups, gs[i])
				}
			}
			slices.SortStableFunc(it.groups, func(a, b group) int {
				if it.rev {
					return cmp.Compare(b.end, a.end)
				}
				return cmp.Compare(a.start, b.start)
			})
		case len(it.groups) > 0 && it.due(it.groups[0].start, it.groups[0].end):
			g := it.groups[0]
			it.groups = it.groups[1:]
			c := &cursor{group: &g}
			if err := it.load(c); err != nil {
				return err
			}
			it.push(c)
		default:
			return nil
		}
	}
}

// later says whether the part begins behind the page group.
func (it *iterator) later(p *partRef, g *group) bool {
	if it.rev {
		return p.end < g.end
	}
	return p.start > g.start
}

// load reads the page group of c, in place of others if there are too many.
func (it *iterator) load(c *cursor) error {
	for len(it.loaded) > 0 && it.held > loadedBytes {
		old := it.loaded[0]
		it.loaded = it.loaded[1:]
		it.recycle(old)
	}
	p := &page{}
	if n := len(it.spare); n > 0 {
		p, it.spare = it.spare[n-1], it.spare[:n-1]
	}
	if err := it.dec.load(c.group, p); err != nil {
		return err
	}
	c.page = p
	it.held += p.size()
	it.loaded = append(it.loaded, c)
	return nil
}

// use makes sure that c has its page.
func (it *iterator) use(c *cursor) error {
	if c.page != nil {
		if n := len(it.loaded); it.held > loadedBytes/2 && it.loaded[n-1] != c { // order matters when memory is short
			i := slices.Index(it.loaded, c)
			it.loaded = append(slices.Delete(it.loaded, i, i+1), c)
		}
		return nil
	}
	return it.load(c)
}

// finished drops the page of a cursor that is at its end; the caller of Next still looks at it.
func (it *iterator) finished(c *cursor) { it.drop(c) }

func (it *iterator) drop(c *cursor) {
	if c.page == nil {
		return
	}
	if i := slices.Index(it.loaded, c); i >= 0 {
		it.loaded = slices.Delete(it.loaded, i, i+1)
	}
	it.recycle(c)
}

// recycle takes the page from c. Pages lent to the caller of Next are used again only by a later call.
func (it *iterator) recycle(c *cursor) {
	it.held -= c.page.size()
	if len(it.spare) < 8 && c.page.size() < 16<<20 {
		it.spare = append(it.spare, c.page)
	}
	c.page = nil
}

// fromLog reads a message of the log.
func (it *iterator) fromLog(e *entry, m *plugin.Message) error {
	n := messageHead + int(e.n)
	if cap(it.one) < n || cap(it.one) > 1<<20 && n < 1<<16 {
		it.one = make([]byte, n+n/4)
	}
	b := it.one[:n]
	f := it.r.log[e.file]
	if _, err := f.ReadAt(b, e.off-messageHead); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
			return &plugin.CorruptError{Path: f.Name(), Offset: e.off, Err: err}
		}
		return fmt.Errorf("read storage %s: %w", it.r.dir, err)
	}
	return records(b, func(_ byte, r *plugin.Message, _ int) error {
		*m = *r
		return nil
	}, func(byte, []byte) error {
		return &plugin.CorruptError{Path: f.Name(), Offset: e.off, Err: errors.New("the log has changed")}
	})
}

func (it *iterator) free() {
	it.dec.close()
	it.loaded, it.spare, it.open.c, it.parts, it.groups = nil, nil, nil, nil, nil
}

// Close ends the iteration.
func (it *iterator) Close() error {
	it.free()
	it.one = nil
	it.err = fmt.Errorf("read storage %s: %w", it.r.dir, plugin.ErrClosed)
	return nil
}
