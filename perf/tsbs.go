package perf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/plugin"
)

// TSBSOptions describe a run of `perf tsbs-cpu` or `tsbs-iot`.
type TSBSOptions struct {
	Use      string
	Devices  int             // hosts or trucks
	Steps    int             // rows of one that is never silent
	Targets  []StorageTarget // formats that rows are written into; default TSBSTargets. Questions are asked of columnar, and it must be among them
	Pace     int             // rows per second of the paced runs; default 43,000, negative none
	PaceTime time.Duration   // of the paced runs; default 20 s
	Repeat   int             // of every question; default 7. Peers are asked once where an answer takes them 5 s
	Seed     uint64

	TablesLimit int // of more rows virtual tables alone are not asked; default 12,000,000

	Dir    string // where all is written; "" is a temporary directory. Everything is removed again
	Peers  string // directory with the peers' programs (interop/build); "" = without C SQLite
	Python string // interop/python; "" = without DuckDB

	// Command makes a process of this program.
	Command func(ctx context.Context, args ...string) *exec.Cmd

	// OnProgress is called with what is going on. May be nil.
	OnProgress func(what string)
}

// TSBSTargets are what rows are written into when nothing is named. Nothing is synced before closing.
func TSBSTargets() []StorageTarget {
	ts := []StorageTarget{{"columnar", plugin.PresetNone}}
	for _, d := range plugin.Drivers() {
		if !d.Features().ReadOnly && d.Name() != "columnar" {
			ts = append(ts, StorageTarget{d.Name(), plugin.PresetNone})
		}
	}
	return ts
}

// What an ingest run is like.
const (
	ModeOneCore = "one core"
	ModeFlatOut = "flat out"
	ModePaced   = "paced"
)

func (o TSBSOptions) withDefaults() TSBSOptions {
	if o.Targets == nil {
		o.Targets = TSBSTargets()
	}
	if o.Devices == 0 {
		o.Devices = 4000
	}
	if o.Steps == 0 {
		o.Steps = tsbsSteps(o.Use, o.Devices)
	}
	if o.Pace == 0 {
		o.Pace = 43_000
	}
	if o.PaceTime == 0 {
		o.PaceTime = 20 * time.Second
	}
	if o.Repeat == 0 {
		o.Repeat = 7
	}
	if o.TablesLimit == 0 {
		o.TablesLimit = 12_000_000
	}
	if o.OnProgress == nil {
		o.OnProgress = func(string) {}
	}
	return o
}

// tsbsSteps is how many rows a device has when nothing is said: of the hosts of the CPU use case enough for 8 hours; of
// trucks three days of up to 100, a day of up to 4,000, and of more as many as make 12 million rows of each table.
func tsbsSteps(use string, devices int) int {
	switch {
	case use == UseCPU:
		return 2900
	case devices <= 100:
		return 26_000
	case devices <= 4000:
		return 8700
	}
	return max(2, 12_000_000/devices)
}

// Validate returns all problems, joined.
func (o TSBSOptions) Validate() error {
	o = o.withDefaults()
	var errs []error
	if o.Command == nil {
		errs = append(errs, errors.New("no command to start processes with"))
	}
	if o.Devices < 20 {
		errs = append(errs, errors.New("there must be 20 devices at least"))
	}
	if _, err := (TSBSTask{Use: o.Use, Devices: max(o.Devices, 20), Steps: 2}).source(); err != nil {
		errs = append(errs, err)
	}
	least := 100
	if o.Use == UseIoT {
		least = 2
	}
	if o.Steps < least || o.Steps > 10_000_000 || o.Repeat < 1 {
		errs = append(errs, fmt.Errorf("rows of a device must be in %d..10000000, repeat above 0", least))
	}
	for _, t := range o.Targets {
		if d, err := plugin.Lookup(t.Name); err != nil || d.Features().ReadOnly {
			errs = append(errs, fmt.Errorf("target %s: not a format that is written", t))
		}
	}
	if o.Peers != "" {
		if _, err := os.Stat(filepath.Join(o.Peers, tsbsSQLite)); err != nil {
			errs = append(errs, fmt.Errorf("peer C SQLite: %w (\"make -C interop peers\" builds it)", err))
		}
	}
	if o.Python != "" {
		if _, err := os.Stat(filepath.Join(o.Python, "venv", "bin", "python")); err != nil {
			errs = append(errs, fmt.Errorf("peer DuckDB: %w (\"make -C interop install\" brings it)", err))
		}
	}
	return errors.Join(errs...)
}

// tsbsRun is a run that is going on.
type tsbsRun struct {
	TSBSOptions
	dir string
	rep *TSBSReport
}

// RunTSBS measures writing, then asks the questions. What fails carries its error. When ctx ends, what is finished is
// returned with ctx's error.
func RunTSBS(ctx context.Context, o TSBSOptions) (TSBSReport, error) {
	if err := o.Validate(); err != nil {
		return TSBSReport{}, fmt.Errorf("perf tsbs-%s: %w", o.Use, err)
	}
	o = o.withDefaults()
	if o.Dir != "" {
		if err := os.MkdirAll(o.Dir, 0o777); err != nil {
			return TSBSReport{}, fmt.Errorf("perf tsbs-%s: %w", o.Use, err)
		}
	}
	dir, err := os.MkdirTemp(o.Dir, "gobag-tsbs-")
	if err != nil {
		return TSBSReport{}, fmt.Errorf("perf tsbs-%s: %w", o.Use, err)
	}
	defer os.RemoveAll(dir)
	rep := TSBSReport{Machine: ThisMachine(dir), Start: time.Now().UTC().Truncate(time.Second), Use: o.Use, Devices: o.Devices, Steps: o.Steps, Seed: o.Seed, Pace: max(0, o.Pace)}
	r := &tsbsRun{TSBSOptions: o, dir: dir, rep: &rep}
	if err = r.ingest(ctx); err == nil {
		err = r.questions(ctx)
	}
	if err != nil {
		return rep, fmt.Errorf("perf tsbs-%s: %w", o.Use, err)
	}
	return rep, nil
}

// ingest writes the rows into every target: on one core, flat out, and paced. What the generator takes is measured by a
// target that does nothing.
func (r *tsbsRun) ingest(ctx context.Context) error {
	for _, t := range append([]StorageTarget{{targetNull, ""}}, r.Targets...) {
		for _, mode := range []string{ModeOneCore, ModePaced, ModeFlatOut} {
			if mode == ModePaced && r.Pace < 0 || t.Name == targetNull && mode != ModeOneCore {
				continue
			}
			c := TSBSIngest{Target: t.Name, Preset: t.Preset, Mode: mode}
			task := TSBSTask{Use: r.Use, Target: t.Name, Preset: t.Preset, Path: r.storage(t), Devices: r.Devices, Steps: r.Steps, Seed: r.Seed}
			if mode == ModePaced {
				task.Pace, task.Limit = r.Pace, r.PaceTime
			}
			r.OnProgress(c.Name())
			if err := r.task(ctx, task, mode == ModeOneCore, &c.Result); err != nil {
				c.Error = err.Error()
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if mode == ModeFlatOut && t.Name == "columnar" && c.Error == "" {
				r.rep.Rows = c.Result.Rows // it is asked questions
			} else if err := os.RemoveAll(task.Path); err != nil {
				return err
			}
			r.rep.Ingest = append(r.rep.Ingest, c)
		}
	}
	return nil
}

// storage is where a target's rows are.
func (r *tsbsRun) storage(t StorageTarget) string {
	path := filepath.Join(r.dir, "rows")
	if d, err := plugin.Lookup(t.Name); err == nil {
		path += d.Extension()
	}
	return path
}

// task runs a task in a process.
func (r *tsbsRun) task(ctx context.Context, t TSBSTask, oneCore bool, res *TSBSResult) error {
	cmd := r.Command(ctx, append([]string{"perf", "tsbs-task"}, t.Flags()...)...)
	if oneCore {
		if cmd.Env == nil {
			cmd.Env = os.Environ()
		}
		cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	}
	d, err := startDialog(t.Target, cmd)
	if err != nil {
		return err
	}
	if err := d.answer(res); err != nil {
		return err
	}
	return d.close()
}

// questions are asked of ourselves, by kernels and by virtual tables alone, and of the peers, on the same rows.
func (r *tsbsRun) questions(ctx context.Context) error {
	path := r.storage(StorageTarget{Name: "columnar"})
	if _, err := os.Stat(path); err != nil {
		return nil //nolint:nilerr // it was not asked for, or failed, which the report says
	}
	src, err := (TSBSTask{Use: r.Use, Devices: r.Devices, Steps: r.Steps, Seed: r.Seed}).source()
	if err != nil {
		return err
	}
	qs := questionsOf(src)
	for _, q := range qs {
		r.rep.Queries = append(r.rep.Queries, TSBSQuery{ID: q.id, About: q.about})
	}
	answers := make([][][]any, len(qs))
	for _, tablesOnly := range []bool{false, true} {
		if err := r.ours(ctx, path, qs, answers, tablesOnly); err != nil {
			return err
		}
	}
	if r.Python != "" {
		if err := r.duck(ctx, path, src, qs, answers); err != nil {
			return err
		}
	}
	if r.Peers != "" {
		return r.sqlite(ctx, src, qs, answers)
	}
	return nil
}

// questionsOf are the questions about a source's rows.
func questionsOf(src tsbsSource) []tsbsQuestion {
	switch s := src.(type) {
	case *cpuSource:
		return cpuQuestions(s)
	case *iotSource:
		return iotQuestions(s)
	}
	return nil
}

// queries starts the process that answers ours.
func (r *tsbsRun) queries(ctx context.Context, path string, tablesOnly bool) (*dialog, error) {
	return startDialog("gobag", r.Command(ctx, "perf", "tsbs-queries", "--path", path, "--tables-only="+strconv.FormatBool(tablesOnly)))
}

// ours asks ourselves; answers are kept, or compared with those that are there.
func (r *tsbsRun) ours(ctx context.Context, path string, qs []tsbsQuestion, answers [][][]any, tablesOnly bool) error {
	d, err := r.queries(ctx, path, tablesOnly)
	if err != nil {
		return err
	}
	for i, q := range qs {
		out := &r.rep.Queries[i]
		what, repeat := "gobag sql", r.Repeat
		if tablesOnly {
			what, repeat = "virtual tables alone", 1
			if r.rep.Rows > r.TablesLimit {
				continue
			}
		}
		r.OnProgress(fmt.Sprintf("question %s, %s", q.id, what))
		res, err := d.ask(q.ours, repeat)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			out.complain(what, err.Error())
			if res.Error == "" { // the process is gone
				return err
			}
			continue
		}
		if tablesOnly {
			out.Tables = middle(res.Seconds)
			out.compare(what, answers[i], res.Rows)
			continue
		}
		out.First, out.Warm, out.Rows = res.Seconds[0], middle(res.Seconds), len(res.Rows)
		answers[i] = res.Rows
	}
	if err := d.close(); err != nil {
		return err
	}
	if tablesOnly {
		return nil
	}
	for i, q := range qs {
		if !q.cold {
			continue
		}
		var times []float64
		for range 3 {
			if err := dropFromCache(path); err != nil {
				r.rep.Queries[i].complain("page cache", err.Error())
				break
			}
			d, err := r.queries(ctx, path, false)
			if err != nil {
				return err
			}
			res, err := d.ask(q.ours, 1)
			if err = errors.Join(err, d.close()); err != nil {
				r.rep.Queries[i].complain("cold", err.Error())
				break
			}
			times = append(times, res.Open+res.Seconds[0])
		}
		r.rep.Queries[i].Cold = middle(times)
	}
	return nil
}

// duck asks DuckDB, on the same Parquet files.
func (r *tsbsRun) duck(ctx context.Context, path string, src tsbsSource, qs []tsbsQuestion, answers [][][]any) error {
	d, err := startDuck(ctx, r.Python)
	if err != nil {
		return err
	}
	for _, view := range duckViews(path, src) {
		if err := d.exec(view); err != nil {
			r.rep.Queries[0].complain("DuckDB", err.Error())
			return d.close()
		}
	}
	for i, q := range qs {
		r.OnProgress("question " + q.id + ", DuckDB")
		if err := r.peer(ctx, &r.rep.Queries[i], "DuckDB", q.duck, answers[i], &r.rep.Queries[i].Duck, d.ask); err != nil {
			return err
		}
	}
	return d.close()
}

// peer asks a peer and compares.
func (r *tsbsRun) peer(ctx context.Context, out *TSBSQuery, name, sql string, ours [][]any, seconds *float64, ask func(string, int) (queryResult, error)) error {
	if sql == "" {
		return nil
	}
	res, err := ask(sql, 1)
	if err == nil && res.Seconds[0] < 5 && r.Repeat > 1 { // slow ones are asked once
		res, err = ask(sql, r.Repeat)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		out.complain(name, err.Error())
		if res.Error == "" {
			return err
		}
		return nil
	}
	*seconds = middle(res.Seconds)
	out.compare(name, ours, res.Rows)
	return nil
}

// duckViews make the topics of a columnar storage tables of DuckDB.
func duckViews(path string, src tsbsSource) []string {
	view := func(name, columns, dir string) string {
		glob := filepath.ToSlash(path) + "/" + dir + "/part-*.parquet"
		return "CREATE VIEW " + name + " AS SELECT " + columns + " FROM read_parquet('" + strings.ReplaceAll(glob, "'", "''") + "', hive_partitioning = false)"
	}
	s, ok := src.(*iotSource)
	if !ok {
		return []string{view("cpu", "*", "topic=%2Fcpu")}
	}
	prefix := ""
	if s.ownTopics() {
		prefix = "%2Ftruck_*"
	}
	return []string{view("readings", "epoch_ns(_log_time) AS ts, *", "topic="+prefix+"%2Freadings"), view("diagnostics", "epoch_ns(_log_time) AS ts, *", "topic="+prefix+"%2Fdiagnostics")}
}

// sqlite fills C SQLite's tables, and asks it.
func (r *tsbsRun) sqlite(ctx context.Context, src tsbsSource, qs []tsbsQuestion, answers [][][]any) error {
	r.OnProgress("C SQLite is filled")
	p, err := startSQLite(ctx, r.Peers, filepath.Join(r.dir, "rows.db"))
	if err != nil {
		return err
	}
	load, err := p.load(ctx, src)
	if err != nil {
		return err
	}
	r.rep.SQLite = &load
	for i, q := range qs {
		r.OnProgress("question " + q.id + ", C SQLite")
		if err := r.peer(ctx, &r.rep.Queries[i], "SQLite", q.sqlite, answers[i], &r.rep.Queries[i].SQLite, p.ask); err != nil {
			return err
		}
	}
	return p.close()
}
