//go:build unix

package fsx

import (
	"errors"
	"os"
	"syscall"
)

// SyncDir makes names created, renamed or removed in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Free returns the bytes an unprivileged user can still write to the file system of path, and its size in bytes.
func Free(path string) (free, total int64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), nil
}

// Lock is an advisory lock on a directory; it ends with the process that holds it.
type Lock struct{ f *os.File }

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// LockDir takes the lock of dir without waiting. ErrLocked if it is taken.
func LockDir(dir string) (*Lock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	return &Lock{f}, nil
}

// Unlock gives the lock back.
func (l *Lock) Unlock() error { return l.f.Close() }

// Locked says whether somebody holds the lock of dir, this process included. It looks without taking the lock, though a
// LockDir of the same moment may fail.
func Locked(dir string) (bool, error) {
	f, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	defer f.Close() // ends the shared lock too
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	return false, nil
}
