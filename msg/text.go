package msg

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Text is a definition as bags keep it.
type Text struct {
	Encoding string // "ros2msg" or "ros2idl"
	Text     string // the interface file and those it refers to; empty for a message file that is empty
}

// BuildText concatenates the interface file of typeName and all files it refers to, as rosbag2 does since 2026 (jazzy
// 0.26.10, lyrical). Types derived from a service or action get its whole text. A file that is missing gives an error
// that wraps fs.ErrNotExist.
//
//   - A message is the bytes of its .msg, then for each type it refers to, depth first and sorted by name, an empty
//     line, 80 times "=", "MSG: package/Type" and the bytes of that .msg.
//   - If any .msg is missing it is made of .idl files alone, the first one with a separator too.
//   - A service or action has a separator before the root too; a type it refers to that is missing as .msg is tried as
//     .idl for itself.
//
// rosbag2 before lyrical has no text for actions. rosbag2 takes a plain wstring for the name of a message, finds none,
// and uses the .idl files. That is done here too, but where there are no .idl files the .msg files are used all the same.
func BuildText(typeName string, src Source) (Text, error) {
	n, err := splitName(typeName)
	if err != nil {
		return Text{}, err
	}
	n = n.file()
	attempts := []func(*textBuilder) (string, error){
		func(t *textBuilder) (string, error) { return t.message(typeName) },
		func(t *textBuilder) (string, error) { return t.idl(typeName) },
		func(t *textBuilder) (string, error) { t.wstring = true; return t.message(typeName) },
	}
	if n.folder != "msg" {
		attempts = []func(*textBuilder) (string, error){
			func(t *textBuilder) (string, error) { return t.service(n) },
			func(t *textBuilder) (string, error) { t.wstring = true; return t.service(n) },
			func(t *textBuilder) (string, error) { return t.idl(n.String()) },
		}
	}
	var first error
	for _, attempt := range attempts {
		t := textBuilder{src: src, seen: map[textPart]bool{}}
		encoding, err := attempt(&t)
		if err == nil {
			return Text{Encoding: encoding, Text: t.b.String()}, nil
		}
		if first == nil {
			first = err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			first = err
			break
		}
	}
	return Text{}, fmt.Errorf("definition text of %s: %w", typeName, first)
}

const (
	encodingMsg = "ros2msg"
	encodingIDL = "ros2idl"
)

var textSeparator = strings.Repeat("=", 80) + "\n"

// textPart is what a separator line names: "MSG" and "std_msgs/Header".
type textPart struct{ kind, name string }

type textBuilder struct {
	src     Source
	seen    map[textPart]bool
	wstring bool // wstring is a primitive type
	size    int  // bytes of all files read
	b       strings.Builder
}

func (t *textBuilder) message(name string) (string, error) {
	s, err := t.withReferences(textPart{"MSG", name}, maxDepth)
	t.b.WriteString(s)
	return encodingMsg, err
}

func (t *textBuilder) idl(name string) (string, error) {
	p := textPart{"IDL", name}
	s, err := t.withReferences(p, maxDepth)
	t.b.WriteString(p.separator() + s)
	return encodingIDL, err
}

// service builds the text of a service or action. Its encoding is that of the last reference.
func (t *textBuilder) service(n fullName) (string, error) {
	root := textPart{strings.ToUpper(n.folder), n.String()}
	data, err := t.read(n, n.extension())
	if err != nil {
		return "", err
	}
	t.b.WriteString(root.separator())
	t.b.WriteString(data)
	encoding := encodingMsg
	for _, name := range references(data, n, false) {
		for _, p := range []textPart{{"MSG", name}, {"IDL", name}} {
			if t.skip(p) {
				break
			}
			t.b.WriteString("\n" + p.separator())
			var s string
			if s, err = t.withReferences(p, maxDepth); err == nil {
				t.b.WriteString(s)
				encoding = map[string]string{"MSG": encodingMsg, "IDL": encodingIDL}[p.kind]
				break
			}
			if p.kind == "IDL" || !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
			// The separator of the failed .msg stays, as in rosbag2.
		}
	}
	return encoding, nil
}

func (p textPart) separator() string { return textSeparator + p.kind + ": " + p.name + "\n" }

// skip tells whether p is there already, and marks it.
func (t *textBuilder) skip(p textPart) bool {
	if t.seen[p] || t.wstring && strings.HasSuffix(p.name, "/wstring") {
		return true
	}
	t.seen[p] = true
	return false
}

// withReferences returns the file of p and those it refers to that were not seen before.
func (t *textBuilder) withReferences(p textPart, depth int) (string, error) {
	if depth == 0 {
		return "", fmt.Errorf("%s: types nested deeper than %d", p.name, maxDepth)
	}
	if len(t.seen) > maxTypes {
		return "", fmt.Errorf("%s: more than %d types", p.name, maxTypes)
	}
	n, err := splitName(p.name)
	if err != nil {
		return "", err
	}
	data, err := t.read(n, "."+strings.ToLower(p.kind))
	if err != nil {
		return "", err
	}
	s := data
	for _, name := range references(data, n, p.kind == "IDL") {
		ref := textPart{p.kind, name}
		if t.skip(ref) {
			continue
		}
		inner, err := t.withReferences(ref, depth-1)
		if err != nil {
			return "", err
		}
		s += "\n" + ref.separator() + inner
	}
	return s, nil
}

func (t *textBuilder) read(n fullName, ext string) (string, error) {
	if ext != "" {
		data, err := t.src(n.String() + ext)
		if t.size += len(data); t.size > maxText {
			return "", fmt.Errorf("%v: text larger than %d bytes", n, maxText)
		}
		if err == nil {
			return string(data), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", &missingError{n}
}

// references returns the names that a file of type n refers to as rosbag2 sees them, sorted, each once.
func references(data string, n fullName, idl bool) []string {
	var names []string
	for l := range strings.Lines(data) {
		if idl {
			if path, ok := includePath(l); ok {
				if name, ok := strings.CutSuffix(path, ".idl"); ok {
					names = append(names, completeInclude(name, n))
				}
			}
		} else if name, ok := fieldType(l); ok {
			if !strings.Contains(name, "/") {
				name = n.pkg + "/" + name
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// completeInclude puts the folder of the including file before a path without folders.
func completeInclude(name string, n fullName) string {
	if strings.Contains(name, "/") {
		return name
	}
	return n.pkg + "/" + n.folder + "/" + name
}

// rosbag2 does not count wstring among the primitive types.
var textPrimitives = map[string]bool{
	"bool": true, "byte": true, "char": true, "float32": true, "float64": true, "int8": true, "uint8": true, "int16": true,
	"uint16": true, "int32": true, "uint32": true, "int64": true, "uint64": true, "string": true,
}

// fieldType returns the type that a line of a .msg or .srv begins with, array brackets left off, unless it is
// primitive. White space must follow: "string<=8 x", comments and separators have no type.
func fieldType(l string) (string, bool) {
	l = strings.TrimLeft(l, " \t\r\v\f\n")
	end := 0
	for end < len(l) && (nameByte(l[end]) || l[end] == '/') {
		end++
	}
	name, rest := l[:end], l[end:]
	if size, ok := strings.CutPrefix(rest, "["); ok {
		closing := strings.IndexByte(size, ']')
		if closing < 0 {
			return "", false
		}
		rest = size[closing+1:]
	}
	if name == "" || rest == "" || !strings.ContainsRune(" \t\r\v\f\n", rune(rest[0])) || textPrimitives[name] {
		return "", false
	}
	return name, true
}
