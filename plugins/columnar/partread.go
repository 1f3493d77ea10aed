package columnar

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugins/columnar/parquet"
)

// partFile is a part whose footer was read. Its file is open only while pages are read.
type partFile struct {
	ref    *partRef
	path   string
	f      *os.File
	pq     *parquet.File
	shapes []byte // of every page group, if a column was rearranged
}

// ReadAt reads from the file, which must be open.
func (p *partFile) ReadAt(b []byte, off int64) (int, error) { return p.f.ReadAt(b, off) }

// with opens the file for f.
func (p *partFile) with(f func() error) error {
	var err error
	if p.f, err = os.Open(p.path); err == nil {
		err = f()
		_ = p.f.Close() // was read only
	}
	var damage *parquet.DamageError
	switch {
	case errors.As(err, &damage):
		return &plugin.CorruptError{Path: p.path, Offset: damage.Offset, Err: damage.Err}
	case errors.Is(err, fs.ErrNotExist):
		return &plugin.CorruptError{Path: p.path, Offset: 0, Err: errors.New("the file is missing")}
	case err != nil:
		var corrupt *plugin.CorruptError
		if errors.As(err, &corrupt) {
			return err
		}
		return fmt.Errorf("read storage %s: %w", p.path, err)
	}
	return nil
}

// group is a page group of a part.
type group struct {
	part       *partFile
	number     int
	start, end int64
}

// openPart reads the footer of a part and returns its page groups.
func (r *reader) openPart(ref *partRef) ([]group, error) {
	p := &partFile{ref: ref, path: filepath.Join(r.dir, filepath.FromSlash(ref.name))}
	var groups []group
	err := p.with(func() error {
		fi, err := p.f.Stat()
		if err != nil {
			return err
		}
		if fi.Size() < ref.size {
			return &parquet.DamageError{Offset: fi.Size(), Err: fmt.Errorf("the file has %d bytes, it should have %d", fi.Size(), ref.size)}
		}
		if p.pq, err = parquet.Open(p, ref.size); err != nil {
			return err
		}
		groups, err = p.groups()
		if err != nil {
			return &parquet.DamageError{Offset: 0, Err: err}
		}
		return nil
	})
	return groups, err
}

// groups checks that the part is the one that was asked for.
func (p *partFile) groups() ([]group, error) {
	if got := p.pq.Value(keyPart); got != fmt.Sprint(p.ref.number) {
		return nil, fmt.Errorf("this is part %.20q, not %d", got, p.ref.number)
	}
	if p.pq.Rows() != int64(p.ref.rows) {
		return nil, fmt.Errorf("the part has %d rows, it should have %d", p.pq.Rows(), p.ref.rows)
	}
	b, err := base64.StdEncoding.DecodeString(p.pq.Value(keyGroups))
	if err != nil || len(b) != 16*p.pq.Groups() {
		return nil, errors.New("stamps of page groups are damaged")
	}
	if text := p.pq.Value(keyBlobs); text != "" {
		if p.shapes, err = base64.StdEncoding.DecodeString(text); err != nil || len(p.shapes) != 9*p.pq.Groups() {
			return nil, errors.New("what was rearranged is damaged")
		}
	}
	var gs []group
	for i := range p.pq.Groups() {
		gs = append(gs, group{p, i, int64(le.Uint64(b[16*i:])), int64(le.Uint64(b[16*i+8:]))})
	}
	return gs, nil
}

// row is a message of a page group; its payload lies in page.data.
type row struct {
	time   int64
	send   int64
	seq    uint64
	order  uint64
	off    int
	n      int
	source uint32
	topic  plugin.TopicID
}

// page is a page group whose payloads were put together.
type page struct {
	rows []row // by time and order
	data []byte
}

func (p *page) size() int64 { return int64(cap(p.data)) + int64(cap(p.rows))*64 }

// decoder reads page groups. It belongs to one iterator.
type decoder struct {
	r       *reader
	fields  []string // as plugin.Query.Fields
	pages   *parquet.PageReader
	own     []parquet.Values
	batches map[*shred.Program]*typedBatch
	ends    []int
	moved   []byte
}

type typedBatch struct {
	batch  *shred.Batch
	cursor *shred.Cursor
	keep   []bool // columns that are looked at; nil all
	filled []bool // lists whose counts were read
}

func (d *decoder) close() {
	if d.pages != nil {
		d.pages.Close()
	}
	*d = decoder{r: d.r, fields: d.fields}
}

// load reads a page group into p.
func (d *decoder) load(g *group, p *page) error {
	if d.pages == nil {
		var err error
		if d.pages, err = parquet.NewPageReader(); err != nil {
			return err
		}
		d.batches = map[*shred.Program]*typedBatch{}
	}
	return g.part.with(func() error { return d.read(g, p) })
}

func (d *decoder) read(g *group, p *page) error {
	pq, ref := g.part.pq, g.part.ref
	damaged := func(err error) error { return &parquet.DamageError{Offset: 0, Err: err} }
	own := map[byte]int{partTyped: typedOwn, partRaw: rawOwn, partMixed: mixedOwn}[ref.kind]
	if len(pq.Leaves()) < own {
		return damaged(errors.New("columns are missing"))
	}
	for len(d.own) < own {
		d.own = append(d.own, parquet.Values{})
	}
	for i := range own {
		l := &pq.Leaves()[i]
		want := parquet.Field{Name: "_form", Kind: parquet.UInt8}
		switch {
		case i < systemColumns:
			want = systemFields[i]
		case ref.kind == partTyped && i == colPatch:
			want = parquet.Field{Name: "_patch", Kind: parquet.Bytes}
		case ref.kind != partTyped:
			want = mixedFields()[i]
		}
		if l.Name != want.Name || l.Kind != want.Kind || l.List >= 0 || l.Fixed > 0 {
			return damaged(fmt.Errorf("column %d is %.100q", i, l.Name))
		}
		if err := d.pages.Read(pq, g.number, i, &d.own[i]); err != nil {
			return err
		}
	}
	n := pq.GroupRows(g.number)
	p.rows, p.data = p.rows[:0], p.data[:0]
	d.ends = d.ends[:0]
	if ref.kind == partTyped {
		if err := d.typed(g, p); err != nil {
			return err
		}
	} else {
		v := &d.own[colPayload]
		p.data = append(p.data, v.Data...)
		for _, e := range v.Ends {
			d.ends = append(d.ends, int(e))
		}
	}
	start, sorted := 0, true
	for i := range n {
		w := row{time: d.own[colLogTime].I64[i], send: d.own[colPubTime].I64[i], seq: uint64(d.own[colSeq].I64[i]), order: uint64(d.own[colOrder].I64[i]),
			source: uint32(d.own[colSource].I32[i]), off: start, n: d.ends[i] - start, topic: ref.topic}
		start = d.ends[i]
		if ref.kind == partMixed {
			if w.topic = plugin.TopicID(d.own[colTopicID].I32[i]); w.topic == 0 || int(w.topic) > len(d.r.state.topics) {
				return damaged(fmt.Errorf("a message of topic %d", w.topic))
			}
		}
		if i > 0 && byTime(p.rows[i-1], w) > 0 {
			sorted = false
		}
		p.rows = append(p.rows, w)
	}
	if !sorted {
		slices.SortFunc(p.rows, byTime)
	}
	return nil
}

func byTime(a, b row) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.order, b.order)) }

// typed puts the payloads of a page group of columns together.
func (d *decoder) typed(g *group, p *page) error {
	pq := g.part.pq
	damaged := func(err error) error { return &parquet.DamageError{Offset: 0, Err: err} }
	prog, err := d.r.program(g.part.ref)
	if err != nil {
		return damaged(err)
	}
	t := d.batches[prog]
	if t == nil {
		t = &typedBatch{prog.NewBatch(), prog.NewCursor(), d.wanted(prog), make([]bool, len(prog.Lists()))}
		d.batches[prog] = t
	}
	b := t.batch
	b.Reset()
	if len(pq.Leaves()) != typedOwn+len(b.Cols) || len(pq.Lists()) != len(b.Counts) {
		return damaged(errors.New("columns are not those of the definition"))
	}
	clear(t.filled)
	for i := range b.Cols {
		leaf, c := &pq.Leaves()[typedOwn+i], &prog.Columns()[i]
		if kind, err := kindOf(c.Kind); err != nil || kind != leaf.Kind || leaf.Fixed != c.Fixed || leaf.List != c.List {
			return damaged(fmt.Errorf("column %.100q is not that of the definition", leaf.Name))
		}
		if t.keep != nil && !t.keep[i] {
			continue
		}
		if err := d.pages.Read(pq, g.number, typedOwn+i, (*parquet.Values)(&b.Cols[i])); err != nil {
			return err
		}
		for l := c.List; l >= 0 && !t.filled[l]; l = prog.Lists()[l].Parent {
			t.filled[l] = true
			if prog.Lists()[l].Fixed > 0 {
				continue
			}
			if b.Counts[l], err = d.pages.Counts(b.Counts[l], prog.Lists()[l].Depth); err != nil {
				return damaged(err)
			}
		}
	}
	n := pq.GroupRows(g.number)
	if t.keep != nil {
		if err := fillRest(prog, b, n, t.keep, t.filled); err != nil {
			return damaged(err)
		}
	}
	if g.part.shapes != nil {
		if err := d.undo(g, prog, b, t.keep); err != nil {
			return damaged(err)
		}
	}
	for _, f := range d.own[colForm].I32 {
		if f < 0 || f > 255 {
			return damaged(errors.New("a form is out of range"))
		}
		b.Forms = append(b.Forms, shred.Form(f))
	}
	if err := prog.Check(b); err != nil {
		return damaged(err)
	}
	t.cursor.Rewind()
	want := pq.GroupBytes(g.number)
	if t.keep == nil && want <= maxMessage+groupBytes {
		p.data = slices.Grow(p.data, int(want))
	} else {
		want = 0
	}
	for i := range n {
		from := len(p.data)
		if p.data, err = prog.Assemble(p.data, b, t.cursor); err == nil && t.keep == nil {
			p.data, err = applyPatch(p.data, from, d.own[colPatch].At(i), want-int64(from))
		}
		if err != nil {
			return damaged(err)
		}
		d.ends = append(d.ends, len(p.data))
	}
	return nil
}

// undo puts the bytes of a column back in order.
func (d *decoder) undo(g *group, prog *shred.Program, b *shred.Batch, keep []bool) error {
	k := blobColumnOf(prog)
	if k == nil {
		return errors.New("no column that could have been rearranged")
	}
	if keep != nil && !keep[k.col] {
		return nil
	}
	s := parseShape(g.part.shapes[9*g.number:])
	v := &b.Cols[k.col]
	if !s.fits(len(v.Data)) {
		return fmt.Errorf("%d bytes cannot have been rearranged by %d", len(v.Data), s.step)
	}
	if s.kind != blobAsIs {
		d.moved = s.undo(d.moved[:0], v.Data)
		v.Data, d.moved = d.moved, v.Data
	}
	return nil
}
