package leveldb

import (
	"io"
	"math"

	"github.com/gobag/gobag/plugin"
)

// part is a database of a reader: our storages have one, those of the C++ plugin one for each topic.
type part struct {
	db    *database
	topic plugin.TopicID // of all messages; 0 where the values say
}

// iterator merges the tables and journals of a reader. A table is opened when its turn comes. Its memory serves one query
// after the other.
type iterator struct {
	r       *reader
	want    []bool // by topic id; nil for all
	reverse bool
	from    stamp
	until   stamp

	waiting []*messageTable // tables not yet looked at; the end is next in reverse
	heap    []*cursor
	advance bool // the first of heap was returned and must go on
	last    stamp
	any     bool // last is set
	err     error

	spare    []*cursor  // not in use, for their buffers
	journals []cursor   // over what journals held, by part
	ahead    *lookahead // nil where no row of tables is read
}

// spareCursors is how many cursors an iterator keeps for later.
const spareCursors = 4

// begin starts a query. Nothing of the one before is left but memory.
func (it *iterator) begin(q plugin.Query) {
	*it = iterator{r: it.r, reverse: q.Reverse, from: stamp{math.MinInt64, 0}, until: stamp{math.MaxInt64, math.MaxUint64},
		heap: it.heap[:0], spare: it.spare, journals: it.journals}
	if q.Range != nil {
		it.from.time, it.until.time = q.Range.Start, q.Range.End
	}
	if q.Topics != nil && !it.choose(q.Topics) || it.until.less(it.from) {
		it.err = io.EOF
		return
	}
	it.waiting = it.r.tables.between(it.from, it.until, it.reverse)
	if it.journals == nil {
		it.journals = make([]cursor, len(it.r.parts))
	}
	for i := range it.r.parts {
		p := &it.r.parts[i]
		if len(p.db.mem) == 0 || !it.wants(p) {
			continue
		}
		c := &it.journals[i]
		*c = cursor{order: &p.db.order, topic: p.topic, reverse: it.reverse, ms: p.db.mem}
		if ok, _ := c.start(it.origin()); ok { // memory does not fail
			it.push(c)
		}
	}
}

// choose sets the topics to be returned; false if there are none.
func (it *iterator) choose(topics []plugin.TopicID) bool {
	it.want = make([]bool, len(it.r.info.Topics)+1)
	some := false
	for _, id := range topics {
		if id > 0 && uint64(id) < uint64(len(it.want)) {
			it.want[id], some = true, true
		}
	}
	return some
}

// wants says whether a part may hold messages that are asked for.
func (it *iterator) wants(p *part) bool { return p.topic == 0 || it.want == nil || it.want[p.topic] }

// origin is the stamp that iteration starts with.
func (it *iterator) origin() stamp {
	if it.reverse {
		return it.until
	}
	return it.from
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
	t := c.table
	c.leave()
	it.r.cache.release(t)
	if cap(c.window) <= 2*readAhead && cap(c.dec) <= 2*readAhead && len(it.spare) < spareCursors {
		it.spare = append(it.spare, c)
	}
}

// tableCursor returns a cursor with the buffers of one that is done, of one that has read this table if there is any.
func (it *iterator) tableCursor(t *tableFile, p *part) *cursor {
	if len(it.spare) == 0 {
		it.spare = append(it.spare, &cursor{})
	}
	end := len(it.spare) - 1
	for i, c := range it.spare {
		if c.loaded == t {
			it.spare[i], it.spare[end] = it.spare[end], c
		}
	}
	c := it.spare[end]
	it.spare = it.spare[:end]
	c.reset(t, &p.db.order, p.topic, it.reverse)
	return c
}

// next is plugin.Iterator's Next.
func (it *iterator) next(m *plugin.Message) error {
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
			return it.stop(it.behind())
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
	for tables := it.waiting; ; tables = it.waiting {
		m := it.due()
		if m == nil {
			break
		}
		t, err := it.r.cache.acquireMessages(m)
		if err != nil {
			return err
		}
		c := it.tableCursor(t, m.part)
		c.inOrder = !it.reverse && it.from.less(m.first) // a row of tables
		if c.inOrder && it.ahead == nil && !it.until.less(m.last) {
			it.ahead = lookAhead(it, tables)
		}
		if c.inOrder {
			c.ahead = it.ahead
		}
		ok, err := c.start(it.origin())
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
		return it.behind()
	}
	return nil
}

// due takes the next table off waiting that begins, in the iterator's direction, no later than the entry that is next;
// nil if there is none.
func (it *iterator) due() *messageTable {
	for n := len(it.waiting); n > 0; n = len(it.waiting) {
		t := it.waiting[0]
		rest := it.waiting[1:]
		if it.reverse {
			t, rest = it.waiting[n-1], it.waiting[:n-1]
		}
		if t.last.less(it.from) || it.until.less(t.first) || !it.wants(t.part) {
			it.waiting = rest
			continue
		}
		if len(it.heap) > 0 {
			next := it.heap[0].current().stamp
			if it.reverse && t.last.less(next) || !it.reverse && next.less(t.first) {
				return nil
			}
		}
		it.waiting = rest
		return t
	}
	return nil
}

// behind is what comes behind the last message: the damage of a journal if there is one.
func (it *iterator) behind() error {
	for i := range it.r.parts {
		if err := it.r.parts[i].db.damage; err != nil {
			return err
		}
	}
	return io.EOF
}

func (it *iterator) stop(err error) error {
	it.err = err
	it.end()
	return err
}

func (it *iterator) corrupt(c *cursor, err error) error {
	if c.table == nil {
		return &plugin.CorruptError{Path: it.r.path, Offset: -1, Err: err}
	}
	return c.table.corrupt(c.table.index[c.block].off, "%v", err)
}

// end lets go of all tables.
func (it *iterator) end() {
	if it.ahead != nil {
		it.ahead.stop()
		it.ahead = nil
	}
	for i, c := range it.heap {
		it.release(c)
		it.heap[i] = nil
	}
	it.heap, it.waiting = it.heap[:0], nil
}

// query is a plugin.Iterator: an iterator that is given back when it is closed.
type query struct{ it *iterator }

// Next implements plugin.Iterator.
func (q *query) Next(m *plugin.Message) error {
	if q.it == nil {
		return plugin.ErrClosed
	}
	return q.it.next(m)
}

// Close implements plugin.Iterator.
func (q *query) Close() error {
	if it := q.it; it != nil {
		q.it = nil
		it.end()
		it.r.giveBack(it)
	}
	return nil
}
