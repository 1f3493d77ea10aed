package msgtext

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/msg/shred"
)

// Options say how much is printed. The zero value prints everything.
type Options struct {
	Truncate int  // elements of an array and characters of a string that are printed at most; 0 all
	NoArr    bool // only type and length of arrays
	NoStr    bool // only the length of strings
	Flow     bool // YAML in one line, with braces
}

// plain are the numbers and the strings that a value comes down to.
type (
	mapping  []pair
	sequence []any
	pair     struct {
		key   string
		value any
	}
)

// dummy is the field that an empty message has on the wire only.
const dummy = "structure_needs_at_least_one_member"

// reduce makes mappings, sequences, numbers, bools and strings of a value. t is the type of the field; a value without
// one has Base 0.
func (o *Options) reduce(v any, t msg.Type) any {
	switch v := v.(type) {
	case shred.Struct:
		m := make(mapping, 0, len(v))
		for i := range v {
			if v[i].Name != dummy {
				m = append(m, pair{v[i].Name, o.reduce(v[i].Value, v[i].Type)})
			}
		}
		return m
	case string:
		return o.text(v)
	case uint8:
		if t.Base == msg.Byte { // rclpy has bytes there, which are printed as a character
			return string(rune(v))
		}
	}
	if n, at := elements(v); at != nil {
		return o.list(t, n, at)
	}
	return v
}

func (o *Options) text(s string) string {
	n := len([]rune(s))
	if o.NoStr {
		return fmt.Sprintf("<string length: <%d>>", n)
	}
	if o.Truncate > 0 && n > o.Truncate {
		return string([]rune(s)[:o.Truncate]) + "..."
	}
	return s
}

func (o *Options) list(t msg.Type, n int, at func(int) any) any {
	if o.NoArr && t.Array != msg.Single {
		return abbreviated(t, n)
	}
	elem := t
	elem.Array, elem.Capacity = msg.Single, 0
	shown := n
	if o.Truncate > 0 {
		shown = min(n, o.Truncate)
	}
	s := make(sequence, shown, shown+1)
	for i := range s {
		s[i] = o.reduce(at(i), elem)
	}
	if shown < n {
		s = append(s, "...")
	}
	return s
}

var idlNames = map[msg.Base]string{msg.Bool: "boolean", msg.Byte: "octet", msg.Char: "char", msg.Float: "float", msg.Double: "double",
	msg.Int8: "int8", msg.UInt8: "uint8", msg.Int16: "int16", msg.UInt16: "uint16", msg.Int32: "int32", msg.UInt32: "uint32",
	msg.Int64: "int64", msg.UInt64: "uint64", msg.String: "string", msg.WString: "wstring"}

// abbreviated is an array of which only type and length are printed.
func abbreviated(t msg.Type, n int) string {
	name := idlNames[t.Base]
	switch t.Base {
	case msg.Nested:
		name = t.Name
	case msg.BoundedString:
		name = "string<" + strconv.FormatUint(t.StringCapacity, 10) + ">"
	case msg.BoundedWString:
		name = "wstring<" + strconv.FormatUint(t.StringCapacity, 10) + ">"
	}
	if t.Array == msg.Fixed {
		return fmt.Sprintf("<array type: %s[%d]>", name, n)
	}
	return fmt.Sprintf("<sequence type: %s, length: %d>", name, n)
}

// Field is the value at a path such as "transforms[0].header.frame_id" with its type. It says what is there instead
// where nothing has that name.
func Field(s shred.Struct, path string) (any, msg.Type, error) {
	var v any = s
	t := msg.Type{Base: msg.Nested}
	for part := range strings.SplitSeq(path, ".") {
		name, index, indexed := strings.Cut(part, "[")
		if name != "" || !indexed {
			st, ok := v.(shred.Struct)
			if !ok {
				return nil, t, fmt.Errorf("field %q: there is nothing below the value before %q", path, part)
			}
			found := false
			for i := range st {
				if st[i].Name == name && name != dummy {
					v, t, found = st[i].Value, st[i].Type, true
				}
			}
			if !found {
				return nil, t, fmt.Errorf("field %q: no %q, there is: %s", path, name, strings.Join(names(st), ", "))
			}
		}
		for indexed {
			n, rest, closed := strings.Cut(index, "]")
			i, err := strconv.Atoi(strings.TrimSpace(n))
			if err != nil || !closed || rest != "" && rest[0] != '[' {
				return nil, t, fmt.Errorf("field %q: want an index like [0] in %q", path, part)
			}
			elem, length := element(v, i)
			if elem == nil {
				return nil, t, fmt.Errorf("field %q: there is no [%d], the length is %d", path, i, length)
			}
			v = elem
			t.Array, t.Capacity = msg.Single, 0
			index, indexed = strings.CutPrefix(rest, "[")
		}
	}
	return v, t, nil
}

func names(s shred.Struct) []string {
	var out []string
	for i := range s {
		if s[i].Name != dummy {
			out = append(out, s[i].Name)
		}
	}
	return out
}

// element is the i-th element of a list, from the end if i is negative; nil if there is none.
func element(v any, i int) (elem any, length int) {
	n, at := elements(v)
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return nil, n
	}
	return at(i), n
}

// elements gives access to a list; at is nil if v is none.
func elements(v any) (n int, at func(int) any) {
	switch v := v.(type) {
	case []shred.Struct:
		return view(v)
	case []string:
		return view(v)
	case []bool:
		return view(v)
	case []uint8:
		return view(v)
	case []int8:
		return view(v)
	case []int16:
		return view(v)
	case []uint16:
		return view(v)
	case []int32:
		return view(v)
	case []uint32:
		return view(v)
	case []int64:
		return view(v)
	case []uint64:
		return view(v)
	case []float32:
		return view(v)
	case []float64:
		return view(v)
	}
	return 0, nil
}

func view[T any](s []T) (int, func(int) any) { return len(s), func(i int) any { return s[i] } }
