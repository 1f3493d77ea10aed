package rostest

import (
	"sync"
	"time"
)

// queue holds the samples on their way to one node, by the time they are due.
type queue struct {
	limit int
	wake  chan struct{} // capacity 1
	stop  chan struct{}

	mu     sync.Mutex
	items  items
	next   uint64
	bytes  int
	space  chan struct{} // closed when bytes fall; nil if nobody waits
	closed bool
}

// item is a sample on its way, or the news that one is lost for good.
type item struct {
	due        time.Time
	order      uint64
	pair       *pair
	buffer     *buffer // nil: lost
	sourceTime int64
	seq        uint64
}

func (q *queue) init(limit int) {
	q.limit, q.wake, q.stop = limit, make(chan struct{}, 1), make(chan struct{})
}

// full returns a channel that is closed when there is room again, nil if size bytes fit now. One sample always fits
// into an empty queue.
func (q *queue) full(size int) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.bytes == 0 || q.bytes+size <= q.limit {
		return nil
	}
	if q.space == nil {
		q.space = make(chan struct{})
	}
	return q.space
}

// push adds an item. A closed queue gives the buffer back.
func (q *queue) push(it item) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		it.discard()
		return
	}
	q.next++
	it.order = q.next
	q.bytes += it.size()
	q.items.push(it)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run hands items over when they are due, until close.
func (q *queue) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := time.Hour
		q.mu.Lock()
		for len(q.items) > 0 {
			if wait = time.Until(q.items[0].due); wait > 0 {
				break
			}
			it := q.items.pop()
			size := it.size() // it counts until it is taken
			q.mu.Unlock()
			taken := it.pair.deliver(it)
			q.mu.Lock()
			if !taken {
				q.free(size)
			}
			wait = time.Hour
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return
		}
		timer.Reset(wait)
		select {
		case <-q.wake:
		case <-timer.C:
		case <-q.stop:
			return
		}
	}
}

// free makes room of n bytes known. q.mu is held.
func (q *queue) free(n int) {
	q.bytes -= n
	if q.space != nil {
		close(q.space)
		q.space = nil
	}
}

// close stops run and gives up what is queued. Idempotent.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	close(q.stop)
	for _, it := range q.items {
		it.discard()
	}
	q.items, q.bytes = nil, 0
	if q.space != nil {
		close(q.space)
		q.space = nil
	}
}

func (it item) size() int {
	if it.buffer == nil {
		return 0
	}
	return len(it.buffer.data)
}

func (it item) discard() {
	if it.buffer != nil {
		it.buffer.Release(it.buffer.data)
	}
}

// items is a heap: due first, and of equal ones the older. container/heap would allocate for every item.
type items []item

func (h items) less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	return h[i].order < h[j].order
}

func (h *items) push(it item) {
	*h = append(*h, it)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s.less(i, parent) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

func (h *items) pop() item {
	s := *h
	top, last := s[0], len(s)-1
	s[0], s[last] = s[last], item{}
	s = s[:last]
	*h = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && s.less(child+1, child) {
			child++
		}
		if !s.less(child, i) {
			return top
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}
