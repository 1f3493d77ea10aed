package sqlite

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

func open(t testing.TB, path string) plugin.Reader {
	t.Helper()
	r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db3")
	w, err := Driver{}.Create(context.Background(), path, plugin.WriteOptions{ROSDistro: "jazzy"})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "std_msgs/msg/String", SerializationFormat: "cdr", Sources: []string{"x", "y"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		m := plugin.Message{Topic: id, RecvTime: int64(1000 + i/2), SendTime: int64(i), Source: uint32(i%2 + 1), Seq: uint64(i), Data: []byte{1, 2, 3, byte(i)}}
		if err := w.Write([]plugin.Message{m}); err != nil {
			t.Fatal(err)
		}
		if i == 1500 {
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(n int, unclean bool) {
		r := open(t, path)
		if i := r.Info(); i.Messages != uint64(n) || i.Unclean != unclean || i.Format != "schema 4" || i.Start != 1000 || i.Topics[0].Count != uint64(n) {
			t.Fatalf("%+v", i)
		}
		ms, err := plugintest.ReadAll(r, plugin.Query{})
		if err != nil || len(ms) != n {
			t.Fatal(len(ms), err)
		}
		for i, m := range ms {
			if m.Seq != uint64(i) || m.SendTime != int64(i) || m.Order != uint64(i+1) || m.Source != uint32(i%2+1) || m.Data[3] != byte(i) {
				t.Fatalf("%d: %+v", i, m)
			}
		}
	}
	check(1501, true)
	if err := w.Close(plugin.Metadata{Version: 9, Text: "version: 9\n"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	check(3000, false)
	r, err := openReader(context.Background(), path, plugin.ReadOptions{})
	if err != nil || !r.settled {
		t.Errorf("a closed storage is not taken as settled: %v", err)
	}
	r.Close()
	fi, err := os.Stat(path)
	if err != nil || fi.Size() != w.Size() {
		t.Fatal(fi.Size(), w.Size(), err)
	}
	if es, _ := os.ReadDir(filepath.Dir(path)); len(es) != 1 {
		t.Fatal(es)
	}
	cli, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("no sqlite3 command")
	}
	out, err := exec.Command(cli, path, "PRAGMA integrity_check; SELECT count(*) FROM messages; SELECT * FROM schema").CombinedOutput()
	if err != nil || string(out) != "ok\n3000\n4|jazzy\n" {
		t.Fatalf("%s %v", out, err)
	}
}

// Whatever was committed before, a storage closed in order is read without checks and counts.
func TestSettled(t *testing.T) {
	for name, c := range map[string]struct {
		o        plugin.WriteOptions
		messages int
		sync     bool
		size     int
	}{
		"empty":          {},
		"one commit":     {messages: 10},
		"two commits":    {messages: 10, sync: true},
		"many":           {messages: 5000, sync: true},
		"commits":        {messages: 3000, size: 10000},
		"normal locking": {messages: 10, sync: true, o: plugin.WriteOptions{Config: map[string]any{"pragmas": []any{"locking_mode = NORMAL"}}}},
		"wal":            {messages: 10, sync: true, o: plugin.WriteOptions{Config: map[string]any{"pragmas": []any{"journal_mode = WAL"}}}},
		"memory":         {messages: 10, o: plugin.WriteOptions{Config: map[string]any{"pragmas": []string{"journal_mode(MEMORY)", "synchronous=OFF", "page_size=4096"}}}},
		"humble":         {messages: 10, o: plugin.WriteOptions{Compat: plugin.CompatHumble}},
	} {
		path := filepath.Join(t.TempDir(), "a.db3")
		w, err := Driver{}.Create(context.Background(), path, c.o)
		if err != nil {
			t.Fatal(name, err)
		}
		id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "std_msgs/msg/String"})
		if err != nil {
			t.Fatal(name, err)
		}
		for i := range c.messages {
			if err := w.Write([]plugin.Message{{Topic: id, RecvTime: int64(i), Data: make([]byte, 100+c.size)}}); err != nil {
				t.Fatal(name, err)
			}
			if c.sync && i%7 == 0 {
				if err := w.Sync(); err != nil {
					t.Fatal(name, err)
				}
			}
		}
		if err := w.Close(plugin.Metadata{Version: 9, Text: "version: 9"}); err != nil {
			t.Fatal(name, err)
		}
		r, err := openReader(context.Background(), path, plugin.ReadOptions{})
		if err != nil {
			t.Fatal(name, err)
		}
		if i := r.Info(); !r.settled || i.Unclean || i.Messages != uint64(c.messages) || len(i.Warnings) > 0 {
			t.Errorf("%s: settled %v, %+v", name, r.settled, i)
		}
		if ms, err := plugintest.ReadAll(r, plugin.Query{}); err != nil || len(ms) != c.messages {
			t.Errorf("%s: %d messages, %v", name, len(ms), err)
		}
		r.Close()
	}
}
