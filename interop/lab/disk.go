//go:build linux

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Disk is an ext4 file system of its own, mounted at Dir, that can freeze and lose power. It needs root.
//
//	ext4 ─► loop device ─► nbdfuse ─► nbdkit ─► image file
type Disk struct {
	Dir string // where it is mounted

	work, image, loop string
	nbdkit, nbdfuse   *exec.Cmd
	frozen, paused    bool
}

// DiskOptions configure NewDisk.
type DiskOptions struct {
	Size int64 // bytes
	// WriteCache gives the device a volatile cache of its own: what was not flushed is not in the image, as with a disk
	// that acknowledges early. Otherwise the image has every write that left the kernel.
	WriteCache bool

	Rate int64 // bytes per second that the device takes at most; 0 = as many as it can
}

// NewDisk makes a disk below the system's folder for temporary files. Close it.
func NewDisk(o DiskOptions) (d *Disk, err error) {
	for _, tool := range []string{"nbdkit", "nbdfuse", "fusermount3", "losetup", "mkfs.ext4", "mount", "fsfreeze"} {
		if _, err := Tool(tool); err != nil {
			return nil, err
		}
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("make disk: needs root")
	}
	work, err := os.MkdirTemp("", fmt.Sprintf("%s%d-disk-", namePrefix, os.Getpid()))
	if err != nil {
		return nil, err
	}
	d = &Disk{Dir: filepath.Join(work, "mnt"), work: work, image: filepath.Join(work, "disk.img")}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	for _, dir := range []string{d.Dir, d.fuseDir()} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	if err := makeImage(d.image, o.Size); err != nil {
		return nil, err
	}
	if err := d.serve(o); err != nil {
		return nil, err
	}
	if d.loop, err = attachLoop(filepath.Join(d.fuseDir(), "nbd")); err != nil {
		return nil, err
	}
	if err := run("mount", "-t", "ext4", d.loop, d.Dir); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Disk) fuseDir() string { return filepath.Join(d.work, "fuse") }

func makeImage(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	return run("mkfs.ext4", "-q", "-F", path)
}

// serve starts the two processes that turn the image into a file whose flushes they see.
func (d *Disk) serve(o DiskOptions) error {
	socket := filepath.Join(d.work, "nbd.sock")
	args := []string{"-f", "-U", socket}
	file := []string{"file", d.image}
	if o.WriteCache {
		args, file = append(args, "--filter=cache"), append(file, "cache=writeback")
	}
	if o.Rate > 0 {
		args, file = append(args, "--filter=rate"), append(file, fmt.Sprintf("rate=%d", 8*o.Rate))
	}
	args = append(args, file...)
	var err error
	if d.nbdkit, err = startQuiet("nbdkit", args...); err != nil {
		return err
	}
	if err := waitFor(5*time.Second, func() bool { _, err := os.Stat(socket); return err == nil }); err != nil {
		return fmt.Errorf("nbdkit: %w: %s", err, d.nbdkit.Stderr)
	}
	if d.nbdfuse, err = startQuiet("nbdfuse", d.fuseDir(), "--unix", socket); err != nil {
		return err
	}
	if err := waitFor(5*time.Second, func() bool { _, err := os.Stat(filepath.Join(d.fuseDir(), "nbd")); return err == nil }); err != nil {
		return fmt.Errorf("nbdfuse: %w: %s", err, d.nbdfuse.Stderr)
	}
	return nil
}

// startQuiet starts a program that dies with us.
func startQuiet(name string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = new(bytes.Buffer) // for what is wrong at the start; they chatter at the end
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return cmd, nil
}

func attachLoop(file string) (string, error) {
	out, err := exec.Command("losetup", "-f", "--show", file).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("losetup %s: %w: %s", file, err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), nil
}

// waitFor polls until ok or the timeout.
func waitFor(timeout time.Duration, ok func() bool) error {
	for deadline := time.Now().Add(timeout); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("not ready after %v", timeout)
		}
	}
	return nil
}

// Freeze stops every write to the file system until Thaw: writers block, as on a disk that hangs.
func (d *Disk) Freeze() error {
	if err := run("fsfreeze", "-f", d.Dir); err != nil {
		return err
	}
	d.frozen = true
	return nil
}

// Thaw ends Freeze. Nothing happens on a disk that is not frozen.
func (d *Disk) Thaw() error {
	if !d.frozen {
		return nil
	}
	d.frozen = false
	return run("fsfreeze", "-u", d.Dir)
}

// Pause stops the device below the file system: writes to the page cache go on until it is full, syncs block.
func (d *Disk) Pause() error {
	d.paused = true
	if err := d.nbdkit.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	// The process has stopped when all of its threads have: then nothing changes the image any more.
	return waitFor(5*time.Second, func() bool { return stopped(d.nbdkit.Process.Pid) })
}

// stopped says whether every thread of a process is stopped.
func stopped(pid int) bool {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(tasks) == 0 {
		return false
	}
	for _, t := range tasks {
		b, err := os.ReadFile(t)
		if err != nil {
			return false
		}
		// pid (name) state …; the name may contain anything
		after := b[strings.LastIndexByte(string(b), ')')+1:]
		if state := strings.TrimSpace(string(after)); state == "" || state[0] != 'T' {
			return false
		}
	}
	return true
}

// Resume ends Pause.
func (d *Disk) Resume() error {
	if !d.paused {
		return nil
	}
	d.paused = false
	return d.nbdkit.Process.Signal(syscall.SIGCONT)
}

// Snapshot copies the image as a power cut at this moment would leave it, and returns the monotonic time of the cut. The
// device stands still for the copy; open the result with MountImage.
func (d *Disk) Snapshot(path string) (cut int64, err error) {
	cut = Mono()
	if err := d.Pause(); err != nil {
		return 0, errors.Join(err, d.Resume())
	}
	err = run("cp", "--sparse=always", d.image, path)
	return cut, errors.Join(err, d.Resume())
}

// Close unmounts the disk and removes everything of it. Idempotent.
func (d *Disk) Close() error {
	if d.work == "" {
		return nil
	}
	var errs []error
	errs = append(errs, d.Thaw(), d.Resume())
	if mounted(d.Dir) {
		errs = append(errs, unmount(d.Dir))
	}
	if d.loop != "" {
		errs = append(errs, run("losetup", "-d", d.loop))
	}
	if d.nbdfuse != nil {
		errs = append(errs, detachFuse(d.fuseDir()))
		endProcess(d.nbdfuse)
	}
	if d.nbdkit != nil {
		endProcess(d.nbdkit)
	}
	errs = append(errs, os.RemoveAll(d.work))
	d.work = ""
	return errors.Join(errs...)
}

// detachFuse unmounts once the loop device has let go of the file: the kernel does that in its own time.
func detachFuse(dir string) error {
	return patiently(func() error {
		if !mounted(dir) {
			return nil
		}
		return run("fusermount3", "-u", dir)
	})
}

// endProcess ends a helper that should be ending by itself, with patience.
func endProcess(cmd *exec.Cmd) {
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
