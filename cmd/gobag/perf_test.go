package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/perf"
)

func TestPerfErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		args string
		code int
		say  string
	}{
		{"perf record --scenario nothing", 2, `no scenario "nothing": there is proposal`},
		{"perf record --scenario proposal --size 100", 2, "do not go with it"},
		{"perf record --scenario " + file("x.yaml", "loads: 5"), 2, "x.yaml"},
		{"perf record --scenario " + dir + "/none.yaml", 2, "none.yaml"},
		{"perf record --scenario " + file("bench.yaml", "rosbag2_performance_benchmarking: {}"), 2, "needs the file of its producers"},
		{"perf record --device toaster", 2, `no device "toaster": there is none, rpi4-sd, rpi4-usb`},
		{"perf record --stalls 3", 2, "need a --device"},
		{"perf record --device rpi4-sd --device-rate 5", 2, "disk of 5 bytes per second"},
		{"perf record --publisher elephant", 2, `publisher "elephant"`},
		{"perf record --publisher cyclone --peer " + dir, 2, "make -C interop peers"},
		{"perf record --publisher cyclone --no-transport --peer " + dir, 2, "no transport"},
		{"perf record --compression lzma", 2, `"lzma"`},
		{"perf record --cache lots", 2, `--cache "lots"`},
		{"perf record --compressible 2", 2, "compressible 2"},
		{"perf record --wrapper " + dir + "/none", 2, "--wrapper"},
		{"perf record --metrics=nowhere", 1, "--metrics nowhere"},
		{"perf publish --load {}", 2, "no group"},
		{"perf publish --load {\"x\":1}", 2, "unknown field"},
		{"perf no-transport -a --load {}", 2, "no group"},
		{"perf compare one", 2, "two files"},
		{"perf compare " + dir + "/a " + dir + "/b", 1, dir + "/a"},
		{"perf compare " + file("a.json", "{}") + " b", 1, "no results of gobag perf record"},
		{"perf board " + dir + "/none", 1, "none"},
		{"perf board --time 0", 2, "--time"},
		{"perf docs " + dir, 1, "no results.json"},
	} {
		if r := cli(nil, strings.Fields(c.args)...); r.code != c.code || !strings.Contains(r.errOut, c.say) {
			t.Errorf("%s: exit %d, want %d; %q does not say %q", c.args, r.code, c.code, r.errOut, c.say)
		}
	}
}

// TestPerfScenarioFiles: rosbag2's producers and benchmark, recorded without transport; the report's files; a comparison.
func TestPerfScenarioFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir := t.TempDir()
	producers, bench, report := filepath.Join(dir, "producers.yaml"), filepath.Join(dir, "bench.yaml"), filepath.Join(dir, "report")
	for path, text := range map[string]string{
		producers: `rosbag2_performance_benchmarking_node: {ros__parameters: {publishers: {publisher_groups: [big, small],
  big: {publishers_count: 1, topic_root: big, msg_size_bytes: 100000, msg_count_each: 10, rate_hz: 25},
  small: {publishers_count: 5, topic_root: small, msg_size_bytes: 100, msg_count_each: 40, rate_hz: 100, qos: {qos_reliability: reliable, qos_depth: 100}}}}}`,
		bench: `rosbag2_performance_benchmarking: {benchmark_node: {ros__parameters: {benchmark: {repeat_each: 2, no_transport: True,
  parameters: {storage_id: [mcap, sqlite3], max_cache_size: [1000000]}}}}}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	r := launch(t, nil, "perf", "record", "--scenario", producers, bench, "--report", report).result()
	if r.code != 0 {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	results := filepath.Join(report, "results.json")
	rep, err := perf.ReadReport(results)
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Cells) != 4 || len(rep.Rows()) != 2 || rep.Version == "" {
		t.Fatalf("%d cells in %d rows", len(rep.Cells), len(rep.Rows()))
	}
	for i := range rep.Cells {
		c := &rep.Cells[i]
		if c.Failed() != "" || c.Recorded != 210 || c.Groups[1].Recorded != 200 || c.Cache != 1e6 || c.Publishers != "no transport" || c.Latency.P50 <= 0 || c.Latency.P50 > time.Second {
			t.Errorf("%+v", c)
		}
	}
	csv, err := os.ReadFile(filepath.Join(report, "results.csv"))
	if err != nil || strings.Count(string(csv), "\n") != 9 || !strings.Contains(string(csv), "sqlite3 5 100 100 200 1000000 0 - - 0 0 200 200 ") {
		t.Errorf("%v\n%s", err, csv)
	}
	for _, name := range []string{"report.md", "report.html"} {
		if text, err := os.ReadFile(filepath.Join(report, name)); err != nil || !strings.Contains(string(text), "producers") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r := cli(nil, "perf", "compare", report, results); r.code != 0 || !strings.Contains(r.out, "1.000") || !strings.Contains(r.out, "recorder CPU s") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	page := filepath.Join(dir, "benchmarks.md")
	if r := cli(nil, "perf", "docs", dir, "-o", page); r.code != 0 {
		t.Error(r.errOut)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "## report") {
		t.Errorf("%v %s", err, text)
	}
}

// TestPerfBoard: the settings that it writes are settings.
func TestPerfBoard(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "board.yaml")
	r := cli(nil, "perf", "board", dir, "--time", "0.2", "--config", config, "--json", filepath.Join(dir, "board.json"))
	if r.code != 0 || !strings.Contains(r.out, "MB/s") || !strings.Contains(r.out, "gobag record --config") {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	if r := cli(nil, "config", "check", config); r.code != 0 {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
}

func TestMetricsArguments(t *testing.T) {
	root := newRoot(newApp(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }))
	for in, want := range map[string]string{
		"record --metrics :9477 -a":           "record --metrics=:9477 -a",
		"record --metrics robot:1 /topic":     "record --metrics=robot:1 /topic",
		"record --metrics [::1]:1":            "record --metrics=[::1]:1",
		"record --metrics /topic":             "record --metrics /topic",
		"record --metrics -a":                 "record --metrics -a",
		"play --metrics bag:x":                "play --metrics bag:x",
		"perf record --metrics=:1 --size 100": "perf record --metrics=:1 --size=100",
	} {
		if got := strings.Join(expandLists(root, strings.Fields(in)), " "); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// TestMetrics: record and play serve what they do.
func TestMetrics(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	bag := filepath.Join(t.TempDir(), "src")
	flagBag(t, bag)
	said := regexp.MustCompile(`metrics at (http://127\.0\.0\.1:\d+/metrics)`)
	get := func(p *process) string {
		p.await("metrics at")
		url := said.FindStringSubmatch(p.err.String())
		if url == nil {
			t.Fatal(p.err.String())
		}
		r, err := http.Get(url[1])
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	domain := testDomain(t)
	play := launch(t, nil, "play", bag, "--start-paused", "--domain-id", strconv.Itoa(domain), "--localhost", "--metrics", "127.0.0.1:0", "--control-socket", "off")
	if text := get(play); !strings.Contains(text, "\ngobag_play_messages_total 0\n") || !strings.Contains(text, "process_cpu_seconds_total") {
		t.Error(text)
	}
	record := launch(t, nil, "record", "-a", "-o", filepath.Join(t.TempDir(), "b"), "--domain-id", strconv.Itoa(domain), "--localhost", "--metrics", "127.0.0.1:0", "--control-socket", "off")
	if text := get(record); !strings.Contains(text, "\ngobag_record_healthy 1\n") {
		t.Error(text)
	}
	for _, p := range []*process{play, record} {
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if r := p.result(); !slices.Contains([]int{0, 3}, r.code) {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
		}
	}
}
