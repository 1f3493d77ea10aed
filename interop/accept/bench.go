//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// figure is one measured value beside its bar.
type figure struct {
	check, name, value, bar string
	ok                      bool
}

// checkTime is how long a check took.
type checkTime struct {
	check string
	time  time.Duration
}

// bench is what the checks work with.
type bench struct {
	ctx     context.Context
	peer    lab.Vendor // of the checks that need one
	quick   bool
	scratch string // removed at the end
	gobag   lab.Gobag
	started time.Time
	check   string // the one running
	figures []figure
	took    []checkTime
	judged  []format // the storage formats that storage checks judge

	played string // the bag that check play replays: made by check record, or by itself
}

func (b *bench) close() { os.RemoveAll(b.scratch) }

// pick is full, or quick in a quick run.
func pick[T any](b *bench, full, quick T) T {
	if b.quick {
		return quick
	}
	return full
}

func (b *bench) runCheck(c check) {
	b.check = c.name
	fmt.Printf("\n== %s: %s\n", c.name, c.about)
	begin := time.Now()
	if err := c.run(b); err != nil {
		b.figure(false, "check ran to its end", "yes", "%s", firstLine(err.Error()))
		fmt.Println("   " + strings.ReplaceAll(err.Error(), "\n", "\n   "))
	}
	b.took = append(b.took, checkTime{c.name, time.Since(begin)})
	fmt.Printf("   (%.0f s)\n", time.Since(begin).Seconds())
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// figure adds a row to the table and prints it.
func (b *bench) figure(ok bool, name, bar, format string, args ...any) {
	f := figure{check: b.check, name: name, bar: bar, value: fmt.Sprintf(format, args...), ok: ok}
	b.figures = append(b.figures, f)
	fmt.Printf("   %-4s %s: %s (bar: %s)\n", verdict(ok), f.name, f.value, f.bar)
}

// note prints a line that is no figure.
func (b *bench) note(format string, args ...any) { fmt.Printf("        "+format+"\n", args...) }

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAIL"
}

// report prints the table and returns the exit code.
func (b *bench) report(w io.Writer) int {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "check\tfigure\tmeasured\tbar\t")
	failed := 0
	for _, f := range b.figures {
		if !f.ok {
			failed++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", f.check, f.name, f.value, f.bar, verdict(f.ok))
	}
	_ = t.Flush() // the exit code says it too
	fmt.Fprint(w, "\ntime:")
	for _, c := range b.took {
		fmt.Fprintf(w, " %s %.0f s", c.check, c.time.Seconds())
	}
	fmt.Fprintln(w)
	kind := ""
	if b.quick {
		kind = " (quick run: shorter and fewer than the acceptance asks for)"
	}
	fmt.Fprintf(w, "\n%d passed, %d failed%s, %.0f s, %s\n", len(b.figures)-failed, failed, kind, time.Since(b.started).Seconds(), loadText())
	if failed > 0 || b.ctx.Err() != nil {
		return 1
	}
	return 0
}

// sleep waits, or returns an error when the run is interrupted.
func (b *bench) sleep(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}

// vendor names a vendor's peers in figures.
func vendor(v lab.Vendor) string {
	switch v {
	case lab.Cyclone:
		return "Cyclone C"
	case lab.Fast:
		return "Fast DDS"
	case lab.FastSHM:
		return "Fast DDS with shared memory"
	}
	return string(v)
}

// dir makes a folder below the scratch folder.
func (b *bench) dir(name string) (string, error) {
	return os.MkdirTemp(b.scratch, name+"-")
}

// self is the command line of this program.
func self(args ...string) ([]string, error) {
	path, err := os.Executable()
	return append([]string{path}, args...), err
}

// peerLog is a file for a peer's log.
func (b *bench) peerLog(name string) (string, error) {
	dir, err := b.dir(name)
	return filepath.Join(dir, "log"), err
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }
