package perf

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/plugin"
)

// insertChild is a process of TestInsert.
func insertChild(args []string) error {
	t := InsertTask{}
	for i := 2; i < len(args); i++ {
		value := func() string { i++; return args[i] }
		switch args[i] {
		case "--target":
			t.Target = value()
		case "--mode":
			t.Mode = value()
		case "--path":
			t.Path = value()
		case "--count":
			if err := json.Unmarshal([]byte(value()), &t.Count); err != nil {
				return err
			}
		case "--limit-ms":
			ms := 0
			if err := json.Unmarshal([]byte(value()), &ms); err != nil {
				return err
			}
			t.Limit = time.Duration(ms) * time.Millisecond
		case "--seed":
			if err := json.Unmarshal([]byte(value()), &t.Seed); err != nil {
				return err
			}
		case "--acknowledge":
			t.Acknowledge = true
		}
	}
	res, err := RunInsertTask(context.Background(), t)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(res)
}

// Both modes in processes, in every format, and what a killed one had acknowledged.
func TestInsert(t *testing.T) {
	rep, err := RunInsert(context.Background(), InsertOptions{Count: 300, Limit: 200 * time.Millisecond, Repeat: 1, Kills: 1, Dir: t.TempDir(),
		Command: func(ctx context.Context, args ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, os.Args[0], args...)
			cmd.Env = append(os.Environ(), "GOBAG_PERF_CHILD=insert", "GORACE=atexit_sleep_ms=0")
			return cmd
		}})
	if err != nil {
		t.Fatal(err)
	}
	formats := 0
	for _, d := range plugin.Drivers() {
		if !d.Features().ReadOnly {
			formats++
		}
	}
	if want := 2 * (1 + formats); len(rep.Cells) != want {
		t.Errorf("%d cells, want %d", len(rep.Cells), want)
	}
	for _, c := range rep.Cells {
		if c.Error != "" || len(c.Runs) != 1 {
			t.Errorf("%s: %d runs, error %s", c.Name(), len(c.Runs), c.Error)
			continue
		}
		if c.Rate() <= 0 || c.Steady() <= 0 || c.Runs[0].DiskBytes <= 0 {
			t.Errorf("%s: measured %+v", c.Name(), c.Runs[0])
		}
		if want := c.Mode == InsertCrashSafe && c.Target != insertLoop; want != (len(c.Kills) == 1) {
			t.Errorf("%s: killed %d times", c.Name(), len(c.Kills))
		}
		for _, k := range c.Kills {
			if k.Acknowledged < killAfter || k.Found < k.Acknowledged {
				t.Errorf("%s: %+v", c.Name(), k)
			}
		}
	}
	if rep.Gain(InsertDurable, "mcap", insertLoop) <= 0 {
		t.Error("no ratio to the bare loop")
	}
	var text strings.Builder
	if err := rep.WriteText(&text); err != nil || strings.Count(text.String(), "bare-loop") != 2 || strings.Contains(text.String(), "failed") {
		t.Errorf("%v: %s", err, text.String())
	}
}

// What is missing or different is noticed.
func TestInsertNotices(t *testing.T) {
	task := InsertTask{Target: "mcap", Mode: InsertCrashSafe, Count: 200, Path: filepath.Join(t.TempDir(), "s.mcap"), Seed: 3}
	if _, err := RunInsertTask(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if _, err := task.check(t.Context(), 201); err == nil || !strings.Contains(err.Error(), "200 objects") {
		t.Errorf("one that is missing: %v", err)
	}
	task.Seed = 4
	if _, err := task.check(t.Context(), 200); err == nil || !strings.Contains(err.Error(), "object 0 is not") {
		t.Errorf("others: %v", err)
	}
	if n := acknowledged(task.Path); n != 0 {
		t.Errorf("%d acknowledged by nobody", n)
	}
}

func TestInsertOptionsValidate(t *testing.T) {
	command := func(ctx context.Context, args ...string) *exec.Cmd { return exec.CommandContext(ctx, "false") }
	if err := (InsertOptions{Command: command}).Validate(); err != nil {
		t.Error(err)
	}
	for want, o := range map[string]InsertOptions{
		"no command":      {},
		"mode \"often\"":  {Command: command, Modes: []string{"often"}},
		"target rocks":    {Command: command, Targets: []string{"rocks"}},
		"inserts must be": {Command: command, Count: 3},
		"make -C interop": {Command: command, Targets: []string{insertPeer}, Peers: t.TempDir()},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
