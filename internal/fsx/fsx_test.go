package fsx

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var ns []string
	for _, e := range es {
		ns = append(ns, e.Name())
	}
	return ns
}

func TestPublish(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, content := range []string{"one", "", "three"} {
		if err := Publish(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != content {
			t.Errorf("%q, want %q", got, content)
		}
	}
	if ns := names(t, dir); len(ns) != 1 {
		t.Errorf("left %q", ns)
	}
	// A directory in the way: the old state stays and no temporary file is left.
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "d", "x"), "")
	if err := Publish(filepath.Join(dir, "d"), []byte("x")); err == nil {
		t.Error("published over a directory")
	}
	if ns := names(t, dir); len(ns) != 2 {
		t.Errorf("left %q", ns)
	}
	if err := Publish(filepath.Join(dir, "no", "a"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a missing directory: %v", err)
	}
}

func TestPublishNew(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	tmp := TempName(path)
	if err := PublishNew(tmp, path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing to publish: %v", err)
	}
	write(t, tmp, "new")
	if err := PublishNew(tmp, path); err != nil {
		t.Fatal(err)
	}
	if got := read(t, path); got != "new" {
		t.Errorf("%q", got)
	}
	other := TempName(path)
	if other == tmp {
		t.Errorf("two files may have the name %s", tmp)
	}
	write(t, other, "newer")
	if err := PublishNew(other, path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v, want ErrExist", err)
	}
	if got := read(t, path); got != "new" {
		t.Errorf("the file was replaced by %q", got)
	}
	if err := SweepTemp(dir); err != nil {
		t.Fatal(err)
	}
	if ns := names(t, dir); len(ns) != 1 {
		t.Errorf("after the sweep: %q", ns)
	}
}

// Of many that publish under the same name one wins.
func TestPublishNewRace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	var wg sync.WaitGroup
	wins := make(chan string, 8)
	for range cap(wins) {
		tmp := TempName(path)
		write(t, tmp, tmp)
		wg.Go(func() {
			if PublishNew(tmp, path) == nil {
				wins <- tmp
			}
		})
	}
	wg.Wait()
	close(wins)
	if len(wins) != 1 {
		t.Fatalf("%d winners", len(wins))
	}
	if w := <-wins; read(t, path) != w {
		t.Errorf("the file is not the winner's")
	}
}

func TestSweepTemp(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"a" + tmpSuffix, "b", filepath.Base(TempName("c"))} {
		write(t, filepath.Join(dir, n), "x")
	}
	if err := os.Mkdir(filepath.Join(dir, "d"+tmpSuffix), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := SweepTemp(dir); err != nil {
		t.Fatal(err)
	}
	if ns := names(t, dir); len(ns) != 2 || ns[0] != "b" {
		t.Errorf("left %q", ns)
	}
	if err := SweepTemp(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestWithin(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "in"), "")
	write(t, filepath.Join(outside, "out"), "")
	if err := os.Mkdir(filepath.Join(root, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	links := true
	for name, target := range map[string]string{"good": filepath.Join(root, "in"), "bad": filepath.Join(outside, "out"), "dir": outside} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			links = false
		}
	}
	for rel, ok := range map[string]bool{
		"in": true, "sub": true, "sub/new": true, "new": true, "./in": true, "sub/../in": true, "good": true,
		"..": false, "../x": false, "sub/../../x": false, "/etc/passwd": false, "": false, "bad": false, "dir/out": false,
	} {
		if !links && (rel == "good" || rel == "bad" || rel == "dir/out") {
			continue
		}
		p, err := Within(root, rel)
		if (err == nil) != ok {
			t.Errorf("Within(%q): %q, %v", rel, p, err)
		}
		if err == nil && p != filepath.Join(root, filepath.FromSlash(rel)) {
			t.Errorf("Within(%q): %q", rel, p)
		}
	}
	if runtime.GOOS == "windows" {
		if _, err := Within(root, `C:\x`); err == nil {
			t.Error("a drive letter passes")
		}
	}
}

// A new file below a link that leads outside would be created outside.
func TestWithinNewBelowLink(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(root, "dir")); err != nil {
		t.Skip(err)
	}
	if p, err := Within(root, "dir/new"); err == nil {
		t.Errorf("%q leads outside", p)
	}
	if err := os.Symlink(filepath.Join(outside, "absent"), filepath.Join(root, "nowhere")); err != nil {
		t.Fatal(err)
	}
	for _, rel := range []string{"nowhere", "nowhere/x"} {
		if p, err := Within(root, rel); err == nil {
			t.Errorf("%q would be created outside", p)
		}
	}
	if p, err := Within(filepath.Join(root, "not", "yet"), "a/b"); err != nil || p != filepath.Join(root, "not", "yet", "a", "b") {
		t.Errorf("below a root that is not there: %q, %v", p, err)
	}
}

func TestFree(t *testing.T) {
	free, total, err := Free(t.TempDir())
	if err != nil || free <= 0 || total < free {
		t.Errorf("%d of %d, %v", free, total, err)
	}
	if _, _, err := Free(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("no error for a missing path")
	}
}

func TestLockDir(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no locks on directories there")
	}
	dir := t.TempDir()
	l, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockDir(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if l, err = LockDir(dir); err != nil {
		t.Fatal(err)
	}
	l.Unlock()
	if _, err := LockDir(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestStartWriteback(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "content")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := StartWriteback(f, 0, 7); err != nil {
		t.Error(err)
	}
	f.Close()
	if err := StartWriteback(f, 0, 7); err == nil && runtime.GOOS == "linux" {
		t.Error("no error for a closed file")
	}
}

func TestSyncDir(t *testing.T) {
	dir := t.TempDir()
	if err := SyncDir(dir); err != nil {
		t.Error(err)
	}
	if err := SyncDir(filepath.Join(dir, "absent")); err == nil && runtime.GOOS != "windows" {
		t.Error("no error for a missing directory")
	}
}
