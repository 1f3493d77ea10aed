package perf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFindDevice(t *testing.T) {
	for _, d := range append(Devices(), Device{}) {
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		if got, err := FindDevice(d.Name); err != nil || got.Name != d.Name {
			t.Error(got, err)
		}
	}
	if _, err := FindDevice("x"); err == nil || !strings.Contains(err.Error(), "none, rpi4-sd, rpi4-usb") {
		t.Error(err)
	}
	bad := Device{Name: "x", CPU: -1, Disk: &DiskLimits{Rate: 1, WriteDelay: time.Microsecond, Dirty: 1}}
	for _, want := range []string{"CPU and memory", "disk of 1 bytes", "whole milliseconds", "dirty bytes"} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// TestDeviceUnable: what is missing is said in one error.
func TestDeviceUnable(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Devices()[0].start(t.Context(), t.TempDir(), time.Second)
	for _, want := range []string{"device rpi4-sd: emulation needs", "the program nbdkit (Debian package nbdkit)", "fusermount3"} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v does not say %q in one line", err, want)
		}
	}
}

func TestCPURating(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	d := Device{SevenZip: 5480, Sysbench: 5901, Source: "somewhere"}
	if _, _, err := d.cores(t.Context()); err == nil || !strings.Contains(err.Error(), "p7zip-full or sysbench") {
		t.Error(err)
	}
	tool := func(name, output string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho '"+output+"'\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	tool("sysbench", "CPU speed:\n    events per second:  5901.0\n")
	if cores, source, err := d.cores(t.Context()); err != nil || cores != 1 || !strings.Contains(source, "sysbench events/s; somewhere") {
		t.Error(cores, source, err)
	}
	tool("7z", "Avr:             50   3300   1650\nTot:             50   10960   5480\n")
	if cores, source, err := d.cores(t.Context()); err != nil || cores != 0.5 || !strings.Contains(source, "board 5480, one core here 10960 7-zip MIPS") {
		t.Error(cores, source, err)
	}
	tool("7z", "out of memory")
	if cores, _, err := d.cores(t.Context()); err != nil || cores != 1 {
		t.Error("no figure of 7-zip: sysbench's", cores, err)
	}
	d.CPU = 0.25
	if cores, source, err := d.cores(t.Context()); err != nil || cores != 0.25 || source != "as asked for" {
		t.Error(cores, source, err)
	}
}

// card is a device that this machine can emulate; the test is skipped where it cannot.
func card(t *testing.T) Device {
	t.Helper()
	d := Device{Name: "test", CPU: 0.5, Memory: 256 << 20, Disk: &DiskLimits{Rate: 20e6, WriteDelay: time.Millisecond, Dirty: 64e6, Background: 16e6}}
	if testing.Short() {
		t.Skip("takes seconds")
	}
	if err := d.able(); err != nil {
		t.Skip(err)
	}
	return d
}

// TestSlowDisk: what is synced survives the cut of its power, the disk has its speed, and nothing of it is left.
func TestSlowDisk(t *testing.T) {
	limits := *card(t).Disk
	limits.Stalls, limits.StallMin, limits.StallMax = 60, 50*time.Millisecond, 50*time.Millisecond
	work := t.TempDir()
	d, err := newSlowDisk(work, limits, 300_000_001, 300_000_001)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	start := time.Now().UnixNano()
	rate, err := writeRate(t.Context(), filepath.Join(d.dir(), "synced"), 20e6, 40e6)
	if err != nil || rate < 10e6 || rate > 30e6 {
		t.Errorf("%.1f MB/s, %v", rate/1e6, err)
	}
	// The other is only in the kernel's memory when the power goes.
	if err := os.WriteFile(filepath.Join(d.dir(), "lost"), noise(8<<20, 1), 0o666); err != nil {
		t.Fatal(err)
	}
	dir, err := d.cut()
	if err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(filepath.Join(dir, "synced")); err != nil || fi.Size() < 60e6 {
		t.Errorf("%v, %v", fi, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "lost")); err == nil && string(b) == string(noise(8<<20, 1)) {
		t.Error("what was never on the disk is there")
	}
	if log := d.stallLog(start); len(log) == 0 || log[0].For != 0.05 || log[0].Seconds > 60 {
		t.Errorf("stalls %+v", log)
	}
	for range 2 {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(work); len(left) != 0 || strings.Contains(readText("/proc/self/mounts"), work) {
		t.Errorf("left behind: %v", left)
	}
	if out, _ := exec.Command("losetup", "-a").Output(); strings.Contains(string(out), work) {
		t.Errorf("left behind: %s", out)
	}
}

// TestEmulation: a process gets its share of CPU time, and everything is as it was afterwards.
func TestEmulation(t *testing.T) {
	d := card(t)
	d.Disk = nil
	before := dirtyNow(t)
	e, err := d.start(t.Context(), t.TempDir(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	busy := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	if err := e.confine(busy.Process.Pid); err != nil {
		t.Fatal(err)
	}
	_ = busy.Wait() // killed
	if cpu := busy.ProcessState.UserTime() + busy.ProcessState.SystemTime(); cpu > 1300*time.Millisecond {
		t.Errorf("half a core for 2 s: %v of CPU time", cpu)
	}
	if e.confine(busy.Process.Pid) != nil {
		t.Error("a process that has ended is an error")
	}
	if i := e.info(); !i.Emulated || i.CPU != 0.5 || i.Memory != 256<<20 || e.cache(0) > 256<<20/20 || e.cache(5) != 5 {
		t.Errorf("%+v", i)
	}
	groups := append([]string(nil), e.groups...)
	for range 2 {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}
	for _, g := range groups {
		if _, err := os.Stat(g); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", g, err)
		}
	}
	// The kernel's limits, set and put back.
	e = &emulation{d: card(t)}
	if err := e.limitDirtyPages(); err != nil {
		t.Fatal(err)
	}
	if now := dirtyNow(t); !strings.HasPrefix(now, "64000000 0 16000000 0") {
		t.Errorf("while it lasts: %s", now)
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
	if now := dirtyNow(t); now != before {
		t.Errorf("%s, before %s", now, before)
	}
}

func dirtyNow(t *testing.T) string {
	t.Helper()
	var all []string
	for _, name := range []string{"dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio"} {
		b, err := os.ReadFile("/proc/sys/vm/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.TrimSpace(string(b)))
	}
	return fmt.Sprint(strings.Join(all, " "))
}
