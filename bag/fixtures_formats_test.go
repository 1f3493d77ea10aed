package bag

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
	_ "github.com/gobag/gobag/plugins/all" // fixtures are in all formats
)

// needsFormat skips where the format is not linked in.
func needsFormat(t *testing.T, name string) {
	t.Helper()
	if _, err := plugin.Lookup(name); err != nil {
		t.Skip(err)
	}
}

// storageOf is the storage format of a fixture, by the names of its files.
func storageOf(t *testing.T, path string) string {
	t.Helper()
	storage := ""
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.Contains(d.Name(), ".db3"):
			storage = "sqlite3"
		case strings.Contains(d.Name(), ".mcap"):
			storage = "mcap"
		case d.Name() == "CURRENT":
			storage = "leveldb"
		}
		return nil
	})
	if err != nil || storage == "" {
		t.Fatalf("%s: no storage found, %v", path, err)
	}
	return storage
}

// Every bag of the real rosbag2 that comes with a list of its messages gives each of them: topic, both stamps, length and
// checksum of the payload, in order.
func TestExpectedMessages(t *testing.T) {
	var lists []string
	for _, dir := range []string{"rosbag2/bags", "rosbag2/fastrtps/bags"} {
		found, err := filepath.Glob(filepath.Join(shared(t, "fixtures/"+dir), "*.expected.txt"))
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, found...)
	}
	if len(lists) < 17 {
		t.Fatalf("only %d lists: %q", len(lists), lists)
	}
	for _, list := range lists {
		original := strings.TrimSuffix(list, ".expected.txt")
		t.Run(filepath.Base(original), func(t *testing.T) {
			storage := storageOf(t, original)
			needsFormat(t, storage)
			want := expectedLines(t, list)
			dir := privateCopy(t, original)
			before := treeSum(t, dir)
			r := mustOpen(t, dir)
			i := r.Info()
			got := gotLines(t, r)
			compareLines(t, got, want)
			if i.StorageID != storage || i.Messages != uint64(len(want)) || i.CutOff {
				t.Errorf("storage %s, %d messages, cut off %v; want %s, %d", i.StorageID, i.Messages, i.CutOff, storage, len(want))
			}
			if len(i.Warnings) > 0 {
				t.Logf("warnings: %q", i.Warnings)
			}
			if treeSum(t, dir) != before {
				t.Error("reading changed the bag")
			}
		})
	}
}

func expectedLines(t *testing.T, list string) (lines []string) {
	t.Helper()
	for s := bufio.NewScanner(strings.NewReader(readFile(t, list))); s.Scan(); {
		if strings.Contains(s.Text(), " recv=") {
			lines = append(lines, s.Text())
		}
	}
	if len(lines) < 50 {
		t.Fatalf("%s: only %d messages", list, len(lines))
	}
	return lines
}

func gotLines(t *testing.T, r *Reader) (lines []string) {
	t.Helper()
	names := map[plugin.TopicID]string{}
	for _, tp := range r.Info().Topics {
		names[tp.ID] = tp.Name
	}
	for _, m := range readAll(t, r, plugin.Query{}) {
		lines = append(lines, fmt.Sprintf("%s recv=%d send=%d len=%d fnv1a64=%016x", names[m.Topic], m.RecvTime, m.SendTime, len(m.Data), expectedSum(m.Data)))
	}
	return lines
}

func compareLines(t *testing.T, got, want []string) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("message %d of %d: %s, want %s", i, len(got), got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d messages, want %d", len(got), len(want))
	}
}

// A bag in MCAP with what its README says: counts by topic, topics without messages among them where the file has them.
var mcapFixtures = []struct {
	path       string
	counts     map[string]uint64
	topics     int // 0 = those of counts
	start, end int64
	files      int
	format     string // of serialization; "" = cdr
	warning    string // part of one that must be there
}{
	{"12-split5-v4-mcap", map[string]uint64{"AAA": 804, "BBB": 742, "CCC": 742, "DDD": 753, "EEE": 804, "FFF": 772, "GGG": 731, "HHH": 726}, 0, 1000, 2998, 5, "", "metadata.yaml says start"},
	{"14-talker-mcap", map[string]uint64{"/rosout": 10, "/parameter_events": 0, "/topic": 10}, 0, 1585866235112411371, 1585866239643508139, 1, "", ""},
	{"16-seek-mcap", map[string]uint64{"topic1": 5}, 0, 1000000000, 1400000000, 1, "", ""},
	{"18-cdr_test-v7-mcap", map[string]uint64{"/test_topic": 3, "/array_topic": 4}, 0, 1586406456763032325, 1586406456914169506, 1, "", ""},
	{"20-actions-services-v9-mcap", map[string]uint64{"/rosout": 112, "/events/write_split": 0, "/parameter_events": 7,
		"/test_action1/_action/feedback": 5, "/test_action2/_action/feedback": 7, "/test_service1/_service_event": 2}, 17, 1741940193171291565, 1741940240507073524, 1, "", ""},
	{"21-jazzy-services-mcap", map[string]uint64{"/test_topic2": 1, "/test_topic1": 1, "/test_service2/_service_event": 4,
		"/test_service1/_service_event": 4, "/events/write_split": 0}, 0, 1699345836270074454, 1699345836340728398, 1, "", ""},
	{"22-loose-files-topics-services/only_services.mcap", map[string]uint64{"/add_two_ints/_service_event": 12}, -1, 1697521953726475197, 1697521956226579212, 1, "", ""},
	{"22-loose-files-topics-services/only_topics.mcap", map[string]uint64{"/parameter_events": 7}, -1, 1697521620031724098, 1697521620038262023, 1, "", ""},
	{"22-loose-files-topics-services/topics_and_services.mcap", map[string]uint64{"/parameter_events": 7, "/add_two_ints/_service_event": 6}, -1, 1697522263121459207, 1697522264629347866, 1, "", ""},
	{"24-rosbags-lib-alltypes-mcap", nil, 94, 1749315324903302144, 1749315343603302144, 1, "", ""},
	{"27-array-msgs-mcap", map[string]uint64{"/one_shot/imu": 1, "/one_shot/joint_state": 1}, 0, 1754489469740737342, 1754489471043571685, 1, "", ""},
	{"28-base-msgs-mcap", map[string]uint64{"/one_shot/twist": 1, "/one_shot/vector3": 1, "/one_shot/string": 1}, 0, 1754127213064440150, 1754127215645206776, 1, "", ""},
	{"30-wrong-serialization-v6-mcap", map[string]uint64{"/test_topic": 3, "/array_topic": 4}, 0, 1586406456763032325, 1586406456914169506, 1, "wrong_format", ""},
	{"32-jazzy-v9-recorded-mcap", nil, -1, 0, 0, 1, "", ""},
}

// mcapTotals are the messages of the fixtures above, as their READMEs count them.
var mcapTotals = []uint64{6074, 20, 5, 7, 218, 10, 12, 7, 13, 188, 2, 3, 7, 6578}

func TestMCAPFixtures(t *testing.T) {
	needsFormat(t, "mcap")
	for n, f := range mcapFixtures {
		t.Run(f.path, func(t *testing.T) {
			dir := privateCopy(t, shared(t, "fixtures/bags/"+f.path))
			r := mustOpen(t, dir)
			i := r.Info()
			counts := map[string]uint64{}
			names := map[plugin.TopicID]string{}
			for _, tp := range i.Topics {
				names[tp.ID] = tp.Name
				if tp.SerializationFormat != cmp.Or(f.format, "cdr") {
					t.Errorf("%s: serialization format %q", tp.Name, tp.SerializationFormat)
				}
			}
			for _, m := range readAll(t, r, plugin.Query{}) {
				counts[names[m.Topic]]++
			}
			var sum uint64
			for _, tp := range i.Topics {
				if sum += tp.Count; counts[tp.Name] != tp.Count {
					t.Errorf("%s: %d messages read, %d counted", tp.Name, counts[tp.Name], tp.Count)
				}
				counts[tp.Name] += 0
			}
			for name, want := range f.counts {
				if got, there := counts[name]; got != want || !there {
					t.Errorf("%s: %d messages (listed: %v), want %d", name, got, there, want)
				}
			}
			if i.Messages != mcapTotals[n] || sum != i.Messages || i.StorageID != "mcap" || i.CutOff || len(i.Files) != f.files {
				t.Errorf("%d messages (%d by topic), want %d; %s, cut off %v, %d files", i.Messages, sum, mcapTotals[n], i.StorageID, i.CutOff, len(i.Files))
			}
			if want := cmp.Or(f.topics, len(f.counts)); want > 0 && len(i.Topics) != want {
				t.Errorf("%d topics, want %d", len(i.Topics), want)
			}
			if f.end != 0 && (i.Start != f.start || i.End != f.end) {
				t.Errorf("from %d to %d, want %d to %d", i.Start, i.End, f.start, f.end)
			}
			if f.warning != "" && !strings.Contains(strings.Join(i.Warnings, "\n"), f.warning) {
				t.Errorf("warnings %q, want one with %q", i.Warnings, f.warning)
			}
		})
	}
}

// Bags of older rosbag2 trees hold as many messages as their metadata.yaml says, and so do their twins in another format.
func TestEraBags(t *testing.T) {
	root := shared(t, "fixtures/rosbag2/era")
	opened := 0
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != MetadataFile {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(p))
		if err != nil {
			return err
		}
		t.Run(filepath.ToSlash(rel), func(t *testing.T) {
			m, err := ParseMetadata([]byte(readFile(t, p)))
			if err != nil {
				t.Fatal(err)
			}
			needsFormat(t, m.StorageIdentifier)
			dir := filepath.Dir(p)
			if stored, err := filepath.Glob(filepath.Join(dir, "*.*3*")); err != nil || len(stored) == 0 {
				if stored, err = filepath.Glob(filepath.Join(dir, "*.mcap*")); err != nil || len(stored) == 0 {
					t.Skip("metadata.yaml alone")
				}
			}
			r := mustOpen(t, privateCopy(t, dir))
			opened++
			if got := uint64(len(readAll(t, r, plugin.Query{}))); got != m.MessageCount || r.Info().Messages != got {
				t.Errorf("%d messages, metadata.yaml says %d", got, m.MessageCount)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if opened < 15 && !t.Failed() {
		t.Errorf("only %d bags", opened)
	}
}

// Bags of the real rosbag2 that was killed while it wrote MCAP: one with whole chunks opens with what its own reader finds
// there and says that it was cut off; one that had not written a byte is refused by name, as by its own reader.
func TestFixtureKilledMCAP(t *testing.T) {
	needsFormat(t, "mcap")
	dir := privateCopy(t, shared(t, "fixtures/rosbag2/bags/jazzy_mcap_killed_chunks"))
	for _, p := range []string{dir, filepath.Join(dir, "k_0.mcap")} {
		r := mustOpen(t, p)
		i := r.Info()
		if got := readAll(t, r, plugin.Query{}); !i.CutOff || len(got) != 776 || i.Messages != 776 || len(i.Warnings) == 0 {
			t.Errorf("%s: %d messages read, %d counted, want 776; cut off %v, warnings %q", p, len(got), i.Messages, i.CutOff, i.Warnings)
		}
	}
	dir = privateCopy(t, shared(t, "fixtures/rosbag2/bags/jazzy_mcap_killed"))
	for _, p := range []string{dir, filepath.Join(dir, "jazzy_mcap_killed_0.mcap")} {
		if err := openErr(t, p); err == nil || !strings.Contains(err.Error(), "jazzy_mcap_killed_0.mcap") || !strings.Contains(err.Error(), "is empty") {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// conformanceFile is what a .json beside a .mcap of the MCAP conformance set says.
type conformanceFile struct {
	Records []struct {
		Type   string
		Fields [][2]json.RawMessage
	}
}

// conformanceRecord is a record's fields by name; numbers are strings there.
type conformanceRecord map[string]json.RawMessage

func (r conformanceRecord) number(t *testing.T, name string) uint64 {
	t.Helper()
	var text string
	err := json.Unmarshal(r[name], &text)
	n, perr := strconv.ParseUint(text, 10, 64)
	if err := errors.Join(err, perr); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func (r conformanceRecord) text(t *testing.T, name string) (text string) {
	t.Helper()
	if err := json.Unmarshal(r[name], &text); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return text
}

func (r conformanceRecord) bytes(t *testing.T, name string) []byte {
	t.Helper()
	var texts []string
	if err := json.Unmarshal(r[name], &texts); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	b := []byte{}
	for _, s := range texts {
		n, err := strconv.ParseUint(s, 10, 8)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, byte(n))
	}
	return b
}

// All 416 files of the MCAP conformance set: with and without chunks, indexes, summary, statistics, repeated schemas and
// padding behind records. Each opens and gives the messages that the list beside it names, of the topics that it names.
func TestMCAPConformanceFiles(t *testing.T) {
	needsFormat(t, "mcap")
	lists, err := filepath.Glob(filepath.Join(shared(t, "fixtures/bags/33-mcap-conformance"), "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(lists) != 416 {
		t.Fatalf("%d lists, want 416", len(lists))
	}
	failed := 0
	for _, list := range lists {
		path := strings.TrimSuffix(list, ".json") + ".mcap"
		t.Run(filepath.Base(path), func(t *testing.T) { checkConformance(t, list, path) })
		if t.Failed() {
			if failed++; failed == 10 {
				t.Fatal("more are not shown")
			}
		}
	}
}

func checkConformance(t *testing.T, list, path string) {
	var f conformanceFile
	if err := json.Unmarshal([]byte(readFile(t, list)), &f); err != nil {
		t.Fatal(err)
	}
	var want []plugin.Message
	schemas, channels := map[uint64]string{0: ""}, map[uint64]string{}
	topics := map[string]string{} // name to type and serialization format
	for _, raw := range f.Records {
		r := conformanceRecord{}
		for _, field := range raw.Fields {
			var name string
			if err := json.Unmarshal(field[0], &name); err != nil {
				t.Fatal(err)
			}
			r[name] = field[1]
		}
		switch raw.Type {
		case "Schema":
			schemas[r.number(t, "id")] = r.text(t, "name")
		case "Channel":
			channels[r.number(t, "id")] = r.text(t, "topic")
			topics[r.text(t, "topic")] = schemas[r.number(t, "schema_id")] + " " + r.text(t, "message_encoding")
		case "Message":
			if _, ok := channels[r.number(t, "channel_id")]; !ok {
				t.Fatal("a message of no channel")
			}
			want = append(want, plugin.Message{RecvTime: int64(r.number(t, "log_time")), SendTime: int64(r.number(t, "publish_time")),
				Seq: r.number(t, "sequence"), Data: r.bytes(t, "data")})
		}
	}
	slices.SortStableFunc(want, func(a, b plugin.Message) int { return cmp.Compare(a.RecvTime, b.RecvTime) })

	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, path)
	i := r.Info()
	got := readAll(t, r, plugin.Query{})
	for k := range got {
		got[k].Topic, got[k].Source, got[k].Order = 0, 0, 0
		got[k].Data = append([]byte{}, got[k].Data...)
	}
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("messages %+v, want %+v", got, want)
	}
	have := map[string]string{}
	for _, tp := range i.Topics {
		have[tp.Name] = tp.Type + " " + tp.SerializationFormat
	}
	if !reflect.DeepEqual(have, topics) {
		t.Errorf("topics %q, want %q", have, topics)
	}
	if i.Messages != uint64(len(want)) || i.Size != st.Size() || i.CutOff {
		t.Errorf("%d messages, %d bytes, cut off %v; want %d, %d", i.Messages, i.Size, i.CutOff, len(want), st.Size())
	}
}
