//go:build linux

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/gobag/gobag/perf"
	"github.com/gobag/gobag/plugin"
)

func init() {
	addChecks("perf",
		check{"tsbs-cpu", "TSBS rows of 4,000 hosts, on every format", checkTSBSIngest},
		check{"tsbs-iot", "TSBS rows of 100 and 4,000 trucks in full, 100,000 scaled", checkTSBSTrucks})
	addChecks("columnar",
		check{"queries", "the seven questions about 11 million rows beside indexed SQLite and DuckDB", checkTSBSQueries},
		check{"iot", "the twelve questions about 4,000 trucks beside indexed SQLite", checkTSBSIoT})
}

// pythonPeers is where DuckDB is.
const pythonPeers = "interop/python"

// tsbs runs a use case and prints it. What failed, or was answered otherwise, is a figure.
func tsbs(b *bench, o perf.TSBSOptions) (perf.TSBSReport, error) {
	o.Seed, o.Dir, o.Command = 1, b.scratch, b.command
	o.PaceTime = pick(b, 20*time.Second, time.Second)
	rep, err := perf.RunTSBS(b.ctx, o)
	if err != nil {
		return rep, err
	}
	if err := rep.WriteText(os.Stdout); err != nil {
		return rep, err
	}
	for _, f := range rep.Failures() {
		b.figure(false, "TSBS "+o.Use, "everything runs", "%s", firstLine(f))
	}
	return rep, nil
}

// inColumnsOnly is what questions need.
func inColumnsOnly() []perf.StorageTarget {
	return []perf.StorageTarget{{Name: "columnar", Preset: plugin.PresetNone}}
}

// checkTSBSIngest writes the rows into every format.
func checkTSBSIngest(b *bench) error {
	rep, err := tsbs(b, perf.TSBSOptions{Use: perf.UseCPU, Devices: pick(b, 4000, 40), Peers: peerPrograms, Python: pythonPeers, TablesLimit: 1})
	if err != nil {
		return err
	}
	b.figure(rep.Rows >= pick(b, 10_000_000, 100_000), "rows", "10 million at least, of 4,000 hosts", "%d of %d hosts", rep.Rows, rep.Devices)
	for _, c := range rep.Ingest {
		if x := rep.Find(c.Target, c.Mode); x != nil && c.Mode == perf.ModePaced {
			b.figure(x.Late < 1, "43,000 rows/s, "+c.Target, "kept up with", "%.2f s late at the end, %.1f %% of a core, %.1f MB", x.Late, 100*x.CPUSeconds/x.Seconds, float64(x.PeakRSS)/1e6)
		}
	}
	return tsbsColumnar(b, rep)
}

// tsbsColumnar judges the columnar format's writing and size.
func tsbsColumnar(b *bench, rep perf.TSBSReport) error {
	one, paced := rep.Find("columnar", perf.ModeOneCore), rep.Find("columnar", perf.ModePaced)
	if one == nil || paced == nil {
		return fmt.Errorf("columnar was not measured")
	}
	b.figure(rep.PerCore(one) >= 500_000, "rows/s on one core, columnar", "≥ 500,000", "%.0f", rep.PerCore(one))
	each := float64(one.DiskBytes) / float64(one.Rows)
	b.figure(each <= 9, "bytes a row, columnar", "≤ 9", "%.2f", each)
	b.figure(paced.PeakRSS <= 64e6, "RSS at 43,000 rows/s, columnar", "≤ 64 MB", "%.1f MB", float64(paced.PeakRSS)/1e6)
	return nil
}

// checkTSBSQueries asks the seven questions.
func checkTSBSQueries(b *bench) error {
	rep, err := tsbs(b, perf.TSBSOptions{Use: perf.UseCPU, Devices: pick(b, 4000, 40), Targets: inColumnsOnly(), Repeat: 9, Peers: peerPrograms, Python: pythonPeers})
	if err != nil {
		return err
	}
	b.figure(rep.Rows >= pick(b, 10_000_000, 100_000), "rows", "10 million at least, of 4,000 hosts", "%d of %d hosts", rep.Rows, rep.Devices)
	if err := tsbsColumnar(b, rep); err != nil {
		return err
	}
	for _, q := range rep.Queries {
		name := "question " + q.ID
		b.figure(len(q.Errors) == 0 && q.Rows > 0, name, "equal answers of SQLite, DuckDB and virtual tables", "%d rows, %d complaints", q.Rows, len(q.Errors))
		b.figure(q.Duck > 0 && q.Warm <= q.Duck, name, "≤ 1 × DuckDB", "%.3f × (%.3f ms)", q.Warm/max(q.Duck, 1e-9), q.Warm*1e3)
		b.figure(q.SQLite > 0 && q.Warm <= 1.2*q.SQLite, name, "≤ 1.2 × indexed SQLite", "%.3f × (%.3f ms)", q.Warm/max(q.SQLite, 1e-9), q.Warm*1e3)
		switch q.ID {
		case "1", "3", "5", "7":
			b.figure(q.Cold > 0 && q.Cold <= 0.1, name+", cold", "≤ 100 ms", "%.1f ms", q.Cold*1e3)
		default:
			b.note("question %s, cold: %.1f ms", q.ID, q.Cold*1e3)
		}
		b.note("question %s, virtual tables alone: %.1f ms", q.ID, q.Tables*1e3)
	}
	b.figure(rep.Gain() >= 5, "seven questions, geometric mean", "≥ 5 × faster than indexed SQLite", "%.1f ×", rep.Gain())
	return nil
}

// iotQuestions judges the twelve questions.
func iotQuestions(b *bench, rep perf.TSBSReport) {
	for _, q := range rep.Queries {
		name := fmt.Sprintf("%s, %d trucks", q.About, rep.Devices)
		b.figure(len(q.Errors) == 0, name, "equal answers", "%d rows, %d complaints", q.Rows, len(q.Errors))
		b.figure(q.SQLite > 0 && q.Warm <= q.SQLite, name, "not slower than indexed SQLite", "%.3f × (%.2f ms)", q.Warm/max(q.SQLite, 1e-9), q.Warm*1e3)
	}
}

// checkTSBSIoT asks the twelve questions about 4,000 trucks.
func checkTSBSIoT(b *bench) error {
	rep, err := tsbs(b, perf.TSBSOptions{Use: perf.UseIoT, Devices: pick(b, 4000, 200), Steps: pick(b, 0, 500), Targets: inColumnsOnly(), Pace: -1, Peers: peerPrograms})
	if err != nil {
		return err
	}
	iotQuestions(b, rep)
	return nil
}

// checkTSBSTrucks writes and asks at three scales.
func checkTSBSTrucks(b *bench) error {
	for _, trucks := range []int{100, pick(b, 4000, 200), pick(b, 100_000, 1000)} {
		rep, err := tsbs(b, perf.TSBSOptions{Use: perf.UseIoT, Devices: trucks, Steps: pick(b, 0, 1000), Targets: inColumnsOnly(), Peers: peerPrograms,
			Python: pythonPeers, TablesLimit: 1})
		if err != nil {
			return fmt.Errorf("%d trucks: %w", trucks, err)
		}
		for _, c := range rep.Ingest {
			if x := rep.Find(c.Target, c.Mode); x != nil && c.Mode == perf.ModeFlatOut {
				b.note("%d trucks, %d rows: %.0f rows/s with %.0f %% of a core, %.2f bytes a row", trucks, x.Rows, float64(x.Rows)/x.Seconds, 100*x.CPUSeconds/x.Seconds, float64(x.DiskBytes)/float64(x.Rows))
			}
		}
		if trucks <= 4000 {
			iotQuestions(b, rep)
		}
	}
	return nil
}
