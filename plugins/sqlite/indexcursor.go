package sqlite

import (
	"encoding/binary"

	"github.com/gobag/gobag/plugin"
)

// indexCursor goes through the entries of the index on the stamps, in order or backwards.
type indexCursor struct {
	t       *treeFile
	reverse bool
	path    []treeStep
	divider bool // it stands on an entry of an interior page, the last of path
	last    key  // the entry returned last
	begun   bool
}

// treeStep is a page on the way, and the entry there, or on interior pages the child that the way goes through.
type treeStep struct {
	treePage
	at int
}

// entry returns an entry of a page.
func (cu *indexCursor) entry(p *treePage, i int) (key, error) {
	c := p.cell(i)
	if !p.leaf() && len(c) >= 4 {
		c = c[4:]
	}
	// A head of three bytes, a stamp of eight and an id of at most eight: what it nearly always is.
	if len(c) >= 16 && c[1] == 3 && c[2] == 6 && c[3] >= 1 && c[3] <= 4 && c[0] == 11+c[3] {
		id := int64(int8(c[12]))
		for _, b := range c[13 : 12+c[3]] {
			id = id<<8 | int64(b)
		}
		return key{int64(binary.BigEndian.Uint64(c[4:])), id}, nil
	}
	if k, ok := indexEntry(c); ok {
		return k, nil
	}
	return key{}, cu.t.corrupt(p.page, "index page %d: entry %d cannot be read", p.page, i)
}

func (cu *indexCursor) push(page uint32) (*treeStep, error) {
	if len(cu.path) == maxDepth {
		return nil, &plugin.CorruptError{Path: cu.t.path, Offset: -1, Err: errTooDeep}
	}
	p, err := cu.t.node(page, pageIndexLeaf, pageIndexInterior)
	if err != nil {
		return nil, err
	}
	cu.path = append(cu.path, treeStep{treePage: p})
	return &cu.path[len(cu.path)-1], nil
}

// seek goes to the first entry that is not before k, or backwards to the last one that is not behind it; ok is false
// where there is none.
func (cu *indexCursor) seek(k key) (e key, ok bool, err error) {
	cu.path, cu.divider, cu.begun = cu.path[:0], false, false
	for page := cu.t.stamps; ; {
		s, err := cu.push(page)
		if err != nil {
			return e, false, err
		}
		// The first entry that is at least k, or for the way back, that is larger.
		lo, hi := 0, s.cells
		for lo < hi {
			m := (lo + hi) / 2
			v, err := cu.entry(&s.treePage, m)
			if err != nil {
				return e, false, err
			}
			c := v.compare(k)
			if c == 0 { // there is only one
				s.at = m
				cu.divider = !s.leaf()
				return cu.found(v)
			}
			if c < 0 {
				lo = m + 1
			} else {
				hi = m
			}
		}
		s.at = lo
		if !s.leaf() {
			page = s.child(lo)
			continue
		}
		if cu.reverse {
			s.at--
		}
		return cu.settle()
	}
}

// settle returns the entry where the cursor stands on a leaf, or if it has left the leaf, the next one above.
func (cu *indexCursor) settle() (key, bool, error) {
	s := &cu.path[len(cu.path)-1]
	for s.leaf() && (s.at < 0 || s.at >= s.cells) || !s.leaf() && (cu.reverse && s.at == 0 || !cu.reverse && s.at == s.cells) {
		if cu.path = cu.path[:len(cu.path)-1]; len(cu.path) == 0 {
			return key{}, false, nil
		}
		s = &cu.path[len(cu.path)-1]
	}
	cu.divider = !s.leaf()
	if cu.divider && cu.reverse {
		s.at--
	}
	e, err := cu.entry(&s.treePage, s.at)
	if err != nil {
		return e, false, err
	}
	return cu.found(e)
}

// found returns an entry. They have to be in order: a damaged tree might go on for ever.
func (cu *indexCursor) found(e key) (key, bool, error) {
	if c := e.compare(cu.last); cu.begun && (cu.reverse && c >= 0 || !cu.reverse && c <= 0) {
		s := &cu.path[len(cu.path)-1]
		return e, false, cu.t.corrupt(s.page, "index page %d: entries are out of order", s.page)
	}
	cu.last, cu.begun = e, true
	return e, true, nil
}

// next goes to the next entry.
func (cu *indexCursor) next() (key, bool, error) {
	if len(cu.path) == 0 {
		return key{}, false, nil
	}
	s := &cu.path[len(cu.path)-1]
	if !cu.divider {
		if s.at++; cu.reverse {
			s.at -= 2
		}
		return cu.settle()
	}
	if !cu.reverse {
		s.at++
	}
	for !s.leaf() {
		var err error
		if s, err = cu.push(s.child(s.at)); err != nil {
			return key{}, false, err
		}
		if cu.reverse {
			s.at = s.cells
		}
	}
	if cu.reverse {
		s.at--
	}
	return cu.settle()
}
