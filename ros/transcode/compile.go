package transcode

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/gobag/gobag/msg"
)

// The serialization formats, as bags name them.
const (
	FormatCDR  = "cdr"
	FormatROS1 = "ros1"
)

// pairing compiles the steps between a type of ROS 1 and one of ROS 2.
type pairing struct {
	to2   bool
	ros1  map[string]*msg.ROS1Message
	ros2  map[string]*msg.Message
	cache map[string]compiled // by name in ROS 1 and ROS 2
	depth int
}

type compiled struct {
	ops   []op
	least int // bytes in what is read
}

// compileTo2 makes the program from a definition of ROS 1.
func (c *Compiler) compileTo2(d *msg.ROS1Definition) (*Program, error) {
	name := NameROS2(d.Name)
	made := map[string][]byte{} // definitions of ROS 2 that are made of ROS 1's
	if err := c.derive2(d, d.Name, made, map[string]bool{}); err != nil {
		return nil, err
	}
	src := msg.Overlay(func(file string) ([]byte, error) {
		if text, ok := made[file]; ok {
			return text, nil
		}
		return nil, fs.ErrNotExist
	}, c.source)
	def, err := msg.Define(name, "", src)
	if err != nil {
		return nil, err
	}
	desc, err := msg.Describe(name, src)
	if err != nil {
		return nil, err
	}
	pair := newPairing(true, d, &desc)
	out, err := pair.message(d.Name, name, "")
	if err != nil {
		return nil, err
	}
	return &Program{Type: name, Hash: def.Hash, Encoding: def.Encoding, Definition: def.Text, Format: FormatCDR, from: d.Name, ops: out.ops}, nil
}

func newPairing(to2 bool, d *msg.ROS1Definition, desc *msg.Description) *pairing {
	p := &pairing{to2: to2, ros1: d.Messages, ros2: map[string]*msg.Message{desc.Type.Name: &desc.Type}, cache: map[string]compiled{}}
	for i := range desc.Referenced {
		p.ros2[desc.Referenced[i].Name] = &desc.Referenced[i]
	}
	return p
}

// compileTo1 makes the program from a description of ROS 2.
func (c *Compiler) compileTo1(desc *msg.Description) (*Program, error) {
	ros2 := map[string]*msg.Message{desc.Type.Name: &desc.Type}
	for i := range desc.Referenced {
		ros2[desc.Referenced[i].Name] = &desc.Referenced[i]
	}
	name := NameROS1(desc.Type.Name)
	d := &msg.ROS1Definition{Name: name, Messages: map[string]*msg.ROS1Message{}}
	if err := derive1(d, desc.Type.Name, ros2); err != nil {
		return nil, err
	}
	pair := newPairing(false, d, desc)
	out, err := pair.message(name, desc.Type.Name, "")
	if err != nil {
		return nil, err
	}
	return &Program{Type: name, Hash: d.MD5(), Encoding: msg.ROS1Encoding, Definition: d.Text(), Format: FormatROS1, from: desc.Type.Name, ops: out.ops}, nil
}

const maxDepth = 60

// message compiles the steps for a pair of types. path is where they stand, for errors.
func (p *pairing) message(name1, name2, path string) (compiled, error) {
	if p.depth++; p.depth > maxDepth {
		return compiled{}, errors.New("types are nested too deep")
	}
	defer func() { p.depth-- }()
	switch name2 {
	case timeROS2:
		return compiled{[]op{{kind: opTime, field: path, n: 1}}, 8}, nil
	case spanROS2:
		return compiled{[]op{{kind: opSpan, field: path, n: 1}}, 8}, nil
	case logROS2:
		if name1 == logROS1 {
			return p.log()
		}
	}
	m1, m2 := p.ros1[name1], p.ros2[name2]
	if m1 == nil || m2 == nil {
		return compiled{}, fmt.Errorf("%s or %s is not defined", name1, name2)
	}
	var out compiled
	at := 0 // in the fields of ROS 1
	for i := range m2.Fields {
		f2 := &m2.Fields[i]
		where := join(path, f2.Name)
		j := fieldNamed(m1, f2.Name)
		if j < 0 {
			if err := p.added(&out, f2.Type, f2.Default, where); err != nil {
				return out, err
			}
			continue
		}
		for ; at < j; at++ {
			if err := p.removed(&out, name1, m2, &m1.Fields[at]); err != nil {
				return out, err
			}
		}
		if err := p.field(&out, &m1.Fields[j], &f2.Type, where); err != nil {
			return out, err
		}
		at = j + 1
	}
	for ; at < len(m1.Fields); at++ {
		if err := p.removed(&out, name1, m2, &m1.Fields[at]); err != nil {
			return out, err
		}
	}
	if len(m2.Fields) == 0 {
		out.ops = append(out.ops, op{kind: opDummy, field: path})
		if !p.to2 {
			out.least++
		}
	}
	return out, nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// fieldNamed returns the place of a field by its name in ROS 2, -1 if there is none.
func fieldNamed(m *msg.ROS1Message, name string) int {
	for i := range m.Fields {
		if strings.ToLower(m.Fields[i].Name) == name {
			return i
		}
	}
	for i := range m.Fields {
		if strings.EqualFold(m.Fields[i].Name, name) {
			return i
		}
	}
	return -1
}

// removed handles a field that only ROS 1 has.
func (p *pairing) removed(out *compiled, name1 string, m2 *msg.Message, f *msg.ROS1Field) error {
	for i := range m2.Fields {
		if strings.EqualFold(m2.Fields[i].Name, f.Name) {
			return fmt.Errorf("field %s of %s comes in another order in ROS 2", f.Name, name1)
		}
	}
	if name1 == headerROS1 && m2.Name == headerROS2 && f.Name == "seq" && f.Type == "uint32" && f.Array == msg.Single {
		out.ops = append(out.ops, op{kind: opHeaderSeq, field: f.Name})
		if p.to2 {
			out.least += 4
		}
		return nil
	}
	return fmt.Errorf("ROS 2's %s has no field %s, which ROS 1's %s has", m2.Name, f.Name, name1)
}

// log pairs the log messages: their header became a stamp, and the list of topics is gone.
func (p *pairing) log() (compiled, error) {
	want1 := "std_msgs/Header header byte level string name string msg string file string function uint32 line string[] topics "
	have1, m1 := "", p.ros1[logROS1]
	for i := range m1.Fields {
		f := &m1.Fields[i]
		have1 += f.Type + map[msg.Array]string{msg.Unbounded: "[]", msg.Fixed: "[n]"}[f.Array] + " " + f.Name + " "
	}
	if have1 != want1 {
		return compiled{}, fmt.Errorf("ROS 1's %s is not the usual one", logROS1)
	}
	out := compiled{ops: []op{{kind: opHeaderSeq, field: "header.seq"}, {kind: opTime, field: "stamp", n: 1}, {kind: opNoString, field: "header.frame_id"},
		{kind: opLevel, field: "level"}}, least: 13}
	for _, name := range []string{"name", "msg", "file", "function"} {
		out.ops = append(out.ops, op{kind: opString, field: name, n: 1})
		out.least += 4
	}
	out.ops = append(out.ops, copyOp("line", 4, 1), op{kind: opNoStrings, field: "topics"})
	return out, nil
}

func copyOp(field string, size, n int) op {
	return op{kind: opCopy, field: field, align: size, size: size * n, parts: []part{{size, n}}}
}

// field pairs two fields of one name.
func (p *pairing) field(out *compiled, f1 *msg.ROS1Field, t2 *msg.Type, where string) error {
	if err := sameShape(f1, t2); err != nil {
		return fmt.Errorf("field %s: %w", where, err)
	}
	o := op{field: where, n: 1, align: 4}
	if t2.Array == msg.Fixed {
		o.n = int(t2.Capacity)
	}
	seq := t2.Array == msg.Bounded || t2.Array == msg.Unbounded
	if t2.Array == msg.Bounded {
		o.bound = int(t2.Capacity)
	}
	var element int // bytes in what is read, at least
	kinds := func(single, sequence kind) {
		if o.kind = single; seq {
			o.kind = sequence
		}
	}
	switch {
	case t2.Base == msg.Nested && f1.Type != "time" && f1.Type != "duration":
		key := f1.Type + " " + t2.Name
		sub, ok := p.cache[key]
		if !ok {
			var err error
			if sub, err = p.message(f1.Type, t2.Name, where); err != nil {
				return err
			}
			p.cache[key] = sub
		}
		if !seq && o.n == 1 {
			for _, s := range sub.ops {
				out.ops = appendOp(out.ops, s)
			}
			out.least += sub.least
			return nil
		}
		kinds(opMessages, opSeqMessages)
		o.sub, element = sub.ops, sub.least
	case f1.Type == "time":
		kinds(opTime, opSeqTime)
		element = 8
	case f1.Type == "duration":
		kinds(opSpan, opSeqSpan)
		element = 8
	case f1.Type == "string":
		kinds(opString, opSeqString)
		element = 4
		if t2.Base == msg.BoundedString && !seq {
			o.bound = int(t2.StringCapacity)
		} else if t2.Base == msg.BoundedString {
			return fmt.Errorf("field %s: a sequence of strings of bounded length is not supported", where)
		}
	case f1.Type == "bool":
		kinds(opBool, opSeqBool)
		element = 1
	default:
		size, _ := msg.ROS1Size(f1.Type)
		element = size
		o.align, o.parts = size, []part{{size, o.n}}
		if o.kind, o.size = opCopy, size*o.n; seq {
			o.kind, o.size = opSeq, size
		}
	}
	if seq {
		o.least = element
		out.least += 4
	} else {
		if o.n > 0 && element > math.MaxInt32/o.n {
			return fmt.Errorf("field %s is too large", where)
		}
		out.least += element * o.n
	}
	out.ops = appendOp(out.ops, o)
	return nil
}

// sameShape says in what two fields of one name differ, if they cannot be turned into each other.
func sameShape(f1 *msg.ROS1Field, t2 *msg.Type) error {
	single := func(a msg.Array) bool { return a == msg.Single }
	if single(f1.Array) != single(t2.Array) || (f1.Array == msg.Fixed) != (t2.Array == msg.Fixed) || f1.Array == msg.Fixed && f1.Capacity != t2.Capacity {
		return errors.New("it is an array of another kind in ROS 2")
	}
	var ok bool
	switch f1.Type {
	case "time":
		ok = t2.Base == msg.Nested && t2.Name == timeROS2
	case "duration":
		ok = t2.Base == msg.Nested && t2.Name == spanROS2
	case "char":
		ok = t2.Base == msg.UInt8 || t2.Base == msg.Char || t2.Base == msg.Byte
	case "byte":
		ok = t2.Base == msg.Byte || t2.Base == msg.UInt8
	case "uint8":
		ok = t2.Base == msg.UInt8 || t2.Base == msg.Char || t2.Base == msg.Byte
	case "string":
		ok = t2.Base == msg.String || t2.Base == msg.BoundedString
	default:
		if f1.Nested {
			ok = t2.Base == msg.Nested && (NameROS2(f1.Type) == t2.Name || NameROS1(t2.Name) == f1.Type)
		} else {
			ok = names1[t2.Base] == f1.Type
		}
	}
	if !ok {
		name := names1[t2.Base]
		if t2.Base == msg.Nested {
			name = t2.Name
		}
		return fmt.Errorf("it is %s in ROS 1 and %s in ROS 2", f1.Type, name)
	}
	return nil
}
