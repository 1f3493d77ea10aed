package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gobag/gobag/internal/sqlview"
	"github.com/gobag/gobag/perf"
	"github.com/spf13/cobra"
)

// tsbsFlags are the flags of `perf tsbs-cpu` and `tsbs-iot`, as typed.
type tsbsFlags struct {
	o        perf.TSBSOptions
	targets  []string
	paceTime secondsValue
	quick    bool
	jsonFile string
}

func newPerfTSBSCPU(a *app) *cobra.Command {
	var f tsbsFlags
	cmd := &cobra.Command{
		Use:   "tsbs-cpu",
		Short: "Measure rows of many machines: writing, size, seven questions",
		Long: `The Time Series Benchmark Suite's use case cpu-only, as GreptimeDB's comparison with SQLite had it: a message of ten tags
and ten numbers from each of 4,000 hosts every ten seconds, 11 million of them. Measured are writing on one core, flat out
and at 43,000 rows/s with CPU and memory, the size, and seven questions asked by "gobag sql" of the columnar format: after
one opening, cold, and by virtual tables alone. --peer asks C SQLite (indexed, each question in its best form) and DuckDB (on
the same Parquet files) too, and compares all answers (programs of interop/, "make -C interop install peers").`,
		Example: `  gobag perf tsbs-cpu --quick
  gobag perf tsbs-cpu --peer --json tsbs.json`,
		Args: args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error { return runPerfTSBS(a, &f) },
	}
	f.o.Use = perf.UseCPU
	f.define(cmd, "hosts", 4000)
	return cmd
}

func newPerfTSBSIoT(a *app) *cobra.Command {
	var f tsbsFlags
	cmd := &cobra.Command{
		Use:   "tsbs-iot",
		Short: "Measure rows of trucks: writing, size, twelve questions",
		Long: `The Time Series Benchmark Suite's use case IoT, as TDengine's comparison with TimescaleDB had it: readings and diagnostics
of trucks every ten seconds, some missing and some late. Up to 100 trucks have topics of their own; of more, each of the two
tables is a topic. Three days of 100 trucks, a day of 4,000; of more trucks fewer rows, as the report says. Measured are
writing on one core, flat out and paced, with CPU, memory and bytes written over time (--json), the size after closing, and
twelve questions asked by "gobag sql" of the columnar format. --peer asks C SQLite (indexed) and DuckDB too, and compares all
answers.`,
		Example: `  gobag perf tsbs-iot --quick
  gobag perf tsbs-iot --trucks 4000 --peer --json iot.json`,
		Args: args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error { return runPerfTSBS(a, &f) },
	}
	f.o.Use = perf.UseIoT
	f.define(cmd, "trucks", 100)
	return cmd
}

func (f *tsbsFlags) define(cmd *cobra.Command, devices string, n int) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.IntVar(&f.o.Devices, devices, n, "`N` of them")
	fs.IntVar(&f.o.Steps, "steps", 0, "`N` rows of each, but for those that are silent (default as the text above says)")
	listFlag(fs, &f.targets, "target", "", "what is written, `FORMAT[:PRESET]...` (default every format with preset none)", true)
	fs.IntVar(&f.o.Pace, "pace", 43_000, "`ROWS` per second of the paced runs; 0 = none of them")
	f.paceTime = secondsValue(20 * time.Second)
	fs.Var(&f.paceTime, "pace-time", "how long a paced run takes")
	fs.IntVar(&f.o.Repeat, "repeat", 7, "`N` times every question is asked")
	fs.IntVar(&f.o.TablesLimit, "tables-limit", 12_000_000, "virtual tables alone are asked about `ROWS` at most: it takes them long")
	switchFlag(fs, &f.quick, "quick", "", "few rows, to see that everything works")
	fs.StringVar(&f.o.Peers, "peer", "", "also run the peers, whose programs are in `DIR` and beside it in python/")
	fs.Lookup("peer").NoOptDefVal = defaultPeers
	fs.Uint64Var(&f.o.Seed, "seed", 1, "`N`, of the values")
	fs.StringVar(&f.jsonFile, "json", "", "also write the result to `FILE` as JSON")
	fs.StringVarP(&f.o.Dir, "output", "o", "", "directory `DIR` to measure in (default: the system's for temporary files)")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, s := range f.targets {
			f.o.Targets = append(f.o.Targets, perf.ParseStorageTarget(s))
		}
		f.o.PaceTime = time.Duration(f.paceTime)
		if f.o.Peers != "" {
			f.o.Python = filepath.Join(filepath.Dir(f.o.Peers), "python")
		}
		if f.quick {
			f.o.PaceTime = time.Second
			if !cmd.Flags().Changed(devices) {
				f.o.Devices = 40
			}
			if f.o.Use == perf.UseIoT && f.o.Steps == 0 {
				f.o.Steps = 2900
			}
		}
		if f.o.Pace == 0 {
			f.o.Pace = -1
		}
		return nil
	}
}

func runPerfTSBS(a *app, f *tsbsFlags) error {
	var err error
	if f.o.Command, err = ownCommand(); err != nil {
		return fmt.Errorf("perf tsbs-%s: %w", f.o.Use, err)
	}
	if err := f.o.Validate(); err != nil {
		return usageError("perf tsbs-%s: %w", f.o.Use, err)
	}
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	began := time.Now()
	f.o.OnProgress = func(what string) {
		if a.con.Terminal() {
			a.con.SetStatus(what + " | " + clock(time.Since(began)))
		}
	}
	rep, err := perf.RunTSBS(stop.ctx, f.o)
	a.con.SetStatus("")
	if len(rep.Ingest) == 0 {
		return err
	}
	err = errors.Join(err, rep.WriteText(a.out), toFile(f.jsonFile, rep.WriteJSON))
	if failed := len(rep.Failures()); err == nil && failed > 0 {
		err = fmt.Errorf("perf tsbs-%s: %d measurements failed", f.o.Use, failed)
	}
	return err
}

// newPerfTSBSTask is a process of `perf tsbs-cpu` and `tsbs-iot` that writes: it prints one perf.TSBSResult as JSON.
func newPerfTSBSTask(a *app) *cobra.Command {
	var t perf.TSBSTask
	var limitMS int64
	cmd := &cobra.Command{
		Use:    "tsbs-task",
		Short:  "Write rows into one storage (what perf tsbs-cpu starts)",
		Hidden: true,
		Args:   args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error {
			t.Limit = time.Duration(limitMS) * time.Millisecond
			res, err := perf.RunTSBSTask(a.ctx, t)
			if err != nil {
				return err
			}
			return json.NewEncoder(a.out).Encode(res)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&t.Use, "use", "", "")
	fs.StringVar(&t.Target, "target", "", "")
	fs.StringVar(&t.Preset, "preset", "", "")
	fs.StringVar(&t.Path, "path", "", "")
	fs.IntVar(&t.Devices, "devices", 0, "")
	fs.IntVar(&t.Steps, "steps", 0, "")
	fs.Uint64Var(&t.Seed, "seed", 1, "")
	fs.IntVar(&t.Pace, "pace", 0, "")
	fs.Int64Var(&limitMS, "limit-ms", 0, "")
	return cmd
}

// newPerfTSBSQueries is a process of `perf tsbs-cpu` and `tsbs-iot` that answers questions from standard input.
func newPerfTSBSQueries(a *app) *cobra.Command {
	var path string
	tablesOnly := false
	cmd := &cobra.Command{
		Use:    "tsbs-queries",
		Short:  "Answer questions about a bag (what perf tsbs-cpu starts)",
		Hidden: true,
		Args:   args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error {
			return perf.RunTSBSQueries(a.ctx, path, sqlview.Options{TablesOnly: tablesOnly, Memory: tsbsQueryMemory}, a.in, a.out)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&path, "path", "", "")
	switchFlag(fs, &tablesOnly, "tables-only", "", "")
	return cmd
}

// tsbsQueryMemory bounds the columns that are kept between questions, as SQLite and DuckDB keep pages.
const tsbsQueryMemory = 1 << 30
