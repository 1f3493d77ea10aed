package ros2

import (
	"strings"
	"testing"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/ros"
)

// Beside each file comes what the description says of the type's fields.
func TestDescribedFields(t *testing.T) {
	payload := appendDescription(cdr.AppendHeader(nil, cdr.CDRLE), described{sources: []ros.TypeSource{
		{Type: "a/msg/A", Encoding: "msg", Text: "# cut o"}, {Type: "a/msg/B", Encoding: "implicit"}, {Type: "a/msg/C", Encoding: "msg", Text: "int32 c"}}})
	sources, err := parseDescription(identityForm, payload)
	if err != nil || len(sources) != 3 {
		t.Fatal(sources, err)
	}
	if got := sources[0].Fields; !strings.HasSuffix(got, "\nstring field\nstring field\nstring field\n") {
		t.Errorf("A: %q", got)
	}
	if got := sources[1].Fields; !strings.HasPrefix(got, "# ") || strings.Contains(got, "field\n") {
		t.Errorf("B, which has none: %q", got)
	}
	if got := sources[2].Fields; got != "" {
		t.Errorf("C, which is not described: %q", got)
	}
}
