package perf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// ReportFormat is the version of results.json. A reader refuses what is newer.
const ReportFormat = 2

// reportKind tells results of `perf record` from those of other verbs.
const reportKind = "gobag perf record"

// Report is the result of a matrix run.
type Report struct {
	Format   int         `json:"format"`
	Kind     string      `json:"kind"`
	Version  string      `json:"gobag"`             // of the program
	Scenario string      `json:"scenario"`          // how the run was asked for
	Machine  Machine     `json:"machine"`           //
	Device   *DeviceInfo `json:"device,omitempty"`  // nil: nothing is emulated
	Start    time.Time   `json:"start"`             //
	Seconds  float64     `json:"seconds"`           // of publishing, in groups without a count of their own
	Repeat   int         `json:"repeat"`            //
	Seed     uint64      `json:"seed"`              //
	Domain   int         `json:"domain"`            //
	Notes    []string    `json:"notes,omitempty"`   //
	Stopped  bool        `json:"stopped,omitempty"` // before its last cell
	Cells    []Cell      `json:"cells"`
}

func newReport(o RecordOptions) Report {
	return Report{Format: ReportFormat, Kind: reportKind, Version: o.Version, Scenario: o.Scenario, Machine: ThisMachine(o.Dir),
		Start: time.Now().UTC().Truncate(time.Second), Seconds: o.Duration.Seconds(), Repeat: o.Repeat, Seed: o.Seed, Domain: o.Domain, Notes: o.Notes}
}

// Emulated says whether the results are of an emulated device.
func (r *Report) Emulated() bool { return r.Device != nil && r.Device.Emulated }

// maxReport bounds what is read of a results.json.
const maxReport = 256 << 20

// ReadReport reads a results.json.
func ReadReport(path string) (r Report, err error) {
	f, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, maxReport)).Decode(&r); err != nil {
		return r, fmt.Errorf("read %s: %w", path, err)
	}
	switch {
	case r.Kind != reportKind:
		return r, fmt.Errorf("read %s: no results of gobag perf record (kind %q)", path, r.Kind)
	case r.Format != ReportFormat:
		return r, fmt.Errorf("read %s: format %d: this program reads %d", path, r.Format, ReportFormat)
	}
	return r, nil
}

// WriteDir writes the report into a directory, which is made: results.json, results.csv, report.md, report.html.
func (r *Report) WriteDir(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var errs []error
	for name, write := range map[string]func(io.Writer) error{
		"results.json": r.WriteJSON, "results.csv": r.WriteCSV, "report.md": r.WriteMarkdown, "report.html": r.WriteHTML,
	} {
		var b strings.Builder
		err := write(&b)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o666)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// WriteJSON writes the report as JSON, a line for each cell.
func (r *Report) WriteJSON(w io.Writer) error {
	head := *r
	head.Cells = []Cell{}
	text, err := json.MarshalIndent(&head, "", " ")
	if err != nil {
		return err
	}
	const noCells = "\"cells\": []\n}"
	before, ok := bytes.CutSuffix(text, []byte(noCells))
	if !ok {
		return errors.New("the cells are not the last field") // a slip of ours
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString("\"cells\": [")
	for i := range r.Cells {
		line, err := json.Marshal(&r.Cells[i])
		if err != nil {
			return err
		}
		b.WriteString([]string{",\n  ", "\n  "}[b2i(i == 0)])
		b.Write(line)
	}
	b.WriteString("\n ]\n}\n")
	_, err = w.Write(b.Bytes())
	return err
}

// method says in a sentence how it was measured.
func (r *Report) method() string {
	return "Publishers and recorder are processes of their own on the same machine, over loopback. Every message was read back from the bag and compared with what was sent. " +
		"Latency and lateness count from when each message was due."
}

// WriteTable prints the machine and one line per cell, for a terminal.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	if d := r.Device.String(); d != "" {
		fmt.Fprintf(&b, "%s\n%s\nHost: %s\n", d, r.Device.Limits, r.Machine)
	} else {
		fmt.Fprintf(&b, "Machine: %s\n", r.Machine)
	}
	fmt.Fprintf(&b, "%s\n\n", r.method())
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "load\tsetup\tMB/s\tsent\trecorded\tceiling\tlost wire\tqueue\tstorage\trecorder CPU s\tRSS MiB\tpublisher CPU s\tRSS MiB\tlatency p50 ms\tp99 ms\tmax ms\tstop s\tbag MB\t")
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Error != "" {
			fmt.Fprintf(t, "%s\t%s\t\t\tfailed%s\n", c.Load, c.setup(), strings.Repeat("\t", 14))
			continue
		}
		p := c.Publisher
		sent := fmt.Sprint(p.Sent)
		if p.Sent < p.Expected {
			sent = fmt.Sprintf("%d of %d", p.Sent, p.Expected)
		}
		fmt.Fprintf(t, "%s\t%s\t%.1f\t%s\t%s\t%s\t%d\t%d\t%d\t%.2f\t%.1f\t%.2f\t%.1f\t%s\t%s\t%s\t%.1f\t%.1f\t\n", c.Load, c.qos()+c.setup(),
			c.MBPerSecond(), sent, share(c.Recorded, p.Sent), c.ceilingText(), c.Lost.Wire, c.Lost.Queue, c.Lost.Storage,
			c.Recorder.CPUSeconds, mib(c.Recorder.PeakRSS), p.CPUSeconds, mib(p.PeakRSS), ms(c.Latency.P50), ms(c.Latency.P99), ms(c.Latency.Max),
			c.StopSeconds, float64(c.BagBytes)/1e6)
	}
	_ = t.Flush() // a Builder takes everything
	for i := range r.Cells {
		c := &r.Cells[i]
		for _, line := range c.remarks() {
			fmt.Fprintf(&b, "\nCell %d (%s): %s\n", i+1, c.Name(), line)
		}
		if c.Ceiling != nil && c.Error == "" {
			fmt.Fprintf(&b, "\nCell %d (%s): %s; recorded %.2f %% of the data.\n", i+1, c.Name(), c.Ceiling, c.BytePercent())
		}
		if len(c.Groups) > 1 && c.Error == "" {
			fmt.Fprintf(&b, "\nCell %d (%s), by group:\n", i+1, c.Name())
			for _, g := range c.Groups {
				fmt.Fprintf(&b, "  %s, %s: %s of %d; lost wire %d, queue %d, storage %d\n", g.Name, g.Group, share(g.Recorded, g.Sent), g.Sent, g.Lost.Wire, g.Lost.Queue, g.Lost.Storage)
			}
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nNote: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Cell) ceilingText() string {
	if c.Ceiling == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", c.Ceiling.Percent)
}

// remarks are the sentences that a cell needs beside its figures.
func (c *Cell) remarks() (lines []string) {
	if why := c.Failed(); why != "" {
		lines = append(lines, why)
	} else if c.Unknown > 0 {
		lines = append(lines, fmt.Sprintf("%d of the messages sent came neither in nor are known to be lost: best effort, before a writer's first or after its last message received.", c.Unknown))
	}
	if span, took := c.span(), c.Publisher.Seconds; c.Error == "" && took > 1.1*span+2 {
		lines = append(lines, fmt.Sprintf("the publishers were held up: what was due within %.1f s took %.1f s.", span, took))
	}
	if c.Publisher.Dropped > 0 {
		lines = append(lines, fmt.Sprintf("the publisher gave up %d messages before they were acknowledged.", c.Publisher.Dropped))
	}
	return lines
}

// WriteCSV writes a line per group of publishers in the columns of rosbag2's benchmark, separated by blanks.
func (r *Report) WriteCSV(w io.Writer) error {
	var b strings.Builder
	cores := 0
	for _, c := range r.Cells {
		cores = max(cores, len(c.Cores))
	}
	b.WriteString("storage_id instances frequency message_size total_messages_sent cache_size max_bagfile_size storage_config compression compression_queue compression_threads " +
		"total_produced total_recorded_count producer_cpu_usage recorder_cpu_usage")
	for i := range cores {
		fmt.Fprintf(&b, " core_%d", i)
	}
	b.WriteString("\n")
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Error != "" {
			continue
		}
		cpu := func(u Usage) float64 { // percent of a core while the load lasted
			if c.Publisher.Seconds <= 0 {
				return 0
			}
			return 100 * u.CPUSeconds / c.Publisher.Seconds
		}
		for _, g := range c.Groups {
			fmt.Fprintf(&b, "%s %d %g %d %d %d %d %s %s 0 0 %d %d %.1f %.1f", word(c.Storage), g.Instances, g.Frequency, g.Size, g.Expected, c.Cache, c.MaxBagSize,
				word(c.ConfigFile+c.Preset), word(c.Compression), g.Sent, g.Recorded, cpu(c.Publisher.Usage), cpu(c.Recorder))
			for _, p := range c.Cores {
				fmt.Fprintf(&b, " %.1f", p)
			}
			b.WriteString("\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// word is a field of a file whose separator is the blank.
func word(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Join(strings.Fields(s), "_")
}

// share is a percentage that is 100.00 only when nothing is missing.
func share(part, whole uint64) string {
	switch {
	case whole == 0:
		return "-"
	case part == whole:
		return "100.00 %"
	}
	p := 100 * float64(part) / float64(whole)
	if part < whole {
		p = min(p, 99.99)
	}
	return fmt.Sprintf("%.2f %%", p)
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/1e6) }
