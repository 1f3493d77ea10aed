package perf

import (
	"os"
	"syscall"
)

// fdatasync makes the content of f durable, without its times.
func fdatasync(f *os.File) error {
	return os.NewSyscallError("fdatasync", syscall.Fdatasync(int(f.Fd())))
}
