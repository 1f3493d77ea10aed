//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/gobag/gobag/perf"
	"github.com/gobag/gobag/plugin"
)

// peerPrograms is where `make peers` puts them, relative to the module's root.
const peerPrograms = "interop/build"

// What the ratios compare.
var (
	appendLog     = perf.StorageTarget{Name: "file"} // the Go append log with checksums
	cppLevelDB    = perf.StorageTarget{Name: "c++leveldb", Preset: "default"}
	cppMCAP       = perf.StorageTarget{Name: "c++mcap", Preset: "default"}
	cSQLite       = perf.StorageTarget{Name: "csqlite", Preset: "resilient"}
	cSQLiteEqual  = perf.StorageTarget{Name: "csqlite", Preset: "equal"}
	files         = perf.StorageTarget{Name: "files"}
	filesRaw      = perf.StorageTarget{Name: "files-raw"}
	stepWrite     = perf.StorageStep{Op: perf.OpWrite, Order: perf.OrderSequential}
	stepWriteRand = perf.StorageStep{Op: perf.OpWrite, Order: perf.OrderRandom}
	stepRead      = perf.StorageStep{Op: perf.OpRead, Order: perf.OrderSequential}
	stepEach      = perf.StorageStep{Op: perf.OpRead, Order: perf.OrderEach}
	stepReadRand  = perf.StorageStep{Op: perf.OpRead, Order: perf.OrderRandom}
	stepPaced     = perf.StorageStep{Op: perf.OpWrite, Order: perf.OrderSequential, Paced: true}
)

func ours(name, preset string) perf.StorageTarget {
	return perf.StorageTarget{Name: name, Preset: preset}
}

// ratios are the ratios of one interleaved run.
type ratios struct {
	b   *bench
	rep perf.StorageReport
}

// measure makes one interleaved run, prints it and keeps it for the ratios.
func measure(b *bench, o perf.StorageOptions) (*ratios, error) {
	o.Repeat, o.Seed, o.Dir, o.Peers = pick(b, 5, 1), 1, b.scratch, peerPrograms
	if o.Bytes == 0 {
		o.Bytes = pick[int64](b, 300e6, 20e6)
	}
	o.Command = func(ctx context.Context, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, b.gobag.Path, args...)
	}
	rep, err := perf.RunStorage(b.ctx, o)
	if err != nil {
		return nil, err
	}
	if err := rep.WriteText(os.Stdout); err != nil {
		return nil, err
	}
	for _, c := range rep.Failed() {
		b.figure(false, c.Name(), "runs", "%s", firstLine(c.Error))
	}
	return &ratios{b, rep}, nil
}

// Figures of a run.
var (
	speed = func(c *perf.StorageCell, r perf.StorageResult) float64 {
		return float64(c.Size) * float64(r.Messages) / max(r.Seconds, 1e-9)
	}
	cpuTime = func(_ *perf.StorageCell, r perf.StorageResult) float64 { return max(r.CPUSeconds, 1e-6) }
	onDisk  = func(_ *perf.StorageCell, r perf.StorageResult) float64 { return float64(r.DiskBytes) }
)

// of is the median over the repeats of a figure of one target by that of another in the same repeat; false where one of
// them was not measured.
func (r *ratios) of(step perf.StorageStep, size int, x, y perf.StorageTarget, figure func(*perf.StorageCell, perf.StorageResult) float64) (float64, bool) {
	a, c := r.rep.Find(x, step, size), r.rep.Find(y, step, size)
	if a == nil || c == nil {
		return 0, false
	}
	var v []float64
	for i := range min(len(a.Runs), len(c.Runs)) {
		v = append(v, figure(a, a.Runs[i])/figure(c, c.Runs[i]))
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2, true
}

// atLeast is a figure: x by y, at least bar (0: only printed).
func (r *ratios) atLeast(what string, step perf.StorageStep, size int, x, y perf.StorageTarget, bar float64) {
	r.judge(what+" MB/s", step, size, x, y, speed, func(v float64) bool { return v >= bar }, "≥", bar)
}

// cpuAtMost is a figure: CPU time of x by that of y, at most bar (0: only printed).
func (r *ratios) cpuAtMost(what string, step perf.StorageStep, size int, x, y perf.StorageTarget, bar float64) {
	r.judge(what+" CPU", step, size, x, y, cpuTime, func(v float64) bool { return bar == 0 || v <= bar }, "≤", bar)
}

func (r *ratios) judge(what string, step perf.StorageStep, size int, x, y perf.StorageTarget, figure func(*perf.StorageCell, perf.StorageResult) float64,
	ok func(float64) bool, sign string, bar float64) {
	name := fmt.Sprintf("%s %s, %s ÷ %s", what, perf.SizeText(int64(size)), x, y)
	text := fmt.Sprintf("%s %g", sign, bar)
	if bar == 0 {
		text = "printed"
	}
	v, measured := r.of(step, size, x, y, figure)
	if !measured {
		r.b.figure(false, name, text, "not measured")
		return
	}
	r.b.figure(ok(v), name, text, "%.2f", v)
}

// missing says whether a format is not judged, or is not there: the latter is a failed figure.
func missing(b *bench, name string) bool {
	if !b.judges(name) {
		b.note("%s is left out", name)
		return true
	}
	if _, err := plugin.Lookup(name); err != nil {
		b.figure(false, name, "there is such a format", "no")
		return true
	}
	return false
}

var middle = []int{10_000, 100_000, 1_000_000}

// checkLevelDBRatios measures LevelDB beside C++ LevelDB with its defaults, both batched.
func checkLevelDBRatios(b *bench) error {
	if missing(b, "leveldb") {
		return nil
	}
	resilient, fast, sqlite := ours("leveldb", "resilient"), ours("leveldb", "fast"), ours("sqlite3", "resilient")
	unsynced := ours("leveldb", "fast+sync_tables=false")
	r, err := measure(b, perf.StorageOptions{Targets: []perf.StorageTarget{cppLevelDB, resilient, fast, unsynced, sqlite, ours("sqlite3", "fast")},
		Sizes: append([]int{100}, middle...), Steps: []perf.StorageStep{stepWrite, stepRead, stepReadRand}})
	if err != nil {
		return err
	}
	for _, size := range middle {
		r.atLeast("write", stepWrite, size, resilient, cppLevelDB, 1.5)
		r.cpuAtMost("write", stepWrite, size, resilient, cppLevelDB, 0.7)
		r.atLeast("write", stepWrite, size, fast, cppLevelDB, 2.3)
		r.cpuAtMost("write", stepWrite, size, fast, cppLevelDB, 0.4)
		r.atLeast("write", stepWrite, size, unsynced, cppLevelDB, 3.5)
		r.atLeast("sequential read", stepRead, size, resilient, cppLevelDB, 1)
		r.atLeast("random read", stepReadRand, size, resilient, cppLevelDB, 0.8)
		r.atLeast("random read", stepReadRand, size, resilient, sqlite, 0)
		r.amplification(fast, size, 1.05)
	}
	for _, t := range []perf.StorageTarget{resilient, fast} {
		r.atLeast("write", stepWrite, 100, t, cppLevelDB, 0.8)
	}
	for _, size := range []int{100, 10_000} {
		r.ahead(size, resilient, sqlite)
		r.ahead(size, fast, ours("sqlite3", "fast"))
	}
	if r, err = measure(b, perf.StorageOptions{Targets: []perf.StorageTarget{cppLevelDB, resilient}, Sizes: append([]int{100}, middle...),
		Steps: []perf.StorageStep{stepWriteRand}}); err != nil {
		return err
	}
	for _, size := range append([]int{100}, middle...) {
		r.atLeast("random write", stepWriteRand, size, resilient, cppLevelDB, 1)
	}
	// What is paced takes its time: only what is judged, at two sizes.
	paced := []int{10_000, 1_000_000}
	if r, err = measure(b, perf.StorageOptions{Targets: []perf.StorageTarget{{Name: "null"}, resilient, fast}, Sizes: paced,
		Steps: []perf.StorageStep{stepPaced}}); err != nil {
		return err
	}
	for _, size := range paced {
		r.stall(fast, size, 10*time.Millisecond)
		r.stall(resilient, size, 20*time.Millisecond)
	}
	return nil
}

// ahead is a figure: the pure writer of LevelDB is ahead of that of SQLite, or the docs say why not.
func (r *ratios) ahead(size int, x, y perf.StorageTarget) {
	doc, err := os.ReadFile("docs/formats/leveldb.md")
	explained := err == nil && strings.Contains(string(doc), "## Beside our SQLite")
	r.judge("pure writer MB/s", stepWrite, size, x, y, speed, func(v float64) bool { return v >= 1 || explained }, "in docs/formats/leveldb.md why not, or ≥", 1)
}

func (r *ratios) amplification(t perf.StorageTarget, size int, bar float64) {
	name := fmt.Sprintf("bytes written per byte %s, %s", perf.SizeText(int64(size)), t)
	c := r.rep.Find(t, stepWrite, size)
	if c == nil {
		r.b.figure(false, name, fmt.Sprintf("≤ %g", bar), "not measured")
		return
	}
	r.b.figure(c.Amplification() <= bar, name, fmt.Sprintf("≤ %g", bar), "%.3f", c.Amplification())
}

// stall is the wait of messages at Writer.Write when paced, from when they were due, less that of a target that does
// nothing.
func (r *ratios) stall(t perf.StorageTarget, size int, bar time.Duration) {
	name := fmt.Sprintf("wait at Write p99.9, 50 MB/s of %s, %s", perf.SizeText(int64(size)), t)
	c, bare := r.rep.Find(t, stepPaced, size), r.rep.Find(perf.StorageTarget{Name: "null"}, stepPaced, size)
	if c == nil || bare == nil {
		r.b.figure(false, name, "≤ "+ms(bar), "not measured")
		return
	}
	p999 := func(r perf.StorageResult) time.Duration { return r.WaitP999 }
	d := max(0, c.Wait(p999)-bare.Wait(p999))
	r.b.figure(d <= bar, name, "≤ "+ms(bar)+" beside a writer that does nothing", "%s (with it %s)", ms(d), ms(c.Wait(p999)))
}

// checkSQLiteRatios measures SQLite beside C SQLite with rosbag2's schema.
func checkSQLiteRatios(b *bench) error {
	resilient := ours("sqlite3", "resilient")
	r, err := measure(b, perf.StorageOptions{Targets: []perf.StorageTarget{appendLog, cSQLite, cSQLiteEqual, resilient, ours("sqlite3", "fast")}, Sizes: middle,
		Steps: []perf.StorageStep{stepWrite, stepRead, stepReadRand}})
	if err != nil {
		return err
	}
	for _, size := range middle {
		r.atLeast("write", stepWrite, size, resilient, cSQLite, 3)
		r.cpuAtMost("write", stepWrite, size, resilient, cSQLite, 0.4)
		r.cpuAtMost("write, equal pragmas", stepWrite, size, resilient, cSQLiteEqual, 1.3)
		r.atLeast("sequential read", stepRead, size, resilient, cSQLite, 0)
		r.atLeast("random read", stepReadRand, size, resilient, cSQLite, 0)
	}
	return nil
}

// checkMCAPRatios measures MCAP with CRC beside the append log, and seeks.
func checkMCAPRatios(b *bench) error {
	if missing(b, "mcap") {
		return nil
	}
	resilient, fast := ours("mcap", "resilient"), ours("mcap", "fast")
	r, err := measure(b, perf.StorageOptions{Targets: []perf.StorageTarget{appendLog, cppMCAP, resilient, fast}, Sizes: middle, Steps: []perf.StorageStep{stepWrite, stepRead, stepReadRand}})
	if err != nil {
		return err
	}
	r.atLeast("write", stepWrite, 1_000_000, resilient, appendLog, 0.7)
	r.atLeast("write", stepWrite, 10_000, resilient, appendLog, 0.8)
	for _, size := range middle {
		r.cpuAtMost("write", stepWrite, size, resilient, cppMCAP, 1)
		c := r.rep.Find(resilient, stepReadRand, size)
		name := "seek p50, " + perf.SizeText(int64(size))
		if c == nil {
			b.figure(false, name, "≤ 100 µs", "not measured")
			continue
		}
		d := c.Wait(func(r perf.StorageResult) time.Duration { return r.WaitP50 })
		bar := "≤ 100 µs"
		if size != 10_000 {
			bar = "printed"
		}
		b.figure(d <= 100*time.Microsecond || size != 10_000, name, bar, "%.1f µs", float64(d)/1e3)
	}
	return nil
}

// checkBlobs measures 100,000 blobs of 10,000 bytes, in the page cache.
func checkBlobs(b *bench) error {
	const size = 10_000
	targets := []perf.StorageTarget{files, filesRaw}
	for _, name := range formats(b) {
		targets = append(targets, ours(name, "resilient"))
	}
	r, err := measure(b, perf.StorageOptions{Targets: targets, Sizes: []int{size}, Bytes: pick[int64](b, 100_000*size, 5_000*size),
		Steps: []perf.StorageStep{stepWrite, stepRead, stepEach, stepReadRand}})
	if err != nil {
		return err
	}
	random := map[string]float64{"sqlite3": 1.35, "leveldb": 0.6}
	for _, t := range targets[2:] {
		r.atLeast("blobs in sequence", stepRead, size, t, files, 1.5)
		r.atLeast("blobs in sequence", stepRead, size, t, filesRaw, 0)
		r.atLeast("blobs in sequence, each asked for", stepEach, size, t, files, 0)
		r.atLeast("blobs at random", stepReadRand, size, t, files, random[t.Name])
		r.atLeast("blobs at random", stepReadRand, size, t, filesRaw, 0)
		bar := 0.0
		if random[t.Name] > 0 {
			bar = 0.85
		}
		r.judge("disk space of blobs", stepWrite, size, t, files, onDisk, func(v float64) bool { return bar == 0 || v <= bar }, "≤", bar)
	}
	return nil
}
