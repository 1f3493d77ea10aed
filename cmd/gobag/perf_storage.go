package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/gobag/gobag/perf"
	"github.com/spf13/cobra"
)

// defaultPeers is where `make -C interop peers` puts the programs.
const defaultPeers = "interop/build"

// storageFlags are the flags of `perf storage` and `perf blobs`, as typed.
type storageFlags struct {
	sizes, targets, presets, buffers []string
	bytes, pace                      bytesValue
	repeat                           int
	payload, peers, output           string
	csvFile, jsonFile                string
	sync                             secondsValue
	seed                             uint64
	quick                            bool
}

func newPerfStorage(a *app) *cobra.Command {
	var f storageFlags
	cmd := &cobra.Command{
		Use:   "storage",
		Short: "Measure storage formats beside their ceilings and peers",
		Long: `Writes and reads every storage format at every size: in sequence and at random, as fast as it goes and, for the stalls,
paced. "null" takes messages and does nothing, "file" is an append log with checksums: the two ceilings. --peer runs
LevelDB's C++ and SQLite's C library in the same run (programs of interop/, "make -C interop peers").

Every measurement is a process of its own; targets take turns, and figures are medians. MB and GB are powers of ten.`,
		Example: `  gobag perf storage --quick
  gobag perf storage --size 10KB,1MB --target sqlite3:fast,file --csv out.csv
  gobag perf storage --peer --buffer 0,100MB`,
		Args: args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error {
			o, err := f.options()
			if err != nil {
				return usageError("perf storage: %w", err)
			}
			return runPerfStorage(a, &f, o, perf.StorageReport.WriteText)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	listFlag(fs, &f.sizes, "size", "", "`BYTES...` of a message (default 100B,10KB,100KB,1MB,2MB,4MB,8MB)", true)
	listFlag(fs, &f.targets, "target", "", "what to measure, `NAME[:PRESET]...` (default null, file and every format)", true)
	listFlag(fs, &f.presets, "preset", "", "presets `NAME...` of the formats, without --target (default resilient,fast)", true)
	listFlag(fs, &f.buffers, "buffer", "", "write buffer or page cache, `BYTES...`; 0 is the format's default (default 0,100MB)", true)
	f.common(cmd)
	fs.Var(&f.pace, "pace", "bytes per second of the paced writes (default 50MB)")
	fs.Lookup("pace").DefValue = "0"
	return cmd
}

// common defines the flags that `perf storage` and `perf blobs` share.
func (f *storageFlags) common(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.IntVar(&f.repeat, "repeat", 5, "`N` runs of everything, in turns")
	switchFlag(fs, &f.quick, "quick", "", "one run of little data, to see that everything works")
	fs.Var(&f.bytes, "bytes", "payload of each measurement (default 300MB)")
	fs.Lookup("bytes").DefValue = "0"
	fs.StringVar(&f.payload, "payload", perf.PayloadNoise, "`KIND` of payload: noise, or half that compresses to half")
	f.sync = secondsValue(time.Second)
	fs.Var(&f.sync, "sync-interval", "how often formats are synced while writing; 0 = never")
	fs.StringVar(&f.peers, "peer", "", "also run the peers' programs, which are in `DIR`")
	fs.Lookup("peer").NoOptDefVal = defaultPeers
	fs.Uint64Var(&f.seed, "seed", 1, "`N`, of the payloads")
	fs.StringVar(&f.csvFile, "csv", "", "also write the result to `FILE` as CSV")
	fs.StringVar(&f.jsonFile, "json", "", "also write every run to `FILE` as JSON")
	fs.StringVarP(&f.output, "output", "o", "", "directory `DIR` to measure in (default: the system's for temporary files)")
}

// options turns the flags into the measurement's.
func (f *storageFlags) options() (o perf.StorageOptions, err error) {
	o = perf.StorageOptions{Bytes: int64(f.bytes), Pace: int64(f.pace), Repeat: f.repeat, Payload: f.payload, Sync: time.Duration(f.sync), Seed: f.seed,
		Dir: f.output, Peers: f.peers}
	if o.Sync == 0 {
		o.Sync = -1
	}
	var errs []error
	if o.Sizes, err = parseSizes(f.sizes); err != nil {
		errs = append(errs, err)
	}
	if f.buffers == nil {
		f.buffers = []string{"0", "100MB"}
	}
	for _, s := range f.buffers {
		n, err := parseBytes(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("--buffer: %w", err))
		}
		o.Buffers = append(o.Buffers, n)
	}
	if f.presets == nil {
		f.presets = []string{"resilient", "fast"}
	}
	for _, s := range f.targets {
		o.Targets = append(o.Targets, perf.ParseStorageTarget(s))
	}
	if f.targets == nil {
		o.Targets = perf.DefaultStorageTargets(f.presets)
	}
	if f.peers != "" {
		for _, t := range perf.PeerTargets() {
			if !slices.Contains(o.Targets, t) {
				o.Targets = append(o.Targets, t)
			}
		}
	}
	if f.quick {
		o.Repeat, o.Bytes, o.MaxCount = 1, 20_000_000, 20_000
		if f.sizes == nil {
			o.Sizes = []int{100, 10_000, 1_000_000}
		}
	}
	return o, errors.Join(errs...)
}

// runPerfStorage runs the measurement and prints it with text.
func runPerfStorage(a *app, f *storageFlags, o perf.StorageOptions, text func(perf.StorageReport, io.Writer) error) error {
	var err error
	if o.Command, err = ownCommand(); err != nil {
		return fmt.Errorf("perf storage: %w", err)
	}
	if err := o.Validate(); err != nil {
		return usageError("perf storage: %w", err)
	}
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	began := time.Now()
	o.OnProgress = func(task, tasks int, what string) {
		if a.con.Terminal() {
			a.con.SetStatus(fmt.Sprintf("%d of %d: %s | %s", task, tasks, what, clock(time.Since(began))))
		}
	}
	rep, err := perf.RunStorage(stop.ctx, o)
	a.con.SetStatus("")
	if len(rep.Cells) == 0 {
		return err
	}
	err = errors.Join(err, text(rep, a.out), toFile(f.csvFile, rep.WriteCSV), toFile(f.jsonFile, rep.WriteJSON))
	if failed := len(rep.Failed()); err == nil && failed > 0 {
		err = fmt.Errorf("perf storage: %d of %d cells failed", failed, len(rep.Cells))
	}
	return err
}

// newPerfStorageTask is a process of `perf storage`: it prints one perf.StorageResult as JSON.
func newPerfStorageTask(a *app) *cobra.Command {
	var t perf.StorageTask
	var syncMS int64
	cmd := &cobra.Command{
		Use:    "storage-task",
		Short:  "Write or read one storage (what perf storage starts)",
		Hidden: true,
		Args:   args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error {
			t.Sync = time.Duration(syncMS) * time.Millisecond
			if err := t.Validate(); err != nil {
				return usageError("perf storage-task: %w", err)
			}
			res, err := perf.RunStorageTask(a.ctx, t)
			if err != nil {
				return err
			}
			return json.NewEncoder(a.out).Encode(res)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&t.Target, "target", "", "")
	fs.StringVar(&t.Preset, "preset", "", "")
	fs.StringVar(&t.Op, "op", "", "")
	fs.StringVar(&t.Order, "order", "", "")
	fs.IntVar(&t.Size, "size", 0, "")
	fs.IntVar(&t.Count, "count", 0, "")
	fs.StringVar(&t.Path, "path", "", "")
	fs.Uint64Var(&t.Seed, "seed", 1, "")
	fs.StringVar(&t.Payload, "payload", "", "")
	fs.Int64Var(&t.Buffer, "buffer", 0, "")
	fs.Int64Var(&t.Pace, "pace", 0, "")
	fs.Int64Var(&syncMS, "sync-ms", 0, "")
	return cmd
}
