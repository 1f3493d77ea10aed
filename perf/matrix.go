package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gobag/gobag/ros"
)

// RecordOptions describe a matrix run: every combination of the lists is a cell.
type RecordOptions struct {
	Instances   []int           // publishers; default 1
	Frequencies []float64       // Hz of each; default 100
	Sizes       []int           // bytes of data in a message; default 1000
	Storages    []string        // "" is the recorder's default
	Duration    time.Duration   // of publishing; default 10 s
	Repeat      int             // runs of every combination; default 1
	Preset      string          // storage preset; "" default
	Cache       int64           // --max-cache-size in bytes; 0 default
	Reliability ros.Reliability // default Reliable
	Depth       int             // history of the publishers; 0 keep all
	Seed        uint64          // of the payload

	Dir  string // where bags are written; "" is a temporary directory, removed at the end
	Keep bool   // leave the bags in Dir

	// Command makes a process of this program: the verbs "record" and "perf publish" with their flags.
	Command func(ctx context.Context, args ...string) *exec.Cmd

	// Domain is the ROS domain that the cells run in, on this host's loopback only.
	Domain int

	// OnCell is called with every finished cell; OnProgress with what is going on, often. Both may be nil.
	OnCell     func(Cell)
	OnProgress func(cell, cells int, what string)

	stopLimit time.Duration // how long a process may take to stop: a recorder has its queue to write; default 60 s
}

func (o RecordOptions) withDefaults() RecordOptions {
	if len(o.Instances) == 0 {
		o.Instances = []int{1}
	}
	if len(o.Frequencies) == 0 {
		o.Frequencies = []float64{100}
	}
	if len(o.Sizes) == 0 {
		o.Sizes = []int{1000}
	}
	if len(o.Storages) == 0 {
		o.Storages = []string{""}
	}
	if o.Duration == 0 {
		o.Duration = 10 * time.Second
	}
	if o.Repeat == 0 {
		o.Repeat = 1
	}
	if o.Reliability == ros.ReliabilitySystemDefault {
		o.Reliability = ros.Reliable
	}
	if o.stopLimit == 0 {
		o.stopLimit = 60 * time.Second
	}
	if o.OnCell == nil {
		o.OnCell = func(Cell) {}
	}
	if o.OnProgress == nil {
		o.OnProgress = func(int, int, string) {}
	}
	return o
}

// Validate returns all problems, joined.
func (o RecordOptions) Validate() error {
	o = o.withDefaults()
	var errs []error
	if o.Repeat < 1 {
		errs = append(errs, fmt.Errorf("repeat %d: not above 0", o.Repeat))
	}
	if o.Reliability != ros.Reliable && o.Reliability != ros.BestEffort {
		errs = append(errs, errors.New("reliability: neither reliable nor best_effort"))
	}
	if o.Cache < 0 || o.Depth < 0 {
		errs = append(errs, errors.New("cache and depth must not be negative"))
	}
	if o.Command == nil {
		errs = append(errs, errors.New("no command to start processes with"))
	}
	seen := map[string]bool{}
	for _, c := range o.cells() {
		l := Load{Instances: c.Instances, Frequency: c.Frequency, Size: c.Size, Duration: o.Duration}
		if err := l.Validate(); err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// cells is the cross product of the lists, repeats innermost, so that a run that is stopped early has whole rows.
func (o RecordOptions) cells() []Cell {
	var cs []Cell
	for _, storage := range o.Storages {
		for _, size := range o.Sizes {
			for _, hz := range o.Frequencies {
				for _, n := range o.Instances {
					for r := range max(1, o.Repeat) {
						cs = append(cs, Cell{Storage: storage, Preset: o.Preset, Cache: o.Cache, Instances: n, Frequency: hz, Size: size,
							Reliability: o.Reliability.String(), Depth: o.Depth, Repeat: r + 1})
					}
				}
			}
		}
	}
	return cs
}

// RunRecord runs every cell: a recorder in a process of its own, publishers in another, both on the loopback interface
// in Domain. A cell that fails carries its error and the run goes on. When ctx ends the cells finished so far are
// returned with ctx's error.
func RunRecord(ctx context.Context, o RecordOptions) (Report, error) {
	if err := o.Validate(); err != nil {
		return Report{}, fmt.Errorf("perf record: %w", err)
	}
	o = o.withDefaults()
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "gobag-perf-")
		if err != nil {
			return Report{}, fmt.Errorf("perf record: %w", err)
		}
		defer os.RemoveAll(dir)
		o.Dir, o.Keep = dir, false
	} else if err := os.MkdirAll(o.Dir, 0o777); err != nil {
		return Report{}, fmt.Errorf("perf record: %w", err)
	}
	rep := Report{Machine: ThisMachine(o.Dir), Start: time.Now().UTC().Truncate(time.Second), Seconds: o.Duration.Seconds(), Seed: o.Seed}
	cells := o.cells()
	for i := range cells {
		c := cells[i]
		o.OnProgress(i+1, len(cells), c.Name())
		err := o.runCell(ctx, &c, filepath.Join(o.Dir, fmt.Sprintf("cell%03d", i+1)))
		if ctx.Err() != nil {
			return rep, fmt.Errorf("perf record: stopped after %d of %d cells: %w", i, len(cells), ctx.Err())
		}
		if err != nil {
			c.Error = err.Error()
		}
		rep.Cells = append(rep.Cells, c)
		o.OnCell(c)
	}
	return rep, nil
}

// runCell runs one cell and fills it in.
func (o RecordOptions) runCell(ctx context.Context, c *Cell, dir string) error {
	// The children are not killed by ctx: they are stopped in order, so that what a stopped cell leaves is no wreck.
	rec, err := startChild("recorder", o.Command(context.WithoutCancel(ctx), o.recordArgs(c, dir)...))
	if err != nil {
		return err
	}
	if !o.Keep {
		defer os.RemoveAll(dir)
	}
	pub, err := startChild("publisher", o.Command(context.WithoutCancel(ctx), o.publishArgs(c)...))
	if err != nil {
		return errors.Join(err, rec.stop(o.stopLimit))
	}
	select {
	case <-pub.done:
	case <-rec.done:
		_ = pub.stop(o.stopLimit)
		return fmt.Errorf("recorder ended by itself: %w", orEnded(rec.failure()))
	case <-ctx.Done():
		return errors.Join(ctx.Err(), pub.stop(o.stopLimit), rec.stop(o.stopLimit))
	}
	stopErr := rec.stop(o.stopLimit)
	c.Recorder, c.RecorderExit = rec.usage(), rec.exitCode()
	if err := pub.failure(); err != nil {
		return errors.Join(err, stopErr)
	}
	if stopErr != nil {
		return stopErr
	}
	if err := json.Unmarshal(pub.out.Bytes(), &c.Publisher); err != nil {
		return fmt.Errorf("publisher: its result: %w", err)
	}
	pu := pub.usage()
	c.Publisher.CPUSeconds, c.Publisher.PeakRSS = pu.CPUSeconds, pu.PeakRSS
	return c.count(ctx, dir)
}

func orEnded(err error) error {
	if err == nil {
		return errors.New("exit code 0")
	}
	return err
}

func (o RecordOptions) recordArgs(c *Cell, dir string) []string {
	args := []string{"record", "--regex", "^" + LoadTopicRoot, "-o", dir, "--until-stdin-closes", "--log-level", "warn",
		"--domain-id", strconv.Itoa(o.Domain), "--localhost"}
	if c.Storage != "" {
		args = append(args, "-s", c.Storage)
	}
	if c.Preset != "" {
		args = append(args, "--storage-preset-profile", c.Preset)
	}
	if c.Cache > 0 {
		args = append(args, "--max-cache-size", strconv.FormatInt(c.Cache, 10))
	}
	return args
}

func (o RecordOptions) publishArgs(c *Cell) []string {
	return []string{"perf", "publish", "--instances", strconv.Itoa(c.Instances), "--frequency", strconv.FormatFloat(c.Frequency, 'g', -1, 64),
		"--size", strconv.Itoa(c.Size), "--duration", o.Duration.String(), "--reliability", c.Reliability, "--depth", strconv.Itoa(c.Depth),
		"--seed", strconv.FormatUint(o.Seed, 10), "--domain-id", strconv.Itoa(o.Domain), "--localhost", "--until-stdin-closes"}
}
