package perf

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// slowDisk is an ext4 file system of its own on a device of limited speed:
//
//	ext4 ─► loop device ─► nbdfuse ─► nbdkit with its rate and delay filters ─► image file
type slowDisk struct {
	work            string
	nbdkit, nbdfuse *exec.Cmd
	loop            string // of the slow device, then of the image

	end, ended chan struct{} // of the stalls
	mu         sync.Mutex
	log        []Stall // Seconds of the wall clock
}

// newSlowDisk makes a disk of a size with its parts in work; about written bytes will be written to it. Close it.
func newSlowDisk(work string, l DiskLimits, size, written int64) (d *slowDisk, err error) {
	d = &slowDisk{work: work, end: make(chan struct{}), ended: make(chan struct{})}
	close(d.ended) // until there are stalls
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("emulated disk: %w", err), d.close())
		}
	}()
	for _, dir := range []string{d.dir(), d.path("fuse"), d.path("memory")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return d, err
		}
	}
	if err := d.keepImage(size, written); err != nil {
		return d, err
	}
	if err := emptyImage(d.image(), size); err != nil {
		return d, err
	}
	if err := d.serve(l); err != nil {
		return d, err
	}
	if err := d.mount(d.path("fuse/nbd")); err != nil {
		return d, err
	}
	if l.Stalls > 0 {
		d.ended = make(chan struct{})
		go d.stall(l)
	}
	return d, nil
}

func (d *slowDisk) path(name string) string { return filepath.Join(d.work, name) }

// dir is where it is mounted.
func (d *slowDisk) dir() string { return d.path("mnt") }

// image is the file that holds the disk's content.
func (d *slowDisk) image() string { return d.path("memory/image") }

// keepImage puts the image into memory where there is room for twice what will be written to it. On this machine's own disk it has dirty
// pages of its own: they take room of the limit that is meant for the slow device, and of what the kernel lets a device
// have by its share of all that is written back.
func (d *slowDisk) keepImage(size, written int64) error {
	free, err := memoryAvailable()
	if err != nil || free < 2*written {
		return err
	}
	return runTool("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", size+64<<20), "tmpfs", d.path("memory"))
}

// memoryAvailable is what the kernel says is available without swapping, bytes.
func memoryAvailable() (int64, error) {
	for line := range strings.Lines(readText("/proc/meminfo")) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemAvailable:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo does not say what is available")
}

// emptyImage makes a file with an empty file system that has nothing left to set up while it is used.
func emptyImage(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	size = (size + 1<<20 - 1) &^ (1<<20 - 1) // whole blocks
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	return runTool("mkfs.ext4", "-q", "-F", "-N", "16384", "-E", "lazy_itable_init=0,lazy_journal_init=0", path)
}

// serve starts the two programs that make the image a slow file.
func (d *slowDisk) serve(l DiskLimits) (err error) {
	socket := d.path("nbd.sock")
	// The rate is in bits. A bucket of half a second lets short bursts through, as a card's own buffer does.
	d.nbdkit, err = startTool("nbdkit", "-f", "-U", socket, "--filter=rate", "--filter=delay", "file", d.image(),
		fmt.Sprintf("rate=%d", 8*l.Rate), "burstiness=0.5", fmt.Sprintf("delay-write=%dms", l.WriteDelay.Milliseconds()))
	if err != nil {
		return err
	}
	if err := appears(socket, d.nbdkit); err != nil {
		return err
	}
	if d.nbdfuse, err = startTool("nbdfuse", d.path("fuse"), "--unix", socket); err != nil {
		return err
	}
	return appears(d.path("fuse/nbd"), d.nbdfuse)
}

// mount mounts a file that holds a file system.
func (d *slowDisk) mount(file string) error {
	cmd := exec.Command("losetup", "-f", "--show", file)
	cmd.Stderr = new(tail)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("losetup: %w: %v", err, cmd.Stderr)
	}
	d.loop = strings.TrimSpace(string(out))
	return runTool("mount", "-t", "ext4", d.loop, d.dir())
}

// stall stops the device at random moments.
func (d *slowDisk) stall(l DiskLimits) {
	defer close(d.ended)
	every := time.Minute / time.Duration(l.Stalls)
	for {
		if !d.wait(time.Duration(rand.Int64N(int64(2 * every)))) {
			return
		}
		length := l.StallMin + time.Duration(rand.Int64N(int64(l.StallMax-l.StallMin)+1))
		s := Stall{Seconds: float64(time.Now().UnixNano()) / 1e9, For: length.Seconds()}
		_ = d.nbdkit.Process.Signal(syscall.SIGSTOP) // one that has ended shows in the cell
		goOn := d.wait(length)
		_ = d.nbdkit.Process.Signal(syscall.SIGCONT)
		d.mu.Lock()
		d.log = append(d.log, s)
		d.mu.Unlock()
		if !goOn {
			return
		}
	}
}

// wait returns false when the stalls are to end.
func (d *slowDisk) wait(t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.end:
		return false
	}
}

// stallLog are the stalls so far, by the time since start (wall clock, ns).
func (d *slowDisk) stallLog(start int64) []Stall {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := append([]Stall(nil), d.log...)
	for i := range list {
		list[i].Seconds -= float64(start) / 1e9
	}
	return list
}

func (d *slowDisk) endStalls() {
	select {
	case <-d.end:
	default:
		close(d.end)
	}
	<-d.ended
}

// cut takes the power off the disk and mounts its image as a machine would afterwards. What had not reached the device is
// gone.
func (d *slowDisk) cut() (dir string, err error) {
	d.endStalls()
	if err := d.detach(); err != nil {
		return "", fmt.Errorf("emulated disk: cut its power: %w", err)
	}
	if err := d.mount(d.image()); err != nil {
		return "", fmt.Errorf("emulated disk: mount after the cut: %w", err)
	}
	return d.dir(), nil
}

// detach takes the power off and apart everything above the image. What the device has answered for is in the image; what
// the kernel still holds is lost at once instead of being written slowly.
func (d *slowDisk) detach() error {
	var errs []error
	if d.nbdkit != nil {
		_ = d.nbdkit.Process.Kill() // it may have ended
	}
	if isMounted(d.dir()) {
		errs = append(errs, patiently(func() error { return runTool("umount", d.dir()) }))
	}
	if d.loop != "" {
		errs = append(errs, patiently(d.freeLoop))
		d.loop = ""
	}
	if d.nbdfuse != nil {
		if isMounted(d.path("fuse")) {
			// The loop device lets go of the file in the kernel's own time.
			errs = append(errs, patiently(func() error { return runTool("fusermount3", "-u", d.path("fuse")) }))
		}
		endTool(d.nbdfuse)
		d.nbdfuse = nil
	}
	if d.nbdkit != nil {
		endTool(d.nbdkit)
		d.nbdkit = nil
	}
	return errors.Join(errs...)
}

// freeLoop detaches the loop device. One that is still in use somewhere is only marked for it, and may stay for good when
// that somewhere goes in an unlucky order: it is free when the kernel has no file for it any more.
func (d *slowDisk) freeLoop() error {
	err := runTool("losetup", "-d", d.loop)
	_, left := os.Stat("/sys/block/" + filepath.Base(d.loop) + "/loop")
	switch {
	case errors.Is(left, os.ErrNotExist):
		return nil
	case err == nil:
		err = fmt.Errorf("%s is still in use", d.loop)
	}
	return err
}

// close removes everything of the disk. Idempotent.
func (d *slowDisk) close() error {
	if d.work == "" {
		return nil
	}
	d.endStalls()
	err := d.detach()
	if isMounted(d.path("memory")) {
		err = errors.Join(err, patiently(func() error { return runTool("umount", d.path("memory")) }))
	}
	for _, name := range []string{"memory/image", "memory", "nbd.sock", "mnt", "fuse"} {
		if e := os.Remove(d.path(name)); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	d.work = ""
	return err
}

func runTool(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}

// startTool starts a program that dies with us and hears no Ctrl-C.
func startTool(name string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = new(tail)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return cmd, nil
}

// endTool ends a program that should be ending by itself, with patience.
func endTool(cmd *exec.Cmd) {
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = cmd.Process.Signal(s)
		select {
		case <-done:
			return
		case <-time.After(3 * time.Second):
		}
	}
	<-done
}

// appears waits for a file that a program makes.
func appears(path string, by *exec.Cmd) error {
	for range 1000 {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("%s: %s is not there after 5 s: %v", filepath.Base(by.Path), filepath.Base(path), by.Stderr)
}

// patiently tries for half a minute and returns the last error.
func patiently(f func() error) error {
	var err error
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if err = f(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func isMounted(dir string) bool { return strings.Contains(readText("/proc/self/mounts"), " "+dir+" ") }
