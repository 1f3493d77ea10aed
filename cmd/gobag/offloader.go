package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/internal/fsx"
)

// sumsFile lists the checksums of what was copied, in the form of sha256sum.
const sumsFile = "SHA256SUMS"

// offloader copies finished files of bags.
type offloader struct {
	to     string
	remove bool
	log    *slog.Logger

	copied, kept, deleted int
	bytes                 int64
}

// pass copies what is finished and reports whether a bag is still being recorded.
func (o *offloader) pass(ctx context.Context, paths []string) (open bool, err error) {
	var bags []string
	for _, p := range paths {
		found, err := bagsIn(p)
		if err != nil {
			return false, err
		}
		bags = append(bags, found...)
	}
	for _, b := range bags {
		recording, err := o.bag(ctx, b)
		if err != nil {
			return false, fmt.Errorf("offload %s: %w", b, err)
		}
		open = open || recording
	}
	return open, nil
}

// bagsIn returns path if it is a bag, else the bags right below it.
func bagsIn(path string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(path, bag.MetadataFile)); err == nil {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		dir := filepath.Join(path, e.Name())
		if _, err := os.Stat(filepath.Join(dir, bag.MetadataFile)); err == nil {
			out = append(out, dir)
		}
	}
	if out == nil {
		return nil, fmt.Errorf("%s is no bag, and there is none right below it", path)
	}
	return out, nil
}

// bag copies the finished files of one bag and reports whether it is still being recorded.
func (o *offloader) bag(ctx context.Context, dir string) (recording bool, err error) {
	if recording, err = fsx.Locked(dir); err != nil {
		recording = false // a file system without locks cannot say: metadata.yaml does
	}
	text, err := os.ReadFile(filepath.Join(dir, bag.MetadataFile))
	if err != nil {
		return false, err
	}
	m, err := bag.ParseMetadata(text)
	if err != nil {
		return false, fmt.Errorf("%s: %w", bag.MetadataFile, err)
	}
	files := slices.Clone(m.Paths)
	if recording && len(files) > 0 {
		files = files[:len(files)-1] // being written
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	to := filepath.Join(o.to, filepath.Base(abs))
	if err := os.MkdirAll(to, 0o777); err != nil {
		return false, err
	}
	sums, err := readSums(filepath.Join(to, sumsFile))
	if err != nil {
		return false, err
	}
	for _, name := range files {
		if !filepath.IsLocal(name) {
			return false, fmt.Errorf("file %q lies outside of the bag", name)
		}
		if err := o.storage(ctx, dir, to, name, sums); err != nil {
			return false, err
		}
	}
	if recording {
		return true, nil
	}
	// Last, so that a directory with metadata.yaml is whole.
	return false, o.file(ctx, filepath.Join(dir, bag.MetadataFile), to, bag.MetadataFile, sums, true)
}

// storage copies one storage of a bag: a file, or a directory of files.
func (o *offloader) storage(ctx context.Context, dir, to, name string, sums map[string]string) error {
	from := filepath.Join(dir, name)
	fi, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		if known(sums, name) { // offloaded and deleted before
			o.kept++
			return nil
		}
		return fmt.Errorf("file %s is missing", name)
	}
	if err != nil {
		return err
	}
	names := []string{name}
	if fi.IsDir() {
		names = nil
		err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				rel, rerr := filepath.Rel(dir, path)
				names, err = append(names, rel), rerr
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, n := range names {
		if err := o.file(ctx, filepath.Join(dir, n), to, n, sums, false); err != nil {
			return err
		}
	}
	if !o.remove {
		return nil
	}
	if err := os.RemoveAll(from); err != nil {
		return err
	}
	o.deleted++
	return fsx.SyncDir(dir)
}

func known(sums map[string]string, name string) bool {
	for n := range sums {
		if n == filepath.ToSlash(name) || strings.HasPrefix(n, filepath.ToSlash(name)+"/") {
			return true
		}
	}
	return false
}

// file copies one file, unless its verified copy is there. A copy that differs is never overwritten, but for replace.
func (o *offloader) file(ctx context.Context, from, to, name string, sums map[string]string, replace bool) error {
	key := filepath.ToSlash(name)
	target := filepath.Join(to, name)
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	fi, err := in.Stat()
	if err != nil {
		return err
	}
	if replace && sums[key] != "" {
		own, err := sumFile(ctx, from)
		if err != nil {
			return err
		}
		if theirs, err := sumFile(ctx, target); err == nil && theirs == own {
			o.kept++
			return nil
		}
	}
	if have, err := os.Stat(target); err == nil && !replace {
		if sums[key] != "" && have.Size() == fi.Size() {
			sum, err := sumFile(ctx, target) // it may have suffered since
			if err != nil {
				return err
			}
			if sum == sums[key] {
				o.kept++
				return nil
			}
			return fmt.Errorf("the copy %s is damaged: its checksum is not what %s says; move it away and try again", target, sumsFile)
		}
		own, err := sumFile(ctx, from)
		if err != nil {
			return err
		}
		theirs, err := sumFile(ctx, target)
		if err != nil {
			return err
		}
		if own != theirs {
			return fmt.Errorf("%s is there already and differs; move it away and try again", target)
		}
		o.kept++
		return o.note(to, key, own, sums)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return err
	}
	sum, err := copyVerified(ctx, in, target)
	if err != nil {
		return err
	}
	o.copied++
	o.bytes += fi.Size()
	o.log.Info(fmt.Sprintf("copied %s, %s", target, fileSize(fi.Size())))
	return o.note(to, key, sum, sums)
}

// note adds a checksum to the list.
func (o *offloader) note(to, key, sum string, sums map[string]string) error {
	sums[key] = sum
	names := make([]string, 0, len(sums))
	for n := range sums {
		names = append(names, n)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%s  %s\n", sums[n], n)
	}
	return fsx.Publish(filepath.Join(to, sumsFile), []byte(b.String()))
}

// readSums reads the list; empty where there is none.
func readSums(path string) (map[string]string, error) {
	sums := map[string]string{}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return sums, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || len(sum) != 2*sha256.Size {
			return nil, fmt.Errorf("%s: %.80q is no line of sha256sum", path, lines.Text())
		}
		sums[name] = sum
	}
	return sums, lines.Err()
}

// copyVerified copies a file beside its target, syncs it, reads it back and compares, and gives it its name.
func copyVerified(ctx context.Context, in *os.File, target string) (sum string, err error) {
	part := filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".part")
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part)
		}
	}()
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(out, h), &ctxReader{ctx, in}); err != nil {
		return "", errors.Join(err, out.Close())
	}
	if err := errors.Join(out.Sync(), out.Close()); err != nil {
		return "", err
	}
	sum = hex.EncodeToString(h.Sum(nil))
	back, err := sumFile(ctx, part)
	if err != nil {
		return "", err
	}
	if back != sum {
		return "", fmt.Errorf("%s reads back with another checksum than what was written: the disk it is on is not to be trusted", target)
	}
	if err := os.Rename(part, target); err != nil {
		return "", err
	}
	return sum, fsx.SyncDir(filepath.Dir(target))
}

// sumFile returns the SHA-256 of a file, read past the system's cache where it can be told to.
func sumFile(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	dropCache(f)
	h := sha256.New()
	if _, err := io.Copy(h, &ctxReader{ctx, f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ctxReader ends with ctx.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *ctxReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
