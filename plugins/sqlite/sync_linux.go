package sqlite

import (
	"os"
	"syscall"
)

// datasync makes the content of f durable, with what is needed to read it.
func datasync(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = c.Control(func(fd uintptr) {
		for {
			if serr = syscall.Fdatasync(int(fd)); serr != syscall.EINTR {
				return
			}
		}
	})
	if serr != nil {
		return os.NewSyscallError("fdatasync", serr)
	}
	return err
}
