package perf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// BenchmarksPage reads every results.json below dir and returns what writes a Markdown page of them. A README.md beside a
// results.json stands before its table; a directory with a README.md and without results says what is missing.
func BenchmarksPage(dir string) (func(io.Writer) error, error) {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && (e.Name() == "results.json" || e.Name() == "README.md") && filepath.Dir(path) != filepath.Clean(dir) {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%s: no results.json below it", dir)
	}
	var b strings.Builder
	b.WriteString("# Benchmarks\n\nMade of the files below `docs/results` by `gobag perf docs docs/results -o docs/benchmarks.md`; do not edit. " +
		"Each run's directory has the whole results.json, a CSV in rosbag2's columns and a page with charts (report.html).\n\n" +
		"Medians of the runs of a cell, in parentheses their range. Recorded messages were read back from the bag, one by one, and compared with what was sent. " +
		"Emulated results say so; they are no measurement of the board they stand for.\n")
	for _, d := range dirs {
		if err := benchmarksSection(&b, dir, d); err != nil {
			return nil, err
		}
	}
	return func(w io.Writer) error {
		_, err := io.WriteString(w, b.String())
		return err
	}, nil
}

// benchmarksSection is the section of one directory.
func benchmarksSection(b *strings.Builder, root, dir string) error {
	name, err := filepath.Rel(root, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\n## %s\n\n", filepath.ToSlash(name))
	about, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err == nil {
		text := strings.TrimSpace(string(about))
		if head, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(head, "# ") {
			text = strings.TrimSpace(rest)
		}
		b.WriteString(text + "\n\n")
	}
	path := filepath.Join(dir, "results.json")
	r, err := ReadReport(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the README says what is missing
	}
	if err != nil {
		return err
	}
	if r.Emulated() {
		fmt.Fprintf(b, "**%s.** %s\n\n", r.Device, r.Device.Limits)
	}
	if r.Scenario != "" {
		fmt.Fprintf(b, "Scenario %s. ", r.Scenario)
	}
	fmt.Fprintf(b, "%s gobag %s, %s, seed %d.\n\n%s%s", r.machineText(), r.Version, r.Start.Format("2006-01-02"), r.Seed, r.Table(), strings.Replace(r.groupTable(), "## By group", "By group:", 1))
	for i := range r.Cells {
		if why := r.Cells[i].Failed(); why != "" {
			fmt.Fprintf(b, "\n%s, run %d, failed: %s\n", r.Cells[i].Name(), r.Cells[i].Repeat, why)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "\n%s\n", n)
	}
	return nil
}
