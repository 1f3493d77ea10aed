//go:build linux && (amd64 || arm64)

package fsx

import (
	"os"
	"syscall"
)

// syncFileRangeWrite is SYNC_FILE_RANGE_WRITE of sync_file_range(2).
const syncFileRangeWrite = 2

// StartWriteback asks the system to begin writing the dirty pages of f between off and off+n to the disk, without
// waiting and without any promise: it keeps a recording from piling up dirty pages that a later sync would have to wait
// for. Where the system has no such call it does nothing. f may be open for reading only.
func StartWriteback(f *os.File, off, n int64) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	if err := c.Control(func(fd uintptr) { serr = syscall.SyncFileRange(int(fd), off, n, syncFileRangeWrite) }); err != nil {
		return err
	}
	return serr
}
