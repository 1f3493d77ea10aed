package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/plugin"
)

// StorageOptions describe a run of storages: every target with every size, and with every buffer.
type StorageOptions struct {
	Targets  []StorageTarget // what is compared
	Steps    []StorageStep   // what each does, in this order; default StorageSteps
	Sizes    []int           // bytes of a message; default StorageSizes
	Buffers  []int64         // 0 = the format's default; formats without such a setting are left out of the others. Default 0
	Bytes    int64           // of payload in each task; default 300 MB
	MaxCount int             // of messages in each task; default 200,000
	Pace     int64           // bytes per second of the paced steps; default 50 MB/s
	Repeat   int             // runs of everything, interleaved; default 5
	Payload  string          // default PayloadNoise
	Sync     time.Duration   // interval of Sync while writing; default 1 s, negative never
	Seed     uint64

	Dir   string // where storages are written; "" is a temporary directory. Everything is removed again
	Peers string // directory with the peers' programs (interop/build), for targets that are peers

	// Command makes a process of this program: the verb "perf storage-task" with its flags.
	Command func(ctx context.Context, args ...string) *exec.Cmd

	// OnProgress is called with what is going on, often. May be nil.
	OnProgress func(task, tasks int, what string)
}

// StorageTarget is a format or ceiling with a preset, or a peer with one of its settings.
type StorageTarget struct {
	Name   string // "sqlite3", "null", "c++leveldb"
	Preset string // of a format it may carry settings of the storage configuration: "fast+sync_tables=false"
}

// splitPreset takes a preset and the settings behind it apart. Values are true, false, whole numbers or words.
func splitPreset(s string) (preset string, config map[string]any, err error) {
	preset, rest, some := strings.Cut(s, "+")
	for some {
		var one string
		one, rest, some = strings.Cut(rest, "+")
		key, value, ok := strings.Cut(one, "=")
		if !ok || key == "" {
			return "", nil, fmt.Errorf("setting %q: not of the form KEY=VALUE", one)
		}
		if config == nil {
			config = map[string]any{}
		}
		if n, err := strconv.Atoi(value); err == nil {
			config[key] = n
		} else if b, err := strconv.ParseBool(value); err == nil {
			config[key] = b
		} else {
			config[key] = value
		}
	}
	return preset, config, nil
}

// ParseStorageTarget reads "NAME" or "NAME:PRESET".
func ParseStorageTarget(s string) StorageTarget {
	name, preset, _ := strings.Cut(s, ":")
	return StorageTarget{name, preset}
}

func (t StorageTarget) String() string {
	if t.Preset == "" {
		return t.Name
	}
	return t.Name + ":" + t.Preset
}

// StorageStep is an operation of a run.
type StorageStep struct {
	Op, Order string
	Paced     bool
}

// StorageSteps are the steps of the tables of the LevelDB proposal for rosbag2, and a paced write for the stalls.
var StorageSteps = []StorageStep{
	{Op: OpWrite, Order: OrderSequential}, {Op: OpRead, Order: OrderSequential}, {Op: OpRead, Order: OrderRandom},
	{Op: OpWrite, Order: OrderRandom}, {Op: OpWrite, Order: OrderSequential, Paced: true},
}

// StorageSizes are the sizes of those tables.
var StorageSizes = []int{100, 10_000, 100_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000}

// peerPrograms are the programs of interop/peers by the name of their target.
var peerPrograms = map[string]string{"c++leveldb": "lvl_bench", "csqlite": "sqlite_bench", "append-log": "append_log", "c++mcap": "mcap_bench"}

// PeerTargets are the peers with the settings that `--peer` runs: LevelDB's defaults, SQLite at rosbag2's resilient and
// default settings and at gobag's own pragmas, MCAP as rosbag2 writes it, and an append log.
func PeerTargets() []StorageTarget {
	return []StorageTarget{{"append-log", ""}, {"c++leveldb", "default"}, {"csqlite", "resilient"}, {"csqlite", "default"}, {"csqlite", "equal"}, {"c++mcap", "default"}}
}

// DefaultStorageTargets are the ceilings and every format that is linked in, with each of the presets.
func DefaultStorageTargets(presets []string) []StorageTarget {
	ts := []StorageTarget{{targetNull, ""}, {targetFile, ""}}
	for _, d := range plugin.Drivers() {
		if d.Features().ReadOnly {
			continue
		}
		for _, p := range presets {
			ts = append(ts, StorageTarget{d.Name(), p})
		}
	}
	return ts
}

func (o StorageOptions) withDefaults() StorageOptions {
	if len(o.Steps) == 0 {
		o.Steps = StorageSteps
	}
	if len(o.Sizes) == 0 {
		o.Sizes = StorageSizes
	}
	if len(o.Buffers) == 0 {
		o.Buffers = []int64{0}
	}
	if o.Bytes == 0 {
		o.Bytes = 300_000_000
	}
	if o.MaxCount == 0 {
		o.MaxCount = 200_000
	}
	if o.Pace == 0 {
		o.Pace = 50_000_000
	}
	if o.Repeat == 0 {
		o.Repeat = 5
	}
	if o.Sync == 0 {
		o.Sync = time.Second
	}
	if o.OnProgress == nil {
		o.OnProgress = func(int, int, string) {}
	}
	return o
}

// Validate returns all problems, joined.
func (o StorageOptions) Validate() error {
	o = o.withDefaults()
	var errs []error
	if len(o.Targets) == 0 {
		errs = append(errs, errors.New("no target"))
	}
	if o.Repeat < 1 || o.Bytes < 1 || o.MaxCount < 1 || o.Pace < 0 {
		errs = append(errs, errors.New("repeat, bytes, messages and pace must be above 0"))
	}
	if o.Command == nil {
		errs = append(errs, errors.New("no command to start processes with"))
	}
	for _, t := range o.Targets {
		errs = append(errs, o.checkTarget(t))
	}
	for _, size := range o.Sizes {
		errs = append(errs, StorageTask{Op: OpWrite, Order: OrderSequential, Size: size, Count: 1, Path: "x", Payload: o.Payload}.Validate())
	}
	for _, b := range o.Buffers {
		if b < 0 {
			errs = append(errs, fmt.Errorf("buffer %d: negative", b))
		}
	}
	return errors.Join(errs...)
}

func (o StorageOptions) checkTarget(t StorageTarget) error {
	if program, ok := peerPrograms[t.Name]; ok {
		if o.Peers == "" {
			return fmt.Errorf("target %s: a peer, and the directory of their programs is not given", t)
		}
		if _, err := os.Stat(filepath.Join(o.Peers, program)); err != nil {
			return fmt.Errorf("target %s: %w (\"make -C interop peers\" builds it)", t, err)
		}
		return nil
	}
	if slices.Contains(Ceilings(), t.Name) {
		return nil
	}
	d, err := plugin.Lookup(t.Name)
	if err != nil {
		return fmt.Errorf("target %s: %w; beside formats there are %s", t, err, strings.Join(Ceilings(), ", "))
	}
	preset, _, err := splitPreset(t.Preset)
	if err != nil {
		return fmt.Errorf("target %s: %w", t, err)
	}
	if preset == "" {
		return nil
	}
	var known []string
	for _, p := range d.Features().Presets {
		if p.Name == preset {
			return nil
		}
		known = append(known, p.Name)
	}
	return fmt.Errorf("target %s: unknown preset (there is: %s)", t, strings.Join(known, ", "))
}

// count is how many messages of a size a task has. Sizes of a megabyte and more have at least 20.
func (o StorageOptions) count(size int) int {
	return int(min(max(o.Bytes/int64(size), 20), int64(o.MaxCount)))
}

// does says whether a target takes part in a step with a buffer.
func (t StorageTarget) does(s StorageStep, buffer int64) bool {
	if t.Name == targetNull && s.Op == OpRead {
		return false
	}
	if strings.HasPrefix(t.Name, targetFiles) && s.Paced {
		return false
	}
	if t.Name == targetFile && s.Op == OpWrite && s.Order == OrderRandom {
		return false // it would be the same
	}
	if buffer == 0 {
		return true
	}
	if _, peer := peerPrograms[t.Name]; peer {
		return t.Name != "append-log"
	}
	_, ok := BufferConfig(t.Name, buffer)
	return ok
}

// RunStorage runs all tasks, each in a process of its own. Targets take turns within each step, in one order and in the
// other, so that what else the machine does falls on all; before the first reading what was written is on the disk. A task
// that fails carries its error and the run goes on. When ctx ends, what is finished is returned with ctx's error.
func RunStorage(ctx context.Context, o StorageOptions) (StorageReport, error) {
	if err := o.Validate(); err != nil {
		return StorageReport{}, fmt.Errorf("perf storage: %w", err)
	}
	o = o.withDefaults()
	if o.Dir != "" {
		if err := os.MkdirAll(o.Dir, 0o777); err != nil {
			return StorageReport{}, fmt.Errorf("perf storage: %w", err)
		}
	}
	dir, err := os.MkdirTemp(o.Dir, "gobag-perf-")
	if err != nil {
		return StorageReport{}, fmt.Errorf("perf storage: %w", err)
	}
	defer os.RemoveAll(dir)
	rep := StorageReport{Machine: ThisMachine(dir), Start: time.Now().UTC().Truncate(time.Second), Seed: o.Seed, Payload: StorageTask{Payload: o.Payload}.payload(),
		SyncSeconds: max(0, o.Sync.Seconds()), Pace: o.Pace}
	rep.Cells = o.cells()
	tasks, done := len(rep.Cells)*o.Repeat, 0
	for r := range o.Repeat {
		for _, group := range groupCells(rep.Cells) {
			at := filepath.Join(dir, "run")
			if err := os.Mkdir(at, 0o777); err != nil {
				return rep, fmt.Errorf("perf storage: %w", err)
			}
			settled := false
			for _, c := range turns(group, r) {
				if c.Op == OpRead && !settled {
					if err := settle(at); err != nil {
						return rep, fmt.Errorf("perf storage: %w", err)
					}
					settled = true
				}
				done++
				o.OnProgress(done, tasks, c.Name())
				o.runTask(ctx, c, at)
				if ctx.Err() != nil {
					return rep, fmt.Errorf("perf storage: stopped at task %d of %d: %w", done, tasks, ctx.Err())
				}
			}
			if err := os.RemoveAll(at); err != nil {
				return rep, fmt.Errorf("perf storage: %w", err)
			}
		}
	}
	return rep, nil
}

// settle waits until what was written below dir is on the disk, so that no reading competes with it.
func settle(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// cells are all cells, those that share a storage beside each other: by size and buffer, then by step, then by target.
func (o StorageOptions) cells() []*StorageCell {
	var cs []*StorageCell
	for _, buffer := range o.Buffers {
		for _, size := range o.Sizes {
			for _, step := range o.Steps {
				for _, t := range o.Targets {
					if t.does(step, buffer) {
						cs = append(cs, &StorageCell{Target: t.Name, Preset: t.Preset, Op: step.Op, Order: step.Order, Paced: step.Paced,
							Size: size, Count: o.count(size), Buffer: buffer})
					}
				}
			}
		}
	}
	return cs
}

// groupCells splits cells where size or buffer changes.
func groupCells(cells []*StorageCell) [][]*StorageCell {
	var groups [][]*StorageCell
	for i, c := range cells {
		if i == 0 || c.Size != cells[i-1].Size || c.Buffer != cells[i-1].Buffer {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], c)
	}
	return groups
}

// turns is the order of a group in a repeat: step by step, the targets of a step backwards every other time.
func turns(group []*StorageCell, repeat int) []*StorageCell {
	out := slices.Clone(group)
	for i := 0; i < len(out); {
		j := i
		for j < len(out) && out[j].step() == out[i].step() {
			j++
		}
		if repeat%2 == 1 {
			slices.Reverse(out[i:j])
		}
		i = j
	}
	return out
}

// runTask runs one cell once and keeps its result or its error. What reads finds the storage that the sequential write of
// the same group has left; of other writes nothing is left.
func (o StorageOptions) runTask(ctx context.Context, c *StorageCell, dir string) {
	base := filepath.Join(dir, strings.NewReplacer("+", "p", ":", "-").Replace(StorageTarget{c.Target, c.Preset}.String()))
	t := StorageTask{Target: c.Target, Preset: c.Preset, Op: c.Op, Order: c.Order, Size: c.Size, Count: c.Count, Path: base, Seed: o.Seed,
		Payload: o.Payload, Buffer: c.Buffer, Sync: max(0, o.Sync)}
	if d, err := plugin.Lookup(c.Target); err == nil {
		t.Path += d.Extension()
	}
	if c.Paced {
		t.Pace = o.Pace
	}
	if c.Op == OpWrite && (c.Paced || c.Order != OrderSequential) {
		t.Path = filepath.Join(dir, "other-"+filepath.Base(t.Path))
		defer os.RemoveAll(t.Path)
	}
	if c.Op == OpRead {
		t.Sync = 0
		if t.Target == targetFilesRaw { // made by whichever of the two came first
			if _, err := os.Stat(t.Path); err != nil {
				t.Path = filepath.Join(dir, targetFiles)
			}
		}
	}
	res, err := o.process(ctx, t)
	if err != nil {
		c.Error = err.Error()
		return
	}
	c.Runs = append(c.Runs, res)
}

// process runs a task in a process: this program again, or a peer.
func (o StorageOptions) process(ctx context.Context, t StorageTask) (StorageResult, error) {
	var cmd *exec.Cmd
	if program, ok := peerPrograms[t.Target]; ok {
		cmd = exec.CommandContext(ctx, filepath.Join(o.Peers, program), t.Flags()...)
	} else {
		cmd = o.Command(ctx, append([]string{"perf", "storage-task", "--target", t.Target}, t.Flags()...)...)
	}
	var log tail
	cmd.Stderr = &log
	detach(cmd)
	out, err := cmd.Output()
	if err != nil {
		return StorageResult{}, fmt.Errorf("%w: %s", err, log.String())
	}
	var res StorageResult
	if err := json.Unmarshal(out, &res); err != nil {
		return res, fmt.Errorf("result %q: %w", out[:min(len(out), 80)], err)
	}
	return res, nil
}
