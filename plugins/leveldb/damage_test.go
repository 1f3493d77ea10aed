package leveldb

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// The suite's storage: one table of 2 MB with the messages (000005.ldb), one with the description (000006.ldb).
const (
	messagesTable    = "000005.ldb"
	descriptionTable = "000006.ldb"
)

var damageTable = []plugintest.Damage{
	{Name: "byte flipped in the middle", Break: flip(messagesTable, 1_000_000), Least: 900, Offset: true},
	{Name: "byte flipped in the first block", Break: flip(messagesTable, 500), Offset: true},
	{Name: "zeros in the middle", Break: zero(messagesTable, 1_500_000, 8192), Least: 1300, Offset: true},
	{Name: "magic number", Break: flip(messagesTable, -1), Offset: true},
	{Name: "footer", Break: zero(messagesTable, -48, 20), Offset: true},
	{Name: "index", Break: flip(messagesTable, -1000), Offset: true},
	{Name: "table cut off", Break: cut(messagesTable, -100), Offset: true},
	{Name: "table cut in the middle", Break: cut(messagesTable, 1_000_000), Offset: true},
	{Name: "table empty", Break: cut(messagesTable, 0), Offset: true},
	{Name: "bytes behind a table", Break: grown(messagesTable), Whole: true},
	{Name: "table missing", Break: missing(messagesTable), Offset: true},
	{Name: "description flipped", Break: flip(descriptionTable, 20), Refused: true},
	{Name: "description cut off", Break: cut(descriptionTable, -20), Refused: true},
	{Name: "description missing", Break: missing(descriptionTable), Refused: true},
	{Name: "CURRENT flipped", Break: flip(currentFile, 3), Refused: true},
	{Name: "CURRENT names another", Break: flip(currentFile, 14), Refused: true},
	{Name: "CURRENT empty", Break: cut(currentFile, 0), Refused: true},
	{Name: "CURRENT missing", Break: missing(currentFile), Refused: true},
	{Name: "MANIFEST flipped", Break: flip("MANIFEST-000001", 20), Refused: true},
	{Name: "MANIFEST flipped in the last record", Break: flip("MANIFEST-000001", -5), Refused: true},
	{Name: "MANIFEST cut", Break: cut("MANIFEST-000001", -5), Refused: true},
	{Name: "MANIFEST cut to its first record", Break: cut("MANIFEST-000001", 43), Refused: true},
	{Name: "MANIFEST empty", Break: cut("MANIFEST-000001", 0), Refused: true},
	{Name: "MANIFEST missing", Break: missing("MANIFEST-000001"), Refused: true},
}

// edit changes the content of a file of a storage.
func editFile(name string, f func([]byte) []byte) func(string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, f(b), 0o644)
	}
}

// at counts from the end where it is negative.
func at(b []byte, off int) int {
	if off < 0 {
		return len(b) + off
	}
	return off
}

func flip(name string, off int) func(string) error {
	return editFile(name, func(b []byte) []byte { b[at(b, off)] ^= 0x10; return b })
}

func zero(name string, off, n int) func(string) error {
	return editFile(name, func(b []byte) []byte { clear(b[at(b, off) : at(b, off)+n]); return b })
}

func cut(name string, n int) func(string) error {
	return editFile(name, func(b []byte) []byte { return b[:at(b, n)] })
}

func grown(name string) func(string) error {
	return editFile(name, func(b []byte) []byte { return append(b, make([]byte, 5000)...) })
}

func missing(name string) func(string) error {
	return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
}

// Every byte of a small storage is flipped in turn: what is read is right, or there is an error that says where.
func TestFlipEveryByte(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.leveldb")
	w := mustCreate(t, dir, plugin.WriteOptions{})
	mustTopic(t, w, plugin.Topic{Name: "/a", Type: "b", Definition: plugin.Definition{Encoding: "ros2msg", Text: "int32 x"}})
	var ms []plugin.Message
	for i := range 20 {
		ms = append(ms, plugin.Message{Topic: 1, RecvTime: int64(i), SendTime: 3, Order: uint64(i + 1), Data: bytes.Repeat([]byte{byte(i)}, 40)})
	}
	if err := w.Write(ms); err != nil {
		t.Fatal(err)
	}
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	live := copyDir(t, dir)
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, live} {
		files, err := filepath.Glob(filepath.Join(d, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := range b {
				b[i] ^= 0x21
				if err := os.WriteFile(path, b, 0o644); err != nil {
					t.Fatal(err)
				}
				flipped(t, d, path, i, ms)
				b[i] ^= 0x21
			}
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func flipped(t *testing.T, dir, path string, off int, ms []plugin.Message) {
	t.Helper()
	var corrupt *plugin.CorruptError
	r, err := Driver{}.OpenReader(t.Context(), dir, plugin.ReadOptions{})
	if err != nil {
		if !errors.As(err, &corrupt) && !errors.Is(err, plugin.ErrFormat) {
			t.Fatalf("%s byte %d: open: %v", path, off, err)
		}
		return
	}
	defer r.Close()
	got, err := readAll(t, r, plugin.Query{})
	if !errors.Is(err, io.EOF) && !errors.As(err, &corrupt) {
		t.Fatalf("%s byte %d: read: %v", path, off, err)
	}
	if errors.As(err, &corrupt) && corrupt.Offset < 0 {
		t.Fatalf("%s byte %d: %v does not say where", path, off, err)
	}
	if errors.Is(err, io.EOF) && len(got) < len(ms) && !r.Info().Unclean {
		t.Fatalf("%s byte %d: %d of %d messages without a word", path, off, len(got), len(ms))
	}
	checkAll(t, "flipped", got, ms[:len(got)])
}

// A flipped byte in a journal is no torn end: what comes before is read, then comes the error, and no hole in between.
func TestJournalDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.leveldb")
	w, _ := fill(t, dir, "", 200, 600)
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	live := copyDir(t, dir)
	if err := flip("000003.log", 60_000)(live); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, live)
	got, err := readAll(t, r, plugin.Query{})
	var corrupt *plugin.CorruptError
	if !errors.As(err, &corrupt) || corrupt.Offset < 60_000-journalRecord-1000 || corrupt.Offset > 60_000 || filepath.Base(corrupt.Path) != "000003.log" {
		t.Errorf("read: %v, want a CorruptError just before byte 60000 of 000003.log", err)
	}
	for i := range got {
		if got[i].Order > uint64(len(got)) {
			t.Fatalf("a hole before message %d", got[i].Order)
		}
	}
	if i := r.Info(); !i.Unclean || len(i.Warnings) == 0 || i.Messages != uint64(len(got)) {
		t.Errorf("info: unclean %v, %d messages, warnings %q; read were %d", i.Unclean, i.Messages, i.Warnings, len(got))
	}
}

// A torn end, as a power cut leaves it, ends reading without an error, whatever its length; the rest is whole.
func TestTornJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.leveldb")
	w, ms := fill(t, dir, "", 100, 700)
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(filepath.Join(dir, "000003.log"))
	if err != nil {
		t.Fatal(err)
	}
	for n := fi.Size() - 1; n > 0; n -= 997 {
		live := copyDir(t, dir)
		if err := cut("000003.log", int(n))(live); err != nil {
			t.Fatal(err)
		}
		r := mustOpen(t, live)
		got, err := readAll(t, r, plugin.Query{})
		if !errors.Is(err, io.EOF) || len(got) == len(ms) {
			t.Fatalf("cut at %d: %d messages, %v", n, len(got), err)
		}
		checkAll(t, "torn", got, ms[:len(got)])
		if i := r.Info(); i.Messages != uint64(len(got)) || !i.Unclean {
			t.Fatalf("cut at %d: info says %d messages, unclean %v", n, i.Messages, i.Unclean)
		}
		_ = r.Close()
	}
	// Blocks that the system had not written yet are zeros.
	live := copyDir(t, dir)
	if err := zero("000003.log", 40_000, int(fi.Size())-40_000)(live); err != nil {
		t.Fatal(err)
	}
	got, err := readAll(t, mustOpen(t, live), plugin.Query{})
	if !errors.Is(err, io.EOF) || len(got) < 40 {
		t.Errorf("zeros at the end: %d messages, %v", len(got), err)
	}
}

// A crash between the end of a table and the edit that names it leaves the table behind; its messages come from the
// journal. One between the edit and the removal of the journal leaves that behind.
func TestLeftovers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.leveldb")
	w, ms := fill(t, dir, "", 1000, 600)
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	live := copyDir(t, dir)
	if err := os.WriteFile(filepath.Join(live, "000999.ldb"), []byte("half a table"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(live, "000001.log"), []byte("an old journal"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, live)
	got, err := readAll(t, r, plugin.Query{})
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	checkAll(t, "leftovers", got, ms)
}

// After a power cut the journal of the description may lack the counts of the last tables: they are read.
func TestCountsLost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.leveldb")
	w, ms := fill(t, dir, plugin.PresetFast, 2000, 600)
	if err := w.(*writer).flushForTest(); err != nil {
		t.Fatal(err)
	}
	live := copyDir(t, dir)
	if err := cut("000002.log", -40)(live); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, live)
	got, err := readAll(t, r, plugin.Query{})
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	checkAll(t, "counts lost", got, ms)
	i := r.Info()
	if i.Messages != uint64(len(ms)) || i.Start != got[0].RecvTime || i.End != got[len(got)-1].RecvTime {
		t.Errorf("info: %d messages from %d to %d", i.Messages, i.Start, i.End)
	}
	var n int64
	for _, m := range ms {
		n += int64(len(m.Data))
	}
	if i.Topics[0].Bytes+i.Topics[1].Bytes+i.Topics[2].Bytes != n {
		t.Errorf("payload bytes: %d %d %d, want %d in all", i.Topics[0].Bytes, i.Topics[1].Bytes, i.Topics[2].Bytes, n)
	}
}

func (w *writer) flushForTest() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flushNow()
}

// What a damaged storage still holds comes out of it, and what is gone is counted.
func TestSalvage(t *testing.T) {
	for _, c := range []struct {
		name string
		live bool
		do   func(string) error
		lost bool
		note string
	}{
		{"nothing", false, func(string) error { return nil }, false, ""},
		{"MANIFEST", false, missing("MANIFEST-000001"), false, ""},
		{"CURRENT", false, missing(currentFile), false, ""},
		{"block", false, flip(messagesTable, 50_000), true, messagesTable},
		{"index", false, flip(messagesTable, -300), false, "its blocks are looked for"},
		{"cut", false, cut(messagesTable, 100_000), true, "nothing to be read from"},
		{"description", false, flip("000020.ldb", 10), true, "no record of"},
		{"journal", true, nil, true, "damaged at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "s.leveldb")
			w, ms := fill(t, dir, "", 3000, 600)
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
			damaged := copyDir(t, dir)
			if err := w.Close(plugin.Metadata{}); err != nil {
				t.Fatal(err)
			}
			if !c.live {
				damaged = copyDir(t, dir)
			} else {
				logs, _ := filepath.Glob(filepath.Join(damaged, "*.log"))
				c.do = flip(filepath.Base(logs[len(logs)-1]), 40_000)
			}
			if c.name == "description" {
				tables, _ := filepath.Glob(filepath.Join(damaged, "*.ldb"))
				c.do = flip(filepath.Base(tables[len(tables)-1]), 10)
			}
			if err := c.do(damaged); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(t.TempDir(), "out.leveldb")
			to := mustCreate(t, out, plugin.WriteOptions{})
			rep, err := Driver{}.Salvage(t.Context(), damaged, to)
			if err != nil {
				t.Fatal(err)
			}
			if err := to.Close(plugin.Metadata{}); err != nil {
				t.Fatal(err)
			}
			r := mustOpen(t, out)
			got, _ := readAll(t, r, plugin.Query{})
			if rep.Messages != uint64(len(got)) || (rep.Lost > 0) != c.lost && !c.live || c.lost == (len(got) == len(ms)) {
				t.Errorf("%d messages of %d, report %+v", len(got), len(ms), rep)
			}
			if !c.live && int(rep.Messages+rep.Lost) != len(ms) {
				t.Errorf("%d kept and %d lost of %d", rep.Messages, rep.Lost, len(ms))
			}
			if !strings.Contains(strings.Join(rep.Notes, "\n"), c.note) {
				t.Errorf("notes %q do not say %q", rep.Notes, c.note)
			}
			if c.name != "description" && len(r.Info().Topics) != 3 {
				t.Errorf("%d topics", len(r.Info().Topics))
			}
			byData := map[string]bool{}
			for i := range ms {
				byData[string(ms[i].Data)] = true
			}
			for i := range got {
				if !byData[string(got[i].Data)] {
					t.Fatalf("message %d was never written", i)
				}
			}
		})
	}
}
