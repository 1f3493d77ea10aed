package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gobag/gobag/perf"
	"github.com/spf13/cobra"
)

// perfFlags are the flags of `perf record`, as typed.
type perfFlags struct {
	instances, frequencies, sizes, storages, presets, caches []string
	scenarios, configFiles, bagSizes, compressions           []string
	duration                                                 secondsValue
	repeat, depth                                            int
	reliability, publisher, peers, device                    string
	compressible, deviceCPU                                  float64
	deviceRate                                               bytesValue
	stalls                                                   int
	jsonFile, output, report                                 string
	seed                                                     uint64
	domain                                                   int
	quick, noTransport                                       bool
	wrapper                                                  string
	metrics                                                  metricsFlag
	given                                                    func(flag string) bool
}

func newPerfRecord(a *app) *cobra.Command {
	var f perfFlags
	var names []string
	for _, s := range perf.Scenarios() {
		names = append(names, fmt.Sprintf("  %-20s %s", s.Name, s.About))
	}
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Record loads of instances × frequency × size and say what share was kept",
		Long: `Every combination of the lists is a cell: publishers in one process, this recorder in another, on this machine over
loopback in a ROS domain that nobody uses. Every message is read back from the bag and compared with what was sent. A cell
says what share was recorded, what the rest was lost to (recorded + lost must be what was sent), how long messages took
from when they were due, and the CPU and memory of publishers and recorder over time.

What is published comes from --instances, --frequency and --size, from a built-in --scenario, or from a YAML file: our own
form, or the producers and the benchmark of rosbag2_performance_benchmarking (both files can be given).

` + strings.Join(names, "\n") + `

--device runs a cell as on a small computer: rpi4-sd (SD card of 20 MB/s), rpi4-usb (USB SSD). It needs Linux, root, control
groups for CPU and memory, /dev/fuse, loop devices, and the programs nbdkit, nbdfuse, fusermount3, mkfs.ext4 and, to compare
the CPUs, 7z or sysbench (Debian: nbdkit libnbd-bin fuse3 e2fsprogs p7zip-full). While it runs it lowers vm.dirty_bytes of
the whole machine. Every figure says "emulated"; what counts is what is on the disk after its power is cut.

Ctrl-C ends the run and keeps the finished cells. Exit code 1 when a cell failed or its books do not balance.`,
		Example: `  gobag perf record --scenario proposal --storage mcap,sqlite3,leveldb,columnar --repeat 3 --report results
  gobag perf record --instances 1,10,100 --frequency 100 --size 10KB --duration 10
  gobag perf record --scenario producers.yaml,benchmark.yaml --report results
  sudo gobag perf record --device rpi4-sd --scenario overload --duration 60 --report results`,
		Args: args(cobra.NoArgs, "takes no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.given = cmd.Flags().Changed
			return runPerfRecord(a, &f)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	listFlag(fs, &f.instances, "instances", "", "numbers `N...` of publishers (default 1)", true)
	listFlag(fs, &f.frequencies, "frequency", "", "messages per second, `HZ...`, of each publisher (default 100)", true)
	listFlag(fs, &f.sizes, "size", "", "`BYTES...` of data in a message (default 1000)", true)
	listFlag(fs, &f.scenarios, "scenario", "", "built-in scenarios or YAML files, `NAME...`, instead of these three", true)
	fs.StringVar(&f.reliability, "reliability", "reliable", "`POLICY` of the publishers of these three: reliable or best_effort")
	fs.IntVar(&f.depth, "depth", 0, "their history, `N` messages, 0 = keep all")
	fs.Float64Var(&f.compressible, "compressible", 0, "`SHARE` of the data that compresses, 0 to 1, in every load")
	listFlag(fs, &f.storages, "storage", "", "storage formats `ID...` (default "+defaultStorage+")", true)
	listFlag(fs, &f.presets, "preset", "", "storage presets `NAME...` of the recorder", true)
	listFlag(fs, &f.caches, "cache", "", "--max-cache-size of the recorder, `BYTES...`", true)
	listFlag(fs, &f.bagSizes, "max-bag-size", "", "--max-bag-size of the recorder, `BYTES...`", true)
	listFlag(fs, &f.compressions, "compression", "", "compression of whole files, `FORMAT...`: none, zstd", true)
	listFlag(fs, &f.configFiles, "storage-config-file", "", "settings of the storage, YAML `FILE...`", true)
	f.duration = secondsValue(10 * time.Second)
	fs.Var(&f.duration, "duration", "how long each cell publishes")
	fs.IntVar(&f.repeat, "repeat", 1, "`N` runs of every cell")
	switchFlag(fs, &f.quick, "quick", "", "two seconds, one run: to see that everything works")
	switchFlag(fs, &f.noTransport, "no-transport", "", "publish inside the recorder's process, without DDS")
	fs.StringVar(&f.publisher, "publisher", "gobag", "`WHOSE` publishers: gobag, cyclone, fast, fast-shm, or the path of a program with the command line of\ninterop/peers/cy_pub")
	fs.StringVar(&f.peers, "peer", defaultPeers, "where cyclone's and fast's programs are, `DIR`")
	fs.StringVar(&f.device, "device", "none", "emulate a small computer, `NAME`: rpi4-sd, rpi4-usb or none; needs root")
	fs.Float64Var(&f.deviceCPU, "device-cpu", 0, "`CORES` of this machine that stand for the device's (default by 7-zip or sysbench)")
	fs.Var(&f.deviceRate, "device-rate", "bytes per second of its disk (default the device's)")
	fs.IntVar(&f.stalls, "stalls", 0, "let its disk stand still `N` times a minute, on rpi4-sd for 150 to 500 ms")
	fs.StringVar(&f.report, "report", "", "write results.json, results.csv, report.md and report.html into `DIR`")
	fs.StringVar(&f.jsonFile, "json", "", "also write the result to `FILE` as JSON")
	fs.StringVarP(&f.output, "output", "o", "", "directory `DIR` for the bags, which are kept (default: a temporary one)")
	fs.Uint64Var(&f.seed, "seed", 1, "`N`, of the payloads' noise")
	fs.IntVar(&f.domain, "domain-id", -1, "ROS domain `N` (default: a free one)")
	fs.Lookup("domain-id").DefValue = "0"
	fs.StringVar(&f.wrapper, "wrapper", "", "start the processes through this `COMMAND`, as in \"qemu-aarch64-static\" or \"taskset -c 0\"")
	f.metrics.define(fs)
	completeFlag(cmd, "storage", completeStorage)
	completeFlag(cmd, "device", cobra.FixedCompletions([]cobra.Completion{"none", "rpi4-sd", "rpi4-usb"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runPerfRecord(a *app, f *perfFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	if o.Command, err = wrappedCommand(f.wrapper); err != nil {
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
	for _, n := range o.Notes {
		a.logger.Warn(n)
	}
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	server, err := f.metrics.servePerf(a, &o)
	if err != nil {
		return err
	}
	defer server.Close()
	f.watch(a, &o)
	rep, err := perf.RunRecord(stop.ctx, o)
	a.con.SetStatus("")
	if len(rep.Cells) == 0 {
		return err
	}
	fmt.Fprintln(a.out)
	if err := errors.Join(rep.WriteTable(a.out), toFile(f.jsonFile, rep.WriteJSON)); err != nil {
		return err
	}
	if f.report != "" {
		if err := rep.WriteDir(f.report); err != nil {
			return fmt.Errorf("perf record: --report: %w", err)
		}
	}
	if err != nil {
		return err
	}
	failed := 0
	for i := range rep.Cells {
		if rep.Cells[i].Failed() != "" {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("perf record: %d of %d cells failed", failed, len(rep.Cells))
	}
	return nil
}

// watch shows the progress: a bar on a terminal, else a line for each cell.
func (f *perfFlags) watch(a *app, o *perf.RecordOptions) {
	began := time.Now()
	last := 0
	onCell, onProgress := o.OnCell, o.OnProgress // of the metrics
	o.OnProgress = func(cell, cells int, done float64, what string) {
		if onProgress != nil {
			onProgress(cell, cells, done, what)
		}
		switch {
		case a.con.Terminal():
			a.con.SetStatus(fmt.Sprintf("%s %3.0f %% | cell %d of %d | %s | %s", bar(done, 20), 100*done, cell, cells, clock(time.Since(began)), what))
		case cell != last:
			last = cell
			fmt.Fprintf(a.con, "cell %d of %d: %s\n", cell, cells, what)
		}
	}
	o.OnCell = func(c perf.Cell) {
		if onCell != nil {
			onCell(c)
		}
		line := fmt.Sprintf("%s: %.2f %% of %d", c.Name(), c.Percent(), c.Publisher.Sent)
		if why := c.Failed(); why != "" {
			line = c.Name() + ": " + why
		}
		fmt.Fprintln(a.con, line)
	}
}

// bar is a progress bar of some width.
func bar(done float64, width int) string {
	full := int(min(max(done, 0), 1)*float64(width) + 0.5)
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}
