package bag

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

const (
	packBatch  = 4 << 20   // payload bytes that are compressed before they are written; bounds the memory for it
	packAlone  = 128 << 10 // less than this is not worth a second goroutine
	zstdWindow = 1 << 20   // of a compressor: what it remembers, and about a third of its memory
	partSuffix = ".part"   // of a compressed file that is not finished; its name begins with a dot
)

// encoderOptions are those of rosbag2 (level 1), in less memory.
func encoderOptions(threads int) []zstd.EOption {
	return []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(threads), zstd.WithWindowSize(zstdWindow),
		zstd.WithLowerEncoderMem(true), zstd.WithZeroFrames(true)}
}

// messagePacker compresses payloads, several at a time. It belongs to the goroutine that writes.
type messagePacker struct {
	enc    *zstd.Encoder
	arenas [][]byte // of each goroutine; what was packed lies there until the next pack

	// Of threads with a priority of their own, which live until close.
	jobs    chan func()
	workers sync.WaitGroup
}

// newMessagePacker starts threads where they need a priority. refused is called when they do not get it.
func newMessagePacker(c Compression, refused func(error)) (*messagePacker, error) {
	enc, err := zstd.NewWriter(nil, encoderOptions(c.Threads)...)
	if err != nil {
		return nil, err
	}
	p := &messagePacker{enc: enc, arenas: make([][]byte, c.Threads)}
	if c.Priority != 0 {
		p.jobs = make(chan func())
		for range c.Threads {
			p.workers.Go(func() {
				withPriority(c.Priority, refused, func() {
					for job := range p.jobs {
						job()
					}
				})
			})
		}
	}
	return p, nil
}

// close ends the threads.
func (p *messagePacker) close() {
	if p.jobs != nil {
		close(p.jobs)
		p.workers.Wait()
		p.jobs = nil
	}
}

// pack replaces the payloads of ms by zstd frames, valid until the next call. It returns when all are done.
func (p *messagePacker) pack(ms []plugin.Message) {
	var total int
	for i := range ms {
		total += len(ms[i].Data)
	}
	var next atomic.Int64
	work := func(k int) {
		arena := p.arenas[k][:0]
		for i := next.Add(1) - 1; i < int64(len(ms)); i = next.Add(1) - 1 {
			at := len(arena)
			arena = p.enc.EncodeAll(ms[i].Data, arena)
			ms[i].Data = arena[at:len(arena):len(arena)]
		}
		if cap(arena) > 4*packBatch { // after a very large message; what points there stays
			arena = nil
		}
		p.arenas[k] = arena
	}
	helpers := min(len(p.arenas), len(ms), 1+total/packAlone) - 1
	var wg sync.WaitGroup
	if p.jobs != nil {
		wg.Add(helpers + 1)
		for k := range helpers + 1 {
			p.jobs <- func() { work(k); wg.Done() }
		}
		wg.Wait()
		return
	}
	for k := range helpers {
		wg.Go(func() { work(k + 1) })
	}
	work(0)
	wg.Wait()
}

// filePacker compresses closed storages in the background, the oldest first.
type filePacker struct {
	dir     string
	c       Compression
	done    func(name string, before, after int64) // called when a file has been replaced by its compressed form
	left    func(name string)                      // called when a file stays as it is since too many wait
	refused func(error)                            // called when threads do not get their priority

	mu      sync.Mutex
	waiting []string
	working map[string]bool
	running int
	wg      sync.WaitGroup
	errs    []error
	moved   atomic.Int64 // bytes read so far: a sign of life
}

// add hands over a storage that was closed; name is relative to the bag.
func (p *filePacker) add(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, name)
	if p.running < p.c.Threads {
		p.running++
		p.wg.Go(func() { withPriority(p.c.Priority, p.refused, p.run) })
	}
	if busy := p.running - len(p.working); p.c.Queue > 0 && len(p.waiting)-busy > p.c.Queue { // each of busy is about to take one
		p.left(p.waiting[0])
		p.waiting = p.waiting[1:]
	}
}

func (p *filePacker) run() {
	for {
		p.mu.Lock()
		if len(p.waiting) == 0 {
			p.running--
			p.mu.Unlock()
			return
		}
		name := p.waiting[0]
		p.waiting = p.waiting[1:]
		if p.working == nil {
			p.working = map[string]bool{}
		}
		p.working[name] = true
		p.mu.Unlock()
		before, after, err := p.pack(name)
		p.mu.Lock()
		delete(p.working, name)
		p.mu.Unlock()
		if err != nil {
			p.mu.Lock()
			p.errs = append(p.errs, fmt.Errorf("compress %s: %w; the file stays as it was", name, err))
			p.mu.Unlock()
			continue
		}
		p.done(name, before, after)
	}
}

// drop says that a file will be deleted: it is not compressed any more. False while it is being compressed.
func (p *filePacker) drop(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.working[name] {
		return false
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(s string) bool { return s == name })
	return true
}

// wait returns when everything that was added is done, with all failures.
func (p *filePacker) wait() error {
	p.wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.errs...)
}

// pack replaces one storage by its compressed form. At every moment one of the two is there whole.
func (p *filePacker) pack(name string) (before, after int64, err error) {
	plain := filepath.Join(p.dir, name)
	in, err := os.Open(plain)
	if err != nil {
		return 0, 0, err
	}
	defer in.Close()
	fi, err := in.Stat()
	if err != nil {
		return 0, 0, err
	}
	part := filepath.Join(p.dir, "."+name+zstdExt+partSuffix)
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part))
		}
	}()
	if after, err = p.copy(out, in, fi.Size()); err != nil {
		return 0, 0, errors.Join(err, out.Close())
	}
	if err = out.Sync(); err != nil {
		return 0, 0, errors.Join(err, out.Close())
	}
	if err = out.Close(); err != nil {
		return 0, 0, err
	}
	if err = os.Rename(part, plain+zstdExt); err != nil {
		return 0, 0, err
	}
	if err := fsx.SyncDir(p.dir); err != nil { // from here on the compressed form has its name
		return 0, 0, err
	}
	_ = in.Close() // read only; Windows removes no open file
	return fi.Size(), after, os.Remove(plain)
}

// copy compresses size bytes of in and returns how many came out.
func (p *filePacker) copy(out io.Writer, in io.Reader, size int64) (int64, error) {
	counted := &countingWriter{w: out}
	enc, err := zstd.NewWriter(nil, encoderOptions(1)...)
	if err != nil {
		return 0, err
	}
	enc.ResetContentSize(counted, size) // readers that want to know it beforehand find it in the header
	buf := make([]byte, 1<<20)
	var copied int64
	for {
		n, rerr := in.Read(buf)
		if _, err := enc.Write(buf[:n]); err != nil {
			return 0, errors.Join(err, enc.Close())
		}
		copied += int64(n)
		p.moved.Add(int64(n))
		if errors.Is(rerr, io.EOF) {
			break
		}
		if rerr != nil {
			return 0, errors.Join(rerr, enc.Close())
		}
	}
	if err := enc.Close(); err != nil {
		return 0, err
	}
	if copied != size {
		return 0, fmt.Errorf("the file has changed: %d bytes, %d before", copied, size)
	}
	return counted.n, nil
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
