package main

import (
	"context"
	"errors"
	"os"
	"time"
)

// What the measurement of a disk writes: the size of a burst of camera images, synced now and then.
const (
	diskBlock  = 4 << 20
	diskSyncAt = 16 << 20
)

// diskSpeed is what a disk does under a recording.
type diskSpeed struct {
	speed float64       // bytes a second, synced
	worst time.Duration // the longest call
}

// measureDisk writes total bytes into a file of dir, or as many as go within limit, and removes it.
func measureDisk(ctx context.Context, dir string, total int64, limit time.Duration) (d diskSpeed, err error) {
	file, err := os.CreateTemp(dir, ".gobag-disk-*")
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	block := make([]byte, diskBlock)
	for i := range block {
		block[i] = byte(i*7 + i>>11)
	}
	var written int64
	began := time.Now()
	for written < total && time.Since(began) < limit && ctx.Err() == nil {
		call := time.Now()
		n, err := file.Write(block)
		if err == nil && written%diskSyncAt == 0 {
			err = file.Sync()
		}
		written += int64(n)
		d.worst = max(d.worst, time.Since(call))
		if err != nil {
			return d, err
		}
	}
	if err := file.Sync(); err != nil {
		return d, err
	}
	d.speed = float64(written) / max(time.Since(began), time.Microsecond).Seconds()
	return d, nil
}
