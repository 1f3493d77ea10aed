package sqlview

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"modernc.org/sqlite/vtab"
)

// module makes the tables of a View known to SQLite.
type module View

// Create implements vtab.Module. The fourth argument is the index of the table.
func (m *module) Create(ctx vtab.Context, args []string) (vtab.Table, error) {
	v := (*View)(m)
	if len(args) != 4 {
		return nil, fmt.Errorf("topic: %d arguments", len(args))
	}
	i, err := strconv.Atoi(args[3])
	if err != nil || i < 0 || i >= len(v.tables) {
		return nil, fmt.Errorf("topic %q: no such table", args[3])
	}
	t := v.tables[i]
	if err := ctx.Declare(t.declaration()); err != nil {
		return nil, fmt.Errorf("declare table %s: %w", t.name, err)
	}
	return t, nil
}

// Connect implements vtab.Module.
func (m *module) Connect(ctx vtab.Context, args []string) (vtab.Table, error) {
	return m.Create(ctx, args)
}

// Disconnect implements vtab.Table.
func (t *table) Disconnect() error { return nil }

// Destroy implements vtab.Table.
func (t *table) Destroy() error { return nil }

// Open implements vtab.Table.
func (t *table) Open() (vtab.Cursor, error) { return &cursor{t: t, states: map[*source]*state{}}, nil }

// Tokens of a plan: what the arguments of a scan are.
var timeOps = map[vtab.ConstraintOp]string{vtab.OpGE: "g", vtab.OpGT: "G", vtab.OpLE: "l", vtab.OpLT: "L", vtab.OpEQ: "e"}

// reverseScan is the plan number of a scan backwards.
const reverseScan = 1

// BestIndex implements vtab.Table. A plan is the columns used and, for each argument, a token. SQLite checks all
// constraints once more: what is pushed down may only be wider.
func (t *table) BestIndex(info *vtab.IndexInfo) error {
	var tokens []string
	rows := float64(max(t.rows, 1))
	for i := range info.Constraints {
		c := &info.Constraints[i]
		if !c.Usable {
			continue
		}
		var token string
		switch {
		case c.Column == colLogTime:
			token = timeOps[c.Op]
		case c.Column == colBag && c.Op == vtab.OpEQ:
			token = "b"
		case c.Column == colTopic && c.Op == vtab.OpEQ:
			token = "t"
		default:
			token = t.token(c.Column, c.Op)
		}
		switch {
		case token == "":
			continue
		case token == "e":
			rows /= 1000
		case token == "b":
			rows /= float64(len(t.v.bags))
		default:
			rows /= 4
		}
		c.ArgIndex = len(tokens)
		tokens = append(tokens, token)
	}
	info.IdxNum = 0
	if len(info.OrderBy) == 1 && info.OrderBy[0].Column == colLogTime {
		info.OrderByConsumed = true
		if info.OrderBy[0].Desc {
			info.IdxNum = reverseScan
			for _, p := range t.parts {
				info.OrderByConsumed = info.OrderByConsumed && p.bag.reverse
			}
			if !info.OrderByConsumed {
				info.IdxNum = 0
			}
		}
	}
	info.IdxStr = fmt.Sprintf("%x %s", info.ColUsed, strings.Join(tokens, " "))
	info.EstimatedRows = int64(math.Ceil(rows))
	info.EstimatedCost = 10 + rows*(1+0.05*float64(len(t.columns)))
	return nil
}

// plan is what a scan reads.
type plan struct {
	used    uint64 // columns; bit 63 stands for all from 63 on
	start   int64
	end     int64
	bag     *string
	topic   *string
	tests   []fieldTest
	reverse bool
	nothing bool
}

func readPlan(idxNum int, idxStr string, vals []vtab.Value) (plan, error) {
	p := plan{start: math.MinInt64, end: math.MaxInt64, reverse: idxNum == reverseScan}
	used, list, _ := strings.Cut(idxStr, " ")
	tokens := strings.Fields(list)
	var err error
	if p.used, err = strconv.ParseUint(used, 16, 64); err != nil || len(tokens) != len(vals) {
		return p, fmt.Errorf("plan %q with %d arguments", idxStr, len(vals))
	}
	for i, v := range vals {
		switch tokens[i][0] {
		case 'b':
			p.bag = equalTo(&p, v)
		case 't':
			p.topic = equalTo(&p, v)
		case '=', '<', '>':
			if err := p.addTest(tokens[i], v); err != nil {
				return p, err
			}
		default:
			p.bound(tokens[i][0], v)
		}
	}
	return p, nil
}

// equalTo is the text that a column must be equal to; nil where anything but text is compared, which SQLite does.
func equalTo(p *plan, v vtab.Value) *string {
	switch v := v.(type) {
	case string:
		return &v
	case nil:
		p.nothing = true
	}
	return nil
}

// bound narrows the time range. Values that are no numbers are left to SQLite.
func (p *plan) bound(letter byte, v vtab.Value) {
	var low, high int64
	switch v := v.(type) {
	case int64:
		low, high = v, v
	case float64:
		if math.IsNaN(v) || math.Abs(v) >= 1<<63 {
			return
		}
		low, high = int64(math.Floor(v)), int64(math.Ceil(v))
	case nil:
		p.nothing = true // no comparison with NULL is true
		return
	default:
		return
	}
	switch letter {
	case 'g', 'G':
		p.start = max(p.start, low)
	case 'l', 'L':
		p.end = min(p.end, high)
	case 'e':
		p.start, p.end = max(p.start, low), min(p.end, high)
	}
}
