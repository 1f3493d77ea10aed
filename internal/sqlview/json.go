package sqlview

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"modernc.org/sqlite/vtab"

	"github.com/gobag/gobag/msg/shred"
)

// listJSON is a list of the row as JSON.
func (s *state) listJSON(list int) (vtab.Value, error) {
	if s.value == nil {
		var err error
		if s.value, err = s.p.Value(s.b, s.c); err != nil {
			return nil, err
		}
	}
	var v any = s.value
	for _, name := range s.p.Lists()[list].Path {
		st, ok := v.(shred.Struct)
		if !ok {
			return nil, fmt.Errorf("list %s: no struct above %s", s.p.Lists()[list].Name(), name)
		}
		v, _ = st.Get(name)
	}
	return string(appendJSON(nil, v)), nil
}

// appendJSON appends a value of package shred as JSON. NaN is null and the infinities are ±9e999, as SQLite writes them.
func appendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case shred.Struct:
		dst = append(dst, '{')
		first := true
		for i := range v {
			if v[i].Name == dummy {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(appendJSONString(dst, v[i].Name), ':')
			dst = appendJSON(dst, v[i].Value)
		}
		return append(dst, '}')
	case []shred.Struct:
		return appendList(dst, v, func(dst []byte, x shred.Struct) []byte { return appendJSON(dst, x) })
	case []string:
		return appendList(dst, v, appendJSONString)
	case []bool:
		return appendList(dst, v, strconv.AppendBool)
	case []float32:
		return appendList(dst, v, func(dst []byte, x float32) []byte { return appendJSONFloat(dst, float64(x)) })
	case []float64:
		return appendList(dst, v, appendJSONFloat)
	case []int8:
		return appendList(dst, v, appendInt)
	case []int16:
		return appendList(dst, v, appendInt)
	case []int32:
		return appendList(dst, v, appendInt)
	case []int64:
		return appendList(dst, v, appendInt)
	case []uint8:
		return appendList(dst, v, appendUint)
	case []uint16:
		return appendList(dst, v, appendUint)
	case []uint32:
		return appendList(dst, v, appendUint)
	case []uint64:
		return appendList(dst, v, appendUint)
	case string:
		return appendJSONString(dst, v)
	case float32:
		return appendJSONFloat(dst, float64(v))
	case float64:
		return appendJSONFloat(dst, v)
	case nil:
		return append(dst, "null"...)
	}
	return fmt.Append(dst, v) // bool and whole numbers
}

func appendList[T any](dst []byte, list []T, elem func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for i, x := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = elem(dst, x)
	}
	return append(dst, ']')
}

func appendInt[T int8 | int16 | int32 | int64](dst []byte, x T) []byte {
	return strconv.AppendInt(dst, int64(x), 10)
}

func appendUint[T uint8 | uint16 | uint32 | uint64](dst []byte, x T) []byte {
	return strconv.AppendUint(dst, uint64(x), 10)
}

func appendJSONFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "null"...)
	case math.IsInf(f, 1):
		return append(dst, "9e999"...)
	case math.IsInf(f, -1):
		return append(dst, "-9e999"...)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', -1, 64)
	for _, c := range dst[start:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	return append(dst, ".0"...) // a REAL for SQLite
}

func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ':
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
