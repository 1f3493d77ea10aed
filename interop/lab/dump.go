//go:build linux

package lab

import (
	"bufio"
	"encoding/binary"
	"errors"
	"os"
	"time"
)

// dump writes frames into a capture file (libpcap's format, nanoseconds, Ethernet).
type dump struct {
	file *os.File
	w    *bufio.Writer
}

// Capture writes every frame that the relay passes on into a capture file, until StopCapture.
func (r *Relay) Capture(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	d := &dump{file: f, w: bufio.NewWriterSize(f, 1<<20)}
	var head [24]byte
	binary.LittleEndian.PutUint32(head[0:], 0xa1b23c4d)
	binary.LittleEndian.PutUint16(head[4:], 2)
	binary.LittleEndian.PutUint16(head[6:], 4)
	binary.LittleEndian.PutUint32(head[16:], 1<<18)
	binary.LittleEndian.PutUint32(head[20:], 1)
	_, _ = d.w.Write(head[:]) // its error is sticky: Flush returns it
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dump = d
	return nil
}

func (d *dump) add(frame []byte) {
	var head [16]byte
	now := time.Now()
	binary.LittleEndian.PutUint32(head[0:], uint32(now.Unix()))
	binary.LittleEndian.PutUint32(head[4:], uint32(now.Nanosecond()))
	binary.LittleEndian.PutUint32(head[8:], uint32(len(frame)))
	binary.LittleEndian.PutUint32(head[12:], uint32(len(frame)))
	_, _ = d.w.Write(head[:])
	_, _ = d.w.Write(frame)
}

// StopCapture ends the capture. Without one it does nothing.
func (r *Relay) StopCapture() error {
	r.mu.Lock()
	d := r.dump
	r.dump = nil
	r.mu.Unlock()
	if d == nil {
		return nil
	}
	return errors.Join(d.w.Flush(), d.file.Close())
}
