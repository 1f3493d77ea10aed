package shred

import "fmt"

// Levels appends the definition and repetition levels, as Dremel and Parquet have them, of the columns whose innermost
// list is the given one: an entry for each value, and one for each list that is empty. All columns of a list share them.
func (p *Program) Levels(b *Batch, list int, def, rep []uint8) ([]uint8, []uint8) {
	l := levels{def: def, rep: rep}
	for i := list; i >= 0; i = p.lists[i].Parent {
		l.fixed = append(l.fixed, p.lists[i].Fixed)
		l.counts = append(l.counts, b.Counts[i])
	}
	for range b.Rows() {
		l.list(len(l.fixed)-1, 0, 0)
	}
	return l.def, l.rep
}

// levels walks the element counts of a list and those it is in, innermost first.
type levels struct {
	def, rep []uint8
	fixed    []int
	counts   [][]uint32
}

// list adds what is below the next occurrence of list i, at depth, its first entry with repetition level rep.
func (l *levels) list(i int, depth, rep uint8) {
	n := l.fixed[i]
	if n == 0 {
		n = int(l.counts[i][0])
		l.counts[i] = l.counts[i][1:]
	}
	if n == 0 {
		l.def, l.rep = append(l.def, depth), append(l.rep, rep)
		return
	}
	depth++
	if i > 0 {
		for range n {
			l.list(i-1, depth, rep)
			rep = depth
		}
		return
	}
	l.def, l.rep = append(l.def, depth), append(l.rep, rep)
	for range n - 1 {
		l.def, l.rep = append(l.def, depth), append(l.rep, depth)
	}
}

// Occurrences appends to counts the element counts of a list, as Batch.Counts has them, taken from the levels of any
// column in it. The counts of a list that is fixed are checked and not appended.
func (p *Program) Occurrences(list int, def, rep []uint8, counts []uint32) ([]uint32, error) {
	if len(def) != len(rep) {
		return counts, fmt.Errorf("counts of list %s: %d definition levels and %d repetition levels", p.lists[list].Name(), len(def), len(rep))
	}
	depth := uint8(p.lists[list].Depth)
	fixed := p.lists[list].Fixed
	start, n, in := len(counts), uint32(0), false
	end := func() error {
		if in && fixed > 0 && n != uint32(fixed) {
			return fmt.Errorf("counts of list %s: %d elements of %d", p.lists[list].Name(), n, fixed)
		}
		if in && fixed == 0 {
			counts = append(counts, n)
		}
		return nil
	}
	for i, d := range def {
		r := rep[i]
		if i == 0 && r != 0 {
			return counts[:start], fmt.Errorf("counts of list %s: the first repetition level is %d", p.lists[list].Name(), r)
		}
		if r < depth { // something above begins anew
			if err := end(); err != nil {
				return counts[:start], err
			}
			n, in = 0, d >= depth-1
		} else if n == 0 || r == depth && d < depth { // goes on with an empty list, or within it
			return counts[:start], fmt.Errorf("counts of list %s: levels %d, %d at entry %d", p.lists[list].Name(), d, r, i)
		}
		if r <= depth && d >= depth {
			n++
		}
	}
	return counts, end()
}
