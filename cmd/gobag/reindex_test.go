package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReindexVerb(t *testing.T) {
	dir := t.TempDir()
	a := filepath.Join(dir, "a")
	makePlain(t, a, 20)
	yaml := filepath.Join(a, "metadata.yaml")
	if err := os.Remove(yaml); err != nil {
		t.Fatal(err)
	}
	if r := cli(nil, "reindex", a, "-s", "mcap"); r.code != 0 || !strings.Contains(r.out, "20 messages on 2 topics in 1 file") || !exists(yaml) {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.errOut)
	}
	if err := os.WriteFile(filepath.Join(a, "a_1.mcap"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := cli(nil, "reindex", a); r.code != exitFailure || !strings.Contains(r.errOut, "a_1.mcap") || !strings.Contains(r.errOut, "gobag repair") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.errOut)
	}
	if r := cli(nil, "reindex", filepath.Join(dir, "none")); r.code != exitFailure {
		t.Errorf("exit %d", r.code)
	}
	if r := cli(nil, "reindex"); r.code != exitUsage {
		t.Errorf("exit %d", r.code)
	}
}
