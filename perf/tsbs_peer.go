package perf

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Peers of the time series benchmarks.
const (
	tsbsSQLite = "sqlite_table" // a program of interop/peers
	tsbsDuck   = "duck.py"      // of interop/python, with the interpreter of its virtual environment
)

// queryResult is an answer: of a peer, or of ourselves.
type queryResult struct {
	Seconds    []float64 `json:"seconds"` // of each repeat
	CPUSeconds float64   `json:"cpu_s"`   // of all of them
	Rows       [][]any   `json:"rows"`
	Open       float64   `json:"open_s,omitempty"` // what opening took, of ourselves
	Error      string    `json:"error,omitempty"`
}

// dialog is a process that answers each line with a line of JSON.
type dialog struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	log  tail
}

func startDialog(name string, cmd *exec.Cmd) (*dialog, error) {
	d := &dialog{name: name, cmd: cmd}
	detach(cmd)
	cmd.Stderr = &d.log
	var err error
	if d.in, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	d.out = bufio.NewReaderSize(out, 1<<20)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return d, nil
}

// answer reads a line.
func (d *dialog) answer(into any) error {
	line, err := d.out.ReadBytes('\n')
	if err != nil {
		return d.gone(err)
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber() // 64 bits
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%s: answer %.80q: %w", d.name, line, err)
	}
	return nil
}

// gone is why a process does not answer.
func (d *dialog) gone(err error) error {
	_ = d.in.Close() // it may wait for more
	if werr := d.cmd.Wait(); werr != nil {
		err = werr
	}
	return fmt.Errorf("%s: %w: %s", d.name, err, d.log.String())
}

func (d *dialog) say(text string) error {
	if _, err := io.WriteString(d.in, text); err != nil {
		return d.gone(err)
	}
	return nil
}

// ask has a query run, in the form of ourselves and of DuckDB.
func (d *dialog) ask(sql string, repeat int) (queryResult, error) {
	var res queryResult
	line, err := json.Marshal(map[string]any{"sql": sql, "repeat": repeat})
	if err != nil {
		return res, err
	}
	if err := d.say(string(line) + "\n"); err != nil {
		return res, err
	}
	if err = d.answer(&res); err == nil && res.Error != "" {
		err = fmt.Errorf("%s: %s", d.name, res.Error)
	}
	return res, err
}

// close ends the process in order.
func (d *dialog) close() error {
	_ = d.in.Close() // which ends it
	_, _ = io.Copy(io.Discard, d.out)
	if err := d.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", d.name, err, d.log.String())
	}
	return nil
}

// sqliteLoad is what filling the tables of C SQLite cost.
type sqliteLoad struct {
	Rows       int     `json:"rows"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_s"`
	PeakRSS    int64   `json:"rss_peak_bytes"`
	Index      float64 `json:"index_s"` // of indexes made after the rows, and of looking through them for the planner
	DiskBytes  int64   `json:"disk_bytes"`
}

// sqlitePeer is C SQLite with the tables of a use case.
type sqlitePeer struct {
	*dialog
	path string
}

func startSQLite(ctx context.Context, peers, path string) (*sqlitePeer, error) {
	d, err := startDialog("C SQLite", exec.CommandContext(ctx, filepath.Join(peers, tsbsSQLite), path))
	if err != nil {
		return nil, err
	}
	// No journal, as no side of the published comparison had a write-ahead log.
	return &sqlitePeer{d, path}, d.say("X PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; PRAGMA mmap_size = 68719476736; PRAGMA temp_store = MEMORY\n")
}

// load fills the tables.
func (p *sqlitePeer) load(ctx context.Context, src tsbsSource) (sqliteLoad, error) {
	const multi = 32
	var res sqliteLoad
	tables := src.tables()
	type waiting struct {
		rows int
		b    []byte
	}
	wait := make([]waiting, len(tables))
	for _, t := range tables {
		for _, sql := range t.create {
			if err := p.say("X " + sql + "\n"); err != nil {
				return res, err
			}
		}
		if err := p.say("T " + t.name + " " + t.types + "\n"); err != nil {
			return res, err
		}
	}
	w := bufio.NewWriterSize(p.in, 256<<10)
	if _, err := w.WriteString("R\n"); err != nil {
		return res, p.gone(err)
	}
	put := func(k int) error {
		t := &wait[k]
		if t.rows == 0 {
			return nil
		}
		_, _ = w.Write([]byte{byte(k), byte(t.rows)}) // its error is sticky
		_, err := w.Write(t.b)
		t.rows, t.b = 0, t.b[:0]
		return err
	}
	var scratch []byte
	for n := 0; ; n++ {
		if _, more := src.next(); !more {
			break
		}
		k, b := src.row(scratch[:0])
		scratch = b
		t := &wait[k]
		t.b = append(t.b, b...)
		if t.rows++; t.rows == multi {
			if err := put(k); err != nil {
				return res, p.gone(err)
			}
		}
		if n%(1<<16) == 0 && ctx.Err() != nil {
			return res, ctx.Err()
		}
	}
	var err error
	for k := range wait {
		err = errors.Join(err, put(k))
	}
	_ = w.WriteByte(255) // its error is sticky
	if err = errors.Join(err, w.Flush()); err != nil {
		return res, p.gone(err)
	}
	if err := p.answer(&res); err != nil {
		return res, err
	}
	begin := time.Now()
	for _, t := range tables {
		for _, sql := range t.index {
			if err := p.say("X " + sql + "\n"); err != nil {
				return res, err
			}
		}
	}
	if _, err := p.ask("ANALYZE", 1); err != nil {
		return res, err
	}
	res.Index = time.Since(begin).Seconds()
	res.DiskBytes, err = dataSize(p.path)
	return res, err
}

// ask is a query in the form of sqlite_table.
func (p *sqlitePeer) ask(sql string, repeat int) (queryResult, error) {
	var res queryResult
	if err := p.say(fmt.Sprintf("Q %d %s\n", repeat, strings.Join(strings.Fields(sql), " "))); err != nil {
		return res, err
	}
	return res, p.answer(&res)
}

// startDuck starts DuckDB; python is the directory of interop/python.
func startDuck(ctx context.Context, python string) (*dialog, error) {
	return startDialog("DuckDB", exec.CommandContext(ctx, filepath.Join(python, "venv", "bin", "python"), filepath.Join(python, tsbsDuck)))
}

// exec has a statement run whose rows do not matter.
func (d *dialog) exec(sql string) error {
	line, err := json.Marshal(map[string]any{"sql": sql, "exec": true})
	if err != nil {
		return err
	}
	if err := d.say(string(line) + "\n"); err != nil {
		return err
	}
	var res queryResult
	if err := d.answer(&res); err != nil {
		return err
	}
	if res.Error != "" {
		return fmt.Errorf("%s: %s", d.name, res.Error)
	}
	return nil
}
