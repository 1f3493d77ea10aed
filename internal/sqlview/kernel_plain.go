package sqlview

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/gobag/gobag/plugins/columnar"
)

// hit is a row that passes.
type hit struct {
	place
	time  int64
	order int64
}

// runPlain answers a query without groups: it finds the rows, sorts them by stamp and order number, and reads their columns.
func (p *kernelPlan) runPlain(ctx context.Context, v *View, chunks []*kernelChunk) (*result, error) {
	w := &kernelWorker{p: p, v: v}
	defer w.close()
	byTime := len(p.order) == 1 && p.order[0].e.op == 'c' && p.order[0].e.ref.sys == colLogTime
	backwards := byTime && p.order[0].desc
	limit := int64(-1)
	if byTime || len(p.order) == 0 {
		limit = p.sel.limit
	}
	if !p.even {
		chunks = slices.Clone(chunks)
		slices.SortStableFunc(chunks, func(a, b *kernelChunk) int {
			if backwards {
				return cmp.Compare(a.End, b.End) // and from its end on
			}
			return cmp.Compare(a.Start, b.Start)
		})
	}
	compare := func(a, b hit) int {
		if backwards {
			return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(b.order, a.order))
		}
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.order, b.order))
	}
	var hits []hit
	for i := range chunks {
		c := chunks[i]
		if backwards {
			c = chunks[len(chunks)-1-i]
		}
		if limit == 0 {
			break
		}
		if limit > 0 && int64(len(hits)) >= limit { // do further chunks matter?
			last := hits[limit-1].time
			if !backwards && c.Start > last || backwards && c.End < last {
				break
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w.giveBack()
		if err := w.filter(c); err != nil {
			return nil, err
		}
		if w.n == 0 {
			continue
		}
		if len(hits)+w.n > 10*plainLimit && limit < 0 {
			return nil, fmt.Errorf("%w: %w", errKernel, errTooMany)
		}
		vecs, err := w.vectors(c, []*ref{{sys: colLogTime}, {sys: colOrder}})
		if err != nil {
			return nil, err
		}
		times, orders := vecs[0].I64, vecs[1].I64
		for k := range w.n {
			row := w.row(k)
			hits = append(hits, hit{place{c, row}, times[row], orders[row]})
		}
		if limit >= 0 {
			slices.SortFunc(hits, compare)
			hits = hits[:min(int64(len(hits)), limit)]
		}
	}
	slices.SortFunc(hits, compare)
	rows, err := p.plainRows(w, hits)
	if err != nil {
		return nil, err
	}
	out := &result{names: p.names}
	if byTime || len(p.order) == 0 {
		for i := range rows {
			out.rows = append(out.rows, rows[i].values)
		}
		if p.sel.limit >= 0 {
			out.rows = out.rows[:min(int64(len(out.rows)), p.sel.limit)]
		}
		return out, nil
	}
	out.rows = p.sorted(rows)
	return out, nil
}

// plainRow are the leaves of a row.
type plainRow struct {
	p    *kernelPlan
	v    *View
	at   place
	vecs []*columnar.Vector // by plan.leaves
	err  error
}

func (r *plainRow) box(e *expr) any {
	i := slices.Index(r.p.leaves, e.ref)
	x, err := r.p.valueAt(r.v, r.at.chunk, e.ref, r.vecs[i], r.at.row)
	if err != nil && r.err == nil {
		r.err = err
	}
	return x
}

func (r *plainRow) leaf(e *expr) value {
	switch x := r.box(e).(type) {
	case int64:
		return intValue(x)
	case float64:
		return realValue(x)
	case string:
		return textValue(x)
	}
	return value{}
}

// plainRows reads the columns of rows. Rows of one chunk lie mostly beside each other.
func (p *kernelPlan) plainRows(w *kernelWorker, hits []hit) ([]outRow, error) {
	rows := make([]outRow, len(hits))
	vecs := map[*kernelChunk][]*columnar.Vector{}
	env := &plainRow{p: p, v: w.v}
	for i, h := range hits {
		if vecs[h.chunk] == nil {
			if len(vecs) > 64 { // chunks that take turns are read again, which is slow but not large
				clear(vecs)
			}
			var err error
			if vecs[h.chunk], err = w.vectors(h.chunk, p.leaves); err != nil {
				return nil, err
			}
		}
		env.at, env.vecs = h.place, vecs[h.chunk]
		rows[i].values = make([]any, len(p.sel.items))
		for k := range p.sel.items {
			rows[i].values[k] = p.boxed(p.sel.items[k].e, env)
		}
		for _, o := range p.order {
			rows[i].keys = append(rows[i].keys, p.compute(o.e, env))
		}
	}
	return rows, env.err
}
