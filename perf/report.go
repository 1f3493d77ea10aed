package perf

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is the result of a matrix run.
type Report struct {
	Machine Machine   `json:"machine"`
	Start   time.Time `json:"start"`
	Seconds float64   `json:"seconds"` // of publishing per cell
	Seed    uint64    `json:"seed"`
	Cells   []Cell    `json:"cells"`
}

// Cell is one combination of the matrix, its configuration first.
type Cell struct {
	Storage     string  `json:"storage"` // as recorded; "" before
	Preset      string  `json:"preset"`
	Cache       int64   `json:"cache_bytes"` // 0 default
	Instances   int     `json:"instances"`
	Frequency   float64 `json:"frequency_hz"`
	Size        int     `json:"size_bytes"`
	Reliability string  `json:"reliability"`
	Depth       int     `json:"depth"`  // 0 keep all
	Repeat      int     `json:"repeat"` // from 1

	Publisher    LoadResult `json:"publisher"`
	Recorder     Usage      `json:"recorder"`
	RecorderExit int        `json:"recorder_exit"`
	Recorded     uint64     `json:"recorded"`
	Lost         Lost       `json:"lost"`
	// Unknown is what is neither recorded nor counted as lost: with best effort, what a publisher's first or last
	// messages may be; with reliable it must be 0.
	Unknown  int64 `json:"unknown"`
	Balanced bool  `json:"balanced"` // recorded + lost = sent, or for best effort not above
	BagBytes int64 `json:"bag_bytes"`

	Error string `json:"error,omitempty"`
}

// Lost says where messages were lost.
type Lost struct {
	Wire    uint64 `json:"wire"`
	Queue   uint64 `json:"queue"`
	Storage uint64 `json:"storage"`
}

// Total is the sum.
func (l Lost) Total() uint64 { return l.Wire + l.Queue + l.Storage }

// Name says which cell it is: "10 × 100 Hz × 100000 B, sqlite3, reliable".
func (c Cell) Name() string {
	storage := c.Storage
	if storage == "" {
		storage = "default storage"
	}
	return fmt.Sprintf("%d × %g Hz × %d B, %s, %s", c.Instances, c.Frequency, c.Size, storage, c.Reliability)
}

// Percent is the share of the messages sent that was recorded, 0..100; -1 when none was sent.
func (c Cell) Percent() float64 {
	if c.Publisher.Sent == 0 {
		return -1
	}
	return 100 * float64(c.Recorded) / float64(c.Publisher.Sent)
}

// MBPerSecond is what was offered, in 10^6 bytes of data per second.
func (c Cell) MBPerSecond() float64 {
	if c.Publisher.Seconds <= 0 {
		return 0
	}
	return float64(c.Publisher.Sent) * float64(c.Size) / 1e6 / c.Publisher.Seconds
}

// Failed is why a cell does not count; "" if it does.
func (c Cell) Failed() string {
	switch {
	case c.Error != "":
		return c.Error
	case !c.Balanced:
		return fmt.Sprintf("the books do not balance: sent %d, recorded %d, lost %d, unaccounted %d", c.Publisher.Sent, c.Recorded, c.Lost.Total(), c.Unknown)
	}
	return ""
}

// WriteTable prints the machine and one line per cell.
func (r Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Machine: %s\n", r.Machine)
	fmt.Fprintf(&b, "Publishers and recorder on the same machine over loopback, %g s per cell, measured from when each message was due.\n\n", r.Seconds)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "storage\tn\tHz\tbytes\tMB/s\tsent\trecorded\tlost wire\tqueue\tstorage\trecorder CPU s\tRSS MiB\tpublisher CPU s\tRSS MiB\tlate p50 ms\tp99 ms\tmax ms\t")
	for _, c := range r.Cells {
		if c.Error != "" {
			fmt.Fprintf(t, "%s\t%d\t%g\t%d\t\t\tfailed\t\t\t\t\t\t\t\t\t\t\t\n", c.Storage, c.Instances, c.Frequency, c.Size)
			continue
		}
		p := c.Publisher
		sent := fmt.Sprint(p.Sent)
		if p.Sent < p.Expected {
			sent = fmt.Sprintf("%d of %d", p.Sent, p.Expected)
		}
		fmt.Fprintf(t, "%s\t%d\t%g\t%d\t%.1f\t%s\t%s\t%d\t%d\t%d\t%.2f\t%.1f\t%.2f\t%.1f\t%s\t%s\t%s\t\n", c.Storage, c.Instances, c.Frequency, c.Size,
			c.MBPerSecond(), sent, share(c.Recorded, p.Sent), c.Lost.Wire, c.Lost.Queue, c.Lost.Storage,
			c.Recorder.CPUSeconds, mib(c.Recorder.PeakRSS), p.CPUSeconds, mib(p.PeakRSS), ms(p.LateP50), ms(p.LateP99), ms(p.LateMax))
	}
	_ = t.Flush() // a Builder takes everything
	for i, c := range r.Cells {
		if why := c.Failed(); why != "" {
			fmt.Fprintf(&b, "\nCell %d (%s): %s\n", i+1, c.Name(), why)
		} else if c.Unknown > 0 {
			fmt.Fprintf(&b, "\nCell %d (%s): %d of the messages sent came neither in nor are known to be lost: best effort, before a writer's first or after its last message received.\n",
				i+1, c.Name(), c.Unknown)
		}
		if c.Publisher.Dropped > 0 {
			fmt.Fprintf(&b, "\nCell %d (%s): the publisher gave up %d messages before they were acknowledged.\n", i+1, c.Name(), c.Publisher.Dropped)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes the report as JSON.
func (r Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
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
