package perf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/recorder"
)

// emulation is a device while a run lasts.
type emulation struct {
	d      Device
	cpu    float64 // cores
	source string
	rate   float64 // of the disk, bytes per second, as measured
	held   float64 // bytes that the kernel really holds back for a program that only writes
	groups []string
	undo   []func() error // last first
}

// start confines what follows to the device; span is how long the longest cell lasts. Without a device nothing happens.
func (d Device) start(ctx context.Context, dir string, span time.Duration) (e *emulation, err error) {
	e = &emulation{d: d}
	if d.Name == "" {
		return e, nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("device %s: %w", d.Name, err), e.close())
		}
	}()
	if err := d.able(); err != nil {
		return e, err
	}
	if e.cpu, e.source, err = d.cores(ctx); err != nil {
		return e, err
	}
	if err := e.makeGroups(); err != nil {
		return e, err
	}
	if d.Disk == nil {
		return e, nil
	}
	if err := e.limitDirtyPages(); err != nil {
		return e, err
	}
	return e, e.measureDisk(ctx, dir, min(span, heldTime))
}

// diskTools are the programs that an emulated disk is made of, with their Debian packages.
var diskTools = [][2]string{{"nbdkit", "nbdkit"}, {"nbdfuse", "libnbd-bin"}, {"fusermount3", "fuse3"}, {"losetup", "util-linux or mount"}, {"mount", "mount"},
	{"umount", "mount"}, {"mkfs.ext4", "e2fsprogs"}}

// able says in one error everything that the machine lacks for the emulation.
func (d Device) able() error {
	var lacks []string
	if os.Geteuid() != 0 {
		lacks = append(lacks, "root")
	}
	if _, err := os.Stat(cgroupRoot); err != nil {
		lacks = append(lacks, "control groups at "+cgroupRoot)
	}
	if d.Disk != nil {
		for _, t := range diskTools {
			if _, err := exec.LookPath(t[0]); err != nil {
				lacks = append(lacks, fmt.Sprintf("the program %s (Debian package %s)", t[0], t[1]))
			}
		}
		for _, dev := range []string{"/dev/fuse", "/dev/loop-control"} {
			if _, err := os.Stat(dev); err != nil {
				lacks = append(lacks, "the kernel's "+dev)
			}
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("emulation needs %s", strings.Join(lacks, ", "))
	}
	return nil
}

// cores is how many of this machine's cores the board is worth, by a program that was run on both.
func (d Device) cores(ctx context.Context) (cores float64, source string, err error) {
	if d.CPU > 0 {
		return min(d.CPU, float64(runtime.NumCPU())), "as asked for", nil
	}
	board, unit := d.SevenZip, "7-zip MIPS"
	host, err := sevenZip(ctx)
	if err != nil {
		var second error
		board, unit = d.Sysbench, "sysbench events/s"
		if host, second = sysbench(ctx); second != nil {
			return 0, "", fmt.Errorf("the speed of this machine's CPU: neither 7-zip (%w) nor sysbench (%w) could be run: install p7zip-full or sysbench, or say the number of cores", err, second)
		}
	}
	cores = board / host
	source = fmt.Sprintf("board %.0f, one core here %.0f %s; %s", board, host, unit, d.Source)
	if n := float64(runtime.NumCPU()); cores > n {
		return n, source + fmt.Sprintf("; the board is worth %.2f cores, this machine has %g", cores, n), nil
	}
	return cores, source, nil
}

// totalMIPS finds the rating for a whole core's time, behind the share of a core that 7-zip got and before the rating for
// that: others may be busy too.
var totalMIPS = regexp.MustCompile(`(?m)^Tot:\s+\d+\s+(\d+)\s+\d+\s*$`)

// sevenZip is 7-zip's rating of one thread that has a core for itself, MIPS.
func sevenZip(ctx context.Context) (float64, error) {
	for _, name := range []string{"7z", "7zz", "7za", "7zr"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(ctx, path, "b", "1", "-mmt1", "-md22").Output()
		if err != nil {
			return 0, fmt.Errorf("%s b: %w", name, err)
		}
		return numberIn(totalMIPS, out)
	}
	return 0, errors.New("not installed")
}

var eventsPerSecond = regexp.MustCompile(`events per second:\s+([0-9.]+)`)

// sysbench is its cpu rating of one thread, events per second.
func sysbench(ctx context.Context) (float64, error) {
	path, err := exec.LookPath("sysbench")
	if err != nil {
		return 0, errors.New("not installed")
	}
	out, err := exec.CommandContext(ctx, path, "cpu", "--threads=1", "--time=4", "--cpu-max-prime=10000", "run").Output()
	if err != nil {
		return 0, fmt.Errorf("sysbench cpu: %w", err)
	}
	return numberIn(eventsPerSecond, out)
}

func numberIn(re *regexp.Regexp, out []byte) (float64, error) {
	m := re.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("no figure in its output %.200q", out)
	}
	v, err := strconv.ParseFloat(string(m[1]), 64)
	if err == nil && v <= 0 {
		err = fmt.Errorf("rating %g", v)
	}
	return v, err
}

// info describes the device for the report; nil without one.
func (e *emulation) info() *DeviceInfo {
	if e.d.Name == "" {
		return nil
	}
	i := &DeviceInfo{Emulated: true, Name: e.d.Name, Board: e.d.Board, CPU: e.cpu, CPUSource: e.source, Memory: e.d.Memory, DiskRate: e.rate, Held: e.held, Limits: emulationNote}
	if l := e.d.Disk; l != nil {
		i.DiskLimit, i.WriteDelay, i.Stalls, i.Dirty, i.Background = l.Rate, int64(l.WriteDelay), l.Stalls, l.Dirty, l.Background
	}
	return i
}

// kernelBytes is what the kernel may hold back of what is written.
func (e *emulation) kernelBytes() int64 {
	if e.d.Disk == nil {
		return 0
	}
	return e.d.Disk.Dirty
}

// cache is the recorder's cache within the device's memory; 0 asks for its default.
func (e *emulation) cache(asked int64) int64 {
	if asked > 0 {
		return asked
	}
	size := recorder.DefaultCacheSize()
	if e.d.Memory > 0 {
		size = min(size, e.d.Memory/20)
	}
	return size
}

// dirtySettings are the kernel's limits of dirty pages. Of each pair one is 0: setting the one clears the other.
var dirtySettings = [][2]string{{"dirty_background_bytes", "dirty_background_ratio"}, {"dirty_bytes", "dirty_ratio"}}

// limitDirtyPages sets the kernel's limits of dirty pages, for the whole machine: else its page cache hides the disk.
func (e *emulation) limitDirtyPages() error {
	for i, value := range []int64{e.d.Disk.Background, e.d.Disk.Dirty} {
		for _, name := range dirtySettings[i] {
			path := "/proc/sys/vm/" + name
			before, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if strings.TrimSpace(string(before)) != "0" {
				e.undo = append(e.undo, func() error { return os.WriteFile(path, before, 0) })
			}
		}
		if err := os.WriteFile("/proc/sys/vm/"+dirtySettings[i][0], []byte(strconv.FormatInt(value, 10)), 0); err != nil {
			return err
		}
	}
	return nil
}

// How long the disk's speed is measured, and at most what the kernel holds back: it lets a device have the more dirty pages
// the longer it has been written to.
const (
	measureTime = 8 * time.Second
	heldTime    = 30 * time.Second
)

// measureDisk writes to a disk of the device: how fast it is, syncs included, and how much more than that a program that only
// writes gets rid of within a time, since the kernel holds it back. The limit of dirty pages is what the kernel may hold
// back; it slows writers down before.
func (e *emulation) measureDisk(ctx context.Context, dir string, held time.Duration) (err error) {
	work, err := os.MkdirTemp(dir, "disk-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	size := int64(float64(e.d.Disk.Rate) * measureTime.Seconds())
	limits := *e.d.Disk
	limits.Stalls = 0
	whole := size + int64(float64(e.d.Disk.Rate)*2*heldTime.Seconds()) + e.d.Disk.Dirty + 1<<30
	d, err := newSlowDisk(work, limits, whole, whole)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if e.rate, err = writeRate(ctx, filepath.Join(d.dir(), "rate"), e.d.Disk.Rate, size); err != nil {
		return err
	}
	began := time.Now()
	n, err := writeFor(ctx, filepath.Join(d.dir(), "held"), held)
	e.held = max(0, float64(n)-e.rate*time.Since(began).Seconds())
	return err
}

// newDisk makes the place for a cell's bag.
func (e *emulation) newDisk(work string, l Load) (*place, error) {
	if e.d.Disk == nil {
		return &place{dir: work}, nil
	}
	size := int64(1.4*l.Bytes()) + 2<<30
	written := size
	if l.Duration > 0 { // and some time to its end
		written = min(size, int64(float64(e.d.Disk.Rate)*(l.Duration.Seconds()+60)))
	}
	d, err := newSlowDisk(work, *e.d.Disk, size, written)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", e.d.Name, err)
	}
	return &place{dir: d.dir(), disk: d}, nil
}

// close undoes everything. Idempotent.
func (e *emulation) close() error {
	var errs []error
	for i := len(e.undo) - 1; i >= 0; i-- {
		errs = append(errs, e.undo[i]())
	}
	e.undo = nil
	return errors.Join(errs...)
}
