package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// oddBag makes a database of rosbag2's schema 2 with the statements run on it; a pragma among them comes first.
func oddBag(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "odd.db3")
	var first []string
	if len(statements) > 0 && strings.HasPrefix(statements[0], "PRAGMA") {
		first, statements = slices.Clone(statements[:1]), statements[1:]
	}
	execSQL(t, path, append(append(first,
		"CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,serialization_format TEXT NOT NULL,offered_qos_profiles TEXT NOT NULL)",
		"CREATE TABLE messages(id INTEGER PRIMARY KEY,topic_id INTEGER NOT NULL,timestamp INTEGER NOT NULL, data BLOB NOT NULL)",
	), statements...)...)
	return path
}

const (
	withIndex = "CREATE INDEX timestamp_idx ON messages (timestamp ASC)"
	topicA    = "INSERT INTO topics VALUES (1, '/a', 'std_msgs/msg/String', 'cdr', '')"
	topicB    = "INSERT INTO topics VALUES (2, '/b', 'std_msgs/msg/String', 'json', '')"
)

func TestOddTables(t *testing.T) {
	for _, c := range []struct {
		name       string
		statements []string
		want       string // name:count of the topics, then the payloads in order
		warning    string
	}{
		{"a topic twice", []string{withIndex, topicA, topicB, "INSERT INTO topics VALUES (7, '/a', 'std_msgs/msg/String', 'cdr', '')",
			"INSERT INTO messages VALUES (1, 7, 30, 'c'), (2, 2, 20, 'b'), (3, 1, 10, 'a')"}, "/a:2 /b:1 abc", "stands twice"},
		{"one name, two types", []string{withIndex, topicA, "INSERT INTO topics VALUES (2, '/a', 'std_msgs/msg/Int8', 'cdr', '')",
			"INSERT INTO messages VALUES (1, 2, 30, 'c'), (2, 1, 10, 'a')"}, "/a:1 /a:1 ac", ""},
		{"no index", []string{topicA, topicB, "INSERT INTO messages VALUES (1, 1, 30, 'c'), (2, 2, 10, 'a'), (3, 1, 10, 'b')"}, "/a:2 /b:1 abc", "no index"},
		{"orphans", []string{withIndex, topicA, "INSERT INTO messages VALUES (1, 9, 5, 'x'), (2, 1, 10, 'a'), (3, 8, 15, 'x')"}, "/a:1 a", "2 messages belong to no topic"},
		{"two-part type", []string{withIndex, "INSERT INTO topics VALUES (1, '/a', 'std_msgs/String', 'cdr', '')", "INSERT INTO messages VALUES (1, 1, 1, 'a')"}, "/a:1 a", "two-part"},
		{"ids from far away", []string{withIndex, "INSERT INTO topics VALUES (-5, '/n', 'a/msg/B', 'cdr', ''), (0, '/z', 'a/msg/B', 'cdr', ''), (9223372036854775807, '/m', 'a/msg/B', 'cdr', '')",
			"INSERT INTO messages VALUES (-3, -5, 1, 'b'), (-4, 0, 1, 'a'), (9223372036854775807, 9223372036854775807, 1, 'c')"}, "/n:1 /z:1 /m:1 abc", ""},
		{"newer schema", []string{withIndex, topicA, "CREATE TABLE schema(schema_version INTEGER PRIMARY KEY,ros_distro TEXT NOT NULL)", "INSERT INTO schema VALUES (5, 'next')",
			"INSERT INTO messages VALUES (1, 1, 1, 'a')"}, "/a:1 a", "schema 5 is newer"},
		{"payload as text", []string{withIndex, topicA, "INSERT INTO messages VALUES (1, 1, 1, 'aé'), (2, 1, 2, x'')"}, "/a:2 aé", ""},
		{"another index", []string{"CREATE INDEX \"odd \"\"name\" ON messages (timestamp)", topicA, "INSERT INTO messages VALUES (1, 1, 2, 'b'), (2, 1, 1, 'a')"}, "/a:2 ab", ""},
		{"indexes that do not serve", []string{"CREATE INDEX a ON messages (topic_id, timestamp)", "CREATE INDEX b ON messages (timestamp, topic_id)",
			"CREATE INDEX c ON messages (timestamp) WHERE topic_id = 2", topicA, "INSERT INTO messages VALUES (1, 1, 2, 'b'), (2, 1, 1, 'a')"}, "/a:2 ab", "no index"},
		{"index downwards", []string{"CREATE INDEX timestamp_idx ON messages (timestamp DESC)", topicA, "INSERT INTO messages VALUES (1, 1, 2, 'c'), (2, 1, 1, 'a'), (3, 1, 1, 'b')"}, "/a:3 abc", ""},
		{"odd names", []string{withIndex, "INSERT INTO topics VALUES (1, '/o''brien', 'a/msg/B', 'cdr', ''), (2, cast(x'2ffffe' as text), 'a/msg/B', 'cdr', '')",
			"INSERT INTO messages VALUES (1, 1, 1, 'a'), (2, 2, 2, 'b')"}, "/o'brien:1 /\xff\xfe:1 ab", ""},
		{"no messages", []string{withIndex, topicA}, "/a:0 ", ""},
		{"no topics", []string{withIndex}, "", ""},
		{"own table of someone else", []string{withIndex, topicA, "CREATE TABLE gobag_data(x)", "INSERT INTO messages VALUES (1, 1, 1, 'a')"}, "/a:1 a", ""},
		{"own table of another version", []string{withIndex, topicA, "CREATE TABLE gobag_data(id INTEGER PRIMARY KEY, data BLOB)",
			"INSERT INTO gobag_data VALUES (0, '{\"format\":2,\"closed\":true}')", "INSERT INTO messages VALUES (1, 1, 1, 'a')"}, "/a:1 a", "format unknown here"},
		{"own table cut off", []string{withIndex, topicA, "CREATE TABLE gobag_data(id INTEGER PRIMARY KEY, data BLOB)",
			"INSERT INTO gobag_data VALUES (0, '{\"format\":1,')", "INSERT INTO messages VALUES (1, 1, 1, 'a')"}, "/a:1 a", "left out (unexpected end of JSON input)"},
		{"utf-16", []string{"PRAGMA encoding = 'UTF-16le'", withIndex, strings.Replace(topicA, "/a", "/ä", 1), "INSERT INTO messages VALUES (1, 1, 1, x'61')"}, "/ä:1 a", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := open(t, oddBag(t, c.statements...))
			info := r.Info()
			got := ""
			for _, ti := range info.Topics {
				got += fmt.Sprintf("%s:%d ", ti.Name, ti.Count)
			}
			ms, err := plugintest.ReadAll(r, plugin.Query{})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range ms {
				got += string(m.Data)
			}
			if got != c.want || info.Messages != uint64(len(ms)) || info.Unclean {
				t.Errorf("got %q, want %q; %+v", got, c.want, info)
			}
			all := strings.Join(info.Warnings, "\n")
			if c.warning == "" && all != "" || !strings.Contains(all, c.warning) {
				t.Errorf("warnings %q, want %q", all, c.warning)
			}
			back, err := plugintest.ReadAll(r, plugin.Query{Reverse: true})
			if err != nil || len(back) != len(ms) {
				t.Fatal(len(back), err)
			}
			for i := range back {
				if o := ms[len(ms)-1-i]; string(o.Data) != string(back[i].Data) || o.Topic != back[i].Topic {
					t.Errorf("backwards, message %d is %+v, want %+v", i, back[i], o)
				}
			}
			for _, ti := range info.Topics {
				if ms, err := plugintest.ReadAll(r, plugin.Query{Topics: []plugin.TopicID{ti.ID}}); err != nil || uint64(len(ms)) != ti.Count {
					t.Errorf("topic %q: %d messages, %v, want %d", ti.Name, len(ms), err, ti.Count)
				}
			}
		})
	}
}

// What cannot be a message ends the reading with an error that names it.
func TestOddMessages(t *testing.T) {
	for _, c := range []struct{ row, want string }{
		{"(2, 1, 2, 17)", "message 2: the payload is no blob"},
		{"(2, 1, 'soon', 'x')", "message 2: the time stamp is no integer"},
		{"(2, 1, 1.5, 'x')", "message 2: the time stamp is no integer"},
	} {
		r := open(t, oddBag(t, withIndex, topicA, "INSERT INTO messages VALUES (1, 1, 1, 'a')", "INSERT INTO messages VALUES "+c.row))
		ms, err := plugintest.ReadAll(r, plugin.Query{})
		var corrupt *plugin.CorruptError
		if len(ms) != 1 || !errors.As(err, &corrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d messages, %v", c.row, len(ms), err)
		}
	}
}

// rosbag2 files the definitions of services and actions under the service or action.
func TestDefinitionsOfServices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db3")
	execSQL(t, path, append(append([]string{}, tables4...), tablesLast[:2]...)...)
	execSQL(t, path,
		"INSERT INTO topics VALUES (1, '/s', 'x/srv/Add_Event', 'cdr', '', 'RIHS01_1'), (2, '/f', 'x/action/Fib_FeedbackMessage', 'cdr', '', ''), (3, '/g', 'x/action/Fib_SendGoal_Event', 'cdr', '', ''), (4, '/h', 'x/msg/Other', 'cdr', '', 'RIHS01_9')",
		"INSERT INTO message_definitions VALUES (1, 'x/srv/Add', 'ros2msg', 'service', 'RIHS01_s'), (2, 'x/action/Fib', 'ros2idl', 'action', ''), (3, 'x/msg/Renamed', 'ros2msg', 'by hash', 'RIHS01_9'), (4, 'x/msg/None', 'unknown', '', '')")
	var got []string
	for _, ti := range open(t, path).Info().Topics {
		got = append(got, ti.Definition.Encoding+" "+ti.Definition.Text)
	}
	if s := strings.Join(got, ", "); s != "ros2msg service, ros2idl action, ros2idl action, ros2msg by hash" {
		t.Error(s)
	}
}

// liveCopy copies what a connection that is still open has on disk.
func liveCopy(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(path))); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, filepath.Base(path))
}

// list is the names and contents of a directory.
func list(t *testing.T, dir string) string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, e := range es {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out += fmt.Sprintf("%s %d %08x\n", e.Name(), len(b), fold(b))
	}
	return out
}

func payloads(t *testing.T, r plugin.Reader) string {
	t.Helper()
	ms, err := plugintest.ReadAll(r, plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	s := ""
	for _, m := range ms {
		s += string(m.Data)
	}
	return s
}

// A write-ahead log that was left behind is read, and one that is missing is not missed, without touching anything.
func TestWAL(t *testing.T) {
	path := oddBag(t, withIndex, topicA)
	c, err := openConn(path, sqlite3.SQLITE_OPEN_READWRITE, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	run := func(sql string) {
		t.Helper()
		if _, err := c.queryText(sql); err != nil {
			t.Fatal(sql, err)
		}
	}
	run("PRAGMA journal_mode = WAL")
	run("PRAGMA wal_autocheckpoint = 0")
	run("PRAGMA cache_size = 5")
	expect := func(want string, unclean bool) {
		t.Helper()
		cp := liveCopy(t, path)
		if err := os.Remove(cp + "-shm"); err != nil {
			t.Fatal(err)
		}
		before := list(t, filepath.Dir(cp))
		r := open(t, cp)
		if got := payloads(t, r); got != want || r.Info().Unclean != unclean {
			t.Errorf("read %q, want %q; unclean %v", got, want, r.Info().Unclean)
		}
		if after := list(t, filepath.Dir(cp)); after != before {
			t.Errorf("before\n%safter\n%s", before, after)
		}
		live := open(t, path) // the original, while its writer has it open
		if got := payloads(t, live); got != want {
			t.Errorf("beside the writer: %q, want %q", got, want)
		}
	}
	run("INSERT INTO messages VALUES (1, 1, 1, 'a')")
	expect("a", true)
	run("INSERT INTO messages VALUES (2, 1, 2, 'b')")
	expect("ab", true)
	// A transaction that is not finished but has overflowed into the log.
	run("BEGIN")
	for i := range 40 {
		run(fmt.Sprintf("INSERT INTO messages VALUES (%d, 1, 3, '%s')", 100+i, strings.Repeat("x", 5000)))
	}
	expect("ab", true)
	run("ROLLBACK")
	run("PRAGMA wal_checkpoint(RESTART)")
	run("INSERT INTO messages VALUES (3, 1, 3, 'c')") // overwrites the beginning of the log
	expect("abc", true)
	run("PRAGMA wal_checkpoint(TRUNCATE)")
	expect("abc", false)

	// A log cut off or damaged counts up to there.
	run("INSERT INTO messages VALUES (4, 1, 4, 'd')")
	run("INSERT INTO messages VALUES (5, 1, 5, 'e')")
	cp := liveCopy(t, path)
	fi, err := os.Stat(cp + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(cp+"-wal", fi.Size()-10); err != nil {
		t.Fatal(err)
	}
	if got := payloads(t, open(t, cp)); got != "abcd" {
		t.Errorf("log without its end: %q", got)
	}
	if err := overwriteAt(cp+"-wal", walHeader+frameHeader+100, []byte("damage")); err != nil {
		t.Fatal(err)
	}
	if got := payloads(t, open(t, cp)); got != "abc" {
		t.Errorf("log with a damaged first frame: %q", got)
	}
	// The database alone, in a directory that cannot be written to.
	if err := errors.Join(os.Remove(cp+"-wal"), os.Remove(cp+"-shm"), os.Chmod(filepath.Dir(cp), 0o555)); err != nil {
		t.Fatal(err)
	}
	if got := payloads(t, open(t, cp)); got != "abc" {
		t.Errorf("without its log: %q", got)
	}
	if err := os.Chmod(filepath.Dir(cp), 0o755); err != nil {
		t.Fatal(err)
	}
}

// hotJournal leaves a storage of 200 synced messages with a transaction that has changed pages all over the file, as
// SIGKILL would, and returns its path.
func hotJournal(t *testing.T, o plugin.WriteOptions) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db3")
	w, err := Driver{}.Create(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(plugin.Metadata{})
	id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "std_msgs/msg/String"})
	if err != nil {
		t.Fatal(err)
	}
	write := func(stamp int64, n int) {
		t.Helper()
		if err := w.Write([]plugin.Message{{Topic: id, RecvTime: stamp, Data: make([]byte, n)}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		write(int64(i*100), 3000)
	}
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	for i := range 70 { // more than the cache holds, between the stamps that are there
		write(int64(i*7919%20000), 100_000)
	}
	return liveCopy(t, path)
}

func TestHotJournal(t *testing.T) {
	for name, o := range map[string]plugin.WriteOptions{
		"as it is":        {},
		"small pages":     {Config: map[string]any{"pragmas": []any{"page_size = 1024", "cache_size = 20"}}},
		"not synced":      {Config: map[string]any{"pragmas": []any{"synchronous = OFF", "page_size = 1024", "cache_size = 20"}}},
		"journal deleted": {Config: map[string]any{"pragmas": []any{"journal_mode = DELETE", "page_size = 1024", "cache_size = 20"}}},
		"wal":             {Config: map[string]any{"pragmas": []any{"journal_mode = WAL", "page_size = 1024", "cache_size = 20"}}},
	} {
		t.Run(name, func(t *testing.T) {
			path := hotJournal(t, o)
			if fi, err := os.Stat(path); err != nil || fi.Size() < 5_000_000 && name != "wal" {
				t.Fatalf("the unfinished transaction is not in the file: %v %v", fi.Size(), err)
			}
			before := list(t, filepath.Dir(path))
			r := open(t, path)
			ms, err := plugintest.ReadAll(r, plugin.Query{})
			if err != nil || len(ms) != 200 {
				t.Fatalf("%d messages, %v", len(ms), err)
			}
			for i, m := range ms {
				if m.RecvTime != int64(i*100) || len(m.Data) != 3000 {
					t.Fatalf("message %d: %d, %d bytes", i, m.RecvTime, len(m.Data))
				}
			}
			if i := r.Info(); i.Messages != 200 || !i.Unclean || i.End != 19900 {
				t.Errorf("%+v", i)
			}
			if after := list(t, filepath.Dir(path)); after != before {
				t.Errorf("before\n%safter\n%s", before, after)
			}
			cli, err := exec.LookPath("sqlite3")
			if err != nil {
				t.Skip("no sqlite3 command to compare with")
			}
			out, err := exec.Command(cli, path, "PRAGMA integrity_check; SELECT count(*), max(timestamp) FROM messages").CombinedOutput()
			if err != nil || string(out) != "ok\n200|19900\n" {
				t.Errorf("sqlite3: %s %v", out, err)
			}
		})
	}
}

// While it is recorded, a storage is locked for other programs, and they say so instead of disturbing it.
func TestLocked(t *testing.T) {
	cli, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("no sqlite3 command")
	}
	path := filepath.Join(t.TempDir(), "a.db3")
	w, err := Driver{}.Create(context.Background(), path, plugin.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	try := func() string {
		out, _ := exec.Command(cli, path, "SELECT count(*) FROM messages").CombinedOutput()
		return string(out)
	}
	if out := try(); !strings.Contains(out, "locked") {
		t.Errorf("sqlite3 while recording: %q", out)
	}
	// Reading it here, or just opening and closing the file, takes nothing of the lock away.
	r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if _, err := os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if out := try(); !strings.Contains(out, "locked") {
		t.Errorf("sqlite3 after the file was read: %q", out)
	}
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	if out := try(); out != "0\n" {
		t.Errorf("sqlite3 after the recording: %q", out)
	}
}
