package perf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Board is what `gobag perf board` measures of a machine.
type Board struct {
	Machine Machine       `json:"machine"`
	Dir     string        `json:"dir"`
	Written int64         `json:"written_bytes"`  // by the two disk tests together
	Rate    float64       `json:"disk_bytes_s"`   // sequential writes, the sync at the end included
	Stall   time.Duration `json:"worst_stall_ns"` // the longest write with its sync at half that rate
	P99     time.Duration `json:"p99_stall_ns"`
	Zstd    float64       `json:"zstd_bytes_s"` // compressed by one core at the fastest level, half-compressible data
	Copy    float64       `json:"copy_bytes_s"` // memory copied by one core
	Rmem    int64         `json:"receive_buffer_bytes"`
}

// BoardOptions configure MeasureBoard.
type BoardOptions struct {
	Dir        string        // on the disk to be recorded to; it must exist
	Time       time.Duration // of each disk test; default 10 s
	OnProgress func(done float64, what string)
}

// MeasureBoard measures the machine and the disk under Dir. It writes at most 2 GB there and removes it again.
func MeasureBoard(ctx context.Context, o BoardOptions) (b Board, err error) {
	if o.Time == 0 {
		o.Time = 10 * time.Second
	}
	if o.OnProgress == nil {
		o.OnProgress = func(float64, string) {}
	}
	work, err := os.MkdirTemp(o.Dir, "gobag-board-")
	if err != nil {
		return b, fmt.Errorf("perf board: %w", err)
	}
	defer os.RemoveAll(work)
	b = Board{Machine: ThisMachine(o.Dir), Dir: o.Dir}
	b.Rmem = b.Machine.RmemMax
	o.OnProgress(0, "disk: sequential writes")
	if b.Rate, b.Written, err = sustained(ctx, filepath.Join(work, "rate"), o.Time); err != nil {
		return b, fmt.Errorf("perf board: %w", err)
	}
	o.OnProgress(0.45, "disk: stalls")
	stalls, n, err := stallsAt(ctx, filepath.Join(work, "stalls"), b.Rate/2, o.Time)
	if err != nil {
		return b, fmt.Errorf("perf board: %w", err)
	}
	b.Written += n
	b.Stall, b.P99 = stalls.Max(), stalls.Quantile(0.99)
	o.OnProgress(0.9, "CPU")
	b.Zstd, b.Copy, err = cpuSpeed()
	if err != nil {
		return b, fmt.Errorf("perf board: %w", err)
	}
	o.OnProgress(1, "")
	return b, ctx.Err()
}

const (
	boardBlock = 1 << 20
	boardMost  = 1 << 30 // bytes that one disk test writes at most
)

// sustained writes for some time, syncing every 16 MiB as a recorder does every second, and at the end.
func sustained(ctx context.Context, path string, limit time.Duration) (rate float64, n int64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(path)) }()
	block := noise(boardBlock, 1)
	began := time.Now()
	for n < boardMost && time.Since(began) < limit && ctx.Err() == nil {
		if _, err := f.Write(block); err != nil {
			return 0, n, err
		}
		if n += boardBlock; n%(16*boardBlock) == 0 {
			if err := f.Sync(); err != nil {
				return 0, n, err
			}
		}
	}
	if err := f.Sync(); err != nil {
		return 0, n, err
	}
	return float64(n) / time.Since(began).Seconds(), n, ctx.Err()
}

// stallsAt writes at a rate, in pieces of 64 KiB to 1 MiB that are synced each, and collects how long each took.
func stallsAt(ctx context.Context, path string, rate float64, limit time.Duration) (_ *Histogram, n int64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(path)) }()
	size := int(min(max(rate/50, 64<<10), boardBlock)) // some fifty a second
	piece := noise(size, 2)
	h := new(Histogram)
	began := time.Now()
	for n < boardMost && time.Since(began) < limit {
		due := began.Add(time.Duration(float64(n) / max(rate, 1) * float64(time.Second)))
		if !sleepUntil(ctx, due) {
			return nil, n, ctx.Err()
		}
		at := time.Now()
		if _, err := f.Write(piece); err != nil {
			return nil, n, err
		}
		if err := f.Sync(); err != nil {
			return nil, n, err
		}
		h.Add(time.Since(at))
		n += int64(size)
	}
	return h, n, nil
}

// cpuSpeed is what one core compresses and copies, bytes per second.
func cpuSpeed() (zstdRate, copyRate float64, err error) {
	data := Load{Groups: []Group{{Size: 4 << 20, Compressible: 0.5}}}.groupData(0)
	e, err := zstd.NewWriter(io.Discard, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = e.Close() }() // it writes to nobody
	var out []byte
	zstdRate = perSecond(len(data), func() { out = e.EncodeAll(data, out[:0]) })
	to := make([]byte, 32<<20)
	from := bytes.Repeat([]byte{1}, len(to))
	copyRate = perSecond(len(to), func() { copy(to, from) })
	return zstdRate, copyRate, nil
}

// perSecond calls f for half a second and says how many bytes that were in a second.
func perSecond(size int, f func()) float64 {
	f() // warm
	began := time.Now()
	n := 0
	for ; time.Since(began) < 500*time.Millisecond; n++ {
		f()
	}
	return float64(n) * float64(size) / time.Since(began).Seconds()
}

// Cache is the recorder's cache in bytes that outlasts the worst stall seen twice over at the disk's full speed, between
// 16 MiB and a tenth of the memory.
func (b *Board) Cache() int64 {
	want := int64(2 * b.Rate * b.Stall.Seconds())
	most := int64(512 << 20)
	if b.Machine.Memory > 0 {
		most = min(most, b.Machine.Memory/10)
	}
	mebibytes := (min(max(want, 16<<20), most) + 1<<20 - 1) >> 20
	return mebibytes << 20
}

// Compress says whether compressing lets more through than the disk alone: one core compresses at least 1.5 times as fast as
// the disk writes, with cores left for the rest.
func (b *Board) Compress() bool { return b.Zstd >= 1.5*b.Rate && b.Machine.Cores >= 4 }

// WriteConfig writes settings for gobag record --config: comments say where each comes from.
func (b *Board) WriteConfig(w io.Writer) error {
	preset, why := "resilient", "the disk keeps up with what one core can compress: compressing gains nothing"
	if b.Machine.Cores < 4 {
		why = "with fewer than four cores compressing takes time from the robot"
	}
	if b.Compress() {
		preset, why = "small", fmt.Sprintf("one core compresses %.0f MB/s, the disk writes %.0f MB/s: compressed, more fits through it", b.Zstd/1e6, b.Rate/1e6)
	}
	var t strings.Builder
	fmt.Fprintf(&t, "# Settings for this machine, measured by \"gobag perf board\" on %s.\n# Use: gobag record --config THIS_FILE -a\n#\n# %s\n# disk %.1f MB/s, worst stall %.0f ms (p99 %.1f ms) at half that rate\n",
		time.Now().Format("2006-01-02"), b.Machine, b.Rate/1e6, milli(b.Stall), milli(b.P99))
	if b.Rmem > 0 && b.Rmem < 32<<20 {
		fmt.Fprintf(&t, "# net.core.rmem_max is %d: \"sudo gobag doctor --fix\" raises it, so that bursts of large messages are not lost on the way in\n", b.Rmem)
	}
	fmt.Fprintf(&t, "record:\n  max-cache-size: %dMiB # twice the worst stall at the disk's full speed\n  storage-preset-profile: %s # %s\n  sync-interval: 1\n",
		b.Cache()>>20, preset, why)
	if runtime.GOOS == "linux" {
		t.WriteString("  profile: robot # the robot's own programs go first\n")
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// WriteTable prints what was measured.
func (b *Board) WriteTable(w io.Writer) error {
	rmem := "unknown"
	if b.Rmem > 0 {
		rmem = shortBytes(b.Rmem)
	}
	_, err := fmt.Fprintf(w, "Machine: %s\n\ndisk, sequential writes with syncs  %8.1f MB/s\nworst write with sync, at half rate %8.1f ms (p99 %.1f ms)\nzstd, one core, fastest level       %8.1f MB/s\nmemory copied by one core           %8.1f MB/s\nlargest socket buffer without root  %s\n\ncache for the recorder              %8d MiB\n",
		b.Machine, b.Rate/1e6, milli(b.Stall), milli(b.P99), b.Zstd/1e6, b.Copy/1e6, rmem, b.Cache()>>20)
	return err
}

// WriteJSON writes what was measured as JSON.
func (b *Board) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(b)
}
