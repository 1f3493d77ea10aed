package main

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

// Bags as users of rosbag2 have reported them, each with the outcome that it should have had. R… is an issue of
// ros2/rosbag2. The bags are made with the sqlite3 program, or are real ones.

// oddFixture returns a private copy of a bag or file of the shared fixtures, or skips.
func oddFixture(t *testing.T, name string) string {
	t.Helper()
	from := shared("fixtures", "bags", name)
	if from == "" {
		t.Skip("no shared data")
	}
	to := filepath.Join(t.TempDir(), filepath.Base(name))
	copyOdd(t, from, to)
	return to
}

func copyOdd(t *testing.T, from, to string) {
	t.Helper()
	st, err := os.Stat(from)
	if err == nil && st.IsDir() {
		err = os.CopyFS(to, os.DirFS(from))
	} else if err == nil {
		var b []byte
		if b, err = os.ReadFile(from); err == nil {
			err = os.WriteFile(to, b, 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Tables of rosbag2's older schemas.
const (
	schema1 = `CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, serialization_format TEXT NOT NULL);` + schemaMessages
	schema2 = `CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL);` + schemaMessages

	schemaMessages = `CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL, data BLOB NOT NULL);
		CREATE INDEX timestamp_idx ON messages (timestamp ASC);`
	oddString = "x'0001000002000000" + "6100'" // a std_msgs/msg/String "a"
)

// runSQL runs statements on a database with the sqlite3 program, or skips.
func runSQL(t *testing.T, path, statements string) {
	t.Helper()
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(program, "-batch", "-bail", path)
	cmd.Stdin = strings.NewReader(statements)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sqlite3: %v\n%s", err, out)
	}
}

// madeBag is a directory without metadata.yaml that holds one database.
func madeBag(t *testing.T, statements string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "odd")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	runSQL(t, filepath.Join(dir, "odd_0.db3"), statements)
	return dir
}

// oddInfo is what `info --json` says.
func oddInfo(t *testing.T, path string) (j jsonInfo) {
	t.Helper()
	r := cli(nil, "info", path, "--json")
	if r.code != 0 {
		t.Fatalf("info: exit %d\n%s", r.code, r.errOut)
	}
	if err := json.Unmarshal([]byte(r.out), &j); err != nil {
		t.Fatalf("info: %v\n%s", err, r.out)
	}
	return j
}

func (j jsonInfo) count(name string) int {
	for _, t := range j.Topics {
		if t.Name == name {
			return int(t.Count)
		}
	}
	return -1
}

func wantCounts(t *testing.T, j jsonInfo, total int, counts map[string]int) {
	t.Helper()
	for name, n := range counts {
		if got := j.count(name); got != n {
			t.Errorf("%s: %d messages, want %d", name, got, n)
		}
	}
	if int(j.Messages) != total {
		t.Errorf("%d messages, want %d (warnings %q)", j.Messages, total, j.Warnings)
	}
}

func wantWarning(t *testing.T, j jsonInfo, part string) {
	t.Helper()
	if !strings.Contains(strings.Join(j.Warnings, "\n"), part) {
		t.Errorf("warnings %q, want one with %q", j.Warnings, part)
	}
}

// oddPlay plays as fast as it goes, where nobody hears it, and wants n messages played.
func oddPlay(t *testing.T, path string, n int, more ...string) result {
	t.Helper()
	r := cli(nil, append([]string{"play", path, "-r", "1000000", "--domain-id", strconv.Itoa(testDomain(t)), "--localhost"}, more...)...)
	if want := "Played " + strconv.Itoa(n) + " message"; r.code != 0 || !strings.Contains(r.out, want) {
		t.Errorf("play: exit %d, want %q\n%s%s", r.code, want, r.out, r.errOut)
	}
	return r
}

// oddConvert converts to another directory and returns it with what info says of it.
func oddConvert(t *testing.T, path string, more ...string) (string, jsonInfo) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "converted")
	if r := cli(nil, append([]string{"convert", path, "-o", out}, more...)...); r.code != 0 {
		t.Fatalf("convert: exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	return out, oddInfo(t, out)
}

// oddReindex writes metadata.yaml anew and returns its text.
func oddReindex(t *testing.T, dir string) string {
	t.Helper()
	if r := cli(nil, "reindex", dir); r.code != 0 {
		t.Fatalf("reindex: exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	b, err := os.ReadFile(filepath.Join(dir, bag.MetadataFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func removeYAML(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, bag.MetadataFile)); err != nil {
		t.Fatal(err)
	}
}

// oddMessages reads all of a bag.
func oddMessages(t *testing.T, path string) (all []plugin.Message) {
	t.Helper()
	r, err := bag.Open(t.Context(), path, bag.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for {
		var m plugin.Message
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		m.Data = slices.Clone(m.Data)
		all = append(all, m)
	}
}

func oddFail(t *testing.T, want string, words ...string) {
	t.Helper()
	if r := cli(nil, words...); r.code != exitFailure || !strings.Contains(r.errOut, want) {
		t.Errorf("%s: exit %d, want %d with %q\n%s", words[0], r.code, exitFailure, want, r.errOut)
	}
}

// names lists what is in a directory.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		all = append(all, e.Name())
	}
	return all
}

// 01, R1089, R1086: a bag of Eloquent, whose topics have no column for QoS.
func TestOddNoQoSColumn(t *testing.T) {
	dir := madeBag(t, schema1+"INSERT INTO topics VALUES (1, '/a', 'std_msgs/msg/String', 'cdr'); INSERT INTO messages VALUES (1, 1, 5, "+oddString+");")
	check := func(path string, total, played int, format string) {
		j := oddInfo(t, path)
		wantCounts(t, j, total, nil)
		if format != "" && !strings.Contains(j.Files[0].Format, format) {
			t.Errorf("format %q, want %s", j.Files[0].Format, format)
		}
		for _, tp := range j.Topics {
			if len(tp.QoS) != 0 {
				t.Errorf("%s: QoS %+v", tp.Name, tp.QoS)
			}
		}
		oddPlay(t, path, played, "--allow-live")
	}
	check(dir, 1, 1, "schema 1")
	t.Run("converted", func(t *testing.T) {
		_, j := oddConvert(t, dir)
		wantCounts(t, j, 1, map[string]int{"/a": 1})
		out := filepath.Join(t.TempDir(), "never")
		for _, bad := range [][]string{{"-s", "no_such_format"}, {"--storage-preset-profile", "no_such_preset"}} {
			if r := cli(nil, append([]string{"convert", dir, "-o", out}, bad...)...); r.code == 0 {
				t.Errorf("convert %v: exit 0", bad)
			}
			if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a failed convert left %s: %v", out, err)
			}
		}
	})
	t.Run("fixture", func(t *testing.T) { check(oddFixture(t, "25-sample-db3-no-metadata"), 5, 5, "schema 1") })
}

// 03, R1719: reindex forgets topics without messages.
func TestOddReindexEmptyTopic(t *testing.T) {
	qos := func(depth int) string {
		q := bag.DefaultQoSProfile()
		q.Depth = depth
		return bag.EncodeQoS([]bag.QoSProfile{q}, false)
	}
	dir := madeBag(t, schema2+`INSERT INTO topics VALUES (1, '/a', 'std_msgs/msg/String', 'cdr', '`+qos(7)+`'), (2, '/b', 'std_msgs/msg/Int8', 'cdr', '`+qos(9)+`');
		INSERT INTO messages VALUES (1, 1, 5, `+oddString+`), (2, 1, 6, `+oddString+`), (3, 1, 7, `+oddString+`);`)
	text := oddReindex(t, dir)
	for _, part := range []string{"name: /b", "depth: 7", "depth: 9", "message_count: 0", "message_count: 3"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	wantCounts(t, oddInfo(t, dir), 3, map[string]int{"/a": 3, "/b": 0})
}

// 07, R229, R557, R794: paths in metadata.yaml that begin with a directory of another name, as versions before 4 have
// them, or with none at all.
func TestOddPaths(t *testing.T) {
	dir := oddFixture(t, "06-galactic-file-zstd")
	wantCounts(t, oddInfo(t, dir), 775, map[string]int{"/rosout": 392, "/topic": 383})
	moved := filepath.Join(filepath.Dir(dir), "renamed")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, oddInfo(t, moved), 775, nil)
	wantCounts(t, oddInfo(t, oddFixture(t, "01-crystal-v1-wal-leftovers")), 7, map[string]int{"/array_topic": 4, "/test_topic": 3})
}

// 08, R841, R966, R1413: start and duration in metadata.yaml are those of the last file only.
func TestOddStartAndDuration(t *testing.T) {
	dir := oddFixture(t, "11-split5-v4-sqlite3")
	j := oddInfo(t, dir)
	wantCounts(t, j, 6074, nil)
	if *j.Start != 1000 || j.Duration != 1998 || len(j.Files) != 5 {
		t.Errorf("start %d, duration %d, %d files", *j.Start, j.Duration, len(j.Files))
	}
	wantWarning(t, j, "metadata.yaml says start 2623")
	if got := len(oddMessages(t, dir)); got != 6074 {
		t.Errorf("%d messages read from five files", got)
	}
}

// 10, R811, R1031: one message, or all at the same time.
func TestOddNoDuration(t *testing.T) {
	topic := schema2 + "INSERT INTO topics VALUES (1, '/a', 'std_msgs/msg/String', 'cdr', '');"
	for n, messages := range map[int]string{
		1: "INSERT INTO messages VALUES (1, 1, 1700000000000000000, x'00010000020000006100');",
		3: "INSERT INTO messages VALUES (1, 1, 1700000000000000000, x'00010000020000006100'), (2, 1, 1700000000000000000, x'00010000020000006200'), (3, 1, 1700000000000000000, x'00010000020000006300');",
	} {
		dir := madeBag(t, topic+messages)
		j := oddInfo(t, dir)
		wantCounts(t, j, n, nil)
		if j.Duration != 0 {
			t.Errorf("duration %d", j.Duration)
		}
		r := cli(nil, "info", "-v", dir)
		if low := strings.ToLower(r.out); r.code != 0 || strings.Contains(low, "inf ") || strings.Contains(low, "nan") || strings.Contains(low, "+inf") {
			t.Errorf("exit %d\n%s", r.code, r.out)
		}
		oddPlay(t, dir, n)
		text := ""
		for _, m := range oddMessages(t, dir) {
			text += string(m.Data[8:9])
		}
		if text != "abc"[:n] {
			t.Errorf("order %q", text)
		}
	}
}

// 12: an empty bag of Foxy, whose start is the largest number there is.
func TestOddEmptyBag(t *testing.T) {
	dir := oddFixture(t, "05-foxy-v4-empty-bag")
	j := oddInfo(t, dir)
	wantCounts(t, j, 0, nil)
	if j.Start != nil || j.End != nil || j.Duration != 0 || len(j.Topics) != 2 {
		t.Errorf("%+v", j)
	}
	if r := cli(nil, "info", dir); r.code != 0 || strings.Contains(r.out, "2262") || strings.Contains(r.out, "922337203") || strings.Contains(r.out, "1970") {
		t.Errorf("exit %d\n%s", r.code, r.out)
	}
	oddPlay(t, dir, 0)
	_, c := oddConvert(t, dir)
	wantCounts(t, c, 0, nil)
	if len(c.Topics) != 2 {
		t.Errorf("converted: %+v", c.Topics)
	}
}

// 14, R1125, R1420: QoS that is a map, or lacks keys.
func TestOddQoS(t *testing.T) {
	dir := madeBag(t, schema2+`INSERT INTO topics VALUES (1, '/map', 'std_msgs/msg/String', 'cdr', 'history: keep_last
depth: 10
'), (2, '/part', 'std_msgs/msg/String', 'cdr', '- depth: 3
');
		INSERT INTO messages VALUES (1, 1, 5, `+oddString+`), (2, 2, 5, `+oddString+`);`)
	j := oddInfo(t, dir)
	wantCounts(t, j, 2, nil)
	for _, name := range []string{"/map", "/part"} {
		n := 0
		for _, w := range j.Warnings {
			if strings.Contains(w, `"`+name+`"`) && strings.Contains(w, "QoS is unknown") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: %d warnings in %q", name, n, j.Warnings)
		}
	}
	for _, tp := range j.Topics {
		if len(tp.QoS) != 0 {
			t.Errorf("%s: %+v", tp.Name, tp.QoS)
		}
	}
	oddPlay(t, dir, 2)
}

// 15: the infinite of Foxy, which does not fit into 32 bits, and that of later ones.
func TestOddInfinity(t *testing.T) {
	dir := oddFixture(t, "04-foxy-v4-schema2")
	check := func(j jsonInfo) {
		t.Helper()
		for _, tp := range j.Topics {
			if len(tp.QoS) == 0 {
				t.Errorf("%s has no QoS", tp.Name)
			}
			for _, q := range tp.QoS {
				if q.Deadline != nil || q.Lifespan != nil || q.Lease != nil {
					t.Errorf("%s: %+v", tp.Name, q)
				}
			}
		}
	}
	check(oddInfo(t, dir))
	out, j := oddConvert(t, dir)
	check(j)
	b, err := os.ReadFile(filepath.Join(out, bag.MetadataFile))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(b); !strings.Contains(text, "sec: 9223372036") || !strings.Contains(text, "nsec: 854775807") || strings.Contains(text, "2147483647") || strings.Contains(text, "4294967295") {
		t.Errorf("%s", text)
	}
}

// 17, R521, R485: what SQLite's write-ahead log leaves beside a database.
func TestOddWAL(t *testing.T) {
	dir := oddFixture(t, "01-crystal-v1-wal-leftovers")
	before := names(t, dir)
	wantCounts(t, oddInfo(t, dir), 7, nil)
	if after := names(t, dir); !slices.Equal(before, after) {
		t.Errorf("%q became %q", before, after)
	}

	// A row that is in the log only, as a killed recorder leaves it.
	dir = oddFixture(t, "04-foxy-v4-schema2")
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(filepath.Join(dir, "cdr_test_0.db3"+suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	db := filepath.Join(dir, "cdr_test_0.db3")
	runSQL(t, db, ".dbconfig no_ckpt_on_close on\nPRAGMA journal_mode = WAL; INSERT INTO messages SELECT 100, topic_id, timestamp, data FROM messages WHERE id = 1;")
	if st, err := os.Stat(db + "-wal"); err != nil || st.Size() == 0 {
		t.Fatalf("no write-ahead log: %v", err)
	}
	wantCounts(t, oddInfo(t, dir), 8, nil)

	// The same without the log, where nothing may be written.
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(db + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o755)
	before = names(t, dir)
	wantCounts(t, oddInfo(t, dir), 7, nil)
	if after := names(t, dir); !slices.Equal(before, after) {
		t.Errorf("%q became %q", before, after)
	}
}

// 19, R139, R1757: a git-LFS pointer under the name of a database, and a bag of ROS 1.
func TestOddForeignFiles(t *testing.T) {
	pointer := filepath.Join(t.TempDir(), "x.db3")
	if err := os.WriteFile(pointer, []byte("version https://git-lfs.github.com/spec/v1\noid sha256:"+strings.Repeat("0", 64)+"\nsize 123456\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"info", "play"} {
		for _, path := range []string{pointer, filepath.Dir(pointer)} {
			oddFail(t, "is a git-LFS pointer, run git lfs pull", verb, path)
		}
	}
	ros1 := oddFixture(t, "29-ros1-bag-negative")
	for _, path := range []string{ros1, filepath.Join(ros1, "test_bag.bag")} {
		wantCounts(t, oddInfo(t, path), 5, nil)
	}
	t.Run("convert", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "out")
		oddFail(t, "git-LFS pointer", "convert", pointer, "-o", out)
		if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
			t.Error("a failed convert left something")
		}
	})
}

// 24, R1245: serialization formats that cannot be played, and names that could be taken for SQL or are no UTF-8.
func TestOddFormatsAndNames(t *testing.T) {
	dir := madeBag(t, schema2+`INSERT INTO topics VALUES (1, '/a', 'std_msgs/msg/String', 'cdr', ''), (2, '/b', 'std_msgs/msg/String', 'json', ''),
			(3, '/o''brien', 'x/msg/Y', 'cdr', ''), (4, cast(x'2ffffe' as text), 'std_msgs/msg/String', 'cdr', '');
		INSERT INTO messages VALUES (1, 1, 5, `+oddString+`), (2, 2, 6, x'7b7d'), (3, 3, 7, `+oddString+`), (4, 4, 8, `+oddString+`);`)
	j := oddInfo(t, dir)
	wantCounts(t, j, 4, map[string]int{"/a": 1, "/b": 1, "/o'brien": 1})
	if r := cli(nil, "info", dir); r.code != 0 || !strings.Contains(r.out, `/\xff\xfe`) || !strings.Contains(r.out, "/o'brien") {
		t.Errorf("exit %d\n%s", r.code, r.out)
	}
	r := oddPlay(t, dir, 1)
	for _, part := range []string{"/b", "json", "/o'brien", `/\xff\xfe`} {
		if !strings.Contains(r.errOut, part) {
			t.Errorf("%q is not said:\n%s", part, r.errOut)
		}
	}
	t.Run("convert", func(t *testing.T) {
		out, c := oddConvert(t, dir, "--exclude-topics", "/o'brien")
		wantCounts(t, c, 3, map[string]int{"/a": 1, "/b": 1, "/o'brien": -1})
		if r := cli(nil, "info", out); !strings.Contains(r.out, `/\xff\xfe`) {
			t.Errorf("%s", r.out)
		}
		_, c = oddConvert(t, dir, "--topics", "/\xff\xfe")
		wantCounts(t, c, 1, nil)
	})
	for name, total := range map[string]int{"03-eloquent-wrong-serialization": 7, "34-metadata-format-disagrees": 7} {
		t.Run(name, func(t *testing.T) {
			dir := oddFixture(t, name)
			wantCounts(t, oddInfo(t, dir), total, nil)
			_, c := oddConvert(t, dir)
			wantCounts(t, c, total, nil)
		})
	}
}
