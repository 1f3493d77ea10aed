package msg

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
)

// Source returns the bytes of an interface file by its name below share/, such as "std_msgs/msg/Header.msg". A file
// that is not there is an error that wraps fs.ErrNotExist. Names are always made of identifiers; bytes are not changed
// or kept.
type Source func(name string) ([]byte, error)

// FromFS is a Source that reads files of a file system.
func FromFS(fsys fs.FS) Source {
	return func(name string) ([]byte, error) { return fs.ReadFile(fsys, name) }
}

// Description is a type and all types it refers to, as in type_description_interfaces/msg/TypeDescription.
type Description struct {
	Type       Message
	Referenced []Message // by name, without Type itself
}

// Describe reads typeName and all types it refers to from src, .msg before .idl.
func Describe(typeName string, src Source) (Description, error) {
	n, err := splitName(typeName)
	if err != nil {
		return Description{}, err
	}
	var d Description
	files := map[fullName]*File{}
	todo, seen, fields := []string{n.String()}, map[string]bool{n.String(): true}, 0
	for len(todo) > 0 {
		m, err := load(todo[len(todo)-1], src, files)
		if err != nil {
			return Description{}, fmt.Errorf("describe %s: %w", typeName, err)
		}
		todo = todo[:len(todo)-1]
		if len(seen) > maxTypes {
			return Description{}, fmt.Errorf("describe %s: it refers to more than %d types", typeName, maxTypes)
		}
		if fields += len(m.Fields); fields > maxFields {
			return Description{}, fmt.Errorf("describe %s: it has more than %d fields", typeName, maxFields)
		}
		for i := range m.Fields {
			if name := m.Fields[i].Type.Name; name != "" && !seen[name] {
				seen[name] = true
				todo = append(todo, name)
			}
		}
		if d.Type.Name == "" {
			d.Type = *m
			continue
		}
		d.Referenced = append(d.Referenced, *m)
	}
	slices.SortFunc(d.Referenced, func(a, b Message) int { return cmp.Compare(a.Name, b.Name) })
	return d, nil
}

// load returns the message of that name from the file that declares it.
func load(name string, src Source, files map[fullName]*File) (*Message, error) {
	n, err := splitName(name)
	if err != nil {
		return nil, err
	}
	of := n.file()
	f := files[of]
	if f == nil {
		if f, err = parseFirst(of, src); err != nil {
			return nil, err
		}
		files[of] = f
	}
	if m := f.Message(name); m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("%s does not declare %s", f.Name, name)
}

// parseFirst parses the .msg, .srv or .action file of n, or its .idl if there is none.
func parseFirst(n fullName, src Source) (*File, error) {
	for _, ext := range []string{n.extension(), ".idl"} {
		if ext == "" {
			continue
		}
		data, err := src(n.String() + ext)
		if err == nil {
			return Parse(n.String()+ext, data)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, &missingError{n}
}

// missingError names the interface that was not found. It wraps fs.ErrNotExist.
type missingError struct{ name fullName }

func (e *missingError) Error() string {
	if ext := e.name.extension(); ext != "" {
		return fmt.Sprintf("no %v%s and no .idl", e.name, ext)
	}
	return fmt.Sprintf("no %v.idl", e.name)
}

func (e *missingError) Unwrap() error { return fs.ErrNotExist }

// HashPrefix begins every hash of this version of the algorithm; 64 lower-case hexadecimal digits follow.
const HashPrefix = "RIHS01_"

// Hash returns the RIHS01 hash of the description: HashPrefix and the SHA-256 of its JSON (REP 2016).
func (d *Description) Hash() string {
	h := sha256.New()
	_ = d.WriteJSON(h) // a hash takes every write
	return HashPrefix + hex.EncodeToString(h.Sum(nil))
}

// WriteJSON writes the text that is hashed: keys in this order, separators ", " and ": ", default values and constants
// left out, no newline.
func (d *Description) WriteJSON(w io.Writer) error {
	b := append([]byte(nil), `{"type_description": `...)
	b = appendMessage(b, &d.Type)
	b = append(b, `, "referenced_type_descriptions": [`...)
	for i := range d.Referenced {
		if i > 0 {
			b = append(b, ", "...)
		}
		if b = appendMessage(b, &d.Referenced[i]); len(b) > 32<<10 {
			if _, err := w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	_, err := w.Write(append(b, "]}"...))
	return err
}

// dummyField is what a message without fields has on the wire.
var dummyField = []Field{{Name: "structure_needs_at_least_one_member", Type: Type{Base: UInt8}}}

func appendMessage(b []byte, m *Message) []byte {
	b = append(b, `{"type_name": `...)
	b = strconv.AppendQuoteToASCII(b, m.Name)
	b = append(b, `, "fields": [`...)
	fields := m.Fields
	if len(fields) == 0 {
		fields = dummyField
	}
	for i := range fields {
		if i > 0 {
			b = append(b, ", "...)
		}
		t := fields[i].Type
		b = append(b, `{"name": `...)
		b = strconv.AppendQuoteToASCII(b, fields[i].Name)
		b = append(b, `, "type": {"type_id": `...)
		b = strconv.AppendInt(b, int64(t.ID()), 10)
		b = append(b, `, "capacity": `...)
		b = strconv.AppendUint(b, t.Capacity, 10)
		b = append(b, `, "string_capacity": `...)
		b = strconv.AppendUint(b, t.StringCapacity, 10)
		b = append(b, `, "nested_type_name": `...)
		b = strconv.AppendQuoteToASCII(b, t.Name)
		b = append(b, `}}`...)
	}
	return append(b, "]}"...)
}
