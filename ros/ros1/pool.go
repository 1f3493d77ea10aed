package ros1

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

const (
	slabSize     = 64 << 10
	slabMessage  = 8 << 10 // messages up to this size share a slab
	sampleCost   = 160     // bytes that a sample takes beside its payload
	trustedStart = 1 << 20 // bytes made for a length that is not yet backed by data
)

// block is memory for the payloads of samples. It goes back to its pool when the last of them is released.
type block struct {
	pool *sync.Pool // nil: to the garbage collector
	buf  []byte
	refs atomic.Int32
}

// Release implements ros.Owner.
func (b *block) Release([]byte) {
	if b.refs.Add(-1) == 0 && b.pool != nil {
		b.pool.Put(b)
	}
}

// pools are blocks by size: slabs, and four sizes to each power of two for messages of their own.
type pools struct {
	slabs sync.Pool
	large [4 * 32]sync.Pool
}

func newPools() *pools { return &pools{} }

func (p *pools) slab() *block {
	b, ok := p.slabs.Get().(*block)
	if !ok {
		b = &block{pool: &p.slabs, buf: make([]byte, slabSize)}
	}
	b.refs.Store(1)
	return b
}

// class returns which pool holds blocks for n bytes, n > slabMessage, and how large they are.
func class(n int) (index, size int) {
	shift := bits.Len(uint(n-1)) - 3
	quarter := (n + 1<<shift - 1) >> shift // 5 to 8
	return 4*shift + quarter - 5, quarter << shift
}

// get returns a block for n bytes with one reference.
func (p *pools) get(n int) *block {
	i, size := class(n)
	b, ok := p.large[i].Get().(*block)
	if !ok {
		b = &block{pool: &p.large[i], buf: make([]byte, size)}
	}
	b.refs.Store(1)
	return b
}
