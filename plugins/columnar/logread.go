package columnar

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// logFile reads the frames of one file of the log, in order.
type logFile struct {
	f    *os.File
	off  int64 // of the next frame
	size int64 // what there is of the file
	buf  []byte
}

var (
	errEnd  = errors.New("frame ends beyond the file")
	errTorn = errors.New("checksum of frame is wrong")
	errHead = errors.New("no frame")
)

// next returns the records of the next frame and their offset, valid until the next call. io.EOF at the end; another
// error where the file is not what was written, or not yet.
func (l *logFile) next() ([]byte, int64, error) {
	if l.off >= l.size {
		return nil, 0, io.EOF
	}
	var head [frameHead]byte
	if l.size-l.off < frameHead {
		return nil, 0, errEnd
	}
	if _, err := l.f.ReadAt(head[:], l.off); err != nil {
		return nil, 0, err
	}
	f, ok := parseFrame(head[:])
	if !ok {
		return nil, 0, errHead
	}
	n := int64(frameHead + f.length)
	if n > l.size-l.off {
		return nil, 0, errEnd
	}
	if int64(cap(l.buf)) < n {
		l.buf = make([]byte, n+n/4)
	}
	b := l.buf[:n]
	if _, err := l.f.ReadAt(b, l.off); err != nil {
		return nil, 0, err
	}
	if !f.whole(b) {
		return nil, 0, errTorn
	}
	at := l.off + frameHead
	l.off += n
	return b[frameHead:], at, nil
}

// syncedLater looks behind the place where next failed for a whole frame that says that the file was durable further than that:
// then the file was damaged, not cut off. It returns that offset, or 0.
func (l *logFile) syncedLater() (int64, error) {
	const window = 1 << 20
	buf := make([]byte, window+frameHead)
	for off := l.off + 1; off < l.size; off += window {
		n, err := l.f.ReadAt(buf[:min(int64(len(buf)), l.size-off)], off)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		for i := 0; i < min(n, window); i++ {
			f, ok := parseFrame(buf[i:n])
			if !ok || f.synced <= l.off || f.synced > off+int64(i) {
				continue
			}
			probe := logFile{f: l.f, off: off + int64(i), size: l.size}
			if _, _, err := probe.next(); err == nil {
				return f.synced, nil
			}
		}
	}
	return 0, nil
}

// scanSegment calls f with the records of every frame of a file of a log that is known to be whole.
func scanSegment(path string, f func(records []byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	fi, err := file.Stat()
	if err != nil {
		return err
	}
	l := logFile{f: file, size: fi.Size()}
	for {
		b, _, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f(b)
		}
		if err != nil {
			return fmt.Errorf("log %s at byte %d: %w", path, l.off, err)
		}
	}
}
