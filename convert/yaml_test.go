package convert

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

func TestParseOutputs(t *testing.T) {
	outs, err := ParseOutputs([]byte(`
output_bags:
- uri: one
  storage_id: sqlite3
  all: true
  compression_mode: file
  compression_format: zstd
  max_bagfile_size: 1000000
  max_bagfile_duration: 60
  max_cache_size: 5
  topic_polling_interval: {sec: 0, nsec: 100}
  start_time_ns: 5
  end_time_ns: -1
  custom_data: {k: v}
  topic_qos_profile_overrides: {tf: {depth: 3}}
- uri: two
  topics: [/a, b]
  exclude: "x$"
  compat: humble
`))
	if err != nil {
		t.Fatal(err)
	}
	one, two := outs[0], outs[1]
	w := one.Writer
	if len(outs) != 2 || one.Dir != "one" || w.StorageID != "sqlite3" || !one.Filter.AllTopics || !one.Filter.AllActions ||
		w.Compression.Mode != bag.CompressionFile || w.MaxBagSize != 1_000_000 || w.MaxBagDuration != time.Minute ||
		w.CustomData["k"] != "v" || one.QoSOverrides["/tf"].Depth != 3 || one.Range == nil || one.Range.Start != 5 || one.Range.End != 1<<63-1 {
		t.Errorf("%+v", one)
	}
	if len(two.Filter.Topics) != 2 || two.Filter.ExcludeRegex != "x$" || two.Writer.Compat != plugin.CompatHumble || two.Range != nil {
		t.Errorf("%+v", two)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "empty",
		"output_bags: []":            "list",
		"output_bag: []":             "output_bags",
		"output_bags: [{uri: a}]":    "nothing is chosen",
		"output_bags: [{all: true}]": "uri",
		"output_bags: [{uri: a, all: true, topic: [/a]}]":                                `unknown key "topic"`,
		"output_bags: [{uri: a, all: maybe}]":                                            "bool",
		"output_bags: [{uri: a, all: true, compression_mode: tar}]":                      "tar",
		"output_bags: [{uri: a, all: true, compression_format: zstd}]":                   "without a compression mode",
		"output_bags: [{uri: a, all: true, exclude: x, exclude_regex: y}]":               "old name",
		"output_bags: [{uri: a, all: true, max_bagfile_size: -1}]":                       "-1",
		"output_bags: [{uri: a, all: true, output_serialization_format: json}]":          "json",
		"output_bags: [{uri: a, all: true, storage_config_uri: /nowhere/x.yaml}]":        "no such file",
		"output_bags: [{uri: a, all: true, topic_qos_profile_overrides: {/a: {x: 1}}}]":  "x",
		"output_bags: [{uri: a, all: true, max_bagfile_duration: 18446744073709551615}]": "too large",
		"output_bags: [7]": "not a map",
		"\t":               "",
	} {
		if _, err := ParseOutputs([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	if _, err := ParseInputs([]byte("input_bags: [{storage_id: x}]")); err == nil || !strings.Contains(err.Error(), "uri") {
		t.Errorf("error %v", err)
	}
}

// An input's range cuts what is read.
func TestParseInputs(t *testing.T) {
	dir := t.TempDir()
	a, out := filepath.Join(dir, "a"), filepath.Join(dir, "out")
	yard(t, a, bag.WriterOptions{StorageID: "sqlite3"}, 9, 300)
	whole := read(t, a)
	cut := whole.Messages[100].RecvTime
	ins, err := ParseInputs([]byte("input_bags:\n- uri: " + a + "\n  storage_id: sqlite3\n  start_time_ns: 1700000000000000000\n  end_time_ns: " +
		strconv.FormatInt(cut, 10) + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	res := mustRun(t, Options{Inputs: ins, Outputs: []Output{{Dir: out}}})
	want := 0
	for _, m := range whole.Messages {
		if m.RecvTime <= cut {
			want++
		}
	}
	if int(res.Read) != want || want < 101 {
		t.Errorf("%d messages, want %d", res.Read, want)
	}
}

func FuzzParseOutputs(f *testing.F) {
	f.Add([]byte("output_bags:\n- {uri: a, all: true, topics: [/a], topic_qos_profile_overrides: {/a: {depth: 1}}}"))
	f.Add([]byte("output_bags:\n- &x {uri: a}\n- {<<: *x, all: true}"))
	f.Add([]byte("output_bags: &a\n- *a"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = ParseOutputs(b)
		_, _ = ParseInputs(b)
	})
}
