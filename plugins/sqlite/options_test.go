package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

func TestParsePragma(t *testing.T) {
	for in, want := range map[string]string{
		"journal_mode = WAL":     "PRAGMA journal_mode = WAL",
		"journal_mode=wal":       "PRAGMA journal_mode = wal",
		" Cache_Size ( -2000 ) ": "PRAGMA cache_size = -2000",
		"mmap_size(268435456)":   "PRAGMA mmap_size = 268435456",
		"wal_checkpoint":         "PRAGMA wal_checkpoint",
		"synchronous = 1":        "PRAGMA synchronous = 1",
	} {
		p, err := parsePragma(in)
		if err != nil || p.sql() != want {
			t.Errorf("%q: %q, %v", in, p.sql(), err)
		}
	}
	for _, in := range []string{
		"", " ", "= 1", "a b = 1", "a = ", "a()", "a(1", "a = 1 2", "a = 1; DROP TABLE messages", "a = 'x'", `a = "x"`, "a = b = c", "a(1)b",
		"main.journal_mode = OFF", "a = (1)", "a = 1--", "a\n= 1\nb", "é = 1",
	} {
		if p, err := parsePragma(in); err == nil && in != "a = 1--" {
			t.Errorf("%q is accepted: %q", in, p.sql())
		} else if err != nil && in != "" && !strings.Contains(err.Error(), fmt.Sprintf("%q", in)) {
			t.Errorf("%q: %v does not name it", in, err)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		config map[string]any
		want   string // in the error
	}{
		{map[string]any{"pragma": []any{}}, `unknown storage configuration key "pragma" (there is: pragmas)`},
		{map[string]any{"pragmas": "journal_mode = WAL"}, "want a list of strings"},
		{map[string]any{"pragmas": []any{1}}, "1 is not a string"},
		{map[string]any{"pragmas": []any{"no_such_pragma = 1"}}, `unknown pragma "no_such_pragma" (there is: `},
		{map[string]any{"pragmas": []any{"journal_mode = SIDEWAYS"}}, "pragma journal_mode: asked for SIDEWAYS, got"},
		{map[string]any{"pragmas": []any{"journal_mode = 'WAL'"}}, "is not allowed"},
	} {
		path := filepath.Join(t.TempDir(), "a.db3")
		_, err := Driver{}.Create(context.Background(), path, plugin.WriteOptions{Config: c.config})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.config, err, c.want)
		}
		if es, _ := os.ReadDir(filepath.Dir(path)); len(es) > 0 {
			t.Errorf("%v: a failed Create left %v", c.config, es)
		}
	}
	// Readers take the same key, for their own connections.
	path := filepath.Join(t.TempDir(), "a.db3")
	writeSimple(t, path, plugin.WriteOptions{}, 30)
	r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{Config: map[string]any{"pragmas": []any{"cache_size = 10"}}})
	if err != nil {
		t.Fatal(err)
	}
	if ms, err := plugintest.ReadAll(r, plugin.Query{}); err != nil || len(ms) != 30 {
		t.Error(len(ms), err)
	}
	r.Close()
	for _, p := range []string{"no_such_pragma", "journal_mode = WAL"} {
		if r, err := (Driver{}).OpenReader(context.Background(), path, plugin.ReadOptions{Config: map[string]any{"pragmas": []any{p}}}); err == nil {
			t.Errorf("reading with pragma %s is accepted", p)
			r.Close()
		}
	}
}

// A user's pragmas beat the preset's.
func TestPragmasBeatPreset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db3")
	w, err := create(context.Background(), path, plugin.WriteOptions{Config: map[string]any{"pragmas": []any{
		"page_size = 8192", "synchronous = OFF", "locking_mode(NORMAL)", "journal_mode = TRUNCATE"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(plugin.Metadata{})
	for p, want := range map[string]string{"page_size": "8192", "synchronous": "0", "locking_mode": "normal", "journal_mode": "truncate"} {
		if got, err := w.e.(*sqlEngine).c.queryText("PRAGMA " + p); got != want || err != nil {
			t.Errorf("%s is %q, want %q (%v)", p, got, want, err)
		}
	}
}

// A full disk ends the writing with one error for all that follows; what was synced stays, and the file opens.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db3")
	w, err := Driver{}.Create(context.Background(), path, plugin.WriteOptions{Config: map[string]any{"pragmas": []any{"max_page_count = 20"}}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "std_msgs/msg/String"})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	for n = 0; err == nil && n < 1000; n++ {
		if n == 5 {
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		err = w.Write([]plugin.Message{{Topic: id, RecvTime: int64(n), Data: make([]byte, 60_000)}})
	}
	if err == nil || !strings.Contains(err.Error(), "full (13)") || !strings.Contains(err.Error(), path) {
		t.Fatalf("after %d messages: %v", n, err)
	}
	_, err2 := w.AddTopic(plugin.Topic{Name: "/b"})
	for _, later := range []error{w.Write(nil), w.Sync(), err2} {
		if later == nil || later.Error() != err.Error() {
			t.Errorf("later: %v, want %v", later, err)
		}
	}
	if cerr := w.Close(plugin.Metadata{}); !errors.Is(cerr, err) {
		t.Errorf("close: %v", cerr)
	}
	if cerr := w.Close(plugin.Metadata{}); cerr != nil {
		t.Errorf("close again: %v", cerr)
	}
	r := open(t, path)
	ms, err := plugintest.ReadAll(r, plugin.Query{})
	if err != nil || len(ms) < 5 || !r.Info().Unclean {
		t.Errorf("%d messages, %v, %+v", len(ms), err, r.Info())
	}
}

// Leftovers of a storage that is gone would be played back into the new one.
func TestLeftovers(t *testing.T) {
	for _, side := range sides {
		path := filepath.Join(t.TempDir(), "a.db3")
		if err := os.WriteFile(path+side, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := (Driver{}).Create(context.Background(), path, plugin.WriteOptions{}); !errors.Is(err, plugin.ErrExists) || !strings.Contains(err.Error(), "a.db3"+side) {
			t.Errorf("%s: %v", side, err)
		}
	}
}

func TestCreateNowhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent", "a.db3")
	_, err := Driver{}.Create(context.Background(), path, plugin.WriteOptions{})
	if !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "remove") {
		t.Error(err)
	}
}

func TestUnknownCompat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db3")
	_, err := Driver{}.Create(context.Background(), path, plugin.WriteOptions{Compat: "foxy"})
	if err == nil || !strings.Contains(err.Error(), `"foxy" (there is: jazzy, humble)`) {
		t.Error(err)
	}
	if es, _ := os.ReadDir(filepath.Dir(path)); len(es) > 0 {
		t.Errorf("left %v", es)
	}
}

// The tables are rosbag2's, to the letter, and no others but one.
func TestSchema(t *testing.T) {
	for compat, golden := range map[plugin.Compat]string{plugin.CompatHumble: "3", plugin.CompatJazzy: "4"} {
		path := filepath.Join(t.TempDir(), "a.db3")
		writeSimple(t, path, plugin.WriteOptions{Compat: compat, ROSDistro: "x"}, 1)
		var got strings.Builder
		c, err := openView(mustView(t, path), nil)
		if err != nil {
			t.Fatal(err)
		}
		err = c.query("SELECT sql FROM sqlite_master ORDER BY rowid", func(s *stmt) error {
			got.WriteString(s.text(0) + "\n")
			return nil
		})
		if err == nil {
			var row string
			row, err = c.queryText("SELECT schema_version || ' ' || ros_distro FROM schema")
			got.WriteString(row + "\n")
		}
		if err := errors.Join(err, c.closeAll()); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("testdata", "schema"+golden+".sql"))
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("got\n%s\nwant\n%s", got.String(), want)
		}
	}
}

func mustView(t *testing.T, path string) *view {
	t.Helper()
	f, err := openFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	v, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
