package main

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/recorder"
)

// triggerOps are the comparisons of --trigger, the longer ones first.
var triggerOps = []string{">=", "<=", "==", "!=", ">", "<"}

// condition is FIELD OP VALUE. The field is a name or a path of names; it stands for every field that has this path or ends
// with it, in any element of a list: "level" of /diagnostics is the level of each status.
type condition struct {
	path   []string
	op     string
	text   string
	number float64
	isNum  bool

	typ      string // of program
	text0    string // definition text of program
	program  *shred.Program
	unusable bool
}

// parseTrigger reads "TOPIC FIELD>=VALUE"; blanks around the operator do not matter, quotes around the value neither.
func parseTrigger(s string) (recorder.Trigger, error) {
	topic, rest, ok := strings.Cut(strings.TrimSpace(s), " ")
	if !ok {
		return recorder.Trigger{}, errors.New("want 'TOPIC FIELD>=VALUE', as in '/diagnostics level>=2'")
	}
	for _, op := range triggerOps {
		field, value, ok := strings.Cut(rest, op)
		if !ok {
			continue
		}
		field, value = strings.TrimSpace(field), strings.Trim(strings.TrimSpace(value), `"'`)
		if field == "" || value == "" {
			break
		}
		c := &condition{path: strings.Split(field, "."), op: op, text: value}
		switch strings.ToLower(value) {
		case "true":
			c.number, c.isNum = 1, true
		case "false":
			c.number, c.isNum = 0, true
		default:
			n, err := strconv.ParseFloat(value, 64)
			c.number, c.isNum = n, err == nil
		}
		if !c.isNum && op != "==" && op != "!=" {
			return recorder.Trigger{}, fmt.Errorf("%q is not a number: only == and != compare text", value)
		}
		return recorder.Trigger{Topic: "/" + strings.TrimPrefix(topic, "/"), Text: s, Match: c.match}, nil
	}
	return recorder.Trigger{}, errors.New("no comparison: one of >= <= == != > < and a value")
}

// match is recorder.Trigger.Match. It is called by one goroutine.
func (c *condition) match(typ string, def plugin.Definition, payload []byte) bool {
	if typ != c.typ || def.Text != c.text0 {
		c.typ, c.text0, c.program, c.unusable = typ, def.Text, nil, false
	}
	if c.program == nil {
		if c.unusable || def.Encoding == "" {
			return false
		}
		d, err := msg.DescribeText(typ, def.Encoding, def.Text)
		if err == nil {
			c.program, err = shred.Compile(&d)
		}
		if err != nil {
			c.unusable = true
			return false
		}
	}
	v, _, err := c.program.Decode(payload)
	return err == nil && c.in(v, nil)
}

// in looks for the field in a value below the given path.
func (c *condition) in(v any, path []string) bool {
	if s, ok := v.(shred.Struct); ok {
		for _, f := range s {
			if c.in(f.Value, append(path[:len(path):len(path)], f.Name)) {
				return true
			}
		}
		return false
	}
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice {
		for i := range list.Len() {
			if c.in(list.Index(i).Interface(), path) {
				return true
			}
		}
		return false
	}
	if len(path) < len(c.path) {
		return false
	}
	for i, name := range path[len(path)-len(c.path):] {
		if name != c.path[i] {
			return false
		}
	}
	return c.holds(v)
}

// holds compares one value.
func (c *condition) holds(v any) bool {
	if s, ok := v.(string); ok {
		return (s == c.text) == (c.op == "==") && (c.op == "==" || c.op == "!=")
	}
	n, ok := numberOf(v)
	if !ok || !c.isNum {
		return false
	}
	switch c.op {
	case ">=":
		return n >= c.number
	case "<=":
		return n <= c.number
	case "==":
		return n == c.number
	case "!=":
		return n != c.number
	case ">":
		return n > c.number
	}
	return n < c.number
}

// numberOf returns a field's value as a number; a bool is 0 or 1.
func numberOf(v any) (float64, bool) {
	x := reflect.ValueOf(v)
	switch {
	case x.Kind() == reflect.Bool && x.Bool():
		return 1, true
	case x.Kind() == reflect.Bool:
		return 0, true
	case x.CanInt():
		return float64(x.Int()), true
	case x.CanUint():
		return float64(x.Uint()), true
	case x.CanFloat():
		return x.Float(), true
	}
	return 0, false
}
