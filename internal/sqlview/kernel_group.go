package sqlview

import (
	"math"
	"slices"

	"github.com/gobag/gobag/plugins/columnar"
)

// groupSet numbers the groups that a worker has met. A key's values are numbered first, then their combinations, key by
// key.
type groupSet struct {
	keys   []keySet
	pairs  []pairSet // of keys 0 to i and key i+1
	groups int
}

// keySet numbers the values of a key.
type keySet struct {
	text    bool
	float   bool // ints are the bits of floats
	ints    []int64
	byInt   map[int64]uint32
	last    int64
	lastID  uint32
	texts   []string
	byText  map[string]uint32
	byCode  map[*columnar.Dictionary][]uint32 // 1 + the number of each entry
	scratch []uint32
	next    []uint32 // of texts that are in no dictionary: 1 + the number of the one that followed last time
}

// pairSet numbers combinations.
type pairSet struct {
	a, b  []uint32
	table [][]uint32 // by a, then b: 1 + the number
	room  int        // of all tables
}

// maxPairs bounds the tables of combinations: a query with more is SQLite's.
const maxPairs = 32 << 20

func newGroupSet(keys []*expr) *groupSet {
	g := &groupSet{keys: make([]keySet, len(keys)), pairs: make([]pairSet, max(0, len(keys)-1))}
	for i, k := range keys {
		g.keys[i] = keySet{text: k.op == 'c' && k.ref.class == 't', float: k.op == 'c' && k.ref.class == 'f', byInt: map[int64]uint32{}, byText: map[string]uint32{}, byCode: map[*columnar.Dictionary][]uint32{}}
	}
	if len(keys) == 0 {
		g.groups = 1
	}
	return g
}

func (k *keySet) len() int { return max(len(k.ints), len(k.texts)) }

func (k *keySet) ofInt(n int64) uint32 {
	if n == k.last && len(k.ints) > 0 {
		return k.lastID
	}
	id, ok := k.byInt[n]
	if !ok {
		id = uint32(len(k.ints))
		k.ints = append(k.ints, n)
		k.byInt[n] = id
	}
	k.last, k.lastID = n, id
	return id
}

func (k *keySet) ofText(s []byte) uint32 {
	id, ok := k.byText[string(s)]
	if !ok {
		id = uint32(len(k.texts))
		k.texts = append(k.texts, string(s))
		k.byText[k.texts[id]] = id
	}
	return id
}

// ofNext is ofText for a text that comes after another: it tries the one that did so last time.
func (k *keySet) ofNext(last uint32, s []byte) uint32 {
	if int(last) < len(k.next) && k.next[last] > 0 && k.texts[k.next[last]-1] == string(s) {
		return k.next[last] - 1
	}
	id := k.ofText(s)
	for len(k.next) < len(k.texts) {
		k.next = append(k.next, 0)
	}
	if int(last) < len(k.next) {
		k.next[last] = id + 1
	}
	return id
}

// ofDict is the table that ofCode fills.
func (k *keySet) ofDict(d *columnar.Dictionary) []uint32 {
	t := k.byCode[d]
	if t == nil {
		t = make([]uint32, d.Entries)
		k.byCode[d] = t
	}
	return t
}

// of numbers the combination of a and b.
func (p *pairSet) of(a, b uint32, most int) (uint32, bool) {
	for int(a) >= len(p.table) {
		p.table = append(p.table, nil)
	}
	t := p.table[a]
	if int(b) >= len(t) {
		n := max(most, int(b)+1)
		if p.room += n - len(t); p.room > maxPairs {
			return 0, false
		}
		t = append(t, make([]uint32, n-len(t))...)
		p.table[a] = t
	}
	if t[b] == 0 {
		p.a, p.b = append(p.a, a), append(p.b, b)
		t[b] = uint32(len(p.a))
	}
	return t[b] - 1, true
}

// value is the value of key i in a group.
func (g *groupSet) value(group uint32, i int) value {
	for k := len(g.keys) - 1; k > i; k-- {
		group = g.pairs[k-1].a[group]
	}
	if i > 0 {
		group = g.pairs[i-1].b[group]
	}
	if g.keys[i].text {
		return textValue(g.keys[i].texts[group])
	}
	if g.keys[i].float {
		return realValue(math.Float64frombits(uint64(g.keys[i].ints[group])))
	}
	return intValue(g.keys[i].ints[group])
}

// number finds the groups of the rows of a chunk that pass; valid until the next call. nil: all are in group 0.
func (w *groupWorker) number(c *kernelChunk) ([]uint32, error) {
	var ids []uint32
	for i, k := range w.p.keys {
		ks := &w.set.keys[i]
		ks.scratch = slices.Grow(ks.scratch[:0], w.n)[:w.n]
		if err := w.numberKey(c, k, ks, ks.scratch); err != nil {
			return nil, err
		}
		if i == 0 {
			ids = ks.scratch
			continue
		}
		ps, most := &w.set.pairs[i-1], ks.len()
		for r, b := range ks.scratch {
			id, ok := ps.of(ids[r], b, most)
			if !ok {
				return nil, errKernel
			}
			ids[r] = id
		}
	}
	switch n := len(w.p.keys); n {
	case 0:
	case 1:
		w.set.groups = w.set.keys[0].len()
	default:
		w.set.groups = len(w.set.pairs[n-2].a)
	}
	return ids, nil
}

func (w *groupWorker) numberKey(c *kernelChunk, k *expr, ks *keySet, out []uint32) error {
	if ks.float {
		floats, err := w.floatsOf(c, k.ref)
		if err != nil {
			return err
		}
		for i, f := range floats {
			if f != f {
				return errKernel // NULL
			}
			out[i] = ks.ofInt(int64(math.Float64bits(f + 0))) // -0 is 0
		}
		return nil
	}
	if n, ok := constantIn(c, k); ok && !ks.text {
		id := ks.ofInt(n)
		for i := range out {
			out[i] = id
		}
		return nil
	}
	if !ks.text {
		ints, err := w.evaluate(c, k)
		if err != nil {
			return err
		}
		for i, n := range ints {
			out[i] = ks.ofInt(n)
		}
		return nil
	}
	if constantOfSource(k.ref) {
		id := ks.ofText([]byte(c.s.ofSource(k.ref)))
		for i := range out {
			out[i] = id
		}
		return nil
	}
	v, err := w.vector(c, k.ref)
	if err != nil {
		return err
	}
	switch {
	case v.Codes8 != nil:
		numberCodes(w, v.Dict, v.Codes8, ks, out)
	case v.Codes16 != nil:
		numberCodes(w, v.Dict, v.Codes16, ks, out)
	case v.Codes32 != nil:
		numberCodes(w, v.Dict, v.Codes32, ks, out)
	case w.every:
		last := uint32(0)
		for i := range out {
			last = ks.ofNext(last, v.At(i))
			out[i] = last
		}
	default:
		for i, row := range w.sel {
			out[i] = ks.ofText(v.At(int(row)))
		}
	}
	return nil
}

func numberCodes[T uint8 | uint16 | uint32](w *groupWorker, d *columnar.Dictionary, codes []T, ks *keySet, out []uint32) {
	table := ks.ofDict(d)
	for i := range out {
		row := uint32(i)
		if !w.every {
			row = w.sel[i]
		}
		code := codes[row]
		if table[code] == 0 {
			table[code] = ks.ofText(d.At(int(code))) + 1
		}
		out[i] = table[code] - 1
	}
}

// constantIn is the value of an expression of the stamp that is the same for all stamps of a chunk, as that of a time bucket
// mostly is: one that does not fall where the stamp rises, and has one value at both ends.
func constantIn(c *kernelChunk, e *expr) (int64, bool) {
	lo, ok := rising(e, c.Start)
	if !ok {
		return 0, false
	}
	hi, ok := rising(e, c.End)
	return lo, ok && lo == hi
}

// rising is the value of an expression for a stamp; false where it may fall when the stamp rises.
func rising(e *expr, stamp int64) (int64, bool) {
	switch e.op {
	case 'c':
		return stamp, e.ref.sys == colLogTime
	case '+', '-', '*', '/':
		k := e.args[1]
		if k.op != 'k' || k.v.kind != kindInt || (e.op == '*' || e.op == '/') && k.v.i <= 0 {
			return 0, false
		}
		n, ok := rising(e.args[0], stamp)
		if !ok {
			return 0, false
		}
		return checked(e.op, n, k.v.i)
	}
	return 0, false
}

// evaluate computes an expression of whole numbers for the rows that pass; the result is the caller's until the next call.
func (w *groupWorker) evaluate(c *kernelChunk, e *expr) ([]int64, error) {
	switch e.op {
	case 'c':
		return w.intsOf(c, e.ref)
	case 'k':
		out := make([]int64, w.n)
		for i := range out {
			out[i] = e.v.i
		}
		return out, nil
	}
	a, err := w.evaluate(c, e.args[0])
	if err != nil {
		return nil, err
	}
	if k := e.args[1]; k.op == 'k' && (e.op == '/' || e.op == '%') { // above 0
		lastIn, lastOut := int64(0), int64(0) // stamps come in runs
		for i, x := range a {
			if x != lastIn || i == 0 {
				lastIn = x
				if lastOut = x / k.v.i; e.op == '%' {
					lastOut = x % k.v.i
				}
			}
			a[i] = lastOut
		}
		return a, nil
	}
	a = slices.Clone(a)
	b, err := w.evaluate(c, e.args[1])
	if err != nil {
		return nil, err
	}
	for i := range a {
		n, ok := checked(e.op, a[i], b[i])
		if !ok {
			return nil, errKernel // a float of SQLite
		}
		a[i] = n
	}
	return a, nil
}

// aggregate is what groups have come to.
type aggregate struct {
	e     *expr
	ints  bool // of whole numbers
	count []int64
	sum   []int64
	real  []float64
	rest  []float64 // what rounding left of real
	min   []int64   // of min and max; or of floats
	fmin  []float64
	text  []string
	at    []place // of min and max: the row
}

// place is a row of a chunk.
type place struct {
	chunk *kernelChunk
	row   uint32
}

// grow makes room for groups.
func (a *aggregate) grow(n int, places bool) {
	for len(a.count) < n {
		a.count = append(a.count, 0)
		switch a.e.name {
		case "sum", "avg":
			a.sum, a.real, a.rest = append(a.sum, 0), append(a.real, 0), append(a.rest, 0)
		case "min", "max":
			a.min, a.fmin, a.text = append(a.min, 0), append(a.fmin, 0), append(a.text, "")
			if places {
				a.at = append(a.at, place{})
			}
		}
	}
}

// add adds a float to group g as SQLite does since 3.43: by Kahan, Babuška and Neumaier.
func (a *aggregate) add(g uint32, x float64) {
	s := a.real[g]
	t := s + x
	if math.Abs(s) > math.Abs(x) {
		a.rest[g] += (s - t) + x
	} else {
		a.rest[g] += (x - t) + s
	}
	a.real[g] = t
}

// better says whether x is to replace the best of a group.
func better[T int64 | float64 | string](name string, x, best T) bool {
	if name == "min" {
		return x < best
	}
	return x > best
}

// groupWorker goes through chunks and groups their rows.
type groupWorker struct {
	kernelWorker
	set  *groupSet
	aggs []aggregate
	zero []uint32
	left []uint32 // scratch of newest
}

func newGroupWorker(v *View, p *kernelPlan) *groupWorker {
	w := &groupWorker{kernelWorker: kernelWorker{p: p, v: v}, set: newGroupSet(p.keys)}
	for _, e := range p.aggs {
		w.aggs = append(w.aggs, aggregate{e: e, ints: len(e.args) > 0 && e.args[0].ref.class == 'i'})
	}
	w.grow()
	return w
}

func (w *groupWorker) grow() {
	for i := range w.aggs {
		w.aggs[i].grow(w.set.groups, i == w.p.bareAgg)
	}
}

// chunk takes the rows of a chunk in that pass.
func (w *groupWorker) chunk(c *kernelChunk) error {
	w.giveBack()
	if err := w.filter(c); err != nil || w.n == 0 {
		return err
	}
	return w.take(c)
}

func (w *groupWorker) take(c *kernelChunk) error {
	ids, err := w.number(c)
	if err != nil {
		return err
	}
	if ids == nil {
		w.zero = slices.Grow(w.zero[:0], w.n)[:w.n]
		ids = w.zero
	}
	w.grow()
	for i := range w.aggs {
		if err := w.update(c, i, ids); err != nil {
			return err
		}
	}
	return nil
}

func (w *groupWorker) update(c *kernelChunk, i int, ids []uint32) error {
	a := &w.aggs[i]
	if len(a.e.args) == 0 || a.e.name == "count" && (a.e.args[0].ref.class == 't' || a.ints && a.e.args[0].ref.sys != colPubTime) {
		for _, g := range ids {
			a.count[g]++
		}
		return nil
	}
	r := a.e.args[0].ref
	switch {
	case r.class == 't':
		return w.updateText(c, i, ids)
	case a.ints:
		ints, err := w.intsOf(c, r)
		if err != nil {
			return err
		}
		return w.updateInts(c, i, ids, ints, r.sys == colPubTime)
	}
	floats, err := w.floatsOf(c, r)
	if err != nil {
		return err
	}
	w.updateFloats(c, i, ids, floats)
	return nil
}

func (w *groupWorker) updateInts(c *kernelChunk, i int, ids []uint32, ints []int64, zeroIsNull bool) error {
	a := &w.aggs[i]
	places := i == w.p.bareAgg
	for k, x := range ints {
		g := ids[k]
		if zeroIsNull && x == 0 {
			continue
		}
		switch a.e.name {
		case "sum", "avg":
			s := a.sum[g] + x
			if (s > a.sum[g]) != (x > 0) {
				return errKernel // an error of sum, a float of avg: SQLite's to say
			}
			a.sum[g] = s
		case "min", "max":
			if a.count[g] == 0 || better(a.e.name, x, a.min[g]) {
				a.min[g] = x
				if places {
					a.at[g] = place{c, w.row(k)}
				}
			}
		}
		a.count[g]++
	}
	return nil
}

// row is the k-th row that passes.
func (w *kernelWorker) row(k int) uint32 {
	if w.every {
		return uint32(k)
	}
	return w.sel[k]
}

func (w *groupWorker) updateFloats(c *kernelChunk, i int, ids []uint32, floats []float64) {
	a := &w.aggs[i]
	places := i == w.p.bareAgg
	for k, x := range floats {
		if x != x {
			continue // NULL
		}
		g := ids[k]
		switch a.e.name {
		case "sum", "avg":
			a.add(g, x)
		case "min", "max":
			if a.count[g] == 0 || better(a.e.name, x, a.fmin[g]) {
				a.fmin[g] = x
				if places {
					a.at[g] = place{c, w.row(k)}
				}
			}
		}
		a.count[g]++
	}
}

func (w *groupWorker) updateText(c *kernelChunk, i int, ids []uint32) error {
	a := &w.aggs[i]
	v, err := w.vector(c, a.e.args[0].ref)
	if err != nil {
		return err
	}
	for k, g := range ids {
		row := w.row(k)
		var s []byte
		if v.Dict != nil {
			s = v.Dict.At(int(codeAt(v, row)))
		} else {
			s = v.At(int(row))
		}
		if a.count[g] == 0 || a.e.name == "min" && string(s) < a.text[g] || a.e.name == "max" && string(s) > a.text[g] {
			a.text[g] = string(s)
			if i == w.p.bareAgg {
				a.at[g] = place{c, row}
			}
		}
		a.count[g]++
	}
	return nil
}

// merge takes the groups of another worker in, whose chunks come behind.
func (w *groupWorker) merge(o *groupWorker) error {
	for g := range uint32(o.set.groups) {
		id := uint32(0)
		for i := range w.set.keys {
			v := o.set.value(g, i)
			var k uint32
			if w.set.keys[i].text {
				k = w.set.keys[i].ofText([]byte(v.s))
			} else if w.set.keys[i].float {
				k = w.set.keys[i].ofInt(int64(math.Float64bits(v.f)))
			} else {
				k = w.set.keys[i].ofInt(v.i)
			}
			if i == 0 {
				id = k
				continue
			}
			var ok bool
			if id, ok = w.set.pairs[i-1].of(id, k, w.set.keys[i].len()); !ok {
				return errKernel
			}
		}
		if len(w.set.keys) > 0 {
			w.set.groups = max(w.set.groups, int(id)+1)
		}
		w.grow()
		for i := range w.aggs {
			if err := w.aggs[i].merge(&o.aggs[i], id, g); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *aggregate) merge(o *aggregate, to, from uint32) error {
	if o.count[from] == 0 {
		return nil
	}
	switch a.e.name {
	case "sum", "avg":
		s := a.sum[to] + o.sum[from]
		if (s > a.sum[to]) != (o.sum[from] > 0) {
			return errKernel
		}
		a.sum[to] = s
		a.add(to, o.real[from])
		a.rest[to] += o.rest[from]
	case "min", "max":
		n := a.e.name
		if a.count[to] == 0 || better(n, o.min[from], a.min[to]) || better(n, o.fmin[from], a.fmin[to]) || better(n, o.text[from], a.text[to]) {
			a.min[to], a.fmin[to], a.text[to] = o.min[from], o.fmin[from], o.text[from]
			if len(a.at) > 0 {
				a.at[to] = o.at[from]
			}
		}
	}
	a.count[to] += o.count[from]
	return nil
}

// value is what group g has come to.
func (a *aggregate) value(g uint32) value {
	switch {
	case a.e.name == "count":
		return intValue(a.count[g])
	case a.count[g] == 0:
		return value{}
	case a.e.args[0].ref.class == 't':
		return textValue(a.text[g])
	case a.e.name == "sum" && a.ints:
		return intValue(a.sum[g])
	case a.e.name == "sum":
		return realValue(a.total(g))
	case a.e.name == "avg" && a.ints:
		return realValue(float64(a.sum[g]) / float64(a.count[g]))
	case a.e.name == "avg":
		return realValue(a.total(g) / float64(a.count[g]))
	case a.ints:
		return intValue(a.min[g])
	}
	return realValue(a.fmin[g])
}

// total is a sum of floats.
func (a *aggregate) total(g uint32) float64 {
	if math.IsNaN(a.rest[g]) || math.IsInf(a.rest[g], 0) { // of infinities
		return a.real[g]
	}
	return a.real[g] + a.rest[g]
}
