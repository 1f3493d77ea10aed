package msg

import (
	"fmt"
	"strconv"
	"strings"
)

var rosTypes = map[string]Base{
	"bool": Bool, "byte": Byte, "char": UInt8, "int8": Int8, "uint8": UInt8, "int16": Int16, "uint16": UInt16,
	"int32": Int32, "uint32": UInt32, "int64": Int64, "uint64": UInt64, "float32": Float, "float64": Double,
	"string": String, "wstring": WString,
}

// parseROS reads a .msg, .srv or .action file: lines of "type name [default]" or "TYPE NAME=value", # begins a comment,
// --- separates the two parts of a service and the three of an action.
func (f *File) parseROS(n fullName, text string) error {
	parts := []Message{{}}
	line := 0
	for l := range strings.Lines(text) {
		line++
		l, _, _ = strings.Cut(l, "#")
		l = strings.TrimSpace(l)
		switch l {
		case "":
			continue
		case "---":
			parts = append(parts, Message{})
			if len(parts) > 3 {
				return lineError(line, "more separators --- than an action has")
			}
			continue
		}
		if err := parts[len(parts)-1].parseLine(l, n.pkg); err != nil {
			return &ParseError{Line: line, Err: err}
		}
	}
	want := map[string]int{"msg": 1, "srv": 2, "action": 3}[n.folder]
	if len(parts) != want {
		return fmt.Errorf("%d separators ---, want %d in a .%s file", len(parts)-1, want-1, n.folder)
	}
	switch name := n.String(); want {
	case 1:
		parts[0].Name = name
		f.Messages = parts
	case 2:
		f.Messages = service(name, parts[0], parts[1])
	case 3:
		f.Messages = action(name, parts[0], parts[1], parts[2])
	}
	for i := range f.Messages {
		if err := f.Messages[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// parseLine adds the field or constant of one line without comment and outer blanks.
func (m *Message) parseLine(l, pkg string) error {
	end := strings.IndexAny(l, " \t")
	if end < 0 {
		return fmt.Errorf("%.100q: want a type and a name", l)
	}
	t, err := parseROSType(l[:end], pkg)
	if err != nil {
		return err
	}
	rest := strings.TrimSpace(l[end:])
	if name, value, ok := strings.Cut(rest, "="); ok && constantName(strings.TrimSpace(name)) {
		if t.Base == Nested || t.Array != Single || t.StringCapacity != 0 {
			return fmt.Errorf("constant %s: its type must be a plain primitive, not %.100s", strings.TrimSpace(name), l[:end])
		}
		m.Constants = append(m.Constants, Constant{Name: strings.TrimSpace(name), Type: t, Value: strings.TrimSpace(value)})
		return nil
	}
	name, def := rest, ""
	if i := strings.IndexAny(rest, " \t"); i >= 0 {
		name, def = rest[:i], strings.TrimSpace(rest[i:])
	}
	if !identifier(name) {
		return fmt.Errorf("field name %.100q: want letters, digits and underscores, a letter first", name)
	}
	m.Fields = append(m.Fields, Field{Name: name, Type: t, Default: def})
	return nil
}

// constantName tells whether s is an identifier without lower-case letters: that is how rosidl tells
// "int32 X=1" from a field whose default value has an equals sign.
func constantName(s string) bool { return identifier(s) && strings.ToUpper(s) == s }

// parseROSType reads the type of a field of a message in package pkg, such as "string<=10[<=3]" or "Point[4]".
func parseROSType(s, pkg string) (Type, error) {
	var t Type
	elem := s
	if inner, ok := strings.CutSuffix(s, "]"); ok {
		open := strings.LastIndexByte(inner, '[')
		if open < 0 {
			return t, fmt.Errorf("type %.100q: ] without [", s)
		}
		elem = inner[:open]
		size := inner[open+1:]
		t.Array = Fixed
		if bound, ok := strings.CutPrefix(size, "<="); ok {
			t.Array, size = Bounded, bound
		}
		if size == "" && t.Array == Fixed {
			t.Array = Unbounded
		} else {
			var err error
			if t.Capacity, err = parseCapacity(size); err != nil {
				return t, fmt.Errorf("type %.100q: array size %w", s, err)
			}
		}
	}
	if base, ok := rosTypes[elem]; ok {
		t.Base = base
		return t, nil
	}
	if kind, bound, ok := strings.Cut(elem, "<="); ok && (kind == "string" || kind == "wstring") {
		t.Base = map[string]Base{"string": BoundedString, "wstring": BoundedWString}[kind]
		var err error
		if t.StringCapacity, err = parseCapacity(bound); err != nil {
			return t, fmt.Errorf("type %.100q: string bound %w", s, err)
		}
		return t, nil
	}
	if !strings.Contains(elem, "/") {
		elem = pkg + "/" + elem
	}
	n, err := splitName(elem)
	if err != nil || n.folder != "msg" || n.name[0] >= 'a' && n.name[0] <= 'z' {
		return t, fmt.Errorf("type %.100q: neither a primitive type nor the name of a message", s)
	}
	t.Base, t.Name = Nested, n.String()
	return t, nil
}

func parseCapacity(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 || n > maxCapacity {
		return 0, fmt.Errorf("%.40q: want a number from 1 to %d", s, uint64(maxCapacity))
	}
	return n, nil
}
