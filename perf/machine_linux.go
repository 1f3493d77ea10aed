package perf

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func (m *Machine) fill(dir string) {
	m.CPU = fieldOf("/proc/cpuinfo", "model name", ":")
	m.Board = strings.Trim(readText("/proc/device-tree/model"), "\x00 \n")
	if kb, ok := strings.CutSuffix(fieldOf("/proc/meminfo", "MemTotal", ":"), " kB"); ok {
		n, _ := strconv.ParseInt(strings.TrimSpace(kb), 10, 64)
		m.Memory = n << 10
	}
	if name := strings.Trim(fieldOf("/etc/os-release", "PRETTY_NAME", "="), `"`); name != "" {
		m.OS = name
	}
	m.Kernel = strings.TrimSpace(readText("/proc/sys/kernel/osrelease"))
	if f := strings.Fields(readText("/proc/loadavg")); len(f) > 0 {
		m.Load, _ = strconv.ParseFloat(f[0], 64)
	}
	m.RmemMax, _ = strconv.ParseInt(strings.TrimSpace(readText("/proc/sys/net/core/rmem_max")), 10, 64)
	m.FileSystem, m.Disk = fileSystem(dir)
}

func readText(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(b)
}

// fieldOf is the value behind key in the first line `key sep value` of a file, "" without one.
func fieldOf(path, key, sep string) string {
	for line := range strings.Lines(readText(path)) {
		if k, v, ok := strings.Cut(line, sep); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// fileSystem is the type of the file system that dir is on and the device below it, by the longest mount point above it.
func fileSystem(dir string) (kind, disk string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", ""
	}
	best := ""
	for line := range strings.Lines(readText("/proc/self/mounts")) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		at := strings.TrimSuffix(f[1], "/")
		if (abs == at || strings.HasPrefix(abs, at+"/")) && len(at) >= len(best) {
			best, kind, disk = at, f[2], f[0]
		}
	}
	name, ok := strings.CutPrefix(disk, "/dev/")
	if !ok {
		return kind, ""
	}
	// A partition's directory is inside that of its disk.
	sys, err := filepath.EvalSymlinks("/sys/class/block/" + name)
	if err != nil {
		return kind, disk
	}
	for _, dir := range []string{sys, filepath.Dir(sys)} {
		for _, file := range []string{"device/model", "device/name"} { // an SD card has a name
			if model := strings.TrimSpace(readText(filepath.Join(dir, file))); model != "" {
				return kind, disk + " (" + model + ")"
			}
		}
	}
	return kind, disk
}
