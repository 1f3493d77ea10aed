package sqlview

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
)

// Gaps between messages, which sessions are made of:
//
//	(SELECT key, _log_time, _log_time - lag(_log_time) OVER (PARTITION BY key ORDER BY _log_time) AS gap FROM topic WHERE …) WHERE gap > n
//
// are found by a kernel: it goes through stamps and keys and gives SQLite the rows behind long gaps alone. The key may be
// missing, further columns may not be there.

// gapQuery is such a SELECT.
type gapQuery struct {
	p      *kernelPlan
	gap    int     // item
	key    *expr   // nil none
	least  float64 // gaps above it, or from it on
	equal  bool
	isTime []bool // items that are the stamp
}

// maxGapRows bounds the rows whose stamps are sorted.
const maxGapRows = 32 << 20

// gaps answers the SELECT in the parentheses from ts[open] to ts[end]; nil where it is another.
func (v *View) gaps(ctx context.Context, query string, ts []token, open, end int) (*result, []int, error) {
	q, err := v.gapQuery(ctx, query, ts, open, end)
	var res *result
	if err == nil {
		v.forget()
		res, err = q.run(ctx, v)
	}
	if errors.Is(err, errKernel) || errors.Is(err, errLex) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	types := make([]int, len(res.names))
	for i := range types {
		switch {
		case i == q.gap:
			types[i] = len(answerTypes) - 1
		case !q.isTime[i] && q.key.ref.class == 't':
			types[i] = 2
		}
	}
	return res, types, nil
}

func (v *View) gapQuery(ctx context.Context, query string, ts []token, open, end int) (*gapQuery, error) {
	if open == 0 || !ts[open-1].is("from") && !ts[open-1].is("join") {
		return nil, errKernel
	}
	// The item of the gap is taken out, and a number put in its place.
	inner := slices.Clone(ts[open+1 : end])
	i := slices.IndexFunc(inner, func(t token) bool { return t.is("lag") })
	if i < 2 || i+4 >= len(inner) || !inner[i-2].is("_log_time") || inner[i-1].text != "-" || inner[i+1].text != "(" || !inner[i+2].is("_log_time") ||
		inner[i+3].text != ")" || !inner[i+4].is("over") {
		return nil, errKernel
	}
	last := closing(inner, i+5)
	if last < 0 {
		return nil, errKernel
	}
	window := inner[i+6 : last]
	var key token
	if len(window) > 3 && window[0].is("partition") && window[1].is("by") && (window[2].kind == 'w' || window[2].kind == 'q') {
		key, window = window[2], window[3:]
	}
	if len(window) == 4 && window[3].is("asc") {
		window = window[:3]
	}
	if len(window) != 3 || !window[0].is("order") || !window[1].is("by") || !window[2].is("_log_time") {
		return nil, errKernel
	}
	mark := token{kind: 'n', text: gapMark, at: inner[i-2].at, end: inner[last].end}
	inner = slices.Concat(inner[:i-2], []token{mark}, inner[last+1:])
	inner = append(inner, token{at: inner[len(inner)-1].end, end: inner[len(inner)-1].end})
	sel, err := parseSelect(query, inner)
	if err != nil {
		return nil, err
	}
	if sel.grouped || len(sel.order) > 0 || sel.limit >= 0 || len(sel.items) > answerColumns {
		return nil, errKernel
	}
	q := &gapQuery{gap: -1, isTime: make([]bool, len(sel.items))}
	if key.kind != 0 {
		q.key = &expr{op: 'c', name: key.text}
	}
	if q.p, err = v.prepare(ctx, sel); err != nil {
		return nil, err
	}
	if q.key != nil {
		if err := q.p.find(q.key); err != nil {
			return nil, err
		}
		if q.key.ref.class == 'f' || q.key.ref.sys == colPubTime {
			return nil, errKernel
		}
		q.p.keys = []*expr{q.key}
		for _, s := range q.p.sources { // a key that is no item has come after the others
			if r := q.key.ref; r.sys < 0 && len(q.p.kinds[s]) < len(q.p.refs) {
				q.p.kinds[s] = append(q.p.kinds[s], s.src.p.Columns()[s.src.fields[r.field].leaf].Kind)
			} else if len(q.p.kinds[s]) < len(q.p.refs) {
				q.p.kinds[s] = append(q.p.kinds[s], 0)
			}
		}
	}
	for k, it := range sel.items {
		switch {
		case it.e.op == 'k' && it.e.v.kind == kindReal && it.e.v.f == gapValue && q.gap < 0:
			q.gap = k
		case it.e.op == 'c' && it.e.ref.sys == colLogTime:
			q.isTime[k] = true
		case it.e.op == 'c' && q.key != nil && it.e.ref == q.key.ref:
		default:
			return nil, errKernel
		}
	}
	if q.gap < 0 {
		return nil, errKernel
	}
	return q, q.outer(ts, end, sel.items[q.gap].name)
}

// gapMark stands for the item of the gap while the rest is read.
const (
	gapMark  = "1.7976931348623157e308"
	gapValue = math.MaxFloat64
)

// outer finds the least gap that the query around it asks for: WHERE name > n [AND …] right behind the parenthesis.
func (q *gapQuery) outer(ts []token, end int, name string) error {
	i := end + 1
	if ts[i].is("as") {
		i++
	}
	if !ts[i].is("where") && (ts[i].kind == 'q' || ts[i].kind == 'w' && !keywords[strings.ToLower(ts[i].text)]) {
		i++
	}
	if i+3 >= len(ts) || !ts[i].is("where") || (ts[i+1].kind != 'w' && ts[i+1].kind != 'q') || !strings.EqualFold(ts[i+1].text, name) || ts[i+2].text != ">" && ts[i+2].text != ">=" {
		return errKernel
	}
	p := &parser{ts: ts[i+3:]}
	n := p.constant()
	if t := p.ts[0]; p.bad != nil || n.kind == kindText || t.kind != 0 && !t.is("and") && !t.is("group") && !t.is("order") && !t.is("limit") && t.text != ")" && t.text != ";" {
		return errKernel
	}
	q.least, q.equal = n.real(), ts[i+2].text == ">="
	if q.least < 0 || q.least > 1<<53 {
		return errKernel
	}
	for depth := 0; ; p.next() { // the rest may only narrow it further
		t := p.ts[0]
		switch {
		case t.kind == 'p' && t.text == "(":
			depth++
		case t.kind == 'p' && t.text == ")":
			if depth--; depth < 0 {
				return nil
			}
		case depth > 0:
		case t.kind == 0, t.kind == 'p' && t.text == ";":
			return nil
		case t.is("group"), t.is("order"), t.is("limit"), t.is("window"), t.is("union"), t.is("except"), t.is("intersect"):
			return nil
		case t.is("or"), t.is("is"), t.is("isnull"), t.is("not"), t.kind == 'p' && !narrowing[t.text]:
			return errKernel
		}
	}
}

// narrowing are the signs that may follow the gap's comparison.
var narrowing = map[string]bool{",": true, "<": true, "<=": true, ">": true, ">=": true, "=": true, "==": true, "<>": true, "!=": true, "+": true, "-": true, "*": true, "/": true, ".": true}

// moment is a row: its stamp and the number of its key.
type moment struct {
	at int64
	id uint32
}

func (q *gapQuery) run(ctx context.Context, v *View) (*result, error) {
	chunks, err := q.p.chunks(ctx)
	if err != nil {
		return nil, err
	}
	w := newGroupWorker(v, q.p)
	defer w.close()
	var all []moment
	for _, c := range chunks {
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
		ids, err := w.number(c)
		if err != nil {
			return nil, err
		}
		times, err := w.vector(c, &ref{sys: colLogTime})
		if err != nil {
			return nil, err
		}
		if len(all)+w.n > maxGapRows {
			return nil, errKernel
		}
		for k := range w.n {
			m := moment{at: times.I64[w.row(k)]}
			if ids != nil {
				m.id = ids[k]
			}
			all = append(all, m)
		}
	}
	byStamp := func(a, b moment) int { return cmp.Compare(a.at, b.at) }
	if !slices.IsSortedFunc(all, byStamp) {
		slices.SortStableFunc(all, byStamp)
	}
	res := &result{names: q.p.names}
	last := make([]int64, w.set.groups)
	seen := make([]bool, w.set.groups)
	for _, m := range all {
		gap := m.at - last[m.id]
		long := float64(gap) > q.least || q.equal && float64(gap) == q.least
		if seen[m.id] && long {
			if len(res.rows) == maxAnswer {
				return nil, errKernel
			}
			row := make([]any, len(q.p.names))
			for i := range row {
				switch {
				case i == q.gap:
					row[i] = gap
				case q.isTime[i]:
					row[i] = m.at
				default:
					row[i] = w.set.value(m.id, 0).any()
				}
			}
			res.rows = append(res.rows, row)
		}
		last[m.id], seen[m.id] = m.at, true
	}
	return res, nil
}
