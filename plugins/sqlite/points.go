package sqlite

import (
	"io"
	"math"
	"slices"
	"time"

	"github.com/gobag/gobag/plugin"
)

// pointRange is how long a range may be that is read as a point: through the mapped file, at a tenth of the cost of a
// query of SQLite's. Longer ones read more than they seek, and a mapped file that is not in memory yet keeps a whole
// processor waiting while it is read.
const pointRange = int64(time.Millisecond)

// point says whether a query is read as a point.
func point(q plugin.Query) bool {
	return q.Range != nil && q.Range.End >= q.Range.Start && uint64(q.Range.End)-uint64(q.Range.Start) <= uint64(pointRange)
}

// pointState is what a pointIterator needs while it is open; the reader keeps it for the next one.
type pointState struct {
	cu   indexCursor
	data []byte // the payload that is lent
	cols [maxColumns]column
	row  []byte // a pack
}

// pointKeep is the largest buffer that is kept for the next point.
const pointKeep = 4 << 20

// pointIterator reads the messages of a short range from the mapped file.
type pointIterator struct {
	r     *reader
	s     *pointState
	q     plugin.Query
	begun bool
	err   error // of Next; stays
}

func (r *reader) newPoint(q plugin.Query) *pointIterator {
	var s *pointState
	if n := len(r.points); n > 0 {
		s, r.points = r.points[n-1], r.points[:n-1]
	} else {
		s = &pointState{}
	}
	s.cu.t, s.cu.reverse = r.tree, q.Reverse
	r.users++
	return &pointIterator{r: r, s: s, q: q}
}

func (it *pointIterator) Next(m *plugin.Message) error {
	if it.s == nil {
		return plugin.ErrClosed
	}
	if it.err == nil {
		it.err = it.r.tree.guard(func() error { return it.next(m) })
	}
	return it.err
}

func (it *pointIterator) Close() error {
	if it.s == nil {
		return nil
	}
	s := it.s
	it.s = nil
	return it.r.giveBackPoint(s)
}

func (it *pointIterator) next(m *plugin.Message) error {
	for {
		var e key
		var ok bool
		var err error
		switch {
		case it.begun:
			e, ok, err = it.s.cu.next()
		case it.q.Reverse:
			e, ok, err = it.s.cu.seek(key{it.q.Range.End, math.MaxInt64})
		default:
			e, ok, err = it.s.cu.seek(key{it.q.Range.Start, math.MinInt64})
		}
		it.begun = true
		if err != nil {
			return err
		}
		if !ok || e.stamp < it.q.Range.Start || e.stamp > it.q.Range.End {
			return io.EOF
		}
		if taken, err := it.take(m, e); err != nil || taken {
			return err
		}
	}
}

// take fills m from the message of an entry; false if it is none of the query's.
func (it *pointIterator) take(m *plugin.Message, e key) (bool, error) {
	t := it.r.tree
	p, i, found, err := t.floor(t.messages, e.id)
	if err != nil {
		return false, err
	}
	var c cell
	if found {
		if c, err = t.row(&p, i); err != nil {
			return false, err
		}
	}
	if !found || c.rowid != e.id {
		return false, t.corrupt(0, "message %d of time %d is in the index and not in the table", e.id, e.stamp)
	}
	cols, err := columnsOf(c.local, c.size, it.s.cols[:0])
	if err != nil || len(cols) != 4 || !cols[1].isInt() || cols[3].at > int64(len(c.local)) || !cols[3].isBlob() && !cols[3].isText() {
		return false, t.corrupt(p.page, "message %d cannot be read", e.id)
	}
	if !cols[2].isInt() || cols[2].int(c.local) != e.stamp {
		return false, t.corrupt(p.page, "message %d: its time stamp is not the one in the index", e.id)
	}
	topic, ok := it.r.topicOf[cols[1].int(c.local)]
	if !ok || it.q.Topics != nil && !slices.Contains(it.q.Topics, topic) {
		return false, nil
	}
	if it.s.data, err = t.rest(slices.Grow(it.s.data[:0], int(cols[3].size)), &c, cols[3].at, cols[3].size); err != nil {
		return false, err
	}
	*m = plugin.Message{Topic: topic, RecvTime: e.stamp, Order: uint64(max(e.id, 0)), Data: it.s.data}
	return true, it.unpack(m, e.id)
}

// unpack adds what a pack says of the message.
func (it *pointIterator) unpack(m *plugin.Message, id int64) error {
	t := it.r.tree
	if t.packs == 0 || !it.r.packed {
		return nil
	}
	p, i, found, err := t.floor(t.packs, id)
	if err != nil || !found {
		return err
	}
	c, err := t.row(&p, i)
	if err != nil || c.rowid <= 0 {
		return err
	}
	cols, err := columnsOf(c.local, c.size, it.s.cols[:0])
	if err != nil || len(cols) != 2 || !cols[1].isBlob() || cols[1].size > maxText {
		return t.corrupt(p.page, "pack %d cannot be read", c.rowid)
	}
	row := c.local[cols[1].at:]
	if int64(len(row)) < cols[1].size {
		if it.s.row, err = t.rest(it.s.row[:0], &c, cols[1].at, cols[1].size); err != nil {
			return err
		}
		row = it.s.row
	}
	e, ok, err := findInPack(c.rowid, row, id)
	if err != nil {
		return t.corrupt(p.page, "%w", err)
	}
	if ok {
		m.Source, m.Seq = e.source, e.seq
		if e.hasSend {
			m.SendTime = m.RecvTime + e.sendDelta
		}
	}
	return nil
}

// giveBackPoint takes the state of an iterator that ends.
func (r *reader) giveBackPoint(s *pointState) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cap(s.data) <= pointKeep && len(r.points) < maxIdle {
		r.points = append(r.points, s)
	}
	r.users--
	if r.closed && r.users == 0 {
		return r.closeBase()
	}
	return nil
}
