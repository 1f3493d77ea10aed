package msgtext

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/gobag/gobag/msg"
)

// AppendYAML appends a value of package shred as YAML, its last line ended. t is the type of the field that the value is
// of, as Field returns it; for a whole message msg.Type{Base: msg.Nested}.
func (o Options) AppendYAML(dst []byte, v any, t msg.Type) []byte {
	y := yaml{dst: dst}
	switch v := o.reduce(v, t).(type) {
	case mapping, sequence:
		if o.Flow || empty(v) {
			y.flow(v)
			break
		}
		y.block(v, 0)
		return y.dst
	default:
		y.scalar(v, false)
	}
	return append(y.dst, '\n')
}

func empty(v any) bool {
	switch v := v.(type) {
	case mapping:
		return len(v) == 0
	case sequence:
		return len(v) == 0
	}
	return false
}

type yaml struct{ dst []byte }

func (y *yaml) add(s string) { y.dst = append(y.dst, s...) }

func (y *yaml) indent(n int) {
	for range n {
		y.dst = append(y.dst, ' ')
	}
}

// block writes the lines of a mapping or sequence that is not empty. The first line is not indented: it may follow "- ".
func (y *yaml) block(v any, indent int) {
	switch v := v.(type) {
	case mapping:
		for i, p := range v {
			if i > 0 {
				y.indent(indent)
			}
			y.add(p.key + ":")
			y.below(p.value, indent)
		}
	case sequence:
		for i, e := range v {
			if i > 0 {
				y.indent(indent)
			}
			y.add("- ")
			switch e.(type) {
			case mapping, sequence:
				if !empty(e) {
					y.block(e, indent+2)
					continue
				}
				y.flow(e)
			default:
				y.scalar(e, false)
			}
			y.add("\n")
		}
	}
}

// below writes the value of a key.
func (y *yaml) below(v any, indent int) {
	switch v.(type) {
	case mapping:
		if empty(v) {
			break
		}
		y.add("\n")
		y.indent(indent + 2)
		y.block(v, indent+2)
		return
	case sequence:
		if empty(v) {
			break
		}
		y.add("\n")
		y.indent(indent) // PyYAML does not indent sequences in mappings
		y.block(v, indent)
		return
	}
	y.add(" ")
	y.flow(v)
	y.add("\n")
}

// flow writes a value in one line.
func (y *yaml) flow(v any) {
	switch v := v.(type) {
	case mapping:
		y.add("{")
		for i, p := range v {
			if i > 0 {
				y.add(", ")
			}
			y.add(p.key + ": ")
			y.inFlow(p.value)
		}
		y.add("}")
	case sequence:
		y.add("[")
		for i, e := range v {
			if i > 0 {
				y.add(", ")
			}
			y.inFlow(e)
		}
		y.add("]")
	default:
		y.scalar(v, false)
	}
}

func (y *yaml) inFlow(v any) {
	switch v.(type) {
	case mapping, sequence:
		y.flow(v)
	default:
		y.scalar(v, true)
	}
}

func (y *yaml) scalar(v any, flow bool) {
	switch v := v.(type) {
	case string:
		y.dst = appendString(y.dst, v, flow)
	case float32:
		y.dst = appendYAMLFloat(y.dst, float64(v))
	case float64:
		y.dst = appendYAMLFloat(y.dst, v)
	default:
		y.dst = fmt.Append(y.dst, v)
	}
}

// appendPyFloat appends a float as Python's repr writes it.
func appendPyFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	}
	e := strconv.AppendFloat(nil, f, 'e', -1, 64)
	i := strings.IndexByte(string(e), 'e')
	exp, _ := strconv.Atoi(string(e[i+1:]))
	if exp < -4 || exp >= 16 {
		return append(dst, e...)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if !strings.Contains(string(dst[start:]), ".") {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendYAMLFloat appends a float as PyYAML represents it: a YAML 1.1 float needs a dot.
func appendYAMLFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, ".nan"...)
	case math.IsInf(f, 1):
		return append(dst, ".inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-.inf"...)
	}
	s := string(appendPyFloat(nil, f))
	if !strings.Contains(s, ".") {
		s = strings.Replace(s, "e", ".0e", 1)
	}
	return append(dst, s...)
}

// otherwise matches the plain scalars of YAML 1.1 that are no strings.
var otherwise = regexp.MustCompile(`^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF|` +
	`~|null|Null|NULL||<<|=|` +
	`[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+|` +
	`[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|` +
	`[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|` +
	`\d\d\d\d-\d\d-\d\d|\d\d\d\d-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?(?:[ \t]*(?:Z|[-+]\d\d?(?::\d\d)?))?)$`)

// appendString appends a string: plain where it can be, else in single quotes, or in double ones where it has characters
// that need escapes.
func appendString(dst []byte, s string, flow bool) []byte {
	for _, r := range s {
		if !printable(r) {
			return appendEscaped(dst, s)
		}
	}
	if plainScalar(s, flow) {
		return append(dst, s...)
	}
	dst = append(dst, '\'')
	dst = append(dst, strings.ReplaceAll(s, "'", "''")...)
	return append(dst, '\'')
}

// printable tells which characters need no escape; those that break lines do here.
func printable(r rune) bool {
	return r >= ' ' && r <= '~' || r >= 0xa0 && r <= 0xd7ff && r != 0x2028 && r != 0x2029 || r >= 0xe000 && r <= 0xfffd && r != 0xfeff || r >= 0x10000
}

func plainScalar(s string, flow bool) bool {
	if otherwise.MatchString(s) || strings.HasPrefix(s, "---") || strings.HasPrefix(s, "...") ||
		strings.HasPrefix(s, " ") || strings.HasSuffix(s, " ") || strings.ContainsAny(s[:1], "#,[]{}&*!|>'\"%@`") {
		return false
	}
	for i := range len(s) {
		spaceBehind := i+1 == len(s) || s[i+1] == ' '
		switch s[i] {
		case '?':
			if i == 0 && spaceBehind || flow {
				return false
			}
		case '-':
			if i == 0 && spaceBehind {
				return false
			}
		case ':':
			if spaceBehind || flow {
				return false
			}
		case ',', '[', ']', '{', '}':
			if flow {
				return false
			}
		case '#':
			if s[i-1] == ' ' {
				return false
			}
		}
	}
	return true
}

var escapes = map[rune]string{0: `\0`, 7: `\a`, 8: `\b`, '\t': `\t`, '\n': `\n`, 0xb: `\v`, 0xc: `\f`, '\r': `\r`, 0x1b: `\e`,
	'"': `\"`, '\\': `\\`, 0x85: `\N`, 0x2028: `\L`, 0x2029: `\P`}

// appendEscaped appends a string in double quotes.
func appendEscaped(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch e := escapes[r]; {
		case e != "":
			dst = append(dst, e...)
		case printable(r):
			dst = append(dst, string(r)...)
		case r <= 0xff:
			dst = fmt.Appendf(dst, `\x%02X`, r)
		case r <= 0xffff:
			dst = fmt.Appendf(dst, `\u%04X`, r)
		default:
			dst = fmt.Appendf(dst, `\U%08X`, r)
		}
	}
	return append(dst, '"')
}
