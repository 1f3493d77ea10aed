package perf

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Row is the repeats of one cell.
type Row struct {
	Key   string
	Cells []*Cell // that did not fail
	All   int     // with those that did
}

// Rows are the cells of the report, repeats together, in order.
func (r *Report) Rows() (rows []Row) {
	for i := range r.Cells {
		c := &r.Cells[i]
		at := slices.IndexFunc(rows, func(row Row) bool { return row.Key == c.key() })
		if at < 0 {
			at = len(rows)
			rows = append(rows, Row{Key: c.key()})
		}
		rows[at].All++
		if c.Failed() == "" {
			rows[at].Cells = append(rows[at].Cells, c)
		}
	}
	return rows
}

// Spread is the median of some values, the smallest and the largest.
type Spread struct{ Median, Min, Max float64 }

// SpreadOf returns the spread of f over the row's cells; zero without cells.
func (r *Row) SpreadOf(f func(*Cell) float64) Spread {
	if len(r.Cells) == 0 {
		return Spread{}
	}
	var values []float64
	for _, c := range r.Cells {
		values = append(values, f(c))
	}
	slices.Sort(values)
	n := len(values)
	return Spread{(values[(n-1)/2] + values[n/2]) / 2, values[0], values[n-1]}
}

// Text is the median, and the range where there is one.
func (s Spread) Text(decimals int) string {
	text := fmt.Sprintf("%.*f", decimals, s.Median)
	lo, hi := fmt.Sprintf("%.*f", decimals, s.Min), fmt.Sprintf("%.*f", decimals, s.Max)
	if lo == hi {
		return text
	}
	return fmt.Sprintf("%s (%s–%s)", text, lo, hi)
}

// percentText is like Text, but says 100 only where nothing at all is missing.
func (r *Row) percentText() string {
	for _, c := range r.Cells {
		if c.Recorded != c.Publisher.Sent {
			s := r.SpreadOf(func(c *Cell) float64 { return min(c.Percent(), 99.99+float64(b2i(c.Recorded == c.Publisher.Sent))) })
			return s.Text(2)
		}
	}
	if len(r.Cells) == 0 {
		return "failed"
	}
	return "100"
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// metric is a column of the tables.
type metric struct {
	name     string
	decimals int
	value    func(*Cell) float64
}

// metrics are what cells are compared by.
var metrics = []metric{
	{"recorded %", 2, func(c *Cell) float64 { return c.Percent() }},
	{"recorder CPU s", 2, func(c *Cell) float64 { return c.Recorder.CPUSeconds }},
	{"recorder RSS MiB", 1, func(c *Cell) float64 { return mib(c.Recorder.PeakRSS) }},
	{"publisher CPU s", 2, func(c *Cell) float64 { return c.Publisher.CPUSeconds }},
	{"latency p99 ms", 2, func(c *Cell) float64 { return float64(c.Latency.P99) / 1e6 }},
	{"bag MB", 1, func(c *Cell) float64 { return float64(c.BagBytes) / 1e6 }},
}

// WriteMarkdown writes the report as Markdown.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	title := "gobag perf record"
	if r.Scenario != "" {
		title += ": " + r.Scenario
	}
	fmt.Fprintf(&b, "# %s\n\n", title)
	if r.Emulated() {
		fmt.Fprintf(&b, "**%s.**\n\n%s\n\n", r.Device, r.Device.Limits)
	}
	fmt.Fprintf(&b, "%s\n\ngobag %s, %s, seed %d. %s\n\n%s", r.machineText(), r.Version, r.Start.Format("2006-01-02 15:04 MST"), r.Seed, r.method(), r.Table())
	b.WriteString(r.groupTable())
	var remarks []string
	for i := range r.Cells {
		c := &r.Cells[i]
		if why := c.Failed(); why != "" {
			remarks = append(remarks, fmt.Sprintf("- %s, run %d: %s\n", c.Name(), c.Repeat, why))
		}
	}
	if len(remarks) > 0 {
		b.WriteString("\n## Failed\n\n" + strings.Join(remarks, ""))
	}
	if r.Stopped {
		b.WriteString("\nThe run was stopped before its last cell.\n")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nNote: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) machineText() string {
	if r.Emulated() {
		return "Host: " + r.Machine.String() + "."
	}
	return "Machine: " + r.Machine.String() + "."
}

// Table is the Markdown table of the rows: medians with ranges.
func (r *Report) Table() string {
	var b strings.Builder
	b.WriteString("| load | setup | MB/s | recorded % | ceiling % | lost: wire, queue, storage | recorder CPU s | RSS MiB | publisher CPU s | latency p50 / p99 / max ms | bag MB | runs |\n")
	b.WriteString("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, row := range r.Rows() {
		if len(row.Cells) == 0 {
			fmt.Fprintf(&b, "| %s | | | failed | | | | | | | | %d |\n", strings.ReplaceAll(row.Key, " | ", ", "), row.All)
			continue
		}
		c := row.Cells[0]
		var lost Lost
		for _, c := range row.Cells {
			lost.add(c.Lost)
		}
		ceiling := "–"
		if c.Ceiling != nil {
			ceiling = fmt.Sprintf("%.1f", c.Ceiling.Percent)
		}
		of := func(decimals int, f func(*Cell) float64) string { s := row.SpreadOf(f); return s.Text(decimals) }
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %d, %d, %d | %s | %s | %s | %s / %s / %s | %s | %d of %d |\n", c.Load, c.qos()+c.setup(),
			of(1, (*Cell).MBPerSecond), row.percentText(), ceiling, lost.Wire, lost.Queue, lost.Storage,
			of(2, func(c *Cell) float64 { return c.Recorder.CPUSeconds }), of(1, func(c *Cell) float64 { return mib(c.Recorder.PeakRSS) }),
			of(2, func(c *Cell) float64 { return c.Publisher.CPUSeconds }),
			of(2, func(c *Cell) float64 { return float64(c.Latency.P50) / 1e6 }), of(2, func(c *Cell) float64 { return float64(c.Latency.P99) / 1e6 }),
			of(1, func(c *Cell) float64 { return float64(c.Latency.Max) / 1e6 }), of(1, func(c *Cell) float64 { return float64(c.BagBytes) / 1e6 }),
			len(row.Cells), row.All)
	}
	return b.String()
}

// groupTable shows the groups of loads that have several.
func (r *Report) groupTable() string {
	var b strings.Builder
	for i := range r.Cells {
		c := &r.Cells[i]
		if len(c.Groups) < 2 || c.Error != "" {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n## By group\n\n| cell | group | publishes | sent | recorded % | lost: wire, queue, storage | latency p99 ms |\n|---|---|---|---:|---:|---:|---:|\n")
		}
		for _, g := range c.Groups {
			fmt.Fprintf(&b, "| %s, run %d | %s | %s | %d | %s | %d, %d, %d | %s |\n", c.Name(), c.Repeat, g.Name, g.Group, g.Sent,
				strings.TrimSuffix(share(g.Recorded, g.Sent), " %"), g.Lost.Wire, g.Lost.Queue, g.Lost.Storage, ms(g.Latency.P99))
		}
	}
	return b.String()
}
