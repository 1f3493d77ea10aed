package msg

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Served is what a node tells about one of its types by the service get_type_description.
type Served struct {
	Type     string // "std_msgs/msg/String"
	Encoding string // of Text: "msg", "srv", "action" or "idl"; with others there is none ("implicit", "dynamic")
	Text     string // the file, as the node has it
	Fields   string // a .msg file of the fields in the type's description, see Message.Text; "" unknown
}

// DefineServed reads the definition of typeName from what a node serves; Define says what hash does.
//
// The files that nodes built by rosidl_generator_c serve are not those that they were built from: each line is as Python
// prints its bytes (a tab is "\t", "°" is "\xc2\xb0"), the newline at the end is missing, and a file that has become
// longer by this is cut off at its old length. So texts are turned back where they look like that, and a file that does
// not have the fields of the type's description is replaced by one of these, without constants and comments.
func DefineServed(typeName, hash string, files []Served) (Definition, error) {
	plain := plainFiles(files)
	def, err := Define(typeName, hash, served(plain))
	if err != nil && !slices.Equal(plain, files) {
		if def, asIs := Define(typeName, hash, served(files)); asIs == nil {
			return def, nil
		}
	}
	return def, err
}

// plainFiles turns compiled texts back. If one of them was not compiled none was, and the files are returned as they are.
func plainFiles(files []Served) []Served {
	out := slices.Clone(files)
	for i := range out {
		if !out[i].isFile() {
			continue
		}
		text, ok := uncompiled(out[i].Text)
		if !ok {
			return files
		}
		out[i].Text = text
	}
	return out
}

func (s Served) isFile() bool {
	switch s.Encoding {
	case "msg", "srv", "action", "idl":
		return true
	}
	return false
}

// uncompiled undoes what rosidl_generator_c does to a text: the escapes of Python's bytes literals. ok is false for a text
// that it cannot have made.
func uncompiled(text string) (plain string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\n' && (c < ' ' || c > '~') {
			return "", false
		}
		if c != '\\' {
			b.WriteByte(c)
			continue
		}
		if i++; i == len(text) { // cut off within an escape
			break
		}
		switch text[i] {
		case '\\', '\'':
			b.WriteByte(text[i])
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'x':
			if len(text)-i < 3 {
				return b.String(), true
			}
			v, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
			if err != nil {
				return "", false
			}
			b.WriteByte(byte(v))
			i += 2
		default:
			return "", false
		}
	}
	return b.String(), true
}

// served is a Source of the files; those that disagree with what is known of their fields are replaced by that.
func served(files []Served) Source {
	fields := map[string]string{} // by type
	for _, s := range files {
		if s.Fields != "" {
			fields[s.Type] = s.Fields
		}
	}
	texts := map[string][]byte{} // by file name
	for _, s := range files {
		if s.isFile() && agrees(s, fields) {
			texts[s.Type+"."+s.Encoding] = []byte(s.Text)
		}
	}
	return func(name string) ([]byte, error) {
		if text, ok := texts[name]; ok {
			return text, nil
		}
		typ, ext, _ := strings.Cut(name, ".")
		if texts[typ+".idl"] == nil {
			if text, ok := fromFields(typ, ext, fields); ok {
				return []byte(text), nil
			}
		}
		return nil, fmt.Errorf("%s: not among what is served: %w", name, fs.ErrNotExist)
	}
}

// parts are the types that a service or action file is made of, by their ends.
var parts = map[string][]string{"msg": {""}, "srv": {"_Request", "_Response"}, "action": {"_Goal", "_Result", "_Feedback"}}

// agrees says whether a file has the fields that are known of its types; it does where nothing is known.
func agrees(s Served, fields map[string]string) bool {
	n, err := splitName(s.Type)
	if err != nil {
		return false
	}
	var f *File
	for _, part := range parts[n.folder] {
		text, ok := fields[s.Type+part]
		if !ok {
			continue
		}
		known, err := Parse(n.pkg+"/msg/"+n.name+".msg", []byte(text))
		if err != nil {
			continue
		}
		if f == nil {
			if f, err = Parse(s.Type+"."+s.Encoding, []byte(s.Text)); err != nil {
				return false
			}
		}
		m := f.Message(s.Type + part)
		if m == nil || !slices.EqualFunc(m.WireFields(), known.Messages[0].WireFields(), func(a, b Field) bool {
			return a.Name == b.Name && a.Type == b.Type
		}) {
			return false
		}
	}
	return true
}

// WireFields are the fields as they are on the wire and in the hash: a message without any has a dummy uint8, which is 0.
func (m *Message) WireFields() []Field {
	if len(m.Fields) == 0 {
		return dummyField
	}
	return m.Fields
}

// fromFields makes the plain file of a type of the descriptions of its parts. The description of a type of an action does
// not have all parts of the action; those that it does not need stay empty.
func fromFields(typ, ext string, fields map[string]string) (string, bool) {
	n, err := splitName(typ)
	if err != nil || ext != n.folder {
		return "", false
	}
	var b strings.Builder
	known := false
	for i, part := range parts[n.folder] {
		if i > 0 {
			b.WriteString("---\n")
		}
		if text, ok := fields[typ+part]; ok {
			known = true
			b.WriteString(text)
		} else {
			b.WriteString("# not described\n")
		}
	}
	return b.String(), known
}

// Text writes the fields of the message as a .msg file, without constants, defaults and comments. It begins with a
// comment that says so. An error says that a .msg file cannot express a type.
func (m *Message) Text() (string, error) {
	var b strings.Builder
	b.WriteString("# fields of the type description; constants, defaults and comments are not known\n")
	for i := range m.Fields {
		f := &m.Fields[i]
		t, err := f.Type.text()
		if err != nil {
			return "", fmt.Errorf("field %s of %s: %w", f.Name, m.Name, err)
		}
		b.WriteString(t + " " + f.Name + "\n")
	}
	return b.String(), nil
}

// text is the type as in a .msg file.
func (t Type) text() (string, error) {
	var s string
	switch t.Base {
	case Nested:
		n, err := splitName(t.Name)
		if err != nil || n.folder != "msg" {
			return "", fmt.Errorf("type %.100q is no message", t.Name)
		}
		s = n.pkg + "/" + n.name
	case BoundedString, BoundedWString:
		s = map[Base]string{BoundedString: "string", BoundedWString: "wstring"}[t.Base] + "<=" + strconv.FormatUint(t.StringCapacity, 10)
	default:
		for name, base := range rosTypes {
			if base == t.Base && name != "char" {
				s = name
			}
		}
		if s == "" {
			return "", fmt.Errorf("type %d is in .idl files only", t.Base)
		}
	}
	switch t.Array {
	case Fixed:
		s += "[" + strconv.FormatUint(t.Capacity, 10) + "]"
	case Bounded:
		s += "[<=" + strconv.FormatUint(t.Capacity, 10) + "]"
	case Unbounded:
		s += "[]"
	}
	return s, nil
}

// TypeOf is the type with an id of type_description_interfaces/msg/FieldType.
func TypeOf(id uint8, capacity, stringCapacity uint64, nested string) (Type, error) {
	t := Type{Base: Base(id % 48), Array: Array(id / 48), Capacity: capacity, StringCapacity: stringCapacity, Name: nested}
	if t.Base == 0 || t.Base > BoundedWString || t.Array > Unbounded || (t.Base == Nested) != (nested != "") {
		return Type{}, fmt.Errorf("type id %d with nested type %.100q: there is no such type", id, nested)
	}
	return t, nil
}
