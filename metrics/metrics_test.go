package metrics

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/player"
	"github.com/gobag/gobag/recorder"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWrite(t *testing.T) {
	var b strings.Builder
	err := Write(&b, []Metric{
		{"gobag_x_total", "Things\nwith a \\.", Counter, []Value{{[]Label{{"topic", "/a\"b\\c\nd\xff"}, {"reason", "wire"}}, 3}, {nil, math.Inf(1)}}},
		{"gobag_none", "Left out.", Gauge, nil},
		One("gobag_y", "One.", Gauge, 0.25),
	})
	want := "# HELP gobag_x_total Things\\nwith a \\\\.\n# TYPE gobag_x_total counter\n" +
		"gobag_x_total{topic=\"/a\\\"b\\\\c\\nd\uFFFD\",reason=\"wire\"} 3\ngobag_x_total +Inf\n# HELP gobag_y One.\n# TYPE gobag_y gauge\ngobag_y 0.25\n"
	if err != nil || b.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, b.String(), want)
	}
	if number(math.NaN()) != "NaN" || number(math.Inf(-1)) != "-Inf" || number(1e21) != "1e+21" {
		t.Error("numbers")
	}
}

// snapshots with something in every field.
func snapshots() (recorder.Snapshot, player.Snapshot) {
	r := recorder.Snapshot{State: recorder.StateRecording, Elapsed: 3 * time.Second, Files: 2, Rate: 10, ByteRate: 100, DiskBytes: 5000, FreeBytes: 6000, Stalled: 2 * time.Second,
		Flushes: recorder.Flushes{Count: 4, Time: time.Second, Max: 500 * time.Millisecond}, Queue: bag.QueueStats{Len: 1, Bytes: 2, MaxBytes: 3, HighWater: 4}, Healthy: true,
		Topics: []recorder.TopicSnapshot{{Name: "/a", TopicLedger: bag.TopicLedger{Received: 9, Recorded: 7, Skipped: 1, Lost: bag.Lost{Wire: 3, Queue: 1}}, Bytes: 70, Rate: 5, Writers: 2}, {Name: "/b"}}}
	p := player.Snapshot{Position: 3e9, Start: 1e9, Total: 10 * time.Second, Rate: 2, Played: 11, Lateness: player.Lateness{Count: 11, Late: 2, P50: time.Millisecond, P99: 2 * time.Millisecond, Max: time.Second}}
	return r, p
}

func TestRecorderAndPlayer(t *testing.T) {
	r, p := snapshots()
	var b strings.Builder
	if err := Write(&b, append(Recorder(r), Player(p)[:7]...)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`gobag_record_lost_messages_total{topic="/a",reason="wire"} 3`, `gobag_record_lost_messages_total{topic="/b",reason="storage"} 0`,
		`gobag_record_recorded_messages_total{topic="/a"} 7`, `gobag_record_topic_publishers{topic="/a"} 2`, "gobag_record_queue_bytes 2\n", "gobag_record_flush_seconds_total 1\n",
		"gobag_record_flush_max_seconds 0.5\n", "gobag_record_storage_stalled_seconds 2\n", "gobag_record_healthy 1\n", "gobag_record_paused 0\n", "gobag_record_free_bytes 6000\n",
		"gobag_play_messages_total 11\n", "gobag_play_position_seconds 2\n", `gobag_play_late_seconds{quantile="0.99"} 0.002`, "process_cpu_seconds_total ",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	if runtime.GOOS == "linux" && !strings.Contains(b.String(), "process_resident_memory_bytes ") {
		t.Error("no resident memory")
	}
	checkExposition(t, b.String())
}

var sampleLine = regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="(?:[^"\\]|\\.)*"(?:,[a-z]+="(?:[^"\\]|\\.)*")*\})? (\S+)$`)

// checkExposition checks the text against the format: HELP and TYPE once before the samples of a metric, no sample twice,
// counters that are named so.
func checkExposition(t *testing.T, text string) {
	t.Helper()
	kinds, seen := map[string]string{}, map[string]bool{}
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		line := s.Text()
		if f := strings.Fields(line); strings.HasPrefix(line, "# TYPE ") {
			if kinds[f[2]] != "" {
				t.Errorf("%s is there twice", f[2])
			}
			kinds[f[2]] = f[3]
			if strings.HasSuffix(f[2], "_total") != (f[3] == "counter") {
				t.Errorf("%s is a %s", f[2], f[3])
			}
			continue
		} else if strings.HasPrefix(line, "# HELP ") {
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil || kinds[m[1]] == "" {
			t.Errorf("line %q", line)
			continue
		}
		if seen[m[1]+m[2]] {
			t.Errorf("%s%s is there twice", m[1], m[2])
		}
		seen[m[1]+m[2]] = true
	}
}

func TestServe(t *testing.T) {
	calls := 0
	s, err := Serve("127.0.0.1:0", func() []Metric { calls++; return []Metric{One("gobag_calls_total", "Calls.", Counter, float64(calls))} })
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func(path string) (int, string) {
		r, err := client.Get("http://" + s.Addr() + path)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		return r.StatusCode, r.Header.Get("Content-Type") + "\n" + string(b)
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { get("/metrics") })
	}
	wg.Wait()
	if code, text := get("/metrics"); code != 200 || !strings.HasPrefix(text, "text/plain; version=0.0.4") || !strings.Contains(text, "\ngobag_calls_total 11\n") {
		t.Errorf("%d %s", code, text)
	}
	if code, text := get("/"); code != 200 || !strings.Contains(text, "/metrics") {
		t.Errorf("%d %s", code, text)
	}
	if code, _ := get("/else"); code != 404 {
		t.Error(code)
	}
	if _, err := Serve(s.Addr(), nil); err == nil || !strings.Contains(err.Error(), "metrics: ") {
		t.Errorf("the same address twice: %v", err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if r, err := client.Get("http://" + s.Addr() + "/metrics"); err == nil {
		_ = r.Body.Close()
		t.Error("it answers after Close")
	}
	var none *Server
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}

func ExampleWrite() {
	_ = Write(writer{}, []Metric{One("gobag_record_queue_bytes", "Memory that the queue holds.", Gauge, 4096)})
	// Output:
	// # HELP gobag_record_queue_bytes Memory that the queue holds.
	// # TYPE gobag_record_queue_bytes gauge
	// gobag_record_queue_bytes 4096
}

type writer struct{}

func (writer) Write(p []byte) (int, error) { fmt.Print(string(p)); return len(p), nil }
