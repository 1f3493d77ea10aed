package sqlite

import "encoding/binary"

// tableTree writes the b-tree of the table messages, whose rows come by ascending ids and are never changed: a leaf that
// is full is written once. Its root stays on the page where it was made; the other pages are new ones.
//
// SQLite wants at least one row on every leaf but an empty root, and at least one key on every interior page.
type tableTree struct {
	st     *store
	root   uint32
	leaf   pageBuilder
	page   uint32 // of the leaf, 0 = it has none yet
	last   int64  // id of the row written last
	fresh  bool   // the leaf has changed since it was written
	levels []*tableLevel
	build  pageBuilder // for interior pages
	head   []byte
}

// tableLevel is the right-most page of one level above the leaves: the finished pages below it. Below it there also is
// the right-most page of the level below, which grows.
type tableLevel struct {
	kids  []tableKid
	size  int    // of the cells of kids, with their addresses
	page  uint32 // where it is written; 0 = not yet, or the root
	below uint32 // the right-most page below when it was written
	fresh bool
}

type tableKid struct {
	page uint32
	key  int64 // the largest id in it
}

func (k tableKid) size() int { return 4 + varintSize(uint64(k.key)) + 2 }

func newTableTree(st *store, root uint32) *tableTree {
	t := &tableTree{st: st, root: root, leaf: pageBuilder{b: make([]byte, st.pageSize)}, build: pageBuilder{b: make([]byte, st.pageSize)}}
	t.leaf.reset(pageLeaf)
	return t
}

// add writes a row of messages; its id must be larger than those before.
func (t *tableTree) add(id, topic, stamp int64, payload []byte) error {
	head := appendMessageHead(t.head[:0], topic, stamp, len(payload))
	t.head = head
	size := int64(len(head) + len(payload))
	local := localSize(t.st.pageSize, size)
	n := varintSize(uint64(size)) + varintSize(uint64(id)) + local
	if int64(local) < size {
		n += 4
	}
	if n > t.leaf.room() {
		if err := t.closeLeaf(); err != nil {
			return err
		}
	}
	c := appendVarint(t.leaf.add(n)[:0], uint64(size))
	c = appendVarint(c, uint64(id))
	c = append(c, head...)
	local -= len(head)
	c = append(c, payload[:local]...)
	t.last, t.fresh, t.st.changed = id, true, true
	if local == len(payload) {
		return nil
	}
	first, err := t.overflow(payload[local:])
	binary.BigEndian.PutUint32(c[len(c):len(c)+4], first)
	return err
}

// overflow writes the rest of a row to pages of its own, each of which begins with the number of the next.
func (t *tableTree) overflow(rest []byte) (first uint32, err error) {
	for {
		page, b, err := t.st.extend()
		if err != nil {
			return 0, err
		}
		if first == 0 {
			first = page
		}
		n := copy(b[4:], rest)
		rest = rest[n:]
		next := uint32(0)
		if len(rest) > 0 {
			if next = page + 1; next == t.st.lockPage {
				next++
			}
		}
		binary.BigEndian.PutUint32(b, next)
		if next == 0 {
			clear(b[4+n:])
			return first, nil
		}
	}
}

// put writes a page: to the one given, or, if that is 0, to a new one.
func (t *tableTree) put(page uint32, b []byte) (uint32, error) {
	if page != 0 {
		return page, t.st.write(page, b)
	}
	page, to, err := t.st.extend()
	copy(to, b)
	return page, err
}

// closeLeaf writes the leaf for the last time; a row comes that does not fit on it.
func (t *tableTree) closeLeaf() error {
	page, err := t.put(t.page, t.leaf.finish(0))
	if err != nil {
		return err
	}
	t.page = 0
	t.leaf.reset(pageLeaf)
	return t.push(0, tableKid{page, t.last})
}

// push adds a finished page to a level. A page of the level that has no room for it is finished and goes to the level
// above; the new one begins with the page that came.
func (t *tableTree) push(level int, k tableKid) error {
	if level == len(t.levels) {
		t.levels = append(t.levels, &tableLevel{})
	}
	l := t.levels[level]
	l.fresh = true
	if 12+l.size+k.size() <= t.st.pageSize {
		l.kids, l.size = append(l.kids, k), l.size+k.size()
		return nil
	}
	n := len(l.kids) - 1
	last := l.kids[n]
	page, err := t.put(l.page, t.interior(l.kids[:n], last.page))
	if err != nil {
		return err
	}
	l.kids, l.size, l.page = append(l.kids[:0], k), k.size(), 0
	return t.push(level+1, tableKid{page, last.key})
}

func (t *tableTree) interior(kids []tableKid, right uint32) []byte {
	t.build.reset(pageInterior)
	for _, k := range kids {
		c := t.build.add(k.size() - 2)
		binary.BigEndian.PutUint32(c, k.page)
		appendVarint(c[4:4], uint64(k.key))
	}
	return t.build.finish(right)
}

// seal writes the pages that still grow, so that the tree is whole.
func (t *tableTree) seal() error {
	if !t.fresh {
		return nil
	}
	t.fresh = false
	leaf := t.leaf.finish(0)
	if len(t.levels) == 0 {
		return t.st.write(t.root, leaf)
	}
	below, err := t.put(t.page, leaf)
	if err != nil {
		return err
	}
	t.page = below
	for i, l := range t.levels {
		top := i == len(t.levels)-1
		page := l.page
		if top {
			page = t.root
		}
		if l.fresh || l.below != below || page == 0 {
			if page, err = t.put(page, t.interior(l.kids, below)); err != nil {
				return err
			}
			if !top {
				l.page = page
			}
			l.fresh, l.below = false, below
		}
		below = page
	}
	return nil
}
