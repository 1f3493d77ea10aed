package shred

import (
	"fmt"
	"slices"

	"github.com/gobag/gobag/msg"
)

// Limits on types, which come from the network. Real ones stay far below.
const (
	maxColumns = 10000
	maxDepth   = 64 // structs within structs
)

// Program walks payloads of one type. It is immutable and safe for concurrent use.
type Program struct {
	typ   string
	cols  []Column
	lists []List
	ops   [2][]op // for XCDR1 and XCDR2
	full  node
	root  node   // full without what is not kept
	keep  []bool // by column: whether it is stored; nil all
	keepL []bool // the same by list
}

// Compile makes the program of a described type. Types with a wchar or long double, which are in .idl files only, with
// more than 10,000 leaves, and those that contain themselves, are errors.
func Compile(d *msg.Description) (*Program, error) { return CompileWith(d, Options{}) }

// Options say how values are held. The zero value works.
type Options struct {
	SplitTimes bool // times and durations are two columns, of any seconds and nanoseconds
}

// CompileWith is Compile with options.
func CompileWith(d *msg.Description, o Options) (*Program, error) {
	c := compiler{o: o, types: make(map[string]*msg.Message, 1+len(d.Referenced)), p: &Program{typ: d.Type.Name}}
	c.types[d.Type.Name] = &d.Type
	for i := range d.Referenced {
		c.types[d.Referenced[i].Name] = &d.Referenced[i]
	}
	var err error
	if c.p.full, err = c.structure(&d.Type, nil, -1, 0); err != nil {
		return nil, fmt.Errorf("compile %s: %w", d.Type.Name, err)
	}
	for v := range c.p.ops {
		c.p.ops[v] = emitter{xcdr2: v == 1}.emit(nil, c.p.full.body)
	}
	c.p.root = c.p.full
	return c.p, nil
}

// node is a field or an element of a list.
type node struct {
	name string   // of the field
	typ  msg.Type // of the field
	code opcode
	kind Kind     // of the column
	elem msg.Base // of the column
	col  int
	list int
	n    int    // elements of a fixed array, or bytes
	body []node // fields of a struct; the element of a list
}

type compiler struct {
	o     Options
	types map[string]*msg.Message
	p     *Program
}

// structure makes the node of a struct at path, inside list.
func (c *compiler) structure(m *msg.Message, path []string, list, depth int) (node, error) {
	if depth > maxDepth {
		return node{}, fmt.Errorf("structs are nested deeper than %d", maxDepth)
	}
	fields := m.WireFields()
	n := node{code: opStruct, body: make([]node, len(fields))}
	for i := range fields {
		var err error
		if n.body[i], err = c.field(fields[i].Type, append(slices.Clip(path), fields[i].Name), list, depth); err != nil {
			return n, err
		}
		n.body[i].name, n.body[i].typ = fields[i].Name, fields[i].Type
	}
	return n, nil
}

// field makes the node of one field.
func (c *compiler) field(t msg.Type, path []string, list, depth int) (node, error) {
	if t.Array == msg.Single {
		return c.element(t, path, list, depth)
	}
	fixed := 0
	if t.Array == msg.Fixed {
		fixed = int(t.Capacity)
	}
	switch t.Base {
	case msg.Int8, msg.UInt8, msg.Byte, msg.Char:
		code := opBytes
		if fixed > 0 {
			code = opFixedBytes
		}
		return c.leaf(code, Column{Path: path, Kind: Bytes, Elem: t.Base, List: list, Fixed: fixed})
	}
	l := List{Path: path, Parent: list, Fixed: fixed, Depth: 1}
	if list >= 0 {
		l.Depth += c.p.lists[list].Depth
	}
	id := len(c.p.lists)
	c.p.lists = append(c.p.lists, l)
	elem, err := c.element(t, path, id, depth)
	n := node{code: opList, list: id, n: fixed, body: []node{elem}}
	if elem.code == opNumber {
		n.code, n.kind, n.elem, n.col = opNumbers, elem.kind, elem.elem, elem.col
	}
	return n, err
}

var numberKinds = map[msg.Base]Kind{msg.Bool: Bool, msg.Int8: Int8, msg.UInt8: UInt8, msg.Byte: UInt8, msg.Char: UInt8,
	msg.Int16: Int16, msg.UInt16: UInt16, msg.Int32: Int32, msg.UInt32: UInt32, msg.Int64: Int64, msg.UInt64: UInt64,
	msg.Float: Float32, msg.Double: Float64}

// element makes the node of one value of the base type.
func (c *compiler) element(t msg.Type, path []string, list, depth int) (node, error) {
	col := Column{Path: path, Elem: t.Base, List: list}
	switch t.Base {
	case msg.String, msg.BoundedString:
		col.Kind = String
		return c.leaf(opString, col)
	case msg.WString, msg.BoundedWString:
		col.Kind = WString
		return c.leaf(opWString, col)
	case msg.Nested:
		m := c.types[t.Name]
		if m == nil {
			return node{}, fmt.Errorf("field %s: the description lacks type %s", joined(path), t.Name)
		}
		if col.Kind = stampKind(m); col.Kind == 0 || c.o.SplitTimes {
			return c.structure(m, path, list, depth+1)
		}
		return c.leaf(opTime, col)
	}
	if col.Kind = numberKinds[t.Base]; col.Kind == 0 {
		return node{}, fmt.Errorf("field %s: type %d is not supported", joined(path), t.Base)
	}
	return c.leaf(opNumber, col)
}

// leaf makes a column and its node.
func (c *compiler) leaf(code opcode, col Column) (node, error) {
	if len(c.p.cols) == maxColumns {
		return node{}, fmt.Errorf("more than %d leaves", maxColumns)
	}
	c.p.cols = append(c.p.cols, col)
	return node{code: code, kind: col.Kind, elem: col.Elem, col: len(c.p.cols) - 1, n: col.Fixed}, nil
}

// stampKind tells whether m is a time or a duration; 0 neither.
func stampKind(m *msg.Message) Kind {
	f := m.Fields
	if len(f) != 2 || f[0].Name != "sec" || f[1].Name != "nanosec" || f[0].Type != (msg.Type{Base: msg.Int32}) || f[1].Type != (msg.Type{Base: msg.UInt32}) {
		return 0
	}
	switch m.Name {
	case "builtin_interfaces/msg/Time":
		return Time
	case "builtin_interfaces/msg/Duration":
		return Duration
	}
	return 0
}

func joined(path []string) string { return (&Column{Path: path}).Name() }
