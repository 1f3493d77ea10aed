package bag

import (
	"os"
	"syscall"
)

// Levels of SetThreadPriority, as rosbag2 takes them: lowest to normal.
const (
	leastPriority = -2
	mostPriority  = 0
)

var (
	kernel32              = syscall.NewLazyDLL("kernel32.dll")
	procGetCurrentThread  = kernel32.NewProc("GetCurrentThread")
	procSetThreadPriority = kernel32.NewProc("SetThreadPriority")
)

// setThreadPriority sets the priority of the calling thread.
func setThreadPriority(n int) error {
	thread, _, _ := procGetCurrentThread.Call()
	if ok, _, err := procSetThreadPriority.Call(thread, uintptr(n)); ok == 0 {
		return os.NewSyscallError("SetThreadPriority", err)
	}
	return nil
}
