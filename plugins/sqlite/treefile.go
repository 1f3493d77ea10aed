package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/gobag/gobag/plugin"
)

// treeFile is a storage that was closed in order, mapped into memory and read without SQLite. It takes the tables in
// the one form in which rosbag2 and gobag make them. Its memory is only touched below guard.
type treeFile struct {
	path     string
	b        []byte
	pageSize int
	messages uint32 // root pages
	stamps   uint32
	packs    uint32 // 0 = there are none
	scans    bool   // long ranges can be read too
	ring     *ring  // what is in memory, of a long range; nil = that is left to the system
}

// ring is the pieces of a mapped file that are kept in memory while a long range is read.
type ring struct {
	pieces [8]int // number of the piece, plus one
	next   int    // to be replaced
	last   int    // used last
}

// pieceSize is the size of a piece; a multiple of every page size, of files and of memory.
const pieceSize = 1 << 20

// enter brings the piece with the byte at off into memory.
func (t *treeFile) enter(off int) error {
	n := off/pieceSize + 1
	r := t.ring
	if r.pieces[r.last] == n {
		return nil
	}
	if i := slices.Index(r.pieces[:], n); i >= 0 {
		r.last = i
		return nil
	}
	if old := r.pieces[r.next]; old > 0 {
		forget(t.piece(old))
	}
	r.pieces[r.next] = n
	r.last = r.next
	r.next = (r.next + 1) % len(r.pieces)
	if err := populate(t.piece(n)); err != nil {
		return t.corrupt(0, "it cannot be read any more: %w", err)
	}
	return nil
}

func (t *treeFile) piece(n int) []byte { return t.b[(n-1)*pieceSize : min(n*pieceSize, len(t.b))] }

// done forgets the pieces.
func (t *treeFile) done() {
	if t.ring == nil {
		return
	}
	for _, n := range t.ring.pieces {
		if n > 0 {
			forget(t.piece(n))
		}
	}
	*t.ring = ring{}
}

// The forms of the tables, without spaces and in lower case.
const (
	messagesForm = "createtablemessages(idintegerprimarykey,topic_idintegernotnull,timestampintegernotnull,datablobnotnull)"
	stampsForm   = "createindextimestamp_idxonmessages(timestampasc)"
	packsForm    = "createtablegobag_data(idintegerprimarykey,datablobnotnull)"
)

// mapTrees is false where tests read settled storages through SQLite.
var mapTrees = true

// openTreeFile maps the file of a settled reader; nil where it has to be read through SQLite.
func openTreeFile(vc *viewConn) (*treeFile, error) {
	v := vc.v
	t := &treeFile{path: v.f.path, pageSize: int(v.pageSize)}
	var reserved [1]byte
	if _, err := v.ReadAt(reserved[:], 20); err != nil || reserved[0] != 0 {
		return nil, err
	}
	err := vc.query("SELECT sql, rootpage FROM sqlite_master", func(s *stmt) error {
		root := uint32(s.int64(1))
		switch strings.ToLower(strings.Join(strings.Fields(s.text(0)), "")) {
		case messagesForm:
			t.messages = root
		case stampsForm:
			t.stamps = root
		case packsForm:
			t.packs = root
		}
		return nil
	})
	if err != nil || t.messages == 0 || t.stamps == 0 || !mapTrees {
		return nil, err
	}
	if t.b, err = mapFile(v.f.db, v.pages*v.pageSize); err != nil {
		return nil, nil //nolint:nilerr // there is the other way
	}
	t.scans = populate(t.b[:min(len(t.b), t.pageSize)]) == nil
	return t, nil
}

func (t *treeFile) close() error {
	if t == nil || t.b == nil {
		return nil
	}
	b := t.b
	t.b = nil
	return unmapFile(b)
}

// guard runs f. Where the file cannot be read, or has become shorter, touching its memory fails like an access to
// memory that is not there; that becomes an error.
func (t *treeFile) guard(f func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			fault, ok := p.(interface {
				runtime.Error
				Addr() uintptr
			})
			if !ok {
				panic(p)
			}
			err = &plugin.CorruptError{Path: t.path, Offset: -1, Err: fmt.Errorf("it cannot be read any more: %w", error(fault))}
		}
	}()
	return f()
}

// corrupt is an error on a page.
func (t *treeFile) corrupt(page uint32, format string, args ...any) error {
	return &plugin.CorruptError{Path: t.path, Offset: max(0, int64(page)-1) * int64(t.pageSize), Err: fmt.Errorf(format, args...)}
}

// raw returns a page.
func (t *treeFile) raw(page uint32) ([]byte, error) {
	if page < 2 || int64(page)*int64(t.pageSize) > int64(len(t.b)) {
		return nil, t.corrupt(0, "a page leads to page %d, which is not there", page)
	}
	off := (int(page) - 1) * t.pageSize
	if t.ring != nil {
		if err := t.enter(off); err != nil {
			return nil, err
		}
	}
	return t.b[off : off+t.pageSize : off+t.pageSize], nil
}

// treePage is a page of a b-tree.
type treePage struct {
	page  uint32
	b     []byte
	head  int
	cells int
}

func (p *treePage) leaf() bool { return p.head == 8 }

// node returns a page of a table or an index, whose pages are of these kinds.
func (t *treeFile) node(page uint32, leaf, interior byte) (treePage, error) {
	b, err := t.raw(page)
	if err != nil {
		return treePage{}, err
	}
	p := treePage{page: page, b: b, head: 8, cells: int(binary.BigEndian.Uint16(b[3:]))}
	switch b[0] {
	case leaf:
	case interior:
		p.head = 12
	default:
		return p, t.corrupt(page, "page %d is of kind %d", page, b[0])
	}
	if p.head+2*p.cells > len(b) {
		return p, t.corrupt(page, "page %d has %d cells", page, p.cells)
	}
	return p, nil
}

// cell returns the bytes from the beginning of a cell on; empty where it cannot be right.
func (p *treePage) cell(i int) []byte {
	off := int(binary.BigEndian.Uint16(p.b[p.head+2*i:]))
	if off < p.head+2*p.cells {
		return nil
	}
	return p.b[min(off, len(p.b)):]
}

// child returns the page below: cells + 1 of them.
func (p *treePage) child(i int) uint32 {
	if i == p.cells {
		return binary.BigEndian.Uint32(p.b[8:])
	}
	c := p.cell(i)
	if len(c) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(c)
}

var errTooDeep = errors.New("a tree of pages has no end")

// rowid returns the id of a row, or on an interior page the largest one below.
func (t *treeFile) rowid(p *treePage, i int) (int64, error) {
	c := p.cell(i)
	if p.leaf() {
		_, n := varint(c)
		c = c[n:]
	} else if len(c) >= 4 {
		c = c[4:]
	}
	id, n := varint(c)
	if n == 0 {
		return 0, t.corrupt(p.page, "page %d: cell %d cannot be read", p.page, i)
	}
	return int64(id), nil
}

// search returns the first cell whose id is at least id.
func (t *treeFile) search(p *treePage, id int64) (int, error) {
	lo, hi := 0, p.cells
	for lo < hi {
		m := (lo + hi) / 2
		v, err := t.rowid(p, m)
		if err != nil {
			return 0, err
		}
		if v < id {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo, nil
}

// floor finds the row with the largest id up to id; found is false where there is none.
func (t *treeFile) floor(root uint32, id int64) (p treePage, i int, found bool, err error) {
	left, page := uint32(0), root // left: below it are the rows before those below page
	for range maxDepth {
		if p, err = t.node(page, pageLeaf, pageInterior); err != nil {
			return p, 0, false, err
		}
		if i, err = t.search(&p, id); err != nil {
			return p, 0, false, err
		}
		if !p.leaf() {
			if i > 0 {
				left = p.child(i - 1)
			}
			page = p.child(i)
			continue
		}
		if i < p.cells {
			v, err := t.rowid(&p, i)
			if err != nil || v == id {
				return p, i, err == nil, err
			}
		}
		if i > 0 {
			return p, i - 1, true, nil
		}
		if left == 0 {
			return p, 0, false, nil
		}
		page, left = left, 0
		// What follows is the last row below page: id is larger than all of them.
	}
	return p, 0, false, &plugin.CorruptError{Path: t.path, Offset: -1, Err: errTooDeep}
}

// row returns a cell of a table.
func (t *treeFile) row(p *treePage, i int) (cell, error) {
	c, err := parseLocal(p.cell(i), t.pageSize)
	if err != nil || c.size > int64(len(t.b)) {
		return c, t.corrupt(p.page, "page %d: row %d cannot be read", p.page, i)
	}
	return c, nil
}

// rest appends n bytes of a row, from byte at of the record on.
func (t *treeFile) rest(dst []byte, c *cell, at, n int64) ([]byte, error) {
	if local := int64(len(c.local)); at < local {
		k := min(n, local-at)
		dst = append(dst, c.local[at:at+k]...)
		at, n = at+k, n-k
	}
	skip := at - int64(len(c.local))
	for page := c.overflow; n > 0; {
		b, err := t.raw(page)
		if err != nil {
			return dst, err
		}
		page = binary.BigEndian.Uint32(b)
		b = b[4:]
		if skip >= int64(len(b)) {
			skip -= int64(len(b))
			continue
		}
		b = b[skip:]
		skip = 0
		k := min(n, int64(len(b)))
		dst = append(dst, b[:k]...)
		n -= k
	}
	return dst, nil
}
