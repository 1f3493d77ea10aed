//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/perf"
	"github.com/gobag/gobag/plugin"
)

// columnarSuite are the checks of `make accept-columnar`.
var columnarSuite = suite{lab.Cyclone, []check{
	{"conformance", "every case of the suite, crashes and damage, with the race detector", checkColumnarConformance},
	{"odd", "flipped bytes, torn logs, odd payloads, 1,000 small topics, fuzz seeds", checkColumnarOdd},
	{"sigkill", "recordings killed at random moments", checkColumnarKill},
	{"powercut", "the power of recordings cut at random moments", checkColumnarPowerCut},
	{"fixtures", "every real bag to columns and back", checkColumnarFixtures},
	{"engines", "Arrow, DuckDB and Polars read every file with equal values; the recipes of docs/fleet.md", checkColumnarEngines},
	{"ingest", "CPU time and size beside C SQLite and MCAP; TSBS; playback", checkColumnarIngest},
}}

// passes runs tests and makes a figure of them; skipped ones count as failed.
func passes(b *bench, name, pkg, run string, args ...string) {
	r, err := goTest(b, pkg, run, args...)
	if err != nil {
		b.figure(false, name, "tests are there and pass", "%s", firstLine(err.Error()))
		return
	}
	tests, failed, skipped := r.count(1)
	cases, below, _ := r.count(2)
	b.figure(tests > 0 && failed+below+skipped == 0, name, "none fails, none is skipped", "%d tests with %d cases pass, %d fail, %d skipped", tests, cases, failed+below, skipped)
}

func checkColumnarConformance(b *bench) error {
	passes(b, "conformance", "./plugins/columnar", "^(TestConformance|TestCrash)", "-race")
	return nil
}

func checkColumnarOdd(b *bench) error {
	passes(b, "odd inputs", "./plugins/columnar", "Flip|Torn|Log|Odd|Many|Definition|Overlapping|Blob|Images|Fuzz")
	passes(b, "Parquet", "./plugins/columnar/parquet", ".")
	return nil
}

// columnarRecording is a recording in columns.
var columnarRecording = recordingOf{"columnar", []string{"-s", "columnar"}}

func checkColumnarKill(b *bench) error { return killRecordings(b, pick(b, 100, 4), columnarRecording) }

func checkColumnarPowerCut(b *bench) error {
	return cutRecordings(b, pick(b, 15, 2), columnarRecording)
}

func checkColumnarFixtures(b *bench) error {
	passes(b, "real bags there and back", "./convert", "^TestRealBagsThroughColumns$")
	passes(b, "all pairs of formats", "./convert", "^TestThereAndBack$")
	return nil
}

func checkColumnarEngines(b *bench) error {
	passes(b, "files read by engines", "./interop", "^TestColumnar")
	passes(b, "recipes", "./interop", "^TestFleet")
	return nil
}

// Targets of checkColumnarIngest.
var (
	inColumns      = perf.StorageTarget{Name: "columnar", Preset: plugin.PresetNone}
	inColumnsSmall = perf.StorageTarget{Name: "columnar", Preset: plugin.PresetSmall}
	inMCAP         = perf.StorageTarget{Name: "mcap", Preset: "zstd_fast"}
)

// checkColumnarIngest compares with the base: C SQLite with rosbag2's schema, its journal in memory, synchronous off, 1,000
// messages a transaction. The base syncs nothing, and neither do the others before closing.
func checkColumnarIngest(b *bench) error {
	cells, err := perf.Columnar(b.ctx, perf.ColumnarOptions{Scale: pick(b, 1.0, 0.05), Repeat: pick(b, 5, 1), Seed: 1, Dir: b.scratch, Peers: peerPrograms})
	if err != nil {
		return err
	}
	report := perf.ColumnarReport{Machine: perf.ThisMachine(b.scratch), Scale: pick(b, 1.0, 0.05), Seed: 1, Cells: cells}
	if err := report.WriteText(os.Stdout); err != nil {
		return err
	}
	rows := report.Rows()
	row := func(sample string, t perf.StorageTarget) perf.ColumnarRow {
		for _, r := range rows {
			if r.Sample == sample && r.Target == t {
				if r.Error != "" {
					b.figure(false, sample+" in "+t.Name, "runs", "%s", firstLine(r.Error))
				}
				return r
			}
		}
		return perf.ColumnarRow{}
	}
	mean, least := perf.ColumnarGain(rows, inColumns)
	b.figure(mean >= 2, "ingest CPU, structured types, geometric mean", "≥ 2 × less than C SQLite", "%.2f ×", mean)
	b.figure(least >= 1, "ingest CPU, the worst of them", "≥ 1 ×", "%.2f ×", least)
	tsbs := row("TSBS", inColumns)
	b.figure(tsbs.CPURatio >= 3, "ingest CPU, TSBS", "≥ 3 ×", "%.2f ×", tsbs.CPURatio)
	b.figure(tsbs.WriteNs > 0 && 1e9/tsbs.WriteNs >= 500_000, "TSBS rows/s on one core", "≥ 500,000", "%.0f", 1e9/max(tsbs.WriteNs, 1))
	b.figure(tsbs.BytesEach > 0 && tsbs.BytesEach <= 9, "bytes of a TSBS row", "≤ 9", "%.2f", tsbs.BytesEach)
	imu := row("Imu", inColumns)
	b.figure(imu.SizeRatio >= 7, "size of Imu", "≥ 7 × smaller than C SQLite", "%.2f ×", imu.SizeRatio)
	for _, s := range perf.ColumnarSamples {
		c, small, m := row(s.Name, inColumns), row(s.Name, inColumnsSmall), row(s.Name, inMCAP)
		if !s.Blob {
			b.figure(c.BytesEach > 0 && c.BytesEach <= m.BytesEach, "size of "+s.Name, "not above MCAP's with zstd", "%.1f bytes, MCAP %.1f", c.BytesEach, m.BytesEach)
			continue
		}
		b.figure(c.CPURatio >= 0.8, "ingest CPU, "+s.Name+", store", "≥ 0.8 ×", "%.2f ×", c.CPURatio)
		b.figure(c.SizeRatio >= 1/1.02, "size of "+s.Name+", store", "≤ 1.02 × C SQLite's", "%.3f ×", 1/max(c.SizeRatio, 1e-9))
		if s.Name == "PointCloud2" {
			b.figure(small.SizeRatio >= 1.9, "size of point clouds, small", "≥ 1.9 × smaller", "%.2f ×", small.SizeRatio)
			b.figure(small.WriteNs > 0 && small.WriteNs <= m.WriteNs, "CPU of point clouds, small", "not above MCAP's with zstd", "%.0f µs, MCAP %.0f µs", small.WriteNs/1e3, m.WriteNs/1e3)
		}
	}
	var rates []string
	slowest := 0.0
	for _, s := range []string{"TransformStamped", "TSBS", "Imu"} {
		r := row(s, inColumns)
		slowest = max(slowest, r.ReadNs)
		rates = append(rates, fmt.Sprintf("%s %.2f M/s", s, 1e3/max(r.ReadNs, 1)))
	}
	b.figure(slowest > 0 && slowest <= 1000, "small messages read back, every byte compared", "≥ 1 M/s of one core", "%s", strings.Join(rates, ", "))
	return nil
}
