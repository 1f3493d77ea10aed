package perf

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/internal/sqlview"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/msg/shred"
)

// init is the beginning of the processes of TestTSBS.
func init() {
	if os.Getenv("GOBAG_PERF_CHILD") != "tsbs" {
		return
	}
	if err := tsbsChild(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// tsbsChild is a process of TestTSBS.
func tsbsChild(args []string) error {
	fs := flag.NewFlagSet("child", flag.ContinueOnError)
	var t TSBSTask
	var ms int64
	fs.StringVar(&t.Use, "use", "", "")
	fs.StringVar(&t.Target, "target", "", "")
	fs.StringVar(&t.Preset, "preset", "", "")
	fs.StringVar(&t.Path, "path", "", "")
	fs.IntVar(&t.Devices, "devices", 0, "")
	fs.IntVar(&t.Steps, "steps", 0, "")
	fs.Uint64Var(&t.Seed, "seed", 0, "")
	fs.IntVar(&t.Pace, "pace", 0, "")
	fs.Int64Var(&ms, "limit-ms", 0, "")
	tablesOnly := fs.Bool("tables-only", false, "")
	if err := fs.Parse(args[2:]); err != nil {
		return err
	}
	if args[1] == "tsbs-queries" {
		return RunTSBSQueries(context.Background(), t.Path, queryOptions(*tablesOnly), os.Stdin, os.Stdout)
	}
	t.Limit = time.Duration(ms) * time.Millisecond
	res, err := RunTSBSTask(context.Background(), t)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(res)
}

func queryOptions(tablesOnly bool) sqlview.Options {
	return sqlview.Options{TablesOnly: tablesOnly, Memory: 64 << 20}
}

func tsbsOptions(t *testing.T, use string) TSBSOptions {
	t.Helper()
	return TSBSOptions{Use: use, Devices: 20, Steps: 300, PaceTime: 200 * time.Millisecond, Repeat: 1, Targets: []StorageTarget{{"columnar", "none"}, {"mcap", "none"}}, Seed: 5, Dir: t.TempDir(),
		Command: func(ctx context.Context, args ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, os.Args[0], args...)
			cmd.Env = append(os.Environ(), "GOBAG_PERF_CHILD=tsbs", "GORACE=atexit_sleep_ms=0")
			return cmd
		}}
}

// A whole run of few rows, with the peers where they are built.
func TestTSBS(t *testing.T) {
	o := tsbsOptions(t, UseCPU)
	if peers := filepath.Join("..", "interop", "build"); exists(filepath.Join(peers, tsbsSQLite)) {
		o.Peers = peers
	}
	rep, err := RunTSBS(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if f := rep.Failures(); len(f) > 0 {
		t.Fatalf("failed: %s", strings.Join(f, "\n"))
	}
	src := newCPUSource(o.Seed, o.Devices, o.Steps)
	if rep.Rows != src.rows() {
		t.Errorf("%d rows, want %d", rep.Rows, src.rows())
	}
	for _, c := range rep.Ingest {
		if c.Mode != ModePaced && c.Result.Rows != rep.Rows || c.Mode == ModePaced && c.Result.Rows == 0 {
			t.Errorf("%s: %d rows", c.Name(), c.Result.Rows)
		}
	}
	for _, q := range rep.Queries {
		if q.Warm <= 0 || q.Tables <= 0 || q.Rows == 0 || o.Peers != "" && q.SQLite <= 0 {
			t.Errorf("question %+v", q)
		}
	}
	if o.Peers != "" && (rep.SQLite.Rows != rep.Rows || rep.Gain() <= 0) {
		t.Errorf("SQLite has %+v", rep.SQLite)
	}
	var text strings.Builder
	if err := rep.WriteText(&text); err != nil || !strings.Contains(text.String(), "newest row of one host") {
		t.Errorf("%v: %s", err, text.String())
	}
}

// The IoT use case, with topics of trucks and with topics of tables.
func TestTSBSIoT(t *testing.T) {
	for name, trucks := range map[string]int{"trucks": 20, "tables": trucksAsTopics + 1} {
		t.Run(name, func(t *testing.T) {
			o := tsbsOptions(t, UseIoT)
			o.Devices, o.Steps, o.Targets = trucks, 4000/trucks*3, []StorageTarget{{"columnar", "none"}}
			if peers := filepath.Join("..", "interop", "build"); exists(filepath.Join(peers, tsbsSQLite)) {
				o.Peers = peers
			}
			rep, err := RunTSBS(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if f := rep.Failures(); len(f) > 0 {
				t.Fatalf("failed: %s", strings.Join(f, "\n"))
			}
			if all := 2 * o.Devices * o.Steps; rep.Rows > all || rep.Rows < all*98/100 || len(rep.Queries) != 12 {
				t.Errorf("%d rows of %d, %d questions", rep.Rows, all, len(rep.Queries))
			}
			for _, q := range rep.Queries {
				if q.Warm <= 0 || q.Tables <= 0 {
					t.Errorf("question %+v", q)
				}
			}
		})
	}
}

// Rows of trucks are values of their types; some are missing, and some come late.
func TestIoTSource(t *testing.T) {
	s := newIoTSource(3, 10, 500)
	progs := make([]*shred.Program, 2)
	for i := range progs {
		topic := s.topics()[i]
		d, err := msg.DescribeText(topic.Type, topic.Definition.Encoding, topic.Definition.Text)
		if err != nil {
			t.Fatal(err)
		}
		if progs[i], err = shred.Compile(&d); err != nil {
			t.Fatal(err)
		}
	}
	n, late, last := 0, 0, int64(0)
	seen := map[[3]int64]bool{}
	for {
		topic, more := s.next()
		if !more {
			break
		}
		n++
		if s.stamp() < last {
			late++
		}
		last = max(last, s.stamp())
		table, row := s.row(nil)
		key := [3]int64{int64(table), int64(topic), s.stamp()}
		if seen[key] || topic != 2*s.now.truck+table {
			t.Fatalf("row %v twice, or on topic %d", s.now, topic)
		}
		seen[key] = true
		p := progs[table]
		b := p.NewBatch()
		if err := p.Append(b, s.message(nil)); err != nil {
			t.Fatal(err)
		}
		if name := string(b.Cols[1].Bytes(0)); name != s.trucks[s.now.truck].name || name != string(row[2:2+row[0]]) || b.Cols[0].I64[0] != s.stamp() {
			t.Fatalf("row of %s", name)
		}
	}
	if n >= 10_000 || n < 9800 || late < 50 {
		t.Errorf("%d rows, %d late", n, late)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The messages are values of their type, with the numbers of the rows that peers get.
func TestCPUSource(t *testing.T) {
	s := newCPUSource(3, 40, 50)
	topic := s.topics()[0]
	d, err := msg.DescribeText(topic.Type, topic.Definition.Encoding, topic.Definition.Text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := shred.Compile(&d)
	if err != nil {
		t.Fatal(err)
	}
	b := p.NewBatch()
	n := 0
	silent := false
	for {
		if _, more := s.next(); !more {
			break
		}
		n++
		if err := p.Append(b, s.message(nil)); err != nil {
			t.Fatal(err)
		}
		if _, row := s.row(nil); string(row[2:2+row[0]]) != s.hosts[s.at].tags[0] || int64(row[len(row)-9]) != b.Cols[20].I64[n-1] || b.Cols[0].I64[n-1] != s.stamp() {
			t.Fatalf("row %d is %q", n, row)
		}
		silent = silent || s.hosts[s.at].ends < s.steps
	}
	if n != s.rows() || !silent {
		t.Errorf("%d rows, want %d; some host is silent: %v", n, s.rows(), silent)
	}
}

// Answers that differ are noticed, and rounding is not.
func TestDiffer(t *testing.T) {
	number := func(s string) any { return json.Number(s) }
	a := [][]any{{number("1"), "x", nil, number("0.1")}}
	for want, b := range map[string][][]any{
		"":                         {{number("1"), "x", nil, number("0.10000000000000001")}},
		"1 rows and 0 rows":        {},
		"row 0, column 0: 1 and 2": {{number("2"), "x", nil, number("0.1")}},
		"row 0, column 1: x and y": {{number("1"), "y", nil, number("0.1")}},
		"row 0, column 2":          {{number("1"), "x", number("0"), number("0.1")}},
		"row 0, column 3":          {{number("1"), "x", nil, number("0.1001")}},
	} {
		if got := differ(a, b); got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTSBSOptionsValidate(t *testing.T) {
	good := tsbsOptions(t, UseCPU)
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*TSBSOptions){
		"no command":      func(o *TSBSOptions) { o.Command = nil },
		"use case":        func(o *TSBSOptions) { o.Use = "disk" },
		"20 devices":      func(o *TSBSOptions) { o.Devices = 3 },
		"100..":           func(o *TSBSOptions) { o.Steps = 5 },
		"target rocks":    func(o *TSBSOptions) { o.Targets = []StorageTarget{{"rocks", ""}} },
		"make -C interop": func(o *TSBSOptions) { o.Peers = t.TempDir() },
		"DuckDB":          func(o *TSBSOptions) { o.Python = t.TempDir() },
	} {
		o := good
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
