//go:build unix

package sqlite

import (
	"math"
	"os"
	"syscall"
)

// mapFile maps the first n bytes of a file into memory, to be read. An error means that it has to be read otherwise.
func mapFile(f *os.File, n int64) ([]byte, error) {
	if n <= 0 || n > math.MaxInt/2 {
		return nil, syscall.EFBIG
	}
	c, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var b []byte
	var merr error
	if err := c.Control(func(fd uintptr) {
		b, merr = syscall.Mmap(int(fd), 0, int(n), syscall.PROT_READ, syscall.MAP_SHARED)
	}); err != nil {
		return nil, err
	}
	return b, merr
}

func unmapFile(b []byte) error { return syscall.Munmap(b) }
