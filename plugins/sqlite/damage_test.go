package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// rootPage returns the number of the page that a table or index begins with.
func rootPage(path, name string) (int64, error) {
	c, err := openConn(path, sqlite3.SQLITE_OPEN_READONLY, "")
	if err != nil {
		return 0, err
	}
	defer c.close()
	n, ok, err := c.queryInt("SELECT rootpage FROM sqlite_master WHERE name = ?", name)
	if err == nil && !ok {
		err = fmt.Errorf("no %s", name)
	}
	return n, err
}

// children returns the pages below an interior page of a table, whose layout is
// https://sqlite.org/fileformat2.html#b_tree_pages.
func children(path string, page int64) ([]int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	b = b[(page-1)*pageSize : page*pageSize]
	if b[0] != 5 {
		return nil, fmt.Errorf("page %d is of kind %d, not an interior page of a table", page, b[0])
	}
	var ps []int64
	for i := range int(binary.BigEndian.Uint16(b[3:])) {
		cell := binary.BigEndian.Uint16(b[12+2*i:])
		ps = append(ps, int64(binary.BigEndian.Uint32(b[cell:])))
	}
	return append(ps, int64(binary.BigEndian.Uint32(b[8:]))), nil
}

func overwriteAt(path string, off int64, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, off)
	return errors.Join(err, f.Close())
}

// onRoot overwrites a part of the first page of a table or index.
func onRoot(name string, off int64, b []byte) func(string) error {
	return func(path string) error {
		p, err := rootPage(path, name)
		if err != nil {
			return err
		}
		return overwriteAt(path, (p-1)*pageSize+off, b)
	}
}

// onLeaf overwrites the n-th leaf of the messages.
func onLeaf(n int, off int64, b []byte) func(string) error {
	return func(path string) error {
		root, err := rootPage(path, "messages")
		if err != nil {
			return err
		}
		leaves, err := children(path, root)
		if err != nil {
			return err
		}
		return overwriteAt(path, (leaves[n]-1)*pageSize+off, b)
	}
}

func cutAt(share float64, less int64) func(string) error {
	return func(path string) error {
		fi, err := os.Stat(path)
		if err != nil {
			return err
		}
		return os.Truncate(path, int64(float64(fi.Size())*share)-less)
	}
}

func beside(suffix string, content []byte) func(string) error {
	return func(path string) error { return os.WriteFile(path+suffix, content, 0o644) }
}

// damageTable: a storage of 2000 messages of 1000 bytes has about 250 leaves of 8 messages.
var damageTable = func() []plugintest.Damage {
	zeros := make([]byte, pageSize)
	noise := make([]byte, pageSize)
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	return []plugintest.Damage{
		{Name: "first byte", Refused: true, Break: func(p string) error { return overwriteAt(p, 0, []byte("X")) }},
		{Name: "page size", Refused: true, Break: func(p string) error { return overwriteAt(p, 16, []byte{0x12, 0x34}) }},
		{Name: "page size another power of two", Refused: true, Break: func(p string) error { return overwriteAt(p, 16, []byte{0x10, 0}) }},
		{Name: "list of tables", Refused: true, Break: func(p string) error { return overwriteAt(p, 100, zeros[100:]) }},
		{Name: "empty file", Refused: true, Break: func(p string) error { return os.Truncate(p, 0) }},
		{Name: "only the header", Refused: true, Break: func(p string) error { return os.Truncate(p, 100) }},
		{Name: "cut off in the middle", Least: 700, Offset: true, Break: cutAt(0.5, 0)},
		{Name: "cut off within a page", Least: 700, Offset: true, Break: cutAt(0.5, 777)},
		{Name: "last byte gone", Least: 1800, Offset: true, Break: cutAt(1, 1)},
		{Name: "page count too small", Least: 0, Break: func(p string) error { return overwriteAt(p, 28, []byte{0, 0, 0, 12}) }},
		{Name: "page count too large", Whole: true, Break: func(p string) error { return overwriteAt(p, 28, []byte{0, 1, 0, 0}) }},
		{Name: "bytes behind the end", Whole: true, Break: func(p string) error {
			fi, err := os.Stat(p)
			if err != nil {
				return err
			}
			return overwriteAt(p, fi.Size(), noise[:5000])
		}},
		{Name: "root of the messages", Break: onRoot("messages", 0, zeros)},
		{Name: "first leaf", Break: onLeaf(0, 0, zeros)},
		{Name: "a leaf of zeros", Least: 500, Break: onLeaf(100, 0, zeros)},
		{Name: "a leaf of noise", Least: 500, Break: onLeaf(100, 0, noise)},
		{Name: "the header of a leaf", Least: 500, Break: onLeaf(100, 0, []byte{13, 0, 0, 255, 255, 255, 255})},
		{Name: "last leaf", Least: 1800, Break: onLeaf(240, 0, zeros)},
		{Name: "index", Whole: true, Break: onRoot("timestamp_idx", 0, zeros)},
		{Name: "own table", Whole: true, Break: onRoot("gobag_data", 0, zeros)},
		{Name: "topics", Refused: true, Break: onRoot("topics", 0, zeros)},
		{Name: "noise for a journal", Whole: true, Break: beside("-journal", noise)},
		{Name: "zeros for a journal", Whole: true, Break: beside("-journal", zeros)},
		{Name: "noise for a log of syncs", Whole: true, Break: beside(logSuffix, noise)},
		{Name: "zeros for a log of syncs", Whole: true, Break: beside(logSuffix, zeros)},
		{Name: "noise for a log", Whole: true, Break: beside("-wal", noise)},
		{Name: "the beginning of a log", Whole: true, Break: beside("-wal", []byte{0x37, 0x7f, 6, 0x82, 0, 0x2d, 0xe2, 0x18})},
	}
}()

// TestNoise overwrites a few bytes anywhere, again and again: payloads may come back changed, since a SQLite file has
// no checksums, but nothing may panic, hang or fail with anything but a CorruptError or ErrFormat.
func TestNoise(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db3")
	writeSimple(t, path, plugin.WriteOptions{Config: map[string]any{"pragmas": []any{"page_size = 512"}}}, 300)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rounds := effort(300, 100)
	if testing.Short() {
		rounds = 30
	}
	rng := rand.New(rand.NewPCG(uint64(rounds), 3))
	opened, failed := 0, 0
	for i := range rounds {
		b := bytes.Clone(good)
		for range 1 + rng.IntN(4) {
			// Half of the damage goes where the headers of pages are.
			off := rng.IntN(len(b))
			if rng.IntN(2) == 0 {
				off = off/512*512 + rng.IntN(30)
			}
			b[off] = byte(rng.Uint32())
		}
		if rng.IntN(10) == 0 {
			b = b[:rng.IntN(len(b))]
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
		if err == nil {
			opened++
			_, err = plugintest.ReadAll(r, plugin.Query{})
			for k := range int64(30) { // the same by short ranges
				at := k * 10
				_, perr := plugintest.ReadAll(r, plugin.Query{Range: &plugin.TimeRange{Start: at, End: at + 5}, Reverse: k%2 == 0})
				if perr != nil && err == nil {
					err = perr
				}
			}
			if cerr := r.Close(); cerr != nil {
				t.Error(cerr)
			}
		}
		var corrupt *plugin.CorruptError
		if err != nil {
			failed++
			if !errors.As(err, &corrupt) && !errors.Is(err, plugin.ErrFormat) {
				t.Errorf("round %d: %v", i, err)
			}
		}
	}
	if opened < rounds/2 || failed == 0 {
		t.Errorf("of %d rounds %d opened and %d failed: the damage is not of the right kind", rounds, opened, failed)
	}
}

// writeSimple writes n messages of three topics, closed.
func writeSimple(t testing.TB, path string, o plugin.WriteOptions, n int) {
	t.Helper()
	w, err := Driver{}.Create(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/a", "/b", "/c"} {
		if _, err := w.AddTopic(plugin.Topic{Name: name, Type: "std_msgs/msg/String", SerializationFormat: "cdr"}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		m := plugin.Message{Topic: plugin.TopicID(i%3 + 1), RecvTime: int64(i), SendTime: int64(i - 1), Seq: uint64(i), Data: bytes.Repeat([]byte{byte(i)}, 100+i%300)}
		if err := w.Write([]plugin.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
}

// The count of a damaged storage says that it is one.
func TestDamagedCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db3")
	writeSimple(t, path, plugin.WriteOptions{}, 3000)
	execSQL(t, path, "DELETE FROM gobag_data WHERE id = 0") // now it has to be counted
	if i := open(t, path).Info(); i.Messages != 3000 || i.Unclean || len(i.Warnings) > 0 {
		t.Fatalf("%+v", i)
	}
	if err := onLeaf(40, 0, make([]byte, pageSize))(path); err != nil {
		t.Fatal(err)
	}
	if i := open(t, path).Info(); i.Messages < 500 || i.Messages > 2500 || !i.Unclean || !strings.Contains(strings.Join(i.Warnings, "\n"), "damaged: counted is what can be read") {
		t.Errorf("%+v", i)
	}
}

// What lies there instead of a database is named.
func TestWhatIsIt(t *testing.T) {
	for content, want := range map[string]string{
		"version https://git-lfs.github.com/spec/v1\noid": "git lfs pull",
		"#ROSBAG V2.0\n":         "ROS 1 bag",
		"\x89MCAP0\r\n and more": "MCAP",
		"\x28\xb5\x2f\xfd....":   "zstd",
		"":                       "empty file",
		"hello":                  "not a SQLite database",
	} {
		path := filepath.Join(t.TempDir(), "x.db3")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
		if !errors.Is(err, plugin.ErrFormat) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// A database that is no bag is refused with what it lacks.
func TestNoBag(t *testing.T) {
	const messages = "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)"
	for want, tables := range map[string][]string{
		"table topics has no column id":         {"CREATE TABLE x(y)"},
		"table topics has no column type":       {"CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT)", messages},
		"table messages has no column":          {"CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT)"},
		"but no bag (no such table: main.other": {"CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT)", messages, "CREATE VIEW schema AS SELECT 1 AS schema_version FROM other"},
		"but no bag (no such column: rowid": {"CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT)",
			"CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB) WITHOUT ROWID"},
	} {
		path := filepath.Join(t.TempDir(), "x.db3")
		execSQL(t, path, tables...)
		_, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
		if !errors.Is(err, plugin.ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// execSQL runs statements on a database, which it creates if need be, as some other program would.
func execSQL(t testing.TB, path string, statements ...string) {
	t.Helper()
	c, err := openConn(path, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_CREATE, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if err := c.exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
}
