package shred

// Select returns a program that walks the same payloads but stores only some columns: those for which keep, by index, is
// true. For queries that need few of them. Its batches lack the values of the others and the counts of lists that hold
// none of the kept, so Assemble and Check are not for them; and of what is not stored only lengths are checked.
func (p *Program) Select(keep []bool) *Program {
	s := &Program{typ: p.typ, cols: p.cols, lists: p.lists, full: p.full, keep: append([]bool(nil), keep...), keepL: make([]bool, len(p.lists))}
	for i := range p.cols {
		if keep[i] {
			for l := p.cols[i].List; l >= 0; l = p.lists[l].Parent {
				s.keepL[l] = true
			}
		}
	}
	for v := range s.ops {
		s.ops[v] = emitter{xcdr2: v == 1, keep: s.keep, keepL: s.keepL}.emit(nil, p.full.body)
	}
	s.root, _ = s.prune(p.full)
	return s
}

// prune returns n with what is kept below it; ok is false if that is nothing.
func (p *Program) prune(n node) (pruned node, ok bool) {
	switch n.code {
	case opStruct:
		body := make([]node, 0, len(n.body))
		for _, field := range n.body {
			if field, ok := p.prune(field); ok {
				body = append(body, field)
			}
		}
		n.body = body
		return n, len(body) > 0
	case opNumbers, opList:
		if !p.keepL[n.list] {
			return n, false
		}
		elem, ok := p.prune(n.body[0])
		n.body = []node{elem}
		return n, ok
	}
	return n, p.stores(n.col)
}

// stores tells whether column i is stored.
func (p *Program) stores(i int) bool { return p.keep == nil || p.keep[i] }

// counts tells whether list i has its counts stored.
func (p *Program) counts(i int) bool { return p.lists[i].Fixed == 0 && (p.keepL == nil || p.keepL[i]) }
