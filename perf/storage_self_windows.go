package perf

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

// processCPU is the user and system time of this process so far, seconds.
func processCPU() float64 {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0
	}
	var created, exited, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(self, &created, &exited, &kernel, &user); err != nil {
		return 0
	}
	return float64(ticks(kernel)+ticks(user)) / 1e7
}

// ticks is a duration in units of 100 ns.
func ticks(t syscall.Filetime) int64 { return int64(t.HighDateTime)<<32 | int64(t.LowDateTime) }

// allocated is the size of a file, or of everything in a directory, bytes.
func allocated(path string) (int64, error) {
	var total int64
	err := filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && !e.IsDir() {
			total += info.Size()
		}
		return err
	})
	return total, err
}

var rawReadFile func(string) ([]byte, error)
