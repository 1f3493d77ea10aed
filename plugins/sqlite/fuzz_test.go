package sqlite

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gobag/gobag/plugin"
)

// FuzzOpen reads whatever lies in the three files of a database. The seeds are a storage of ours, the same cut off with
// a hot journal, and one with a write-ahead log.
func FuzzOpen(f *testing.F) {
	read := func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			f.Fatal(err)
		}
		return b
	}
	small := plugin.WriteOptions{Config: map[string]any{"pragmas": []any{"page_size = 512", "cache_size = 2", "journal_mode = PERSIST"}}}
	path := filepath.Join(f.TempDir(), "a.db3")
	writeSimple(f, path, plugin.WriteOptions{Config: map[string]any{"pragmas": []any{"page_size = 512"}}}, 20)
	f.Add(read(path), []byte{}, []byte{})

	hot := filepath.Join(f.TempDir(), "hot.db3")
	w, err := create(f.Context(), hot, small)
	if err != nil {
		f.Fatal(err)
	}
	id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "b/msg/C", Sources: []string{"x"}})
	for i := 0; i < 60 && err == nil; i++ {
		if i == 20 {
			err = w.Sync()
		}
		err = errors.Join(err, w.Write([]plugin.Message{{Topic: id, RecvTime: int64(i * 7 % 60), SendTime: 3, Data: make([]byte, 300)}}))
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Add(read(hot), read(hot+"-journal"), []byte{})
	w.Close(plugin.Metadata{})

	c, err := openConn(path, sqlite3.SQLITE_OPEN_READWRITE, "")
	if err != nil {
		f.Fatal(err)
	}
	for _, sql := range []string{"PRAGMA journal_mode = WAL", "INSERT INTO messages VALUES (100, 1, 5, x'00')", "INSERT INTO messages VALUES (101, 1, 3, zeroblob(900))"} {
		if _, err := c.queryText(sql); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(read(path), []byte{}, read(path+"-wal"))
	c.close()

	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, db, journal, wal []byte) {
		path := filepath.Join(dir, "x.db3")
		for side, b := range map[string][]byte{"": db, "-journal": journal, "-wal": wal} {
			if err := os.WriteFile(path+side, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Driver{}.OpenReader(t.Context(), path, plugin.ReadOptions{})
		if err == nil {
			err = drain(r)
			if cerr := r.Close(); cerr != nil {
				t.Error(cerr)
			}
		}
		var corrupt *plugin.CorruptError
		if err != nil && !errors.As(err, &corrupt) && !errors.Is(err, plugin.ErrFormat) {
			t.Error(err)
		}
	})
}

// drain reads everything, once as a whole and once as a short range.
func drain(r plugin.Reader) error {
	return errors.Join(drainQuery(r, plugin.Query{}),
		drainQuery(r, plugin.Query{Range: &plugin.TimeRange{End: pointRange}}), drainQuery(r, plugin.Query{Range: &plugin.TimeRange{End: pointRange}, Reverse: true}))
}

func drainQuery(r plugin.Reader, q plugin.Query) error {
	it, err := r.Messages(q)
	if err != nil {
		return err
	}
	defer it.Close()
	for {
		var m plugin.Message
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
