//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/perf"
)

// perfSuite is what gobag perf measures, beside its bars.
var perfSuite = suite{lab.Cyclone, []check{
	{"cells", "the three cells and small messages on every format, on this machine's own disk", checkPerfCells},
	{"peers", "the three cells from Cyclone DDS and from Fast DDS", checkPerfPeers},
	{"card", "100 MB/s for 60 s on an emulated SD card of 20 MB/s, every format beside the ceiling", checkPerfCard},
	{"compressed", "half-compressible data on the emulated card, compressed, beside the ceiling of uncompressed data", checkPerfCompressed},
	{"overload", "transforms, an IMU and a camera beyond the emulated card", checkPerfOverload},
	{"steady", "0.9 × the emulated card's speed for 10 minutes, with stalls", checkPerfSteady},
	{"page", "the report's page in headless Chromium", checkPerfPage},
	{"metrics", "a real Prometheus reads a recorder, a player and a measurement; every query of the dashboard", checkPerfMetrics},
	{"arm64", "perf record --quick of an arm64 binary under emulation", checkPerfARM64},
}}

// perfFormats are the formats that a recorder is measured with.
var perfFormats = []string{"mcap", "sqlite3", "leveldb", "columnar"}

// judgedPerf are those of them that -format leaves.
func judgedPerf(b *bench) []string {
	return slices.DeleteFunc(slices.Clone(perfFormats), func(name string) bool { return name != "columnar" && !b.judges(name) })
}

// perfRecord runs gobag perf record and reads its results; that cells fail is in them.
func perfRecord(b *bench, name string, args ...string) (perf.Report, error) {
	return perfRecordBy(b, name, []string{b.gobag.Path}, args...)
}

// perfRecordBy runs it by a command line of its own.
func perfRecordBy(b *bench, name string, program []string, args ...string) (perf.Report, error) {
	dir, err := b.dir(name)
	if err != nil {
		return perf.Report{}, err
	}
	words := slices.Concat(program[1:], []string{"perf", "record", "--report", dir}, args)
	cmd := exec.CommandContext(b.ctx, program[0], words...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it puts away an emulated disk
	cmd.WaitDelay = time.Minute
	out, runErr := cmd.CombinedOutput()
	r, err := perf.ReadReport(filepath.Join(dir, "results.json"))
	if err != nil {
		return r, fmt.Errorf("%s: %w", strings.TrimSpace(string(out)), errors.Join(runErr, err))
	}
	keepPerf(b, name, dir)
	return r, nil
}

// keepPerf leaves the results where a person can look at them.
func keepPerf(b *bench, name, dir string) {
	to := filepath.Join("interop", "build", "perf", name)
	if err := errors.Join(os.RemoveAll(to), os.MkdirAll(filepath.Dir(to), 0o777), os.CopyFS(to, os.DirFS(dir))); err != nil {
		b.note("the results are not kept: %v", err)
		return
	}
	b.note("results: %s/report.html", to)
}

// books is a figure for each cell whose books do not balance, and one for all together.
func books(b *bench, name string, r perf.Report, want int) {
	bad := 0
	for i := range r.Cells {
		if why := r.Cells[i].Failed(); why != "" {
			bad++
			b.note("%s, run %d: %s", r.Cells[i].Name(), r.Cells[i].Repeat, why)
		}
	}
	b.figure(bad == 0 && len(r.Cells) == want, name+": books", "recorded + lost by reason = sent in every cell", "%d of %d cells", len(r.Cells)-bad, want)
}

// whole is a figure for each row: 100 % recorded, and all that was to be published was.
func whole(b *bench, r perf.Report) {
	for _, row := range r.Rows() {
		recorded, sent, expected := uint64(0), uint64(0), uint64(0)
		for _, c := range row.Cells {
			recorded, sent, expected = recorded+c.Recorded, sent+c.Publisher.Sent, expected+c.Publisher.Expected
		}
		cpu, rss := row.SpreadOf(func(c *perf.Cell) float64 { return c.Recorder.CPUSeconds }), row.SpreadOf(func(c *perf.Cell) float64 { return float64(c.Recorder.PeakRSS) / (1 << 20) })
		b.figure(len(row.Cells) == row.All && recorded == sent && sent > 0, strings.ReplaceAll(row.Key, " | ", ", "), "100 % recorded",
			"%d of %d, %d runs (%d were due); recorder %s CPU s, %s MiB", recorded, sent, len(row.Cells), expected, cpu.Text(2), rss.Text(1))
	}
}

func checkPerfCells(b *bench) error {
	formats := judgedPerf(b)
	repeat := pick(b, 3, 1)
	r, err := perfRecord(b, "cells", "--scenario", "proposal,small", "--storage", strings.Join(formats, ","), "--repeat", strconv.Itoa(repeat), "--duration", pick(b, "10", "3"))
	if err != nil {
		return err
	}
	books(b, "own disk", r, 6*len(formats)*repeat)
	whole(b, r)
	return nil
}

func checkPerfPeers(b *bench) error {
	for _, p := range []string{"cyclone", "fast"} {
		r, err := perfRecord(b, "peer-"+p, "--scenario", "proposal", "--publisher", p, "--storage", "mcap", "--duration", pick(b, "10", "3"))
		if err != nil {
			return err
		}
		books(b, p, r, 3)
		whole(b, r)
	}
	return nil
}

// onCard are the flags of the emulated board.
func onCard(args ...string) []string { return append([]string{"--device", "rpi4-sd"}, args...) }

// tellDevice notes what is emulated.
func tellDevice(b *bench, r perf.Report) {
	b.note("%s", r.Device)
	b.note("%s", r.Device.Limits)
}

// besideCeiling is a figure for each row: what was recorded of the data, at least factor times the ceiling; and runs that
// lie close together.
func besideCeiling(b *bench, r perf.Report, factor float64) {
	for _, row := range r.Rows() {
		name := strings.ReplaceAll(row.Key, " | ", ", ")
		if len(row.Cells) == 0 {
			b.figure(false, name, "runs", "failed")
			continue
		}
		got, ceiling := row.SpreadOf((*perf.Cell).BytePercent), row.SpreadOf(func(c *perf.Cell) float64 { return c.Ceiling.Percent })
		cpu, stop := row.SpreadOf(func(c *perf.Cell) float64 { return c.Recorder.CPUSeconds }), row.SpreadOf(func(c *perf.Cell) float64 { return c.StopSeconds })
		bar := min(factor*ceiling.Median, 100)
		b.figure(got.Min >= bar, name, fmt.Sprintf("≥ %g × the ceiling of %.2f %% = %.2f %%", factor, ceiling.Median, bar),
			"EMULATED: %s %% of the data, %.3f of the ceiling, %.3f of it with the dirty pages that a bare write loop got; recorder %s CPU s, %s s to the end",
			got.Text(2), got.Min/ceiling.Median, got.Min/row.Cells[0].Ceiling.Bare, cpu.Text(1), stop.Text(1))
		if len(row.Cells) > 1 {
			b.figure(got.Max-got.Min <= 6, name+", repeated", "within ± 3 points", "%.2f to %.2f %%", got.Min, got.Max)
		}
		b.note("%s", row.Cells[0].Ceiling)
	}
}

func checkPerfCard(b *bench) error {
	formats := judgedPerf(b)
	repeat := pick(b, 2, 1)
	r, err := perfRecord(b, "card", onCard("--scenario", "proposal", "--storage", strings.Join(formats, ","), "--repeat", strconv.Itoa(repeat), "--duration", pick(b, "60", "15"))...)
	if err != nil {
		return err
	}
	tellDevice(b, r)
	books(b, "card", r, 3*len(formats)*repeat)
	besideCeiling(b, r, 0.95)
	return nil
}

func checkPerfCompressed(b *bench) error {
	for _, c := range [][2]string{{"mcap", "zstd_fast"}, {"leveldb", "small"}} {
		if !b.judges(c[0]) {
			continue
		}
		repeat := pick(b, 2, 1)
		r, err := perfRecord(b, "compressed-"+c[0], onCard("--instances", "10", "--size", "100kB", "--compressible", "0.5", "--storage", c[0], "--preset", c[1],
			"--repeat", strconv.Itoa(repeat), "--duration", pick(b, "60", "15"))...)
		if err != nil {
			return err
		}
		tellDevice(b, r)
		books(b, c[0]+" "+c[1], r, repeat)
		besideCeiling(b, r, 1.3)
	}
	return nil
}

func checkPerfOverload(b *bench) error {
	formats := judgedPerf(b)
	r, err := perfRecord(b, "overload", onCard("--scenario", "overload", "--storage", strings.Join(formats, ","), "--duration", pick(b, "60", "15"))...)
	if err != nil {
		return err
	}
	tellDevice(b, r)
	books(b, "overload", r, len(formats))
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Failed() != "" {
			continue
		}
		for _, g := range c.Groups {
			text := fmt.Sprintf("EMULATED: %d of %d, lost wire %d, queue %d, storage %d", g.Recorded, g.Sent, g.Lost.Wire, g.Lost.Queue, g.Lost.Storage)
			if g.Name == "camera" {
				b.note("%s, %s: %s", c.Storage, g.Name, text)
				continue
			}
			b.figure(g.Recorded == g.Sent && g.Sent > 0, c.Storage+", "+g.Name, "100 % recorded", "%s", text)
		}
	}
	return nil
}

// steadyShare is the load of check steady: 10 topics at this share of the card's speed.
const steadyShare = 0.9

func checkPerfSteady(b *bench) error {
	const cardRate, size, topics = 20e6, 100_000, 10
	formats := judgedPerf(b)
	if b.quick {
		formats = formats[:1]
	}
	r, err := perfRecord(b, "steady", onCard("--instances", strconv.Itoa(topics), "--size", strconv.Itoa(size), "--frequency", fmt.Sprint(steadyShare*cardRate/size/topics),
		"--storage", strings.Join(formats, ","), "--stalls", "4", "--duration", pick(b, "600", "30"))...)
	if err != nil {
		return err
	}
	tellDevice(b, r)
	books(b, "steady", r, len(formats))
	for i := range r.Cells {
		c := &r.Cells[i]
		b.note("%s: %d stalls of the disk", c.Storage, len(c.Disk))
	}
	whole(b, r)
	return nil
}

func checkPerfPage(b *bench) error {
	passes(b, "the report's page in light, dark and on a phone (screenshots in interop/build/pages)", "./interop", "TestReportPage|TestConsoleIsHeard")
	return nil
}

func checkPerfMetrics(b *bench) error {
	passes(b, "every query of the dashboard is answered", "./interop", "TestPrometheus")
	return nil
}

func checkPerfARM64(b *bench) error {
	binary := filepath.Join(b.scratch, "gobag-arm64-perf")
	if err := lab.Build("./cmd/gobag", binary, "GOARCH=arm64"); err != nil {
		return err
	}
	qemu, err := lab.Tool("qemu-aarch64-static")
	if err != nil {
		return err
	}
	r, err := perfRecordBy(b, "arm64", []string{qemu, binary}, "--quick", "--wrapper", qemu)
	if err != nil {
		return err
	}
	books(b, "arm64", r, 1)
	b.figure(r.Machine.Arch == "arm64", "architecture", "arm64", "%s", r.Machine.Arch)
	whole(b, r)
	return nil
}
