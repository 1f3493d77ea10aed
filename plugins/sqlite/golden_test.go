package sqlite

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// shared returns a directory of the shared fixtures, or skips.
func shared(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("GOBAG_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	dir := filepath.Join(root, "fixtures", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no shared fixtures: %v", err)
	}
	return dir
}

// copyFile copies a database with what lies beside it, write-protected, and returns the copy's path.
func copyFile(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		b, err := os.ReadFile(path + suffix)
		if err != nil {
			if suffix != "" {
				continue
			}
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)+suffix), b, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, filepath.Base(path))
}

func TestTestdata(t *testing.T) {
	for _, c := range []struct {
		file, format, topics string
		start, end           int64
		index                bool
	}{
		{"schema1.db3", "schema 1", "/array_topic 4 832, /clock 0 0, /parameter_events 0 0, /test_topic 3 192", 1537282604241440135, 1537282604397419946, false},
		{"schema2.db3", "schema 2", "/array_topic 4 2784, /test_topic 3 156", 1586406456763032325, 1586406456914169506, true},
		{"schema4.db3", "schema 4", "/test_topic 3 156, /array_topic 4 2784", 1586406456763032325, 1586406456914169506, true},
	} {
		t.Run(c.file, func(t *testing.T) {
			path := copyFile(t, filepath.Join("testdata", c.file))
			r := open(t, path)
			info := r.Info()
			var topics []string
			for _, ti := range info.Topics {
				topics = append(topics, fmt.Sprint(ti.Name, " ", ti.Count, " ", ti.Bytes))
			}
			if got := strings.Join(topics, ", "); got != c.topics {
				t.Errorf("topics %s", got)
			}
			if info.Format != c.format || info.Messages != 7 || info.Start != c.start || info.End != c.end || info.Unclean {
				t.Errorf("%+v", info)
			}
			if noIndex := strings.Contains(strings.Join(info.Warnings, "\n"), "no index"); noIndex == c.index {
				t.Errorf("warnings %q", info.Warnings)
			}
			for _, reverse := range []bool{false, true} {
				ms, err := readAll(t, r, plugin.Query{Reverse: reverse})
				if err != nil || len(ms) != 7 {
					t.Fatal(len(ms), err)
				}
				if !sort.SliceIsSorted(ms, func(i, j int) bool { return (ms[i].RecvTime < ms[j].RecvTime) != reverse }) {
					t.Error("out of order")
				}
			}
		})
	}
}

// schema4.db3 has what schema 4 can hold beside the messages.
func TestTestdataSchema4(t *testing.T) {
	info := open(t, copyFile(t, "testdata/schema4.db3")).Info()
	if info.ROSDistro != "rolling" || info.Metadata.Version != 7 || len(info.Metadata.Text) != 1333 || len(info.Warnings) != 0 {
		t.Errorf("%+v", info)
	}
	d := info.Topics[1].Definition
	if d.Encoding != "ros2msg" || len(d.Text) != 2462 || info.Topics[1].SerializationFormat != "cdr" || !strings.HasPrefix(info.Topics[0].OfferedQoS, "- history: 3\n") {
		t.Errorf("%+v", info.Topics)
	}
}

var (
	readmeFile  = regexp.MustCompile(`^\* \./[^/]+/(.+\.db3)$`)
	readmeTotal = regexp.MustCompile(`^  topics=(\d+) messages=(\d+)$`)
	readmeTopic = regexp.MustCompile(`^   - id=\d+ (.*) \[(.*)\] (\S*) n=(\d+) t=(\S+?)\.\.(\S+) bytes=(\S+)$`)
)

// readmeTopics returns what the README of a fixture says of each of its databases: a line of the numbers of topics and
// messages, and lines of name, type, format, count, first and last stamp and bytes of the topics, or of the first few.
func readmeTopics(t *testing.T, path string) map[string][]string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]string{}
	file := ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if m := readmeFile.FindStringSubmatch(line); m != nil {
			file = m[1]
			files[file] = nil
		} else if strings.HasPrefix(line, "* ") {
			file = ""
		} else if m := readmeTotal.FindStringSubmatch(line); m != nil && file != "" {
			files[file] = append(files[file], m[1]+" "+m[2])
		} else if m := readmeTopic.FindStringSubmatch(line); m != nil && file != "" {
			files[file] = append(files[file], strings.ReplaceAll(strings.Join(m[1:], " "), "None", "-"))
		}
	}
	return files
}

// TestFixtureBags opens every SQLite database of the public sample bags and compares it with what its README, which
// was written from measurements of other programs, says.
func TestFixtureBags(t *testing.T) {
	dir := shared(t, "bags")
	readmes, err := filepath.Glob(filepath.Join(dir, "*", "README.md"))
	if err != nil || len(readmes) == 0 {
		t.Fatal(err, len(readmes))
	}
	n := 0
	for _, readme := range readmes {
		for file, want := range readmeTopics(t, readme) {
			n++
			t.Run(filepath.Base(filepath.Dir(readme))+"/"+file, func(t *testing.T) {
				r := open(t, copyFile(t, filepath.Join(filepath.Dir(readme), file)))
				got := describeTopics(t, r)
				if len(want) < min(len(got), 10) || len(got) < len(want) {
					t.Fatalf("%d lines, want %d", len(got), len(want))
				}
				got = got[:len(want)]
				if strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				if i := r.Info(); i.Unclean {
					t.Errorf("unclean: %+v", i)
				}
			})
		}
	}
	if n < 25 {
		t.Errorf("only %d databases found", n)
	}
}

// describeTopics is the README's form of what the messages of a storage say, and checks that Info says the same.
func describeTopics(t *testing.T, r plugin.Reader) []string {
	t.Helper()
	lines := []string{fmt.Sprint(len(r.Info().Topics), " ", r.Info().Messages)}
	for _, ti := range r.Info().Topics {
		ms, err := readAll(t, r, plugin.Query{Topics: []plugin.TopicID{ti.ID}})
		if err != nil {
			t.Fatal(err)
		}
		bytes := int64(0)
		for _, m := range ms {
			bytes += int64(len(m.Data))
		}
		if ti.Count != uint64(len(ms)) || ti.Bytes != bytes {
			t.Errorf("info of %s: %d messages, %d bytes; read %d, %d", ti.Name, ti.Count, ti.Bytes, len(ms), bytes)
		}
		span := "- - -"
		if len(ms) > 0 {
			span = fmt.Sprint(ms[0].RecvTime, " ", ms[len(ms)-1].RecvTime, " ", bytes)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %d %s", ti.Name, ti.Type, ti.SerializationFormat, len(ms), span))
	}
	return lines
}

// TestFixtureMessages compares every message of the bags made with the real rosbag2 with what the real reader says.
func TestFixtureMessages(t *testing.T) {
	n := 0
	for _, sub := range []string{"rosbag2/bags", "rosbag2/fastrtps/bags"} {
		dir := shared(t, sub)
		expected, err := filepath.Glob(filepath.Join(dir, "*.expected.txt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, exp := range expected {
			bag := strings.TrimSuffix(exp, ".expected.txt")
			dbs, _ := filepath.Glob(filepath.Join(bag, "*.db3"))
			if len(dbs) == 0 {
				continue
			}
			n++
			t.Run(filepath.Base(bag), func(t *testing.T) { compareBag(t, exp, dbs) })
		}
	}
	if n < 4 {
		t.Errorf("only %d bags found", n)
	}
}

func compareBag(t *testing.T, expected string, dbs []string) {
	want, err := os.ReadFile(expected)
	if err != nil {
		t.Fatal(err)
	}
	sort.Slice(dbs, func(i, j int) bool { return fileNumber(dbs[i]) < fileNumber(dbs[j]) })
	payloads := !strings.Contains(expected, "zstd_message") // those are compressed here and not in the text
	var got []string
	for _, db := range dbs {
		r := open(t, copyFile(t, db))
		names := map[plugin.TopicID]string{}
		for _, ti := range r.Info().Topics {
			names[ti.ID] = ti.Name
		}
		ms, err := readAll(t, r, plugin.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			line := fmt.Sprintf("%s recv=%d send=%d", names[m.Topic], m.RecvTime, m.SendTime)
			if payloads {
				line += fmt.Sprintf(" len=%d fnv1a64=%016x", len(m.Data), expectedSum(m.Data))
			}
			got = append(got, line)
		}
	}
	i := 0
	for lines := bufio.NewScanner(bytes.NewReader(want)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "read ") {
			continue // how long it took
		}
		if !payloads {
			line, _, _ = strings.Cut(line, " len=")
		}
		if i >= len(got) || got[i] != line {
			t.Fatalf("message %d: got\n%s\nwant\n%s", i+1, got[min(i, len(got)-1)], line)
		}
		i++
	}
	if i != len(got) {
		t.Errorf("%d messages, want %d", len(got), i)
	}
}

// expectedSum is FNV-1a with the starting value of the program that wrote the .expected.txt files, one digit short of
// the usual one.
func expectedSum(b []byte) uint64 {
	h := uint64(1469598103934665603)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// fileNumber is the N of x_N.db3.
func fileNumber(path string) int {
	s := strings.TrimSuffix(filepath.Base(path), ".db3")
	n, _ := strconv.Atoi(s[strings.LastIndex(s, "_")+1:])
	return n
}

// The real recorder was killed with SIGKILL; its journal was in memory. What the real reader finds is 272 messages.
func TestFixtureKilled(t *testing.T) {
	r := open(t, copyFile(t, filepath.Join(shared(t, "rosbag2/bags/jazzy_sqlite3_killed"), "jazzy_sqlite3_killed_0.db3")))
	ms, err := readAll(t, r, plugin.Query{})
	if err != nil || len(ms) != 272 {
		t.Errorf("%d messages, %v", len(ms), err)
	}
	if i := r.Info(); i.Messages != 272 || !i.Unclean {
		t.Errorf("%+v", i)
	}
}

func TestFixtureEras(t *testing.T) {
	n := 0
	err := filepath.WalkDir(shared(t, "rosbag2/era"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".db3" {
			return err
		}
		n++
		r := open(t, copyFile(t, path))
		i := r.Info()
		ms, err := readAll(t, r, plugin.Query{})
		if err != nil || uint64(len(ms)) != i.Messages {
			t.Errorf("%s: %d messages, info %d, %v", path, len(ms), i.Messages, err)
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Error(n, err)
	}
}
