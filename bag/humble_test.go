package bag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/gobag/gobag/plugin"
)

// A strict decoder of metadata version 5, as Humble writes it: exactly these keys, in this order, of these types.

type (
	strictKey struct {
		name  string
		value strictValue
	}
	strictValue func(n *yaml.Node, path string) error
)

var strictV5 = strictMap(strictKey{metadataRoot, strictMap(
	strictKey{"version", strictText("!!int", "5")},
	strictKey{"storage_identifier", strictText("!!str")},
	strictKey{"duration", strictMap(strictKey{"nanoseconds", strictUint})},
	strictKey{"starting_time", strictMap(strictKey{"nanoseconds_since_epoch", strictUint})},
	strictKey{"message_count", strictUint},
	strictKey{"topics_with_message_count", strictList(strictMap(
		strictKey{"topic_metadata", strictMap(
			strictKey{"name", strictText("!!str")},
			strictKey{"type", strictText("!!str")},
			strictKey{"serialization_format", strictText("!!str")},
			strictKey{"offered_qos_profiles", strictQoS})},
		strictKey{"message_count", strictUint}))},
	strictKey{"compression_format", strictText("!!str", "", "zstd")},
	strictKey{"compression_mode", strictText("!!str", "", "FILE", "MESSAGE")},
	strictKey{"relative_file_paths", strictList(strictText("!!str"))},
	strictKey{"files", strictList(strictMap(
		strictKey{"path", strictText("!!str")},
		strictKey{"starting_time", strictMap(strictKey{"nanoseconds_since_epoch", strictUint})},
		strictKey{"duration", strictMap(strictKey{"nanoseconds", strictUint})},
		strictKey{"message_count", strictUint}))},
)})

// strictProfiles is the text of offered_qos_profiles.
var strictProfiles = strictList(strictMap(
	strictKey{"history", strictUint},
	strictKey{"depth", strictUint},
	strictKey{"reliability", strictUint},
	strictKey{"durability", strictUint},
	strictKey{"deadline", strictTime},
	strictKey{"lifespan", strictTime},
	strictKey{"liveliness", strictUint},
	strictKey{"liveliness_lease_duration", strictTime},
	strictKey{"avoid_ros_namespace_conventions", strictText("!!bool")},
))

var strictTime = strictMap(strictKey{"sec", strictUint}, strictKey{"nsec", strictUint})

func strictMap(keys ...strictKey) strictValue {
	return func(n *yaml.Node, path string) error {
		if n.Kind != yaml.MappingNode {
			return fmt.Errorf("%s: no map", path)
		}
		var got, want []string
		for i := 0; i < len(n.Content); i += 2 {
			got = append(got, n.Content[i].Value)
		}
		for _, k := range keys {
			want = append(want, k.name)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s: keys %v, want %v", path, got, want)
		}
		for i, k := range keys {
			if err := k.value(n.Content[2*i+1], path+"."+k.name); err != nil {
				return err
			}
		}
		return nil
	}
}

func strictList(item strictValue) strictValue {
	return func(n *yaml.Node, path string) error {
		if n.Kind != yaml.SequenceNode {
			return fmt.Errorf("%s: no list", path)
		}
		for i, c := range n.Content {
			if err := item(c, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	}
}

// strictText is a scalar of that type, one of the values if any are given.
func strictText(tag string, values ...string) strictValue {
	return func(n *yaml.Node, path string) error {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != tag || len(values) > 0 && !slices.Contains(values, n.Value) {
			return fmt.Errorf("%s: %q of type %s", path, n.Value, n.ShortTag())
		}
		return nil
	}
}

func strictUint(n *yaml.Node, path string) error {
	if _, err := strconv.ParseUint(n.Value, 10, 64); err != nil || n.Kind != yaml.ScalarNode || n.Style != 0 {
		return fmt.Errorf("%s: %q is no number", path, n.Value)
	}
	return nil
}

func strictQoS(n *yaml.Node, path string) error {
	if err := strictText("!!str")(n, path); err != nil || n.Value == "" {
		return err
	}
	return strictly([]byte(n.Value), strictProfiles, path)
}

func strictly(text []byte, v strictValue, path string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return err
	}
	return v(doc.Content[0], path)
}

// The decoder takes what Humble wrote and nothing else.
func TestHumbleDecoder(t *testing.T) {
	files := metadataFiles(t, "testdata")
	if root := os.Getenv("GOBAG_SHARED"); root != "" {
		files = append(files, metadataFiles(t, filepath.Join(root, "fixtures"))...)
	} else if root := filepath.Join("..", "..", "shared", "fixtures"); exists(root) {
		files = append(files, metadataFiles(t, root)...)
	}
	taken := 0
	for _, p := range files {
		text := readFile(t, p)
		err := strictly([]byte(text), strictV5, "")
		five := strings.Contains(text, "\n  version: 5\n") && !otherStyle(text)
		if five && err != nil || !five && err == nil && !otherStyle(text) {
			t.Errorf("%s: %v", p, err)
		}
		if err == nil {
			taken++
		}
	}
	if taken < 2 {
		t.Errorf("%d files were taken", taken)
	}
	good := string(yard(5).Encode(5))
	if err := strictly([]byte(good), strictV5, ""); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new string }{
		{"version: 5", "version: 6"},
		{"  storage_identifier: sqlite3\n", ""},
		{"message_count: 6", `message_count: "6"`},
		{"  compression_format: \"\"\n  compression_mode: \"\"\n", "  compression_mode: \"\"\n  compression_format: \"\"\n"},
		{"compression_mode: \"\"", "compression_mode: ~"},
		{"- history: 1", "- history: keep_last"},
		{`\n  depth: 7`, ""},
		{"      message_count: 6", "      message_count: -6"},
		{"        serialization_format: cdr\n", "        serialization_format: cdr\n        type_description_hash: \"\"\n"},
		{"  files:\n", "  custom_data: ~\n  files:\n"},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		if bad == good {
			t.Errorf("%q is not there", c.old)
		}
		if err := strictly([]byte(bad), strictV5, ""); err == nil {
			t.Errorf("%q was taken", c.new)
		}
	}
	if err := strictly(append([]byte(good), "\n  custom_data: ~"...), strictV5, ""); err == nil {
		t.Error("custom_data was taken")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A bag for Humble passes at any time: fresh, being recorded, split, closed. What version 5 has no key for is kept in
// the storage and found again.
func TestHumbleBag(t *testing.T) {
	for _, storage := range []string{"sqlite3", "memory"} {
		dir := filepath.Join(t.TempDir(), "yard")
		w := mustCreate(t, dir, WriterOptions{StorageID: storage, Compat: plugin.CompatHumble, ROSDistro: "humble", CustomData: map[string]string{"who": "me"},
			SyncInterval: -1})
		check := func(when string) {
			t.Helper()
			if err := strictly([]byte(readFile(t, filepath.Join(dir, MetadataFile))), strictV5, ""); err != nil {
				t.Errorf("%s, %s: %v", storage, when, err)
			}
		}
		check("fresh")
		quirky := DefaultQoSProfile()
		quirky.Deadline, quirky.Liveliness, quirky.History = 1500*time.Millisecond, 3, 3
		a, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "x/msg/A", TypeHash: "RIHS01_1", OfferedQoS: EncodeQoS([]QoSProfile{DefaultQoSProfile(), quirky}, true),
			Definition: plugin.Definition{Encoding: "ros2msg", Text: "int32 a"}})
		if err != nil {
			t.Fatal(err)
		}
		mustTopic(t, w, "/odd name: {", "x/msg/B")
		mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 10, Data: []byte("one")})
		ledger := Ledger{Topics: map[string]TopicLedger{"/a": {Received: 3, Recorded: 2, Lost: Lost{Queue: 1}}}}
		w.SetCustomData(KeyLedger, ledger.Encode())
		if err := w.Split(); err != nil {
			t.Fatal(err)
		}
		check("split")
		mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 20, Data: []byte("two")})
		steps := []ClockStep{{Monotonic: time.Second, Before: 1, After: 2}}
		w.SetCustomData(KeyClockSteps, EncodeClockSteps(steps))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		check("closed")

		r := mustOpen(t, dir)
		info := r.Info()
		if len(info.Warnings) > 0 || info.CutOff || info.StillRecording || info.Messages != 2 || len(info.Files) != 2 {
			t.Errorf("%s: %+v", storage, info)
		}
		if info.CustomData["who"] != "me" || info.CustomData[KeyState] != StateClosed || info.Ledger == nil || info.Ledger.Encode() != ledger.Encode() ||
			!slices.Equal(info.ClockSteps, steps) {
			t.Errorf("%s: custom data %v", storage, info.CustomData)
		}
		m := r.Metadata()
		if m.Version != MetadataVersionHumble || !maps.Equal(m.CustomData, info.CustomData) {
			t.Errorf("%s: %+v", storage, m)
		}
	}
}

// A bag for Humble that was cut off says so, and the file that metadata.yaml does not name yet belongs to it.
func TestHumbleCutOff(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "yard")
	w := mustCreate(t, dir, WriterOptions{Compat: plugin.CompatHumble, SyncInterval: -1})
	a := mustTopic(t, w, "/a", "x/msg/A")
	mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 10, Data: []byte("one")})
	early := readFile(t, filepath.Join(dir, MetadataFile))
	if err := w.Split(); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 20, Data: []byte("two")})
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	cut := privateCopy(t, dir)
	if err := os.WriteFile(filepath.Join(cut, MetadataFile), []byte(early), 0o666); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, cut)
	if info := r.Info(); !info.CutOff || len(info.Files) != 2 || len(readAll(t, r, plugin.Query{})) != 2 {
		t.Errorf("%+v", info)
	}
	second := filepath.Join(cut, "yard_1.db3")
	for _, leftover := range []string{second + "-wal", second + "-shm", second + "-journal"} {
		if err := os.Remove(leftover); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(second, []byte("SQLite form"), 0o666); err != nil { // begun when the power went
		t.Fatal(err)
	}
	r = mustOpen(t, cut)
	if info := r.Info(); !info.CutOff || len(readAll(t, r, plugin.Query{})) != 1 {
		t.Errorf("%+v", info)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// The database is one of Humble's: the same header and tables, and one table more that Humble passes over. The page size
// is our own choice: every SQLite reads any.
func TestHumbleDatabase(t *testing.T) {
	theirs := shared(t, "fixtures/bags/31-humble-schema3-recorded")
	dir := filepath.Join(t.TempDir(), "test")
	w := mustCreate(t, dir, WriterOptions{Compat: plugin.CompatHumble})
	mustWrite(t, w, plugin.Message{Topic: mustTopic(t, w, "/mpc/ctrl", "control_interfaces/msg/Control"), RecvTime: 1, Data: []byte("x")})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	names := func(dir string) (out []string) {
		es, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			if e.Name() != "README.md" {
				out = append(out, e.Name())
			}
		}
		return out
	}
	if got, want := names(dir), names(theirs); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	ours, err := os.ReadFile(filepath.Join(dir, "test_0.db3"))
	if err != nil {
		t.Fatal(err)
	}
	humbles, err := os.ReadFile(filepath.Join(theirs, "test_0.db3"))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []struct {
		name     string
		from, to int
	}{
		{"magic", 0, 16}, {"write and read version", 18, 20}, {"reserved space and fractions", 20, 24},
		{"schema format", 44, 48}, {"auto-vacuum", 52, 56}, {"text encoding", 56, 60}, {"user version", 60, 64}, {"application id", 68, 72},
	} {
		if got, want := ours[field.from:field.to], humbles[field.from:field.to]; string(got) != string(want) {
			t.Errorf("%s: % x, want % x", field.name, got, want)
		}
	}
	got, want := schemaOf(t, ours), schemaOf(t, humbles)
	if extra := got["gobag_data"]; !strings.HasPrefix(extra, "CREATE TABLE gobag_data") {
		t.Errorf("%q", extra)
	}
	delete(got, "gobag_data")
	if !maps.Equal(got, want) || len(want) != 5 {
		t.Errorf("tables\n%v\nwant\n%v", got, want)
	}
}

// schemaOf returns the CREATE statements of a database by name: the rows of sqlite_schema, whose root is page 1, here a
// leaf (SQLite file format, §1.6 and §2.1).
func schemaOf(t *testing.T, db []byte) map[string]string {
	t.Helper()
	const leaf = 0x0d
	if db[100] != leaf {
		t.Fatalf("page 1 is of type %#x", db[100])
	}
	out := map[string]string{}
	for i := range int(binary.BigEndian.Uint16(db[103:])) {
		cell := db[binary.BigEndian.Uint16(db[108+2*i:]):]
		_, n := sqliteVarint(cell)       // size of the payload
		_, m := sqliteVarint(cell[n:])   // row id
		record := cell[n+m:]             // type, name, tbl_name, rootpage, sql
		size, at := sqliteVarint(record) // of the record's header
		body, values := record[size:], []string{}
		for at < int(size) {
			serial, n := sqliteVarint(record[at:])
			at += n
			length := int(serial) // integers up to 4 bytes
			if serial >= 12 {
				length = int(serial-12) / 2
			}
			values, body = append(values, string(body[:length])), body[length:]
		}
		out[values[1]] = values[4]
	}
	return out
}

func sqliteVarint(b []byte) (v uint64, n int) {
	for n = range 9 {
		if n == 8 {
			return v<<8 | uint64(b[n]), 9
		}
		v = v<<7 | uint64(b[n]&0x7f)
		if b[n] < 0x80 {
			break
		}
	}
	return v, n + 1
}
