package sqlview

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugin"
)

// A query of one table of columnar bags, with a conjunction of simple comparisons and, if it has groups, aggregates of
// columns, is answered by kernels: loops over columns as they lie on disk. They read the columns that are named, of the
// page groups whose stamps and dictionaries may pass. All else is SQLite's, with virtual tables.

// errKernel says that SQLite has to answer.
var errKernel = errors.New("not for kernels")

// ref is a column of the table that a query uses.
type ref struct {
	n     int // of plan.refs
	sys   int // one of the system columns; -1 a field
	field int
	class byte // 'i' whole numbers, 'f' floats, 't' text
	name  string
}

// kernelPlan is a query for kernels.
type kernelPlan struct {
	sel     *selection
	t       *table
	sources []*kernelSource
	refs    []*ref
	kinds   map[*kernelSource][]shred.Kind // by refs; 0 of the system's
	columns map[any][]int                  // of each part (of loose chunks: the source), by refs: the column's number there

	found map[*kernelSource]bool // of all of a source's parts
	even  bool                   // the chunks of the last run are in the order of both their stamps

	texts   *keySet // what newest has learned of the key's texts, while View.forgot is textsOf
	textsOf int

	lo, hi  int64 // stamps
	nothing bool  // no row can pass
	preds   []predicate

	grouped bool
	keys    []*expr // of groups
	aggs    []*expr
	bare    []*ref // what the row of bareAgg gives
	bareAgg int    // the min or max that columns go with; -1 none
	order   []orderTerm
	names   []string
	leaves  []*ref // columns that items and order of a plain query use
}

// predicate is what a column must pass.
type predicate struct {
	ref    *ref
	ints   []span[int64]
	floats []span[float64]
	texts  []string
}

// span is a range, both ends included.
type span[T int64 | float64] struct{ lo, hi T }

// planKernel finds a plan, or says by errKernel or errLex why there is none.
func (v *View) planKernel(ctx context.Context, query string) (*kernelPlan, error) {
	ts, err := lex(query)
	if err != nil {
		return nil, err
	}
	sel, err := parseSelect(query, ts)
	if err != nil {
		return nil, err
	}
	return v.plan(ctx, sel)
}

func (v *View) plan(ctx context.Context, sel *selection) (*kernelPlan, error) {
	p, err := v.prepare(ctx, sel)
	if err != nil {
		return nil, err
	}
	if p.grouped {
		err = p.planGroups()
	} else {
		err = p.planPlain()
	}
	return p, err
}

// prepare finds the table of a SELECT, its columns, and what rows must pass.
func (v *View) prepare(ctx context.Context, sel *selection) (*kernelPlan, error) {
	p := &kernelPlan{sel: sel, lo: math.MinInt64, hi: math.MaxInt64, bareAgg: -1, kinds: map[*kernelSource][]shred.Kind{}, columns: map[any][]int{}, found: map[*kernelSource]bool{}}
	i := slices.IndexFunc(v.tables, func(t *table) bool {
		return strings.EqualFold(t.name, sel.table.text) || t.alias != "" && strings.EqualFold(t.alias, sel.table.text)
	})
	if i < 0 || v.tables[i].all {
		return nil, errKernel
	}
	p.t = v.tables[i]
	var err error
	if p.sources, err = v.kernelSources(ctx, p.t); err != nil {
		return nil, err
	}
	if err := p.resolve(); err != nil {
		return nil, err
	}
	for _, c := range sel.where {
		if err := p.restrict(c); err != nil {
			return nil, err
		}
	}
	for _, s := range p.sources {
		kinds := make([]shred.Kind, len(p.refs))
		for i, r := range p.refs {
			if r.sys < 0 {
				kinds[i] = s.src.p.Columns()[s.src.fields[r.field].leaf].Kind
			}
		}
		p.kinds[s] = kinds
	}
	return p, nil
}

// resolve finds columns, aliases and ordinals.
func (p *kernelPlan) resolve() error {
	sel := p.sel
	for i := range sel.items {
		it := &sel.items[i]
		alias := it.e.op != 'c' || it.name != it.e.name
		if err := p.find(it.e); err != nil {
			return err
		}
		if !alias {
			it.name = it.e.ref.name
		}
		p.names = append(p.names, it.name)
	}
	for _, c := range sel.where {
		if err := p.find(c.col); err != nil {
			return err
		}
	}
	for i, g := range sel.group {
		e, err := p.named(g, true)
		if err != nil {
			return err
		}
		sel.group[i] = e
	}
	for i := range sel.having {
		e, err := p.named(sel.having[i].e, false)
		if err != nil {
			return err
		}
		sel.having[i].e = e
	}
	p.order = slices.Clone(sel.order)
	for i := range p.order {
		e, err := p.named(p.order[i].e, false)
		if err != nil {
			return err
		}
		p.order[i].e = e
	}
	p.grouped = sel.grouped || slices.ContainsFunc(sel.items, func(it item) bool { return hasAggregate(it.e) })
	return nil
}

// named is an expression of GROUP BY, ORDER BY or HAVING: an item by its number or alias, or one of its own. A column of the
// table comes before an alias in GROUP BY and HAVING, behind it in ORDER BY.
func (p *kernelPlan) named(e *expr, group bool) (*expr, error) {
	if e.op == 'k' {
		if e.v.kind != kindInt || e.v.i < 1 || e.v.i > int64(len(p.sel.items)) {
			return nil, errKernel
		}
		return p.sel.items[e.v.i-1].e, nil
	}
	if e.op == 'c' && e.table == "" {
		for _, it := range p.sel.items {
			if strings.EqualFold(it.name, e.name) {
				if group && it.e.op != 'c' && p.lookup(e) != nil {
					return nil, errKernel // both: who wins is SQLite's to say
				}
				return it.e, nil
			}
		}
	}
	return e, p.find(e)
}

// cloned is an expression of its own.
func cloned(e *expr) *expr {
	c := *e
	c.args = nil
	for _, a := range e.args {
		c.args = append(c.args, cloned(a))
	}
	return &c
}

func hasAggregate(e *expr) bool { return e.op == 'a' || slices.ContainsFunc(e.args, hasAggregate) }

// find resolves the columns of an expression.
func (p *kernelPlan) find(e *expr) error {
	if e.op == 'c' && e.ref == nil {
		if e.table != "" && !strings.EqualFold(e.table, p.sel.alias) && (p.sel.alias != "" || !strings.EqualFold(e.table, p.sel.table.text)) {
			return errKernel
		}
		if e.ref = p.lookup(e); e.ref == nil {
			return errKernel
		}
		for _, r := range p.refs {
			if r.sys == e.ref.sys && r.field == e.ref.field {
				e.ref = r
				return nil
			}
		}
		e.ref.n = len(p.refs)
		p.refs = append(p.refs, e.ref)
	}
	for _, a := range e.args {
		if err := p.find(a); err != nil {
			return err
		}
	}
	return nil
}

// lookup finds a column of the table; nil where there is none that kernels can read in all sources.
func (p *kernelPlan) lookup(e *expr) *ref {
	for i, decl := range systemNames {
		name, _, _ := strings.Cut(decl, " ")
		if !strings.EqualFold(name, e.name) {
			continue
		}
		switch i {
		case colLogTime, colPubTime, colOrder:
			return &ref{sys: i, class: 'i', name: name}
		case colBag, colTopic, colType:
			return &ref{sys: i, class: 't', name: name}
		}
		return nil
	}
	field := slices.IndexFunc(p.t.columns, func(c column) bool { return strings.EqualFold(c.name, e.name) })
	if field < 0 {
		return nil
	}
	r := &ref{sys: -1, field: field, name: p.t.columns[field].name}
	for _, s := range p.sources {
		if field >= len(s.src.fields) || s.src.fields[field].leaf < 0 {
			return nil
		}
		c := &s.src.p.Columns()[s.src.fields[field].leaf]
		class := classOf(c.Kind)
		if class == 0 || c.Fixed > 0 || c.List >= 0 || r.class != 0 && r.class != class {
			return nil
		}
		r.class = class
	}
	if r.class == 0 {
		return nil
	}
	return r
}

func classOf(k shred.Kind) byte {
	switch k {
	case shred.Float32, shred.Float64:
		return 'f'
	case shred.String, shred.WString:
		return 't'
	case shred.Bytes:
		return 0
	}
	return 'i'
}

// restrict takes a comparison in.
func (p *kernelPlan) restrict(c comparison) error {
	pr := predicate{ref: c.col.ref}
	for _, v := range c.vs {
		switch {
		case pr.ref.class == 't':
			if v.kind != kindText || c.op != "=" && c.op != "IN" {
				return errKernel
			}
			pr.texts = append(pr.texts, v.s)
		case v.kind == kindText:
			return errKernel
		case pr.ref.class == 'f':
			if s, ok := floatSpan(c.op, v); ok {
				pr.floats = append(pr.floats, s)
			}
		default:
			if s, ok := intSpan(c.op, v); ok {
				pr.ints = append(pr.ints, s)
			}
		}
	}
	if len(pr.texts)+len(pr.floats)+len(pr.ints) == 0 {
		p.nothing = true
		return nil
	}
	if pr.ref.sys == colLogTime {
		lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
		for _, s := range pr.ints {
			lo, hi = min(lo, s.lo), max(hi, s.hi)
		}
		p.lo, p.hi = max(p.lo, lo), min(p.hi, hi)
		if len(pr.ints) == 1 {
			return nil // the bounds say it
		}
	}
	p.preds = append(p.preds, pr)
	return nil
}

// intSpan are the whole numbers that pass a comparison; false where none does.
func intSpan(op string, v value) (span[int64], bool) {
	lo, hi := v.i, v.i
	exact := true
	if v.kind == kindReal {
		f := math.Floor(v.f)
		switch {
		case f >= 1<<63:
			return span[int64]{math.MinInt64, math.MaxInt64}, op == "<" || op == "<="
		case f < -1<<63:
			return span[int64]{math.MinInt64, math.MaxInt64}, op == ">" || op == ">="
		}
		if exact = f == v.f; exact {
			lo, hi = int64(f), int64(f)
		} else {
			hi = int64(f)
			lo = hi + 1 // f is far from the largest
		}
	}
	switch op {
	case "<":
		if exact && hi == math.MinInt64 {
			return span[int64]{}, false
		} else if exact {
			hi--
		}
		return span[int64]{math.MinInt64, hi}, true
	case "<=":
		return span[int64]{math.MinInt64, hi}, true
	case ">":
		if exact && lo == math.MaxInt64 {
			return span[int64]{}, false
		} else if exact {
			lo++
		}
		return span[int64]{lo, math.MaxInt64}, true
	case ">=":
		return span[int64]{lo, math.MaxInt64}, true
	}
	return span[int64]{lo, hi}, exact
}

// floatSpan is intSpan for floats. A whole number that no float is equal to lies between two of them.
func floatSpan(op string, v value) (span[float64], bool) {
	f := v.real()
	lo, hi, exact := f, f, true
	if v.kind == kindInt {
		switch c := compareIntReal(v.i, f); {
		case c < 0:
			lo, exact = math.Nextafter(f, math.Inf(-1)), false
			lo, hi = f, lo
		case c > 0:
			hi, exact = f, false
			lo = math.Nextafter(f, math.Inf(1))
		}
	}
	switch op {
	case "<":
		if exact {
			hi = math.Nextafter(hi, math.Inf(-1))
		}
		return span[float64]{math.Inf(-1), hi}, true
	case "<=":
		return span[float64]{math.Inf(-1), hi}, true
	case ">":
		if exact {
			lo = math.Nextafter(lo, math.Inf(1))
		}
		return span[float64]{lo, math.Inf(1)}, true
	case ">=":
		return span[float64]{lo, math.Inf(1)}, true
	}
	return span[float64]{lo, hi}, exact
}

// planGroups plans aggregates.
func (p *kernelPlan) planGroups() error {
	for _, g := range p.sel.group {
		if hasAggregate(g) || g.op != 'c' && !wholeNumbers(g) || g.op == 'c' && g.ref.sys == colPubTime {
			return errKernel
		}
		p.keys = append(p.keys, cloned(g))
	}
	var all []*expr
	for i := range p.sel.items {
		all = append(all, p.sel.items[i].e)
	}
	for i := range p.order {
		all = append(all, p.order[i].e)
	}
	for i := range p.sel.having {
		all = append(all, p.sel.having[i].e)
	}
	var bare []*expr
	for _, e := range all {
		if err := p.slots(e, &bare); err != nil {
			return err
		}
	}
	if len(bare) == 0 {
		return nil
	}
	for i, a := range p.aggs {
		if a.name == "min" || a.name == "max" {
			if p.bareAgg >= 0 {
				return errKernel // whose row is not said
			}
			p.bareAgg = i
		}
	}
	if p.bareAgg < 0 {
		return errKernel // any row's would do; let it be SQLite's
	}
	for _, e := range bare {
		i := slices.Index(p.bare, e.ref)
		if i < 0 {
			i = len(p.bare)
			p.bare = append(p.bare, e.ref)
		}
		e.slot = -1 - i
	}
	return nil
}

// wholeNumbers tells whether an expression is one of whole numbers that are not NULL.
func wholeNumbers(e *expr) bool {
	switch e.op {
	case 'k':
		return e.v.kind == kindInt
	case 'c':
		return e.ref.class == 'i' && e.ref.sys != colPubTime
	case 'a':
		return false
	case '/', '%':
		return wholeNumbers(e.args[0]) && e.args[1].op == 'k' && e.args[1].v.kind == kindInt && e.args[1].v.i > 0
	}
	return wholeNumbers(e.args[0]) && wholeNumbers(e.args[1])
}

// slots finds where the leaves of an expression of a group's row come from: slot is the number of a key or of an
// aggregate. Columns that are neither are bare.
func (p *kernelPlan) slots(e *expr, bare *[]*expr) error {
	if i := slices.IndexFunc(p.keys, func(k *expr) bool { return same(k, e) }); i >= 0 {
		e.op, e.slot = 'g', i
		return nil
	}
	switch e.op {
	case 'g':
	case 'a':
		i := slices.IndexFunc(p.aggs, func(a *expr) bool { return same(a, e) })
		if i < 0 {
			i = len(p.aggs)
			p.aggs = append(p.aggs, e)
			if len(e.args) > 0 && e.args[0].ref.class == 't' && (e.name == "sum" || e.name == "avg" || e.args[0].ref.sys >= 0) {
				return errKernel
			}
		}
		e.slot = i
	case 'c':
		*bare = append(*bare, e)
	case 'k':
	default:
		for _, a := range e.args {
			if err := p.slots(a, bare); err != nil {
				return err
			}
			if a.op == 'k' && a.v.kind == kindText || a.op == 'c' && a.ref.class == 't' {
				return errKernel
			}
		}
	}
	return nil
}

// plainLimit is how many rows a query without groups may give at most for kernels to answer it: they collect them.
const plainLimit = 100_000

// planPlain plans a query without groups: one that selects few rows.
func (p *kernelPlan) planPlain() error {
	selective := p.sel.limit >= 0 && p.sel.limit <= plainLimit
	for i := range p.preds {
		selective = selective || p.preds[i].texts != nil
	}
	if !selective || len(p.sel.having) > 0 {
		return errKernel
	}
	use := func(e *expr) error {
		if e.op != 'c' && !plainNumbers(e) {
			return errKernel
		}
		p.leaf(e)
		return nil
	}
	for i := range p.sel.items {
		if err := use(p.sel.items[i].e); err != nil {
			return err
		}
	}
	for i := range p.order {
		if err := use(p.order[i].e); err != nil {
			return err
		}
	}
	return nil
}

// leaf notes the columns of an expression.
func (p *kernelPlan) leaf(e *expr) {
	if e.op == 'c' && !slices.Contains(p.leaves, e.ref) {
		p.leaves = append(p.leaves, e.ref)
	}
	for _, a := range e.args {
		p.leaf(a)
	}
}

// plainNumbers tells whether an expression is arithmetic of numbers.
func plainNumbers(e *expr) bool {
	switch e.op {
	case 'k':
		return e.v.kind != kindText
	case 'c':
		return e.ref.class != 't'
	case 'a':
		return false
	}
	return plainNumbers(e.args[0]) && plainNumbers(e.args[1])
}

// String says what a plan is, for tests.
func (p *kernelPlan) String() string {
	kind := "rows"
	if p.grouped {
		kind = strconv.Itoa(len(p.keys)) + " keys, " + strconv.Itoa(len(p.aggs)) + " aggregates"
	}
	return fmt.Sprintf("%s: %s, %d predicates, %d columns beside", p.t.name, kind, len(p.preds), len(p.bare))
}

// topicOf finds the topic of a storage that a source is.
func topicOf(info plugin.Info, s *source) plugin.TopicID {
	for i := range info.Topics {
		if t := &info.Topics[i]; t.Name == s.name && t.Type == s.typ {
			return t.ID
		}
	}
	return 0
}
