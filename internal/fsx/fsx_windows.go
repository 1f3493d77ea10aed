package fsx

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// SyncDir does nothing: Windows makes directory entries durable by itself.
func SyncDir(string) error { return nil }

var getDiskFreeSpaceEx = syscall.NewLazyDLL("kernel32.dll").NewProc("GetDiskFreeSpaceExW")

// Free returns the bytes that can still be written to the volume of path, and its size in bytes.
func Free(path string) (free, total int64, err error) {
	p, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return 0, 0, err
	}
	r, _, e := getDiskFreeSpaceEx.Call(uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)), 0)
	if r == 0 {
		return 0, 0, &os.PathError{Op: "free space", Path: path, Err: e}
	}
	return free, total, nil
}

// Lock is an advisory lock on a directory. On Windows it protects nothing: open files there cannot be removed anyway.
type Lock struct{}

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// LockDir returns a lock without effect.
func LockDir(string) (*Lock, error) { return &Lock{}, nil }

// Unlock gives the lock back.
func (l *Lock) Unlock() error { return nil }

// Locked returns false: there is no lock to look at.
func Locked(string) (bool, error) { return false, nil }
