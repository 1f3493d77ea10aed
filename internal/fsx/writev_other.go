//go:build !linux

package fsx

import "os"

// WritePieces appends pieces to f, one after the other, as f.Write of them all would: in one system call where the
// system has such a call. It returns how many bytes were written; an error names f.
func WritePieces(f *os.File, pieces ...[]byte) (int64, error) {
	var total int64
	for _, p := range pieces {
		n, err := f.Write(p)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
