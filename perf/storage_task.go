package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/gobag/gobag/plugin"
)

// Operations and orders of a StorageTask.
const (
	OpWrite = "write"
	OpRead  = "read"

	OrderSequential = "seq"  // written by ascending stamps; read by one iterator over everything
	OrderEach       = "each" // read by ascending stamps, every message asked for by itself
	OrderRandom     = "rand" // written with shuffled stamps; read in shuffled order, every message asked for by itself
)

// Payloads of a StorageTask.
const (
	PayloadNoise = "noise" // does not compress
	PayloadHalf  = "half"  // LevelDB's db_bench: pieces of 100 bytes whose second half repeats the first
)

// StorageTask is what one process of `perf storage` does: write a storage, or read one that such a task has written in
// sequence. The peers in interop/peers take the same flags and print the same result.
type StorageTask struct {
	Target  string // a storage format, or one of the ceilings "null", "file", "files", "files-raw"
	Preset  string // of the format; "" default
	Op      string // OpWrite, OpRead
	Order   string
	Size    int    // bytes of a message
	Count   int    // messages
	Path    string // of the storage: must not exist before a write
	Seed    uint64
	Payload string        // "" = PayloadNoise
	Buffer  int64         // bytes of write buffer or page cache; 0 = the format's default
	Pace    int64         // bytes per second that are handed over; 0 = as fast as it takes them
	Sync    time.Duration // how often Sync is called meanwhile; 0 = never
}

// StorageResult is what a task measured. Opening and closing are part of the time of a write, not of a read.
type StorageResult struct {
	Messages   int     `json:"messages"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_s"`          // user and system time meanwhile
	BaseRSS    int64   `json:"rss_base_bytes"` // resident set before the storage was opened; 0 unknown
	PeakRSS    int64   `json:"rss_peak_bytes"` // largest since; 0 unknown
	WriteBytes int64   `json:"write_bytes"`    // that reached the block layer or dirtied the page cache; -1 unknown
	DiskBytes  int64   `json:"disk_bytes"`     // allocated on disk when all was done

	// How long messages waited for their write to return: from the call, or when paced from when they were due. Of a
	// read: how long one took. Nanoseconds.
	WaitP50  time.Duration `json:"wait_p50_ns"`
	WaitP99  time.Duration `json:"wait_p99_ns"`
	WaitP999 time.Duration `json:"wait_p999_ns"`
	WaitMax  time.Duration `json:"wait_max_ns"`
}

// Flags are the task as flags, but for Target: what the peers understand.
func (t StorageTask) Flags() []string {
	return []string{"--op", t.Op, "--order", t.Order, "--size", strconv.Itoa(t.Size), "--count", strconv.Itoa(t.Count), "--path", t.Path,
		"--seed", strconv.FormatUint(t.Seed, 10), "--payload", t.payload(), "--preset", t.Preset, "--buffer", strconv.FormatInt(t.Buffer, 10),
		"--pace", strconv.FormatInt(t.Pace, 10), "--sync-ms", strconv.FormatInt(t.Sync.Milliseconds(), 10)}
}

func (t StorageTask) payload() string {
	if t.Payload == "" {
		return PayloadNoise
	}
	return t.Payload
}

// Validate returns all problems, joined.
func (t StorageTask) Validate() error {
	var errs []error
	if t.Op != OpWrite && t.Op != OpRead {
		errs = append(errs, fmt.Errorf("operation %q: neither %s nor %s", t.Op, OpWrite, OpRead))
	}
	switch t.Order {
	case OrderSequential, OrderRandom:
	case OrderEach:
		if t.Op == OpWrite {
			errs = append(errs, fmt.Errorf("order %s: only for reading", OrderEach))
		}
	default:
		errs = append(errs, fmt.Errorf("order %q: none of %s, %s, %s", t.Order, OrderSequential, OrderEach, OrderRandom))
	}
	if p := t.payload(); p != PayloadNoise && p != PayloadHalf {
		errs = append(errs, fmt.Errorf("payload %q: neither %s nor %s", p, PayloadNoise, PayloadHalf))
	}
	if t.Size < 1 || t.Size > poolSize/2 {
		errs = append(errs, fmt.Errorf("size %d: not in 1..%d bytes", t.Size, poolSize/2))
	}
	if t.Count < 1 || t.Count > 100_000_000 {
		errs = append(errs, fmt.Errorf("count %d: not in 1..100000000", t.Count))
	}
	if t.Path == "" {
		errs = append(errs, errors.New("no path"))
	}
	if t.Pace < 0 || t.Buffer < 0 || t.Sync < 0 {
		errs = append(errs, errors.New("pace, buffer and sync interval must not be negative"))
	}
	return errors.Join(errs...)
}

// Payloads are pieces of one pool, poolStep apart, as in the tables of LevelDB's and SQLite's own benchmarks.
const (
	poolSize   = 24 << 20
	poolStep   = 104_729
	batchBytes = 1 << 20 // what is handed over at once, or one message
	taskTopics = 10
	firstStamp = 1_700_000_000_000_000_000
	stampStep  = 100_000
)

// poolBytes is the size of the pool: less in tests, where making it would be most of the work.
var poolBytes = poolSize

// source makes the messages of a task: message k is the same in every order.
type source struct {
	pool  []byte
	size  int
	order []int32 // of the keys; nil ascending
}

func newSource(t StorageTask) *source {
	s := &source{pool: noise(poolBytes, t.Seed), size: t.Size}
	if t.payload() == PayloadHalf {
		for i := 0; i+100 <= len(s.pool); i += 100 {
			copy(s.pool[i+50:i+100], s.pool[i:i+50])
		}
	}
	if t.Order == OrderRandom {
		s.order = make([]int32, t.Count)
		for i := range s.order {
			s.order[i] = int32(i)
		}
		r := rand.New(rand.NewPCG(t.Seed, 2))
		r.Shuffle(t.Count, func(i, j int) { s.order[i], s.order[j] = s.order[j], s.order[i] })
	}
	return s
}

// key is the i-th key in the task's order.
func (s *source) key(i int) int {
	if s.order == nil {
		return i
	}
	return int(s.order[i])
}

// data is the payload of key k; it must not be changed.
func (s *source) data(k int) []byte {
	off := k * poolStep % (len(s.pool) - s.size)
	return s.pool[off : off+s.size]
}

// message is the i-th message in the task's order.
func (s *source) message(i int) plugin.Message {
	k := s.key(i)
	at := int64(firstStamp + k*stampStep)
	return plugin.Message{Topic: plugin.TopicID(k%taskTopics + 1), RecvTime: at, SendTime: at - 150_000, Source: 1, Seq: uint64(k/taskTopics + 1),
		Order: uint64(i + 1), Data: s.data(k)}
}

// touch reads one word of every cache line, so that a reader that only maps a file has to bring it in, and gives a sum
// to compare.
func touch(b []byte) uint64 {
	sum := uint64(len(b))
	for len(b) >= 64 {
		sum += binary.LittleEndian.Uint64(b)
		b = b[64:]
	}
	if len(b) >= 8 {
		sum += binary.LittleEndian.Uint64(b)
	}
	return sum
}

// RunStorageTask runs a task in this process. What is read is compared with what was written.
func RunStorageTask(ctx context.Context, t StorageTask) (StorageResult, error) {
	if err := t.Validate(); err != nil {
		return StorageResult{}, fmt.Errorf("storage task: %w", err)
	}
	s := newSource(t)
	var waits Histogram
	res := StorageResult{Messages: t.Count, WriteBytes: -1}
	resetPeakRSS()
	res.BaseRSS = currentRSS()
	io, cpu, begin := writtenBytes(), processCPU(), time.Now()
	var err error
	if t.Op == OpWrite {
		err = t.write(ctx, s, &waits)
		res.Seconds, res.CPUSeconds = time.Since(begin).Seconds(), processCPU()-cpu
	} else {
		res.Seconds, res.CPUSeconds, err = t.read(ctx, s, &waits)
	}
	if err != nil {
		return res, fmt.Errorf("%s %s: %w", t.Op, t.Target, err)
	}
	if io >= 0 {
		res.WriteBytes = writtenBytes() - io
	}
	res.PeakRSS = peakRSS(os.Getpid())
	res.WaitP50, res.WaitP99, res.WaitP999, res.WaitMax = waits.Quantile(0.5), waits.Quantile(0.99), waits.Quantile(0.999), waits.Max()
	if t.Target != targetNull {
		if res.DiskBytes, err = allocated(t.Path); err != nil {
			return res, err
		}
	}
	return res, nil
}

// write hands all messages over.
func (t StorageTask) write(ctx context.Context, s *source, waits *Histogram) (err error) {
	w, err := t.create(ctx)
	if err != nil {
		return err
	}
	stopSync := syncEvery(w, t.Sync)
	defer func() { err = errors.Join(err, stopSync(), w.close()) }()
	batch := make([]plugin.Message, 0, max(1, batchBytes/t.Size))
	begin := time.Now()
	due := func(i int) time.Time {
		return begin.Add(time.Duration(float64(i) * float64(t.Size) / float64(t.Pace) * 1e9))
	}
	for i := 0; i < t.Count; {
		if t.Pace > 0 && !sleepUntil(ctx, due(i)) {
			return ctx.Err()
		}
		now := time.Now()
		first := i
		for batch = batch[:0]; i < t.Count && len(batch) < cap(batch) && (t.Pace == 0 || !due(i).After(now)); i++ {
			batch = append(batch, s.message(i))
		}
		if len(batch) == 0 {
			continue
		}
		if err := w.Write(batch); err != nil {
			return err
		}
		end := time.Now()
		if t.Pace == 0 {
			waits.addN(end.Sub(now), uint64(len(batch)))
			if err := ctx.Err(); err != nil {
				return err
			}
			continue
		}
		for k := first; k < i; k++ {
			waits.Add(end.Sub(due(k)))
		}
	}
	return nil
}

// syncEvery calls Sync from another goroutine, as the recorder does. stop waits for the last one and returns the first error.
func syncEvery(w storageWriter, every time.Duration) (stop func() error) {
	if every <= 0 {
		return func() error { return nil }
	}
	quit, done := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				done <- nil
				return
			case <-tick.C:
				if err := w.Sync(); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	return func() error { close(quit); return <-done }
}

// read reads every message once and compares the sum of their words with what was written.
func (t StorageTask) read(ctx context.Context, s *source, waits *Histogram) (seconds, cpu float64, err error) {
	r, err := t.open(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	var sum uint64
	n := 0
	cpu, begin := processCPU(), time.Now()
	last := begin
	if t.Order == OrderSequential {
		err = r.scan(func(data []byte) {
			sum += touch(data)
			n++
		})
	} else {
		for n < t.Count && err == nil {
			var data []byte
			if data, err = r.get(s.key(n)); err == nil {
				sum += touch(data)
				n++
				now := time.Now()
				waits.Add(now.Sub(last))
				last = now
			}
			if n%1024 == 0 && ctx.Err() != nil {
				err = ctx.Err()
			}
		}
	}
	seconds, cpu = time.Since(begin).Seconds(), processCPU()-cpu
	if err != nil {
		return seconds, cpu, fmt.Errorf("message %d: %w", n, err)
	}
	var want uint64
	for k := range t.Count {
		want += touch(s.data(k))
	}
	if n != t.Count || sum != want {
		return seconds, cpu, fmt.Errorf("read %d messages with sum %x, written were %d with sum %x", n, sum, t.Count, want)
	}
	return seconds, cpu, nil
}
