package msg

import (
	"fmt"
	"strings"
)

type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokName
	tokNumber
	tokText  // a string or character literal, quotes and prefix included
	tokPunct // one character, or "::"
)

type token struct {
	kind tokenKind
	text string
	line int
}

func (t token) String() string {
	if t.kind == tokEnd {
		return "end of file"
	}
	return fmt.Sprintf("%.60q", t.text)
}

// lexIDL splits a .idl file into tokens, the last of kind tokEnd, and the paths of its #include lines. Comments and
// other preprocessor lines are left out.
func lexIDL(s string) (tokens []token, includes []string, err error) {
	line, pos := 1, 0
	add := func(kind tokenKind, n int) {
		tokens = append(tokens, token{kind, s[pos : pos+n], line})
		line += strings.Count(s[pos:pos+n], "\n")
		pos += n
	}
	skip := func(n int) {
		line += strings.Count(s[pos:pos+n], "\n")
		pos += n
	}
	for pos < len(s) {
		rest := s[pos:]
		c := rest[0]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			skip(1)
		case strings.HasPrefix(rest, "//"):
			skip(lineLength(rest))
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return nil, nil, lineError(line, "comment /* without end")
			}
			skip(end + 4)
		case c == '#':
			l := rest[:lineLength(rest)]
			if path, ok := includePath(l); ok {
				includes = append(includes, path)
			} else if strings.HasPrefix(l, "#include") {
				return nil, nil, lineError(line, "%.100q: want #include \"package/msg/Type.idl\"", l)
			}
			skip(len(l))
		case c == '"' || c == '\'' || c == 'L' && len(rest) > 1 && (rest[1] == '"' || rest[1] == '\''):
			n := literalLength(rest)
			if n == 0 {
				return nil, nil, lineError(line, "literal without closing quote")
			}
			add(tokText, n)
		case c >= '0' && c <= '9' || c == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
			add(tokNumber, numberLength(rest))
		case letter(c):
			n := 1
			for n < len(rest) && nameByte(rest[n]) {
				n++
			}
			if n > maxIdentifier {
				return nil, nil, lineError(line, "name of %d characters", n)
			}
			add(tokName, n)
		case strings.HasPrefix(rest, "::"):
			add(tokPunct, 2)
		case c > ' ' && c < 0x7f:
			add(tokPunct, 1)
		default:
			return nil, nil, lineError(line, "unexpected character %q", c)
		}
	}
	return append(tokens, token{tokEnd, "", line}), includes, nil
}

// includePath returns the path of an #include line, without quotes.
func includePath(l string) (string, bool) {
	l, ok := strings.CutPrefix(l, "#include")
	if l = strings.TrimSpace(l); !ok || len(l) < 2 {
		return "", false
	}
	end := map[byte]string{'"': "\"", '<': ">"}[l[0]]
	if end == "" {
		return "", false
	}
	path, _, ok := strings.Cut(l[1:], end)
	return path, ok && path != ""
}

func lineLength(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

// literalLength returns the length of the string or character literal at the start of s, 0 if it does not end.
func literalLength(s string) int {
	i := strings.IndexAny(s, `"'`)
	quote := s[i]
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		}
	}
	return 0
}

// numberLength returns the length of the number at the start of s: integers, hexadecimal, floating and fixed point.
func numberLength(s string) int {
	n := 1
	for n < len(s) {
		c := s[n]
		exponentSign := (c == '+' || c == '-') && (s[n-1] == 'e' || s[n-1] == 'E') && !strings.HasPrefix(s, "0x") && !strings.HasPrefix(s, "0X")
		if c != '.' && !exponentSign && !nameByte(c) {
			break
		}
		n++
	}
	return n
}
