package parquet

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Options configure a Writer. The zero value works.
type Options struct {
	// Store leaves columns of long byte values as they are, without zstd.
	Store bool

	// Open makes the file that is being written. It is called when there is something for it before Finish, which then
	// goes on with it: pages of long values are not kept in memory. nil: everything is.
	Open func() (io.Writer, error)
}

// longValue is the average size from which on a value is a blob.
const longValue = 512

// Batch is what one page group is made of.
type Batch struct {
	Rows   int
	Cols   []*Values  // one a leaf
	Counts [][]uint32 // one a list: elements of each occurrence; empty where Field.Count says it
	Bytes  int64      // what the rows stand for; bounds what a reader expects of the page group
}

// Writer collects page groups, compressed, until Finish writes them as a file. It can be used again after that, and
// keeps what it has learned about the columns. It belongs to one goroutine.
type Writer struct {
	*layout
	opts   Options
	comp   *Compressor
	cols   []column
	levels []levels // one a list, of the page group that is being written
	groups []group

	rows  int64
	bytes int64 // what the rows stand for
	size  int   // of all pages

	out     *sink // of Options.Open; nil: not opened
	spilled int   // the column whose pages go there; only with out

	body, trial []byte
	split       []byte // the byte streams at the end of body, if the page has any
	width       int    // how many they are
	idx, ends   []uint32
	guide       *dict    // of the column of texts with the largest dictionary in the page group so far
	guided      []uint32 // and its numbers
	lens        []int32
	eight       []uint32 // scratch of appendRepeated
	head        thriftWriter
}

type group struct {
	rows  int
	bytes int64
}

// column is the column chunk of a leaf.
type column struct {
	leaf   *Leaf
	enc    encoding
	wide   bool    // dictionary numbers are widened to bytes
	store  bool    // no compression
	expect float64 // bytes a value that the choice of the encoding promised
	rest   int     // pages until it may be chosen anew
	full   bool    // the file's dictionary has no room
	poor   int     // pages that zstd made no smaller, in a row
	skip   int     // pages for which it is not tried

	buf       rope
	pages     []page
	dict      dict
	dictPages int
	encodings uint32 // bits
	raw       int64  // uncompressed size, page heads included
	values    int64
	nulls     int64
	bounds    bounds
}

// page is a page of a column chunk.
type page struct {
	off, size int // in buf
	crc       uint32
	nulls     int64
	bounds    bounds
}

// NewWriter returns a writer for files of one schema.
func NewWriter(schema []Field, comp *Compressor, o Options) (*Writer, error) {
	l, err := newLayout(schema)
	if err != nil {
		return nil, err
	}
	w := &Writer{layout: l, comp: comp, opts: o, cols: make([]column, len(l.leaves)), levels: make([]levels, len(l.lists))}
	for i := range w.cols {
		w.cols[i].leaf, w.cols[i].enc = &l.leaves[i], undecided
	}
	w.Reset()
	return w, nil
}

// Leaves are the columns. The slice is the writer's.
func (w *Writer) Leaves() []Leaf { return w.leaves }

// Lists are the lists. The slice is the writer's.
func (w *Writer) Lists() []List { return w.lists }

// Rows is the number of rows since the last Finish.
func (w *Writer) Rows() int64 { return w.rows }

// Bytes is the sum of Batch.Bytes since the last Finish.
func (w *Writer) Bytes() int64 { return w.bytes }

// Held is about what the writer holds in memory.
func (w *Writer) Held() int {
	if w.out != nil {
		return w.Size() - int(w.out.off)
	}
	return w.Size()
}

// Size is about the size of the file if it was finished now.
func (w *Writer) Size() int { return w.size + 60*len(w.cols)*len(w.groups) }

// Reset drops all rows.
func (w *Writer) Reset() {
	for i := range w.cols {
		c := &w.cols[i]
		c.buf.reset(w.comp)
		c.pages, c.dictPages, c.encodings, c.raw, c.values, c.nulls = c.pages[:0], 0, 0, 0, 0, 0
		c.bounds = bounds{none: true}
		c.store, c.full = false, false
		if c.dict.len() > 0 {
			c.dict.reset()
		}
	}
	w.groups, w.rows, w.bytes, w.size, w.out = w.groups[:0], 0, 0, 0, nil
}

// Release gives back the memory of the pages; the writer stays usable.
func (w *Writer) Release() {
	w.Reset()
	for i := range w.cols {
		c := &w.cols[i]
		c.buf, c.pages, c.dict = rope{}, nil, dict{}
	}
	w.body, w.trial, w.idx, w.ends, w.lens, w.eight = nil, nil, nil, nil, nil, nil
	for i := range w.levels {
		w.levels[i] = levels{}
	}
}

// Append writes a page group. b is not kept. An error means that the columns of b do not fit each other; the writer is
// of no use then.
func (w *Writer) Append(b *Batch) error {
	if len(b.Cols) != len(w.leaves) || len(b.Counts) != len(w.lists) || b.Rows <= 0 || b.Rows > math.MaxInt32 {
		return errors.New("batch does not fit the schema")
	}
	for i := range w.lists {
		if err := w.levels[i].build(w.lists, i, b.Counts, b.Rows); err != nil {
			return err
		}
	}
	w.guide = nil
	for i := range w.cols {
		c := &w.cols[i]
		var lv *levels
		want := b.Rows
		if c.leaf.List >= 0 {
			lv = &w.levels[c.leaf.List]
			want = lv.elements
		}
		if n := b.Cols[i].Len(c.leaf); n != want {
			return fmt.Errorf("column %s has %d values, there should be %d", c.leaf.Name, n, want)
		}
		if err := w.page(c, b.Cols[i], lv, b.Rows); err != nil {
			return err
		}
		w.size += c.pages[len(c.pages)-1].size
	}
	w.groups = append(w.groups, group{b.Rows, b.Bytes})
	w.rows += int64(b.Rows)
	w.bytes += b.Bytes
	return nil
}

// page writes the values of one column of a page group.
func (w *Writer) page(c *column, v *Values, lv *levels, rows int) error {
	n := v.Len(c.leaf)
	p := page{off: c.buf.n}
	slots, period := rows, 1
	body := w.body[:0]
	if lv != nil {
		slots, period = len(lv.rep), lv.period
		body = append(body, lv.encoded...)
		p.nulls = int64(slots - n)
	}
	if len(c.pages) == 0 {
		c.store = w.opts.Store && c.leaf.physical() == typeBytes && n > 0 && len(v.Data)/n >= longValue
	}
	if c.store && lv == nil && w.opts.Open != nil {
		if done, err := w.spill(c, v); done || err != nil {
			return err
		}
	}
	e := plain
	w.idx = w.idx[:0]
	repeated := false
	switch {
	case c.store || c.leaf.Kind == Bool || n == 0:
	case period > 0 && period <= 1024 && (n > period || period == 1) && !c.full && c.dict.len()+period < maxDictEntries && v.repeats(c.leaf, period):
		first, ends := window(c.leaf, v, 0, period, w.ends)
		w.ends = ends
		e, repeated = dictionary, true
		w.idx, _ = c.dict.index(c.leaf, &first, w.idx)
	default:
		if c.enc == undecided {
			w.choose(c, v)
		}
		if e = c.enc; e == dictionary {
			var ok bool
			if w.idx, ok = w.index(c, v); !ok {
				w.idx = w.idx[:0]
				c.full = true
				w.choose(c, v)
				e = c.enc
			}
		}
	}
	switch {
	case repeated:
		body, w.eight = appendRepeated(body, w.idx, n, c.wide, w.eight)
	case e == dictionary:
		body = appendIndexes(body, w.idx, c.wide)
	default:
		at := len(body)
		body = appendValues(body, c.leaf, v, e, &w.lens)
		w.split, w.width = body[at:], 8
		if c.leaf.Kind == Float32 {
			w.width = 4
		}
	}
	if e == dictionary {
		c.dictPages++
		p.bounds = c.dict.bounds(c.leaf, w.idx)
		if lv == nil && !repeated && c.leaf.physical() == typeBytes && (w.guide == nil || c.dict.len() > w.guide.len()) {
			w.guide = &c.dict
			w.idx, w.guided = w.guided, w.idx
		}
	} else {
		p.bounds = boundsOf(c.leaf, v)
	}
	w.body = body
	head, packed := w.pack(c, body, slots, e, false)
	p.size = len(head) + len(packed)
	p.crc = crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, packed)
	c.buf.append(head, w.comp)
	c.buf.append(packed, w.comp)
	w.add(c, p, slots, e)
	if c.rest > 0 {
		c.rest--
	} else if e == c.enc && !repeated && n > 0 && p.size > 4096 && float64(p.size) > 1.5*c.expect*float64(n) {
		c.enc = undecided // the values have changed their nature
	}
	return nil
}

// index finds the dictionary numbers of a column.
func (w *Writer) index(c *column, v *Values) ([]uint32, bool) {
	if w.guide != nil && c.leaf.List < 0 && c.leaf.physical() == typeBytes && len(w.guided) == len(v.Ends) && w.guide != &c.dict {
		return indexBeside(&c.dict, w.idx, v.Data, v.Ends, w.guided, w.guide)
	}
	return c.dict.index(c.leaf, v, w.idx)
}

// add counts a page in.
func (w *Writer) add(c *column, p page, slots int, e encoding) {
	c.encodings |= 1 << e
	c.pages = append(c.pages, p)
	c.values += int64(slots)
	c.nulls += p.nulls
	c.bounds.widen(c.leaf, p.bounds)
}

// pack returns a page as its head and its content, both valid until the next call.
func (w *Writer) pack(c *column, body []byte, slots int, e encoding, dict bool) (head, packed []byte) {
	size := len(body)
	switch {
	case c.store:
	case len(body) < tinyPage || c.skip > 0 && !dict:
		c.skip = max(c.skip-1, 0)
	default:
		if e == byteSplit && !dict {
			packed = w.comp.streams(body, len(body)-len(w.split), len(w.split)/max(1, w.width))
		} else {
			packed = w.comp.zstd(body)
		}
		if len(packed) > len(body)-len(body)/32 {
			packed = nil
			if c.poor++; c.poor > 1 {
				c.skip = 8
			}
		} else {
			c.poor = 0
		}
	}
	if packed != nil {
		size = len(packed)
	} else if !c.store {
		w.trial = appendStored(w.trial[:0], body)
		packed = w.trial
		size = len(packed)
	}
	head = w.pageHead(len(body), size, slots, e, dict)
	c.raw += int64(len(head) + len(body))
	if c.store {
		packed = body
	}
	return head, packed
}

// pageHead is the head of a page; valid until the next call.
func (w *Writer) pageHead(raw, size, slots int, e encoding, dict bool) []byte {
	t := &w.head
	t.reset()
	kind := int64(0)
	if dict {
		kind = 2
	}
	t.i32(1, kind)
	t.i32(2, int64(raw))
	t.i32(3, int64(size))
	if dict {
		t.begin(7)
		t.i32(1, int64(slots))
		t.i32(2, int64(plain))
	} else {
		t.begin(5)
		t.i32(1, int64(slots))
		t.i32(2, int64(e))
		t.i32(3, int64(rleLevels))
		t.i32(4, int64(rleLevels))
	}
	t.end()
	t.stop()
	return t.b
}

// trialValues is how many values an encoding is tried on.
const trialValues = 4096

// choose finds the encoding that makes a sample of v smallest.
func (w *Writer) choose(c *column, v *Values) {
	n := v.Len(c.leaf)
	if c.leaf.Kind == Bytes && c.leaf.Fixed == 0 && len(v.Data)/n >= longValue { // there is not much to choose
		c.enc, c.wide, c.expect, c.rest = deltaLength, false, math.Inf(1), 0
		return
	}
	from := max(0, n/2-trialValues/2)
	to := min(n, from+trialValues)
	sample, ends := window(c.leaf, v, from, to, w.ends)
	w.ends = ends
	best := math.Inf(1)
	c.enc, c.wide = plain, false
	for _, e := range candidates(c.leaf) {
		if e != dictionary {
			w.trial = appendValues(w.trial[:0], c.leaf, &sample, e, &w.lens)
			if cost := float64(w.cost(w.trial)) / float64(to-from); cost < 0.98*best {
				best, c.enc = cost, e
			}
			continue
		}
		if c.full || c.leaf.physical() < typeBytes && !few(c.leaf, &sample) {
			continue
		}
		// How many values are new in the second half says what the dictionary costs in pages to come.
		k := min(n, 4*trialValues)
		var d dict
		first, ends := window(c.leaf, v, 0, k/2, w.ends)
		w.ends = ends
		idx, ok := d.index(c.leaf, &first, w.idx[:0])
		half := d.len()
		second, ends := window(c.leaf, v, k/2, k, w.ends)
		w.ends = ends
		idx, ok2 := d.index(c.leaf, &second, idx)
		w.idx = idx[:0]
		growth := 2 * (d.len() - half) * (n / k)
		if !ok || !ok2 || 2*d.len() > k && k > 64 || growth > 64 && d.len()+4*growth > maxDictEntries {
			continue
		}
		share := min(1, 0.25+float64(growth)/float64(d.len()))
		dictCost := float64(w.cost(d.appendPage(w.trial[:0], c.leaf))) * share / float64(k)
		for _, wide := range []bool{false, true} {
			w.trial = appendIndexes(w.trial[:0], idx, wide)
			if cost := float64(w.cost(w.trial))/float64(k) + dictCost; cost < 0.98*best {
				best, c.enc, c.wide = cost, e, wide
			}
		}
	}
	c.expect, c.rest = best, 8
}

// few says whether at most half of the numbers of a sample are different.
func few(l *Leaf, v *Values) bool {
	var d dict
	_, ok := d.index(l, v, nil)
	return ok && (2*d.len() <= v.Len(l) || v.Len(l) < 64)
}

// cost is the size of b compressed.
func (w *Writer) cost(b []byte) int {
	if len(b) < tinyPage {
		return len(b)
	}
	return min(len(w.comp.zstd(b)), len(b)+storedSize)
}
