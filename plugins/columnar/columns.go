package columnar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugin"
)

// Columns gives out the columns of topics, for whoever looks at a few fields of many messages: no payload is put together.
// It shows the storage as it was when it was opened. Safe for concurrent use.
type Columns struct {
	r     *reader
	mu    sync.Mutex // guards parts
	parts map[uint64]*columnPart
}

// OpenColumns opens a storage; errors are those of Driver.OpenReader.
func OpenColumns(ctx context.Context, dir string) (*Columns, error) {
	r, err := openReader(ctx, dir, plugin.ReadOptions{})
	if err != nil {
		var corrupt *plugin.CorruptError
		if errors.As(err, &corrupt) { // names the path itself
			return nil, fmt.Errorf("open storage: %w", err)
		}
		return nil, fmt.Errorf("open storage %s: %w", dir, err)
	}
	return &Columns{r: r, parts: map[uint64]*columnPart{}}, nil
}

// Info describes the storage.
func (c *Columns) Info() plugin.Info { return c.r.Info() }

// Close closes the storage. Chunks must not be read any more.
func (c *Columns) Close() error { return c.r.Close() }

// columnPart is a typed part of which columns are read.
type columnPart struct {
	once   sync.Once
	err    error
	part   *partFile
	groups []group
	prog   *shred.Program
	dicts  []atomic.Pointer[Dictionary] // by column of the program, behind the system's
	coded  []atomic.Int32               // the same: 2 all pages have numbers of the dictionary, 1 not all, 0 not known
}

// Chunk is a run of messages of one topic that is read at once: a page group of a part, or messages that are not in columns
// on disk and were taken apart.
type Chunk struct {
	Rows       int
	Start, End int64 // stamps

	c     *Columns
	topic plugin.TopicID
	part  *columnPart // nil: loose
	group int
	loose []looseRow
	batch *shred.Batch
	prog  *shred.Program
}

// looseRow is what a message has beside its payload.
type looseRow struct {
	time, send int64
	order      uint64
}

// ErrOdd says that a topic has messages which are no values of its type.
var ErrOdd = errors.New("messages that are no values of their type")

// ID tells chunks of one Columns apart, of all but loose ones, for which ok is false.
func (k *Chunk) ID() (part uint64, group int, ok bool) {
	if k.part == nil {
		return 0, 0, false
	}
	return k.part.part.ref.number, k.group, true
}

// Part stands for the file that a chunk is in: chunks of one part share dictionaries. nil for loose chunks.
func (k *Chunk) Part() any {
	if k.part == nil {
		return nil
	}
	return k.part
}

// CountRows is the number of messages of a topic between two stamps, both included; false where chunks have to be looked
// into.
func (c *Columns) CountRows(topic plugin.TopicID, lo, hi int64) (uint64, bool) {
	t := &c.r.info.Topics[topic-1]
	if c.r.info.Start >= lo && c.r.info.End <= hi && c.r.logErr == nil {
		return t.Count, true
	}
	return 0, false
}

// Chunks returns the chunks of a topic that have messages between two stamps, both included, in the order of the
// storage. p is the program of the type: what is not in columns is taken apart with it. ErrOdd where that fails.
func (c *Columns) Chunks(ctx context.Context, topic plugin.TopicID, p *shred.Program, lo, hi int64) ([]*Chunk, error) {
	if c.r.logErr != nil {
		return nil, c.r.logErr
	}
	var chunks []*Chunk
	loose := false
	for i := range c.r.state.parts {
		ref := &c.r.state.parts[i]
		if ref.end < lo || ref.start > hi {
			continue
		}
		switch {
		case ref.kind == partTyped && ref.topic == topic:
			part, err := c.part(ref)
			if err != nil {
				return nil, err
			}
			for g := range part.groups {
				if gr := &part.groups[g]; gr.end >= lo && gr.start <= hi {
					chunks = append(chunks, &Chunk{Rows: part.part.pq.GroupRows(g), Start: gr.start, End: gr.end, c: c, topic: topic, part: part, group: g, prog: part.prog})
				}
			}
		case ref.kind == partRaw && ref.topic == topic, ref.kind == partMixed:
			loose = true
		}
	}
	if !loose {
		loose = slices.ContainsFunc(c.r.loose, func(e entry) bool { return e.topic == topic })
	}
	if loose {
		more, err := c.loose(ctx, topic, p, lo, hi)
		if err != nil {
			return nil, err
		}
		chunks = append(chunks, more...)
	}
	return chunks, nil
}

// part reads the footer of a part, once.
func (c *Columns) part(ref *partRef) (*columnPart, error) {
	c.mu.Lock()
	p := c.parts[ref.number]
	if p == nil {
		p = &columnPart{}
		c.parts[ref.number] = p
	}
	c.mu.Unlock()
	p.once.Do(func() {
		if p.groups, p.err = c.r.openPart(ref); p.err != nil {
			return
		}
		if p.prog, p.err = c.r.program(ref); p.err != nil {
			return
		}
		if len(p.groups) == 0 {
			p.err = &plugin.CorruptError{Path: ref.name, Err: errors.New("no page group")}
			return
		}
		p.part = p.groups[0].part
		if len(p.part.pq.Leaves()) != typedOwn+len(p.prog.Columns()) {
			p.err = &plugin.CorruptError{Path: p.part.path, Err: errors.New("columns are not those of the definition")}
			return
		}
		p.dicts = make([]atomic.Pointer[Dictionary], len(p.prog.Columns()))
		p.coded = make([]atomic.Int32, len(p.prog.Columns()))
	})
	return p, p.err
}

// looseRows is how many messages a loose chunk has at most, looseBytes about how many bytes.
const (
	looseRows  = 16 << 10
	looseBytes = 16 << 20
)

// loose takes the messages of a topic apart that are in no typed part.
func (c *Columns) loose(ctx context.Context, topic plugin.TopicID, p *shred.Program, lo, hi int64) ([]*Chunk, error) {
	mi, err := c.r.Messages(plugin.Query{Topics: []plugin.TopicID{topic}, Range: &plugin.TimeRange{Start: lo, End: hi}})
	if err != nil {
		return nil, err
	}
	defer mi.Close()
	it, ok := mi.(*iterator)
	if !ok {
		return nil, fmt.Errorf("read storage %s: iterator is a %T", c.r.dir, mi)
	}
	it.parts = slices.DeleteFunc(it.parts, func(r *partRef) bool { return r.kind == partTyped })
	var chunks []*Chunk
	var k *Chunk
	for n := 0; ; n++ {
		var m plugin.Message
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			return chunks, nil
		} else if err != nil {
			return nil, err
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if k == nil || k.Rows == looseRows || k.batch.Size() > looseBytes {
			k = &Chunk{Start: m.RecvTime, End: m.RecvTime, c: c, topic: topic, batch: p.NewBatch(), prog: p}
			chunks = append(chunks, k)
		}
		if _, err := p.AppendLoose(k.batch, m.Data); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOdd, err)
		}
		k.Rows++
		k.Start, k.End = min(k.Start, m.RecvTime), max(k.End, m.RecvTime)
		k.loose = append(k.loose, looseRow{m.RecvTime, m.SendTime, m.Order})
	}
}
