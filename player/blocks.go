package player

import (
	"context"
	"sync/atomic"
)

// blockSize is the memory that messages read in a row share. A larger message has memory of its own.
const blockSize = 256 << 10

// block is memory that holds messages read in a row. It goes back to the buffers when all of them are done.
type block struct {
	of   *buffers
	mem  []byte
	used int
	left atomic.Int32 // messages that are not done, and one while more may come
}

// done says that a message of the block is not needed any more, or that no more messages come into it.
func (b *block) done() {
	if b.left.Add(-1) == 0 {
		b.of.put(b.mem)
	}
}

// blocks puts messages into blocks. One goroutine uses it.
type blocks struct {
	of   *buffers
	size int
	open *block // takes more messages; nil = none
}

func newBlocks(of *buffers) *blocks {
	return &blocks{of: of, size: int(max(min(blockSize, of.limit/8), 1<<minClass))}
}

// fits says whether put takes n bytes without waiting.
func (a *blocks) fits(n int) bool {
	if a.open != nil && a.open.used+n <= len(a.open.mem) {
		return true
	}
	if n <= a.size/2 {
		n = a.size
	}
	return a.of.fits(n)
}

// put copies a message; the block must be told when it is done. It waits while too much memory is lent.
func (a *blocks) put(ctx context.Context, data []byte) ([]byte, *block, error) {
	if b := a.open; b != nil && b.used+len(data) <= len(b.mem) {
		at := b.mem[b.used : b.used+len(data) : b.used+len(data)]
		b.used += len(data)
		b.left.Add(1)
		copy(at, data)
		return at, b, nil
	}
	alone := len(data) > a.size/2
	if !alone {
		a.close()
	}
	size := a.size
	if alone {
		size = len(data)
	}
	mem, err := a.of.get(ctx, size)
	if err != nil {
		return nil, nil, err
	}
	b := &block{of: a.of, mem: mem, used: len(data)}
	b.left.Store(1)
	if !alone {
		b.left.Store(2)
		a.open = b
	}
	at := mem[:len(data):len(data)]
	copy(at, data)
	return at, b, nil
}

// close ends the open block.
func (a *blocks) close() {
	if a.open != nil {
		a.open.done()
		a.open = nil
	}
}
