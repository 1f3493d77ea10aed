package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/perf"
	"github.com/gobag/gobag/ros/ros2"
	"github.com/spf13/cobra"
)

// transportFlags are the flags of `perf transport`, as typed.
type transportFlags struct {
	loads, sides    []string
	direction       string
	duration        secondsValue
	repeat, depth   int
	peers, jsonFile string
	domain          int
	quick           bool
}

func newPerfTransport(a *app) *cobra.Command {
	var f transportFlags
	cmd := &cobra.Command{
		Use:   "transport",
		Short: "Measure receiving and sending beside the subscribers and publishers of Cyclone DDS and Fast DDS",
		Long: `Publishers and subscribers in a process each, over loopback, in turns: gobag's with the C and C++ programs of interop/
("make -C interop peers"), and theirs with one another in the place of gobag's. A line says what share arrived and how
fast, CPU and memory of both processes, the 99 % quantile of the publisher's write calls, and how far it fell behind its
schedule. Nothing is recorded: see perf record.`,
		Example: `  gobag perf transport --quick
  gobag perf transport --load 100x100x10KB --direction receive --repeat 5
  gobag perf transport --load 1x0x1MB --side gobag,cyclone`,
		Args: args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error { return runPerfTransport(a, &f) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	listFlag(fs, &f.loads, "load", "", "loads `NxHZxBYTES...`; 0 Hz is as fast as it goes (default 1x100x1MB,10x100x100KB,100x100x10KB,1x10000x100)", true)
	listFlag(fs, &f.sides, "side", "", "whose publishers and subscribers, `NAME...` of gobag, cyclone, fast (default all)", true)
	fs.StringVar(&f.direction, "direction", "both", "receive (gobag subscribes), send (gobag publishes) or both")
	f.duration = secondsValue(5 * time.Second)
	fs.Var(&f.duration, "duration", "how long each pair publishes")
	fs.IntVar(&f.repeat, "repeat", 1, "`N` runs of everything, in turns")
	fs.IntVar(&f.depth, "depth", 0, "history `N` of the publishers, 0 = keep all")
	switchFlag(fs, &f.quick, "quick", "", "one second each, to see that everything works")
	fs.StringVar(&f.peers, "peer", defaultPeers, "`DIR` with the peers' programs")
	fs.StringVar(&f.jsonFile, "json", "", "also write every run to `FILE` as JSON")
	fs.IntVar(&f.domain, "domain-id", -1, "ROS domain `N` (default: a free one)")
	fs.Lookup("domain-id").DefValue = "0"
	return cmd
}

// parseLoad reads "100x100x10KB": instances, frequency, size.
func parseLoad(text string) (l perf.TransportLoad, err error) {
	f := strings.Split(text, "x")
	if len(f) != 3 {
		return l, fmt.Errorf("--load %q: INSTANCESxHZxBYTES expected, as in 100x100x10KB", text)
	}
	var errs [3]error
	l.Instances, errs[0] = strconv.Atoi(f[0])
	l.Frequency, errs[1] = strconv.ParseFloat(f[1], 64)
	size, err := parseBytes(f[2])
	l.Size, errs[2] = int(min(size, 1<<40)), err
	if err := errors.Join(errs[:]...); err != nil {
		return l, fmt.Errorf("--load %q: %w", text, err)
	}
	return l, nil
}

func (f *transportFlags) options() (o perf.TransportOptions, err error) {
	o = perf.TransportOptions{Sides: f.sides, Duration: time.Duration(f.duration), Repeat: f.repeat, Depth: f.depth, Peers: f.peers, Domain: f.domain}
	switch f.direction {
	case "both":
		o.Receive, o.Send = true, true
	case "receive":
		o.Receive = true
	case "send":
		o.Send = true
	default:
		return o, fmt.Errorf("--direction %q: receive, send or both expected", f.direction)
	}
	var errs []error
	for _, text := range f.loads {
		l, err := parseLoad(text)
		errs = append(errs, err)
		o.Loads = append(o.Loads, l)
	}
	if f.quick {
		o.Duration, o.Repeat = time.Second, 1
	}
	return o, errors.Join(errs...)
}

func runPerfTransport(a *app, f *transportFlags) error {
	o, err := f.options()
	if err != nil {
		return usageError("perf transport: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("perf transport: own program: %w", err)
	}
	o.Command = func(ctx context.Context, words ...string) *exec.Cmd { return exec.CommandContext(ctx, self, words...) }
	if o.Domain < 0 {
		if o.Domain, err = freeDomain(); err != nil {
			return err
		}
	}
	if err := o.Validate(); err != nil {
		return usageError("perf transport: %w", err)
	}
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	o.OnCell = func(c perf.TransportCell) {
		text := fmt.Sprintf("%.3f %%, %.1f MB/s", 100*c.Share(), c.Rate())
		if c.Error != "" {
			text = c.Error
		}
		fmt.Fprintf(a.con, "%v, %s to %s, run %d: %s\n", c.Load, c.Publisher, c.Subscriber, c.Repeat, text)
	}
	rep, err := perf.RunTransport(stop.ctx, o)
	if len(rep.Cells) == 0 {
		return err
	}
	fmt.Fprintln(a.out)
	err = errors.Join(err, rep.Write(a.out))
	if f.jsonFile != "" {
		file, cerr := os.Create(f.jsonFile)
		if cerr != nil {
			return errors.Join(err, cerr)
		}
		err = errors.Join(err, rep.WriteJSON(file), file.Close())
	}
	failed := 0
	for _, c := range rep.Cells {
		if c.Error != "" {
			failed++
		}
	}
	if err == nil && failed > 0 {
		return fmt.Errorf("perf transport: %d of %d pairs failed", failed, len(rep.Cells))
	}
	return err
}

// newPerfTransportTask is gobag's side of `perf transport`, in a process of its own.
func newPerfTransportTask(a *app) *cobra.Command {
	var t perf.TransportTask
	var duration secondsValue
	var role string
	domain := 0
	cmd := &cobra.Command{
		Use:    "transport-task",
		Short:  "Publish or subscribe (what perf transport starts)",
		Hidden: true,
		Args:   args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error {
			t.Duration = time.Duration(duration)
			stop := newStopper(a.ctx, nil)
			defer stop.Close()
			node, err := ros2.New(ros2.Options{Domain: domain, Range: ros2.RangeLocalhost, Logger: a.logger, Window: playWindow, MaxBlocking: 10 * time.Second})
			if err != nil {
				return err
			}
			defer node.Close()
			switch role {
			case "pub":
				return t.Publish(stop.ctx, node, a.out)
			case "sub":
				return t.Subscribe(stop.ctx, node, a.out)
			}
			return usageError("perf transport-task: --role %q: pub or sub expected", role)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&role, "role", "sub", "")
	fs.IntVar(&t.Load.Instances, "instances", 1, "")
	fs.Float64Var(&t.Load.Frequency, "frequency", 100, "")
	fs.IntVar(&t.Load.Size, "size", 1000, "")
	fs.Var(&duration, "duration", "")
	fs.IntVar(&t.Depth, "depth", 0, "")
	fs.IntVar(&domain, "domain-id", 0, "")
	return cmd
}
