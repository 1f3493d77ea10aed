package sqlview

import (
	"cmp"
	"math"
	"math/bits"
	"strings"
)

// value is a value of SQL, for what kernels compute once a row of a result.
type value struct {
	kind byte // kindNull, kindInt, kindReal, kindText
	i    int64
	f    float64
	s    string
}

const (
	kindNull = iota
	kindInt
	kindReal
	kindText
)

func intValue(i int64) value   { return value{kind: kindInt, i: i} }
func textValue(s string) value { return value{kind: kindText, s: s} }

// realValue is NULL where f is no number, as in SQLite.
func realValue(f float64) value {
	if math.IsNaN(f) {
		return value{}
	}
	return value{kind: kindReal, f: f}
}

// any is v as a result has it.
func (v value) any() any {
	switch v.kind {
	case kindInt:
		return v.i
	case kindReal:
		return v.f
	case kindText:
		return v.s
	}
	return nil
}

func (v value) real() float64 {
	if v.kind == kindInt {
		return float64(v.i)
	}
	return v.f
}

// arithmetic is SQLite's for numbers: of whole numbers unless the result is too large; NULL by NULL and by a division by zero.
func arithmetic(op byte, a, b value) value {
	if a.kind == kindNull || b.kind == kindNull {
		return value{}
	}
	if a.kind == kindInt && b.kind == kindInt {
		if n, ok := checked(op, a.i, b.i); ok {
			return intValue(n)
		} else if (op == '/' || op == '%') && b.i == 0 {
			return value{}
		}
	}
	x, y := a.real(), b.real()
	switch op {
	case '+':
		return realValue(x + y)
	case '-':
		return realValue(x - y)
	case '*':
		return realValue(x * y)
	case '/':
		if y == 0 {
			return value{}
		}
		return realValue(x / y)
	}
	m, n := a.whole(), b.whole()
	if n == 0 {
		return value{}
	}
	if n == -1 {
		return realValue(0)
	}
	return realValue(float64(m % n))
}

// whole casts to a whole number as SQLite does.
func (v value) whole() int64 {
	if v.kind == kindInt {
		return v.i
	}
	switch f := v.f; {
	case f <= math.MinInt64:
		return math.MinInt64
	case f >= math.MaxInt64:
		return math.MaxInt64
	}
	return int64(v.f)
}

// checked is arithmetic of whole numbers; false where the result is none.
func checked(op byte, a, b int64) (int64, bool) {
	switch op {
	case '+':
		c := a + b
		return c, (c > a) == (b > 0)
	case '-':
		c := a - b
		return c, (c < a) == (b > 0)
	case '*':
		hi, lo := bits.Mul64(uint64(abs(a)), uint64(abs(b)))
		if hi != 0 || lo > math.MaxInt64 || a == math.MinInt64 || b == math.MinInt64 {
			return 0, false
		}
		return a * b, true
	case '/':
		if b == 0 || a == math.MinInt64 && b == -1 {
			return 0, false
		}
		return a / b, true
	}
	if b == 0 {
		return 0, false
	}
	if b == -1 {
		return 0, true
	}
	return a % b, true
}

func abs(a int64) int64 {
	if a < 0 {
		return -a
	}
	return a
}

// compareValues is SQLite's order: NULL, numbers, texts by their bytes.
func compareValues(a, b value) int {
	class := func(v value) int {
		if v.kind == kindReal {
			return kindInt
		}
		return int(v.kind)
	}
	if c := cmp.Compare(class(a), class(b)); c != 0 {
		return c
	}
	switch {
	case a.kind == kindText:
		return strings.Compare(a.s, b.s)
	case a.kind == kindNull:
		return 0
	case a.kind == kindInt && b.kind == kindInt:
		return cmp.Compare(a.i, b.i)
	case a.kind == kindReal && b.kind == kindReal:
		return cmp.Compare(a.f, b.f)
	case a.kind == kindInt:
		return compareIntReal(a.i, b.f)
	}
	return -compareIntReal(b.i, a.f)
}

// compareIntReal compares exactly.
func compareIntReal(i int64, f float64) int {
	switch {
	case f >= 1<<63:
		return -1
	case f < -1<<63:
		return 1
	}
	t := math.Trunc(f)
	if c := cmp.Compare(i, int64(t)); c != 0 {
		return c
	}
	return cmp.Compare(0, f-t)
}
