package sqlview

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// selection is a SELECT that kernels may answer: of one table, with a conjunction of simple comparisons.
type selection struct {
	items   []item
	table   token
	alias   string
	where   []comparison
	group   []*expr
	having  []havingTest
	order   []orderTerm
	limit   int64 // -1 none
	grouped bool  // GROUP BY is there
}

type item struct {
	e    *expr
	name string
}

type orderTerm struct {
	e    *expr
	desc bool
}

// havingTest compares what a group has come to with a constant.
type havingTest struct {
	e  *expr
	op string
	v  value
}

// comparison is of a column with constants: op is =, <, <=, >, >= (one value), or IN (some, of any).
type comparison struct {
	col *expr
	op  string
	vs  []value
}

// expr is an expression: op 'c' a column, 'k' a constant, 'a' an aggregate (name, and the column in args), or one of + - * / %.
type expr struct {
	op    byte
	name  string
	table string // in front of a column's name; "" none
	quote bool   // the name was quoted
	v     value
	args  []*expr

	ref  *ref // of a column, once resolved
	slot int  // of an aggregate, of a group's key or of a column that an aggregate brings along, once planned
}

// parser reads tokens; after the first thing that kernels do not read bad is set.
type parser struct {
	query string
	ts    []token
	bad   error
	depth int // of parentheses and signs
}

// maxDepthOfQuery bounds how deeply expressions are nested for kernels.
const maxDepthOfQuery = 50

func (p *parser) fail(what string) {
	if p.bad == nil {
		p.bad = fmt.Errorf("%w: %s at byte %d", errLex, what, p.ts[0].at)
	}
	p.ts = p.ts[len(p.ts)-1:]
}

func (p *parser) next() token {
	t := p.ts[0]
	if t.kind != 0 {
		p.ts = p.ts[1:]
	}
	return t
}

func (p *parser) sign(s string) bool {
	if t := p.ts[0]; t.kind == 'p' && t.text == s {
		p.next()
		return true
	}
	return false
}

func (p *parser) is(word string) bool {
	return p.ts[0].kind == 'w' && strings.EqualFold(p.ts[0].text, word)
}

func (p *parser) word(word string) bool {
	if p.is(word) {
		p.next()
		return true
	}
	return false
}

func (p *parser) want(ok bool, what string) {
	if !ok {
		p.fail("no " + what)
	}
}

// keywords are words that are no names where they stand.
var keywords = map[string]bool{"select": true, "from": true, "where": true, "group": true, "order": true, "by": true, "having": true, "limit": true,
	"offset": true, "and": true, "or": true, "not": true, "in": true, "between": true, "is": true, "null": true, "like": true, "glob": true, "as": true, "join": true,
	"left": true, "inner": true, "cross": true, "natural": true, "on": true, "using": true, "union": true, "except": true, "intersect": true, "case": true,
	"when": true, "then": true, "else": true, "end": true, "asc": true, "desc": true, "distinct": true, "all": true, "collate": true, "cast": true, "exists": true,
	"window": true, "over": true, "filter": true, "values": true, "with": true, "indexed": true, "nulls": true, "escape": true, "match": true, "regexp": true,
	"full": true, "right": true, "outer": true, "isnull": true, "notnull": true, "current_time": true, "current_date": true, "current_timestamp": true,
	"true": true, "false": true, "rowid": true, "oid": true, "_rowid_": true}

func (p *parser) isName() bool {
	t := p.ts[0]
	return t.kind == 'q' || t.kind == 'w' && !keywords[strings.ToLower(t.text)]
}

// parseSelect reads a whole SELECT up to its end (a closing parenthesis of the caller's or the end of the query).
func parseSelect(query string, ts []token) (*selection, error) {
	p := &parser{query: query, ts: ts}
	s := &selection{limit: -1}
	p.want(p.word("select"), "SELECT")
	for {
		at := p.ts[0].at
		e := p.expr()
		end := at
		if p.bad == nil {
			end = p.endOfLast(ts)
		}
		it := item{e: e}
		switch {
		case p.word("as"):
			p.want(p.isName(), "name")
			it.name = p.next().text
		case p.isName():
			it.name = p.next().text
		case e != nil && e.op == 'c':
			it.name = e.name
		default:
			it.name = query[at:end]
		}
		s.items = append(s.items, it)
		if !p.sign(",") {
			break
		}
	}
	p.want(p.word("from"), "FROM")
	p.want(p.isName(), "table")
	s.table = p.next()
	if p.word("as") {
		p.want(p.isName(), "name")
		s.alias = p.next().text
	} else if p.isName() {
		s.alias = p.next().text
	}
	if p.word("where") {
		for {
			p.comparison(s)
			if !p.word("and") {
				break
			}
		}
	}
	if p.word("group") {
		p.want(p.word("by"), "BY")
		s.grouped = true
		for {
			s.group = append(s.group, p.expr())
			if !p.sign(",") {
				break
			}
		}
		if p.word("having") {
			for {
				h := havingTest{e: p.expr()}
				h.op = p.operator()
				h.v = p.constant()
				s.having = append(s.having, h)
				if !p.word("and") {
					break
				}
			}
		}
	}
	if p.word("order") {
		p.want(p.word("by"), "BY")
		for {
			o := orderTerm{e: p.expr()}
			if p.word("desc") {
				o.desc = true
			} else {
				p.word("asc")
			}
			s.order = append(s.order, o)
			if !p.sign(",") {
				break
			}
		}
	}
	if p.word("limit") {
		v := p.constant()
		if v.kind != kindInt || v.i < 0 {
			p.fail("limit")
		}
		s.limit = v.i
	}
	p.sign(";")
	if p.ts[0].kind != 0 {
		p.fail("something else")
	}
	return s, p.bad
}

// endOfLast is where the token before the next one ends.
func (p *parser) endOfLast(all []token) int { return all[len(all)-len(p.ts)-1].end }

func (p *parser) operator() string {
	t := p.next()
	if t.kind == 'p' {
		switch t.text {
		case "=", "<", "<=", ">", ">=":
			return t.text
		case "==":
			return "="
		}
	}
	p.fail("comparison")
	return "="
}

var flipped = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// comparison reads one, and adds it: BETWEEN adds two.
func (p *parser) comparison(s *selection) {
	if p.depth++; p.depth > maxDepthOfQuery {
		p.fail("nested too deeply")
	}
	defer func() { p.depth-- }()
	if p.sign("(") {
		p.comparison(s)
		for p.word("and") {
			p.comparison(s)
		}
		p.want(p.sign(")"), "closing parenthesis")
		return
	}
	if p.ts[0].kind == 'n' || p.ts[0].kind == 's' {
		v := p.constant()
		op := flipped[p.operator()]
		s.where = append(s.where, comparison{p.column(), op, []value{v}})
		return
	}
	col := p.column()
	switch {
	case p.word("between"):
		lo := p.constant()
		p.want(p.word("and"), "AND")
		s.where = append(s.where, comparison{col, ">=", []value{lo}}, comparison{col, "<=", []value{p.constant()}})
	case p.word("in"):
		p.want(p.sign("("), "parenthesis")
		c := comparison{col: col, op: "IN"}
		for {
			c.vs = append(c.vs, p.constant())
			if !p.sign(",") {
				break
			}
		}
		p.want(p.sign(")"), "closing parenthesis")
		s.where = append(s.where, c)
	default:
		op := p.operator()
		s.where = append(s.where, comparison{col, op, []value{p.constant()}})
	}
}

// constant reads a number, of whole ones also what is made of them by + - * /, or a text.
func (p *parser) constant() value {
	e := p.expr()
	v, ok := constantOf(e)
	if !ok || v.kind == kindNull {
		p.fail("no constant")
	}
	return v
}

func constantOf(e *expr) (value, bool) {
	switch {
	case e == nil:
		return value{}, false
	case e.op == 'k':
		return e.v, true
	case e.op == 'c' || e.op == 'a':
		return value{}, false
	}
	a, ok := constantOf(e.args[0])
	b, ok2 := constantOf(e.args[1])
	if !ok || !ok2 || a.kind == kindText || b.kind == kindText {
		return value{}, false
	}
	return arithmetic(e.op, a, b), true
}

func (p *parser) column() *expr {
	e := p.primary()
	if e == nil || e.op != 'c' {
		p.fail("no column")
	}
	return e
}

func (p *parser) expr() *expr {
	e := p.product()
	for p.bad == nil {
		switch {
		case p.sign("+"):
			e = &expr{op: '+', args: []*expr{e, p.product()}}
		case p.sign("-"):
			e = &expr{op: '-', args: []*expr{e, p.product()}}
		default:
			return e
		}
	}
	return e
}

func (p *parser) product() *expr {
	e := p.primary()
	for p.bad == nil {
		switch {
		case p.sign("*"):
			e = &expr{op: '*', args: []*expr{e, p.primary()}}
		case p.sign("/"):
			e = &expr{op: '/', args: []*expr{e, p.primary()}}
		case p.sign("%"):
			e = &expr{op: '%', args: []*expr{e, p.primary()}}
		default:
			return e
		}
	}
	return e
}

var aggregates = map[string]bool{"count": true, "sum": true, "avg": true, "min": true, "max": true}

func (p *parser) primary() *expr {
	if p.depth++; p.depth > maxDepthOfQuery {
		p.fail("nested too deeply")
	}
	defer func() { p.depth-- }()
	switch t := p.ts[0]; {
	case p.sign("-"):
		e := p.primary()
		if e == nil || e.op != 'k' || e.v.kind == kindText {
			p.fail("sign")
			return nil
		}
		return &expr{op: 'k', v: arithmetic('-', intValue(0), e.v)}
	case p.sign("("):
		e := p.expr()
		p.want(p.sign(")"), "closing parenthesis")
		return e
	case t.kind == 'n':
		p.next()
		if n, err := strconv.ParseInt(t.text, 10, 64); err == nil {
			return &expr{op: 'k', v: intValue(n)}
		}
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil || math.IsInf(f, 0) {
			p.fail("number")
		}
		return &expr{op: 'k', v: value{kind: kindReal, f: f}}
	case t.kind == 's':
		p.next()
		return &expr{op: 'k', v: textValue(t.text)}
	case !p.isName():
		p.fail("expression")
		return nil
	}
	t := p.next()
	if t.kind == 'w' && p.sign("(") {
		name := strings.ToLower(t.text)
		if !aggregates[name] {
			p.fail("function")
			return nil
		}
		e := &expr{op: 'a', name: name}
		if !p.sign("*") {
			e.args = []*expr{p.column()}
		} else if name != "count" {
			p.fail("star")
		}
		p.want(p.sign(")"), "closing parenthesis")
		if p.is("filter") || p.is("over") {
			p.fail("window")
		}
		return e
	}
	e := &expr{op: 'c', name: t.text, quote: t.kind == 'q'}
	if p.sign(".") {
		if !p.isName() {
			p.fail("no column")
			return nil
		}
		t2 := p.next()
		e.table, e.name, e.quote = e.name, t2.text, t2.kind == 'q'
	}
	return e
}

// same tells whether two expressions are the same.
func same(a, b *expr) bool {
	if a.op != b.op || a.v != b.v || len(a.args) != len(b.args) || a.op == 'a' && a.name != b.name {
		return false
	}
	if a.op == 'c' && a.ref != b.ref {
		return false
	}
	for i := range a.args {
		if !same(a.args[i], b.args[i]) {
			return false
		}
	}
	return true
}
