package bag

import (
	"os"
	"syscall"
)

// Nice values, as rosbag2 takes them.
const (
	leastPriority = -20
	mostPriority  = 19
)

// setThreadPriority sets the nice value of the calling thread, which is what 0 stands for on Linux.
func setThreadPriority(n int) error {
	return os.NewSyscallError("setpriority", syscall.Setpriority(syscall.PRIO_PROCESS, 0, n))
}
