package perf

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// StorageReport is the result of RunStorage.
type StorageReport struct {
	Machine     Machine        `json:"machine"`
	Start       time.Time      `json:"start"`
	Seed        uint64         `json:"seed"`
	Payload     string         `json:"payload"`
	SyncSeconds float64        `json:"sync_interval_s"` // 0 never
	Pace        int64          `json:"pace_bytes_per_s"`
	Cells       []*StorageCell `json:"cells"`
}

// StorageCell is one target at one step, with its runs.
type StorageCell struct {
	Target string `json:"target"`
	Preset string `json:"preset"`
	Op     string `json:"op"`
	Order  string `json:"order"`
	Paced  bool   `json:"paced"`
	Size   int    `json:"size_bytes"`
	Count  int    `json:"messages"`
	Buffer int64  `json:"buffer_bytes"` // 0 default

	Runs  []StorageResult `json:"runs"`
	Error string          `json:"error,omitempty"` // of the last run that failed
}

// Name says which cell it is: "write seq 10 KB, sqlite3:fast".
func (c *StorageCell) Name() string {
	s := c.step().String() + " " + SizeText(int64(c.Size)) + ", " + StorageTarget{c.Target, c.Preset}.String()
	if c.Buffer > 0 {
		s += ", buffer " + SizeText(c.Buffer)
	}
	return s
}

func (c *StorageCell) step() StorageStep { return StorageStep{c.Op, c.Order, c.Paced} }

func (s StorageStep) String() string {
	if s.Paced {
		return s.Op + " " + s.Order + " paced"
	}
	return s.Op + " " + s.Order
}

// Median is the median of a figure over the runs; NaN-free: 0 without runs.
func (c *StorageCell) Median(f func(StorageResult) float64) float64 {
	v := c.values(f)
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// values are a figure's over the runs, ascending.
func (c *StorageCell) values(f func(StorageResult) float64) []float64 {
	var v []float64
	for _, r := range c.Runs {
		v = append(v, f(r))
	}
	slices.Sort(v)
	return v
}

func (c *StorageCell) payload() float64 { return float64(c.Size) * float64(c.Count) }

// MBPerSecond is the median of payload bytes per second, in 10^6.
func (c *StorageCell) MBPerSecond() float64 {
	return c.Median(func(r StorageResult) float64 { return c.payload() / 1e6 / max(r.Seconds, 1e-9) })
}

// PerSecond is the median of messages per second.
func (c *StorageCell) PerSecond() float64 {
	return c.Median(func(r StorageResult) float64 { return float64(r.Messages) / max(r.Seconds, 1e-9) })
}

// CPUPerGB is the median of CPU seconds per 10^9 bytes of payload.
func (c *StorageCell) CPUPerGB() float64 {
	return c.Median(func(r StorageResult) float64 { return r.CPUSeconds / c.payload() * 1e9 })
}

// RSS is the median of what the resident set grew by, bytes.
func (c *StorageCell) RSS() float64 {
	return c.Median(func(r StorageResult) float64 { return float64(max(0, r.PeakRSS-r.BaseRSS)) })
}

// Amplification is the median of bytes written per byte of payload; -1 unknown.
func (c *StorageCell) Amplification() float64 {
	return c.Median(func(r StorageResult) float64 {
		if r.WriteBytes < 0 {
			return -1
		}
		return float64(r.WriteBytes) / c.payload()
	})
}

// Disk is the median of bytes on disk per byte of payload.
func (c *StorageCell) Disk() float64 {
	return c.Median(func(r StorageResult) float64 { return float64(r.DiskBytes) / c.payload() })
}

// Wait is the median of one of the waits, e.g. the 99.9th percentile.
func (c *StorageCell) Wait(f func(StorageResult) time.Duration) time.Duration {
	return time.Duration(c.Median(func(r StorageResult) float64 { return float64(f(r)) }))
}

// Find returns the cell of a target at a step with a size, without a buffer; nil where there is none or no run of it
// succeeded.
func (r StorageReport) Find(t StorageTarget, s StorageStep, size int) *StorageCell {
	for _, c := range r.Cells {
		if c.Target == t.Name && c.Preset == t.Preset && c.step() == s && c.Size == size && c.Buffer == 0 && len(c.Runs) > 0 {
			return c
		}
	}
	return nil
}

// Failed lists the cells with an error.
func (r StorageReport) Failed() []*StorageCell {
	return slices.DeleteFunc(slices.Clone(r.Cells), func(c *StorageCell) bool { return c.Error == "" })
}

// storageTable is one table of the text: targets down, sizes across.
type storageTable struct {
	title string
	step  StorageStep
	value func(*StorageCell) string
}

func storageTables(pace int64) []storageTable {
	var ts []storageTable
	add := func(step StorageStep, title string, value func(*StorageCell) string) {
		ts = append(ts, storageTable{title, step, value})
	}
	num := func(f func(*StorageCell) float64, scale float64) func(*StorageCell) string {
		return func(c *StorageCell) string { return figure(f(c) * scale) }
	}
	read, reads := StorageStep{Op: OpRead, Order: OrderSequential}, StorageStep{Op: OpRead, Order: OrderRandom}
	each := StorageStep{Op: OpRead, Order: OrderEach}
	write, writes := StorageStep{Op: OpWrite, Order: OrderSequential}, StorageStep{Op: OpWrite, Order: OrderRandom}
	add(read, "Sequential reads, MB/s", num((*StorageCell).MBPerSecond, 1))
	add(each, "Reads in order, each asked for by itself, operations/s", num((*StorageCell).PerSecond, 1))
	add(reads, "Random reads, operations/s", num((*StorageCell).PerSecond, 1))
	add(write, "Sequential writes, MB/s", num((*StorageCell).MBPerSecond, 1))
	add(writes, "Random writes, MB/s", num((*StorageCell).MBPerSecond, 1))
	for _, s := range []struct {
		step StorageStep
		what string
	}{{read, "Sequential reads"}, {each, "Reads in order, each by itself"}, {reads, "Random reads"}, {write, "Sequential writes"}, {writes, "Random writes"}} {
		add(s.step, s.what+", CPU s/GB", num((*StorageCell).CPUPerGB, 1))
		add(s.step, s.what+", memory beside the start, MB", num((*StorageCell).RSS, 1e-6))
	}
	add(write, "Sequential writes, bytes written per byte", num((*StorageCell).Amplification, 1))
	add(writes, "Random writes, bytes written per byte", num((*StorageCell).Amplification, 1))
	add(write, "Sequential writes, bytes on disk per byte", num((*StorageCell).Disk, 1))
	paced := StorageStep{Op: OpWrite, Order: OrderSequential, Paced: true}
	add(paced, fmt.Sprintf("Paced at %s/s: wait from when a message was due until Write returned, ms p50 / p99 / p99.9 / max", SizeText(pace)), waitText)
	add(paced, fmt.Sprintf("Paced at %s/s, CPU s/GB", SizeText(pace)), num((*StorageCell).CPUPerGB, 1))
	return ts
}

func waitText(c *StorageCell) string {
	at := func(f func(StorageResult) time.Duration) string { return figure(float64(c.Wait(f)) / 1e6) }
	return at(func(r StorageResult) time.Duration { return r.WaitP50 }) + " / " + at(func(r StorageResult) time.Duration { return r.WaitP99 }) + " / " +
		at(func(r StorageResult) time.Duration { return r.WaitP999 }) + " / " + at(func(r StorageResult) time.Duration { return r.WaitMax })
}

// figure has three significant digits, and no exponent.
func figure(v float64) string {
	switch a := max(v, -v); {
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// SizeText is a number of bytes in decimal units: "10 KB".
func SizeText(n int64) string {
	for _, u := range []struct {
		unit int64
		name string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}} {
		if n >= u.unit {
			return strconv.FormatFloat(float64(n)/float64(u.unit), 'g', 4, 64) + " " + u.name
		}
	}
	return fmt.Sprintf("%d B", n)
}

// WriteText prints the machine and the tables that have rows.
func (r StorageReport) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Machine: %s\nPayload %s, seed %d, medians of %d runs in turns, each in a process of its own", r.Machine, r.Payload, r.Seed, r.repeats())
	if r.SyncSeconds > 0 {
		fmt.Fprintf(&b, "; formats are synced every %g s while writing", r.SyncSeconds)
	}
	b.WriteString(".\n")
	var buffers []int64
	for _, c := range r.Cells {
		if !slices.Contains(buffers, c.Buffer) {
			buffers = append(buffers, c.Buffer)
		}
	}
	for _, buffer := range buffers {
		for _, t := range storageTables(r.Pace) {
			r.writeTable(&b, t, buffer)
		}
	}
	for _, c := range r.Failed() {
		fmt.Fprintf(&b, "\nFailed: %s: %s\n", c.Name(), c.Error)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r StorageReport) repeats() int {
	n := 0
	for _, c := range r.Cells {
		n = max(n, len(c.Runs))
	}
	return n
}

func (r StorageReport) writeTable(b *strings.Builder, t storageTable, buffer int64) {
	var targets []StorageTarget
	var sizes []int
	cells := map[StorageTarget]map[int]*StorageCell{}
	for _, c := range r.Cells {
		if c.step() != t.step || c.Buffer != buffer || len(c.Runs) == 0 {
			continue
		}
		name := StorageTarget{c.Target, c.Preset}
		if cells[name] == nil {
			cells[name] = map[int]*StorageCell{}
			targets = append(targets, name)
		}
		if !slices.Contains(sizes, c.Size) {
			sizes = append(sizes, c.Size)
		}
		cells[name][c.Size] = c
	}
	if len(targets) == 0 {
		return
	}
	title := t.title
	if buffer > 0 {
		title += ", with a buffer of " + SizeText(buffer)
	}
	fmt.Fprintf(b, "\n%s\n", title)
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "\t")
	for _, s := range sizes {
		fmt.Fprintf(tw, "%s\t", SizeText(int64(s)))
	}
	fmt.Fprintln(tw)
	for _, name := range targets {
		fmt.Fprintf(tw, "%s\t", name)
		for _, s := range sizes {
			text := "–"
			if c := cells[name][s]; c != nil {
				text = t.value(c)
			}
			fmt.Fprintf(tw, "%s\t", text)
		}
		fmt.Fprintln(tw)
	}
	_ = tw.Flush() // a Builder takes everything
}

// WriteJSON writes everything, each run by itself.
func (r StorageReport) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteCSV writes one line for each cell: medians, and for MB/s the extremes too.
func (r StorageReport) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"target", "preset", "op", "order", "paced", "size_bytes", "messages", "buffer_bytes", "runs", "mb_per_s", "mb_per_s_min",
		"mb_per_s_max", "messages_per_s", "cpu_s_per_gb", "rss_bytes", "write_amplification", "disk_per_payload", "wait_p50_ms", "wait_p99_ms",
		"wait_p999_ms", "wait_max_ms", "error"}) // errors are kept and given by Error
	f := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	for _, c := range r.Cells {
		low, high := 0.0, 0.0
		if v := c.values(func(r StorageResult) float64 { return c.payload() / 1e6 / max(r.Seconds, 1e-9) }); len(v) > 0 {
			low, high = v[0], v[len(v)-1]
		}
		wait := func(get func(StorageResult) time.Duration) string { return f(float64(c.Wait(get)) / 1e6) }
		_ = out.Write([]string{c.Target, c.Preset, c.Op, c.Order, strconv.FormatBool(c.Paced), strconv.Itoa(c.Size), strconv.Itoa(c.Count),
			strconv.FormatInt(c.Buffer, 10), strconv.Itoa(len(c.Runs)), f(c.MBPerSecond()), f(low), f(high), f(c.PerSecond()), f(c.CPUPerGB()), f(c.RSS()),
			f(c.Amplification()), f(c.Disk()), wait(func(r StorageResult) time.Duration { return r.WaitP50 }),
			wait(func(r StorageResult) time.Duration { return r.WaitP99 }), wait(func(r StorageResult) time.Duration { return r.WaitP999 }),
			wait(func(r StorageResult) time.Duration { return r.WaitMax }), c.Error})
	}
	out.Flush()
	return out.Error()
}
