package sqlite

import (
	"errors"
	"syscall"
)

// populateRead is MADV_POPULATE_READ of madvise(2), Linux 5.14.
const populateRead = 22

// populate brings a piece of a mapped file into memory, waiting for it as other reads do: without keeping a processor
// from other work, and with an error where the file cannot be read. errors.ErrUnsupported: the kernel is too old.
func populate(b []byte) error {
	for {
		err := syscall.Madvise(b, populateRead)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.EAGAIN):
		case errors.Is(err, syscall.EINVAL):
			return errors.ErrUnsupported
		default:
			return err
		}
	}
}

// forget gives the memory of a piece back; what is needed again is read again.
func forget(b []byte) { _ = syscall.Madvise(b, syscall.MADV_DONTNEED) } // only a hint
