package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gobag/gobag/perf"
	"github.com/spf13/cobra"
)

func newPerfColumnar(a *app) *cobra.Command {
	var samples, targets []string
	var repeat int
	var scale float64
	var seed uint64
	var peers, jsonFile, output string
	quick := false
	var names []string
	for _, s := range perf.ColumnarSamples {
		names = append(names, s.Name)
	}
	cmd := &cobra.Command{
		Use:   "columnar",
		Short: "Measure typed messages in columns beside other formats",
		Long: `Writes messages of types that robots send most, images, point clouds and rows of the time series benchmark TSBS into the
columnar format and others, reads them back with a comparison of every byte, and prints CPU time and size of a message.
--peer runs C SQLite on the same messages (a program of interop/, "make -C interop peers"): the base of the ratios.`,
		Example: `  gobag perf columnar --quick
  gobag perf columnar --sample Imu,TSBS --repeat 5 --peer`,
		Args: args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error {
			o := perf.ColumnarOptions{Samples: samples, Scale: scale, Repeat: repeat, Seed: seed, Dir: output, Peers: peers}
			if quick {
				o.Scale, o.Repeat = 0.02, 1
			}
			for _, s := range samples {
				if !slices.Contains(names, s) {
					return usageError("perf columnar: --sample %q: there is no such sample (there is: %s)", s, strings.Join(names, ", "))
				}
			}
			if o.Scale <= 0 || o.Scale > 100 || repeat < 1 {
				return usageError("perf columnar: --scale wants more than 0 and at most 100, --repeat at least 1")
			}
			for _, t := range targets {
				name, preset, _ := strings.Cut(t, ":")
				o.Targets = append(o.Targets, perf.StorageTarget{Name: name, Preset: preset})
			}
			return runPerfColumnar(a, o, jsonFile)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	listFlag(fs, &samples, "sample", "", "what to store, `NAME...` (default "+strings.Join(names, ",")+")", true)
	listFlag(fs, &targets, "target", "", "where, `FORMAT[:PRESET]...` (default columnar, columnar:small, mcap:zstd_fast, sqlite3:none)", true)
	fs.IntVar(&repeat, "repeat", 3, "`N` runs of everything, in turns")
	fs.Float64Var(&scale, "scale", 1, "`FACTOR` of the number of messages, 1,000,000 rows of TSBS at 1")
	switchFlag(fs, &quick, "quick", "", "one run of little data, to see that everything works")
	fs.StringVar(&peers, "peer", "", "also run the peer's program, which is in `DIR`")
	fs.Lookup("peer").NoOptDefVal = defaultPeers
	fs.Uint64Var(&seed, "seed", 1, "`N`, of the values")
	fs.StringVar(&jsonFile, "json", "", "also write every run to `FILE` as JSON")
	fs.StringVarP(&output, "output", "o", "", "directory `DIR` to measure in (default: the system's for temporary files)")
	return cmd
}

func runPerfColumnar(a *app, o perf.ColumnarOptions, jsonFile string) error {
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	began := time.Now()
	failed := 0
	o.Progress = func(c perf.ColumnarCell) {
		if c.Error != "" {
			failed++
		}
		if a.con.Terminal() {
			a.con.SetStatus(fmt.Sprintf("%s in %s:%s, run %d | %s", c.Sample, c.Target, c.Preset, c.Run+1, clock(time.Since(began))))
		}
	}
	dir := o.Dir
	if dir == "" {
		dir = os.TempDir()
	}
	report := perf.ColumnarReport{Machine: perf.ThisMachine(dir), Scale: o.Scale, Seed: o.Seed}
	var err error
	report.Cells, err = perf.Columnar(stop.ctx, o)
	a.con.SetStatus("")
	if len(report.Cells) > 0 {
		err = errors.Join(err, report.WriteText(a.out), toFile(jsonFile, report.WriteJSON))
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d measurements failed", failed, len(report.Cells))
	}
	if err != nil {
		return fmt.Errorf("perf columnar: %w", err)
	}
	return nil
}
