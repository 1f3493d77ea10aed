package msg

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ROS1Encoding names definition texts of ROS 1, as bags and MCAP files do.
const ROS1Encoding = "ros1msg"

// ROS1Field is a member of a message of ROS 1.
type ROS1Field struct {
	Name     string
	Type     string // a built-in type ("uint8", "string", "time", …) or the full name of a message, "geometry_msgs/Point"
	Nested   bool   // Type is a message
	Array    Array  // Single, Fixed or Unbounded
	Capacity uint64 // elements of a fixed array
}

// ROS1Constant is a named value of a message of ROS 1.
type ROS1Constant struct{ Type, Name, Value string }

// ROS1Message is one message type of ROS 1.
type ROS1Message struct {
	Name      string // "sensor_msgs/Imu"
	Fields    []ROS1Field
	Constants []ROS1Constant
}

// ROS1Definition is a message type of ROS 1 and all it refers to.
type ROS1Definition struct {
	Name     string
	Messages map[string]*ROS1Message // by full name
}

// ros1Sizes are the built-in types with their size on the wire; 0 is a string.
var ros1Sizes = map[string]int{"bool": 1, "int8": 1, "uint8": 1, "byte": 1, "char": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
	"float32": 4, "int64": 8, "uint64": 8, "float64": 8, "string": 0, "time": 8, "duration": 8}

// ROS1Size returns the size of a built-in type of ROS 1 on the wire, 0 for string; ok is false for any other name.
func ROS1Size(typ string) (size int, ok bool) {
	size, ok = ros1Sizes[typ]
	return size, ok
}

// ParseROS1 reads the definition text of a message type as TCPROS publishers send it and bags keep it: the .msg file, and
// behind lines of 80 "=" and "MSG: package/Type" those of the types it refers to. Every type must be there, and none may
// contain itself.
func ParseROS1(name, text string) (*ROS1Definition, error) {
	d, err := parseROS1(name, text)
	if err != nil {
		return nil, fmt.Errorf("definition of %.100s: %w", name, err)
	}
	return d, nil
}

func parseROS1(name, text string) (*ROS1Definition, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("%d bytes, more than the limit of %d", len(text), maxText)
	}
	texts := map[string]string{}
	part, begin, pos := name, 0, 0
	for pos <= len(text) {
		line, rest, more := strings.Cut(text[pos:], "\n")
		next := pos + len(line) + 1
		if l := strings.TrimRight(line, "\r "); len(l) >= 80 && strings.Trim(l, "=") == "" {
			keepFirst(texts, part, text[begin:pos])
			head, _, _ := strings.Cut(rest, "\n")
			typ, ok := strings.CutPrefix(strings.TrimSpace(head), "MSG:")
			if !ok {
				return nil, fmt.Errorf("%.60q behind a separator, want MSG: and a type", head)
			}
			part = strings.TrimSpace(typ)
			next += len(head) + 1
			begin = min(next, len(text))
			if len(texts) > maxTypes {
				return nil, fmt.Errorf("more than %d types", maxTypes)
			}
		}
		if !more {
			break
		}
		pos = next
	}
	keepFirst(texts, part, text[begin:])
	d := &ROS1Definition{Name: name, Messages: map[string]*ROS1Message{}}
	return d, d.add(name, texts, 0)
}

func keepFirst(texts map[string]string, name, text string) {
	if _, ok := texts[name]; !ok {
		texts[name] = text
	}
}

// add parses a type and all that it refers to.
func (d *ROS1Definition) add(name string, texts map[string]string, depth int) error {
	if m, ok := d.Messages[name]; ok {
		if m == nil {
			return fmt.Errorf("%s contains itself", name)
		}
		return nil
	}
	text, ok := texts[name]
	if !ok {
		return fmt.Errorf("%.100s is referred to and not defined", name)
	}
	if depth > maxDepth {
		return fmt.Errorf("types are nested more than %d deep", maxDepth)
	}
	d.Messages[name] = nil
	m, err := parseROS1Message(name, text)
	if err != nil {
		return err
	}
	for i := range m.Fields {
		if m.Fields[i].Nested {
			if err := d.add(m.Fields[i].Type, texts, depth+1); err != nil {
				return err
			}
		}
	}
	d.Messages[name] = m
	return nil
}

// parseROS1Message reads one .msg file of ROS 1.
func parseROS1Message(name, text string) (*ROS1Message, error) {
	pkg, short, ok := strings.Cut(name, "/")
	if !ok || !identifier(pkg) || !identifier(short) {
		return nil, fmt.Errorf("type name %.100q: want package/Type", name)
	}
	m := &ROS1Message{Name: name}
	seen := map[string]bool{}
	n := 0
	for l := range strings.Lines(text) {
		n++
		l = strings.TrimSpace(l)
		if l == "" || l[0] == '#' {
			continue
		}
		fail := func(format string, args ...any) error {
			return &ParseError{File: name, Line: n, Err: fmt.Errorf(format, args...)}
		}
		end := strings.IndexAny(l, " \t")
		if end < 0 {
			return nil, fail("%.100q: want a type and a name", l)
		}
		typ, rest := l[:end], strings.TrimSpace(l[end:])
		if eq := strings.IndexByte(rest, '='); eq >= 0 && !strings.Contains(rest[:eq], "#") {
			c := ROS1Constant{Type: typ, Name: strings.TrimSpace(rest[:eq]), Value: rest[eq+1:]}
			if typ != "string" { // in a string constant # is text
				c.Value, _, _ = strings.Cut(c.Value, "#")
			}
			c.Value = strings.TrimSpace(c.Value)
			if _, builtin := ros1Sizes[typ]; !builtin || typ == "time" || typ == "duration" || !identifier(c.Name) {
				return nil, fail("%.100q: not a constant", l)
			}
			m.Constants = append(m.Constants, c)
			continue
		}
		rest, _, _ = strings.Cut(rest, "#")
		f := ROS1Field{Name: strings.TrimSpace(rest)}
		if !identifier(f.Name) || seen[f.Name] {
			return nil, fail("field name %.100q: want one of letters, digits and underscores, once", f.Name)
		}
		seen[f.Name] = true
		if err := f.setType(typ, pkg); err != nil {
			return nil, fail("%w", err)
		}
		if m.Fields = append(m.Fields, f); len(m.Fields) > maxFields {
			return nil, fail("more than %d fields", maxFields)
		}
	}
	return m, nil
}

func (f *ROS1Field) setType(typ, pkg string) error {
	f.Type = typ
	if inner, ok := strings.CutSuffix(typ, "]"); ok {
		open := strings.LastIndexByte(inner, '[')
		if open < 0 {
			return fmt.Errorf("type %.100q: ] without [", typ)
		}
		f.Type, f.Array = inner[:open], Unbounded
		if size := inner[open+1:]; size != "" {
			var err error
			f.Array = Fixed
			if f.Capacity, err = parseCapacity(size); err != nil {
				return fmt.Errorf("type %.100q: array size %w", typ, err)
			}
		}
	}
	if _, builtin := ros1Sizes[f.Type]; builtin {
		return nil
	}
	f.Nested = true
	switch {
	case f.Type == "Header":
		f.Type = "std_msgs/Header"
	case !strings.Contains(f.Type, "/"):
		f.Type = pkg + "/" + f.Type
	}
	if p, t, ok := strings.Cut(f.Type, "/"); !ok || !identifier(p) || !identifier(t) {
		return fmt.Errorf("type %.100q: neither a built-in type nor package/Type", typ)
	}
	return nil
}

// Root returns the type itself.
func (d *ROS1Definition) Root() *ROS1Message { return d.Messages[d.Name] }

// MD5 returns the md5sum that ROS 1 compares to tell whether two nodes mean the same type.
func (d *ROS1Definition) MD5() string {
	sums := map[string]string{}
	var sum func(name string) string
	sum = func(name string) string {
		if s, ok := sums[name]; ok {
			return s
		}
		var lines []string
		m := d.Messages[name]
		for _, c := range m.Constants {
			lines = append(lines, c.Type+" "+c.Name+"="+c.Value)
		}
		for _, f := range m.Fields {
			if f.Nested {
				lines = append(lines, sum(f.Type)+" "+f.Name)
				continue
			}
			lines = append(lines, f.Type+f.suffix()+" "+f.Name)
		}
		h := md5.Sum([]byte(strings.Join(lines, "\n")))
		sums[name] = hex.EncodeToString(h[:])
		return sums[name]
	}
	return sum(d.Name)
}

func (f *ROS1Field) suffix() string {
	switch f.Array {
	case Unbounded:
		return "[]"
	case Fixed:
		return fmt.Sprintf("[%d]", f.Capacity)
	}
	return ""
}

// Text writes the definition as publishers send it, without comments.
func (d *ROS1Definition) Text() string {
	var b strings.Builder
	order, seen := []string{d.Name}, map[string]bool{d.Name: true}
	for i := 0; i < len(order); i++ {
		m := d.Messages[order[i]]
		if i > 0 {
			b.WriteString("\n" + textSeparator + "MSG: " + m.Name + "\n")
		}
		for _, c := range m.Constants {
			b.WriteString(c.Type + " " + c.Name + "=" + c.Value + "\n")
		}
		for _, f := range m.Fields {
			b.WriteString(f.Type + f.suffix() + " " + f.Name + "\n")
			if f.Nested && !seen[f.Type] {
				seen[f.Type] = true
				order = append(order, f.Type)
			}
		}
	}
	return b.String()
}

// BuiltinROS1 returns a type of the built-in table of ROS 1's common packages. The error wraps ErrNotFound where the
// table does not have it.
func BuiltinROS1(name string) (*ROS1Definition, error) {
	texts := map[string]string{}
	todo := []string{name}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		pkg, short, _ := strings.Cut(n, "/")
		if !identifier(pkg) || !identifier(short) {
			return nil, fmt.Errorf("%w: ROS 1 type name %.100q: want package/Type", ErrNotFound, n)
		}
		data, err := ros1Table.ReadFile("interfaces/ros1/" + n + ".msg")
		if err != nil {
			return nil, fmt.Errorf("%w: %s is not in the built-in table of ROS 1", ErrNotFound, n)
		}
		texts[n] = string(data)
		m, err := parseROS1Message(n, texts[n])
		if err != nil {
			return nil, err
		}
		for _, f := range m.Fields {
			if _, have := texts[f.Type]; f.Nested && !have && !slices.Contains(todo, f.Type) {
				todo = append(todo, f.Type)
			}
		}
	}
	d := &ROS1Definition{Name: name, Messages: map[string]*ROS1Message{}}
	if err := d.add(name, texts, 0); err != nil {
		return nil, errors.Join(ErrNotFound, err)
	}
	return d, nil
}
