package sqlite

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Pages of an index b-tree.
const (
	pageIndexLeaf     = 0x0a
	pageIndexInterior = 0x02
)

// indexTree writes the b-tree of the index on the stamps. Its entries are (stamp, id), each of which stands once in the
// tree, on a leaf or as a divider on an interior page. Entries mostly ascend: then the right-most leaf takes them, and is
// written once when it is full. Others are put into their place, on pages that are read again when they are not at hand.
type indexTree struct {
	st    *store
	root  *indexNode
	nodes map[uint32]*indexNode // those at hand, by page
	most  int                   // nodes that may be at hand before some are put away
	path  []indexStep           // from the root to the leaf of the last descent
	right []*indexNode          // the right edge, from the root to the leaf
	last  key                   // the largest entry
	any   bool
	build pageBuilder
}

type indexNode struct {
	page uint32
	ents []key
	kids []uint32 // one more than ents; none on leaves
	size int      // of the cells, with their addresses
	dirt bool     // differs from what is written
}

type indexStep struct {
	n  *indexNode
	at int // of the child, or of the entry on the leaf
}

// indexNodes is how many pages of the index are kept: at most 8 MiB with pages of 8 KB.
const indexNodes = 1024

func newIndexTree(st *store, root uint32) *indexTree {
	t := &indexTree{st: st, nodes: map[uint32]*indexNode{}, most: indexNodes, build: pageBuilder{b: make([]byte, st.pageSize)}}
	t.root = &indexNode{page: root}
	t.right = []*indexNode{t.root}
	return t
}

func (n *indexNode) leaf() bool { return len(n.kids) == 0 }

// cellSize is how many bytes the entry takes on n, with its address.
func (n *indexNode) cellSize(e key) int {
	_, a := intSerial(e.stamp)
	_, b := intSerial(e.id)
	size := 2 + 1 + 3 + a + b
	if !n.leaf() {
		size += 4
	}
	return size
}

// add puts an entry into the tree. There must be none like it.
func (t *indexTree) add(e key) error {
	if !t.any || t.last.compare(e) < 0 {
		t.any, t.last = true, e
		t.path = t.path[:0]
		for _, n := range t.right {
			t.path = append(t.path, indexStep{n, len(n.ents)})
		}
	} else if err := t.descend(e); err != nil {
		return err
	}
	s := t.path[len(t.path)-1]
	s.n.insert(s.at, e, 0)
	if err := t.split(); err != nil {
		return err
	}
	if len(t.nodes) > t.most {
		return t.putAway()
	}
	return nil
}

// insert puts an entry at a place of n, and on interior pages the child behind it.
func (n *indexNode) insert(at int, e key, behind uint32) {
	n.ents = slices.Insert(n.ents, at, e)
	if behind != 0 {
		n.kids = slices.Insert(n.kids, at+1, behind)
	}
	n.size += n.cellSize(e)
	n.dirt = true
}

// descend finds the place of an entry on a leaf.
func (t *indexTree) descend(e key) error {
	t.path = t.path[:0]
	for n := t.root; ; {
		at, found := slices.BinarySearchFunc(n.ents, e, key.compare)
		if found {
			return fmt.Errorf("index on the stamps: message %d of time %d is there already", e.id, e.stamp)
		}
		t.path = append(t.path, indexStep{n, at})
		if n.leaf() {
			return nil
		}
		var err error
		if n, err = t.node(n.kids[at]); err != nil {
			return err
		}
	}
}

// split divides the pages of the path that have become too full, from the leaf up.
func (t *indexTree) split() error {
	for i := len(t.path) - 1; i >= 0; i-- {
		n, at := t.path[i].n, t.path[i].at
		head := 8
		if !n.leaf() {
			head = 12
		}
		if head+n.size <= t.st.pageSize {
			return nil
		}
		if i == 0 { // the root stays on its page: what it holds moves to a page below
			page, _, err := t.st.extend()
			if err != nil {
				return err
			}
			moved := &indexNode{page: page, ents: n.ents, kids: n.kids, size: n.size, dirt: true}
			t.nodes[page] = moved
			t.root = &indexNode{page: n.page, kids: []uint32{page}, dirt: true}
			t.path = slices.Insert(t.path, 0, indexStep{t.root, 0})
			t.path[1].n = moved
			if t.right[0] == n {
				t.right[0] = moved
				t.right = slices.Insert(t.right, 0, t.root)
			}
			n, i = moved, 1
		}
		if err := t.divide(i, n, at); err != nil {
			return err
		}
	}
	return nil
}

// divide moves the end of n to a new page behind it. Where entries ascend, that is as little as can be.
func (t *indexTree) divide(i int, n *indexNode, at int) error {
	k := len(n.ents) / 2
	edge := t.right[i] == n
	ascending := edge && at >= len(n.ents)-1
	if ascending {
		k = len(n.ents) - 2
	}
	page, _, err := t.st.extend()
	if err != nil {
		return err
	}
	divider := n.ents[k]
	r := &indexNode{page: page, ents: slices.Clone(n.ents[k+1:]), dirt: true}
	n.ents = n.ents[:k]
	if !n.leaf() {
		r.kids = slices.Clone(n.kids[k+1:])
		n.kids = n.kids[:k+1]
	}
	n.measure()
	r.measure()
	n.dirt = true
	t.nodes[page] = r
	if edge {
		t.right[i] = r
	}
	up := t.path[i-1]
	up.n.insert(up.at, divider, page)
	if ascending { // full, and nothing more will come
		if err := t.put(n); err != nil {
			return err
		}
		delete(t.nodes, n.page)
		r.ents = append(n.ents[:0], r.ents...) // its memory goes on
		r.kids = append(n.kids[:0], r.kids...)
	}
	return nil
}

func (n *indexNode) measure() {
	n.size = 0
	for _, e := range n.ents {
		n.size += n.cellSize(e)
	}
}

// put writes a page of the tree.
func (t *indexTree) put(n *indexNode) error {
	n.dirt = false
	kind := byte(pageIndexLeaf)
	if !n.leaf() {
		kind = pageIndexInterior
	}
	t.build.reset(kind)
	right := uint32(0)
	for i, e := range n.ents {
		c := t.build.add(n.cellSize(e) - 2)[:0]
		if kind == pageIndexInterior {
			c = binary.BigEndian.AppendUint32(c, n.kids[i])
		}
		ss, sn := intSerial(e.stamp)
		is, in := intSerial(e.id)
		c = append(c, byte(3+sn+in), 3, ss, is)
		appendInt(appendInt(c, e.stamp, sn), e.id, in)
	}
	if kind == pageIndexInterior {
		right = n.kids[len(n.ents)]
	}
	return t.st.write(n.page, t.build.finish(right))
}

// node returns a page of the tree.
func (t *indexTree) node(page uint32) (*indexNode, error) {
	if n := t.nodes[page]; n != nil {
		return n, nil
	}
	b := t.build.b
	if err := t.st.read(page, b); err != nil {
		return nil, err
	}
	n := &indexNode{page: page}
	for _, off := range cellOffsets(page, b) {
		if b[0] == pageIndexInterior {
			n.kids = append(n.kids, binary.BigEndian.Uint32(b[off:]))
			off += 4
		}
		e, ok := indexEntry(b[off:])
		if !ok {
			return nil, fmt.Errorf("index on the stamps: page %d is not as it was written", page)
		}
		n.ents = append(n.ents, e)
	}
	if b[0] == pageIndexInterior {
		n.kids = append(n.kids, binary.BigEndian.Uint32(b[8:]))
	}
	n.measure()
	t.nodes[page] = n
	return n, nil
}

// indexEntry reads the entry of a cell, from its size on.
func indexEntry(b []byte) (key, bool) {
	size, n := varint(b)
	if n == 0 || size > uint64(len(b)-n) {
		return key{}, false
	}
	var cols [2]column
	rec := b[n : n+int(size)]
	cs, err := columnsOf(rec, int64(size), cols[:0])
	if err != nil || len(cs) != 2 || !cs[0].isInt() || !cs[1].isInt() {
		return key{}, false
	}
	return key{cs[0].int(rec), cs[1].int(rec)}, true
}

// putAway writes pages and forgets them, all but the right edge.
func (t *indexTree) putAway() error {
	for page, n := range t.nodes {
		if slices.Contains(t.right, n) {
			continue
		}
		if n.dirt {
			if err := t.put(n); err != nil {
				return err
			}
		}
		delete(t.nodes, page)
	}
	return nil
}

// seal writes all pages that differ from what is written.
func (t *indexTree) seal() error {
	if t.root.dirt {
		if err := t.put(t.root); err != nil {
			return err
		}
	}
	for _, n := range t.nodes {
		if n.dirt {
			if err := t.put(n); err != nil {
				return err
			}
		}
	}
	return nil
}
