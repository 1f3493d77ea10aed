package sqlview

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"modernc.org/sqlite/vtab"
)

// A query that is not for kernels as a whole may have SELECTs in parentheses that are: those are answered first, and SQLite
// finds their rows in tables of these.

// Tables of answers: answerTables of them, with answerColumns columns of each of the types below.
const (
	answerTables  = 16
	answerColumns = 24
	answerPrefix  = "_kernel_"
)

// maxTried is how many SELECTs of a query are looked at.
const maxTried = 100

var answerTypes = []string{"INTEGER", "REAL", "TEXT", ""} // the last for what is no column

// maxAnswer is how many rows an answer of a kernel may have for SQLite to go on with it.
const maxAnswer = 4 << 20

// answerInner answers the SELECTs in parentheses that kernels can answer, and returns the query with tables in their place.
func (v *View) answerInner(ctx context.Context, query string) (string, error) {
	v.answers = v.answers[:0]
	ts, err := lex(query)
	if err != nil || v.o.TablesOnly || !ts[0].is("select") && !ts[0].is("with") {
		return query, nil //nolint:nilerr // SQLite says what is wrong with it
	}
	var b strings.Builder
	done, tried := 0, 0
	for i := 0; i+1 < len(ts) && len(v.answers) < answerTables && tried < maxTried; i++ {
		if ts[i].kind != 'p' || ts[i].text != "(" || !ts[i+1].is("select") {
			continue
		}
		tried++
		end := closing(ts, i)
		if end < 0 {
			break
		}
		res, types, err := v.answer(ctx, query, ts[i+1:end])
		if err != nil {
			return "", err
		}
		if res == nil {
			if res, types, err = v.gaps(ctx, query, ts, i, end); err != nil {
				return "", err
			}
		}
		if res == nil {
			continue // perhaps one inside
		}
		b.WriteString(query[done:ts[i].at])
		b.WriteString("(SELECT ")
		for k, name := range res.names {
			if k > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "c%d AS %s", types[k]*answerColumns+k, quote(name))
		}
		fmt.Fprintf(&b, " FROM %s%d)", answerPrefix, len(v.answers))
		v.answers = append(v.answers, res)
		done = ts[end].end
		i = end
	}
	if len(v.answers) == 0 {
		return query, nil
	}
	b.WriteString(query[done:])
	return b.String(), nil
}

func (t token) is(word string) bool { return t.kind == 'w' && strings.EqualFold(t.text, word) }

// closing finds the parenthesis that closes the one at i; -1 where there is none.
func closing(ts []token, i int) int {
	depth := 0
	for ; i < len(ts); i++ {
		if ts[i].kind != 'p' {
			continue
		}
		switch ts[i].text {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// answer is the answer to a SELECT, and the type of each column, an index of answerTypes; nil where kernels have none.
func (v *View) answer(ctx context.Context, query string, ts []token) (*result, []int, error) {
	end := token{at: ts[len(ts)-1].end, end: ts[len(ts)-1].end}
	sel, err := parseSelect(query, append(ts[:len(ts):len(ts)], end))
	if err != nil {
		return nil, nil, nil //nolint:nilerr // it is not for kernels
	}
	if len(sel.items) > answerColumns {
		return nil, nil, nil
	}
	key := "inner " + query[ts[0].at:end.at]
	p := v.plans[key]
	if p == nil {
		p, err = v.plan(ctx, sel)
	}
	var res *result
	if err == nil {
		sel, v.plans[key] = p.sel, p
		v.forget()
		res, err = p.run(ctx, v)
	}
	if errors.Is(err, errKernel) || err == nil && len(res.rows) > maxAnswer {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	types := make([]int, len(sel.items))
	for i, it := range sel.items {
		types[i] = len(answerTypes) - 1
		e := it.e
		if e.op == 'g' {
			e = p.keys[e.slot]
		}
		if e.op == 'c' {
			types[i] = strings.IndexByte("ift", e.ref.class)
		}
	}
	return res, types, nil
}

// answerModule makes tables of answers.
type answerModule View

// Create implements vtab.Module. The fourth argument is the number of the answer.
func (m *answerModule) Create(ctx vtab.Context, args []string) (vtab.Table, error) {
	if len(args) != 4 {
		return nil, fmt.Errorf("answer: %d arguments", len(args))
	}
	n, err := strconv.Atoi(args[3])
	if err != nil || n < 0 || n >= answerTables {
		return nil, fmt.Errorf("answer %q: no such table", args[3])
	}
	var b strings.Builder
	b.WriteString("CREATE TABLE x(")
	for i := range len(answerTypes) * answerColumns {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "c%d %s", i, answerTypes[i/answerColumns])
	}
	if err := ctx.Declare(b.String() + ")"); err != nil {
		return nil, fmt.Errorf("declare answer: %w", err)
	}
	return &answerTable{(*View)(m), n}, nil
}

// Connect implements vtab.Module.
func (m *answerModule) Connect(ctx vtab.Context, args []string) (vtab.Table, error) {
	return m.Create(ctx, args)
}

// answerTable is an answer as a table.
type answerTable struct {
	v *View
	n int
}

func (t *answerTable) rows() [][]any {
	if t.n < len(t.v.answers) {
		return t.v.answers[t.n].rows
	}
	return nil
}

// BestIndex implements vtab.Table: all rows.
func (t *answerTable) BestIndex(info *vtab.IndexInfo) error {
	info.EstimatedRows = int64(len(t.rows())) + 1
	info.EstimatedCost = float64(info.EstimatedRows)
	return nil
}

// Open implements vtab.Table.
func (t *answerTable) Open() (vtab.Cursor, error) { return &answerCursor{t: t}, nil }

// Disconnect implements vtab.Table.
func (t *answerTable) Disconnect() error { return nil }

// Destroy implements vtab.Table.
func (t *answerTable) Destroy() error { return nil }

// answerCursor goes through an answer.
type answerCursor struct {
	t    *answerTable
	rows [][]any
	at   int
}

// Filter implements vtab.Cursor.
func (c *answerCursor) Filter(int, string, []vtab.Value) error {
	c.rows, c.at = c.t.rows(), 0
	return nil
}

// Next implements vtab.Cursor.
func (c *answerCursor) Next() error {
	if c.at++; c.at%4096 == 0 && c.t.v.ctx.Err() != nil {
		return c.t.v.fail(c.t.v.ctx.Err())
	}
	return nil
}

// Eof implements vtab.Cursor.
func (c *answerCursor) Eof() bool { return c.at >= len(c.rows) } //nolint:revive // the interface has this name

// Column implements vtab.Cursor.
func (c *answerCursor) Column(col int) (vtab.Value, error) {
	if k := col % answerColumns; c.at < len(c.rows) && k < len(c.rows[c.at]) {
		return c.rows[c.at][k], nil
	}
	return nil, nil
}

// Rowid implements vtab.Cursor.
func (c *answerCursor) Rowid() (int64, error) { return int64(c.at) + 1, nil }

// Close implements vtab.Cursor.
func (c *answerCursor) Close() error { return nil }
