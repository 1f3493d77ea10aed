package bag

import (
	"os"
	"path/filepath"
	"testing"
)

// shared returns a path below the shared data, or skips.
func shared(t testing.TB, rel string) string {
	t.Helper()
	root := os.Getenv("GOBAG_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "shared")
	}
	p := filepath.Join(root, filepath.FromSlash(rel))
	if _, err := os.Stat(p); err != nil {
		t.Skipf("no shared data: %v", err)
	}
	return p
}

// privateCopy copies a file or directory so that opening it cannot touch the original.
func privateCopy(t testing.TB, src string) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), filepath.Base(src))
	err := filepath.WalkDir(src, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, p)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dst
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
