package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gobag/gobag/perf"
	"github.com/spf13/cobra"
)

// wrappedCommand makes processes of this program through another: a wrapper of words, "" none.
func wrappedCommand(wrapper string) (func(ctx context.Context, words ...string) *exec.Cmd, error) {
	before := strings.Fields(wrapper)
	if len(before) == 0 {
		return ownCommand()
	}
	path, err := exec.LookPath(before[0])
	if err != nil {
		return nil, usageError("--wrapper: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("own program: %w", err)
	}
	before = append(before[1:], self)
	return func(ctx context.Context, words ...string) *exec.Cmd {
		return exec.CommandContext(ctx, path, append(append([]string{}, before...), words...)...)
	}, nil
}

func newPerfCompare(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "compare A.json B.json",
		Short: "Compare two results of perf record: ratios with their spread",
		Long: `For every cell that both results have, the medians of recorded share, CPU, memory, latency and size, and the ratio B / A with
its range over all pairs of runs. Emulated results are not compared with measured ones.`,
		Example: `  gobag perf compare before/results.json after/results.json`,
		Args:    args(cobra.ExactArgs(2), "takes two files of results (--report DIR writes DIR/results.json)"),
		RunE: func(_ *cobra.Command, files []string) error {
			var reports [2]perf.Report
			for i, name := range files {
				if fi, err := os.Stat(name); err == nil && fi.IsDir() {
					name = filepath.Join(name, "results.json")
				}
				var err error
				if reports[i], err = perf.ReadReport(name); err != nil {
					return fmt.Errorf("perf compare: %w", err)
				}
			}
			if err := perf.Compare(a.out, reports[0], reports[1], files[0], files[1]); err != nil {
				return fmt.Errorf("perf %w", err)
			}
			return nil
		},
	}
}

func newPerfBoard(a *app) *cobra.Command {
	var o perf.BoardOptions
	var limit secondsValue
	var config, jsonFile string
	cmd := &cobra.Command{
		Use:   "board [DIR]",
		Short: "Measure this computer and its disk, and write a recorder's settings for it",
		Long: `Measures the disk under DIR (default: the working directory): how fast it takes sequential writes, and the longest that a
write and its sync take at half that rate; how fast one core compresses; and how large a socket buffer the kernel grants. It
writes at most 2 GB there and removes it again.

--config FILE gets settings for "gobag record --config FILE": a cache that outlasts the worst stall, a preset that compresses
where that gains something, and a comment for each that says why.`,
		Example: `  gobag perf board /media/card --config board.yaml
  gobag record --config board.yaml -a`,
		Args: args(cobra.MaximumNArgs(1), "takes one directory"),
		RunE: func(_ *cobra.Command, dirs []string) error {
			o.Dir = "."
			if len(dirs) > 0 {
				o.Dir = dirs[0]
			}
			o.Time = time.Duration(limit)
			if o.Time < 100*time.Millisecond || o.Time > 10*time.Minute {
				return usageError("perf board: --time: not in 0.1 to 600 seconds")
			}
			stop := newStopper(a.ctx, nil)
			defer stop.Close()
			o.OnProgress = func(done float64, what string) {
				if a.con.Terminal() {
					a.con.SetStatus(fmt.Sprintf("%s %s", bar(done, 20), what))
				}
			}
			b, err := perf.MeasureBoard(stop.ctx, o)
			a.con.SetStatus("")
			if err != nil {
				return err
			}
			if err := errors.Join(b.WriteTable(a.out), toFile(config, b.WriteConfig), toFile(jsonFile, b.WriteJSON)); err != nil {
				return fmt.Errorf("perf board: %w", err)
			}
			if config != "" {
				fmt.Fprintf(a.out, "\nsettings written to %s: gobag record --config %s -a\n", config, config)
			}
			return nil
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	limit = secondsValue(10 * time.Second)
	fs.Var(&limit, "time", "of each of the two disk tests")
	fs.StringVar(&config, "config", "", "write settings for record to `FILE`")
	fs.StringVar(&jsonFile, "json", "", "write what was measured to `FILE` as JSON")
	return cmd
}

// newPerfDocs writes docs/benchmarks.md.
func newPerfDocs(a *app) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "docs DIR",
		Short:   "Make one Markdown page of all results below a directory",
		Long:    `Reads every results.json below DIR, one directory a run, and writes a page with their machines and tables.`,
		Example: `  gobag perf docs docs/results -o docs/benchmarks.md`,
		Args:    args(cobra.ExactArgs(1), "takes the directory of the results"),
		RunE: func(_ *cobra.Command, dirs []string) error {
			write, err := perf.BenchmarksPage(dirs[0])
			if err != nil {
				return fmt.Errorf("perf docs: %w", err)
			}
			if output == "" {
				return write(a.out)
			}
			return toFile(output, write)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "`FILE` to write (default: the terminal)")
	return cmd
}
