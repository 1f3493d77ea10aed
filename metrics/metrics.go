// Package metrics shows what a recorder, a player or a measurement does as Prometheus metrics: over HTTP, in the text
// format of version 0.0.4 that Prometheus and its relatives read.
package metrics

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Kind says how a metric behaves.
type Kind string

// The kinds of metrics.
const (
	Counter Kind = "counter" // only grows
	Gauge   Kind = "gauge"
)

// Metric is one metric with its values, one for each combination of labels.
type Metric struct {
	Name   string // begins with gobag_ or process_, and says the unit
	Help   string
	Kind   Kind
	Values []Value
}

// Value is one value of a metric.
type Value struct {
	Labels []Label
	Value  float64
}

// Label is a name and a value; names are of the metric's author, values may be any text.
type Label struct{ Name, Value string }

// One is a metric without labels.
func One(name, help string, kind Kind, v float64) Metric {
	return Metric{name, help, kind, []Value{{Value: v}}}
}

// Write writes metrics in the text format. Metrics without values are left out.
func Write(w io.Writer, list []Metric) error {
	var b strings.Builder
	for _, m := range list {
		if len(m.Values) == 0 {
			continue
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", m.Name, strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(m.Help), m.Name, m.Kind)
		for _, v := range m.Values {
			b.WriteString(m.Name)
			for i, l := range v.Labels {
				b.WriteByte("{,"[min(i, 1)])
				b.WriteString(l.Name)
				b.WriteByte('=')
				quote(&b, l.Value)
			}
			if len(v.Labels) > 0 {
				b.WriteByte('}')
			}
			b.WriteByte(' ')
			b.WriteString(number(v.Value))
			b.WriteByte('\n')
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// quote writes a label's value: a backslash, a quote and a line feed are escaped, everything else stands as it is.
func quote(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch r {
		case '\\', '"':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\n':
			b.WriteString(`\n`)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	case math.IsNaN(v):
		return "NaN"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
