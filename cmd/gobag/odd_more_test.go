package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

// More bags as users of rosbag2 have reported them; the tools are those of odd_inputs_test.go.

// rewriteYAML changes metadata.yaml of a bag.
func rewriteYAML(t *testing.T, dir, old, with string) {
	t.Helper()
	path := filepath.Join(dir, bag.MetadataFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), old, with, 1)
	if text == string(b) {
		t.Fatalf("no %q in\n%s", old, b)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// writeStamps makes a bag with one topic and messages of these stamps.
func writeStamps(t *testing.T, stamps ...int64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "stamps")
	w, err := bag.Create(t.Context(), dir, bag.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "std_msgs/msg/String", SerializationFormat: "cdr"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stamps {
		if err := w.Write([]plugin.Message{{Topic: id, RecvTime: s, Data: []byte("\x00\x01\x00\x00\x02\x00\x00\x00a\x00")}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Stamps 10 and then 5: the bag starts at 5 and lasts 5.
func TestOddStampsBackwards(t *testing.T) {
	dir := writeStamps(t, 10, 5)
	j := oddInfo(t, dir)
	wantCounts(t, j, 2, nil)
	if *j.Start != 5 || *j.End != 10 || j.Duration != 5 {
		t.Errorf("start %d, end %d, duration %d", *j.Start, *j.End, j.Duration)
	}
}

// M536: stamps near 0 are stamps like others.
func TestOddStampsNearZero(t *testing.T) {
	dir := writeStamps(t, 0, 1, 2)
	j := oddInfo(t, dir)
	wantCounts(t, j, 3, nil)
	if *j.Start != 0 || *j.End != 2 {
		t.Errorf("start %d, end %d", *j.Start, *j.End)
	}
	oddPlay(t, dir, 3)
}

// A negative number of nanoseconds in metadata.yaml: counted anew, with a warning.
func TestOddNegativeTime(t *testing.T) {
	dir := writeStamps(t, 1_700_000_000_000_000_000, 1_700_000_000_000_000_005)
	rewriteYAML(t, dir, "    nanoseconds: 5\n", "    nanoseconds: -5\n")
	j := oddInfo(t, dir)
	wantCounts(t, j, 2, nil)
	if j.Duration != 5 || len(j.Warnings) == 0 {
		t.Errorf("duration %d, warnings %q", j.Duration, j.Warnings)
	}
}

// A version that nobody knows yet: what is known of it is read, with a warning.
func TestOddVersion(t *testing.T) {
	dir := writeStamps(t, 7)
	rewriteYAML(t, dir, "version: 9", "version: 42")
	j := oddInfo(t, dir)
	wantCounts(t, j, 1, map[string]int{"/a": 1})
	wantWarning(t, j, "42")
}

// Two rows with the same name and type are one topic; messages of a topic that has no row are counted and said.
func TestOddTopicRows(t *testing.T) {
	dir := madeBag(t, schema2+`INSERT INTO topics VALUES (1, '/a', 'std_msgs/msg/String', 'cdr', ''), (2, '/a', 'std_msgs/msg/String', 'cdr', '');
		INSERT INTO messages VALUES (1, 1, 5, `+oddString+`), (2, 2, 6, `+oddString+`), (3, 77, 7, `+oddString+`);`)
	j := oddInfo(t, dir)
	wantCounts(t, j, 2, map[string]int{"/a": 2})
	if len(j.Topics) != 1 {
		t.Errorf("%+v", j.Topics)
	}
	wantWarning(t, j, "belong to no topic")
	oddPlay(t, dir, 2)
}

// A split bag whose last file holds nothing, as a duration or a snapshot leaves it.
func TestOddEmptyLastFile(t *testing.T) {
	dir := oddFixture(t, "11-split5-v4-sqlite3")
	runSQL(t, filepath.Join(dir, "wbag_4.db3"), "DELETE FROM messages;")
	j := oddInfo(t, dir)
	last := int(j.Files[4].Messages)
	if last != 0 || int(j.Messages) != 1246+3*1240 || *j.End != 2623 {
		t.Errorf("%d messages, %d in the last file, end %d", j.Messages, last, *j.End)
	}
}

// A split bag that has lost a file: info and play take the rest and name the file; convert would lose messages, and says so.
func TestOddMissingFile(t *testing.T) {
	dir := oddFixture(t, "11-split5-v4-sqlite3")
	if err := os.Remove(filepath.Join(dir, "wbag_2.db3")); err != nil {
		t.Fatal(err)
	}
	j := oddInfo(t, dir)
	wantCounts(t, j, 6074-1240, nil)
	wantWarning(t, j, "wbag_2.db3, which metadata.yaml lists, is missing")
	r := cli(nil, "play", dir, "-r", "1000000", "--localhost", "--domain-id", strconv.Itoa(testDomain(t)), "--remap", "AAA:=/AAA", "--topics", "AAA")
	if !strings.Contains(r.errOut, "wbag_2.db3") {
		t.Errorf("play: exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	t.Run("convert", func(t *testing.T) {
		oddFail(t, "wbag_2.db3", "convert", dir, "-o", filepath.Join(t.TempDir(), "out"))
	})
}

// metadata.yaml deleted: reindex writes one that starts when the messages do, not in 1970.
func TestOddReindexStart(t *testing.T) {
	dir := writeStamps(t, 1_700_000_000_000_000_000, 1_700_000_001_000_000_000)
	removeYAML(t, dir)
	text := oddReindex(t, dir)
	if !strings.Contains(text, "nanoseconds_since_epoch: 1700000000000000000") || !strings.Contains(text, "nanoseconds: 1000000000") {
		t.Errorf("%s", text)
	}
}

// R1602: the files of a split conversion hold together what the input holds.
func TestOddConvertSplit(t *testing.T) {
	dir := oddFixture(t, "31-humble-schema3-recorded")
	_, c := oddConvert(t, dir, "-s", "mcap", "-b", "300000")
	sum := 0
	for _, f := range c.Files {
		sum += int(f.Messages)
	}
	if len(c.Files) < 2 || sum != 5801 || int(c.Messages) != sum {
		t.Errorf("%d files of %d messages, want 5801: %+v", len(c.Files), sum, c.Files)
	}
}

// R2264: two publishers of a topic with different type hashes. The bag keeps the topic with the one that was said last.
func TestOddTypeHashes(t *testing.T) {
	dir := madeBag(t, `CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT NOT NULL); INSERT INTO schema VALUES (4, 'jazzy');
		CREATE TABLE metadata(id INTEGER PRIMARY KEY, metadata_version INTEGER NOT NULL, metadata TEXT NOT NULL);
		CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT NOT NULL, encoding TEXT NOT NULL, encoded_message_definition TEXT NOT NULL, type_description_hash TEXT NOT NULL);
		CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL, type_description_hash TEXT NOT NULL);`+schemaMessages+`
		INSERT INTO topics VALUES (1, '/a', 'std_msgs/msg/String', 'cdr', '', 'RIHS01_`+strings.Repeat("1", 64)+`'), (2, '/a', 'std_msgs/msg/String', 'cdr', '', 'RIHS01_`+strings.Repeat("2", 64)+`');
		INSERT INTO messages VALUES (1, 1, 5, `+oddString+`), (2, 2, 6, `+oddString+`);`)
	j := oddInfo(t, dir)
	wantCounts(t, j, 2, map[string]int{"/a": 2})
	if len(j.Topics) != 1 || len(j.Warnings) == 0 {
		t.Errorf("%+v, warnings %q", j.Topics, j.Warnings)
	}
}
