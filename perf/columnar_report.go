package perf

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// ColumnarReport is a run of Columnar.
type ColumnarReport struct {
	Machine Machine        `json:"machine"`
	Scale   float64        `json:"scale"`
	Seed    uint64         `json:"seed"`
	Cells   []ColumnarCell `json:"cells"`
}

// ColumnarRow is a sample in a target, medians of the runs.
type ColumnarRow struct {
	Sample          string
	Target          StorageTarget
	Runs            int
	WriteNs, ReadNs float64 // CPU time of a message
	WriteRate       float64 // messages a second, by the wall clock
	BytesEach       float64 // on disk, of a message
	Payload         float64 // bytes of a message
	CPURatio        float64 // how much less CPU time writing takes than the base; 0 without the base
	SizeRatio       float64 // how much smaller than the base
	Error           string
}

// Rows are the medians. Ratios are to C SQLite, the base, where it was measured.
func (r ColumnarReport) Rows() []ColumnarRow {
	var rows []ColumnarRow
	for _, s := range ColumnarSamples {
		var base *ColumnarRow
		first := len(rows)
		for _, c := range r.Cells {
			t := StorageTarget{c.Target, c.Preset}
			if c.Sample != s.Name || slices.ContainsFunc(rows[first:], func(x ColumnarRow) bool { return x.Target == t }) {
				continue
			}
			rows = append(rows, r.row(s.Name, t))
		}
		for i := first; i < len(rows); i++ {
			if rows[i].Target == peerSQLite && rows[i].Error == "" {
				base = &rows[i]
			}
		}
		for i := first; base != nil && i < len(rows); i++ {
			if rows[i].Error == "" {
				rows[i].CPURatio, rows[i].SizeRatio = base.WriteNs/rows[i].WriteNs, base.BytesEach/rows[i].BytesEach
			}
		}
	}
	return rows
}

func (r ColumnarReport) row(sample string, t StorageTarget) ColumnarRow {
	row := ColumnarRow{Sample: sample, Target: t}
	var write, read, rate, size []float64
	for _, c := range r.Cells {
		if c.Sample != sample || c.Target != t.Name || c.Preset != t.Preset {
			continue
		}
		if c.Error != "" {
			row.Error = c.Error
			continue
		}
		n := float64(c.Messages)
		row.Runs++
		row.Payload = float64(c.Payload) / n
		write, read = append(write, c.WriteCPU/n*1e9), append(read, c.ReadCPU/n*1e9)
		rate, size = append(rate, n/c.Write), append(size, float64(c.Disk)/n)
	}
	row.WriteNs, row.ReadNs, row.WriteRate, row.BytesEach = middle(write), middle(read), middle(rate), middle(size)
	return row
}

// middle is the median, 0 of nothing.
func middle(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// ColumnarGain is the geometric mean of CPURatio over the samples of structured types, and the least of them.
func ColumnarGain(rows []ColumnarRow, t StorageTarget) (mean, least float64) {
	sum, n := 0.0, 0
	least = math.Inf(1)
	for _, s := range ColumnarSamples {
		for _, r := range rows {
			if !s.Blob && r.Sample == s.Name && r.Target == t && r.CPURatio > 0 {
				sum, n, least = sum+math.Log(r.CPURatio), n+1, min(least, r.CPURatio)
			}
		}
	}
	if n == 0 {
		return 0, 0
	}
	return math.Exp(sum / float64(n)), least
}

// WriteText prints the medians as a table.
func (r ColumnarReport) WriteText(w io.Writer) error {
	rows := r.Rows()
	var b strings.Builder
	fmt.Fprintf(&b, "Machine: %s\nSeed %d, %g times the messages of a whole run; medians of the runs, in turns. Nothing is synced before closing.\n", r.Machine, r.Seed, r.Scale)
	b.WriteString("CPU is that of all threads, user and system; × is the ratio to C SQLite with rosbag2's schema, its journal in memory and synchronous off.\n\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "sample\tstorage\tns/message\t×\tmessages/s\tread ns\tbytes/message\t×\t")
	for _, x := range rows {
		name := x.Target.Name
		if x.Target != peerSQLite {
			name += ":" + cmp.Or(x.Target.Preset, "default")
		}
		if x.Error != "" {
			fmt.Fprintf(t, "%s\t%s\tfailed: %s\t\t\t\t\t\t\n", x.Sample, name, x.Error)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%s\t%.0f\t%s\t%.1f\t%s\t\n", x.Sample, name, x.WriteNs, ratioText(x.CPURatio), x.WriteRate, numberText(x.ReadNs), x.BytesEach, ratioText(x.SizeRatio))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, target := range ColumnarTargets {
		if mean, least := ColumnarGain(rows, target); mean > 0 {
			fmt.Fprintf(&b, "%s:%s writes structured types with %.2f × less CPU than C SQLite (geometric mean; least %.2f ×)\n", target.Name, target.Preset, mean, least)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func ratioText(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

func numberText(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", v)
}

// WriteJSON writes every run.
func (r ColumnarReport) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
