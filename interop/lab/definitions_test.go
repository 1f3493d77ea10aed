//go:build linux

package lab

import "testing"

// What nodes compile in, from generated sources that were seen.
func TestCompiled(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"int8 a\n", "int8 a"},
		{"int8 a", "int8 a"},
		{"---\nbool success", "---\nbool success"},
		{"# it's\n", "# it's"},
		{"# \"it's\"\n# rest\n\n\n", "# \"it\\'s\"\n# rest\n\n"},
		{"uint64 t\t# time\n# rest\n", "uint64 t\\t# time\n# rest"},
		{"uint64 t\t\t# time\n# rest\n", "uint64 t\\t\\t# time\n# res"},
		{"# µ\nint8 abcdefghij\n", "# \\xc2\\xb5\nint8 abcd"},
		{"int8 a\r\nint8 b\r\n", "int8 a\nint8 b"},
	} {
		if got := Compiled(c.file); got != c.want {
			t.Errorf("%q is compiled in as %q, want %q", c.file, got, c.want)
		}
	}
}
