package mcap

import (
	"errors"
	"io"
	"os"
)

const (
	windowStep = 8 << 10  // read around a record that is visited by itself
	windowRun  = 64 << 10 // read where records are visited one after another
)

// window reads records of a file piece by piece, the first size bytes of it.
type window struct {
	f    *os.File
	size int64
	b    []byte
	base int64 // offset of b[0]
}

var errBeyond = errors.New("beyond the end of the file")

// peek returns n bytes at off, valid until the next call. It allocates no more than the file has.
func (w *window) peek(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > w.size || n > w.size-off {
		return nil, errBeyond
	}
	if off < w.base || off+n > w.base+int64(len(w.b)) {
		step := int64(windowStep)
		if off >= w.base && off <= w.base+int64(len(w.b)) {
			step = windowRun
		}
		step = min(max(step, n), w.size-off)
		if int64(cap(w.b)) < step || int64(cap(w.b)) > 1<<20 && step < 1<<20 {
			w.b = make([]byte, step)
		}
		w.b, w.base = w.b[:step], off
		if k, err := w.f.ReadAt(w.b, off); err != nil && int64(k) < n {
			w.b = w.b[:0]
			if errors.Is(err, io.EOF) {
				err = errBeyond
			}
			return nil, err
		} else if int64(k) < step {
			w.b = w.b[:k]
		}
	}
	return w.b[off-w.base:][:n], nil
}

// head returns opcode and content length of the record at off. A record that reaches beyond the file is errBeyond.
func (w *window) head(off int64) (op byte, n int64, err error) {
	b, err := w.peek(off, recordHead)
	if err != nil {
		return 0, 0, err
	}
	u := le.Uint64(b[1:])
	if u > uint64(w.size-off-recordHead) {
		return b[0], 0, errBeyond
	}
	return b[0], int64(u), nil
}
