package rtps

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// Memory of payloads. Small samples are cut from slabs that are freed as a whole; larger ones have a buffer each, of a
// few size classes. Both kinds count references, so that a payload can be shared by several readers and stay alive while
// it is being sent.

const (
	slabSize    = 64 << 10
	slabPayload = 4 << 10 // payloads up to this size share slabs
	minClass    = 13      // smallest buffer 8 KiB
	maxClass    = 27      // pooled up to 128 MiB

	sampleOverhead = 128 // bookkeeping of a sample here and in a queue, bytes
)

// buffer is reference-counted memory. It is the Owner of samples.
type buffer struct {
	refs atomic.Int32
	pool *pool
	b    []byte // whole memory
	used int    // slabs: bytes handed out
}

// Release drops one reference.
func (b *buffer) Release([]byte) { b.release() }

func (b *buffer) release() {
	if n := b.refs.Add(-1); n == 0 {
		b.pool.put(b)
	} else if n < 0 {
		panic("rtps: sample released twice")
	}
}

func (b *buffer) retain() { b.refs.Add(1) }

// pool keeps free buffers for reuse, up to a number of bytes.
type pool struct {
	mu    sync.Mutex
	free  [4 * (maxClass - minClass + 1)][]*buffer
	slabs []*buffer
	kept  int // bytes in free and slabs
	limit int // of kept
}

func newPool(limit int) *pool { return &pool{limit: limit} }

// class returns the index and size of the smallest class that holds n bytes: four classes per power of two, so that at
// most a quarter is wasted. Index -1 means too large to be pooled.
func class(n int) (index, size int) {
	if n <= 1<<minClass {
		return 0, 1 << minClass
	}
	p := bits.Len(uint(n-1)) - 1 // 2^p < n ≤ 2^(p+1)
	quarter := 1 << (p - 2)
	q := (n - 1<<p + quarter - 1) / quarter // 1..4
	index = 4*(p-minClass) + q
	if p >= maxClass {
		return -1, n
	}
	return index, 1<<p + q*quarter
}

// get returns a buffer of at least n bytes with one reference. Its content is undefined.
func (p *pool) get(n int) *buffer {
	i, size := class(n)
	if i >= 0 {
		p.mu.Lock()
		if l := p.free[i]; len(l) > 0 {
			b := l[len(l)-1]
			l[len(l)-1] = nil
			p.free[i] = l[:len(l)-1]
			p.kept -= len(b.b)
			p.mu.Unlock()
			b.refs.Store(1)
			return b
		}
		p.mu.Unlock()
	}
	b := &buffer{pool: p, b: make([]byte, size)}
	b.refs.Store(1)
	return b
}

// getSlab returns an empty slab with one reference, which belongs to the filler.
func (p *pool) getSlab() *buffer {
	p.mu.Lock()
	if n := len(p.slabs); n > 0 {
		b := p.slabs[n-1]
		p.slabs[n-1] = nil
		p.slabs = p.slabs[:n-1]
		p.kept -= slabSize
		p.mu.Unlock()
		b.refs.Store(1)
		b.used = 0
		return b
	}
	p.mu.Unlock()
	b := &buffer{pool: p, b: make([]byte, slabSize)}
	b.refs.Store(1)
	return b
}

// put takes back a buffer without references.
func (p *pool) put(b *buffer) {
	i, size := class(len(b.b))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept+len(b.b) > p.limit {
		return // left to the garbage collector
	}
	switch {
	case len(b.b) == slabSize && b.used > 0:
		p.slabs = append(p.slabs, b)
	case i >= 0 && size == len(b.b):
		b.used = 0
		p.free[i] = append(p.free[i], b)
	default:
		return
	}
	p.kept += len(b.b)
}

// filler cuts small payloads from slabs. Not safe for concurrent use.
type filler struct {
	pool *pool
	slab *buffer
}

// alloc returns n bytes of undefined content, their owner with a reference for the caller, and what they cost in memory.
func (f *filler) alloc(n int) (data []byte, owner *buffer, cost int) {
	if n > slabPayload {
		b := f.pool.get(n)
		return b.b[:n], b, len(b.b) + sampleOverhead
	}
	room := (n + 7) &^ 7
	if f.slab != nil && f.slab.used+room > slabSize {
		f.slab.release()
		f.slab = nil
	}
	if f.slab == nil {
		f.slab = f.pool.getSlab()
	}
	s := f.slab
	data = s.b[s.used : s.used+n : s.used+n]
	s.used += room
	s.retain()
	return data, s, room + sampleOverhead
}

// copy is alloc with a copy of data in it.
func (f *filler) copy(data []byte) (out []byte, owner *buffer, cost int) {
	out, owner, cost = f.alloc(len(data))
	copy(out, data)
	return out, owner, cost
}

// allocCost is what alloc will say.
func allocCost(n int) int {
	if n <= slabPayload {
		return (n+7)&^7 + sampleOverhead
	}
	_, size := class(n)
	return size + sampleOverhead
}

// close drops the filler's slab.
func (f *filler) close() {
	if f.slab != nil {
		f.slab.release()
		f.slab = nil
	}
}
