package sqlview

import (
	"math"
	"slices"

	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugins/columnar"
)

// kernelWorker goes through chunks. It belongs to one goroutine.
type kernelWorker struct {
	p  *kernelPlan
	v  *View
	rd *columnar.ColumnReader

	sel    []uint32 // rows of the chunk that pass; not used where all do
	every  bool
	n      int // how many pass
	pass   []bool
	codes  []int
	lent   []lent
	ints   []int64
	floats []float64
}

func (w *kernelWorker) close() {
	if w.rd != nil {
		w.rd.Close()
	}
}

// vector reads a column of a chunk, if it is not kept.
func (w *kernelWorker) vector(c *kernelChunk, r *ref) (*columnar.Vector, error) {
	col, err := w.p.column(c, r)
	if err != nil {
		return nil, err
	}
	if v := c.vecs[col]; v != nil {
		if r.class == 't' && v.Dict == nil {
			return w.v.number(c, col, v), nil
		}
		return v, nil
	}
	for _, l := range w.lent {
		if l.c == c && l.col == col {
			return l.v, nil
		}
	}
	if w.rd == nil {
		if w.rd, err = columnar.NewColumnReader(); err != nil {
			return nil, err
		}
	}
	vs, err := w.rd.Read(c.Chunk, []int{col})
	if err != nil {
		return nil, kernelError(err)
	}
	if !w.v.keep(c, col, vs[0]) {
		w.lent = append(w.lent, lent{c, col, vs[0]})
	}
	return vs[0], nil
}

// lent is a column of the chunk that the worker is at, which nobody keeps.
type lent struct {
	c   *kernelChunk
	col int
	v   *columnar.Vector
}

// giveBack ends the use of columns that nobody keeps, when the worker is done with a chunk.
func (w *kernelWorker) giveBack() {
	for _, l := range w.lent {
		w.rd.Recycle(l.c.Chunk, l.v)
	}
	w.lent = w.lent[:0]
}

// vectors is vector for several columns, with one opening of the file.
func (w *kernelWorker) vectors(c *kernelChunk, refs []*ref) ([]*columnar.Vector, error) {
	out := make([]*columnar.Vector, len(refs))
	var cols, at []int
	for i, r := range refs {
		if constantOfSource(r) {
			continue
		}
		col, err := w.p.column(c, r)
		if err != nil {
			return nil, err
		}
		if out[i] = c.vecs[col]; out[i] == nil {
			cols, at = append(cols, col), append(at, i)
		}
	}
	if len(cols) == 0 {
		return out, nil
	}
	if w.rd == nil {
		var err error
		if w.rd, err = columnar.NewColumnReader(); err != nil {
			return nil, err
		}
	}
	vs, err := w.rd.Read(c.Chunk, cols)
	if err != nil {
		return nil, kernelError(err)
	}
	for k, v := range vs {
		w.v.keep(c, cols[k], v)
		out[at[k]] = v
	}
	return out, nil
}

// constantOfSource tells whether a column is the same in all rows of a source.
func constantOfSource(r *ref) bool { return r.sys == colBag || r.sys == colTopic || r.sys == colType }

// ofSource is its value.
func (s *kernelSource) ofSource(r *ref) string {
	switch r.sys {
	case colBag:
		return s.src.bag.name
	case colTopic:
		return s.src.name
	}
	return s.src.typ
}

// mayPass tells whether rows of a chunk can pass, by its stamps and by what the part's statistics say.
func (p *kernelPlan) mayPass(c *kernelChunk) (bool, error) {
	if c.End < p.lo || c.Start > p.hi {
		return false, nil
	}
	for i := range p.preds {
		pr := &p.preds[i]
		if constantOfSource(pr.ref) {
			if !slices.Contains(pr.texts, c.s.ofSource(pr.ref)) {
				return false, nil
			}
			continue
		}
		if pr.ref.sys >= 0 || pr.texts != nil {
			continue
		}
		col, err := p.column(c, pr.ref)
		if err != nil {
			return false, err
		}
		lo, hi, ok := c.Bounds(col)
		if !ok {
			continue
		}
		some := false
		for _, s := range pr.ints {
			some = some || float64(s.lo) <= hi && float64(s.hi) >= lo
		}
		for _, s := range pr.floats {
			some = some || s.lo <= hi && s.hi >= lo
		}
		if !some {
			return false, nil
		}
	}
	return true, nil
}

// filter finds the rows of a chunk that pass: w.sel, or all of them where w.every is set.
func (w *kernelWorker) filter(c *kernelChunk) error {
	w.every, w.n = true, c.Rows
	for i := range w.p.preds {
		pr := &w.p.preds[i]
		if constantOfSource(pr.ref) || pr.texts == nil {
			continue
		}
		if err := w.byText(c, pr); err != nil || !w.every && w.n == 0 {
			return err
		}
	}
	if c.Start < w.p.lo || c.End > w.p.hi {
		v, err := w.vector(c, &ref{sys: colLogTime})
		if err != nil {
			return err
		}
		lo, hi, times := w.p.lo, w.p.hi, v.I64
		w.narrow(c, func(row uint32) bool { t := times[row]; return t >= lo && t <= hi })
	}
	for i := range w.p.preds {
		pr := &w.p.preds[i]
		if constantOfSource(pr.ref) || pr.texts != nil {
			continue
		}
		if !w.every && w.n == 0 {
			return nil
		}
		if err := w.byNumber(c, pr); err != nil {
			return err
		}
	}
	return nil
}

// narrow leaves the rows that pass a test.
func (w *kernelWorker) narrow(c *kernelChunk, test func(row uint32) bool) {
	if w.every {
		w.sel = slices.Grow(w.sel[:0], c.Rows)
		for row := range uint32(c.Rows) {
			if test(row) {
				w.sel = append(w.sel, row)
			}
		}
		w.every = len(w.sel) == c.Rows
	} else {
		k := 0
		for _, row := range w.sel[:w.n] {
			if test(row) {
				w.sel[k] = row
				k++
			}
		}
		w.sel = w.sel[:k]
	}
	w.n = len(w.sel)
	if w.every {
		w.n = c.Rows
	}
}

// byText leaves the rows whose text is one of those of a predicate. The first time it looks at all of them, then it keeps
// which rows each text has.
func (w *kernelWorker) byText(c *kernelChunk, pr *predicate) error {
	v, err := w.vector(c, pr.ref)
	if err != nil {
		return err
	}
	if v.Dict == nil {
		w.byBytes(c, v, pr.texts)
		return nil
	}
	codes := w.codes[:0]
	for _, s := range pr.texts {
		if code, ok := w.v.codeOf(v.Dict, s); ok && !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	w.codes = codes
	if len(codes) == 0 {
		w.every, w.n = false, 0
		return nil
	}
	col, err := w.p.column(c, pr.ref)
	if err != nil {
		return err
	}
	posts := c.posts[col]
	if posts == nil && w.v.memory > 0 && c.tried[col] && c.Rows <= math.MaxUint16+1 {
		posts = newPostings(v)
		w.v.keepPostings(c, col, posts)
	}
	c.tried[col] = true
	if posts != nil && w.every {
		w.sel = w.sel[:0]
		for _, code := range codes {
			for _, row := range posts.of(code) {
				w.sel = append(w.sel, uint32(row))
			}
		}
		if len(codes) > 1 {
			slices.Sort(w.sel)
		}
		w.every, w.n = false, len(w.sel)
		return nil
	}
	if len(codes) == 1 {
		switch code := codes[0]; {
		case v.Codes8 != nil:
			narrowCode(w, c, v.Codes8, uint8(code))
		case v.Codes16 != nil:
			narrowCode(w, c, v.Codes16, uint16(code))
		default:
			narrowCode(w, c, v.Codes32, uint32(code))
		}
		return nil
	}
	w.pass = w.passing(v.Dict.Entries)
	for _, code := range codes {
		w.pass[code] = true
	}
	w.narrow(c, func(row uint32) bool { return w.pass[codeAt(v, row)] })
	return nil
}

// byBytes leaves the rows with one of some texts. Lengths differ more often than bytes.
func (w *kernelWorker) byBytes(c *kernelChunk, v *columnar.Vector, texts []string) {
	if !w.every {
		w.narrow(c, func(row uint32) bool { return slices.Contains(texts, string(v.At(int(row)))) })
		return
	}
	w.sel = w.sel[:0]
	start := uint32(0)
	for row, end := range v.Ends {
		for _, s := range texts {
			if int(end-start) == len(s) && string(v.Data[start:end]) == s {
				w.sel = append(w.sel, uint32(row))
				break
			}
		}
		start = end
	}
	w.every, w.n = false, len(w.sel)
}

// narrowCode leaves the rows with a code.
func narrowCode[T uint8 | uint16 | uint32](w *kernelWorker, c *kernelChunk, codes []T, code T) {
	if !w.every {
		w.narrow(c, func(row uint32) bool { return codes[row] == code })
		return
	}
	w.sel = w.sel[:0]
	for row, x := range codes {
		if x == code {
			w.sel = append(w.sel, uint32(row))
		}
	}
	w.every, w.n = false, len(w.sel)
}

func codeAt(v *columnar.Vector, row uint32) uint32 {
	switch {
	case v.Codes8 != nil:
		return uint32(v.Codes8[row])
	case v.Codes16 != nil:
		return uint32(v.Codes16[row])
	}
	return v.Codes32[row]
}

func (w *kernelWorker) passing(n int) []bool {
	w.pass = slices.Grow(w.pass[:0], n)[:n]
	clear(w.pass)
	return w.pass
}

// byNumber leaves the rows whose number lies in a span of a predicate.
func (w *kernelWorker) byNumber(c *kernelChunk, pr *predicate) error {
	v, err := w.vector(c, pr.ref)
	if err != nil {
		return err
	}
	kind := w.p.kindOf(c.s, pr.ref)
	odd := false
	var test func(vals *columnar.Vector, i uint32) bool
	if pr.ref.class == 'f' {
		test = func(v *columnar.Vector, i uint32) bool {
			f := floatAt(v, kind, i)
			for _, s := range pr.floats {
				if f >= s.lo && f <= s.hi {
					return true
				}
			}
			return false
		}
	} else {
		null := pr.ref.sys == colPubTime
		test = func(v *columnar.Vector, i uint32) bool {
			n := intAt(v, kind, i)
			odd = odd || kind == shred.UInt64 && n < 0
			for _, s := range pr.ints {
				if n >= s.lo && n <= s.hi {
					return !null || n != 0
				}
			}
			return false
		}
	}
	if v.Dict == nil {
		w.narrow(c, func(row uint32) bool { return test(v, row) })
	} else {
		entries := &columnar.Vector{}
		entries.Values = v.Dict.Values
		w.pass = w.passing(v.Dict.Entries)
		for i := range w.pass {
			w.pass[i] = test(entries, uint32(i))
		}
		w.narrow(c, func(row uint32) bool { return w.pass[codeAt(v, row)] })
	}
	if odd {
		return errKernel // a text of SQLite
	}
	return nil
}

// intAt is number i of the values of v.
func intAt(v *columnar.Vector, kind shred.Kind, i uint32) int64 {
	switch kind {
	case 0, shred.Int64, shred.UInt64, shred.Time, shred.Duration: // 0: of the system
		return v.I64[i]
	case shred.Bool:
		return int64(v.U8[i])
	case shred.UInt32:
		return int64(uint32(v.I32[i]))
	}
	return int64(v.I32[i])
}

func floatAt(v *columnar.Vector, kind shred.Kind, i uint32) float64 {
	if kind == shred.Float32 {
		return float64(v.F32[i])
	}
	return v.F64[i]
}

// intsOf are the numbers of the rows that pass; valid until the next call.
func (w *kernelWorker) intsOf(c *kernelChunk, r *ref) ([]int64, error) {
	v, err := w.vector(c, r)
	if err != nil {
		return nil, err
	}
	kind := w.p.kindOf(c.s, r)
	vals := v.Values
	if v.Dict != nil {
		vals = v.Dict.Values
	}
	w.ints = slices.Grow(w.ints[:0], w.n)[:w.n]
	switch kind {
	case 0, shred.Int64, shred.UInt64, shred.Time, shred.Duration:
		gatherSame(w, v, vals.I64, w.ints)
	case shred.Bool:
		gather(w, v, vals.U8, w.ints, func(x uint8) int64 { return int64(x) })
	case shred.UInt32:
		gather(w, v, vals.I32, w.ints, func(x int32) int64 { return int64(uint32(x)) })
	default:
		gather(w, v, vals.I32, w.ints, func(x int32) int64 { return int64(x) })
	}
	if kind == shred.UInt64 {
		for _, x := range w.ints {
			if x < 0 {
				return nil, errKernel // a text of SQLite
			}
		}
	}
	return w.ints, nil
}

// floatsOf is intsOf for floats.
func (w *kernelWorker) floatsOf(c *kernelChunk, r *ref) ([]float64, error) {
	v, err := w.vector(c, r)
	if err != nil {
		return nil, err
	}
	vals := v.Values
	if v.Dict != nil {
		vals = v.Dict.Values
	}
	w.floats = slices.Grow(w.floats[:0], w.n)[:w.n]
	if w.p.kindOf(c.s, r) == shred.Float32 {
		gather(w, v, vals.F32, w.floats, func(x float32) float64 { return float64(x) })
	} else {
		gatherSame(w, v, vals.F64, w.floats)
	}
	return w.floats, nil
}

// gather puts the values of the rows that pass into out; vals are those of v, or of its dictionary.
func gather[T, U any](w *kernelWorker, v *columnar.Vector, vals []T, out []U, f func(T) U) {
	switch {
	case v.Codes8 != nil:
		gatherCodes(w, v.Codes8, vals, out, f)
	case v.Codes16 != nil:
		gatherCodes(w, v.Codes16, vals, out, f)
	case v.Codes32 != nil:
		gatherCodes(w, v.Codes32, vals, out, f)
	case w.every:
		for i, x := range vals {
			out[i] = f(x)
		}
	default:
		for i, row := range w.sel {
			out[i] = f(vals[row])
		}
	}
}

// gatherSame is gather of values that stay what they are.
func gatherSame[T any](w *kernelWorker, v *columnar.Vector, vals, out []T) {
	switch {
	case v.Codes8 != nil:
		sameCodes(w, v.Codes8, vals, out)
	case v.Codes16 != nil:
		sameCodes(w, v.Codes16, vals, out)
	case v.Codes32 != nil:
		sameCodes(w, v.Codes32, vals, out)
	case w.every:
		copy(out, vals)
	default:
		for i, row := range w.sel {
			out[i] = vals[row]
		}
	}
}

func sameCodes[C uint8 | uint16 | uint32, T any](w *kernelWorker, codes []C, vals, out []T) {
	if w.every {
		for i, c := range codes {
			out[i] = vals[c]
		}
		return
	}
	for i, row := range w.sel {
		out[i] = vals[codes[row]]
	}
}

func gatherCodes[C uint8 | uint16 | uint32, T, U any](w *kernelWorker, codes []C, vals []T, out []U, f func(T) U) {
	if w.every {
		for i, c := range codes {
			out[i] = f(vals[c])
		}
		return
	}
	for i, row := range w.sel {
		out[i] = f(vals[codes[row]])
	}
}

// codeOf finds a text in a dictionary. Dictionaries that were asked often have an index.
func (v *View) codeOf(d *columnar.Dictionary, s string) (int, bool) {
	v.memMu.Lock()
	defer v.memMu.Unlock()
	x := v.dicts[d]
	if x == nil {
		x = &dictIndex{}
		v.dicts[d] = x
	}
	if code, ok := x.known[s]; ok {
		return code, code >= 0
	}
	code, ok := d.Find(s)
	if !ok {
		code = -1
	}
	if x.known == nil || len(x.known) > 10_000 {
		x.known = map[string]int{}
	}
	x.known[s] = code
	return code, ok
}

// dictIndex is what is known of a dictionary.
type dictIndex struct {
	known map[string]int // numbers of texts that were looked for; -1: not there
	boxed []any          // entries as values of a result
}

// textOf is an entry of a dictionary as a value of a result.
func (v *View) textOf(d *columnar.Dictionary, code uint32) any {
	x := v.dicts[d]
	if x == nil {
		x = &dictIndex{}
		v.dicts[d] = x
	}
	if x.boxed == nil {
		x.boxed = make([]any, d.Entries)
	}
	if x.boxed[code] == nil {
		x.boxed[code] = string(d.At(int(code)))
	}
	return x.boxed[code]
}
