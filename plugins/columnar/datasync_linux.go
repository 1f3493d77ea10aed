package columnar

import (
	"os"
	"syscall"
)

// datasync makes the content of f durable, without its times.
func datasync(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = c.Control(func(fd uintptr) {
		for {
			if serr = syscall.Fdatasync(int(fd)); serr != syscall.EINTR { //nolint:errorlint // a bare errno
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return serr
}
