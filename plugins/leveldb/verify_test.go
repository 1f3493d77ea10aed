package leveldb

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
)

func large(t *testing.T, n, size int) (dir string, ms []plugin.Message) {
	dir = filepath.Join(t.TempDir(), "s.leveldb")
	w := mustCreate(t, dir, plugin.WriteOptions{})
	id := mustTopic(t, w, plugin.Topic{Name: "/a", Type: "b"})
	for i := range n {
		data := make([]byte, size+i)
		for k := range data {
			data[k] = byte(k * (i + 3))
		}
		ms = append(ms, plugin.Message{Topic: id, RecvTime: int64(i), Order: uint64(i + 1), Data: data})
	}
	if err := errors.Join(w.Write(ms), w.Close(plugin.Metadata{})); err != nil {
		t.Fatal(err)
	}
	return dir, ms
}

// Large messages, read from where the table is mapped, in order, backwards and by themselves; and of a flipped byte in any
// of them everything before is returned and nothing else.
func TestLargeMessages(t *testing.T) {
	for _, size := range []int{mapBlock, 100_000, 700_000} {
		dir, ms := large(t, 30, size)
		r := mustOpen(t, dir)
		for _, reverse := range []bool{false, true} {
			got, err := readAll(t, r, plugin.Query{Reverse: reverse})
			if !errors.Is(err, io.EOF) || len(got) != len(ms) {
				t.Fatalf("%d messages, %v", len(got), err)
			}
			for i := range got {
				want := i
				if reverse {
					want = len(ms) - 1 - i
				}
				if string(got[i].Data) != string(ms[want].Data) {
					t.Fatalf("size %d, reverse %v: message %d is another", size, reverse, i)
				}
			}
		}
		tables, err := filepath.Glob(filepath.Join(dir, "*.ldb"))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{0, 1, 2, 7, 17, 29} {
			broken := copyDir(t, dir)
			path := filepath.Join(broken, filepath.Base(tables[0]))
			off := at*size + size/2
			for _, table := range tables { // which the byte is in
				fi, err := os.Stat(table)
				if err != nil {
					t.Fatal(err)
				}
				if path = filepath.Join(broken, filepath.Base(table)); int64(off) < fi.Size() {
					break
				}
				off -= int(fi.Size())
			}
			if err := flip(filepath.Base(path), off)(broken); err != nil {
				t.Fatal(err)
			}
			got, err := readAll(t, mustOpen(t, broken), plugin.Query{})
			var corrupt *plugin.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Path != path {
				t.Fatalf("size %d, message %d flipped: %d messages, %v", size, at, len(got), err)
			}
			if len(got) < at-1 || len(got) > at {
				t.Fatalf("size %d, message %d flipped: %d messages before it", size, at, len(got))
			}
		}
	}
}

// A table that is cut off while it is mapped ends in an error, not in a fault.
func TestMappedTableCutOff(t *testing.T) {
	dir, ms := large(t, 30, 100_000)
	r := mustOpen(t, dir)
	first, err := r.Messages(plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	var m plugin.Message
	if err := first.Next(&m); err != nil || string(m.Data) != string(ms[0].Data) {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.ldb"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(tables[0], 150_000); err != nil {
		t.Fatal(err)
	}
	it, err := r.Messages(plugin.Query{Range: &plugin.TimeRange{Start: 20, End: 25}})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var corrupt *plugin.CorruptError
	if err := it.Next(&m); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "the table ends here") {
		t.Errorf("%v, want a CorruptError that says where the table ends", err)
	}
}
