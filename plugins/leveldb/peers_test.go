package leveldb

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"

	"github.com/gobag/gobag/plugin"
)

// fill fills a storage with n messages of three topics, out of order here and there, through a small write buffer.
func fill(t testing.TB, dir, preset string, n, size int) (plugin.Writer, []plugin.Message) {
	t.Helper()
	w := mustCreate(t, dir, plugin.WriteOptions{Preset: preset, Metadata: plugin.Metadata{Version: 9, Text: "x"},
		Config: map[string]any{"open_options": map[string]any{"write_buffer_size": 256 << 10, "block_size": 4096}}})
	def := plugin.Definition{Encoding: "ros2msg", Text: "int32 x"}
	for i := range 3 {
		mustTopic(t, w, plugin.Topic{Name: fmt.Sprint("/t", i), Type: "a/msg/B", Definition: def, Sources: []string{"w"}})
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var ms []plugin.Message
	for i := range n {
		stamp := int64(i) * 10
		if i%17 == 0 {
			stamp -= 500
		}
		b := make([]byte, size+i%50)
		for k := range b[:len(b)/2] {
			b[k] = byte(rng.Uint32())
		}
		m := plugin.Message{Topic: plugin.TopicID(i%3 + 1), RecvTime: stamp, SendTime: stamp - 3, Source: 1, Seq: uint64(i), Order: uint64(i + 1), Data: b}
		if err := w.Write([]plugin.Message{m}); err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m)
	}
	ww := w.(*writer)
	ww.mu.Lock() // so that nothing goes on in the directory
	defer ww.mu.Unlock()
	for ww.frozen != nil || ww.sealed != nil {
		ww.changed.Wait()
	}
	return w, ms
}

func readAll(t testing.TB, r plugin.Reader, q plugin.Query) ([]plugin.Message, error) {
	t.Helper()
	it, err := r.Messages(q)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var ms []plugin.Message
	for {
		var m plugin.Message
		if err := it.Next(&m); err != nil {
			return ms, err
		}
		m.Data = bytes.Clone(m.Data)
		ms = append(ms, m)
	}
}

// checkAll compares what r holds with ms, by Order.
func checkAll(t *testing.T, what string, got, ms []plugin.Message) {
	t.Helper()
	if len(got) != len(ms) {
		t.Fatalf("%s: %d messages, want %d", what, len(got), len(ms))
	}
	for i := range got {
		g := &got[i]
		if i > 0 && (stamp{g.RecvTime, g.Order}).less(stamp{got[i-1].RecvTime, got[i-1].Order}) {
			t.Fatalf("%s: message %d comes too late", what, i)
		}
		w := &ms[g.Order-1]
		if g.Topic != w.Topic || g.RecvTime != w.RecvTime || g.SendTime != w.SendTime || g.Source != w.Source || g.Seq != w.Seq || !bytes.Equal(g.Data, w.Data) {
			t.Fatalf("%s: message %d is %+v, want %+v", what, i, g, w)
		}
	}
}

func copyDir(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.leveldb")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// goleveldb reads what we write: closed, and as it lies there while it is written; and we read what goleveldb makes of it
// when it opens it for writing, compacts it and closes it.
func TestPeerReads(t *testing.T) {
	for _, p := range presets {
		t.Run(p.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "s.leveldb")
			w, ms := fill(t, dir, p.name, 3000, 600)
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
			live := copyDir(t, dir)
			if err := w.Close(plugin.Metadata{}); err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{dir, live} {
				c := copyDir(t, d)
				peerReads(t, c, ms)
				r := mustOpen(t, c)
				got, _ := readAll(t, r, plugin.Query{})
				checkAll(t, "after goleveldb compacted it", got, ms)
				if i := r.Info(); i.Messages != uint64(len(ms)) || len(i.Topics) != 3 || i.Unclean != (d == live) {
					t.Errorf("after goleveldb compacted it: %d messages, %d topics, unclean %v", i.Messages, len(i.Topics), i.Unclean)
				}
			}
		})
	}
}

func peerReads(t *testing.T, dir string, ms []plugin.Message) {
	t.Helper()
	db, err := leveldb.OpenFile(dir, &opt.Options{Strict: opt.StrictAll, ErrorIfMissing: true})
	if err != nil {
		t.Fatalf("goleveldb: %v", err)
	}
	defer db.Close()
	it := db.NewIterator(util.BytesPrefix([]byte{kindMessage}), nil)
	var got []plugin.Message
	for it.Next() {
		s, err := parseMessageKey(it.Key())
		m := plugin.Message{RecvTime: s.time, Order: s.order}
		if err := errors.Join(err, parseValue(bytes.Clone(it.Value()), &m)); err != nil {
			t.Fatal(err)
		}
		got = append(got, m)
	}
	it.Release()
	if err := it.Error(); err != nil {
		t.Fatalf("goleveldb: %v", err)
	}
	checkAll(t, "goleveldb", got, ms)
	if _, err := db.Get(numberKey(kindTopic, 3), nil); err != nil {
		t.Errorf("goleveldb: topic 3: %v", err)
	}
	if err := db.CompactRange(util.Range{}); err != nil {
		t.Errorf("goleveldb: compact: %v", err)
	}
}

// While we record, no LevelDB opens the directory for writing.
func TestPeerIsLockedOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.leveldb")
	w, _ := fill(t, dir, "", 10, 10)
	if db, err := leveldb.OpenFile(dir, nil); err == nil {
		_ = db.Close()
		t.Errorf("goleveldb opens a storage that is being written")
	}
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	db, err := leveldb.OpenFile(dir, nil)
	if err != nil {
		t.Fatalf("after closing: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// A LevelDB that holds no bag is refused, and so is one with other keys.
func TestForeignDatabase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.leveldb")
	db, err := leveldb.OpenFile(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Put([]byte("zebra"), []byte("x"), nil), db.Close()); err != nil {
		t.Fatal(err)
	}
	if ok, err := (Driver{}).Detect(dir); ok || err != nil {
		t.Errorf("detect: %v %v", ok, err)
	}
	if _, err := (Driver{}).OpenReader(t.Context(), dir, plugin.ReadOptions{}); !errors.Is(err, plugin.ErrFormat) {
		t.Errorf("open: %v, want ErrFormat", err)
	}
}

// A reader finds two journals right after a write buffer was handed over, and needs no lock.
func TestTwoJournals(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.leveldb")
	w, ms := fill(t, dir, plugin.PresetNone, 50, 100)
	ww := w.(*writer)
	ww.mu.Lock() // the flusher waits, so the frozen buffer stays in its journal
	ww.frozen, ww.mem = ww.mem, newMemtable(&ww.set)
	ww.mem.num = ww.newNumber()
	if err := ww.frozen.journal.flush(); err != nil {
		t.Fatal(err)
	}
	more := plugin.Message{Topic: 1, RecvTime: 7, SendTime: 6, Order: 51, Data: []byte("x")}
	ww.mem.seq, ww.order = messageSeq+50, 51
	ww.mem.add(&more, 51)
	if err := errors.Join(ww.journal(ww.mem), ww.mem.journal.flush()); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, dir)
	got, _ := readAll(t, r, plugin.Query{})
	checkAll(t, "two journals", got, append(ms, more))
	ww.changed.Broadcast()
	ww.mu.Unlock()
}
