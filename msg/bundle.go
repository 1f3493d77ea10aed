package msg

import (
	"fmt"
	"io/fs"
	"strings"
)

// DescribeText reads the description of typeName from a definition text as bags keep it (see BuildText): plugin
// Definition's encoding and text. What rosidl adds to services and actions by itself is in no text and comes from the
// built-in table.
func DescribeText(typeName, encoding, text string) (Description, error) {
	src, err := TextSource(typeName, encoding, text)
	if err != nil {
		return Description{}, err
	}
	return Describe(typeName, src)
}

// TextSource is a Source of the interface files that a definition text of typeName is made of.
func TextSource(typeName, encoding, text string) (Source, error) {
	n, err := splitName(typeName)
	if err != nil {
		return nil, err
	}
	switch encoding {
	case encodingMsg, encodingIDL:
	case "", "unknown": // rosbag2 of 2024 says so of a service without references, whose text is there all the same
		if text == "" {
			return nil, fmt.Errorf("definition text of %s: there is none: %w", typeName, fs.ErrNotExist)
		}
	default:
		return nil, fmt.Errorf("definition text of %s: encoding %.40q: want %s or %s", typeName, encoding, encodingMsg, encodingIDL)
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("definition text of %s: %d bytes, more than the limit of %d", typeName, len(text), maxText)
	}
	files := map[string]string{}
	root := n.file()
	name := root.String() + root.extension() // of the part that is being read
	if encoding == encodingIDL {
		name = root.String() + ".idl"
	}
	for first := true; name != ""; first = false {
		part, next, rest := cutText(text)
		_, known := files[name]
		if !known && !(first && part == "" && next != "") { // some texts begin with a separator
			files[name] = part
		}
		if len(files) > maxTypes {
			return nil, fmt.Errorf("definition text of %s: more than %d parts", typeName, maxTypes)
		}
		text, name = rest, ""
		if next != "" {
			if name, err = partFile(next); err != nil {
				return nil, fmt.Errorf("definition text of %s: %w", typeName, err)
			}
		}
	}
	return func(name string) ([]byte, error) {
		s, ok := files[name]
		if base, isMsg := strings.CutSuffix(name, ".msg"); ok && isMsg && strings.TrimSpace(s) == "" {
			// rosbag2 leaves the separator of a .msg that it did not find, and goes on with that of the .idl.
			_, idl := files[base+".idl"]
			ok = !idl
		}
		if ok {
			return []byte(s), nil
		}
		for _, pkg := range impliedPackages {
			if strings.HasPrefix(name, pkg+"/") {
				return tables.ReadFile("interfaces/jazzy/" + name)
			}
		}
		return nil, fmt.Errorf("%s: not in the definition text: %w", name, fs.ErrNotExist)
	}, nil
}

// impliedPackages are those of types that services and actions have beside what their files say.
var impliedPackages = []string{"service_msgs", "builtin_interfaces", "unique_identifier_msgs"}

// cutText returns what is before the first separator line, what the line below it says, and the rest.
func cutText(text string) (part, next, rest string) {
	for pos := 0; ; {
		i := strings.Index(text[pos:], textSeparator)
		if i < 0 {
			return text, "", ""
		}
		i += pos
		head, tail, _ := strings.Cut(text[i+len(textSeparator):], "\n")
		if (i == 0 || text[i-1] == '\n') && partKind(head) != "" {
			return text[:i], strings.TrimSpace(head), tail
		}
		pos = i + 1
	}
}

// partKind is the kind that a line below a separator names, "" if it names none.
func partKind(line string) string {
	kind, _, _ := strings.Cut(line, ": ")
	switch kind {
	case "MSG", "IDL", "SRV", "ACTION":
		return kind
	}
	return ""
}

// partFile is the file name for a line such as "MSG: std_msgs/Header".
func partFile(line string) (string, error) {
	kind, name, _ := strings.Cut(line, ": ")
	n, err := splitName(strings.TrimSpace(name))
	if err != nil {
		return "", err
	}
	return n.String() + "." + strings.ToLower(kind), nil
}

// Describe returns the description of a type of a bag or a publisher: that of its definition text, if there is one that
// has the hash or no hash is known; else what Find finds; else that of the text all the same, since a text beside the
// payloads is nearer to them than nothing. An empty text may be that of an empty message, or stand for none.
func (f *Finder) Describe(typeName, hash, encoding, text string) (Description, error) {
	d, err := DescribeText(typeName, encoding, text)
	if err == nil && (hash == "" && text != "" || hash != "" && d.Hash() == hash) {
		return d, nil
	}
	found, findErr := f.Find(typeName, hash)
	if findErr == nil {
		return DescribeText(typeName, found.Encoding, found.Text)
	}
	if err == nil {
		return d, nil
	}
	if text != "" {
		return d, err
	}
	return d, findErr
}
