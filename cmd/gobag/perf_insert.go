package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gobag/gobag/perf"
	"github.com/spf13/cobra"
)

func newPerfInsert(a *app) *cobra.Command {
	var o perf.InsertOptions
	var limit secondsValue
	var jsonFile string
	quick := false
	cmd := &cobra.Command{
		Use:   "insert",
		Short: "Measure inserts of one small object at a time",
		Long: `Inserts objects {number, name of 12 characters, value} one at a time into every storage format: once durable, where each
is synced before the next, and once crash-safe, where each is with the system before the next begins. Beside them runs a
bare loop that writes (and syncs) as many bytes to a file; --peer adds SQLite's C library (a program of interop/, "make -C
interop peers"). Printed are the rate, also by tenths of the run, CPU time, memory and size.

Every run is a process of its own and reads back all that it has inserted. Crash-safe formats are also killed in the
middle, and what they had acknowledged is looked for.`,
		Example: `  gobag perf insert --quick
  gobag perf insert --target columnar,leveldb,bare-loop --mode crash-safe --repeat 5 --json inserts.json`,
		Args: args(cobra.NoArgs, "takes no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Limit = time.Duration(limit)
			if o.Limit == 0 {
				o.Limit = -1
			}
			if o.Kills == 0 {
				o.Kills = -1
			}
			if quick {
				o.Repeat, o.Kills = 1, 1
				if !cmd.Flags().Changed("count") {
					o.Count = 20_000
				}
				if !cmd.Flags().Changed("limit") {
					o.Limit = time.Second / 2
				}
			}
			return runPerfInsert(a, o, jsonFile)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	listFlag(fs, &o.Targets, "target", "", "what to measure, `NAME...` (default bare-loop and every format)", true)
	listFlag(fs, &o.Modes, "mode", "", "durable, crash-safe: `MODE...` (default both)", true)
	fs.IntVar(&o.Count, "count", 1_000_000, "`N` inserts in a run")
	limit = secondsValue(10 * time.Second)
	fs.Var(&limit, "limit", "when a durable run ends at the latest; 0 = never")
	fs.IntVar(&o.Repeat, "repeat", 3, "`N` runs of everything, in turns")
	fs.IntVar(&o.Kills, "kills", 3, "`N` processes of each crash-safe format that are killed")
	switchFlag(fs, &quick, "quick", "", "one run of few inserts, to see that everything works")
	fs.StringVar(&o.Peers, "peer", "", "also run the peer's program, which is in `DIR`")
	fs.Lookup("peer").NoOptDefVal = defaultPeers
	fs.Uint64Var(&o.Seed, "seed", 1, "`N`, of the objects")
	fs.StringVar(&jsonFile, "json", "", "also write every run to `FILE` as JSON")
	fs.StringVarP(&o.Dir, "output", "o", "", "directory `DIR` to measure in (default: the system's for temporary files)")
	return cmd
}

func runPerfInsert(a *app, o perf.InsertOptions, jsonFile string) error {
	var err error
	if o.Command, err = ownCommand(); err != nil {
		return fmt.Errorf("perf insert: %w", err)
	}
	if err := o.Validate(); err != nil {
		return usageError("perf insert: %w", err)
	}
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	began := time.Now()
	o.OnProgress = func(task, tasks int, what string) {
		if a.con.Terminal() {
			a.con.SetStatus(fmt.Sprintf("%d of %d: %s | %s", task, tasks, what, clock(time.Since(began))))
		}
	}
	rep, err := perf.RunInsert(stop.ctx, o)
	a.con.SetStatus("")
	if len(rep.Cells) == 0 {
		return err
	}
	err = errors.Join(err, rep.WriteText(a.out), toFile(jsonFile, rep.WriteJSON))
	if failed := len(rep.Failed()); err == nil && failed > 0 {
		err = fmt.Errorf("perf insert: %d of %d cells failed", failed, len(rep.Cells))
	}
	return err
}

// newPerfInsertTask is a process of `perf insert`: it prints one perf.InsertResult as JSON.
func newPerfInsertTask(a *app) *cobra.Command {
	var t perf.InsertTask
	var limitMS int64
	cmd := &cobra.Command{
		Use:    "insert-task",
		Short:  "Insert into one storage (what perf insert starts)",
		Hidden: true,
		Args:   args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error {
			t.Limit = time.Duration(limitMS) * time.Millisecond
			res, err := perf.RunInsertTask(a.ctx, t)
			if err != nil {
				return err
			}
			return json.NewEncoder(a.out).Encode(res)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&t.Target, "target", "", "")
	fs.StringVar(&t.Mode, "mode", "", "")
	fs.IntVar(&t.Count, "count", 0, "")
	fs.Int64Var(&limitMS, "limit-ms", 0, "")
	fs.StringVar(&t.Path, "path", "", "")
	fs.Uint64Var(&t.Seed, "seed", 1, "")
	switchFlag(fs, &t.Acknowledge, "acknowledge", "", "")
	return cmd
}
