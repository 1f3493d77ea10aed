package sqlite

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

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
				ms, err := plugintest.ReadAll(r, plugin.Query{Reverse: reverse})
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
	dir := plugintest.Shared(t, "bags")
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
		ms, err := plugintest.ReadAll(r, plugin.Query{Topics: []plugin.TopicID{ti.ID}})
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
	plugintest.EachListed(t, ".db3", 4, func(t *testing.T, bag plugintest.Listed) {
		bag.Compare(t, func(t *testing.T, path string) plugin.Reader { return open(t, copyFile(t, path)) })
	})
}

// The real recorder was killed with SIGKILL; its journal was in memory. What the real reader finds is 272 messages.
func TestFixtureKilled(t *testing.T) {
	r := open(t, copyFile(t, filepath.Join(plugintest.Shared(t, "rosbag2/bags/jazzy_sqlite3_killed"), "jazzy_sqlite3_killed_0.db3")))
	ms, err := plugintest.ReadAll(r, plugin.Query{})
	if err != nil || len(ms) != 272 {
		t.Errorf("%d messages, %v", len(ms), err)
	}
	if i := r.Info(); i.Messages != 272 || !i.Unclean {
		t.Errorf("%+v", i)
	}
}

func TestFixtureEras(t *testing.T) {
	n := 0
	err := filepath.WalkDir(plugintest.Shared(t, "rosbag2/era"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".db3" {
			return err
		}
		n++
		r := open(t, copyFile(t, path))
		i := r.Info()
		ms, err := plugintest.ReadAll(r, plugin.Query{})
		if err != nil || uint64(len(ms)) != i.Messages {
			t.Errorf("%s: %d messages, info %d, %v", path, len(ms), i.Messages, err)
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Error(n, err)
	}
}
