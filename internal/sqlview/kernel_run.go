package sqlview

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugins/columnar"
)

// maxGroups bounds the groups of a kernel; a query with more is SQLite's.
const maxGroups = 4 << 20

// result is an answer.
type result struct {
	names []string
	rows  [][]any
}

// run answers the query of a plan.
func (p *kernelPlan) run(ctx context.Context, v *View) (*result, error) {
	if p.grouped {
		if res := p.counted(); res != nil {
			return res, nil
		}
	}
	chunks, err := p.chunks(ctx)
	if err != nil {
		return nil, err
	}
	if !p.grouped {
		return p.runPlain(ctx, v, chunks)
	}
	return p.runGroups(ctx, v, chunks)
}

// counted answers a count of all rows, which storages know.
func (p *kernelPlan) counted() *result {
	if len(p.keys) > 0 || len(p.preds) > 0 || p.nothing || len(p.aggs) != 1 || len(p.aggs[0].args) > 0 || len(p.bare) > 0 || len(p.sel.having) > 0 {
		return nil
	}
	n := uint64(0)
	for _, s := range p.sources {
		k, ok := s.cols.CountRows(s.topic, p.lo, p.hi)
		if !ok {
			return nil
		}
		n += k
	}
	w := &groupWorker{set: newGroupSet(nil), aggs: []aggregate{{e: p.aggs[0], count: []int64{int64(n)}}}}
	rows, err := p.output(nil, w)
	if err != nil {
		return nil
	}
	return &result{p.names, rows}
}

// chunks are those that may have rows that pass. The slice must not be changed.
func (p *kernelPlan) chunks(ctx context.Context) ([]*kernelChunk, error) {
	p.even = false
	if p.nothing || p.lo > p.hi {
		return nil, nil
	}
	byStamps := !slices.ContainsFunc(p.preds, func(pr predicate) bool { return pr.texts == nil || constantOfSource(pr.ref) })
	var out []*kernelChunk
	for _, s := range p.sources {
		all, err := s.chunks(ctx, p.lo, p.hi)
		if err != nil {
			return nil, err
		}
		if err := p.findColumns(s, all); err != nil {
			return nil, err
		}
		if byStamps && len(p.sources) == 1 {
			p.even = s.even
			return all, nil
		}
		for _, c := range all {
			ok, err := p.mayPass(c)
			if err != nil {
				return nil, err
			}
			if ok {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// findColumns finds the columns of chunks before goroutines look for them.
func (p *kernelPlan) findColumns(s *kernelSource, chunks []*kernelChunk) error {
	i := slices.IndexFunc(p.refs, func(r *ref) bool { return r.sys < 0 })
	if i < 0 || p.found[s] {
		return nil
	}
	for _, c := range chunks {
		if _, err := p.column(c, p.refs[i]); err != nil {
			return err
		}
	}
	p.found[s] = s.all != nil && len(chunks) == len(s.all)
	return nil
}

func (p *kernelPlan) runGroups(ctx context.Context, v *View, chunks []*kernelChunk) (*result, error) {
	var w *groupWorker
	var err error
	if p.newestOnly() {
		w, err = p.newest(ctx, v, chunks)
	} else {
		w, err = p.groups(ctx, v, chunks)
	}
	if w != nil {
		defer w.close()
	}
	if err != nil {
		return nil, err
	}
	rows, err := p.output(v, w)
	if err != nil {
		return nil, err
	}
	return &result{p.names, rows}, nil
}

// groups goes through all chunks, in as many goroutines as there are processors; each has a stretch of them.
func (p *kernelPlan) groups(ctx context.Context, v *View, chunks []*kernelChunk) (*groupWorker, error) {
	n := min(runtime.GOMAXPROCS(0), len(chunks)/16+1)
	workers := make([]*groupWorker, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range workers {
		w := newGroupWorker(v, p)
		workers[i] = w
		mine := chunks[i*len(chunks)/n : (i+1)*len(chunks)/n]
		work := func() {
			for _, c := range mine {
				if errs[i] = ctx.Err(); errs[i] == nil {
					errs[i] = w.chunk(c)
				}
				if errs[i] == nil && w.set.groups > maxGroups {
					errs[i] = errKernel
				}
				if errs[i] != nil {
					return
				}
			}
		}
		if i == n-1 { // this goroutine works as well
			work()
			break
		}
		wg.Go(work)
	}
	wg.Wait()
	for _, w := range workers[1:] {
		defer w.close()
	}
	for _, err := range errs {
		if err != nil {
			return workers[0], err
		}
	}
	for _, w := range workers[1:] {
		if err := workers[0].merge(w); err != nil {
			return workers[0], err
		}
	}
	return workers[0], nil
}

// newestOnly tells whether a query asks for the newest row of each value of a text, and nothing else.
func (p *kernelPlan) newestOnly() bool {
	return len(p.keys) == 1 && p.keys[0].op == 'c' && p.keys[0].ref.class == 't' && p.keys[0].ref.sys < 0 && len(p.aggs) == 1 &&
		p.aggs[0].name == "max" && len(p.aggs[0].args) == 1 && p.aggs[0].args[0].ref.sys == colLogTime
}

// newest goes through chunks from the newest to the oldest, and leaves out those of which it knows that no text can have a
// newer row there than the one it has found: of kept chunks it knows their texts, of parts their dictionary.
func (p *kernelPlan) newest(ctx context.Context, v *View, chunks []*kernelChunk) (*groupWorker, error) {
	chunks = slices.Clone(chunks)
	slices.SortStableFunc(chunks, func(a, b *kernelChunk) int { return cmp.Compare(b.End, a.End) })
	w := newGroupWorker(v, p)
	w.resume()
	defer w.remember()
	key := p.keys[0].ref
	pending := map[*columnar.Dictionary][]uint32{} // entries of parts' dictionaries that are still looked for
	parts := map[any]*columnar.Dictionary{}
	for _, c := range chunks {
		if err := ctx.Err(); err != nil {
			return w, err
		}
		d := parts[c.Part()]
		if d != nil {
			left := w.older(pending[d][:0], pending[d], d, c.End)
			if pending[d] = left; len(left) == 0 {
				continue
			}
		}
		done, err := w.lookFor(c, d, pending[d])
		if err == nil && !done {
			err = w.chunk(c)
		}
		if err != nil {
			return w, err
		}
		if c.Part() == nil || parts[c.Part()] != nil {
			continue
		}
		vec, err := w.vector(c, key)
		if err != nil {
			return w, err
		}
		if vec.Dict != nil && p.dictionaryOnly(c) {
			parts[c.Part()] = vec.Dict
			all := make([]uint32, vec.Dict.Entries)
			for i := range all {
				all[i] = uint32(i)
			}
			pending[vec.Dict] = all
		}
	}
	return w, nil
}

// dictionaryOnly tells whether all pages of a part's column have texts of the part's dictionary; where they have not, none is
// skipped.
func (p *kernelPlan) dictionaryOnly(c *kernelChunk) bool {
	col, err := p.column(c, p.keys[0].ref)
	return err == nil && c.AllCoded(col)
}

// older appends the entries whose newest row so far is older than end to out.
func (w *groupWorker) older(out, entries []uint32, d *columnar.Dictionary, end int64) []uint32 {
	table := w.set.keys[0].ofDict(d)
	a := &w.aggs[0]
	for _, e := range entries {
		if table[e] == 0 { // perhaps known from another part
			if id, ok := w.set.keys[0].byText[string(d.At(int(e)))]; ok {
				table[e] = id + 1
			}
		}
		if id := table[e]; id == 0 || int(id) > len(a.count) || a.count[id-1] == 0 || a.min[id-1] < end {
			out = append(out, e)
		}
	}
	return out
}

// resume takes over what an earlier run of the plan has learned of texts, so that none is looked up again.
func (w *groupWorker) resume() {
	if w.p.texts != nil && w.p.textsOf == w.v.forgot {
		w.set.keys[0] = *w.p.texts
		w.set.groups = w.set.keys[0].len()
		w.grow()
	}
}

// remember keeps it, unless that is a lot or dictionaries do not stay.
func (w *groupWorker) remember() {
	k := &w.set.keys[0]
	w.p.texts = nil
	if w.v.memory > 0 && len(k.texts) <= 1<<18 && len(k.byCode) <= 1<<12 {
		w.p.texts, w.p.textsOf = k, w.v.forgot
	}
}

// lookFor takes the rows of a chunk in whose text may have its newest row there, by the postings that are kept, or by the
// numbers that are still looked for, left, of d; false where all rows have to be looked at. d is nil where left is not known.
func (w *groupWorker) lookFor(c *kernelChunk, d *columnar.Dictionary, left []uint32) (bool, error) {
	key := w.p.keys[0].ref
	col, err := w.p.column(c, key)
	if err != nil || len(w.p.preds) > 0 {
		return false, err
	}
	posts := c.posts[col]
	tried := c.tried[col]
	c.tried[col] = true
	build := posts == nil && tried && w.v.memory > 0 && c.Rows <= math.MaxUint16+1 && c.Part() != nil
	if posts == nil && !build && d == nil {
		return false, nil
	}
	w.giveBack()
	vec, err := w.vector(c, key)
	if err != nil || vec.Dict == nil || d != nil && vec.Dict != d {
		return false, err
	}
	if build {
		posts = newPostings(vec)
		w.v.keepPostings(c, col, posts)
	}
	if d == nil {
		w.left = w.older(w.left[:0], posts.entries, vec.Dict, c.End)
		left = w.left
	}
	if posts == nil {
		w.pass = w.passing(vec.Dict.Entries)
		for _, e := range left {
			w.pass[e] = true
		}
		w.every, w.n = true, c.Rows
		w.narrow(c, func(row uint32) bool { return w.pass[codeAt(vec, row)] })
	} else {
		w.sel = w.sel[:0]
		for _, e := range left {
			for _, row := range posts.of(int(e)) {
				w.sel = append(w.sel, uint32(row))
			}
		}
		w.every, w.n = false, len(w.sel)
	}
	if w.n > 0 && (c.Start < w.p.lo || c.End > w.p.hi) {
		v, err := w.vector(c, &ref{sys: colLogTime})
		if err != nil {
			return false, err
		}
		w.narrow(c, func(row uint32) bool { t := v.I64[row]; return t >= w.p.lo && t <= w.p.hi })
	}
	if w.n == 0 {
		return true, nil
	}
	return true, w.take(c)
}

// output makes rows of groups.
func (p *kernelPlan) output(v *View, w *groupWorker) ([][]any, error) {
	groups := make([]uint32, 0, w.set.groups)
	env := &groupRow{w: w}
	newest := p.newestOnly()
next:
	for g := range uint32(w.set.groups) {
		env.group = g
		if newest && w.aggs[0].count[g] == 0 {
			continue // a text that an earlier run has met
		}
		for _, h := range p.sel.having {
			x := p.compute(h.e, env)
			if x.kind == kindNull {
				continue next
			}
			c := compareValues(x, h.v)
			if !map[string]bool{"=": c == 0, "<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0}[h.op] {
				continue next
			}
		}
		groups = append(groups, g)
	}
	if len(p.bare) > 0 {
		if err := env.read(v, p, groups); err != nil {
			return nil, err
		}
	}
	rows := make([]outRow, len(groups))
	for i, g := range groups {
		env.group = g
		rows[i].values = make([]any, len(p.sel.items))
		for k := range p.sel.items {
			rows[i].values[k] = p.boxed(p.sel.items[k].e, env)
		}
		for _, o := range p.order {
			rows[i].keys = append(rows[i].keys, p.compute(o.e, env))
		}
	}
	return p.sorted(rows), nil
}

// outRow is a row of a result with what it is sorted by.
type outRow struct {
	values []any
	keys   []value
}

// sorted sorts rows, and leaves as many as are wanted.
func (p *kernelPlan) sorted(rows []outRow) [][]any {
	if len(p.order) > 0 {
		slices.SortStableFunc(rows, func(a, b outRow) int {
			for i, o := range p.order {
				if c := compareValues(a.keys[i], b.keys[i]); c != 0 {
					if o.desc {
						return -c
					}
					return c
				}
			}
			return 0
		})
	}
	if n := p.sel.limit; n >= 0 && n < int64(len(rows)) {
		rows = rows[:n]
	}
	out := make([][]any, len(rows))
	for i := range rows {
		out[i] = rows[i].values
	}
	return out
}

// leafSource gives the values of the leaves of an expression.
type leafSource interface {
	leaf(e *expr) value
	box(e *expr) any // leaf as a value of a result
}

// compute is the value of an expression.
func (p *kernelPlan) compute(e *expr, from leafSource) value {
	switch e.op {
	case 'k':
		return e.v
	case 'c', 'a', 'g':
		return from.leaf(e)
	}
	return arithmetic(e.op, p.compute(e.args[0], from), p.compute(e.args[1], from))
}

func (p *kernelPlan) boxed(e *expr, from leafSource) any {
	switch e.op {
	case 'c', 'a', 'g':
		return from.box(e)
	}
	return p.compute(e, from).any()
}

// groupRow are the leaves of a group's row.
type groupRow struct {
	w     *groupWorker
	group uint32
	bare  map[uint32][]any // by group: the columns that go with the min or max
}

func (r *groupRow) leaf(e *expr) value {
	switch e.op {
	case 'g':
		return r.w.set.value(r.group, e.slot)
	case 'a':
		return r.w.aggs[e.slot].value(r.group)
	}
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

func (r *groupRow) box(e *expr) any {
	if e.op == 'c' {
		if row := r.bare[r.group]; row != nil {
			return row[-1-e.slot]
		}
		return nil
	}
	return r.leaf(e).any()
}

// read reads the columns that go with the min or max of groups, chunk by chunk.
func (r *groupRow) read(v *View, p *kernelPlan, groups []uint32) error {
	r.bare = make(map[uint32][]any, len(groups))
	a := &r.w.aggs[p.bareAgg]
	byChunk := map[*kernelChunk][]uint32{}
	var chunks []*kernelChunk
	for _, g := range groups {
		if a.count[g] == 0 {
			continue
		}
		c := a.at[g].chunk
		if byChunk[c] == nil {
			chunks = append(chunks, c)
		}
		byChunk[c] = append(byChunk[c], g)
	}
	for _, c := range chunks {
		vecs, err := r.w.vectors(c, p.bare)
		if err != nil {
			return err
		}
		for _, g := range byChunk[c] {
			row := make([]any, len(p.bare))
			for i, b := range p.bare {
				if row[i], err = p.valueAt(v, c, b, vecs[i], a.at[g].row); err != nil {
					return err
				}
			}
			r.bare[g] = row
		}
	}
	return nil
}

// valueAt is a value of a column as a result has it.
func (p *kernelPlan) valueAt(v *View, c *kernelChunk, r *ref, vec *columnar.Vector, row uint32) (any, error) {
	if constantOfSource(r) {
		return c.s.ofSource(r), nil
	}
	if r.class == 't' {
		if vec.Dict != nil {
			return v.textOf(vec.Dict, codeAt(vec, row)), nil
		}
		return string(vec.At(int(row))), nil
	}
	from, at := vec, row
	if vec.Dict != nil {
		from, at = &columnar.Vector{}, codeAt(vec, row)
		from.Values = vec.Dict.Values
	}
	kind := p.kindOf(c.s, r)
	if r.class == 'f' {
		if f := floatAt(from, kind, at); f == f {
			return f, nil
		}
		return nil, nil
	}
	n := intAt(from, kind, at)
	switch {
	case kind == shred.UInt64 && n < 0:
		return nil, errKernel
	case r.sys == colPubTime && n == 0:
		return nil, nil
	}
	return n, nil
}

var errTooMany = errors.New("more rows than kernels collect")
