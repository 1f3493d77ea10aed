package metrics

import (
	"bytes"
	"os"
	"strconv"
)

// residentBytes is the second field of statm, in pages: proc(5).
func residentBytes() (float64, bool) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	f := bytes.Fields(b)
	if len(f) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(string(f[1]), 10, 64)
	return float64(pages) * float64(os.Getpagesize()), err == nil
}
