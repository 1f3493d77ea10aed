package sqlview

import (
	"errors"
	"strings"
)

// token is a word of SQL.
type token struct {
	kind byte // 'w' word, 'q' quoted name, 's' text, 'n' number, 'p' sign, 0 end
	text string
	at   int // in the query
	end  int
}

var errLex = errors.New("not read by kernels")

// lex cuts a query into words; what kernels never read (parameters, blobs, odd quotes) is errLex.
func lex(query string) ([]token, error) {
	var ts []token
	for i := 0; i < len(query); {
		c := query[i]
		at := i
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			i++
			continue
		case strings.HasPrefix(query[i:], "--"):
			if n := strings.IndexByte(query[i:], '\n'); n >= 0 {
				i += n
			} else {
				i = len(query)
			}
			continue
		case strings.HasPrefix(query[i:], "/*"):
			n := strings.Index(query[i+2:], "*/")
			if n < 0 {
				return nil, errLex
			}
			i += n + 4
			continue
		case c == '\'' || c == '"':
			text, n := quoted(query[i:], c)
			if n == 0 || strings.IndexByte(text, 0) >= 0 {
				return nil, errLex
			}
			i += n
			kind := byte('q')
			if c == '\'' {
				kind = 's'
			}
			ts = append(ts, token{kind, text, at, i})
		case isDigit(c) || c == '.' && i+1 < len(query) && isDigit(query[i+1]):
			for i < len(query) && (isDigit(query[i]) || query[i] == '.' || query[i]|0x20 == 'e' ||
				(query[i] == '+' || query[i] == '-') && query[i-1]|0x20 == 'e') {
				i++
			}
			if i < len(query) && isLetter(query[i]) {
				return nil, errLex
			}
			ts = append(ts, token{'n', query[at:i], at, i})
		case isLetter(c):
			for i < len(query) && (isLetter(query[i]) || isDigit(query[i])) {
				i++
			}
			ts = append(ts, token{'w', query[at:i], at, i})
		default:
			n := 1
			for _, two := range []string{"<=", ">=", "==", "<>", "!=", "||", "<<", ">>", "->"} {
				if strings.HasPrefix(query[i:], two) {
					n = 2
				}
			}
			if n == 1 && !strings.ContainsRune("(),;*+-/%<>=.", rune(c)) {
				return nil, errLex
			}
			i += n
			ts = append(ts, token{'p', query[at:i], at, i})
		}
	}
	return append(ts, token{at: len(query), end: len(query)}), nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80 }

// quoted is what stands between quotes, which are doubled inside, and its length with them; 0 where the end is missing.
func quoted(s string, quote byte) (string, int) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != quote {
			b.WriteByte(s[i])
			continue
		}
		if i+1 == len(s) || s[i+1] != quote {
			return b.String(), i + 1
		}
		b.WriteByte(quote)
		i++
	}
	return "", 0
}
