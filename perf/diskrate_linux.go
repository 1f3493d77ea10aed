package perf

import (
	"context"
	"errors"
	"os"
	"time"
)

// writeRate writes size bytes and syncs once: the speed of a disk in bytes per second. It writes and syncs before bytes first,
// which do not count: what the disk takes at once for a start.
func writeRate(ctx context.Context, path string, before, size int64) (rate float64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	block := noise(boardBlock, 1)
	write := func(size int64) (n int64, err error) {
		for ; n < size && ctx.Err() == nil; n += boardBlock {
			if _, err := f.Write(block); err != nil {
				return 0, err
			}
		}
		return n, f.Sync()
	}
	if _, err := write(before); err != nil {
		return 0, err
	}
	began := time.Now()
	n, err := write(size)
	if err != nil {
		return 0, err
	}
	return float64(n) / time.Since(began).Seconds(), ctx.Err()
}

// writeFor writes for some time as fast as it goes, without a sync, and says how many bytes that were.
func writeFor(ctx context.Context, path string, limit time.Duration) (n int64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	block := noise(boardBlock, 3)
	for began := time.Now(); time.Since(began) < limit && ctx.Err() == nil; n += boardBlock {
		if _, err := f.Write(block); err != nil {
			return n, err
		}
	}
	return n, ctx.Err()
}
