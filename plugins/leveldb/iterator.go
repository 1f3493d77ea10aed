package leveldb

import (
	"cmp"
	"io"
	"math"
	"slices"

	"github.com/gobag/gobag/plugin"
)

// part is a database of a reader: our storages have one, those of the C++ plugin one for each topic.
type part struct {
	db    *database
	topic plugin.TopicID // of all messages; 0 where the values say
}

// iterator merges the tables and journals of a reader. A table is opened when its turn comes.
type iterator struct {
	r       *reader
	want    []bool // by topic id; nil for all
	reverse bool
	from    stamp
	until   stamp

	waiting []waiting // tables not yet opened, by the stamp they begin with in the iterator's direction
	heap    []*cursor
	advance bool // the first of heap was returned and must go on
	last    stamp
	any     bool // last is set
	err     error
	closed  bool
}

// waiting is a table that is not yet opened.
type waiting struct {
	t     *messageTable
	part  *part
	begin stamp
}

func (r *reader) newIterator(q plugin.Query) *iterator {
	it := &iterator{r: r, reverse: q.Reverse, from: stamp{math.MinInt64, 0}, until: stamp{math.MaxInt64, math.MaxUint64}}
	if q.Range != nil {
		it.from.time, it.until.time = q.Range.Start, q.Range.End
	}
	if q.Topics != nil {
		it.want = make([]bool, len(r.info.Topics)+1)
		some := false
		for _, id := range q.Topics {
			if id > 0 && uint64(id) < uint64(len(it.want)) {
				it.want[id], some = true, true
			}
		}
		if !some {
			it.err = io.EOF
			return it
		}
	}
	if it.until.less(it.from) {
		it.err = io.EOF
		return it
	}
	for i := range r.parts {
		it.addPart(&r.parts[i])
	}
	slices.SortFunc(it.waiting, func(a, b waiting) int { return it.compare(a.begin, b.begin) })
	return it
}

func (it *iterator) addPart(p *part) {
	if p.topic != 0 && it.want != nil && !it.want[p.topic] {
		return
	}
	for i := range p.db.tables {
		t := &p.db.tables[i]
		if t.last.less(it.from) || it.until.less(t.first) {
			continue
		}
		begin := t.first
		if it.reverse {
			begin = t.last
		}
		it.waiting = append(it.waiting, waiting{t, p, begin})
	}
	c := &cursor{order: &p.db.order, topic: p.topic, reverse: it.reverse, ms: p.db.mem}
	if ok, _ := c.start(it.begin()); ok { // memory does not fail
		it.push(c)
	}
}

// begin is the stamp that iteration starts with.
func (it *iterator) begin() stamp {
	if it.reverse {
		return it.until
	}
	return it.from
}

func (it *iterator) compare(a, b stamp) int {
	c := cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.order, b.order))
	if it.reverse {
		return -c
	}
	return c
}

// before orders cursors; of equal stamps, the newer entry comes first in both directions.
func (it *iterator) before(a, b *cursor) bool {
	x, y := a.current(), b.current()
	if x.stamp == y.stamp {
		return x.seq > y.seq
	}
	return x.stamp.less(y.stamp) != it.reverse
}

func (it *iterator) push(c *cursor) {
	it.heap = append(it.heap, c)
	for i := len(it.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !it.before(it.heap[i], it.heap[up]) {
			return
		}
		it.heap[i], it.heap[up] = it.heap[up], it.heap[i]
		i = up
	}
}

func (it *iterator) sink() {
	for i := 0; ; {
		k := 2*i + 1
		if k >= len(it.heap) {
			return
		}
		if k+1 < len(it.heap) && it.before(it.heap[k+1], it.heap[k]) {
			k++
		}
		if !it.before(it.heap[k], it.heap[i]) {
			return
		}
		it.heap[i], it.heap[k] = it.heap[k], it.heap[i]
		i = k
	}
}

func (it *iterator) pop() {
	c := it.heap[0]
	n := len(it.heap) - 1
	it.heap[0], it.heap[n] = it.heap[n], nil
	it.heap = it.heap[:n]
	it.sink()
	it.release(c)
}

func (it *iterator) release(c *cursor) {
	if c.table == nil {
		return
	}
	it.r.cache.release(c.table)
	c.table = nil
	if cap(c.window) <= 2*readAhead && cap(c.dec) <= 2*readAhead {
		it.r.pool.Put(c)
	}
}

// tableCursor returns a cursor with the buffers of one that is done.
func (it *iterator) tableCursor(t *tableFile, p *part) *cursor {
	c, ok := it.r.pool.Get().(*cursor)
	if !ok {
		c = &cursor{}
	}
	*c = cursor{table: t, order: &p.db.order, topic: p.topic, reverse: it.reverse, window: c.window[:0], dec: c.dec, keepAlive: c.keepAlive[:0]}
	return c
}

// Next implements plugin.Iterator.
func (it *iterator) Next(m *plugin.Message) error {
	if it.closed {
		return plugin.ErrClosed
	}
	if it.err != nil {
		return it.err
	}
	for {
		if err := it.step(); err != nil {
			return it.stop(err)
		}
		c := it.heap[0]
		e := c.current()
		if it.until.less(e.stamp) || e.stamp.less(it.from) {
			return it.stop(it.end())
		}
		it.advance = true
		if it.any && it.last == e.stamp {
			continue // an older state of the same key
		}
		it.last, it.any = e.stamp, true
		if e.kind == typeDeletion {
			continue
		}
		if c.topic != 0 {
			*m = plugin.Message{Topic: c.topic, RecvTime: e.time, SendTime: e.time, Order: e.stamp.order, Data: e.value}
			return nil
		}
		if it.want != nil {
			if id := valueTopic(e.value); id != 0 && (uint64(id) >= uint64(len(it.want)) || !it.want[id]) {
				if int64(id) <= int64(len(it.r.info.Topics)) {
					continue
				}
			}
		}
		m.RecvTime, m.Order = e.time, e.stamp.order
		err := parseValue(e.value, m)
		if err == nil && int64(m.Topic) > int64(len(it.r.info.Topics)) {
			err = errTopic
		}
		if err != nil {
			return it.stop(it.corrupt(c, err))
		}
		return nil
	}
}

// step goes on to the next entry: heap[0] is it afterwards. io.EOF at the end.
func (it *iterator) step() error {
	if it.advance {
		it.advance = false
		ok, err := it.heap[0].next()
		if err != nil {
			return err
		}
		if ok {
			it.sink()
		} else {
			it.pop()
		}
	}
	for len(it.waiting) > 0 && (len(it.heap) == 0 || it.compare(it.waiting[0].begin, it.heap[0].current().stamp) <= 0) {
		next := it.waiting[0]
		it.waiting = it.waiting[1:]
		t, err := it.r.cache.acquire(next.t.path, next.t.size)
		if err != nil {
			return err
		}
		c := it.tableCursor(t, next.part)
		ok, err := c.start(it.begin())
		if err != nil || !ok {
			it.release(c)
			if err != nil {
				return err
			}
			continue
		}
		it.push(c)
	}
	if len(it.heap) == 0 {
		return it.end()
	}
	return nil
}

// end is what comes behind the last message: the damage of a journal if there is one.
func (it *iterator) end() error {
	for i := range it.r.parts {
		if err := it.r.parts[i].db.damage; err != nil {
			return err
		}
	}
	return io.EOF
}

func (it *iterator) stop(err error) error {
	it.err = err
	it.free()
	return err
}

func (it *iterator) corrupt(c *cursor, err error) error {
	if c.table == nil {
		return &plugin.CorruptError{Path: it.r.path, Offset: -1, Err: err}
	}
	return c.table.corrupt(c.table.index[c.block].off, "%v", err)
}

func (it *iterator) free() {
	for _, c := range it.heap {
		it.release(c)
	}
	it.heap, it.waiting = nil, nil
}

// Close implements plugin.Iterator.
func (it *iterator) Close() error {
	if !it.closed {
		it.closed = true
		it.free()
	}
	return nil
}
