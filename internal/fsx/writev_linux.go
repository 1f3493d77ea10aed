package fsx

import (
	"io"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// WritePieces appends pieces to f, one after the other, as f.Write of them all would: in one system call where the
// system has such a call, up to 256 pieces a call. It returns how many bytes were written; an error names f.
func WritePieces(f *os.File, pieces [][]byte) (int64, error) {
	var iov [256]syscall.Iovec
	var total int64
	fd := f.Fd()
	skip := 0 // bytes of pieces[0] that are written
	for {
		n := 0
		for i, p := range pieces {
			if i == 0 {
				p = p[skip:]
			}
			if len(p) == 0 {
				continue
			}
			if n == len(iov) {
				break
			}
			iov[n].Base = &p[0]
			iov[n].SetLen(len(p))
			n++
		}
		if n == 0 {
			return total, nil
		}
		wrote, _, errno := syscall.Syscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&iov[0])), uintptr(n))
		runtime.KeepAlive(f)
		runtime.KeepAlive(pieces)
		switch {
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			return total, &os.PathError{Op: "write", Path: f.Name(), Err: errno}
		case wrote == 0:
			return total, &os.PathError{Op: "write", Path: f.Name(), Err: io.ErrShortWrite}
		}
		total += int64(wrote)
		skip += int(wrote)
		for len(pieces) > 0 && skip >= len(pieces[0]) {
			skip -= len(pieces[0])
			pieces = pieces[1:]
		}
	}
}
