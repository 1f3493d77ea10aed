package perf

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// dropFromCache makes the next reads of the files at path come from the disk.
func dropFromCache(path string) error {
	const dontNeed = 4
	return filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := f.Sync(); err != nil { // only clean pages go
			return err
		}
		if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 {
			return os.NewSyscallError("fadvise", errno)
		}
		return nil
	})
}
