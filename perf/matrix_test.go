package perf

import (
	"context"
	"encoding/binary"
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
	"github.com/gobag/gobag/cdr"
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

// testLoad is what the children below agree on.
func testLoad() Load {
	return Load{Groups: Matrix([]int{1}, []float64{100}, []int{1000}, Group{})[0].Groups, Duration: time.Second, Seed: 9}
}

// testStart is when it began.
const testStart = 1_700_000_000_000_000_000

// playChild is a recorder that has recorded 90 of 100 messages and lost 7 on the wire and 3 at the queue, or a publisher
// that has sent 100; mode says what goes wrong.
func playChild(mode string, args []string) error {
	if mode == "storage" {
		return storageChild(args)
	}
	if mode == "insert" {
		return insertChild(args)
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
		var l Load
		if err := json.Unmarshal([]byte(args[slices.Index(args, "--load")+1]), &l); err != nil {
			return err
		}
		sent := make([]uint64, len(l.Topics()))
		sent[0] = 100
		return json.NewEncoder(os.Stdout).Encode(LoadResult{Expected: 100, Sent: 100, PerTopic: sent, Seconds: 1, Start: testStart})
	}
	if mode == "recorder fails" {
		return errors.New("disk on fire")
	}
	return recordChild(mode, args)
}

func recordChild(mode string, args []string) error {
	dir := args[slices.Index(args, "-o")+1]
	w, err := bag.Create(context.Background(), dir, bag.WriterOptions{})
	if err != nil {
		return err
	}
	name := LoadTopicRoot + "t0000"
	id, err := w.AddTopic(plugin.Topic{Name: name, Type: loadType})
	if err != nil {
		return err
	}
	group := testLoad().groupData(0)
	data := make([]byte, len(group))
	for n := range uint64(90) {
		fillMessage(data, group, messageKey(9, 0, n))
		binary.LittleEndian.PutUint64(data, 0)
		due := testStart + int64(n)*int64(10*time.Millisecond)
		binary.LittleEndian.PutUint64(data[8:], n)
		binary.LittleEndian.PutUint64(data[16:], uint64(due))
		switch {
		case mode == "damaged" && n == 50:
			data[500] ^= 1
		case mode == "twice" && n == 50:
			fillMessage(data[loadStamp:], group[loadStamp:], messageKey(9, 0, n-1))
			binary.LittleEndian.PutUint64(data[8:], n-1)
		}
		var e cdr.Encoder
		e.Reset(nil, cdr.CDRLE)
		e.ByteSeq(data)
		if err := w.Write([]plugin.Message{{Topic: id, RecvTime: due + int64(time.Millisecond), Data: e.Bytes()}}); err != nil {
			return err
		}
	}
	lost := bag.Lost{Wire: 7, Queue: 3}
	if mode == "unbalanced" {
		lost.Queue = 2
	}
	w.SetCustomData(bag.KeyLedger, bag.Ledger{Topics: map[string]bag.TopicLedger{name: {Received: 93, Recorded: 90, Lost: lost}}}.Encode())
	io.Copy(io.Discard, os.Stdin)
	switch mode {
	case "recorder hangs":
		time.Sleep(time.Minute)
	case "killed":
		os.Exit(0) // without closing the bag
	}
	return w.Close()
}

func options(mode string, dir string) RecordOptions {
	return RecordOptions{Duration: time.Second, Dir: dir, Seed: 9, stopLimit: 5 * time.Second,
		Command: func(ctx context.Context, args ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, os.Args[0], args...)
			cmd.Env = append(os.Environ(), "GOBAG_PERF_CHILD="+mode, "GORACE=atexit_sleep_ms=0")
			return cmd
		}}
}

func TestRunRecord(t *testing.T) {
	dir := t.TempDir()
	o := options("ok", dir)
	o.Loads = Matrix([]int{1, 2}, []float64{100}, []int{1000}, Group{})
	o.Repeat, o.Version, o.Scenario = 2, "v1", "some"
	var seen []string
	o.OnCell = func(c Cell) { seen = append(seen, fmt.Sprint(c.Groups[0].Instances, c.Repeat)) }
	share := 0.0
	o.OnProgress = func(_, _ int, done float64, _ string) {
		if done < share || done > 1 {
			t.Errorf("progress goes from %g to %g", share, done)
		}
		share = done
	}
	rep, err := RunRecord(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, ","); got != "1 1,1 2,2 1,2 2" {
		t.Errorf("cells %s", got)
	}
	c := &rep.Cells[0]
	if c.Failed() != "" || c.Recorded != 90 || c.Lost != (Lost{Wire: 7, Queue: 3}) || c.Unknown != 0 || c.Percent() != 90 || c.Storage != "mcap" || c.BagBytes == 0 || c.Recorder.CPUSeconds <= 0 {
		t.Errorf("%+v", c)
	}
	if c.Latency.P50 < 900*time.Microsecond || c.Latency.Max != time.Millisecond || c.Groups[0].Sent != 100 || c.Groups[0].Recorded != 90 {
		t.Errorf("%+v, %+v", c.Latency, c.Groups[0])
	}
	if len(c.Series) == 0 || c.Publisher.PerTopic != nil {
		t.Errorf("%d points, %v", len(c.Series), c.Publisher.PerTopic)
	}
	if rep.Seed != 9 || rep.Machine.Cores == 0 || rep.Machine.Go == "" || rep.Version != "v1" || rep.Emulated() {
		t.Errorf("%+v", rep)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	o.Keep, o.OnProgress = true, nil
	if _, err := RunRecord(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "cell*", "bag")); len(left) != 4 {
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
		"damaged":         "message 50, of /perf/t0000: its 1000 bytes are not those that were sent",
		"twice":           "it is the publisher's message 49, after its message 49",
		"killed":          "not closed in order",
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
	if !errors.Is(err, context.DeadlineExceeded) || len(rep.Cells) != 0 || !rep.Stopped || time.Since(began) > 20*time.Second {
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
		cell := Cell{Publisher: LoadResult{Sent: c.sent}, Groups: []Share{{Group: Group{Reliability: c.reliability.String()}, Sent: c.sent, Recorded: c.recorded, Lost: Lost{Wire: c.lost}}}}
		if cell.balance(); cell.Balanced != c.balanced || cell.Unknown != int64(c.sent)-int64(c.recorded)-int64(c.lost) {
			t.Errorf("%+v: balanced %v, unknown %d", c, cell.Balanced, cell.Unknown)
		}
	}
	// What one group has too many does not make up for what another lacks.
	cell := Cell{Groups: []Share{{Group: Group{Reliability: "reliable"}, Sent: 10, Recorded: 9}, {Group: Group{Reliability: "reliable"}, Sent: 10, Recorded: 11}}}
	if cell.balance(); cell.Balanced {
		t.Error("balanced")
	}
}

func TestRecordOptionsValidate(t *testing.T) {
	err := RecordOptions{Loads: Matrix([]int{0}, []float64{-1}, []int{3}, Group{Reliability: "sometimes", Compressible: 2}), Repeat: -1, Caches: []int64{-1}, Compressions: []string{"lzma"},
		Device: Device{Name: "x", Memory: 5}}.Validate()
	for _, want := range []string{"instances 0", "frequency -1", "size 3", "compressible 2", "repeat -1", "sometimes", "negative", "no command", `"lzma"`, "memory of 5 bytes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
