package perf

import (
	"os"
	"strconv"
	"strings"
)

// resetPeakRSS makes the peak of the resident set count from now on.
func resetPeakRSS() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) } // where it is refused, the peak is an upper bound

// currentRSS is the resident set of this process, bytes; 0 unknown.
func currentRSS() int64 {
	kib, _ := strings.CutSuffix(fieldOf("/proc/self/status", "VmRSS", ":"), " kB")
	n, _ := strconv.ParseInt(strings.TrimSpace(kib), 10, 64)
	return n << 10
}

// writtenBytes is what this process has caused to be written to disks so far; -1 unknown.
func writtenBytes() int64 {
	n, err := strconv.ParseInt(fieldOf("/proc/self/io", "write_bytes", ":"), 10, 64)
	if err != nil {
		return -1
	}
	return n
}
