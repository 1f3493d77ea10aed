//go:build linux || darwin

package perf

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"
)

// processCPU is the user and system time of this process so far, seconds.
func processCPU() float64 {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return float64(ru.Utime.Sec+ru.Stime.Sec) + float64(ru.Utime.Usec+ru.Stime.Usec)/1e6
}

// allocated is what a file, or everything in a directory, takes on disk, bytes.
func allocated(path string) (int64, error) {
	var total int64
	err := filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			total += int64(st.Blocks) * 512
		} else {
			total += info.Size()
		}
		return nil
	})
	return total, err
}

// rawReadFile reads a file with the bare system calls, into one buffer that the next call uses again.
var rawReadFile = func() func(string) ([]byte, error) {
	var buf []byte
	return func(path string) ([]byte, error) {
		fd, err := syscall.Open(path, syscall.O_RDONLY, 0)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", path, err)
		}
		defer syscall.Close(fd) //nolint:errcheck // it was read only
		var st syscall.Stat_t
		if err := syscall.Fstat(fd, &st); err != nil {
			return nil, fmt.Errorf("stat %s: %w", path, err)
		}
		if st.Size > int64(cap(buf)) {
			buf = make([]byte, st.Size)
		}
		b := buf[:st.Size]
		for n := 0; n < len(b); {
			m, err := syscall.Read(fd, b[n:])
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			if m == 0 {
				return nil, fmt.Errorf("read %s: %w", path, io.ErrUnexpectedEOF)
			}
			n += m
		}
		return b, nil
	}
}()
