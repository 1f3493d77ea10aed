package perf

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// someReport has two runs of one cell, a best-effort cell, one of two groups with stalls and a ceiling, and one that failed.
func someReport() Report {
	cell := func(recorded uint64, lost Lost, cpu float64, repeat int) Cell {
		g := Group{Name: "t", Instances: 1, Frequency: 100, Size: 1000, Reliability: "reliable"}
		c := Cell{Load: g.String(), Groups: []Share{{Group: g, Expected: 1000, Sent: 1000, Recorded: recorded, Lost: lost}}, Storage: "sqlite3", Publishers: "gobag", Repeat: repeat,
			Publisher: LoadResult{Expected: 1000, Sent: 1000, Seconds: 10, Usage: Usage{CPUSeconds: 1, PeakRSS: 10 << 20}}, Recorder: Usage{CPUSeconds: cpu, PeakRSS: 20 << 20},
			Latency: Latency{time.Millisecond, 5 * time.Millisecond, 80 * time.Millisecond}, BagBytes: 1_100_000, Cores: []float64{12.5, 50}}
		for i := range 20 {
			c.Series = append(c.Series, Point{Seconds: float64(i)/2 - 1, RecorderCPU: 0.2, RecorderRSS: int64(i) << 20, PublisherCPU: 0.1, PublisherRSS: 9 << 20, BagBytes: int64(i) * 50_000, Latency: int64(i) * 1e6, Late: 1e6})
		}
		c.balance()
		return c
	}
	effort := cell(998, Lost{}, 2, 1)
	effort.Groups[0].Sent, effort.Groups[0].Reliability, effort.Publisher.Sent = 999, "best_effort", 999
	effort.balance()
	two := cell(500, Lost{Queue: 500}, 3, 1)
	two.Load, two.Storage, two.Preset, two.Cache = `over<load> & "more"`, "mcap", "small", 100<<20
	two.Groups = append(two.Groups, Share{Group: Group{Name: "tf", Instances: 1, Frequency: 10, Size: 100, Reliability: "reliable"}, Expected: 100, Sent: 100, Recorded: 100})
	two.Publisher.Sent += 100
	two.balance()
	two.Ceiling = newCeiling(20e6, 10, 300e6, 0, 100e6, 1e9)
	two.Disk = []Stall{{Seconds: 2, For: 0.3}}
	failed := Cell{Load: "1 × 100 Hz × 1 kB", Groups: two.Groups[:1], Storage: "leveldb", Publishers: "gobag", Repeat: 1, Error: "no luck"}
	return Report{Format: ReportFormat, Kind: reportKind, Version: "v1.2.3", Scenario: "some", Seed: 7, Seconds: 10, Start: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
		Machine: Machine{CPU: "Fast", Cores: 2, Memory: 4 << 30, OS: "Linux", Arch: "arm64", Load: 0.5, Go: "go1"},
		Cells:   []Cell{cell(999, Lost{Queue: 1}, 2, 1), cell(1000, Lost{}, 4, 2), effort, two, failed}}
}

func text(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b strings.Builder
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func wantAll(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

func TestReport(t *testing.T) {
	r := someReport()
	wantAll(t, text(t, r.WriteTable), "2 × Fast, 4.0 GiB, Linux, arm64, load 0.50, go1", "99.90 %", "999 of 1000", "failed", "no luck", "1 of the messages sent came neither in",
		"60.00 %", "ceiling 60.0 %: (20.0 MB/s × 10 s + 300 MB of dirty pages + 100 MB of cache) of 1000 MB; recorded 50.50 % of the data.", "tf, 1 × 10 Hz × 100 B: 100.00 % of 100")
	wantAll(t, text(t, r.WriteMarkdown), "| 1 × 100 Hz × 1 kB | sqlite3 |", "99.95 (99.90–100.00)", "| 3.00 (2.00–4.00) |", "2 of 2", "best effort, sqlite3", "- 1 × 100 Hz × 1 kB, leveldb, run 1: no luck", "| tf | 1 × 10 Hz × 100 B | 100 | 100.00 |")
	r.Cells[1].Publisher.Seconds = 30
	wantAll(t, text(t, r.WriteTable), "the publishers were held up: what was due within 10.0 s took 30.0 s")
	r.Cells[1].Publisher.Seconds = 10
	csv := text(t, r.WriteCSV)
	lines := strings.Split(strings.TrimSpace(csv), "\n")
	if want := "sqlite3 1 100 1000 1000 0 0 - - 0 0 1000 999 10.0 20.0 12.5 50.0"; len(lines) != 6 || lines[1] != want {
		t.Errorf("%d lines, %q, want %q", len(lines), lines[1], want)
	}
	for _, l := range lines {
		if n := len(strings.Fields(l)); n != 17 {
			t.Errorf("%d columns in %q", n, l)
		}
	}
	dir := t.TempDir()
	if err := r.WriteDir(filepath.Join(dir, "a", "b")); err != nil {
		t.Fatal(err)
	}
	back, err := ReadReport(filepath.Join(dir, "a", "b", "results.json"))
	if err != nil || fmt.Sprint(back) != fmt.Sprint(r) {
		t.Errorf("%v\n%+v\n%+v", err, back, r)
	}
}

// TestReportHTML: the page is well-formed, needs nothing from elsewhere, draws every chart and escapes what it is told.
func TestReportHTML(t *testing.T) {
	r := someReport()
	r.Device = &DeviceInfo{Emulated: true, Name: "rpi4-sd", Limits: emulationNote}
	page := text(t, r.WriteHTML)
	wantAll(t, page, "over&lt;load&gt; &amp; &#34;more&#34;", "Emulated.", "no luck", "prefers-color-scheme: dark", `name="viewport"`)
	for _, bad := range []string{"<script", "http:", "https:", "src=", "url(", "@import", "NaN", "Inf", "%!"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	// Two loads with bars, and four charts for each of three rows.
	if bars, lines := strings.Count(page, `class="chart bars"`), strings.Count(page, `class="chart lines"`); bars != 2 || lines != 12 {
		t.Errorf("%d charts of bars, %d of lines", bars, lines)
	}
	if n := strings.Count(page, `class="stall"`); n != 4 {
		t.Errorf("%d stalls drawn", n)
	}
	for _, points := range regexp.MustCompile(`points="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if n := len(strings.Fields(points[1])); n != 20 {
			t.Errorf("a curve of %d points", n)
		}
	}
	d := xml.NewDecoder(strings.NewReader(page))
	d.Entity = xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	empty := Report{}
	text(t, empty.WriteHTML)
}

func TestReadReport(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"broken":  {`{"format":`, "unexpected EOF"},
		"foreign": {`{"format":2,"kind":"something"}`, `no results of gobag perf record (kind "something")`},
		"newer":   {`{"format":99,"kind":"gobag perf record"}`, "format 99"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadReport(path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCompare(t *testing.T) {
	a, b := someReport(), someReport()
	for i := range b.Cells {
		b.Cells[i].Recorder.CPUSeconds *= 2
	}
	out := text(t, func(w io.Writer) error { return Compare(w, a, b, "a", "b") })
	wantAll(t, out, "1 × 100 Hz × 1 kB, sqlite3", "3.00 (2.00–4.00)", "6.00 (4.00–8.00)", "2.000 (1.000–4.000)")
	if strings.Contains(out, "leveldb") {
		t.Errorf("a failed cell is compared:\n%s", out)
	}
	emulated := func(name string) Report {
		r := someReport()
		r.Device = &DeviceInfo{Emulated: true, Name: name}
		return r
	}
	other := someReport()
	other.Cells = other.Cells[4:]
	for want, r := range map[string]Report{"a was measured and b is emulated": emulated("rpi4-sd"), "no cell in common": other} {
		if err := Compare(io.Discard, a, r, "a", "b"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := Compare(io.Discard, emulated("x"), a, "a", "b"); err == nil || !strings.Contains(err.Error(), "b was measured and a is emulated") {
		t.Error(err)
	}
	if err := Compare(io.Discard, emulated("x"), emulated("y"), "a", "b"); err == nil || !strings.Contains(err.Error(), "a emulates x and b y") {
		t.Error(err)
	}
	if err := Compare(io.Discard, emulated("x"), emulated("x"), "a", "b"); err != nil {
		t.Error(err)
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct {
		part, whole uint64
		want        string
	}{{0, 0, "-"}, {5, 5, "100.00 %"}, {999_999, 1_000_000, "99.99 %"}, {1, 3, "33.33 %"}} {
		if got := share(c.part, c.whole); got != c.want {
			t.Errorf("%d of %d: %s, want %s", c.part, c.whole, got, c.want)
		}
	}
	for in, want := range map[int64]string{24: "24 B", 1000: "1 kB", 1500: "1.5 kB", 1001: "1001 B", 1_000_000: "1 MB", 3_750_000: "3750 kB", 2e9: "2 GB"} {
		if got := shortBytes(in); got != want {
			t.Errorf("%d: %s, want %s", in, got, want)
		}
	}
	for in, want := range map[float64]float64{0: 1, 1: 1, 1.1: 2, 2.2: 2.5, 3: 5, 7: 10, 0.03: 0.05, 120: 200} {
		if got := niceTop(in); got/want > 1.0001 || got/want < 0.9999 {
			t.Errorf("%g: %g, want %g", in, got, want)
		}
	}
}

func TestBenchmarksPage(t *testing.T) {
	dir := t.TempDir()
	if _, err := BenchmarksPage(dir); err == nil || !strings.Contains(err.Error(), "no results.json") {
		t.Error(err)
	}
	r := someReport()
	if err := r.WriteDir(filepath.Join(dir, "here")); err != nil {
		t.Fatal(err)
	}
	board := filepath.Join(dir, "board")
	if err := os.Mkdir(board, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(board, "README.md"), []byte("# A board\n\nnot yet measured\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	write, err := BenchmarksPage(dir)
	if err != nil {
		t.Fatal(err)
	}
	page := text(t, write)
	wantAll(t, page, "## board\n\nnot yet measured", "## here\n\nScenario some.", "99.95 (99.90–100.00)")
	if err := os.WriteFile(filepath.Join(board, "results.json"), []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := BenchmarksPage(dir); err == nil || !strings.Contains(err.Error(), "no results of gobag perf record") {
		t.Error(err)
	}
}

func TestScenarios(t *testing.T) {
	for _, s := range Scenarios() {
		if len(s.Loads) == 0 || s.About == "" {
			t.Errorf("%s: %d loads", s.Name, len(s.Loads))
		}
		for _, l := range s.Loads {
			if err := (Load{Groups: l.Groups, Duration: time.Second}).Validate(); err != nil {
				t.Errorf("%s, %s: %v", s.Name, l.Name, err)
			}
		}
		if got, err := FindScenario(s.Name); err != nil || got.Name != s.Name {
			t.Error(got.Name, err)
		}
	}
	if _, err := FindScenario("x"); err == nil || !strings.Contains(err.Error(), "overload") {
		t.Error(err)
	}
	// The sets that are given in MB/s offer that.
	for name, want := range map[string]float64{"proposal": 100e6, "rosbag2-100": 100e6, "rosbag2-300": 300e6, "rosbag2-small-scale": 500e6} {
		s, _ := FindScenario(name)
		for _, l := range s.Loads {
			load := Load{Groups: l.Groups, Duration: 10 * time.Second}
			if got := load.Bytes() / load.Span().Seconds(); got != want {
				t.Errorf("%s, %s: %g B/s, want %g", name, l.Name, got, want)
			}
		}
	}
}

func TestParseScenario(t *testing.T) {
	s, err := ParseScenario([]byte(`
name: my robot
duration: 2.5
repeat: 3
storages: [mcap, sqlite3]
caches: [10MB, 1MiB, 0]
loads:
  - groups:
      - {name: scan, frequency: 10, size: 60kB, depth: 20}
      - {name: camera, instances: 2, frequency: 30, size: 1.5MB, reliability: best_effort, compressible: 0.5}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Group{{Name: "scan", Instances: 1, Frequency: 10, Size: 60000, Depth: 20}, {Name: "camera", Instances: 2, Frequency: 30, Size: 1500000, Reliability: "best_effort", Compressible: 0.5}}
	if s.Duration != 2500*time.Millisecond || s.Repeat != 3 || !slices.Equal(s.Storages, []string{"mcap", "sqlite3"}) || !slices.Equal(s.Caches, []int64{10e6, 1 << 20, 0}) || !slices.Equal(s.Loads[0].Groups, want) {
		t.Errorf("%+v", s)
	}
	for in, want := range map[string]string{
		"":                                       "EOF",
		"loads: []":                              "no loads",
		"lodes: []":                              "field lodes not found",
		"[1, 2]":                                 "cannot unmarshal",
		"loads: [{groups: [{size: a lot}]}]":     `"a lot": not a number of bytes`,
		"loads: [{groups: [{size: 9999999GB}]}]": "too large",
		"duration: -1\nloads: [{groups: [{}]}]":  "duration -1",
		"rosbag2_performance_benchmarking_node: 5":                                                                                     "cannot unmarshal",
		"rosbag2_performance_benchmarking_node: {ros__parameters: {publishers: {publisher_groups: [a]}}}":                              `names "a", which is not there`,
		"rosbag2_performance_benchmarking: {benchmark_node: {ros__parameters: {benchmark: {parameters: {max_cache_size: [-1]}}}}}":     "must not be negative",
		"rosbag2_performance_benchmarking_node: {ros__parameters: {publishers: {publisher_groups: []}}}":                               "names no group",
		"rosbag2_performance_benchmarking_node: {ros__parameters: {publishers: {publisher_groups: [a], a: {publishers_count: many}}}}": "cannot unmarshal",
	} {
		if _, err := ParseScenario([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

// TestParseRosbag2: files as rosbag2_performance_benchmarking has them.
func TestParseRosbag2(t *testing.T) {
	s, err := ParseScenario([]byte(`
rosbag2_performance_benchmarking_node:
  ros__parameters:
    publishers:
      publisher_groups: ["big", "small2"]
      wait_for_subscriptions: True
      number_of_threads: 8
      big:
        publishers_count: 4
        topic_root: "benchmarking_big"
        msg_size_bytes: 1000000
        msg_type: "rosbag2_performance_benchmarking_msgs/msg/ByteArray"
        msg_count_each: 500
        rate_hz: 25
        qos:
          qos_depth: 5
          qos_reliability: "best_effort"
          qos_durability: "transient_local"
      small2: {publishers_count: 200, topic_root: "small2", msg_size_bytes: 10, msg_type: "sensor_msgs/msg/Image", msg_count_each: 2000, rate_hz: 100}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Group{{Name: "benchmarking_big", Instances: 4, Frequency: 25, Size: 1000000, Count: 500, Depth: 5, Reliability: "best_effort", Durability: "transient_local"},
		{Name: "small2_n", Instances: 200, Frequency: 100, Size: loadStamp, Count: 2000, Depth: 10}}
	if len(s.Loads) != 1 || !slices.Equal(s.Loads[0].Groups, want) || len(s.Notes) != 2 {
		t.Errorf("%+v", s)
	}
	if err := (Load{Groups: s.Loads[0].Groups, Duration: 1}).Validate(); err != nil {
		t.Error(err)
	}
	s, err = ParseScenario([]byte(`
rosbag2_performance_benchmarking:
  benchmark_node:
    ros__parameters:
      benchmark:
        summary_result_file: "results.csv"
        bag_root_folder: "bench"
        repeat_each: 2
        no_transport: True
        preserve_bags: False
        producers_cpu_affinity: "0,1"
        parameters:
          storage_id: ["mcap", "sqlite3"]
          max_cache_size: [10000000, 100000000]
          max_bag_size: [0]
          compression: ["", "zstd"]
          compression_queue_size: [1]
          compression_threads: [2]
          storage_config_file: ["", "some.yaml"]
`))
	if err != nil {
		t.Fatal(err)
	}
	if s.Repeat != 2 || !s.NoTransport || len(s.Loads) != 0 || !slices.Equal(s.Caches, []int64{10e6, 100e6}) || !slices.Equal(s.Compressions, []string{"", "zstd"}) || !slices.Equal(s.ConfigFiles, []string{"", "some.yaml"}) || len(s.Notes) != 2 {
		t.Errorf("%+v", s)
	}
}

func FuzzParseScenario(f *testing.F) {
	f.Add([]byte("loads: [{groups: [{name: a, frequency: 1, size: 1kB}]}]"))
	f.Add([]byte("rosbag2_performance_benchmarking_node: {ros__parameters: {publishers: {publisher_groups: [a], a: {publishers_count: 1}}}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseScenario(text)
		if err != nil {
			return
		}
		for _, l := range s.Loads {
			_ = Load{Groups: l.Groups, Duration: time.Second}.Validate()
		}
	})
}

func TestPeerResult(t *testing.T) {
	l := Load{Groups: []Group{{Name: "t", Instances: 2, Frequency: 10, Size: 100, Depth: 3, Reliability: "best_effort"}}, Duration: time.Second}
	p := &PeerPublisher{Name: "peer", Path: "/x/pub", Args: []string{"--transport", "udp"}}
	cmd := p.command(t.Context(), l, 77)
	if got := strings.Join(cmd.Args[1:], " "); got != "--transport udp --wait 1 --linger 10 --seconds 1.000 -t type=blob,topic=/perf/t,n=2,hz=10,size=100,count=10,rel=best_effort,depth=3" {
		t.Error(got)
	}
	if !slices.Contains(cmd.Env, "ROS_DOMAIN_ID=77") {
		t.Error(cmd.Env)
	}
	res, err := p.result([]byte(`{"event":"ready"}
{"event":"start","mono_ns":1000000000,"wall_ns":5}
{"event":"topic","topic":"/perf/t_1","sent":9,"failed":1,"last_ns":2000000000,"lag_ns":7,"max_ns":3}
{"event":"topic","topic":"/perf/t_0","sent":10,"last_ns":1900000000,"lag_ns":2,"max_ns":4}
{"event":"done","mono_ns":2100000000}
`), l)
	if err != nil || res.Sent != 19 || fmt.Sprint(res.PerTopic) != "[10 9]" || res.Start != 5 || res.Seconds != 1 || res.LateMax != 7 || res.CallMax != 4 {
		t.Errorf("%+v, %v", res, err)
	}
	for in, want := range map[string]string{"": "no start", "hello": "invalid character", `{"event":"topic","topic":"/other","sent":1}`: "not asked to"} {
		if _, err := p.result([]byte(in), l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", in, err)
		}
	}
	if _, err := PeerNames("elephant", "d"); err == nil {
		t.Error("no error")
	}
	if p, err := PeerNames("fast", "d/"); err != nil || p.Path != "d/fa_pub" {
		t.Error(p, err)
	}
}

func TestBoardConfig(t *testing.T) {
	b := Board{Machine: Machine{Cores: 4, Memory: 4 << 30}, Rate: 20e6, Stall: 400 * time.Millisecond, Zstd: 100e6, Rmem: 212992}
	if b.Cache() != 16<<20 || !b.Compress() {
		t.Errorf("cache %d, compress %t", b.Cache(), b.Compress())
	}
	wantAll(t, text(t, b.WriteConfig), "max-cache-size: 16MiB", "storage-preset-profile: small", "net.core.rmem_max is 212992")
	b.Rate, b.Stall = 200e6, time.Second
	if b.Cache() != 382<<20 || b.Compress() {
		t.Errorf("cache %d, compress %t", b.Cache(), b.Compress())
	}
	b.Machine.Memory = 1 << 30
	if b.Cache() > (1<<30)/10+1<<20 {
		t.Errorf("cache %d", b.Cache())
	}
	if _, err := json.Marshal(b); err != nil {
		t.Error(err)
	}
}

func TestMeasureBoard(t *testing.T) {
	dir := t.TempDir()
	b, err := MeasureBoard(t.Context(), BoardOptions{Dir: dir, Time: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if b.Rate <= 0 || b.Stall <= 0 || b.Zstd <= 0 || b.Copy <= 0 || b.Written <= 0 || b.Written > 2*boardMost {
		t.Errorf("%+v", b)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := MeasureBoard(t.Context(), BoardOptions{Dir: filepath.Join(dir, "none")}); err == nil {
		t.Error("no error")
	}
}
