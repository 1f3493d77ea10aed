package sqlview

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"slices"
	"strconv"

	"modernc.org/sqlite/vtab"

	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugin"
)

// cursor scans a table: the messages of all its parts, merged by stamp.
type cursor struct {
	t      *table
	plan   plan
	scans  []*scan            // that have a message, the parts' order
	now    *scan              // the one whose message is the row; nil at the end
	src    *source            // of the row
	st     *state             // of src; nil before a field is asked for
	states map[*source]*state // kept for further scans of the same query

	skipped int // messages that did not pass
}

// scan is the place in one part.
type scan struct {
	part *part
	it   plugin.Iterator
	m    plugin.Message
}

// state decodes the messages of a source.
type state struct {
	p       *shred.Program // with the columns used
	keep    []bool
	b       *shred.Batch
	c       *shred.Cursor
	json    bool // some of the columns are
	value   shred.Struct
	decoded bool // of the row: value and the last row of b are its
	ok      bool
}

// Filter implements vtab.Cursor: it begins a scan.
func (c *cursor) Filter(idxNum int, idxStr string, vals []vtab.Value) error {
	c.stop()
	used := c.plan.used
	var err error
	if c.plan, err = readPlan(idxNum, idxStr, vals); err != nil {
		return c.t.v.fail(err)
	}
	if used != c.plan.used {
		clear(c.states)
	}
	c.src, c.st = nil, nil
	if c.plan.nothing || c.plan.start > c.plan.end {
		return nil
	}
	for _, p := range c.t.parts {
		if c.plan.bag != nil && *c.plan.bag != p.bag.name {
			continue
		}
		for _, src := range p.by {
			if src.why != nil && !c.t.all {
				c.t.v.note("%s: %s (%s) has no columns for its fields: %v", src.bag.name, src.name, src.typ, src.why)
			}
		}
		q := plugin.Query{Topics: p.topics, Reverse: c.plan.reverse, Fields: c.fields(p)}
		if c.plan.topic != nil {
			q.Topics = []plugin.TopicID{}
			for _, id := range p.topics {
				if p.by[id].name == *c.plan.topic {
					q.Topics = append(q.Topics, id)
				}
			}
		}
		if c.plan.start != math.MinInt64 || c.plan.end != math.MaxInt64 {
			q.Range = &plugin.TimeRange{Start: c.plan.start, End: c.plan.end}
		}
		it, err := p.bag.r.Messages(q)
		if err != nil {
			return c.t.v.fail(fmt.Errorf("%s: %w", p.bag.name, err))
		}
		s := &scan{part: p, it: it}
		c.scans = append(c.scans, s)
		if err := c.advance(s); err != nil {
			return err
		}
	}
	c.choose()
	return nil
}

// fields are the paths of the fields that the query uses, of all sources of a part; nil where it wants payloads.
func (c *cursor) fields(p *part) []string {
	if c.plan.used&(1<<colSize|1<<colCDR) != 0 {
		return nil
	}
	fields := []string{}
	for _, src := range p.by {
		if c.t.all || src.p == nil {
			continue
		}
		for i, f := range src.fields {
			switch {
			case !c.plan.uses(i):
			case f.leaf >= 0:
				fields = append(fields, src.p.Columns()[f.leaf].Name())
			case f.list >= 0:
				fields = append(fields, src.p.Lists()[f.list].Name())
			}
		}
	}
	return fields
}

// uses tells whether the query uses a field. Bit 63 stands for all columns from 63 on.
func (p *plan) uses(field int) bool { return p.used>>min(field+systemColumns, 63)&1 != 0 }

// advance reads the next message of a scan, and leaves the scan out at its end.
func (c *cursor) advance(s *scan) error {
	for {
		err := s.it.Next(&s.m)
		if err == nil && c.wanted(s) {
			return nil
		}
		if err == nil {
			if c.skipped++; c.skipped%1024 == 0 && c.t.v.ctx.Err() != nil { // SQLite does not look while we search
				return c.t.v.fail(c.t.v.ctx.Err())
			}
			continue
		}
		var corrupt *plugin.CorruptError
		switch {
		case errors.As(err, &corrupt): // said once; the other files of the bag follow
			c.t.v.note("%s: %v", s.part.bag.name, err)
			continue
		case !errors.Is(err, io.EOF):
			return c.t.v.fail(fmt.Errorf("%s: %w", s.part.bag.name, err))
		}
		_ = s.it.Close() // read to its end
		for i := range c.scans {
			if c.scans[i] == s {
				c.scans = append(c.scans[:i], c.scans[i+1:]...)
				break
			}
		}
		return nil
	}
}

// wanted takes the message that was just read and tells whether it passes the tests of the plan.
func (c *cursor) wanted(s *scan) bool {
	if len(c.plan.tests) == 0 && len(c.states) == 0 {
		return true
	}
	src := s.part.by[s.m.Topic]
	st := c.states[src]
	if st != nil {
		st.decoded = false
	}
	if len(c.plan.tests) == 0 {
		return true
	}
	if src.p == nil {
		return false // all its fields are NULL
	}
	if st == nil {
		st = newState(src, &c.plan)
		c.states[src] = st
	}
	st.decode(c.t.v, src, s.m.Data)
	return c.plan.passes(src, st)
}

// choose makes the earliest message, or the latest of a scan backwards, the row.
func (c *cursor) choose() {
	c.now = nil
	for _, s := range c.scans {
		if c.now == nil || !c.plan.reverse && s.m.RecvTime < c.now.m.RecvTime || c.plan.reverse && s.m.RecvTime >= c.now.m.RecvTime {
			c.now = s
		}
	}
	if c.now == nil {
		return
	}
	c.src = c.now.part.by[c.now.m.Topic]
	c.st = c.states[c.src]
}

// Next implements vtab.Cursor.
func (c *cursor) Next() error {
	if c.now == nil {
		return nil
	}
	if err := c.advance(c.now); err != nil {
		return err
	}
	c.choose()
	return nil
}

// Eof implements vtab.Cursor.
func (c *cursor) Eof() bool { return c.now == nil } //nolint:revive // the interface has this name

// Rowid implements vtab.Cursor. SQLite uses it to find the same row in two scans (for OR), so it must not hang on the
// scan: it is a hash of all that makes the message.
func (c *cursor) Rowid() (int64, error) {
	if c.now == nil {
		return 0, nil
	}
	m := &c.now.m
	var key [44]byte
	binary.LittleEndian.PutUint64(key[0:], uint64(m.RecvTime))
	binary.LittleEndian.PutUint64(key[8:], m.Order)
	binary.LittleEndian.PutUint64(key[16:], uint64(m.SendTime))
	binary.LittleEndian.PutUint64(key[24:], m.Seq)
	binary.LittleEndian.PutUint32(key[32:], m.Source)
	binary.LittleEndian.PutUint32(key[36:], uint32(m.Topic))
	binary.LittleEndian.PutUint32(key[40:], uint32(slices.Index(c.t.v.bags, c.now.part.bag)))
	return int64(maphash.Bytes(seed, key[:]) ^ maphash.Bytes(seed, m.Data)*31), nil
}

var seed = maphash.MakeSeed()

// Close implements vtab.Cursor.
func (c *cursor) Close() error {
	c.stop()
	return nil
}

func (c *cursor) stop() {
	for _, s := range c.scans {
		_ = s.it.Close() // of reading
	}
	c.scans, c.now = nil, nil
}

// Column implements vtab.Cursor.
func (c *cursor) Column(col int) (vtab.Value, error) {
	if c.now == nil {
		return nil, nil
	}
	m := &c.now.m
	src := c.src
	switch col {
	case colLogTime:
		return m.RecvTime, nil
	case colPubTime:
		return unlessZero(m.SendTime), nil
	case colBag:
		return c.now.part.bag.name, nil
	case colTopic:
		return src.name, nil
	case colType:
		return src.typ, nil
	case colSource:
		return unlessZero(int64(m.Source)), nil
	case colSeq:
		return unlessZero(int64(m.Seq)), nil
	case colOrder:
		return int64(m.Order), nil
	case colSize:
		return int64(len(m.Data)), nil
	case colCDR:
		return m.Data, nil
	}
	if col -= systemColumns; col >= len(src.fields) || src.p == nil {
		return nil, nil
	}
	f := src.fields[col]
	if f.leaf < 0 && f.list < 0 {
		return nil, nil
	}
	s := c.st
	if s == nil {
		s = newState(src, &c.plan)
		c.states[src], c.st = s, s
	}
	if f.leaf >= 0 && !s.keep[f.leaf] || f.list >= 0 && !s.json {
		return nil, fmt.Errorf("column %s was not announced", c.t.columns[col].name)
	}
	if !s.decoded {
		s.decode(c.t.v, src, m.Data)
	}
	if !s.ok {
		return nil, nil
	}
	if f.list >= 0 {
		return s.listJSON(f.list)
	}
	return s.leaf(f.leaf), nil
}

func unlessZero(n int64) vtab.Value {
	if n == 0 {
		return nil
	}
	return n
}

func newState(src *source, p *plan) *state {
	s := &state{keep: make([]bool, len(src.p.Columns()))}
	lists := src.p.Lists()
	for i, f := range src.fields {
		if !p.uses(i) {
			continue
		}
		if f.leaf >= 0 {
			s.keep[f.leaf] = true
		}
		if f.list < 0 {
			continue
		}
		s.json = true
		for j, c := range src.p.Columns() {
			for l := c.List; l >= 0; l = lists[l].Parent {
				if l == f.list {
					s.keep[j] = true
				}
			}
		}
	}
	s.p = src.p.Select(s.keep)
	s.b, s.c = s.p.NewBatch(), s.p.NewCursor()
	return s
}

// batchBytes are decoded before the memory of a batch is used again.
const batchBytes = 256 << 10

func (s *state) decode(v *View, src *source, payload []byte) {
	s.decoded, s.ok = true, false
	s.value = nil
	if s.b.Size() > batchBytes || s.json { // a cursor goes row by row
		s.b.Reset()
		s.c.Rewind()
	}
	_, err := s.p.AppendLoose(s.b, payload)
	if errors.Is(err, shred.ErrFull) { // of a payload that is nearly as large as a batch can be
		s.b.Reset()
		s.c.Rewind()
		_, err = s.p.AppendLoose(s.b, payload)
	}
	if err != nil {
		v.notDecoded(src, err)
		return
	}
	s.ok = true
}

// leaf is the value of a column of the program in the last row.
func (s *state) leaf(col int) vtab.Value {
	c := &s.p.Columns()[col]
	v := &s.b.Cols[col]
	i := s.b.Rows() - 1
	switch c.Kind {
	case shred.Bool:
		return int64(v.U8[i])
	case shred.Int64, shred.Time, shred.Duration:
		return v.I64[i]
	case shred.UInt64:
		if v.I64[i] < 0 {
			return strconv.FormatUint(uint64(v.I64[i]), 10)
		}
		return v.I64[i]
	case shred.Float32:
		return float64(v.F32[i])
	case shred.Float64:
		return v.F64[i]
	case shred.String, shred.WString:
		return string(v.Bytes(i))
	case shred.Bytes:
		if c.Fixed > 0 {
			return v.Data[i*c.Fixed : (i+1)*c.Fixed]
		}
		return v.Bytes(i)
	case shred.UInt32:
		return int64(uint32(v.I32[i]))
	}
	return int64(v.I32[i])
}
