//go:build linux

package lab

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// CPU is the processor time of a process that has ended.
func (p *Proc) CPU() time.Duration {
	<-p.done
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// WatchRSS looks at the process until it ends; the function that it returns says what its resident memory was at most, in
// bytes. What the kernel says after the end also counts the moment between fork and exec.
func (p *Proc) WatchRSS() func() int64 {
	peak := make(chan int64, 1)
	go func() {
		most := int64(0)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			if n, err := statusBytes(p.Pid(), "VmHWM:"); err == nil {
				most = n // of the program that it is now
			}
			select {
			case <-p.done:
				peak <- most
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 {
		most := <-peak
		peak <- most
		return most
	}
}

// statusBytes reads a line of /proc/PID/status that is in kB.
func statusBytes(pid int, name string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("process %d has no %s", pid, name)
}

// ResidentBytes is the resident memory of a process now.
func ResidentBytes(pid int) (int64, error) { return statusBytes(pid, "VmRSS:") }
