package rosbag1

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// Bytes that opening and reading a damaged file may allocate. The standard library's bzip2 makes new buffers for every
// stream and the garbage collector takes them back, so that these come on top.
const (
	most       = 64 << 20
	mostBZ2    = 4 << 20 // for each chunk and time that it is read
	bz2Streams = 40
)

// outcome is what became of a damaged file.
type outcome struct {
	info plugin.Info
	got  []string
	err  error
}

// examine opens and reads a file, and fails the test when that takes too much memory.
func examine(t *testing.T, packing, path string) outcome {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var o outcome
	r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
	if err != nil {
		o.err = err
	} else {
		defer r.Close()
		o.info = r.Info()
		var ms []plugin.Message
		ms, o.err = readAll(t, r, plugin.Query{})
		o.got = lines(o.info, ms)
	}
	runtime.ReadMemStats(&after)
	limit := uint64(most)
	if packing == "bz2" {
		limit += bz2Streams * mostBZ2
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > limit {
		t.Errorf("%d bytes were allocated", n)
	}
	if err := o.err; err != nil {
		var corrupt *plugin.CorruptError
		if !errors.As(err, &corrupt) && !errors.Is(err, plugin.ErrFormat) {
			t.Errorf("an error of no known kind: %v", err)
		}
	}
	return o
}

// chunkLines are the messages of each chunk of a bag, and where the chunk ends.
func chunkLines(t *testing.T, path string) (out [][]string, ends []int64) {
	t.Helper()
	r := mustOpen(t, path, true)
	info := r.Info()
	all, err := readAll(t, r, plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range r.blocks {
		var ls []string
		for _, m := range all {
			if m.Order > b.order && m.Order <= b.order+b.count {
				ls = append(ls, line(info, m))
			}
		}
		out, ends = append(out, ls), append(ends, b.data+b.length)
	}
	return out, ends
}

// Files that end early give every chunk that is whole, and say that they end early.
func TestCut(t *testing.T) {
	for _, packing := range packings {
		t.Run(packing, func(t *testing.T) {
			whole, err := os.ReadFile(testdata(packing + ".bag"))
			if err != nil {
				t.Fatal(err)
			}
			chunks, ends := chunkLines(t, testdata(packing+".bag"))
			path := filepath.Join(t.TempDir(), "cut.bag")
			for percent := range 100 {
				n := len(whole) * percent / 100
				if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
					t.Fatal(err)
				}
				o := examine(t, packing, path)
				if o.err != nil {
					if n >= len(magic) {
						t.Errorf("cut at %d %%: %v", percent, o.err)
					}
					continue
				}
				if !o.info.Unclean || len(o.info.Warnings) == 0 {
					t.Errorf("cut at %d %%: nothing says so", percent)
				}
				for i, c := range chunks {
					if ends[i] > int64(n) {
						break
					}
					for _, l := range c {
						if !slices.Contains(o.got, l) {
							t.Fatalf("cut at %d %%: chunk %d is whole, and %s is missing", percent, i, l)
						}
					}
				}
				for _, l := range o.got {
					if !slices.Contains(slices.Concat(chunks...), l) {
						t.Fatalf("cut at %d %%: %s was never there", percent, l)
					}
				}
			}
		})
	}
}

// One byte that is not what it was: what is missing then is said, and chunks that it is not in are read. seen counts
// what cannot be seen in chunks without compression: a byte of a payload or a name.
func TestFlipped(t *testing.T) {
	long := os.Getenv("GOBAG_LONG") != ""
	for _, packing := range packings {
		t.Run(packing, func(t *testing.T) {
			step := map[string]int{"none": 97, "lz4": 53, "bz2": 499}[packing]
			if long {
				step = 7
			}
			whole, err := os.ReadFile(testdata(packing + ".bag"))
			if err != nil {
				t.Fatal(err)
			}
			chunks, _ := chunkLines(t, testdata(packing+".bag"))
			want := slices.Concat(chunks...)
			rng := rand.New(rand.NewPCG(1, 2))
			path := filepath.Join(t.TempDir(), "flipped.bag")
			for at := rng.IntN(step); at < len(whole); at += step {
				b := slices.Clone(whole)
				b[at] ^= 1 << rng.IntN(8)
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
				o := examine(t, packing, path)
				if o.err == nil && len(o.got) != len(want) {
					t.Errorf("byte %d: %d of %d messages, and nothing says so: %q", at, len(o.got), len(want), o.info.Warnings)
				}
				if o.err != nil && at >= len(magic) {
					checkSurvivors(t, fmt.Sprintf("byte %d (%v, %q)", at, o.err, o.info.Warnings), chunks, o.got)
				}
				if packing != "none" && o.err == nil && len(o.info.Warnings) == 0 {
					for _, l := range o.got {
						if !slices.Contains(want, l) && at < 18000 { // the index repeats names of topics and types
							t.Errorf("byte %d: %s was never there", at, l)
						}
					}
				}
			}
		})
	}
}

// checkSurvivors fails when the messages of more than two chunks are missing: the one that was hit, and the one whose
// record begins where that one's length leads.
func checkSurvivors(t *testing.T, what string, chunks [][]string, got []string) {
	t.Helper()
	missing := 0
	for _, c := range chunks {
		for _, l := range c {
			if !slices.Contains(got, l) {
				missing++
				break
			}
		}
	}
	if missing > 2 {
		t.Errorf("%s: messages of %d of %d chunks are missing", what, missing, len(chunks))
	}
}
