package bag

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// yamlScalar returns s as the emitter of rosbag2 (yaml-cpp) writes it: plain where that is possible, else in double
// quotes. Bytes that are not UTF-8 become U+FFFD, since YAML has no way to carry them.
func yamlScalar(s string) string {
	if yamlPlain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for _, r := range s { // invalid bytes come out as utf8.RuneError
		switch {
		case r == '"':
			b.WriteString(`\"`)
		case r == '\\':
			b.WriteString(`\\`)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\b':
			b.WriteString(`\b`)
		case r < 0x20 || r >= 0x7f && r <= 0xa0:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r == 0xfeff || r == 0x2028 || r == 0x2029 || r == 0xfffe || r == 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// yamlText returns s as it comes back from YAML: each byte that is not UTF-8 as U+FFFD.
func yamlText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// yamlPlain says whether s stands for itself as a plain scalar in block context (yaml-cpp's IsValidPlainScalar).
func yamlPlain(s string) bool {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return false
	}
	if !utf8.ValidString(s) || strings.ContainsRune(",[]{}#&*!|>'\"%@` ", rune(s[0])) || s[len(s)-1] == ' ' || s[len(s)-1] == ':' {
		return false
	}
	if (s[0] == '-' || s[0] == '?') && (len(s) == 1 || s[1] == ' ') || s == "---" || s == "..." || strings.HasPrefix(s, "--- ") {
		return false
	}
	if strings.Contains(s, ": ") || strings.Contains(s, " #") {
		return false
	}
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r <= 0xa0 || r == 0x2028 || r == 0x2029 || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
