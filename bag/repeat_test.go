package bag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// A ring of files with a latched topic: what is left reads once and whole, counts and times are those of what is left, and the
// first file that is left has the latched message. With compression of whole files too, where files change their names.
func TestRingWithRepeats(t *testing.T) {
	for _, mode := range []string{CompressionNone, CompressionFile} {
		t.Run("mode "+mode, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "ring")
			var deleted []string
			w, err := Create(context.Background(), dir, WriterOptions{StorageID: "sqlite3", SyncInterval: -1, MaxBagFiles: 3, Compression: Compression{Mode: mode, Format: formatOf(mode)},
				OnDelete: func(file string, _ uint64) { deleted = append(deleted, file) }})
			if err != nil {
				t.Fatal(err)
			}
			m, err := w.AddTopic(plugin.Topic{Name: "/map", Type: "x/msg/Map"})
			if err != nil {
				t.Fatal(err)
			}
			a, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "x/msg/A"})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Retain(m, 1); err != nil {
				t.Fatal(err)
			}
			if err := w.Retain(9, 1); !errors.Is(err, plugin.ErrUnknownTopic) {
				t.Error(err)
			}
			write := func(topic plugin.TopicID, stamp int64, text string) {
				t.Helper()
				if err := w.Write([]plugin.Message{{Topic: topic, RecvTime: stamp, Data: []byte(text)}}); err != nil {
					t.Fatal(err)
				}
			}
			write(m, 1, "map0")
			write(m, 2, "map1")
			for file := range int64(6) {
				for i := range int64(10) {
					write(a, 100*file+i+10, fmt.Sprint("a", file, i))
				}
				if err := w.Split(); err != nil {
					t.Fatal(err)
				}
			}
			write(a, 1000, "last")
			if s := w.Stats(); s.Messages != 63 || s.Files != 7 || s.Deleted == 0 {
				t.Errorf("%+v", s)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(dir, "ring_*"))
			if err != nil || len(files) > 5 || mode == CompressionNone && (len(files) != 3 || len(deleted) != 4) {
				t.Errorf("left are %v, deleted %v", files, deleted)
			}
			r, err := Open(context.Background(), dir, ReaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			info := r.Info()
			maps, all, first := 0, 0, int64(0)
			it, err := r.Messages(plugin.Query{})
			if err != nil {
				t.Fatal(err)
			}
			defer it.Close()
			for x := (plugin.Message{}); ; all++ {
				if err := it.Next(&x); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if all == 0 {
					first = x.RecvTime
				}
				if string(x.Data) == "map1" {
					maps++
				}
			}
			if maps != 1 || uint64(all) != info.Messages || info.Start != first || len(info.Warnings) != 0 || len(info.Repeats) != len(info.Files) {
				t.Errorf("%d messages, %d of the map, from %d on; info: %d from %d, repeats %v, warnings %q", all, maps, first, info.Messages, info.Start, info.Repeats, info.Warnings)
			}
			back, err := r.Messages(plugin.Query{Reverse: true})
			if err != nil {
				t.Fatal(err)
			}
			defer back.Close()
			n := 0
			for x := (plugin.Message{}); back.Next(&x) == nil; n++ {
			}
			if n != all {
				t.Errorf("backwards there are %d messages, %d forwards", n, all)
			}
		})
	}
}

func formatOf(mode string) string {
	if mode == CompressionNone {
		return ""
	}
	return "zstd"
}

// A bag is kept below its size.
func TestMaxTotalSize(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ring")
	w, err := Create(context.Background(), dir, WriterOptions{StorageID: "mcap", SyncInterval: -1, MaxBagSize: 100_000, MaxTotalSize: 500_000})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "x/msg/A"})
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 1000)
	for i := range int64(3000) {
		if err := w.Write([]plugin.Message{{Topic: id, RecvTime: i, Data: data}}); err != nil {
			t.Fatal(err)
		}
	}
	if s := w.Stats(); s.Size > 610_000 || s.Size < 300_000 || s.Messages != 3000 {
		t.Errorf("%+v", s)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var sum int64
	files, err := filepath.Glob(filepath.Join(dir, "*.mcap"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		fi, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		sum += fi.Size()
	}
	if sum > 610_000 {
		t.Errorf("%d bytes in %d files", sum, len(files))
	}
}

func TestParseRepeats(t *testing.T) {
	if rs, err := ParseRepeats(`[{"file":"a_1.mcap","stamp_ns":5,"topics":{"/map":1}}]`); err != nil || len(rs) != 1 || rs[0].Topics["/map"] != 1 {
		t.Errorf("%v %v", rs, err)
	}
	if _, err := ParseRepeats("{"); err == nil {
		t.Error("no JSON")
	}
	if o, err := ParseOverloads(EncodeOverloads([]Overload{{From: 1, To: 2, Dropped: 3, Worst: "/a"}})); err != nil || o[0].Dropped != 3 {
		t.Errorf("%v %v", o, err)
	}
	if EncodeOverloads(nil) != "[]" {
		t.Error(EncodeOverloads(nil))
	}
	if _, err := ParseOverloads("x"); err == nil {
		t.Error("no JSON")
	}
}
