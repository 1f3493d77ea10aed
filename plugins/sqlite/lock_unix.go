//go:build unix

package sqlite

import (
	"io"
	"os"
	"syscall"
)

// SQLite locks bytes behind the first GiB, where a database has no content: a writer holds a write lock on this range
// while it changes the file (os.h, https://sqlite.org/lockingv3.html).
const (
	sharedFirst = 0x40000000 + 2
	sharedSize  = 510
)

// changing says whether some connection is at work on the file itself. A connection of this very process is seen on
// Linux only.
func changing(f *os.File) (bool, error) {
	c, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	l := syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart, Start: sharedFirst, Len: sharedSize}
	var lerr error
	if err := c.Control(func(fd uintptr) {
		lerr = syscall.FcntlFlock(fd, getLock, &l)
		if lerr == syscall.EINVAL { // a kernel or file system without locks of open files
			l = syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart, Start: sharedFirst, Len: sharedSize}
			lerr = syscall.FcntlFlock(fd, syscall.F_GETLK, &l)
		}
	}); err != nil {
		return false, err
	}
	return lerr == nil && l.Type != syscall.F_UNLCK, nil // an error: a file system without locks at all
}
