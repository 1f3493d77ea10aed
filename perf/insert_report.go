package perf

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// InsertReport is the result of RunInsert.
type InsertReport struct {
	Machine Machine       `json:"machine"`
	Start   time.Time     `json:"start"`
	Seed    uint64        `json:"seed"`
	Count   int           `json:"inserts"` // of a run that no limit ended
	Cells   []*InsertCell `json:"cells"`
}

// InsertCell is one target in one mode, with its runs.
type InsertCell struct {
	Target string         `json:"target"`
	Mode   string         `json:"mode"`
	Runs   []InsertResult `json:"runs"`
	Kills  []InsertKill   `json:"kills,omitempty"`
	Error  string         `json:"error,omitempty"` // of the last run that failed
}

// InsertKill is a process that was killed: inserts that it had acknowledged, and inserts that were found.
type InsertKill struct {
	Acknowledged int `json:"acknowledged"`
	Found        int `json:"found"`
}

// Name says which cell it is: "durable, sqlite3".
func (c *InsertCell) Name() string { return c.Mode + ", " + c.Target }

// Median is the median of a figure over the runs, 0 without runs.
func (c *InsertCell) Median(f func(InsertResult) float64) float64 {
	var v []float64
	for _, r := range c.Runs {
		v = append(v, f(r))
	}
	return middle(v)
}

// Rate is the median of inserts per second.
func (c *InsertCell) Rate() float64 { return c.Median(InsertResult.Rate) }

// Steady is the median of the rate in the last tenth of the inserts by that in the first.
func (c *InsertCell) Steady() float64 {
	return c.Median(func(r InsertResult) float64 { return r.Tenth(9) / max(r.Tenth(0), 1e-9) })
}

// RSS is the median of the largest resident set, bytes.
func (c *InsertCell) RSS() float64 {
	return c.Median(func(r InsertResult) float64 { return float64(r.PeakRSS) })
}

// Failed lists the cells with an error.
func (r InsertReport) Failed() []*InsertCell {
	var failed []*InsertCell
	for _, c := range r.Cells {
		if c.Error != "" {
			failed = append(failed, c)
		}
	}
	return failed
}

// WriteText prints medians as a table for each mode, with the rate over time.
func (r InsertReport) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Machine: %s\nObjects of a number, a name of 12 characters and a value, each inserted by itself; seed %d. Medians of the runs, in turns.\n", r.Machine, r.Seed)
	for _, mode := range InsertModes() {
		about := "each is synced before the next; a run ends after its time limit; × is the rate by that of a bare loop of write and fdatasync"
		if mode == InsertCrashSafe {
			about = "each is with the system before the next begins, so that SIGKILL loses none; × is the rate by that of a bare loop of write"
		}
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		some := false
		for _, c := range r.Cells {
			if c.Mode != mode {
				continue
			}
			if !some {
				fmt.Fprintf(&b, "\n%s: %s\n", mode, about)
				fmt.Fprintln(t, "target\tinserts\tinserts/s\t×\tlast tenth ÷ first\tµs CPU\tRSS MB\tbytes each\tinserts/s by tenths\t")
				some = true
			}
			if len(c.Runs) == 0 {
				fmt.Fprintf(t, "%s\tfailed: %s\t\t\t\t\t\t\t\t\n", c.Target, firstOf(c.Error))
				continue
			}
			var tenths []string
			for i := range 10 {
				tenths = append(tenths, shortNumber(c.Median(func(r InsertResult) float64 { return r.Tenth(i) })))
			}
			fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%s\t%.3f\t%.2f\t%.1f\t%.1f\t%s\t\n", c.Target, c.Median(func(r InsertResult) float64 { return float64(r.Inserts) }),
				c.Rate(), ratioText(r.Gain(mode, c.Target, insertLoop)), c.Steady(),
				c.Median(func(r InsertResult) float64 { return r.CPUSeconds / float64(r.Inserts) * 1e6 }), c.RSS()/1e6,
				c.Median(func(r InsertResult) float64 { return float64(r.DiskBytes) / float64(r.Inserts) }), strings.Join(tenths, " "))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for _, c := range r.Cells {
		for _, k := range c.Kills {
			fmt.Fprintf(&b, "%s: killed after %d inserts, %d found\n", c.Target, k.Acknowledged, k.Found)
		}
		if c.Error != "" {
			fmt.Fprintf(&b, "%s failed: %s\n", c.Name(), c.Error)
		}
	}
	b.WriteString("Published by LiteDB: 4,359 inserts/s (3,229 to 4,655), 14 to 18 MB of memory, 130 bytes each; SQLite through an object mapper 6 to 23/s, falling.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func firstOf(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return text
}

// shortNumber is a rate in few characters: 431k.
func shortNumber(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.0fk", v/1e3)
	case v >= 1e3:
		return fmt.Sprintf("%.1fk", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}

// WriteJSON writes every run.
func (r InsertReport) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
