package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/gobag/gobag/perf"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros2"
	"github.com/spf13/cobra"
)

func newPerf(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "perf",
		Short: "Measure how much of a load is kept, what storage formats do, and what it costs",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, words []string) error {
			if len(words) > 0 {
				return usageError("perf: unknown verb %q (see \"gobag perf --help\")", words[0])
			}
			return usageError("perf: say what to measure: record, storage, insert, tsbs-cpu, transport or blobs (see \"gobag perf --help\")")
		},
	}
	cmd.AddCommand(newPerfRecord(a), newPerfStorage(a), newPerfBlobs(a), newPerfColumnar(a), newPerfInsert(a), newPerfTSBSCPU(a), newPerfTransport(a), newPerfPublish(a), newPerfStorageTask(a), newPerfTransportTask(a), newPerfInsertTask(a), newPerfTSBSTask(a), newPerfTSBSQueries(a))
	return cmd
}

// perfFlags are the flags of `perf record`, as typed.
type perfFlags struct {
	instances, frequencies, sizes, storages []string
	duration                                secondsValue
	repeat, depth                           int
	preset, reliability, jsonFile, output   string
	cache                                   bytesValue
	seed                                    uint64
	domain                                  int
}

func newPerfRecord(a *app) *cobra.Command {
	var f perfFlags
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Record loads of instances × frequency × size and say what share was kept",
		Long: `Every combination of the lists is a cell: publishers in one process, this recorder in another, on this machine over
loopback in a ROS domain that nobody uses. A cell's line says what share of the messages sent is in the bag, what the rest
was lost to (recorded + lost must be what was sent), and what CPU and memory it took. Lateness is measured from when each
message was due until it was handed over, so that a stall is not hidden.

Ctrl-C ends the run and keeps the finished cells. Exit code 1 when a cell failed or its books do not balance.`,
		Example: `  gobag perf record --instances 1,10,100 --frequency 100 --size 10KB --duration 10
  gobag perf record --instances 1 --frequency 30 --size 1MB --storage sqlite3 --preset fast --json out.json`,
		Args: args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error { return runPerfRecord(a, &f) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	listFlag(fs, &f.instances, "instances", "", "numbers `N...` of publishers (default 1)", true)
	listFlag(fs, &f.frequencies, "frequency", "", "messages per second, `HZ...`, of each publisher (default 100)", true)
	listFlag(fs, &f.sizes, "size", "", "`BYTES...` of data in a message (default 1000)", true)
	listFlag(fs, &f.storages, "storage", "", "storage formats `ID...` (default "+defaultStorage+")", true)
	f.duration = secondsValue(10 * time.Second)
	fs.Var(&f.duration, "duration", "how long each cell publishes")
	fs.IntVar(&f.repeat, "repeat", 1, "`N` runs of every cell")
	fs.StringVar(&f.preset, "preset", "", "storage preset `NAME` of the recorder")
	fs.Var(&f.cache, "cache", "--max-cache-size of the recorder")
	fs.StringVar(&f.reliability, "reliability", "reliable", "`POLICY` of the publishers: reliable or best_effort")
	fs.IntVar(&f.depth, "depth", 0, "history `N` of the publishers, 0 = keep all")
	fs.Uint64Var(&f.seed, "seed", 1, "`N`, of the payloads' noise")
	fs.StringVar(&f.jsonFile, "json", "", "also write the result to `FILE` as JSON")
	fs.StringVarP(&f.output, "output", "o", "", "directory `DIR` for the bags, which are kept (default: a temporary one)")
	fs.IntVar(&f.domain, "domain-id", -1, "ROS domain `N` (default: a free one)")
	fs.Lookup("domain-id").DefValue = "0"
	completeFlag(cmd, "storage", completeStorage)
	return cmd
}

// options turns the flags into the measurement's.
func (f *perfFlags) options() (o perf.RecordOptions, err error) {
	o = perf.RecordOptions{Storages: f.storages, Duration: time.Duration(f.duration), Repeat: f.repeat, Preset: f.preset, Cache: int64(f.cache),
		Depth: f.depth, Seed: f.seed, Dir: f.output, Keep: f.output != "", Domain: f.domain}
	var errs []error
	for _, s := range f.instances {
		n, err := strconv.Atoi(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("--instances %q: not a number", s))
		}
		o.Instances = append(o.Instances, n)
	}
	for _, s := range f.frequencies {
		hz, err := strconv.ParseFloat(s, 64)
		if err != nil {
			errs = append(errs, fmt.Errorf("--frequency %q: not a number", s))
		}
		o.Frequencies = append(o.Frequencies, hz)
	}
	if o.Sizes, err = parseSizes(f.sizes); err != nil {
		errs = append(errs, err)
	}
	if o.Reliability, err = ros.ParseReliability(f.reliability); err != nil {
		errs = append(errs, fmt.Errorf("--reliability: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return o, usageError("perf record: %w", err)
	}
	return o, nil
}

func runPerfRecord(a *app, f *perfFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	if o.Command, err = ownCommand(); err != nil {
		return fmt.Errorf("perf record: %w", err)
	}
	if o.Domain < 0 {
		if o.Domain, err = freeDomain(); err != nil {
			return err
		}
	}
	if err := o.Validate(); err != nil {
		return usageError("perf record: %w", err)
	}
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	began := time.Now()
	o.OnProgress = func(cell, cells int, what string) {
		if a.con.Terminal() {
			a.con.SetStatus(fmt.Sprintf("cell %d of %d: %s | %s", cell, cells, what, clock(time.Since(began))))
		} else {
			fmt.Fprintf(a.con, "cell %d of %d: %s\n", cell, cells, what)
		}
	}
	o.OnCell = func(c perf.Cell) {
		line := fmt.Sprintf("%s: %.2f %% of %d", c.Name(), c.Percent(), c.Publisher.Sent)
		if why := c.Failed(); why != "" {
			line = c.Name() + ": " + why
		}
		fmt.Fprintln(a.con, line)
	}
	rep, err := perf.RunRecord(stop.ctx, o)
	a.con.SetStatus("")
	if len(rep.Cells) == 0 {
		return err
	}
	fmt.Fprintln(a.out)
	if werr := rep.WriteTable(a.out); werr != nil {
		return errors.Join(err, werr)
	}
	if werr := toFile(f.jsonFile, rep.WriteJSON); werr != nil {
		return errors.Join(err, werr)
	}
	if err != nil {
		return err
	}
	failed := 0
	for _, c := range rep.Cells {
		if c.Failed() != "" {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("perf record: %d of %d cells failed", failed, len(rep.Cells))
	}
	return nil
}

// newPerfPublish is the publishers' process of `perf record`: it prints one perf.LoadResult as JSON.
func newPerfPublish(a *app) *cobra.Command {
	var l perf.Load
	var node nodeFlags
	var duration secondsValue
	var reliability string
	var untilStdinCloses bool
	cmd := &cobra.Command{
		Use:    "publish",
		Short:  "Publish a load (what perf record starts)",
		Hidden: true,
		Args:   args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error {
			l.Duration = time.Duration(duration)
			var err error
			if l.QoS, err = loadQoS(reliability, l.QoS.Depth); err != nil {
				return usageError("perf publish: %w", err)
			}
			stop := newStopper(a.ctx, nil)
			defer stop.Close()
			if untilStdinCloses {
				go func() {
					_, _ = io.Copy(io.Discard, a.in) // an error ends it as well
					stop.stop()
				}()
			}
			return publishLoad(a, stop.ctx, l, &node)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&l.Instances, "instances", 1, "")
	fs.Float64Var(&l.Frequency, "frequency", 100, "")
	fs.IntVar(&l.Size, "size", 1000, "")
	fs.Var(&duration, "duration", "")
	fs.StringVar(&reliability, "reliability", "reliable", "")
	fs.IntVar(&l.QoS.Depth, "depth", 0, "")
	fs.Uint64Var(&l.Seed, "seed", 1, "")
	switchFlag(fs, &untilStdinCloses, "until-stdin-closes", "", "")
	node.define(fs, "gobag_load")
	return cmd
}

// loadQoS is the publishers' profile; depth 0 keeps all.
func loadQoS(reliability string, depth int) (q ros.QoS, err error) {
	q = ros.DefaultQoS()
	if q.Depth = depth; depth == 0 {
		q.History = ros.KeepAll
	}
	q.Reliability, err = ros.ParseReliability(reliability)
	return q, err
}

// matchLimit is how long the publishers wait for the recorder to subscribe to everything.
const matchLimit = 30 * time.Second

func publishLoad(a *app, ctx context.Context, l perf.Load, nf *nodeFlags) error {
	o, err := nf.options(a)
	if err != nil {
		return err
	}
	node, err := ros2.New(o)
	if err != nil {
		return err
	}
	defer node.Close()
	limited, cancel := context.WithTimeout(ctx, matchLimit+3*l.Duration)
	defer cancel()
	res, err := perf.Publish(limited, node, l)
	if err != nil {
		return err
	}
	return json.NewEncoder(a.out).Encode(res)
}
