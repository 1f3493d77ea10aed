//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// MountImage mounts a copy of a disk's image as a machine would after the power cut: its journal is replayed. close
// unmounts and removes the mount point, not the image.
func MountImage(image string) (dir string, close func() error, err error) {
	dir, err = os.MkdirTemp("", fmt.Sprintf("%s%d-image-", namePrefix, os.Getpid()))
	if err != nil {
		return "", nil, err
	}
	loop, err := attachLoop(image)
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(dir))
	}
	if err := run("mount", "-t", "ext4", loop, dir); err != nil {
		return "", nil, errors.Join(err, run("losetup", "-d", loop), os.Remove(dir))
	}
	return dir, func() error {
		return errors.Join(unmount(dir), run("losetup", "-d", loop), os.Remove(dir))
	}, nil
}

// mounted says whether something is mounted at dir.
func mounted(dir string) bool {
	b, err := os.ReadFile("/proc/self/mounts")
	return err == nil && strings.Contains(string(b), " "+dir+" ")
}

// unmount waits for what still uses the mount: writeback, or a process that is just ending.
func unmount(dir string) error { return patiently(func() error { return run("umount", dir) }) }

// patiently tries for half a minute and returns the last error.
func patiently(f func() error) error {
	var err error
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if err = f(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// sweepDisks unmounts and removes disks whose process is gone.
func sweepDisks() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), namePrefix+"*"))
	for _, work := range dirs {
		if !orphan(filepath.Base(work)) {
			continue
		}
		for _, dir := range []string{filepath.Join(work, "mnt"), work} {
			if mounted(dir) {
				_ = run("fsfreeze", "-u", dir)
				_ = unmount(dir)
			}
		}
		out, _ := exec.Command("losetup", "-l", "-n", "-O", "NAME,BACK-FILE").Output()
		for _, line := range strings.Split(string(out), "\n") {
			if f := strings.Fields(line); len(f) >= 2 && strings.HasPrefix(f[1], work+"/") {
				_ = run("losetup", "-d", f[0])
			}
		}
		if fuse := filepath.Join(work, "fuse"); mounted(fuse) {
			_ = run("fusermount3", "-u", "-z", fuse)
		}
		_ = os.RemoveAll(work)
	}
}
