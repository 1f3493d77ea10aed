package msg

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// table reads a file of tab-separated rows, comments left out.
func table(t *testing.T, path string) [][]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for l := range strings.Lines(string(data)) {
		if !strings.HasPrefix(l, "#") {
			rows = append(rows, strings.Split(strings.TrimRight(l, "\n"), "\t"))
		}
	}
	return rows
}

// builtinSource reads the parts of the built-in table of these names, the first that has a file.
func builtinSource(names ...string) Source {
	var layers []layer
	for _, name := range names {
		layers = append(layers, builtinLayer(name))
	}
	return firstOf(layers, nil, nil)
}

func TestHashesOfEveryType(t *testing.T) {
	src := builtinSource("jazzy", "px4-1.15")
	total, equal := 0, map[string]int{}
	for _, row := range table(t, "testdata/type-hashes.tsv") {
		total++
		d, err := Describe(row[0], src)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := d.Hash(); got != row[1] {
			t.Errorf("%s: %s, want %s (%s)", row[0], got, row[1], row[2])
			continue
		}
		equal[row[2]]++
	}
	t.Logf("%d of %d hashes are equal, %d of them seen from real ROS", equal["verified-by-real"]+equal["computed"], total, equal["verified-by-real"])
	if total != 544 || equal["verified-by-real"] != 392 || equal["computed"] != 152 {
		t.Errorf("of %d types %v are equal, want 544 types, 392 of them seen from real ROS", total, equal)
	}
}

func TestHashesOfVariants(t *testing.T) {
	layers := map[string][]string{
		"humble":               {"humble", "jazzy"},
		"iron":                 {"humble", "jazzy"},
		"kilted":               {"lyrical", "jazzy"},
		"lyrical-release-2026": {"lyrical", "jazzy"},
		"rolling-release-2026": {"lyrical", "jazzy"},
	}
	n := 0
	for _, row := range table(t, "testdata/type-hashes-variants.tsv") {
		names := layers[row[2]]
		if names == nil {
			t.Fatalf("no layers for %s", row[2])
		}
		n++
		d, err := Describe(row[0], builtinSource(names...))
		if err != nil {
			t.Error(err)
		} else if got := d.Hash(); got != row[1] {
			t.Errorf("%s of %s: %s, want %s", row[0], row[2], got, row[1])
		}
	}
	if n != 43 {
		t.Errorf("%d rows", n)
	}
}

func TestHashedTexts(t *testing.T) {
	data, err := os.ReadFile("testdata/rihs-inputs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); n++ {
		var row struct {
			Type, Hash string
			Input      string `json:"sha256_input"`
		}
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		d, err := Describe(row.Type, builtinSource("jazzy"))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := d.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		if b.String() != row.Input || d.Hash() != row.Hash {
			t.Errorf("%s:\n got %s %s\nwant %s %s", row.Type, d.Hash(), b.String(), row.Hash, row.Input)
		}
	}
	if n != 10 {
		t.Errorf("%d texts", n)
	}
}
