package bag

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/plugin"
)

// shared returns a path below the shared data, or skips.
func shared(t testing.TB, rel string) string {
	t.Helper()
	root := os.Getenv("GOBAG_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "shared")
	}
	p := filepath.Join(root, filepath.FromSlash(rel))
	if _, err := os.Stat(p); err != nil {
		t.Skipf("no shared data: %v", err)
	}
	return p
}

// privateCopy copies a file or directory so that opening it cannot touch the original.
func privateCopy(t testing.TB, src string) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), filepath.Base(src))
	err := filepath.WalkDir(src, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, p)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dst
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// fixture is a bag with what its README says.
type fixture struct {
	path     string
	version  int    // of the metadata that is read
	counts   string // "name count" of topics with messages, by id
	topics   int    // with those without messages
	start    int64
	end      int64
	files    int
	warnings []string // parts of the warnings that must be there; what the storage says is left out
}

const (
	wbag   = "AAA 804, BBB 742, CCC 742, DDD 753, EEE 804, FFF 772, GGG 731, HHH 726"
	noYAML = "there is no metadata.yaml"
)

var fixtures = []fixture{
	{"bags/01-crystal-v1-wal-leftovers", 1, "/array_topic 4, /test_topic 3", 4, 1537282604241440135, 1537282604397419946, 1,
		[]string{"test.db3 is not listed in metadata.yaml"}},
	{"bags/02-dashing-v1-schema1", 1, "/array_topic 4, /test_topic 3", 4, 1537282604241440135, 1537282604397419946, 1,
		[]string{"test.db3 is not listed", `"/test_topic": metadata.yaml says its type is test_msgs/BasicTypes`, `"/array_topic": metadata.yaml says`}},
	{"bags/03-eloquent-wrong-serialization", 1, "/array_topic 4, /test_topic 3", 4, 1537282604241440135, 1537282604397419946, 1,
		[]string{`"/test_topic": metadata.yaml says`, `"/array_topic": metadata.yaml says`}},
	{"bags/04-foxy-v4-schema2", 4, "/array_topic 4, /test_topic 3", 2, 1586406456763032325, 1586406456914169506, 1, nil},
	{"bags/05-foxy-v4-empty-bag", 4, "", 2, plugin.NoStart, 0, 1, nil},
	{"bags/06-galactic-file-zstd", 4, "/rosout 392, /topic 383", 3, 1604356909418673946, 1604357100419831952, 4,
		[]string{"metadata.yaml says start 1604357089919704830 ns and duration 59997866716 ns"}},
	{"bags/07-galactic-message-zstd", 4, "/topic 369, /rosout 758", 3, 1604581357697556242, 1604581542133285933, 4,
		[]string{"metadata.yaml says start 1604581538133709023 ns and duration 59872587605 ns"}},
	{"bags/08-galactic-split-no-metadata", 9, "/chatter 3177", 1, 1616653333034080451, 1616653339386193357, 3, []string{noYAML}},
	{"bags/09-humble-v5-convert_a", 5, "a_empty 100, b_basictypes 50", 2, 0, 100000000, 1, nil},
	{"bags/10-humble-v5-convert_b", 5, "a_empty 25, c_strings 50", 2, 0, 222000000, 1, nil},
	{"bags/11-split5-v4-sqlite3", 4, wbag, 8, 1000, 2998, 5,
		[]string{"metadata.yaml says start 2623 ns and duration 411 ns, the storages hold 1000 and 1998"}},
	{"bags/13-talker-sqlite3-schema4", 4, "/rosout 10, /topic 10", 3, 1585866235112411371, 1585866239643508139, 1, nil},
	{"bags/15-seek-sqlite3", 4, "topic1 5", 1, 1000000000, 1400000000, 1, nil},
	{"bags/17-cdr_test-v7-sqlite3", 7, "/test_topic 3, /array_topic 4", 2, 1586406456763032325, 1586406456914169506, 1, nil},
	{"bags/19-actions-services-v9-sqlite3", 9, "", 17, 1741949479681027429, 1741949532240925040, 1, nil},
	{"bags/22-loose-files-topics-services/topics_and_services.db3", 8, "/parameter_events 7, /add_two_ints/_service_event 6", 5,
		1697522387465250790, 1697522388973342699, 1, nil},
	{"bags/23-rosbags-lib-alltypes-sqlite3", 5, "", 94, 1749315324675930112, 1749315343375930112, 1, nil},
	{"bags/25-sample-db3-no-metadata", 9, "/text 1, /image 1, /image/compressed 1, /fix 1, /imu 1", 5, 1552860401167984836,
		1553411909073353785, 1, []string{noYAML}},
	{"bags/31-humble-schema3-recorded", 5, "/mpc/ctrl 5801", 1, 1734694644318096022, 1734694702318200396, 1, nil},
	{"bags/34-metadata-format-disagrees", 4, "/array_topic 4, /test_topic 3", 2, 1586406456763032325, 1586406456914169506, 1,
		[]string{"says its serialization format is wrong_format, the storage says cdr", "says its serialization format is wrong_format"}},

	{"rosbag2/bags/jazzy_sqlite3", 9, "", 11, 1796041461838582078, 1796041461838582078 + 4528039666, 1, nil},
	{"rosbag2/bags/jazzy_sqlite3_resilient", 9, "", 11, 0, 0, 1, nil},
	{"rosbag2/bags/jazzy_sqlite3_split", 9, "", 11, 1796041466510283248, 1796041472044864065, 5, nil},
	{"rosbag2/bags/jazzy_sqlite3_zstd_file", 9, "", 11, 1796041479008620875, 1796041479008620875 + 4490843179, 1, nil},
	{"rosbag2/bags/jazzy_sqlite3_zstd_message", 9, "", 11, 1796041483618952268, 1796041483618952268 + 4541339262, 1, nil},

	{"rosbag2/era/humble_0.15.16/rosbag2_tests_resources/reindex_test_bags/file_compression", 9, "/rosout 392, /topic 383", 3,
		1604356909418673946, 1604357100419831952, 4, []string{noYAML}},
	{"rosbag2/era/humble_0.15.16/rosbag2_tests_resources/reindex_test_bags/message_compression", 9, "/topic 369, /rosout 758", 3,
		1604581357697556242, 1604581542133285933, 4, []string{noYAML}},
	{"rosbag2/era/humble_0.15.16/rosbag2_tests_resources/reindex_test_bags/multiple_files", 9, "/topic 52", 1,
		1630486321838886148, 1630486347339076385, 3, []string{noYAML}},
	{"rosbag2/era/jazzy_0.26.10/rosbag2_tests_resources/sqlite3/bag_with_topics_and_service_events", 8, "", 5,
		1699345836023194036, 1699345836093827766, 1, nil},
	{"rosbag2/era/jazzy_0.26.10/rosbag2_transport_resources/sqlite3/rewriter_a", 5, "a_empty 100, b_basictypes 50", 2, 0, 100000000, 1, nil},
}

// Every SQLite bag of the fixtures opens with what its README says, its metadata and messages agree, and nothing changes
// on disk.
func TestFixtures(t *testing.T) {
	shared(t, "fixtures")
	for _, f := range fixtures {
		t.Run(f.path, func(t *testing.T) {
			dir := privateCopy(t, shared(t, "fixtures/"+f.path))
			before := treeSum(t, filepath.Dir(dir))
			r := mustOpen(t, dir)
			checkFixture(t, r, f)
			checkExpected(t, r, f)
			if treeSum(t, filepath.Dir(dir)) != before {
				t.Error("reading changed the bag")
			}
		})
	}
}

// The same for the one bag that is always here: whole files compressed, and paths with the name of another directory.
func TestTestdataBag(t *testing.T) {
	r := mustOpen(t, privateCopy(t, filepath.Join("testdata", "bags", "06-galactic-file-zstd")))
	for _, f := range fixtures {
		if f.path == "bags/06-galactic-file-zstd" {
			checkFixture(t, r, f)
		}
	}
}

func checkFixture(t *testing.T, r *Reader, f fixture) {
	t.Helper()
	i, m := r.Info(), r.Metadata()
	var counts []string
	seen := map[plugin.TopicID]uint64{}
	for _, msg := range readAll(t, r, plugin.Query{}) {
		seen[msg.Topic]++
		if !strings.HasPrefix(string(msg.Data), "\x00\x01\x00\x00") {
			t.Fatalf("%x does not begin like CDR", msg.Data[:min(4, len(msg.Data))])
		}
	}
	var sum, files uint64
	for n, tp := range i.Topics {
		if tp.Count > 0 {
			counts = append(counts, fmt.Sprintf("%s %d", tp.Name, tp.Count))
		}
		if seen[tp.ID] != tp.Count || m.Topics[n].MessageCount != tp.Count || m.Topics[n].Name != tp.Name {
			t.Errorf("%s: %d messages read, %d counted, %+v in the metadata", tp.Name, seen[tp.ID], tp.Count, m.Topics[n])
		}
		sum += tp.Count
	}
	for _, fi := range i.Files {
		files += fi.Messages
		if fi.Size <= 0 || fi.CutOff {
			t.Errorf("%+v", fi)
		}
	}
	if sum != i.Messages || files != i.Messages || m.MessageCount != i.Messages || m.Start != i.Start || m.Duration != i.Duration {
		t.Errorf("topics %d, files %d, bag %d messages; %+v", sum, files, i.Messages, m)
	}
	if got := strings.Join(counts, ", "); f.counts != "" && got != f.counts {
		t.Errorf("counts %s, want %s", got, f.counts)
	}
	if len(i.Topics) != f.topics || len(i.Files) != f.files || m.Version != f.version || i.StorageID != "sqlite3" || i.CutOff || i.StillRecording {
		t.Errorf("%d topics, %d files, %+v", len(i.Topics), len(i.Files), i)
	}
	if f.end != 0 || f.start == plugin.NoStart {
		if i.Start != f.start || i.End != f.end || (i.Messages > 0 && i.Duration != time.Duration(f.end-f.start)) {
			t.Errorf("start %d, end %d, duration %d", i.Start, i.End, i.Duration)
		}
	}
	var own []string // warnings of the storages begin with the file's name
	for _, w := range i.Warnings {
		if !strings.Contains(w, ".db3: ") {
			own = append(own, w)
		}
	}
	for n, w := range own {
		if n >= len(f.warnings) || !strings.Contains(w, f.warnings[n]) {
			t.Errorf("warnings %q, want %q", own, f.warnings)
			break
		}
	}
	if len(own) < len(f.warnings) {
		t.Errorf("warnings %q, want %q", own, f.warnings)
	}
}

// checkExpected compares with what the real reader says of every message.
func checkExpected(t *testing.T, r *Reader, f fixture) {
	root := shared(t, "fixtures")
	file, err := os.Open(filepath.Join(root, filepath.FromSlash(f.path)+".expected.txt"))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var want []string
	for s := bufio.NewScanner(file); s.Scan(); {
		if strings.Contains(s.Text(), " recv=") {
			want = append(want, s.Text())
		}
	}
	names := map[plugin.TopicID]string{}
	for _, tp := range r.Info().Topics {
		names[tp.ID] = tp.Name
	}
	var got []string
	for _, m := range readAll(t, r, plugin.Query{}) {
		got = append(got, fmt.Sprintf("%s recv=%d send=%d len=%d fnv1a64=%016x", names[m.Topic], m.RecvTime, m.SendTime, len(m.Data), expectedSum(m.Data)))
	}
	if len(want) < 50 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d messages, want %d; first: %s, want %s", len(got), len(want), got[0], want[0])
	}
}

// expectedSum is the FNV-1a of .expected.txt, whose starting value lacks a digit of the usual one.
func expectedSum(data []byte) uint64 {
	h := uint64(1469598103934665603)
	for _, c := range data {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// QoS that only metadata.yaml has, or only the storage, or both.
func TestFixtureQoS(t *testing.T) {
	for path, want := range map[string]map[string]int{
		"bags/09-humble-v5-convert_a":                                 {"a_empty": 2, "b_basictypes": 1},
		"bags/07-galactic-message-zstd":                               {"/rosout": 2, "/topic": 0, "/parameter_events": 2},
		"bags/04-foxy-v4-schema2":                                     {"/array_topic": 1, "/test_topic": 1},
		"bags/22-loose-files-topics-services/topics_and_services.db3": {"/parameter_events": 2},
	} {
		for _, tp := range mustOpen(t, privateCopy(t, shared(t, "fixtures/"+path))).Info().Topics {
			n, ok := want[tp.Name]
			if ok && len(tp.QoS) != n {
				t.Errorf("%s %s: %+v", path, tp.Name, tp.QoS)
			}
			for _, q := range tp.QoS {
				if strings.Contains(path, "foxy") && (q.Deadline != Infinite || q.LivelinessLeaseDuration != Infinite) {
					t.Errorf("%s %s: %+v", path, tp.Name, q)
				}
			}
		}
	}
}

// A bag of the real rosbag2 that was killed has no metadata.yaml; it opens and says what it is, as directory and as file.
func TestFixtureKilled(t *testing.T) {
	dir := privateCopy(t, shared(t, "fixtures/rosbag2/bags/jazzy_sqlite3_killed"))
	for _, p := range []string{dir, filepath.Join(dir, "jazzy_sqlite3_killed_0.db3")} {
		r := mustOpen(t, p)
		i := r.Info()
		if !i.CutOff || i.Messages != 272 || len(readAll(t, r, plugin.Query{})) != 272 || i.ROSDistro != "jazzy" {
			t.Errorf("%s: %+v", p, i)
		}
		if !strings.Contains(strings.Join(i.Warnings, "\n"), "cut off") {
			t.Errorf("%s: %q", p, i.Warnings)
		}
	}
}

func TestFixtureNegative(t *testing.T) {
	dir := privateCopy(t, shared(t, "fixtures/bags/29-ros1-bag-negative"))
	for _, p := range []string{dir, filepath.Join(dir, "test_bag.bag")} {
		_, err := Open(context.Background(), p, ReaderOptions{})
		if err == nil || !strings.Contains(err.Error(), "is a ROS 1 bag, convert it first") {
			t.Errorf("%s: %v", p, err)
		}
	}
}
