package main

import (
	"io"
	"strings"
	"testing"
)

// The node that others list is that of --node-name.
func TestNodeName(t *testing.T) {
	for _, c := range []struct{ flag, want, problem string }{
		{"gobag_recorder", "/gobag_recorder", ""},
		{"/ns/rec", "/ns/rec", ""},
		{"", "", ""},
		{"my-node", "", `--node-name "my-node"`},
		{"//", "", "--node-name"},
	} {
		a := newApp(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" })
		o, err := (&nodeFlags{name: c.flag, domain: -1}).options(a)
		switch code, text := explain(err); {
		case c.problem != "":
			if code != exitUsage || !strings.Contains(text, c.problem) {
				t.Errorf("%q: %d %q", c.flag, code, text)
			}
		case err != nil || o.NodeName != c.want:
			t.Errorf("%q: node %q, %v", c.flag, o.NodeName, err)
		}
	}
}
