package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

const start = 1796041461_000000001 // Nov 30 2026 12:24:21 UTC

// makeBag writes a small bag: 3 strings a second apart, one Imu, an empty topic, a service's events, an action's
// feedback and status.
func makeBag(t *testing.T, dir string, change func(w *bag.Writer)) {
	t.Helper()
	w, err := bag.Create(t.Context(), dir, bag.WriterOptions{ROSDistro: "jazzy", CustomData: map[string]string{"robot": "r2"}})
	if err != nil {
		t.Fatal(err)
	}
	add := func(name, typ string) plugin.TopicID {
		id, err := w.AddTopic(plugin.Topic{Name: name, Type: typ, SerializationFormat: "cdr", TypeHash: "RIHS01_" + strings.Repeat("0", 64),
			OfferedQoS: bag.EncodeQoS([]bag.QoSProfile{bag.DefaultQoSProfile()}, true)})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	chatter, imu := add("/chatter", "std_msgs/msg/String"), add("/imu", "sensor_msgs/msg/Imu")
	add("/empty", "std_msgs/msg/Bool")
	service := add("/add/_service_event", "example_interfaces/srv/AddTwoInts_Event")
	feedback := add("/fib/_action/feedback", "example_interfaces/action/Fibonacci_FeedbackMessage")
	status := add("/fib/_action/status", "action_msgs/msg/GoalStatusArray")
	var batch []plugin.Message
	for i := range 3 {
		batch = append(batch, plugin.Message{Topic: chatter, RecvTime: start + int64(i)*1e9, Data: []byte("\x00\x01\x00\x00\x02\x00\x00\x00x\x00")})
	}
	for _, id := range []plugin.TopicID{imu, service, service, feedback, status} {
		batch = append(batch, plugin.Message{Topic: id, RecvTime: start + 5e8, Data: make([]byte, 20)})
	}
	if err := w.Write(batch); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(w)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// mask hides what differs between runs: sizes on disk.
var maskSize = regexp.MustCompile(`\d+\.\d [KMG]iB|\d+ B\b`)

func infoOf(t *testing.T, dir string, o infoOptions) string {
	t.Helper()
	r, err := bag.Open(t.Context(), dir, bag.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	o.loc = time.UTC
	var sizes map[plugin.TopicID]topicSize
	if o.verbose {
		if sizes, err = measure(r); err != nil {
			t.Fatal(err)
		}
	}
	return maskSize.ReplaceAllString(infoText(r, sizes, o), "SIZE")
}

// golden compares with testdata/NAME, which GOBAG_UPDATE=1 writes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("GOBAG_UPDATE") != "" {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", name, got, want)
	}
}

func TestInfoText(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	makeBag(t, dir, func(w *bag.Writer) {
		l := bag.Ledger{Topics: map[string]bag.TopicLedger{
			"/chatter": {Received: 5, Recorded: 3, Lost: bag.Lost{Wire: 1, Queue: 2}},
			"/imu":     {Received: 1, Recorded: 1, UnknownWriters: 2}}}
		w.SetCustomData(bag.KeyLedger, l.Encode())
		w.SetCustomData(bag.KeyClockSteps, bag.EncodeClockSteps([]bag.ClockStep{{Monotonic: 2500 * time.Millisecond, Before: start, After: start - 3600e9}}))
	})
	golden(t, "info.txt", infoOf(t, dir, infoOptions{sort: "name"}))
	golden(t, "info_verbose.txt", infoOf(t, dir, infoOptions{sort: "count", verbose: true}))
}

func TestInfoEmpty(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "empty")
	w, err := bag.Create(t.Context(), dir, bag.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	golden(t, "info_empty.txt", infoOf(t, dir, infoOptions{sort: "name"}))
	r := cli(nil, "info", dir, "--json")
	if r.code != 0 || !strings.Contains(r.out, `"start_ns": null`) {
		t.Errorf("%d %s%s", r.code, r.out, r.errOut)
	}
}

func TestInfoNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	makeBag(t, dir, nil)
	if r := cli(nil, "info", dir, "-t"); r.code != 0 || r.out != "/chatter\n/empty\n/imu\n" {
		t.Errorf("%d %q %s", r.code, r.out, r.errOut)
	}
	if r := cli(nil, "info", dir, "-t", "--sort", "count"); r.out != "/empty\n/imu\n/chatter\n" {
		t.Errorf("%q", r.out)
	}
	if r := cli(nil, "info", dir, "-t", "--sort", "type"); r.out != "/imu\n/empty\n/chatter\n" {
		t.Errorf("%q", r.out)
	}
}

// TestInfoRecording: a bag that is being written says so, and a copy of it without its lock says it was cut off.
func TestInfoRecording(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "live")
	makeBag(t, dir, func(w *bag.Writer) {
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
		if r := cli(nil, "info", dir); r.code != 0 || !strings.Contains(r.out, "being recorded right now") {
			t.Errorf("live: %d %s%s", r.code, r.out, r.errOut)
		}
		cut := filepath.Join(t.TempDir(), "live")
		if err := os.CopyFS(cut, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if r := cli(nil, "info", cut); r.code != 0 || !strings.Contains(r.out, "cut off") || !strings.Contains(r.out, "Count: 3") {
			t.Errorf("cut off: %d %s%s", r.code, r.out, r.errOut)
		}
	})
	if r := cli(nil, "info", dir); strings.Contains(r.out, "cut off") || strings.Contains(r.out, "right now") {
		t.Errorf("closed: %s", r.out)
	}
}

func TestInfoJSON(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	makeBag(t, dir, func(w *bag.Writer) {
		l := bag.Ledger{Topics: map[string]bag.TopicLedger{"/chatter": {Received: 4, Recorded: 3, Lost: bag.Lost{Wire: 1, Storage: 1}}}}
		w.SetCustomData(bag.KeyLedger, l.Encode())
	})
	r := cli(nil, "info", dir, "--json")
	if r.code != 0 {
		t.Fatal(r.errOut)
	}
	d := json.NewDecoder(strings.NewReader(r.out))
	d.UseNumber()
	var j map[string]any
	if err := d.Decode(&j); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"message_count": "8", "start_ns": strconv.FormatInt(start, 10), "end_ns": strconv.FormatInt(start+2e9, 10), "duration_ns": "2000000000"} {
		if n, ok := j[key].(json.Number); !ok || n.String() != want {
			t.Errorf("%s: %v, want the integer %s", key, j[key], want)
		}
	}
	if j["storage_identifier"] != "mcap" || j["ros_distro"] != "jazzy" || j["custom_data"].(map[string]any)["robot"] != "r2" {
		t.Errorf("%v", j)
	}
	if n, err := j["bag_size"].(json.Number).Int64(); err != nil || n <= 0 {
		t.Errorf("bag_size %v", j["bag_size"])
	}
	topics := j["topics"].([]any)
	if len(topics) != 6 || len(j["files"].([]any)) != 1 {
		t.Fatalf("%d topics, %d files", len(topics), len(j["files"].([]any)))
	}
	chatter := topics[0].(map[string]any)
	lost := chatter["lost"].(map[string]any)
	qos := chatter["qos"].([]any)[0].(map[string]any)
	if chatter["name"] != "/chatter" || chatter["count"].(json.Number).String() != "3" || chatter["serialization_format"] != "cdr" ||
		lost["wire"].(json.Number).String() != "1" || lost["storage"].(json.Number).String() != "1" || qos["reliability"] != "reliable" || qos["deadline_ns"] != nil ||
		!strings.HasPrefix(chatter["type_hash"].(string), "RIHS01_") {
		t.Errorf("%v", chatter)
	}
	if topics[1].(map[string]any)["lost"] != nil {
		t.Errorf("no ledger entry, yet: %v", topics[1])
	}
}

// TestInfoShared runs info over every public bag: the counts are those that each bag's neighbours state.
func TestInfoShared(t *testing.T) {
	root := shared("fixtures", "rosbag2", "bags")
	if root == "" {
		t.Skip("no shared data")
	}
	expected, _ := filepath.Glob(filepath.Join(root, "*sqlite3*.expected.txt"))
	if len(expected) == 0 {
		t.Fatal("no bags in " + root)
	}
	for _, path := range expected {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]uint64{}
		for line := range bytes.Lines(text) {
			if name, rest, ok := strings.Cut(string(line), " "); ok && strings.HasPrefix(name, "/") && strings.HasPrefix(rest, "recv=") {
				counts[name]++
			}
		}
		dir := strings.TrimSuffix(path, ".expected.txt")
		t.Run(filepath.Base(dir), func(t *testing.T) {
			r := cli(nil, "info", dir, "--json")
			if r.code != 0 {
				t.Fatal(r.errOut)
			}
			var j struct {
				Topics []struct {
					Name  string
					Count uint64
				}
			}
			if err := json.Unmarshal([]byte(r.out), &j); err != nil {
				t.Fatal(err)
			}
			for _, topic := range j.Topics {
				if topic.Count != counts[topic.Name] {
					t.Errorf("%s: %d, want %d", topic.Name, topic.Count, counts[topic.Name])
				}
				delete(counts, topic.Name)
			}
			for name, n := range counts {
				if n > 0 {
					t.Errorf("%s is missing (%d messages)", name, n)
				}
			}
			if text := cli(nil, "info", dir); text.code != 0 || !strings.Contains(text.out, "Storage id:        sqlite3") {
				t.Errorf("text: %d %s", text.code, text.errOut)
			}
		})
	}
}
