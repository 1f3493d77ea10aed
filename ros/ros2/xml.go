package ros2

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// element is an XML element of a Cyclone DDS configuration. Names are compared without regard to case, as Cyclone DDS
// does.
type element struct {
	name     string
	attrs    []xml.Attr
	children []*element
	text     string // trimmed; of elements without children
}

func (e *element) is(name string) bool { return strings.EqualFold(e.name, name) }

func (e *element) attr(name string) string {
	for _, a := range e.attrs {
		if strings.EqualFold(a.Name.Local, name) {
			return strings.TrimSpace(a.Value)
		}
	}
	return ""
}

func (e *element) child(name string) *element {
	for _, c := range e.children {
		if c.is(name) {
			return c
		}
	}
	return nil
}

const maxElementDepth = 32

// parseElements reads XML that may have several elements side by side.
func parseElements(text string) ([]*element, error) {
	text, _, err := closeShortTags(text)
	if err != nil {
		return nil, err
	}
	root := &element{}
	stack := []*element{root}
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return root.children, nil
		}
		if err != nil {
			return nil, err
		}
		top := stack[len(stack)-1]
		switch token := token.(type) {
		case xml.StartElement:
			if len(stack) > maxElementDepth {
				return nil, fmt.Errorf("element %s: nested deeper than %d", token.Name.Local, maxElementDepth)
			}
			el := &element{name: token.Name.Local, attrs: token.Copy().Attr}
			top.children = append(top.children, el)
			stack = append(stack, el)
		case xml.EndElement:
			top.text = strings.TrimSpace(top.text)
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if len(top.children) == 0 {
				top.text += string(token)
			}
		}
	}
}

// elementEnd returns the length of the element that text begins with.
func elementEnd(text string) (int, error) {
	_, end, err := closeShortTags(text)
	if err == nil && end == 0 {
		err = fmt.Errorf("element %.40q is not closed", text)
	}
	return end, err
}

// closeShortTags replaces the closing tag </> that Cyclone DDS accepts by the name of the element that is open. end is
// the offset in text behind the first outermost element, 0 if there is none.
func closeShortTags(text string) (out string, end int, err error) {
	var b strings.Builder
	var open []string
	rest := text
	for {
		i := strings.IndexByte(rest, '<')
		if i < 0 {
			b.WriteString(rest)
			return b.String(), end, nil
		}
		b.WriteString(rest[:i])
		tag, err := tagAt(rest[i:])
		if err != nil {
			return "", 0, err
		}
		rest = rest[i+len(tag):]
		switch {
		case strings.HasPrefix(tag, "<!"), strings.HasPrefix(tag, "<?"):
		case strings.HasPrefix(tag, "</"):
			if len(open) == 0 {
				return "", 0, fmt.Errorf("%.40s closes nothing", tag)
			}
			if tag == "</>" {
				tag = "</" + open[len(open)-1] + ">"
			}
			open = open[:len(open)-1]
		case !strings.HasSuffix(tag, "/>"):
			name := tag[1 : len(tag)-1]
			if j := strings.IndexAny(name, " \t\r\n"); j >= 0 {
				name = name[:j]
			}
			open = append(open, name)
		}
		b.WriteString(tag)
		if len(open) == 0 && end == 0 && tag[1] != '!' && tag[1] != '?' {
			end = len(text) - len(rest)
		}
	}
}

// tagAt returns the tag, comment or declaration that s begins with. A > within quotes does not end it.
func tagAt(s string) (string, error) {
	for _, form := range []struct{ start, end string }{{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}} {
		if strings.HasPrefix(s, form.start) {
			if i := strings.Index(s[len(form.start):], form.end); i >= 0 {
				return s[:len(form.start)+i+len(form.end)], nil
			}
			return "", fmt.Errorf("%.40q does not end", s)
		}
	}
	quote := byte(0)
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return s[:i+1], nil
		}
	}
	return "", fmt.Errorf("tag %.40q does not end", s)
}
