package bag

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds on YAML from outside: bytes of a text, structural characters in it (each may cost a node of some 200 bytes in
// memory), and nodes visited (aliases make a small text stand for a huge tree).
const (
	maxYAMLBytes     = 16 << 20
	maxYAMLStructure = 2 << 20
	maxYAMLVisits    = 4 << 20
)

// YAMLError says what is wrong in a YAML text and where.
type YAMLError struct {
	Line int    // from 1; 0 unknown
	Key  string // path of keys, "files[2].duration.nanoseconds"; "" for the whole text
	Err  error
}

func (e *YAMLError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	return b.String() + e.Err.Error()
}

// Unwrap returns what is wrong.
func (e *YAMLError) Unwrap() error { return e.Err }

// yamlDoc is one parsed text with the budget of its visits.
type yamlDoc struct{ visits int }

// yval is a node with the path that led to it. The zero value is a missing key.
type yval struct {
	doc  *yamlDoc
	n    *yaml.Node
	path string
}

// parseYAML parses the first document of b. Any damage is an error, never a panic.
func parseYAML(b []byte) (v yval, err error) {
	if len(b) > maxYAMLBytes {
		return yval{}, &YAMLError{Err: fmt.Errorf("text of %d bytes is larger than %d", len(b), maxYAMLBytes)}
	}
	structure := 0
	for _, c := range [...]byte{':', ',', '-', '[', '{', '\n', '?'} {
		structure += bytes.Count(b, []byte{c})
	}
	if structure > maxYAMLStructure {
		return yval{}, &YAMLError{Err: fmt.Errorf("text has more than %d items", maxYAMLStructure)}
	}
	defer func() {
		if r := recover(); r != nil {
			err = &YAMLError{Err: fmt.Errorf("not YAML: %v", r)}
		}
	}()
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return yval{}, &YAMLError{Err: errors.New(strings.TrimPrefix(err.Error(), "yaml: "))}
	}
	if len(doc.Content) == 0 {
		return yval{}, &YAMLError{Err: errors.New("the text is empty")}
	}
	v = yval{&yamlDoc{maxYAMLVisits}, doc.Content[0], ""}
	return v, v.resolve()
}

func (v yval) errorf(format string, args ...any) error { return v.fault(format, args...) }

func (v yval) fault(format string, args ...any) *YAMLError {
	e := &YAMLError{Key: v.path, Err: fmt.Errorf(format, args...)}
	if v.n != nil {
		e.Line = v.n.Line
	}
	return e
}

// resolve follows aliases and counts the visit.
func (v *yval) resolve() error {
	for hops := 0; v.n != nil && v.n.Kind == yaml.AliasNode; hops++ {
		if hops == 16 {
			return v.errorf("too many aliases")
		}
		v.n = v.n.Alias
	}
	if v.doc.visits--; v.doc.visits < 0 {
		return v.errorf("too many nodes")
	}
	return nil
}

func (v yval) missing() bool { return v.n == nil }

// null says whether the value is absent, empty or ~.
func (v yval) null() bool {
	return v.n == nil || v.n.Kind == yaml.ScalarNode && v.n.Tag == "!!null"
}

// get returns the value of key in a map; a missing key gives a value whose missing is true.
func (v yval) get(key string) (yval, error) {
	sub := yval{doc: v.doc, path: joinKey(v.path, key)}
	if v.n == nil || v.n.Kind != yaml.MappingNode {
		return sub, v.errorf("a map is wanted, not %s", v.kind())
	}
	for i := 0; i+1 < len(v.n.Content); i += 2 {
		if v.n.Content[i].Value == key && v.n.Content[i].Kind == yaml.ScalarNode {
			sub.n = v.n.Content[i+1]
			return sub, sub.resolve()
		}
	}
	return sub, nil
}

// need is get for keys that must be there.
func (v yval) need(key string) (yval, error) {
	sub, err := v.get(key)
	if err == nil && sub.missing() {
		e := sub.fault("the key is missing")
		e.Line = v.n.Line
		err = e
	}
	return sub, err
}

// items returns the elements of a sequence; none for a missing or null value.
func (v yval) items() ([]yval, error) {
	if v.null() {
		return nil, nil
	}
	if v.n.Kind != yaml.SequenceNode {
		return nil, v.errorf("a list is wanted, not %s", v.kind())
	}
	out := make([]yval, 0, len(v.n.Content))
	for i, n := range v.n.Content {
		sub := yval{v.doc, n, fmt.Sprintf("%s[%d]", v.path, i)}
		if err := sub.resolve(); err != nil {
			return nil, err
		}
		out = append(out, sub)
	}
	return out, nil
}

// entry is one pair of a map.
type entry struct {
	key   string
	line  int
	value yval
}

// entries returns the pairs of a map in the order of the text; none for a missing or null value.
func (v yval) entries() ([]entry, error) {
	if v.null() {
		return nil, nil
	}
	if v.n.Kind != yaml.MappingNode {
		return nil, v.errorf("a map is wanted, not %s", v.kind())
	}
	out := make([]entry, 0, len(v.n.Content)/2)
	for i := 0; i+1 < len(v.n.Content); i += 2 {
		k := v.n.Content[i]
		if k.Kind != yaml.ScalarNode {
			return nil, v.errorf("keys must be plain text")
		}
		sub := yval{v.doc, v.n.Content[i+1], joinKey(v.path, k.Value)}
		if err := sub.resolve(); err != nil {
			return nil, err
		}
		out = append(out, entry{k.Value, k.Line, sub})
	}
	return out, nil
}

// str returns a scalar as text; "" for a missing or null value.
func (v yval) str() (string, error) {
	if v.null() {
		return "", nil
	}
	if v.n.Kind != yaml.ScalarNode {
		return "", v.errorf("text is wanted, not %s", v.kind())
	}
	return v.n.Value, nil
}

// uint returns a scalar as a whole number of at most max. Quoted numbers count, as they do for rosbag2.
func (v yval) uint(max uint64) (uint64, error) {
	if v.n == nil || v.n.Kind != yaml.ScalarNode {
		return 0, v.errorf("a number is wanted, not %s", v.kind())
	}
	u, err := strconv.ParseUint(v.n.Value, 10, 64)
	if err != nil || u > max {
		return 0, v.errorf("%q is not a whole number from 0 to %d", clip(v.n.Value), max)
	}
	return u, nil
}

// negative returns a whole number below 0.
func (v yval) negative() (int64, bool) {
	if v.n == nil || v.n.Kind != yaml.ScalarNode {
		return 0, false
	}
	n, err := strconv.ParseInt(v.n.Value, 10, 64)
	return n, err == nil && n < 0
}

func (v yval) bool() (bool, error) {
	if v.n != nil && v.n.Kind == yaml.ScalarNode {
		switch strings.ToLower(v.n.Value) {
		case "true", "yes", "on", "y":
			return true, nil
		case "false", "no", "off", "n":
			return false, nil
		}
		return false, v.errorf("%q is neither true nor false", clip(v.n.Value))
	}
	return false, v.errorf("true or false is wanted, not %s", v.kind())
}

func (v yval) kind() string {
	switch {
	case v.n == nil:
		return "nothing"
	case v.n.Kind == yaml.MappingNode:
		return "a map"
	case v.n.Kind == yaml.SequenceNode:
		return "a list"
	case v.null():
		return "nothing"
	}
	return fmt.Sprintf("%q", clip(v.n.Value))
}

func joinKey(path, key string) string {
	if path == "" {
		return clip(key)
	}
	return path + "." + clip(key)
}

// clip shortens foreign text for an error line.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
