// Package fsx holds the durable file operations that bags and storage formats share: publish a file whole or not at
// all, sync a directory, lock a directory, ask for free space. Standard library only.
package fsx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// tmpSuffix marks files that were being published; SweepTemp removes leftovers.
const tmpSuffix = ".gobag-tmp"

// Publish writes data to path so that a crash leaves the old file or the new one, never a part: write to a temporary
// file beside it, sync, rename, sync the directory.
func Publish(path string, data []byte) (err error) {
	tmp := path + tmpSuffix
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("publish %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp) // SweepTemp takes what stays
			err = fmt.Errorf("publish %s: %w", path, err)
		}
	}()
	if _, err = f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err = f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(tmp, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SweepTemp removes what an interrupted Publish left in dir.
func SweepTemp(dir string) error {
	es, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range es {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), tmpSuffix) {
			errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// Within returns root joined with the relative path rel, or an error when that would leave root (absolute path, "..",
// or a drive letter). Symbolic links inside root are resolved and must stay inside too; of a path that is not there yet
// this holds for the part that is.
func Within(root, rel string) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(rel)) {
		return "", fmt.Errorf("path %q leaves %s", rel, root)
	}
	p := filepath.Join(root, filepath.FromSlash(rel))
	realRoot, err := filepath.EvalSymlinks(root)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return "", err
	}
	real, err := resolve(p)
	if err != nil {
		return "", err
	}
	if r, err := filepath.Rel(realRoot, real); err != nil || !filepath.IsLocal(r) {
		return "", fmt.Errorf("path %q leaves %s through a link", rel, root)
	}
	return p, nil
}

// resolve follows the links in the part of p that exists. A link that leads nowhere is an error: what is created
// through it may be anywhere.
func resolve(p string) (string, error) {
	for {
		real, err := filepath.EvalSymlinks(p)
		if !errors.Is(err, fs.ErrNotExist) {
			return real, err
		}
		if _, err := os.Lstat(p); err == nil {
			return "", fmt.Errorf("link %s leads nowhere", p)
		}
		p = filepath.Dir(p)
	}
}

// TempName returns a name beside path for a file that is to become path, unlike any other of this process or of one
// running now. SweepTemp removes what a crash leaves of it.
func TempName(path string) string {
	return fmt.Sprintf("%s.%d-%d%s", path, os.Getpid(), tempCount.Add(1), tmpSuffix)
}

var tempCount atomic.Uint64

// PublishNew gives the finished file tmp its name path, and makes the name durable. fs.ErrExist if path is there
// already; it is never replaced. tmp must have been synced and is gone afterwards, unless an error is returned.
func PublishNew(tmp, path string) error {
	err := os.Link(tmp, path)
	switch {
	case err == nil:
		err = os.Remove(tmp)
	case errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("publish %s: %w", path, err)
	default: // a file system without hard links
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("publish %s: %w", path, fs.ErrExist)
		}
		err = os.Rename(tmp, path)
	}
	if err == nil {
		err = SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("publish %s: %w", path, err)
	}
	return nil
}
