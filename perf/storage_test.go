package perf

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/plugin"
)

func smallPool(t *testing.T) {
	poolBytes = 1 << 20
	t.Cleanup(func() { poolBytes = poolSize })
}

// Every target takes every step and gives back what was written.
func TestStorageTasks(t *testing.T) {
	smallPool(t)
	targets := []string{targetFile, targetFiles, targetFilesRaw}
	for _, d := range plugin.Drivers() {
		targets = append(targets, d.Name())
	}
	for _, target := range targets {
		if target == targetFilesRaw && rawReadFile == nil {
			continue
		}
		for _, payload := range []string{PayloadNoise, PayloadHalf} {
			task := StorageTask{Target: target, Op: OpWrite, Order: OrderSequential, Size: 1000, Count: 300, Path: filepath.Join(t.TempDir(), "s"),
				Seed: 7, Payload: payload, Sync: 20 * time.Millisecond}
			if d, err := plugin.Lookup(target); err == nil {
				task.Path += d.Extension()
			}
			res := mustRun(t, task)
			if res.Messages != 300 || res.Seconds <= 0 || res.DiskBytes < 1000 || res.WaitMax <= 0 {
				t.Errorf("%s: write measured %+v", target, res)
			}
			task.Op, task.Sync = OpRead, 0
			for _, order := range []string{OrderSequential, OrderEach, OrderRandom} {
				task.Order = order
				if res := mustRun(t, task); res.Seconds <= 0 {
					t.Errorf("%s: read %s measured %+v", target, order, res)
				}
			}
			task.Op, task.Order, task.Path = OpWrite, OrderRandom, filepath.Join(t.TempDir(), "r"+filepath.Ext(task.Path))
			mustRun(t, task)
			if target != targetFile { // which has them in the order of writing
				task.Op, task.Order = OpRead, OrderSequential
				mustRun(t, task)
			}
		}
	}
}

func mustRun(t *testing.T, task StorageTask) StorageResult {
	t.Helper()
	res, err := RunStorageTask(context.Background(), task)
	if err != nil {
		t.Fatalf("%+v: %v", task, err)
	}
	return res
}

// What was read is compared with what should have been written.
func TestStorageTaskNotices(t *testing.T) {
	smallPool(t)
	ctx := context.Background()
	task := StorageTask{Target: targetFile, Op: OpWrite, Order: OrderSequential, Size: 100, Count: 50, Path: filepath.Join(t.TempDir(), "s"), Seed: 1}
	mustRun(t, task)
	if _, err := RunStorageTask(ctx, task); !errors.Is(err, os.ErrExist) {
		t.Errorf("written twice: %v", err)
	}
	task.Op = OpRead
	for name, change := range map[string]func(*StorageTask){
		"another seed": func(t *StorageTask) { t.Seed = 2 },
		"more":         func(t *StorageTask) { t.Count++ },
		"less":         func(t *StorageTask) { t.Count-- },
		"another size": func(t *StorageTask) { t.Size++ },
		"not there":    func(t *StorageTask) { t.Path += "x" },
	} {
		other := task
		change(&other)
		if _, err := RunStorageTask(ctx, other); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, change := range map[string]func(*StorageTask){
		"no size":    func(t *StorageTask) { t.Size = 0 },
		"huge":       func(t *StorageTask) { t.Size = 1 << 30 },
		"no count":   func(t *StorageTask) { t.Count = 0 },
		"no path":    func(t *StorageTask) { t.Path = "" },
		"operation":  func(t *StorageTask) { t.Op = "delete" },
		"order":      func(t *StorageTask) { t.Order = "up" },
		"write each": func(t *StorageTask) { t.Op, t.Order = OpWrite, OrderEach },
		"payload":    func(t *StorageTask) { t.Payload = "zeros" },
		"pace":       func(t *StorageTask) { t.Pace = -1 },
	} {
		other := task
		change(&other)
		if other.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	task.Op, task.Path, task.Pace = OpWrite, filepath.Join(t.TempDir(), "s"), 1
	if _, err := RunStorageTask(ended, task); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
}

// A paced write waits for the intended time and says how late it was; a target that cannot have the buffer refuses it.
func TestStorageTaskPacedAndBuffer(t *testing.T) {
	smallPool(t)
	task := StorageTask{Target: targetNull, Op: OpWrite, Order: OrderSequential, Size: 10_000, Count: 20, Path: "x", Pace: 2_000_000}
	if res := mustRun(t, task); res.Seconds < 0.09 || res.WaitP50 <= 0 || res.WaitMax < res.WaitP999 {
		t.Errorf("paced: %+v, wants 95 ms", res)
	}
	task.Target, task.Pace, task.Buffer, task.Path = "sqlite3", 0, 10_000_000, filepath.Join(t.TempDir(), "s.db3")
	mustRun(t, task)
}

// Settings behind a preset reach the format.
func TestStorageTaskSettings(t *testing.T) {
	smallPool(t)
	task := StorageTask{Target: "sqlite3", Preset: "fast+no_such_key=1", Op: OpWrite, Order: OrderSequential, Size: 1000, Count: 3,
		Path: filepath.Join(t.TempDir(), "s.db3")}
	if _, err := RunStorageTask(t.Context(), task); err == nil || !strings.Contains(err.Error(), "no_such_key") {
		t.Errorf("unknown setting: %v", err)
	}
	preset, config, err := splitPreset("fast+a=false+b=7+c=snappy")
	if want := map[string]any{"a": false, "b": 7, "c": "snappy"}; preset != "fast" || err != nil || !maps.Equal(config, want) {
		t.Errorf("%q %v %v", preset, config, err)
	}
}

// storageChild runs the task that the arguments describe, as the command does.
func storageChild(args []string) error {
	var task StorageTask
	for i := 2; i+1 < len(args); i += 2 {
		switch value := args[i+1]; args[i] {
		case "--target":
			task.Target = value
		case "--op":
			task.Op = value
		case "--path":
			task.Path = value
		}
	}
	switch {
	case task.Op == OpRead && task.Target == "sqlite3":
		return errors.New("disk on fire")
	case task.Op == OpWrite:
		if err := os.WriteFile(task.Path, nil, 0o666); err != nil {
			return err
		}
	default:
		if _, err := os.Stat(task.Path); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(StorageResult{Messages: 1, Seconds: 2, CPUSeconds: 1, WriteBytes: 3, WaitMax: time.Second})
}

func TestRunStorage(t *testing.T) {
	var names []string
	o := StorageOptions{Targets: []StorageTarget{{targetNull, ""}, {targetFile, ""}, {"sqlite3", "fast"}}, Sizes: []int{1000}, Buffers: []int64{0, 1e6},
		Bytes: 1e6, MaxCount: 5000, Repeat: 2, Dir: t.TempDir(),
		Command: func(ctx context.Context, args ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, os.Args[0], args...)
			cmd.Env = append(os.Environ(), "GOBAG_PERF_CHILD=storage")
			return cmd
		},
		OnProgress: func(_, _ int, what string) { names = append(names, what) },
	}
	rep, err := RunStorage(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	// Without a buffer: null writes, the log has no random write, sqlite3 does all five. With one only sqlite3 remains.
	if want := (3 + 4 + 5) + 5; len(rep.Cells) != want || len(names) != 2*want {
		t.Errorf("%d cells and %d tasks, want %d and twice as many", len(rep.Cells), len(names), want)
	}
	if i, j := slices.Index(names, "write seq 1 KB, null"), slices.Index(names, "write seq 1 KB, sqlite3:fast"); i < 0 || j < i {
		t.Errorf("order of the first repeat: %q", names[:5])
	}
	second := names[len(names)/2:]
	if i, j := slices.Index(second, "write seq 1 KB, null"), slices.Index(second, "write seq 1 KB, sqlite3:fast"); j < 0 || i < j {
		t.Errorf("order of the second repeat is not turned: %q", second[:5])
	}
	failed := rep.Failed()
	if len(failed) != 4 || !strings.Contains(failed[0].Error, "disk on fire") {
		t.Errorf("%d cells failed, want the 4 reads of sqlite3: %v", len(failed), failed)
	}
	c := rep.Find(StorageTarget{"sqlite3", "fast"}, StorageStep{Op: OpWrite, Order: OrderSequential}, 1000)
	if c == nil || len(c.Runs) != 2 || c.MBPerSecond() != 0.5 || c.CPUPerGB() != 1000 || c.PerSecond() != 0.5 || c.Wait(func(r StorageResult) time.Duration { return r.WaitMax }) != time.Second {
		t.Errorf("cell %+v", c)
	}
	var text, table, raw bytes.Buffer
	if err := errors.Join(rep.WriteText(&text), rep.WriteCSV(&table), rep.WriteJSON(&raw)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Sequential writes, MB/s\n", "with a buffer of 1 MB", "sqlite3:fast", "Failed: read seq 1 KB, sqlite3:fast: "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("text has no %q:\n%s", want, text.String())
		}
	}
	if rows, err := csv.NewReader(&table).ReadAll(); err != nil || len(rows) != 1+len(rep.Cells) {
		t.Errorf("csv: %d rows, %v", len(rows), err)
	}
	var again StorageReport
	if err := json.Unmarshal(raw.Bytes(), &again); err != nil || len(again.Cells) != len(rep.Cells) {
		t.Errorf("json: %d cells, %v", len(again.Cells), err)
	}
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestStorageOptionsValidate(t *testing.T) {
	command := func(ctx context.Context, args ...string) *exec.Cmd { return exec.CommandContext(ctx, "false") }
	good := StorageOptions{Targets: DefaultStorageTargets([]string{"fast"}), Command: command}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, o := range map[string]StorageOptions{
		"no target":       {Command: command},
		"no command":      {Targets: good.Targets},
		"no such storage": {Targets: []StorageTarget{{"rocks", ""}}, Command: command},
		"unknown preset":  {Targets: []StorageTarget{{"sqlite3", "faster"}}, Command: command},
		"KEY=VALUE":       {Targets: []StorageTarget{{"sqlite3", "fast+sync"}}, Command: command},
		"not given":       {Targets: PeerTargets(), Command: command},
		"make -C interop": {Targets: PeerTargets(), Command: command, Peers: t.TempDir()},
		"size -1":         {Targets: good.Targets, Command: command, Sizes: []int{-1}},
		"negative":        {Targets: good.Targets, Command: command, Buffers: []int64{-1}},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// The tables of blobs, and the size where files get ahead.
func TestBlobText(t *testing.T) {
	rep := StorageReport{}
	add := func(target, preset string, size int, step StorageStep, seconds float64, disk int64) {
		rep.Cells = append(rep.Cells, &StorageCell{Target: target, Preset: preset, Op: step.Op, Order: step.Order, Size: size, Count: 100,
			Runs: []StorageResult{{Messages: 100, Seconds: seconds, DiskBytes: disk}}})
	}
	for i, size := range []int{1000, 4000, 16000} {
		for _, step := range BlobSteps {
			add(targetFiles, "", size, step, 1, int64(size)*125)
		}
		add("sqlite3", "fast", size, BlobSteps[0], 2, int64(size)*100)
		add("sqlite3", "fast", size, BlobSteps[1], 0.5, 0)
		add("sqlite3", "fast", size, BlobSteps[3], []float64{0.5, 0.5, 2}[i], 0)
	}
	rep.Cells = append(rep.Cells, &StorageCell{Target: "sqlite3", Preset: "none", Op: OpWrite, Order: OrderSequential, Size: 1000, Error: "broken"})
	var b strings.Builder
	if err := rep.WriteBlobText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"100 blobs of 4 KB", "sqlite3:fast, read in sequence: ahead of files at every size", "sqlite3:fast, written: behind files at every size",
		"sqlite3:fast, read at random: ahead of files at 1 KB, falls behind at about 8 KB", "Failed: write seq 1 KB, sqlite3:none: broken", "0.80"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
