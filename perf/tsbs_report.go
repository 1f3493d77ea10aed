package perf

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"
)

// TSBSReport is the result of RunTSBS.
type TSBSReport struct {
	Machine Machine      `json:"machine"`
	Start   time.Time    `json:"start"`
	Use     string       `json:"use_case"`
	Devices int          `json:"devices"`
	Steps   int          `json:"rows_of_a_device"` // that is never silent
	Rows    int          `json:"rows"`             // that questions are about
	Seed    uint64       `json:"seed"`
	Pace    int          `json:"pace_rows_per_s"`
	Ingest  []TSBSIngest `json:"ingest"`
	SQLite  *sqliteLoad  `json:"c_sqlite,omitempty"`
	Queries []TSBSQuery  `json:"queries"`
}

// TSBSIngest is one target written once.
type TSBSIngest struct {
	Target string     `json:"target"`
	Preset string     `json:"preset"`
	Mode   string     `json:"mode"`
	Result TSBSResult `json:"result"`
	Error  string     `json:"error,omitempty"`
}

// Name says which run it is.
func (c *TSBSIngest) Name() string {
	return StorageTarget{c.Target, c.Preset}.String() + ", " + c.Mode
}

// TSBSQuery is a question and what answering took, seconds; 0 where nobody was asked.
type TSBSQuery struct {
	ID     string   `json:"id"`
	About  string   `json:"about"`
	Rows   int      `json:"rows"`
	Warm   float64  `json:"warm_s"`               // median, after one opening
	First  float64  `json:"first_s"`              // of those the first
	Cold   float64  `json:"cold_s,omitempty"`     // opening and answering, with nothing in the page cache
	Tables float64  `json:"tables_s"`             // by virtual tables alone
	SQLite float64  `json:"c_sqlite_s,omitempty"` // indexed
	Duck   float64  `json:"duckdb_s,omitempty"`   // on the same Parquet files
	Errors []string `json:"errors,omitempty"`     // what failed, and who answered otherwise
}

func (q *TSBSQuery) complain(who, what string) { q.Errors = append(q.Errors, who+": "+what) }

// compare notes where an answer differs from ours.
func (q *TSBSQuery) compare(who string, ours, other [][]any) {
	if d := differ(ours, other); d != "" {
		q.complain(who, "answers otherwise: "+d)
	}
}

// Generator is what making the rows takes on one core, seconds of CPU; 0 unknown.
func (r TSBSReport) Generator() float64 {
	for _, c := range r.Ingest {
		if c.Target == targetNull && c.Error == "" {
			return c.Result.CPUSeconds
		}
	}
	return 0
}

// Find returns a run; nil where there is none that succeeded.
func (r TSBSReport) Find(target, mode string) *TSBSResult {
	for i := range r.Ingest {
		if c := &r.Ingest[i]; c.Target == target && c.Mode == mode && c.Error == "" {
			return &c.Result
		}
	}
	return nil
}

// PerCore is how many rows one core writes in a second: rows by CPU time, without what making them took.
func (r TSBSReport) PerCore(res *TSBSResult) float64 {
	return float64(res.Rows) / max(res.CPUSeconds-r.Generator(), 1e-9)
}

// Failures are all that failed.
func (r TSBSReport) Failures() []string {
	var all []string
	for _, c := range r.Ingest {
		if c.Error != "" {
			all = append(all, c.Name()+": "+c.Error)
		}
	}
	for _, q := range r.Queries {
		for _, e := range q.Errors {
			all = append(all, "question "+q.ID+": "+e)
		}
	}
	return all
}

// Gain is how much faster than SQLite the questions are answered, the geometric mean; 0 without SQLite.
func (r TSBSReport) Gain() float64 {
	sum, n := 0.0, 0
	for _, q := range r.Queries {
		if q.SQLite > 0 && q.Warm > 0 {
			sum, n = sum+math.Log(q.SQLite/q.Warm), n+1
		}
	}
	if n == 0 {
		return 0
	}
	return math.Exp(sum / float64(n))
}

// WriteText prints tables.
func (r TSBSReport) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Machine: %s\nTSBS %s: %d devices, %d rows of each, %d in all but for what silent ones leave out; seed %d. Nothing is synced before closing.\n", r.Machine, r.Use, r.Devices, r.Steps, r.Rows, r.Seed)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(&b, "\nWriting. One core: rows by seconds of CPU on one processor, without the %.2f s that making rows takes. Paced: %d rows/s.\n", r.Generator(), r.Pace)
	fmt.Fprintln(t, "storage\trows/s, one core\trows/s, flat out\tCPU %\tpaced: CPU %\tpeak RSS MB\tlate s\tbytes a row\t")
	seen := map[string]bool{targetNull: true}
	for _, c := range r.Ingest {
		if seen[c.Target] {
			continue
		}
		seen[c.Target] = true
		cells := []string{"-", "-", "-", "-", "-", "-", "-"}
		if x := r.Find(c.Target, ModeOneCore); x != nil {
			cells[0], cells[6] = fmt.Sprintf("%.0f", r.PerCore(x)), fmt.Sprintf("%.2f", float64(x.DiskBytes)/float64(x.Rows))
		}
		if x := r.Find(c.Target, ModeFlatOut); x != nil {
			cells[1], cells[2] = fmt.Sprintf("%.0f", float64(x.Rows)/x.Seconds), fmt.Sprintf("%.0f", 100*x.CPUSeconds/x.Seconds)
		}
		if x := r.Find(c.Target, ModePaced); x != nil {
			cells[3], cells[4], cells[5] = fmt.Sprintf("%.1f", 100*x.CPUSeconds/x.Seconds), fmt.Sprintf("%.1f", float64(x.PeakRSS)/1e6), fmt.Sprintf("%.2f", x.Late)
		}
		fmt.Fprintf(t, "%s\t%s\t\n", c.Target, strings.Join(cells, "\t"))
	}
	if s := r.SQLite; s != nil {
		fmt.Fprintf(t, "C SQLite, indexed\t%.0f\t%.0f\t%.0f\t-\t-\t-\t%.2f\t\n", float64(s.Rows)/s.CPUSeconds, float64(s.Rows)/s.Seconds, 100*s.CPUSeconds/s.Seconds, float64(s.DiskBytes)/float64(max(1, s.Rows)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, c := range r.Ingest {
		if c.Mode == ModeFlatOut && c.Error == "" && len(c.Result.Samples) > 1 {
			fmt.Fprintf(&b, "%s, flat out, over time: %s\n", c.Target, overTime(c.Result.Samples))
		}
	}
	if s := r.SQLite; s != nil {
		fmt.Fprintf(&b, "C SQLite made its indexes in %.1f s after that.\n", s.Index)
	}
	b.WriteString("\nQuestions, ms: medians after one opening; cold: opening and answering with nothing in the page cache.\n")
	fmt.Fprintln(t, "question\trows\tgobag sql\tfirst\tcold\tvirtual tables\tSQLite, indexed\tDuckDB\t÷ SQLite\t÷ DuckDB\tabout\t")
	for _, q := range r.Queries {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", q.ID, q.Rows, millis(q.Warm), millis(q.First), millis(q.Cold), millis(q.Tables), millis(q.SQLite), millis(q.Duck),
			quotient(q.Warm, q.SQLite), quotient(q.Warm, q.Duck), q.About)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if g := r.Gain(); g > 0 {
		fmt.Fprintf(&b, "geometric mean: %.1f × faster than indexed SQLite\n", g)
	}
	for _, f := range r.Failures() {
		fmt.Fprintf(&b, "failed: %s\n", firstOf(f))
	}
	b.WriteString(published[r.Use])
	_, err := io.WriteString(w, b.String())
	return err
}

// overTime is the course of a run in ten stretches at most.
func overTime(samples []TSBSSample) string {
	var rows, cpu, written, rss []string
	n := min(10, len(samples))
	last := TSBSSample{}
	for i := range n {
		s := samples[(i+1)*len(samples)/n-1]
		d := max(s.Seconds-last.Seconds, 1e-9)
		rows = append(rows, shortNumber(float64(s.Rows-last.Rows)/d))
		cpu = append(cpu, fmt.Sprintf("%.0f", 100*(s.CPUSeconds-last.CPUSeconds)/d))
		written = append(written, fmt.Sprintf("%.1f", float64(s.Written-last.Written)/d/1e6))
		rss = append(rss, fmt.Sprintf("%.0f", float64(s.RSS)/1e6))
		last = s
	}
	return strings.Join(rows, " ") + " rows/s; CPU " + strings.Join(cpu, " ") + " %; written " + strings.Join(written, " ") + " MB/s; RSS " + strings.Join(rss, " ") + " MB"
}

// published is what the comparisons that are repeated had measured.
var published = map[string]string{
	UseCPU: "Published (GreptimeDB Edge on a SA8155P): 72,000 rows/s on one core, 1.7 × SQLite; 8.7 bytes a row, SQLite 169; at 43,000 rows/s 67 % of a core and 200 MB, SQLite 96 % and 10 MB.\n" +
		"Questions 1 to 7, ms, SQLite / GreptimeDB: 11/33, 252/11, 116/52, 119/78, 145/105, 1246/1860, 118/140.\n",
	UseIoT: "Published (TDengine, 4 workers): rows are written 1.04 to 3.3 × faster than by TimescaleDB, 7 × with more rows a device; disk space up to 11 × smaller.\n" +
		"Questions 1 to 12, ms, TDengine / TimescaleDB, 4,000 devices: 12/12, 31/417, 11/12, 24/195, 59/2939, 219/19081, 3111/37127, 4402/73782, 4034/80765, 1296/30452, 2315/79242, 5416/70205.\n" +
		"100 devices: 1/1, 5/7, 1/1, 4/4, 5/62, 14/228, 267/831, 279/1049, 166/1067, 102/487, 147/1245, 414/955.\n",
}

func millis(s float64) string {
	switch {
	case s == 0:
		return "-"
	case s < 0.01:
		return fmt.Sprintf("%.3f", s*1e3)
	}
	return fmt.Sprintf("%.1f", s*1e3)
}

func quotient(a, b float64) string {
	if a == 0 || b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", a/b)
}

// WriteJSON writes everything.
func (r TSBSReport) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
