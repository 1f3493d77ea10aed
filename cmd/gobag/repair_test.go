package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRepairVerb(t *testing.T) {
	dir := t.TempDir()
	a, out := filepath.Join(dir, "a"), filepath.Join(dir, "out")
	makePlain(t, a, 20)
	if r := cli(nil, "repair", a, "-o", out); r.code != 0 || !strings.Contains(r.out, "20 messages kept, 0 are lost") || describe(t, out).Messages != 20 {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.errOut)
	}
	if r := cli(nil, "repair", a, "-o", out); r.code != exitFailure || !strings.Contains(r.errOut, "already exists") {
		t.Errorf("exit %d: %s", r.code, r.errOut)
	}
	if r := cli(nil, "repair", a); r.code != exitUsage {
		t.Errorf("exit %d: %s", r.code, r.errOut)
	}
	s := filepath.Join(dir, "s")
	if r := cli(nil, "convert", a, "-s", "sqlite3", "-o", s); r.code != 0 {
		t.Fatal(r.errOut)
	}
	b, err := os.ReadFile(filepath.Join(s, "s_0.db3"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s, "s_0.db3"), b[:len(b)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if r := cli(nil, "repair", s, "-o", out+"2"); r.code != exitFailure || r.errOut == "" {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.errOut)
	}
}
