//go:build !linux

package fsx

import (
	"os"
	"sync"
)

const (
	joined = 64 << 10 // small pieces are joined up to this size, so that there are few calls
	small  = 16 << 10
)

var joinBuffers = sync.Pool{New: func() any { b := make([]byte, 0, joined); return &b }}

// WritePieces appends pieces to f, one after the other, as f.Write of them all would: in one system call where the
// system has such a call. It returns how many bytes were written; an error names f.
func WritePieces(f *os.File, pieces [][]byte) (int64, error) {
	buf := joinBuffers.Get().(*[]byte)
	defer joinBuffers.Put(buf)
	b := (*buf)[:0]
	var total int64
	write := func(p []byte) error {
		n, err := f.Write(p)
		total += int64(n)
		return err
	}
	for _, p := range pieces {
		if len(p) <= small && len(b)+len(p) <= joined {
			b = append(b, p...)
			continue
		}
		if len(b) > 0 {
			if err := write(b); err != nil {
				return total, err
			}
			b = b[:0]
		}
		if len(p) <= small {
			b = append(b, p...)
		} else if err := write(p); err != nil {
			return total, err
		}
	}
	if len(b) > 0 {
		if err := write(b); err != nil {
			return total, err
		}
	}
	return total, nil
}
