package bag

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/plugin"
)

// metadataFiles returns every metadata.yaml below root.
func metadataFiles(t testing.TB, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == MetadataFile {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every metadata.yaml that real recorders left parses, and those that rosbag2 itself wrote come back byte for byte.
func TestParseReal(t *testing.T) {
	if n, same := parseReal(t, "testdata"); n != 11 || same != 7 {
		t.Errorf("%d files, %d came back byte for byte", n, same)
	}
}

func TestParseFixtures(t *testing.T) {
	if n, same := parseReal(t, shared(t, "fixtures")); n < 80 || same < 60 {
		t.Errorf("%d files, %d came back byte for byte", n, same)
	}
}

func parseReal(t *testing.T, root string) (n, same int) {
	for _, p := range metadataFiles(t, root) {
		n++
		text := readFile(t, p)
		m, err := ParseMetadata([]byte(text))
		if err != nil || len(m.Warnings) > 0 {
			t.Errorf("%s: %v %q", p, err, m.Warnings)
			continue
		}
		again, err := ParseMetadata(m.Encode(0))
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("%s: changed by encoding: %v", p, err)
		}
		if strings.TrimRight(text, "\n") == string(m.Encode(0)) {
			same++
		} else if !otherStyle(text) {
			t.Errorf("%s differs: %s", p, firstDifference(text, string(m.Encode(0))))
		}
	}
	return n, same
}

// otherStyle says that a text cannot come back byte for byte: it was written by hand or by PyYAML, keys of its version
// were added later, or it spells infinity as foxy did.
func otherStyle(text string) bool {
	return strings.Contains(text, "''") || strings.Contains(text, "nsec: 4294967295") || strings.Contains(text, " \n") ||
		strings.Index(text, "relative_file_paths:") < strings.Index(text, "  duration:") && strings.Contains(text, "files:\n    - path")
}

func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range as {
		if i >= len(bs) || as[i] != bs[i] {
			return as[i] + " <> " + bs[min(i, len(bs)-1)]
		}
	}
	return "the end"
}

func yard(version int) *Metadata {
	q := DefaultQoSProfile()
	q.Depth = 7
	return &Metadata{
		Version: version, StorageIdentifier: "sqlite3", Start: 1760000000000000000, Duration: 2500 * time.Millisecond, MessageCount: 6,
		Topics: []TopicMetadata{
			{Name: "/depth", Type: "std_msgs/msg/Float32", SerializationFormat: "cdr", OfferedQoS: []QoSProfile{q},
				TypeHash: "RIHS01_01", MessageCount: 6},
			{Name: "/empty", Type: "std_msgs/msg/Empty", SerializationFormat: "cdr"},
		},
		Paths: []string{"yard_0.db3"},
		Files: []FileMetadata{{Path: "yard_0.db3", Start: 1760000000000000000, Duration: 2500 * time.Millisecond, MessageCount: 6}},
	}
}

const yardV5 = `rosbag2_bagfile_information:
  version: 5
  storage_identifier: sqlite3
  duration:
    nanoseconds: 2500000000
  starting_time:
    nanoseconds_since_epoch: 1760000000000000000
  message_count: 6
  topics_with_message_count:
    - topic_metadata:
        name: /depth
        type: std_msgs/msg/Float32
        serialization_format: cdr
        offered_qos_profiles: "- history: 1\n  depth: 7\n  reliability: 1\n  durability: 2\n  deadline:\n    sec: 9223372036\n    nsec: 854775807\n  lifespan:\n    sec: 9223372036\n    nsec: 854775807\n  liveliness: 1\n  liveliness_lease_duration:\n    sec: 9223372036\n    nsec: 854775807\n  avoid_ros_namespace_conventions: false"
      message_count: 6
    - topic_metadata:
        name: /empty
        type: std_msgs/msg/Empty
        serialization_format: cdr
        offered_qos_profiles: ""
      message_count: 0
  compression_format: ""
  compression_mode: ""
  relative_file_paths:
    - yard_0.db3
  files:
    - path: yard_0.db3
      starting_time:
        nanoseconds_since_epoch: 1760000000000000000
      duration:
        nanoseconds: 2500000000
      message_count: 6`

const yardV9 = `rosbag2_bagfile_information:
  version: 9
  storage_identifier: sqlite3
  duration:
    nanoseconds: 2500000000
  starting_time:
    nanoseconds_since_epoch: 1760000000000000000
  message_count: 6
  topics_with_message_count:
    - topic_metadata:
        name: /depth
        type: std_msgs/msg/Float32
        serialization_format: cdr
        offered_qos_profiles:
          - history: keep_last
            depth: 7
            reliability: reliable
            durability: volatile
            deadline:
              sec: 9223372036
              nsec: 854775807
            lifespan:
              sec: 9223372036
              nsec: 854775807
            liveliness: automatic
            liveliness_lease_duration:
              sec: 9223372036
              nsec: 854775807
            avoid_ros_namespace_conventions: false
        type_description_hash: RIHS01_01
      message_count: 6
    - topic_metadata:
        name: /empty
        type: std_msgs/msg/Empty
        serialization_format: cdr
        offered_qos_profiles:
          []
        type_description_hash: ""
      message_count: 0
  compression_format: ""
  compression_mode: ""
  relative_file_paths:
    - yard_0.db3
  files:
    - path: yard_0.db3
      starting_time:
        nanoseconds_since_epoch: 1760000000000000000
      duration:
        nanoseconds: 2500000000
      message_count: 6
  custom_data: ~
  ros_distro: ""`

func TestEncodeGolden(t *testing.T) {
	for v, want := range map[int]string{5: yardV5, 9: yardV9} {
		if got := string(yard(9).Encode(v)); got != want {
			t.Errorf("version %d: %s", v, firstDifference(got, want))
		}
	}
	inner := yard(9).EncodeStorage(0)
	if want := strings.ReplaceAll(strings.TrimPrefix(yardV9, metadataRoot+":\n  "), "\n  ", "\n"); inner.Text != want || inner.Version != 9 {
		t.Errorf("inside a storage: %s", firstDifference(inner.Text, want))
	}
}

// What a version has survives encoding and parsing; inside a storage custom_data does in every version.
func TestEncodeVersions(t *testing.T) {
	for v := 1; v <= 9; v++ {
		m := yard(v)
		m.CustomData = map[string]string{"who": "me", "odd: key": "a\nb\"c\\ \x01 é {", "empty": ""}
		m.ROSDistro = "jazzy"
		want := *m
		if v < 8 {
			want.ROSDistro = ""
		}
		want.Topics = append([]TopicMetadata(nil), m.Topics...)
		for i := range want.Topics {
			if v < 7 {
				want.Topics[i].TypeHash = ""
			}
			if v < 4 {
				want.Topics[i].OfferedQoS = nil
			}
		}
		if v < 5 {
			want.Files = nil
		}
		if v < 6 {
			want.CustomData = nil
		}
		got, err := ParseMetadata(m.Encode(0))
		if err != nil || !reflect.DeepEqual(got, &want) {
			t.Errorf("version %d: %v\n%+v\n%+v", v, err, got, &want)
		}
		want.CustomData = m.CustomData
		got, err = ParseMetadata([]byte(m.EncodeStorage(0).Text))
		if err != nil || !reflect.DeepEqual(got, &want) {
			t.Errorf("version %d inside a storage: %v", v, err)
		}
	}
}

func TestExtremeTimes(t *testing.T) {
	for _, c := range []struct {
		stamps     []int64
		start, end int64
		d          time.Duration
	}{
		{nil, plugin.NoStart, 0, 0},
		{[]int64{10, 5}, 5, 10, 5},
		{[]int64{0}, 0, 0, 0},
		{[]int64{-5, 7}, -5, 7, 12},
		{[]int64{math.MinInt64, math.MaxInt64}, math.MinInt64, -1, math.MaxInt64},
		{[]int64{math.MaxInt64}, math.MaxInt64, math.MaxInt64, 0},
		{[]int64{math.MaxInt64 - 1, math.MaxInt64, 0}, 0, math.MaxInt64, math.MaxInt64},
	} {
		var s span
		for _, x := range c.stamps {
			s.add(x)
		}
		m := &Metadata{Version: 9, MessageCount: uint64(len(c.stamps))}
		m.Start, m.Duration = s.times()
		if m.Start != c.start || m.Duration != c.d || m.End() != c.end {
			t.Errorf("%v: start %d, duration %d, end %d", c.stamps, m.Start, m.Duration, m.End())
		}
		got, err := ParseMetadata(m.Encode(0))
		if err != nil || got.Start != c.start || got.Duration != c.d {
			t.Errorf("%v: %+v %v", c.stamps, got, err)
		}
	}
}

// replaced returns yardV9 with one piece changed.
func replaced(t *testing.T, old, new string) string {
	t.Helper()
	if !strings.Contains(yardV9, old) {
		t.Fatalf("no %q", old)
	}
	return strings.Replace(yardV9, old, new, 1)
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"nanoseconds: 2500000000", "nanoseconds: -2.5", `line 5: duration.nanoseconds: "-2.5" is not a whole number`},
		{"nanoseconds: 2500000000", "nanoseconds: 2.5", `line 5: duration.nanoseconds: "2.5" is not a whole number`},
		{"nanoseconds: 2500000000", "nanoseconds: 18446744073709551616", `line 5: duration.nanoseconds: "18446744073709551616" is not`},
		{"nanoseconds: 2500000000", "nanoseconds: [1]", `line 5: duration.nanoseconds: a number is wanted, not a list`},
		{"    nanoseconds: 2500000000\n", "    x: 1\n", `line 5: duration.nanoseconds: the key is missing`},
		{"  message_count: 6\n", "  message_count: lots\n", `line 8: message_count: "lots" is not a whole number`},
		{"      message_count: 0", "      message_count: -0.5", `line 39: topics_with_message_count[1].message_count: "-0.5"`},
		{"version: 9", "version: 0", "line 2: version: there is no version 0"},
		{"  version: 9\n", "", "version: the key is missing"},
		{"name: /depth", "name: {a: b}", "line 11: topics_with_message_count[0].topic_metadata.name: text is wanted, not a map"},
		{"    - yard_0.db3", "    - \"\"", "relative_file_paths[0]: the path is empty"},
		{"    - yard_0.db3", "    - [x]", "relative_file_paths[0]: text is wanted, not a list"},
		{"custom_data: ~", "custom_data: [1, 2]", "custom_data: a map is wanted, not a list"},
		{metadataRoot, "rosbag", "there is no key rosbag2_bagfile_information"},
		{"  storage_identifier", "\tstorage_identifier", "line 2: found a tab character"},
	} {
		_, err := ParseMetadata([]byte(replaced(t, c.old, c.new)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.new, err, c.want)
		}
		var ye *YAMLError
		if !errors.As(err, &ye) {
			t.Errorf("%q: %T", c.new, err)
		}
	}
	for _, text := range []string{"", "\n", "[]", "a", "{}", "- x", "rosbag2_bagfile_information:", "\x00", "---\n..."} {
		if m, err := ParseMetadata([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, m)
		}
	}
}

// What old, other and handwritten files have is read.
func TestParseTolerates(t *testing.T) {
	infinite := strings.Repeat("              sec: 9223372036\n              nsec: 854775807\n", 1)
	for _, c := range []struct {
		old, new string
		warnings int
		check    func(*Metadata) bool
	}{
		{"nanoseconds: 2500000000", "nanoseconds: -5", 1, func(m *Metadata) bool { return m.Duration == -5 }},
		{"version: 9", "version: 42", 1, func(m *Metadata) bool { return m.Version == 42 && m.MessageCount == 6 }},
		{"custom_data: ~", "custom_data: null", 0, func(m *Metadata) bool { return len(m.CustomData) == 0 }},
		{"custom_data: ~", "custom_data:\n    a: 1\n    b: ~\n    gobag.state: recording", 0,
			func(m *Metadata) bool {
				return reflect.DeepEqual(m.CustomData, map[string]string{"a": "1", "b": "", KeyState: StateRecording})
			}},
		{"ros_distro: \"\"", "something_new: {a: [1, 2]}", 0, func(m *Metadata) bool { return m.ROSDistro == "" }},
		{"  message_count: 6\n", "  message_count: '6'\n", 0, func(m *Metadata) bool { return m.MessageCount == 6 }},
		{"compression_mode: \"\"", "compression_mode: message", 0, func(m *Metadata) bool { return m.CompressionMode == CompressionMessage }},
		{"compression_mode: \"\"", "compression_mode: NONE", 0, func(m *Metadata) bool { return m.CompressionMode == CompressionNone }},
		{"          - history: keep_last\n", "          - history: 1\n", 0, func(m *Metadata) bool { return m.Topics[0].OfferedQoS[0].History == 1 }},
		{"          - history: keep_last\n", "          - other: x\n", 1, func(m *Metadata) bool { return m.Topics[0].OfferedQoS == nil }},
		{"        offered_qos_profiles:\n          []", "        offered_qos_profiles: \"\"", 0, func(m *Metadata) bool { return m.Topics[1].OfferedQoS == nil }},
		{"        offered_qos_profiles:\n          []", "        offered_qos_profiles: \"history: keep_last\\ndepth: 10\"", 1,
			func(m *Metadata) bool { return m.Topics[1].OfferedQoS == nil }},
		{"        offered_qos_profiles:\n          []\n", "", 0, func(m *Metadata) bool { return m.Topics[1].OfferedQoS == nil }},
		{"            deadline:\n" + infinite + "            lifespan:\n" + infinite,
			"            deadline: &x {sec: 1, nsec: 2}\n            lifespan: *x\n", 0,
			func(m *Metadata) bool { return m.Topics[0].OfferedQoS[0].Lifespan == 1_000_000_002 }},
	} {
		m, err := ParseMetadata([]byte(replaced(t, c.old, c.new)))
		if err != nil {
			t.Errorf("%q: %v", c.new, err)
			continue
		}
		if len(m.Warnings) != c.warnings || !c.check(m) {
			t.Errorf("%q: %+v", c.new, m)
		}
	}
}

// Bombs end in an error soon and without much memory.
func TestParseBombs(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 {sec: 1, nsec: 2}\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10))
	}
	for name, text := range map[string]string{
		"size":       strings.Repeat("x", maxYAMLBytes+1),
		"items":      strings.Repeat("- ", maxYAMLStructure+1),
		"depth":      metadataRoot + ": " + strings.Repeat("[", 100_000),
		"flow depth": metadataRoot + ": " + strings.Repeat("{a: ", 100_000),
		"laughs":     laughs.String() + metadataRoot + ": {version: 9, topics_with_message_count: *a39, message_count: 1}",
		"cycle":      "a: &a\n  b: *a\n" + metadataRoot + ": *a",
		"self":       metadataRoot + ": &a\n  version: 9\n  topics_with_message_count: [*a, *a]\n",
	} {
		start := time.Now()
		m, err := ParseMetadata([]byte(text))
		if err == nil {
			t.Errorf("%s: %+v", name, m)
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%s took %v", name, d)
		}
	}
}

func FuzzParseMetadata(f *testing.F) {
	for v := 1; v <= 9; v++ {
		f.Add(yard(v).Encode(0))
		f.Add([]byte(yard(v).EncodeStorage(0).Text))
	}
	f.Add([]byte("a: &a [*a]\nrosbag2_bagfile_information: *a"))
	f.Add([]byte("? {a: b}\n: c"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseMetadata(text)
		if err != nil {
			return
		}
		again, err := ParseMetadata(m.Encode(9))
		if err != nil {
			t.Fatalf("what was parsed does not parse again: %v\n%s", err, m.Encode(9))
		}
		if a, b := m.Encode(9), again.Encode(9); !bytes.Equal(a, b) {
			t.Fatalf("not stable:\n%s\n%s", a, b)
		}
	})
}

func TestYAMLScalar(t *testing.T) {
	for s, want := range map[string]string{
		"":               `""`,
		"/tf":            `/tf`,
		"jazzy":          `jazzy`,
		"~":              `"~"`,
		"null":           `"null"`,
		"a: b":           `"a: b"`,
		"a:b":            `a:b`,
		"a:":             `"a:"`,
		"a #b":           `"a #b"`,
		"a#b":            `a#b`,
		"-":              `"-"`,
		"-1":             `-1`,
		"- a":            `"- a"`,
		"{}":             `"{}"`,
		"'x'":            `"'x'"`,
		"x ":             `"x "`,
		" x":             `" x"`,
		"a\nb\t\"\\":     `"a\nb\t\"\\"`,
		"/o'brien":       `/o'brien`,
		"/größe":         `/größe`,
		"/\xff\xfe":      `"/��"`,
		"\x00\x7f\u0085": `"\x00\x7f\x85"`,
		"\ufeff":         `"\ufeff"`,
		"---":            `"---"`,
		"😀":              `😀`,
	} {
		if got := yamlScalar(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
		v, err := parseYAML([]byte("k: " + yamlScalar(s)))
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		if got, err := v.textAt("k"); err != nil || got != yamlText(s) {
			t.Errorf("%q comes back as %q (%v)", s, got, err)
		}
	}
}
