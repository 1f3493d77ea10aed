package msgtext

import (
	"fmt"
	"strings"

	"github.com/gobag/gobag/msg"
)

// AppendCSV appends a value as message_to_csv does: all values in the order of the definition with commas between, bools
// as True and False, an empty array as an empty value; no newline. Unlike there, an empty value never loses its comma and
// strings with a comma, a quote or a newline are in quotes (RFC 4180).
func (o Options) AppendCSV(dst []byte, v any, t msg.Type) []byte {
	c := csv{dst: dst}
	c.value(o.reduce(v, t))
	return c.dst
}

type csv struct {
	dst   []byte
	later bool
}

func (c *csv) value(v any) {
	switch v := v.(type) {
	case mapping:
		for _, p := range v {
			c.value(p.value)
		}
		return
	case sequence:
		for _, e := range v {
			c.value(e)
		}
		if len(v) > 0 {
			return
		}
	}
	if c.later {
		c.dst = append(c.dst, ',')
	}
	c.later = true
	if _, list := v.(sequence); list {
		return
	}
	s := Plain(v)
	if strings.ContainsAny(s, ",\"\r\n") {
		s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	c.dst = append(c.dst, s...)
}

// Plain is a scalar as Python's str prints it.
func Plain(v any) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "True"
		}
		return "False"
	case float32:
		return string(appendPyFloat(nil, float64(v)))
	case float64:
		return string(appendPyFloat(nil, v))
	}
	return fmt.Sprint(v)
}
