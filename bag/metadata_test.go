package bag

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// metadataFiles returns every metadata.yaml of the shared fixtures.
func metadataFiles(t testing.TB) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(shared(t, "fixtures"), func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == MetadataFile {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 40 {
		t.Fatalf("only %d metadata.yaml found", len(out))
	}
	return out
}

// Every metadata.yaml that real recorders left parses, and those in rosbag2's own style come back byte for byte.
func TestParseAllFixtures(t *testing.T) {
	same := 0
	for _, p := range metadataFiles(t) {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		m, err := ParseMetadata(text)
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		if len(m.Warnings) > 0 {
			t.Errorf("%s: %q", p, m.Warnings)
		}
		again, err := ParseMetadata(m.Encode(0))
		if err != nil {
			t.Errorf("%s: after encoding: %v", p, err)
			continue
		}
		if !equalMetadata(m, again) {
			t.Errorf("%s: changed by encoding", p)
		}
		if bytes.Equal(bytes.TrimRight(text, "\n"), m.Encode(0)) {
			same++
			continue
		}
		t.Logf("%s differs: %s", p, firstDifference(string(text), string(m.Encode(0))))
	}
	t.Logf("%d are the same", same)
}

func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range as {
		if i >= len(bs) || as[i] != bs[i] {
			return as[i] + " <> " + bs[min(i, len(bs)-1)]
		}
	}
	return ""
}

func equalMetadata(a, b *Metadata) bool {
	return string(a.Encode(9)) == string(b.Encode(9))
}
