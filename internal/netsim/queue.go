package netsim

import (
	"container/heap"
	"sync"
	"time"
)

// batch is the most datagrams that are handed over at once, and queueBytes what may wait in a queue, as in the buffer of
// a socket.
const (
	batch      = 32
	queueBytes = 16 << 20
)

// queue holds datagrams until they are due and hands them over on a goroutine of its own.
type queue struct {
	mu     sync.Mutex
	items  items
	bytes  int
	seq    int
	closed bool
	wake   chan struct{}
	done   chan struct{} // closed when the goroutine has ended; nil before start
}

type item struct {
	due  time.Time
	seq  int // order among those due together
	data []byte
	put  func([]byte) // nil: part of a batch for deliver
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// add puts data (which it keeps) into the queue; false if there is no room, or no one left to take it.
func (q *queue) add(late time.Duration, data []byte, put func([]byte)) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.bytes+len(data) > queueBytes {
		return false
	}
	q.seq++
	q.bytes += len(data)
	heap.Push(&q.items, item{time.Now().Add(late), q.seq, data, put})
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// start begins to hand over: items with a put function by it, others in batches to deliver.
func (q *queue) start(deliver func([][]byte)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.done != nil {
		return
	}
	q.done = make(chan struct{})
	go q.run(deliver)
}

func (q *queue) run(deliver func([][]byte)) {
	defer close(q.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		list, put, wait, closed := q.next()
		switch {
		case closed:
			return
		case put != nil:
			put(list[0])
		case len(list) > 0:
			deliver(list)
		default:
			timer.Reset(wait)
			select {
			case <-q.wake:
			case <-timer.C:
			}
		}
	}
}

// next takes what is due, or says how long there is nothing to do.
func (q *queue) next() (list [][]byte, put func([]byte), wait time.Duration, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, nil, 0, true
	}
	now := time.Now()
	for len(q.items) > 0 && len(list) < batch && !q.items[0].due.After(now) {
		if q.items[0].put != nil && len(list) > 0 {
			break
		}
		i := heap.Pop(&q.items).(item)
		q.bytes -= len(i.data)
		list = append(list, i.data)
		if i.put != nil {
			return list, i.put, 0, false
		}
	}
	wait = time.Hour
	if len(q.items) > 0 {
		wait = q.items[0].due.Sub(now)
	}
	return list, nil, wait, false
}

// close ends the goroutine and waits for it. What waits is lost.
func (q *queue) close() {
	q.mu.Lock()
	q.closed, q.items, q.bytes = true, nil, 0
	done := q.done
	select {
	case q.wake <- struct{}{}:
	default:
	}
	q.mu.Unlock()
	if done != nil {
		<-done
	}
}

// items is a heap by due time.
type items []item

func (h items) Len() int { return len(h) }
func (h items) Less(i, j int) bool {
	return h[i].due.Before(h[j].due) || h[i].due.Equal(h[j].due) && h[i].seq < h[j].seq
}
func (h items) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *items) Push(x any)   { *h = append(*h, x.(item)) }
func (h *items) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = item{}
	*h = (*h)[:last]
	return x
}
