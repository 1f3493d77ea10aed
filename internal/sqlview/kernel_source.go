package sqlview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugins/columnar"
)

// kernelSource is a topic in one storage.
type kernelSource struct {
	v     *View
	src   *source
	cols  *columnar.Columns
	topic plugin.TopicID
	count uint64

	asked bool
	all   []*kernelChunk // once known, by the stamps they begin with
	even  bool           // and by those they end with
	byID  map[[2]uint64]*kernelChunk

	texts map[int]*textNumbers // by column of the program, of texts that are in no dictionary; View.memMu guards it
}

// kernelChunk is a chunk with what is kept of it between queries.
type kernelChunk struct {
	*columnar.Chunk
	s     *kernelSource
	vecs  map[int]*columnar.Vector
	posts map[int]*postings
	tried map[int]bool // columns that rows were once looked for in
}

// postings are the rows of a chunk by the number of a dictionary entry.
type postings struct {
	starts  []uint32 // of each entry's rows, and the end of the last one's
	rows    []uint16
	entries []uint32 // those that have rows
}

// newPostings sorts the rows of a chunk by their codes.
func newPostings(v *columnar.Vector) *postings {
	p := &postings{starts: make([]uint32, v.Dict.Entries+1)}
	count := func(code int) { p.starts[code+1]++ }
	switch {
	case v.Codes8 != nil:
		countRows(v.Codes8, count)
		p.fill()
		placeRows(v.Codes8, p)
	case v.Codes16 != nil:
		countRows(v.Codes16, count)
		p.fill()
		placeRows(v.Codes16, p)
	default:
		countRows(v.Codes32, count)
		p.fill()
		placeRows(v.Codes32, p)
	}
	return p
}

func countRows[T uint8 | uint16 | uint32](codes []T, count func(int)) {
	for _, c := range codes {
		count(int(c))
	}
}

// fill makes starts of counts.
func (p *postings) fill() {
	sum := uint32(0)
	for i, n := range p.starts {
		if n > 0 {
			p.entries = append(p.entries, uint32(i-1)) // counts stand one further
		}
		sum += n
		p.starts[i] = sum
	}
	p.rows = make([]uint16, sum)
}

func placeRows[T uint8 | uint16 | uint32](codes []T, p *postings) {
	at := append([]uint32(nil), p.starts...)
	for row, c := range codes {
		p.rows[at[c]] = uint16(row)
		at[c]++
	}
}

// of are the rows of an entry, ascending.
func (p *postings) of(code int) []uint16 { return p.rows[p.starts[code]:p.starts[code+1]] }

// kernelSources are the topics of a table as columns of storages; errKernel where one of them is something else.
func (v *View) kernelSources(ctx context.Context, t *table) ([]*kernelSource, error) {
	if t.kernel != nil || t.kernelErr != nil {
		return t.kernel, t.kernelErr
	}
	t.kernelErr = errKernel
	for _, part := range t.parts {
		for _, id := range part.topics {
			src := part.by[id]
			if src.p == nil {
				return nil, errKernel
			}
			storages, err := v.columnsOf(ctx, part.bag)
			if err != nil {
				if t.kernel = nil; !errors.Is(err, errKernel) { // interrupted: another query may find them
					t.kernelErr = nil
				}
				return nil, err
			}
			for _, c := range storages {
				info := c.Info()
				if id := topicOf(info, src); id > 0 {
					t.kernel = append(t.kernel, &kernelSource{v: v, src: src, cols: c, topic: id, count: info.Topics[id-1].Count, byID: map[[2]uint64]*kernelChunk{}})
				}
			}
		}
	}
	if len(t.kernel) == 0 {
		return nil, errKernel
	}
	t.kernelErr = nil
	return t.kernel, nil
}

// columnsOf opens the storages of a bag as columns; errKernel where they are not of this format, or the bag's messages are
// not theirs.
func (v *View) columnsOf(ctx context.Context, b *openedBag) ([]*columnar.Columns, error) {
	if b.columns != nil || b.noColumns {
		if b.noColumns {
			return nil, errKernel
		}
		return b.columns, nil
	}
	b.noColumns = true
	info := b.r.Info()
	if info.StorageID != (columnar.Driver{}).Name() || info.Compression != "" || len(info.Repeats) > 0 || len(info.Skipped) > 0 || v.o.Reader.Transcode != nil && b.turned() {
		return nil, errKernel
	}
	for _, f := range info.Files {
		path := filepath.Join(b.name, filepath.FromSlash(f.Path))
		if ok, err := (columnar.Driver{}).Detect(path); err != nil || !ok {
			path = b.name // a storage by itself
		}
		if ok, err := (columnar.Driver{}).Detect(path); err != nil || !ok {
			return nil, errKernel
		}
		c, err := columnar.OpenColumns(ctx, path)
		if err != nil && ctx.Err() != nil {
			b.noColumns = false
			return nil, errors.Join(err, b.closeColumns())
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errKernel, err)
		}
		b.columns = append(b.columns, c)
		if path == b.name {
			break
		}
	}
	b.noColumns = false
	return b.columns, nil
}

func (b *openedBag) closeColumns() error {
	var errs []error
	for _, c := range b.columns {
		errs = append(errs, c.Close())
	}
	b.columns = nil
	return errors.Join(errs...)
}

// turned tells whether payloads of the bag change while they are read.
func (b *openedBag) turned() bool {
	for _, t := range b.r.Info().Topics {
		if t.SerializationFormat != "cdr" && t.SerializationFormat != "" {
			return true
		}
	}
	return false
}

// chunks are those of the source that may have rows between two stamps. The slice is the source's.
func (s *kernelSource) chunks(ctx context.Context, lo, hi int64) ([]*kernelChunk, error) {
	if s.all == nil {
		from, to := lo, hi
		if s.asked { // once more: keep them
			from, to = -1<<63, 1<<63-1
		}
		s.asked = true
		list, err := s.cols.Chunks(ctx, s.topic, s.src.p, from, to)
		if err != nil {
			return nil, kernelError(err)
		}
		chunks := make([]*kernelChunk, len(list))
		for i, c := range list {
			part, group, ok := c.ID()
			key := [2]uint64{part, uint64(group)}
			if chunks[i] = s.byID[key]; chunks[i] == nil || !ok {
				chunks[i] = &kernelChunk{Chunk: c, s: s, vecs: map[int]*columnar.Vector{}, posts: map[int]*postings{}, tried: map[int]bool{}}
			}
			if ok {
				s.byID[key] = chunks[i]
			}
		}
		if from != -1<<63 || to != 1<<63-1 {
			return chunks, nil
		}
		slices.SortStableFunc(chunks, func(a, b *kernelChunk) int { return cmp.Compare(a.Start, b.Start) })
		s.all = chunks
		s.even = slices.IsSortedFunc(chunks, func(a, b *kernelChunk) int { return cmp.Compare(a.End, b.End) })
	}
	if lo == -1<<63 && hi == 1<<63-1 {
		return s.all, nil
	}
	if s.even {
		i := sort.Search(len(s.all), func(i int) bool { return s.all[i].End >= lo })
		j := sort.Search(len(s.all), func(i int) bool { return s.all[i].Start > hi })
		return s.all[min(i, j):j], nil
	}
	var some []*kernelChunk
	for _, c := range s.all {
		if c.End >= lo && c.Start <= hi {
			some = append(some, c)
		}
	}
	return some, nil
}

// kernelError is errKernel where SQLite's way may go on: at damage it tells of what is there.
func kernelError(err error) error {
	var corrupt *plugin.CorruptError
	if errors.As(err, &corrupt) || errors.Is(err, columnar.ErrOdd) || errors.Is(err, columnar.ErrNoColumn) || errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %w", errKernel, err)
	}
	return err
}

// column is the number of a plan's column in a chunk.
func (p *kernelPlan) column(c *kernelChunk, r *ref) (int, error) {
	switch r.sys {
	case colLogTime:
		return columnar.ColumnLogTime, nil
	case colPubTime:
		return columnar.ColumnPubTime, nil
	case colOrder:
		return columnar.ColumnOrder, nil
	}
	key := c.Part()
	if key == nil {
		key = c.s
	}
	cols := p.columns[key]
	if cols == nil {
		cols = make([]int, len(p.refs))
		for i, r := range p.refs {
			if r.sys >= 0 {
				continue
			}
			col := &c.s.src.p.Columns()[c.s.src.fields[r.field].leaf]
			var err error
			if cols[i], err = c.Column(col.Name(), col.Kind); err != nil {
				return 0, kernelError(err)
			}
		}
		p.columns[key] = cols
	}
	return cols[r.n], nil
}

// textNumbers numbers the texts of a column that is kept but has no dictionary in the file, so that it takes less room and
// rows are found by their text. It grows; a chunk has the dictionary as it was when its texts were numbered.
type textNumbers struct {
	dict   *columnar.Dictionary
	byText map[string]uint32
	next   []uint32 // 1 + the number of the text that followed last time: a guess
	many   bool     // too many texts: they stay as they are
}

// Limits of textNumbers.
const (
	maxTexts     = 1 << 16
	maxTextBytes = 4 << 20
)

// number replaces the texts of a chunk that are kept by numbers.
func (v *View) number(c *kernelChunk, col int, vec *columnar.Vector) *columnar.Vector {
	if c.Part() == nil {
		return vec
	}
	v.memMu.Lock()
	defer v.memMu.Unlock()
	if c.s.texts == nil {
		c.s.texts = map[int]*textNumbers{}
	}
	t := c.s.texts[col]
	if t == nil {
		t = &textNumbers{dict: &columnar.Dictionary{}, byText: map[string]uint32{}}
		c.s.texts[col] = t
	}
	if t.many {
		return vec
	}
	d := *t.dict // what was given out is not changed: bytes behind its end are
	out := &columnar.Vector{}
	out.Codes16 = make([]uint16, 0, len(vec.Ends))
	last, start := uint32(0), uint32(0)
	for row, end := range vec.Ends {
		s := vec.Data[start:end]
		start = end
		var id uint32
		if row > 0 && t.next[last] > 0 && string(d.At(int(t.next[last]-1))) == string(s) {
			id = t.next[last] - 1
		} else {
			var known bool
			if id, known = t.byText[string(s)]; !known {
				if d.Entries == maxTexts || len(d.Data)+len(s) > maxTextBytes {
					t.many = true
					return vec
				}
				id = uint32(d.Entries)
				t.byText[string(s)] = id
				d.Data = append(d.Data, s...)
				d.Ends = append(d.Ends, uint32(len(d.Data)))
				d.Entries++
				t.next = append(t.next, 0)
			}
			if row > 0 {
				t.next[last] = id + 1
			}
		}
		last = id
		out.Codes16 = append(out.Codes16, uint16(id))
	}
	if d.Entries != t.dict.Entries {
		t.dict = &d
	}
	out.Dict = t.dict
	v.mem += sizeOf(out) - sizeOf(vec)
	c.vecs[col] = out
	return out
}

// sizeOf is about what a vector takes in memory, bytes.
func sizeOf(v *columnar.Vector) int64 {
	return int64(len(v.Codes8)+2*len(v.Codes16)+4*len(v.Codes32)+len(v.U8)+4*len(v.I32)+8*len(v.I64)+4*len(v.F32)+8*len(v.F64)+len(v.Data)+4*len(v.Ends)) + 400
}

// keep keeps a column of a chunk for further queries, if there is room.
func (v *View) keep(c *kernelChunk, col int, vec *columnar.Vector) bool {
	if c.Part() == nil { // it is in memory anyway
		c.vecs[col] = vec
		return true
	}
	n := sizeOf(vec)
	v.memMu.Lock()
	defer v.memMu.Unlock()
	if v.mem+n > v.memory {
		v.full = true
		return false
	}
	v.mem += n
	c.vecs[col] = vec
	return true
}

// keepPostings is keep for postings.
func (v *View) keepPostings(c *kernelChunk, col int, p *postings) {
	n := int64(4*len(p.starts) + 2*len(p.rows) + 4*len(p.entries))
	v.memMu.Lock()
	defer v.memMu.Unlock()
	if v.mem+n > v.memory {
		v.full = true
		return
	}
	v.mem += n
	c.posts[col] = p
}

// forget drops what is kept when there was no room for all of the last query's columns.
func (v *View) forget() {
	if !v.full {
		return
	}
	v.full, v.mem = false, 0
	v.forgot++
	clear(v.dicts)
	for _, t := range v.tables {
		for _, s := range t.kernel {
			for _, c := range s.byID {
				clear(c.vecs)
				clear(c.posts)
			}
		}
	}
}

// kindOf is the kind of a plan's column in a source.
func (p *kernelPlan) kindOf(s *kernelSource, r *ref) shred.Kind { return p.kinds[s][r.n] }
