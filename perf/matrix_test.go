package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	_ "github.com/gobag/gobag/plugins/sqlite"
	"github.com/gobag/gobag/ros"
	"go.uber.org/goleak"
)

// TestMain also plays the recorder and the publisher of the tests below.
func TestMain(m *testing.M) {
	if mode := os.Getenv("GOBAG_PERF_CHILD"); mode != "" {
		if err := playChild(mode, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// playChild is a recorder that has recorded 90 of 100 messages and lost 7 on the wire and 3 at the queue, or a publisher
// that has sent 100; mode says what goes wrong.
func playChild(mode string, args []string) error {
	if mode == "storage" {
		return storageChild(args)
	}
	if mode == "insert" {
		return insertChild(args)
	}
	if mode == "tsbs" {
		return tsbsChild(args)
	}
	if args[0] == "perf" {
		switch mode {
		case "publisher fails":
			return errors.New("no network today")
		case "garbage":
			fmt.Println("hello")
			return nil
		case "slow":
			io.Copy(io.Discard, os.Stdin)
			return errors.New("stopped")
		}
		return json.NewEncoder(os.Stdout).Encode(LoadResult{Expected: 100, Sent: 100, Seconds: 1})
	}
	if mode == "recorder fails" {
		return errors.New("disk on fire")
	}
	dir := args[slices.Index(args, "-o")+1]
	w, err := bag.Create(context.Background(), dir, bag.WriterOptions{})
	if err != nil {
		return err
	}
	id, err := w.AddTopic(plugin.Topic{Name: LoadTopicRoot + "t0000", Type: loadType})
	if err != nil {
		return err
	}
	for range 90 {
		if err := w.Write([]plugin.Message{{Topic: id, RecvTime: 1, Data: []byte("0123456789")}}); err != nil {
			return err
		}
	}
	lost := bag.Lost{Wire: 7, Queue: 3}
	if mode == "unbalanced" {
		lost.Queue = 2
	}
	w.SetCustomData(bag.KeyLedger, bag.Ledger{Topics: map[string]bag.TopicLedger{LoadTopicRoot + "t0000": {Received: 93, Recorded: 90, Lost: lost}}}.Encode())
	io.Copy(io.Discard, os.Stdin)
	if mode == "recorder hangs" {
		time.Sleep(time.Minute)
	}
	return w.Close()
}

func options(mode string, dir string) RecordOptions {
	return RecordOptions{Duration: time.Second, Dir: dir, stopLimit: 5 * time.Second,
		Command: func(ctx context.Context, args ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, os.Args[0], args...)
			cmd.Env = append(os.Environ(), "GOBAG_PERF_CHILD="+mode, "GORACE=atexit_sleep_ms=0")
			return cmd
		}}
}

func TestRunRecord(t *testing.T) {
	dir := t.TempDir()
	o := options("ok", dir)
	o.Instances, o.Repeat, o.Seed = []int{1, 2}, 2, 9
	var seen []string
	o.OnCell = func(c Cell) { seen = append(seen, fmt.Sprint(c.Instances, c.Repeat)) }
	rep, err := RunRecord(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, ","); got != "1 1,1 2,2 1,2 2" {
		t.Errorf("cells %s", got)
	}
	c := rep.Cells[0]
	if c.Failed() != "" || c.Recorded != 90 || c.Lost != (Lost{Wire: 7, Queue: 3}) || c.Unknown != 0 || c.Percent() != 90 || c.Storage != "mcap" || c.BagBytes == 0 || c.Recorder.CPUSeconds <= 0 {
		t.Errorf("%+v", c)
	}
	if rep.Seed != 9 || rep.Machine.Cores == 0 || rep.Machine.Go == "" {
		t.Errorf("%+v", rep)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	o.Keep = true
	if _, err := RunRecord(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "cell*")); len(left) != 4 {
		t.Errorf("kept: %v", left)
	}
}

// TestRunRecordFailures: a cell that fails says why, and the run goes on.
func TestRunRecordFailures(t *testing.T) {
	for mode, want := range map[string]string{
		"recorder fails":  "disk on fire",
		"publisher fails": "no network today",
		"garbage":         "its result",
		"unbalanced":      "sent 100, recorded 90, lost 9, unaccounted 1",
		"recorder hangs":  "did not stop within",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			rep, err := RunRecord(t.Context(), options(mode, t.TempDir()))
			if err != nil || len(rep.Cells) != 1 {
				t.Fatalf("%v, %d cells", err, len(rep.Cells))
			}
			if got := rep.Cells[0].Failed(); !strings.Contains(got, want) {
				t.Errorf("%q does not say %q", got, want)
			}
		})
	}
}

func TestRunRecordStopped(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	began := time.Now()
	rep, err := RunRecord(ctx, options("slow", t.TempDir()))
	if !errors.Is(err, context.DeadlineExceeded) || len(rep.Cells) != 0 || time.Since(began) > 20*time.Second {
		t.Errorf("%v, %d cells after %v", err, len(rep.Cells), time.Since(began))
	}
}

func TestBalance(t *testing.T) {
	for _, c := range []struct {
		sent, recorded, lost uint64
		reliability          ros.Reliability
		balanced             bool
	}{
		{10, 10, 0, ros.Reliable, true},
		{10, 7, 3, ros.Reliable, true},
		{10, 7, 2, ros.Reliable, false},
		{10, 7, 2, ros.BestEffort, true}, // the first or last of a best-effort writer
		{10, 7, 4, ros.BestEffort, false},
		{10, 11, 0, ros.Reliable, false},
	} {
		cell := Cell{Publisher: LoadResult{Sent: c.sent}, Recorded: c.recorded, Lost: Lost{Wire: c.lost}, Reliability: c.reliability.String()}
		if cell.balance(); cell.Balanced != c.balanced || cell.Unknown != int64(c.sent)-int64(c.recorded)-int64(c.lost) {
			t.Errorf("%+v: balanced %v, unknown %d", c, cell.Balanced, cell.Unknown)
		}
	}
}

func TestRecordOptionsValidate(t *testing.T) {
	err := RecordOptions{Instances: []int{0}, Sizes: []int{3}, Repeat: -1, Cache: -1, Reliability: 9}.Validate()
	for _, want := range []string{"instances 0", "size 3", "repeat -1", "reliability", "negative", "no command"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestReport(t *testing.T) {
	rep := Report{Machine: Machine{CPU: "Fast", Cores: 2, Memory: 4 << 30, OS: "Linux", Arch: "arm64", Load: 0.5, Go: "go1"}, Seconds: 10, Cells: []Cell{
		{Storage: "sqlite3", Instances: 1, Frequency: 100, Size: 1000, Reliability: "reliable", Recorded: 999, Lost: Lost{Queue: 1}, Balanced: true,
			Publisher: LoadResult{Expected: 1000, Sent: 1000, Seconds: 10, LateP50: 1e6, LateP99: 25e5, LateMax: 1e7, Usage: Usage{CPUSeconds: 1, PeakRSS: 10 << 20}}, Recorder: Usage{CPUSeconds: 2, PeakRSS: 20 << 20}},
		{Storage: "sqlite3", Instances: 1, Frequency: 100, Size: 1000, Reliability: "best_effort", Recorded: 998, Unknown: 1, Balanced: true,
			Publisher: LoadResult{Expected: 1000, Sent: 999, Seconds: 10}},
		{Storage: "sqlite3", Instances: 1, Frequency: 100, Size: 1000, Reliability: "reliable", Error: "no luck"},
	}}
	var b strings.Builder
	if err := rep.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 × Fast, 4.0 GiB, Linux, arm64, load 0.50, go1", "99.90 %", "999 of 1000", "failed", "no luck", "1 of the messages sent came neither in"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := rep.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back.Cells[0].Publisher.PeakRSS != 10<<20 || back.Cells[2].Error != "no luck" {
		t.Errorf("%v %+v", err, back)
	}
}
