//go:build linux || darwin

package perf

import (
	"os"
	"os/exec"
	"syscall"
)

// detach keeps the terminal's Ctrl-C from the process.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// maxRSS is the largest resident set of an ended process, bytes; 0 unknown.
func maxRSS(st *os.ProcessState) int64 {
	if ru, ok := st.SysUsage().(*syscall.Rusage); ok {
		return int64(ru.Maxrss) * rssUnit
	}
	return 0
}
