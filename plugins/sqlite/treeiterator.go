package sqlite

import (
	"io"
	"math"
	"slices"
	"time"

	"github.com/gobag/gobag/plugin"
)

// pointRange is how long a range may be that is read as a point: its pages come into memory as they are touched, which
// keeps a whole processor waiting where they have to be read. Of longer ranges whole pieces are brought in first, if the
// system can do that; if not, they are read through SQLite.
const pointRange = int64(time.Millisecond)

// point says whether a query is read as a point.
func point(q plugin.Query) bool {
	return q.Range != nil && q.Range.End >= q.Range.Start && uint64(q.Range.End)-uint64(q.Range.Start) <= uint64(pointRange)
}

// treeState is what a treeIterator needs while it is open; the reader keeps it for the next one.
type treeState struct {
	t     treeFile // the reader's, with a ring of its own
	ring  ring
	cu    indexCursor
	data  []byte // the payload that is lent
	cols  [maxColumns]column
	leaf  treePage // where the last message was
	at    int
	pack  packCursor
	packB []byte // a pack that does not lie on one page
}

// treeKeep is the largest buffer that is kept for the next one.
const treeKeep = 4 << 20

// treeIterator reads messages from the mapped file.
type treeIterator struct {
	r     *reader
	s     *treeState
	q     plugin.Query
	want  []bool // by topic; nil = all
	from  int64  // the range
	to    int64
	begun bool
	err   error // of Next; stays
}

func (r *reader) newTreeIterator(q plugin.Query) *treeIterator {
	var s *treeState
	if n := len(r.states); n > 0 {
		s, r.states = r.states[n-1], r.states[:n-1]
	} else {
		s = &treeState{}
	}
	s.t = *r.tree
	if !point(q) {
		s.t.ring = &s.ring
	}
	s.cu.t, s.cu.reverse = &s.t, q.Reverse
	r.users++
	it := &treeIterator{r: r, s: s, q: q, from: math.MinInt64, to: math.MaxInt64}
	if q.Range != nil {
		it.from, it.to = q.Range.Start, q.Range.End
	}
	if q.Topics != nil {
		it.want = make([]bool, len(r.rowsOf)+1)
		for _, id := range q.Topics {
			if int64(id) < int64(len(it.want)) {
				it.want[id] = true
			}
		}
	}
	return it
}

func (it *treeIterator) Next(m *plugin.Message) error {
	if it.s == nil {
		return plugin.ErrClosed
	}
	if it.err == nil {
		it.err = it.s.t.guard(func() error { return it.next(m) })
	}
	return it.err
}

func (it *treeIterator) Close() error {
	if it.s == nil {
		return nil
	}
	s := it.s
	it.s = nil
	return it.r.giveBackState(s)
}

func (it *treeIterator) next(m *plugin.Message) error {
	for {
		var e key
		var ok bool
		var err error
		switch {
		case it.begun:
			e, ok, err = it.s.cu.next()
		case it.q.Reverse:
			e, ok, err = it.s.cu.seek(key{it.to, math.MaxInt64})
		default:
			e, ok, err = it.s.cu.seek(key{it.from, math.MinInt64})
		}
		it.begun = true
		if err != nil {
			return err
		}
		if !ok || e.stamp < it.from || e.stamp > it.to {
			return io.EOF
		}
		if taken, err := it.take(m, e); err != nil || taken {
			return err
		}
	}
}

// take fills m from the message of an entry; false if it is none of the query's.
func (it *treeIterator) take(m *plugin.Message, e key) (bool, error) {
	t := &it.s.t
	c, err := it.row(e)
	if err != nil {
		return false, err
	}
	p := &it.s.leaf
	cols, err := columnsOf(c.local, c.size, it.s.cols[:0])
	if err != nil || len(cols) != 4 || !cols[1].isInt() || cols[3].at > int64(len(c.local)) || !cols[3].isBlob() && !cols[3].isText() {
		return false, t.corrupt(p.page, "message %d cannot be read", e.id)
	}
	if !cols[2].isInt() || cols[2].int(c.local) != e.stamp {
		return false, t.corrupt(p.page, "message %d: its time stamp is not the one in the index", e.id)
	}
	topic, ok := it.r.topicOf[cols[1].int(c.local)]
	if !ok || it.want != nil && !it.want[topic] {
		return false, nil
	}
	if it.s.data, err = t.rest(slices.Grow(it.s.data[:0], int(cols[3].size)), &c, cols[3].at, cols[3].size); err != nil {
		return false, err
	}
	*m = plugin.Message{Topic: topic, RecvTime: e.stamp, Order: uint64(max(e.id, 0)), Data: it.s.data}
	return true, it.unpack(m, e.id)
}

// row finds the row of an entry: mostly the one behind the last, or, backwards, before it.
func (it *treeIterator) row(e key) (cell, error) {
	s := it.s
	next := s.at + 1
	if it.q.Reverse {
		next = s.at - 1
	}
	if s.leaf.page != 0 && next >= 0 && next < s.leaf.cells {
		b, err := s.t.raw(s.leaf.page) // it has to be in memory
		if err != nil {
			return cell{}, err
		}
		s.leaf.b = b
		if c, err := s.t.row(&s.leaf, next); err == nil && c.rowid == e.id {
			s.at = next
			return c, nil
		}
	}
	p, i, found, err := s.t.floor(s.t.messages, e.id)
	if err != nil {
		return cell{}, err
	}
	if found {
		c, err := s.t.row(&p, i)
		if err != nil {
			return cell{}, err
		}
		if c.rowid == e.id {
			s.leaf, s.at = p, i
			return c, nil
		}
	}
	return cell{}, s.t.corrupt(0, "message %d of time %d is in the index and not in the table", e.id, e.stamp)
}

// unpack adds what a pack says of the message.
func (it *treeIterator) unpack(m *plugin.Message, id int64) error {
	s := it.s
	if s.t.packs == 0 || !it.r.packed {
		return nil
	}
	ok := false
	if s.pack.begun && s.pack.at.id < id { // it may go on in the same pack
		var err error
		if ok, err = s.pack.find(id); err != nil {
			return s.t.corrupt(0, "%w", err)
		}
	}
	if !ok {
		found, err := it.openPack(id)
		if err != nil || !found {
			return err
		}
		if ok, err = s.pack.find(id); err != nil {
			return s.t.corrupt(0, "%w", err)
		}
	}
	if e := &s.pack.at; ok {
		m.Source, m.Seq = e.source, e.seq
		if e.hasSend {
			m.SendTime = m.RecvTime + e.sendDelta
		}
	}
	return nil
}

// openPack finds the pack that a message must be in.
func (it *treeIterator) openPack(id int64) (bool, error) {
	s := it.s
	s.pack = packCursor{}
	p, i, found, err := s.t.floor(s.t.packs, id)
	if err != nil || !found {
		return false, err
	}
	c, err := s.t.row(&p, i)
	if err != nil || c.rowid <= 0 {
		return false, err
	}
	cols, err := columnsOf(c.local, c.size, s.cols[:0])
	if err != nil || len(cols) != 2 || !cols[1].isBlob() || cols[1].size > maxText {
		return false, s.t.corrupt(p.page, "pack %d cannot be read", c.rowid)
	}
	// It is copied: the page may leave the memory while the pack is in use.
	if s.packB, err = s.t.rest(s.packB[:0], &c, cols[1].at, cols[1].size); err != nil {
		return false, err
	}
	if err := s.pack.open(c.rowid, s.packB); err != nil {
		return false, s.t.corrupt(p.page, "%w", err)
	}
	return true, nil
}

// giveBackState takes the state of an iterator that ends.
func (r *reader) giveBackState(s *treeState) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.t.done()
	s.leaf, s.pack = treePage{}, packCursor{}
	if cap(s.data) <= treeKeep && len(r.states) < maxIdle {
		r.states = append(r.states, s)
	}
	r.users--
	if r.closed && r.users == 0 {
		return r.closeBase()
	}
	return nil
}
