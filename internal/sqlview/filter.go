package sqlview

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"modernc.org/sqlite/vtab"

	"github.com/gobag/gobag/msg/shred"
)

// fieldTest is a comparison of a field with a value. A row is left out only where it is certain that SQLite would leave
// it out; SQLite compares once more.
type fieldTest struct {
	col   int  // of the table's fields
	op    byte // '=', or '<' and '>' with or without equality
	text  bool
	s     string
	whole bool // a whole number: n, else f
	n     int64
	f     float64
}

// fieldOps are the comparisons of fields that are passed on, by their letter in a plan.
var fieldOps = map[vtab.ConstraintOp]byte{vtab.OpEQ: '=', vtab.OpLT: '<', vtab.OpLE: '<', vtab.OpGT: '>', vtab.OpGE: '>'}

// token is how a test stands in a plan: "=12".
func (t *table) token(col int, op vtab.ConstraintOp) string {
	letter := fieldOps[op]
	if letter == 0 || col < systemColumns || t.columns[col-systemColumns].decl == "BLOB" {
		return ""
	}
	return string(letter) + strconv.Itoa(col-systemColumns)
}

// addTest adds the test of a token with the value of the query.
func (p *plan) addTest(token string, v vtab.Value) error {
	col, err := strconv.Atoi(token[1:])
	if err != nil {
		return fmt.Errorf("plan has %q", token)
	}
	t := fieldTest{col: col, op: token[0]}
	switch v := v.(type) {
	case nil:
		p.nothing = true // no comparison with NULL is true
		return nil
	case int64:
		t.whole, t.n, t.f = true, v, float64(v)
	case float64:
		t.f = v
	case string:
		if t.op != '=' {
			return nil // the order of texts hangs on the collation
		}
		t.text, t.s = true, v
	default:
		return nil
	}
	p.tests = append(p.tests, t)
	return nil
}

// passes tells whether the row of s can be one that the query wants.
func (p *plan) passes(src *source, s *state) bool {
	for i := range p.tests {
		t := &p.tests[i]
		if t.col >= len(src.fields) {
			return false // NULL
		}
		f := src.fields[t.col]
		switch {
		case f.leaf < 0 && f.list < 0 || !s.ok:
			return false // NULL
		case f.leaf < 0 || !s.keep[f.leaf]:
			continue
		}
		if !s.passes(t, f.leaf) {
			return false
		}
	}
	return true
}

// passes compares the last row's value of a column. Values of another class than the test's are left to SQLite.
func (s *state) passes(t *fieldTest, leaf int) bool {
	c := &s.p.Columns()[leaf]
	v := &s.b.Cols[leaf]
	row := s.b.Rows() - 1
	var n int64
	switch c.Kind {
	case shred.String, shred.WString:
		return !t.text || sameText(v.Bytes(row), t.s)
	case shred.Bytes:
		return true
	case shred.Float32, shred.Float64:
		var f float64
		if c.Kind == shred.Float32 {
			f = float64(v.F32[row])
		} else {
			f = v.F64[row]
		}
		return t.text || !math.IsNaN(f) && t.float(f) // NaN is NULL
	case shred.Bool:
		n = int64(v.U8[row])
	case shred.Int64, shred.Time, shred.Duration:
		n = v.I64[row]
	case shred.UInt64:
		if n = v.I64[row]; n < 0 {
			return true // a text
		}
	case shred.UInt32:
		n = int64(uint32(v.I32[row]))
	default:
		n = int64(v.I32[row])
	}
	switch {
	case t.text:
		return true
	case !t.whole:
		return t.float(float64(n)) // rounding keeps the order
	case t.op == '=':
		return n == t.n
	case t.op == '<':
		return n <= t.n
	}
	return n >= t.n
}

func (t *fieldTest) float(f float64) bool {
	switch t.op {
	case '=':
		return f == t.f
	case '<':
		return f <= t.f
	}
	return f >= t.f
}

// sameText tells whether two texts are equal in some collation of SQLite: case of ASCII letters and blanks at the end do
// not count.
func sameText(a []byte, b string) bool {
	if string(a) == b {
		return true
	}
	s := strings.TrimRight(string(a), " ")
	b = strings.TrimRight(b, " ")
	if len(s) != len(b) {
		return false
	}
	for i := range len(s) {
		x, y := s[i], b[i]
		if x != y && (x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z') {
			return false
		}
	}
	return true
}
