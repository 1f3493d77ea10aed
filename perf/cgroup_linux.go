package perf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cgroupRoot is where control groups are mounted: version 2 as a whole, version 1 with a directory for each controller.
const cgroupRoot = "/sys/fs/cgroup"

// quotaPeriod is the period of the CPU quota: short, so that a process that has used its share waits for milliseconds.
const quotaPeriod = 20 * time.Millisecond

// makeGroups makes the control groups that confine is about.
func (e *emulation) makeGroups() error {
	quota := strconv.FormatInt(int64(e.cpu*float64(quotaPeriod.Microseconds())), 10)
	period := strconv.FormatInt(quotaPeriod.Microseconds(), 10)
	memory := strconv.FormatInt(e.d.Memory, 10)
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		// Controllers reach a group when all above have them switched on: directly below the root nobody else is in the way.
		if err := os.WriteFile(filepath.Join(cgroupRoot, "cgroup.subtree_control"), []byte("+cpu +memory"), 0); err != nil {
			return fmt.Errorf("control groups: the controllers cpu and memory cannot be switched on: %w", err)
		}
		settings := [][2]string{{"cpu.max", quota + " " + period}}
		if e.d.Memory > 0 {
			settings = append(settings, [2]string{"memory.max", memory})
		}
		return e.makeGroup(cgroupRoot, settings)
	}
	if err := e.makeGroup(filepath.Join(cgroupRoot, "cpu"), [][2]string{{"cpu.cfs_period_us", period}, {"cpu.cfs_quota_us", quota}}); err != nil {
		return err
	}
	if e.d.Memory == 0 {
		return nil
	}
	return e.makeGroup(filepath.Join(cgroupRoot, "memory"), [][2]string{{"memory.limit_in_bytes", memory}})
}

// makeGroup makes one group in a hierarchy and sets its limits.
func (e *emulation) makeGroup(root string, settings [][2]string) error {
	dir := filepath.Join(root, fmt.Sprintf("gobag-perf-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("control group: %w", err)
	}
	e.undo = append(e.undo, func() error { return removeGroup(dir) })
	for _, s := range settings {
		if err := os.WriteFile(filepath.Join(dir, s[0]), []byte(s[1]), 0); err != nil {
			return fmt.Errorf("control group: %s: %w", s[0], err)
		}
	}
	e.groups = append(e.groups, filepath.Join(dir, "cgroup.procs"))
	return nil
}

// confine puts a process under the limits.
func (e *emulation) confine(pid int) error {
	for _, procs := range e.groups {
		err := os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0)
		if err != nil && !errors.Is(err, syscall.ESRCH) { // one that has ended already says itself why
			return fmt.Errorf("control group: %s: %w", strings.TrimPrefix(procs, cgroupRoot), err)
		}
	}
	return nil
}

// removeGroup removes a group; its processes may be ending still.
func removeGroup(dir string) error {
	var err error
	for range 50 {
		if err = os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
