package player

import (
	"context"
	"math/bits"
	"sync"
)

// buffers lends memory for messages read ahead, at most limit bytes at a time; one message may be larger. What comes back
// is kept for the next message of its size class, as far as lent and kept memory stay within limit together.
type buffers struct {
	limit int64
	freed chan struct{} // holds a token when memory came back since the last wait

	mu   sync.Mutex
	lent int64
	kept int64
	free [64][][]byte // by class: capacity 1 << class
}

// minClass is the smallest size lent: 1 << minClass bytes.
const minClass = 8

func newBuffers(limit int64) *buffers {
	return &buffers{limit: limit, freed: make(chan struct{}, 1)}
}

// get lends n bytes, waiting while too many are lent. The error is that of ctx. One goroutine calls it.
func (b *buffers) get(ctx context.Context, n int) ([]byte, error) {
	class := sizeClass(n)
	for {
		if buf := b.try(class); buf != nil {
			return buf[:n], nil
		}
		select {
		case <-b.freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// fits says whether get would lend n bytes at once.
func (b *buffers) fits(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lent == 0 || b.lent+int64(1)<<sizeClass(n) <= b.limit
}

func (b *buffers) try(class int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := int64(1) << class
	if b.lent > 0 && b.lent+size > b.limit {
		return nil
	}
	b.lent += size
	if n := len(b.free[class]); n > 0 {
		buf := b.free[class][n-1]
		b.free[class][n-1] = nil
		b.free[class] = b.free[class][:n-1]
		b.kept -= size
		return buf
	}
	if b.lent+b.kept > b.limit { // other classes hold what this one needs
		for c := range b.free {
			b.free[c] = nil
		}
		b.kept = 0
	}
	return make([]byte, size)
}

// put takes back what get lent. Any goroutine may call it.
func (b *buffers) put(buf []byte) {
	class := sizeClass(cap(buf))
	size := int64(1) << class
	b.mu.Lock()
	b.lent -= size
	if b.lent+b.kept+size <= b.limit {
		b.free[class] = append(b.free[class], buf[:cap(buf)])
		b.kept += size
	}
	b.mu.Unlock()
	select {
	case b.freed <- struct{}{}:
	default:
	}
}

// sizeClass returns the smallest class that holds n bytes.
func sizeClass(n int) int {
	if n <= 1<<minClass {
		return minClass
	}
	return bits.Len(uint(n - 1))
}
