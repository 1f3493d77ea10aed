package perf

import (
	"fmt"
	"runtime"
	"strings"
)

// Machine says what a measurement ran on. Fields that cannot be told are zero.
type Machine struct {
	CPU        string  `json:"cpu"`
	Board      string  `json:"board,omitempty"` // of a single-board computer
	Cores      int     `json:"cores"`
	Memory     int64   `json:"memory_bytes"`
	OS         string  `json:"os"`
	Kernel     string  `json:"kernel"`
	Arch       string  `json:"arch"`
	Load       float64 `json:"load_1min"`      // load average when the measurement began: above the cores it was disturbed
	RmemMax    int64   `json:"rmem_max_bytes"` // largest socket buffer that an ordinary process gets
	FileSystem string  `json:"file_system"`    // where the bags were written
	Disk       string  `json:"disk"`           // what the file system is on
	Go         string  `json:"go"`
}

// ThisMachine describes the machine, and the file system that dir is on.
func ThisMachine(dir string) Machine {
	m := Machine{Cores: runtime.NumCPU(), Arch: runtime.GOARCH, OS: runtime.GOOS, Go: runtime.Version()}
	m.fill(dir)
	return m
}

func (m Machine) String() string {
	var parts []string
	if m.Board != "" {
		parts = append(parts, m.Board)
	}
	if m.CPU != "" {
		parts = append(parts, fmt.Sprintf("%d × %s", m.Cores, m.CPU))
	} else {
		parts = append(parts, fmt.Sprintf("%d cores", m.Cores))
	}
	if m.Memory > 0 {
		parts = append(parts, fmt.Sprintf("%.1f GiB", float64(m.Memory)/(1<<30)))
	}
	parts = append(parts, m.OS)
	if m.Kernel != "" {
		parts = append(parts, "kernel "+m.Kernel)
	}
	parts = append(parts, m.Arch, fmt.Sprintf("load %.2f", m.Load))
	if m.RmemMax > 0 {
		parts = append(parts, fmt.Sprintf("rmem_max %d", m.RmemMax))
	}
	if m.FileSystem != "" {
		on := "bags on " + m.FileSystem
		if m.Disk != "" {
			on += " of " + m.Disk
		}
		parts = append(parts, on)
	}
	return strings.Join(append(parts, m.Go), ", ")
}
