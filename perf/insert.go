package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gobag/gobag/plugin"
)

// What an insert must survive before the next one begins.
const (
	InsertDurable   = "durable"    // a power cut: every insert is synced
	InsertCrashSafe = "crash-safe" // SIGKILL of the process: every insert has been handed to the system
)

// InsertModes are both.
func InsertModes() []string { return []string{InsertDurable, InsertCrashSafe} }

// Targets of an insert run that are no format.
const (
	insertLoop = "bare-loop" // write and fdatasync of a record of the same size, or write alone: the ceiling
	insertPeer = "c-sqlite"  // the program sqlite_insert of interop/peers
)

// insertPresets are the presets in which Sync does what a mode asks for: the default one waits for the disk, none hands
// over to the system.
var insertPresets = map[string]string{InsertDurable: plugin.PresetResilient, InsertCrashSafe: plugin.PresetNone}

// InsertOptions describe a run of inserts one at a time, as in LiteDB's comparison with SQLite: objects of a generated
// number, a name of 12 characters and a value.
type InsertOptions struct {
	Targets []string      // formats; nil is every format, the bare loop, and the peer where Peers is set
	Modes   []string      // default both
	Count   int           // inserts of a run; default 1,000,000
	Limit   time.Duration // of a durable run, which ends earlier then; default 10 s, negative none
	Repeat  int           // runs of everything, in turns; default 3
	Kills   int           // processes killed in the middle for each crash-safe target, whose inserts are looked for; default 3, negative none
	Seed    uint64

	Dir   string // where storages are written; "" is a temporary directory. Everything is removed again
	Peers string // directory with the peers' programs (interop/build); "" = without them

	// Command makes a process of this program: the verb "perf insert-task" with its flags.
	Command func(ctx context.Context, args ...string) *exec.Cmd

	// OnProgress is called with what is going on. May be nil.
	OnProgress func(task, tasks int, what string)
}

func (o InsertOptions) withDefaults() InsertOptions {
	if o.Targets == nil {
		o.Targets = []string{insertLoop}
		for _, d := range plugin.Drivers() {
			if !d.Features().ReadOnly {
				o.Targets = append(o.Targets, d.Name())
			}
		}
		if o.Peers != "" {
			o.Targets = append(o.Targets, insertPeer)
		}
	}
	if len(o.Modes) == 0 {
		o.Modes = InsertModes()
	}
	if o.Count == 0 {
		o.Count = 1_000_000
	}
	if o.Limit == 0 {
		o.Limit = 10 * time.Second
	}
	if o.Repeat == 0 {
		o.Repeat = 3
	}
	if o.Kills == 0 {
		o.Kills = 3
	}
	if o.OnProgress == nil {
		o.OnProgress = func(int, int, string) {}
	}
	return o
}

// Validate returns all problems, joined.
func (o InsertOptions) Validate() error {
	o = o.withDefaults()
	var errs []error
	if o.Command == nil {
		errs = append(errs, errors.New("no command to start processes with"))
	}
	if o.Count < 100 || o.Count > 1_000_000_000 || o.Repeat < 1 {
		errs = append(errs, errors.New("inserts must be in 100..1000000000, repeat above 0"))
	}
	for _, m := range o.Modes {
		if insertPresets[m] == "" {
			errs = append(errs, fmt.Errorf("mode %q: neither %s", m, strings.Join(InsertModes(), " nor ")))
		}
	}
	for _, t := range o.Targets {
		switch t {
		case insertLoop:
		case insertPeer:
			if _, err := os.Stat(filepath.Join(o.Peers, insertProgram)); o.Peers == "" || err != nil {
				errs = append(errs, fmt.Errorf("target %s: its program %s is not there (\"make -C interop peers\" builds it)", t, filepath.Join(o.Peers, insertProgram)))
			}
		default:
			if d, err := plugin.Lookup(t); err != nil {
				errs = append(errs, fmt.Errorf("target %s: %w; beside formats there are %s and %s", t, err, insertLoop, insertPeer))
			} else if d.Features().ReadOnly {
				errs = append(errs, fmt.Errorf("target %s: the format is only read", t))
			}
		}
	}
	return errors.Join(errs...)
}

const insertProgram = "sqlite_insert"

// killAfter is how many inserts a process that is killed has made at least.
const killAfter = 200

// RunInsert runs everything, each run in a process of its own, targets in turns. A run that fails carries its error. When
// ctx ends, what is finished is returned with ctx's error.
func RunInsert(ctx context.Context, o InsertOptions) (InsertReport, error) {
	if err := o.Validate(); err != nil {
		return InsertReport{}, fmt.Errorf("perf insert: %w", err)
	}
	o = o.withDefaults()
	if o.Dir != "" {
		if err := os.MkdirAll(o.Dir, 0o777); err != nil {
			return InsertReport{}, fmt.Errorf("perf insert: %w", err)
		}
	}
	dir, err := os.MkdirTemp(o.Dir, "gobag-insert-")
	if err != nil {
		return InsertReport{}, fmt.Errorf("perf insert: %w", err)
	}
	defer os.RemoveAll(dir)
	rep := InsertReport{Machine: ThisMachine(dir), Start: time.Now().UTC().Truncate(time.Second), Seed: o.Seed, Count: o.Count}
	for _, mode := range o.Modes {
		for _, t := range o.Targets {
			rep.Cells = append(rep.Cells, &InsertCell{Target: t, Mode: mode})
		}
	}
	tasks, done := len(rep.Cells)*o.Repeat, 0
	run := func(c *InsertCell, what string, f func(t InsertTask) error) error {
		o.OnProgress(done, tasks, c.Name()+what)
		t := InsertTask{Target: c.Target, Mode: c.Mode, Count: o.Count, Seed: o.Seed, Path: filepath.Join(dir, "storage")}
		if d, err := plugin.Lookup(c.Target); err == nil {
			t.Path += d.Extension()
		}
		if c.Mode == InsertDurable {
			t.Limit = max(0, o.Limit)
		}
		if err := f(t); err != nil {
			c.Error = err.Error()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("perf insert: stopped at run %d of %d: %w", done, tasks, ctx.Err())
		}
		return removeStorage(t.Path)
	}
	for range o.Repeat {
		for _, c := range rep.Cells {
			done++
			if err := run(c, "", func(t InsertTask) error {
				res, err := o.process(ctx, t)
				if err == nil {
					c.Runs = append(c.Runs, res)
				}
				return err
			}); err != nil {
				return rep, err
			}
		}
	}
	for _, c := range rep.Cells {
		if c.Mode != InsertCrashSafe || c.Target == insertLoop || c.Target == insertPeer {
			continue
		}
		for k := range max(0, o.Kills) {
			if err := run(c, ", killed", func(t InsertTask) error { return o.kill(ctx, t, k, c) }); err != nil {
				return rep, err
			}
		}
	}
	return rep, nil
}

// removeStorage removes what a run has left: a database that was not closed has files beside it.
func removeStorage(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", "-gobaglog", ackSuffix} {
		errs = append(errs, os.RemoveAll(path+suffix))
	}
	return errors.Join(errs...)
}

// process runs a task in a process: this program again, or the peer.
func (o InsertOptions) process(ctx context.Context, t InsertTask) (InsertResult, error) {
	cmd := o.Command(ctx, append([]string{"perf", "insert-task", "--target", t.Target}, t.Flags()...)...)
	if t.Target == insertPeer {
		cmd = exec.CommandContext(ctx, filepath.Join(o.Peers, insertProgram), t.Flags()...)
	}
	var log tail
	cmd.Stderr = &log
	detach(cmd)
	out, err := cmd.Output()
	if err != nil {
		return InsertResult{}, fmt.Errorf("%w: %s", err, log.String())
	}
	var res InsertResult
	if err := json.Unmarshal(out, &res); err != nil {
		return res, fmt.Errorf("result %q: %w", out[:min(len(out), 80)], err)
	}
	if res.Inserts == 0 || len(res.Points) < 10 {
		return res, fmt.Errorf("the result has %d inserts at %d points", res.Inserts, len(res.Points))
	}
	return res, nil
}

// kill starts a task, kills it in the middle, and looks for the inserts that it had acknowledged.
func (o InsertOptions) kill(ctx context.Context, t InsertTask, k int, c *InsertCell) error {
	t.Count, t.Acknowledge = 5_000_000, true // it does not come to its end
	cmd := o.Command(ctx, append([]string{"perf", "insert-task", "--target", t.Target}, t.Flags()...)...)
	var log tail
	cmd.Stderr = &log
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	var failure error // of the process; read after ended
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failure = cmd.Wait()
	}()
	deadline := time.After(30 * time.Second)
	for acknowledged(t.Path) < killAfter {
		select {
		case <-ended:
			return fmt.Errorf("ended before it was killed: %w: %s", failure, log.String())
		case <-deadline:
			_ = cmd.Process.Kill()
			<-ended
			return fmt.Errorf("no %d inserts in 30 s", killAfter)
		case <-time.After(5 * time.Millisecond):
		}
	}
	time.Sleep(time.Duration(100+137*k) * time.Millisecond)
	err := cmd.Process.Kill()
	<-ended
	if err != nil {
		return fmt.Errorf("kill: %w", err)
	}
	want := acknowledged(t.Path)
	got, err := t.check(ctx, -1)
	if err != nil {
		return fmt.Errorf("after SIGKILL: %w", err)
	}
	c.Kills = append(c.Kills, InsertKill{Acknowledged: want, Found: got})
	if got < want {
		return fmt.Errorf("after SIGKILL: %d inserts, %d had been acknowledged", got, want)
	}
	return nil
}

// Gain is the median over the repeats of the rate of a target by that of another in the same repeat; 0 where they were
// not measured.
func (r InsertReport) Gain(mode, target, by string) float64 {
	a, b := r.Find(mode, target), r.Find(mode, by)
	if a == nil || b == nil {
		return 0
	}
	var v []float64
	for i := range min(len(a.Runs), len(b.Runs)) {
		v = append(v, a.Runs[i].Rate()/b.Runs[i].Rate())
	}
	return middle(v)
}

// Find returns a cell; nil where there is none.
func (r InsertReport) Find(mode, target string) *InsertCell {
	i := slices.IndexFunc(r.Cells, func(c *InsertCell) bool { return c.Mode == mode && c.Target == target })
	if i < 0 {
		return nil
	}
	return r.Cells[i]
}
