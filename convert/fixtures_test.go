package convert

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobag/gobag/bag"
)

// realBags are the public bags of the shared directory that open.
func realBags(t *testing.T) []string {
	t.Helper()
	root := os.Getenv("GOBAG_SHARED")
	if root == "" {
		root = "../../shared" // beside the module
	}
	var found []string
	for _, pattern := range []string{"fixtures/bags/*", "fixtures/bags/*/*", "fixtures/rosbag2/bags/*", "fixtures/rosbag2/era/*"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			r, err := bag.Open(context.Background(), p, bag.ReaderOptions{})
			if err != nil {
				continue // not a bag, or one that is damaged on purpose
			}
			if i := r.Info(); i.Messages > 0 && i.Messages < 100_000 {
				found = append(found, p)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(found) == 0 {
		t.Skip("no shared bags here")
	}
	return found
}

// Real bags become columns and come back: bytes, order, stamps, topics and custom data are the same.
func TestRealBagsThroughColumns(t *testing.T) {
	parts := map[string]int{}
	for _, p := range realBags(t) {
		dir := t.TempDir()
		a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
		r, err := bag.Open(context.Background(), p, bag.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		storage := r.Info().StorageID
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if storage == "rosbag1" || storage == "columnar" {
			continue // is not written
		}
		// The first copy takes away what is odd about the file itself.
		if _, err := Run(context.Background(), Options{Inputs: []Input{{Path: p}}, Outputs: []Output{{Dir: a, Writer: bag.WriterOptions{StorageID: "mcap"}}}}); err != nil {
			t.Logf("%s: not converted at all: %v", filepath.Base(p), err)
			continue
		}
		want := read(t, a)
		to(t, a, b, bag.WriterOptions{StorageID: "columnar"})
		same(t, p+": as columns", read(t, b), want)
		to(t, b, c, bag.WriterOptions{StorageID: "mcap"})
		same(t, p+": back", read(t, c), want)
		files, err := filepath.Glob(filepath.Join(b, "*.columnar", "topic=*", "*.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			kind, _, _ := strings.Cut(filepath.Base(f), "-")
			parts[kind]++
		}
	}
	t.Logf("parts of columns: %d, of payloads: %d", parts["part"], parts["raw"])
	if parts["part"] == 0 {
		t.Error("nothing became columns")
	}
}
