package sqlview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugin"
)

// System columns come first, in this order.
const (
	colLogTime = iota
	colPubTime
	colBag
	colTopic
	colType
	colSource
	colSeq
	colOrder
	colSize
	colCDR
	systemColumns
)

var systemNames = [systemColumns]string{"_log_time INTEGER", "_pub_time INTEGER", "_bag TEXT", "_topic TEXT", "_type TEXT", "_source INTEGER",
	"_seq INTEGER", "_order INTEGER", "_size INTEGER", "_cdr BLOB"}

// maxColumns of a table: SQLite's limit is 2000.
const maxColumns = 1990

// dummy is the field that an empty message has on the wire only.
const dummy = "structure_needs_at_least_one_member"

// Table describes a table of a View.
type Table struct {
	Name    string
	Alias   string // a name that needs no quotes; "" none
	Types   []string
	Rows    uint64
	Columns []Column // those of *
	Notes   []string // why there are no columns for the fields
}

// Column is a column of a Table.
type Column struct{ Name, Type string }

// table is one topic, or all of them.
type table struct {
	v       *View
	name    string
	alias   string
	all     bool // the table messages
	ofType  bool // all topics of a type
	rows    uint64
	types   []string
	columns []column // behind the system columns
	parts   []*part

	kernel    []*kernelSource // once asked for
	kernelErr error           // why there are none
}

// column is one of the fields.
type column struct{ name, decl string }

// part is what one bag has of a table.
type part struct {
	bag    *openedBag
	topics []plugin.TopicID
	by     map[plugin.TopicID]*source
}

// source is a topic of a bag.
type source struct {
	bag       *openedBag
	name, typ string
	p         *shred.Program // nil if it cannot be decoded
	why       error          // then
	fields    []field        // by column of the table
}

// field is where a column of the table is in a program.
type field struct {
	leaf int // column of the program; -1 if none
	list int // list of the program, whose value is JSON; -1 if none
}

// addFields adds the fields of p to the columns of t and tells where each column is.
func (t *table) addFields(p *shred.Program) []field {
	fields := make([]field, len(t.columns))
	for i := range fields {
		fields[i] = field{-1, -1}
	}
	lists, columns := p.Lists(), p.Columns()
	seen := map[int]bool{}
	for i := range columns {
		c := &columns[i]
		if c.Path[len(c.Path)-1] == dummy && c.List < 0 {
			continue
		}
		f, name, decl := field{leaf: i, list: -1}, c.Name(), sqlType(c.Kind)
		if root := c.List; root >= 0 {
			for lists[root].Parent >= 0 {
				root = lists[root].Parent
			}
			if seen[root] {
				continue
			}
			seen[root] = true
			f, name, decl = field{leaf: -1, list: root}, lists[root].Name(), "TEXT"
		}
		k := slices.IndexFunc(t.columns, func(have column) bool { return strings.EqualFold(have.name, name) })
		for n := 2; k >= 0 && k < len(fields) && fields[k] != (field{-1, -1}); n++ { // names that differ in their case only
			other := fmt.Sprintf("%s_%d", name, n)
			if k = slices.IndexFunc(t.columns, func(have column) bool { return strings.EqualFold(have.name, other) }); k < 0 {
				name = other
			}
		}
		switch {
		case k >= 0:
			if t.columns[k].decl != decl {
				t.columns[k].decl = "" // of different types in different bags: no affinity
			}
			fields[k] = f
		case len(t.columns) < maxColumns:
			t.columns = append(t.columns, column{name, decl})
			fields = append(fields, f)
		}
	}
	return fields
}

func sqlType(k shred.Kind) string {
	switch k {
	case shred.Float32, shred.Float64:
		return "REAL"
	case shred.String, shred.WString:
		return "TEXT"
	case shred.Bytes:
		return "BLOB"
	}
	return "INTEGER"
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// hidden tells whether a system column is left out of *.
func (t *table) hidden(col int) bool {
	switch col {
	case colLogTime, colPubTime:
		return false
	case colBag:
		return len(t.v.bags) < 2
	case colTopic:
		return !t.all && !t.ofType
	case colType:
		return !t.all
	case colSize:
		return !t.all
	}
	return true
}

// declaration is the CREATE TABLE that SQLite is told.
func (t *table) declaration() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE x(")
	for i, name := range systemNames {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name)
		if t.hidden(i) {
			b.WriteString(" HIDDEN")
		}
	}
	for _, c := range t.columns {
		b.WriteString(", " + quote(c.name) + " " + c.decl)
	}
	return b.String() + ")"
}

// describe is the table for people.
func (t *table) describe() Table {
	d := Table{Name: t.name, Alias: t.alias, Types: t.types, Rows: t.rows}
	for i, name := range systemNames {
		if !t.hidden(i) {
			name, typ, _ := strings.Cut(name, " ")
			d.Columns = append(d.Columns, Column{name, typ})
		}
	}
	for _, p := range t.parts {
		for _, id := range p.topics {
			if s := p.by[id]; s.why != nil && !t.all && !slices.Contains(d.Notes, s.why.Error()) {
				d.Notes = append(d.Notes, s.why.Error())
			}
		}
	}
	for _, c := range t.columns {
		d.Columns = append(d.Columns, Column{c.name, c.decl})
	}
	return d
}

// bare is a topic name as an SQL identifier, "" if it does not make one.
func bare(name string) string {
	s := strings.ReplaceAll(strings.TrimPrefix(name, "/"), "/", "_")
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return ""
	}
	for i := range len(s) {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && s[i] != '_' && (s[i] < '0' || s[i] > '9') {
			return ""
		}
	}
	return s
}
