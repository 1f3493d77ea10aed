package perf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// RecordOptions describe a matrix run: every combination of the lists is a cell. An empty list stands for the recorder's
// default.
type RecordOptions struct {
	Loads        []NamedGroups // default: 1 × 100 Hz × 1 kB
	Storages     []string
	Presets      []string
	Caches       []int64 // --max-cache-size in bytes; 0 default
	MaxBagSizes  []int64 // bytes; 0 never
	Compressions []string
	ConfigFiles  []string
	Duration     time.Duration // of publishing; default 10 s
	Repeat       int           // runs of every combination; default 1
	NoTransport  bool          // publishers in the recorder's process, without DDS
	Seed         uint64        // of the payload

	// Publisher is a program that publishes in our place, with the command line of interop/peers/cy_pub; nil: ours.
	Publisher *PeerPublisher

	Device Device // zero: this machine as it is

	Dir  string // where bags are written; "" is a temporary directory, removed at the end
	Keep bool   // leave the bags in Dir; not with a device that has a disk

	// Command makes a process of this program: the verbs "record", "perf publish" and "perf no-transport" with their flags.
	Command func(ctx context.Context, args ...string) *exec.Cmd

	// Domain is the ROS domain that the cells run in, on this host's loopback only.
	Domain int

	// Version of the program, and how the run was asked for: they go into the report.
	Version  string
	Scenario string
	Notes    []string

	// OnCell is called with every finished cell; OnProgress with what is going on, often: done is the share of the whole
	// run's time that is over, 0..1. Both may be nil.
	OnCell     func(Cell)
	OnProgress func(cell, cells int, done float64, what string)

	stopLimit time.Duration // how long a process may take to stop: a recorder has its queue to write; default by the device
}

func orZero[T any](list []T) []T {
	if len(list) == 0 {
		return make([]T, 1)
	}
	return list
}

func (o RecordOptions) withDefaults() RecordOptions {
	if len(o.Loads) == 0 {
		o.Loads = Matrix([]int{1}, []float64{100}, []int{1000}, Group{})
	}
	o.Storages, o.Presets, o.Caches, o.MaxBagSizes = orZero(o.Storages), orZero(o.Presets), orZero(o.Caches), orZero(o.MaxBagSizes)
	o.Compressions, o.ConfigFiles = orZero(o.Compressions), orZero(o.ConfigFiles)
	o.Duration = cmp.Or(o.Duration, 10*time.Second)
	o.Repeat = cmp.Or(o.Repeat, 1)
	if o.stopLimit == 0 {
		o.stopLimit = 60 * time.Second
		if o.Device.Disk != nil {
			o.stopLimit = 5 * time.Minute
		}
	}
	if o.OnCell == nil {
		o.OnCell = func(Cell) {}
	}
	if o.OnProgress == nil {
		o.OnProgress = func(int, int, float64, string) {}
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
	if slices.Min(o.Caches) < 0 || slices.Min(o.MaxBagSizes) < 0 {
		errs = append(errs, errors.New("cache and bag size must not be negative"))
	}
	for _, c := range o.Compressions {
		if c != "" && c != "zstd" {
			errs = append(errs, fmt.Errorf("compression %q: not zstd", c))
		}
	}
	if o.Command == nil {
		errs = append(errs, errors.New("no command to start processes with"))
	}
	if o.NoTransport && o.Publisher != nil {
		errs = append(errs, errors.New("no transport: there is none to another program's publishers"))
	}
	if o.Keep && o.Device.Disk != nil {
		errs = append(errs, errors.New("bags on an emulated disk are not kept"))
	}
	errs = append(errs, o.Device.Validate())
	for _, l := range o.Loads {
		load := Load{Groups: l.Groups, Duration: o.Duration}
		if err := load.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("load %s: %w", l.Name, err))
		} else if o.Publisher != nil {
			errs = append(errs, o.Publisher.validate(load))
		}
	}
	return errors.Join(errs...)
}

// plannedCell is a cell and what it publishes.
type plannedCell struct {
	Cell
	load Load
}

// cells is the cross product of the lists, repeats innermost, so that a run that is stopped early has whole rows.
func (o RecordOptions) cells() []plannedCell {
	publishers := ownPublishers
	switch {
	case o.NoTransport:
		publishers = "no transport"
	case o.Publisher != nil:
		publishers = o.Publisher.Name
	}
	var cs []plannedCell
	for _, l := range o.Loads {
		load := Load{Groups: l.Groups, Duration: o.Duration, Seed: o.Seed}
		for _, storage := range o.Storages {
			for _, preset := range o.Presets {
				for _, config := range o.ConfigFiles {
					for _, compression := range o.Compressions {
						for _, size := range o.MaxBagSizes {
							for _, cache := range o.Caches {
								for r := range o.Repeat {
									cs = append(cs, plannedCell{Cell{Load: l.Name, Groups: sharesOf(load), Storage: storage, Preset: preset, Cache: cache,
										MaxBagSize: size, Compression: compression, ConfigFile: config, Publishers: publishers, Repeat: r + 1}, load})
								}
							}
						}
					}
				}
			}
		}
	}
	return cs
}

func sharesOf(l Load) []Share {
	shares := make([]Share, len(l.Groups))
	for i, g := range l.Groups {
		g.Reliability = cmp.Or(g.Reliability, "reliable")
		shares[i] = Share{Group: g, Expected: g.Expected(l.Duration)}
	}
	return shares
}

// RunRecord runs every cell: a recorder in a process of its own, publishers in another, both on the loopback interface
// in Domain. A cell that fails carries its error and the run goes on. When ctx ends the cells finished so far are
// returned with ctx's error.
func RunRecord(ctx context.Context, o RecordOptions) (_ Report, err error) {
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
	if o.Dir, err = filepath.Abs(o.Dir); err != nil { // mounts are known by their whole path
		return Report{}, fmt.Errorf("perf record: %w", err)
	}
	rep := newReport(o)
	cells := o.cells()
	var whole, longest, over time.Duration
	for _, c := range cells {
		whole += c.load.Span()
		longest = max(longest, c.load.Span())
	}
	progress := func(i int, part time.Duration, what string) {
		o.OnProgress(i+1, len(cells), min(1, float64(over+part)/float64(whole)), what)
	}
	progress(0, 0, "preparing "+o.Device.String())
	emulation, err := o.Device.start(ctx, o.Dir, longest)
	if err != nil {
		return rep, fmt.Errorf("perf record: %w", err)
	}
	defer func() { err = errors.Join(err, emulation.close()) }()
	rep.Device = emulation.info()
	for i := range cells {
		c := &cells[i]
		progress(i, 0, c.Name())
		run := cellRun{o: o, c: &c.Cell, load: c.load, emulation: emulation, work: filepath.Join(o.Dir, fmt.Sprintf("cell%03d", i+1)),
			tell: func(part time.Duration, what string) { progress(i, part, c.Name()+": "+what) }}
		err := run.run(ctx)
		if ctx.Err() != nil {
			rep.Stopped = true
			return rep, fmt.Errorf("perf record: stopped after %d of %d cells: %w", i, len(cells), ctx.Err())
		}
		if err != nil {
			c.Error = err.Error()
		}
		over += c.load.Span()
		rep.Cells = append(rep.Cells, c.Cell)
		o.OnCell(c.Cell)
	}
	return rep, nil
}
