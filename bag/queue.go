package bag

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"
	"unsafe"
)

// QueueOptions configure a Queue.
type QueueOptions struct {
	MaxBytes   int64          // total cost of what is queued or being written; 0 = 100 MiB. Nothing is allocated before it is needed
	Reserve    float64        // share of MaxBytes kept for small messages; 0 = 0.10, negative = none
	SmallLimit int            // payloads below this many bytes are small; 0 = 64 KiB
	Priority   map[string]int // topics with a higher number give way later; default 0
	Held       []string       // topics whose publishers can be held (Offer): what is queued of them never gives way
	MaxSpan    time.Duration  // between the receive stamps of the oldest and the newest message that is queued; what is later is dropped. 0 = any
}

func (o QueueOptions) withDefaults() QueueOptions {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 100 << 20
	}
	if o.Reserve == 0 {
		o.Reserve = 0.10
	}
	o.Reserve = min(max(o.Reserve, 0), 1)
	if o.SmallLimit <= 0 {
		o.SmallLimit = 64 << 10
	}
	return o
}

// Entry is one message in a Queue.
type Entry struct {
	Topic    *QueueTopic // from Queue.Topic of the same queue
	RecvTime int64       // ns since the Unix epoch
	SendTime int64
	Source   uint32
	Seq      uint64
	Order    uint64 // set by Push: ascends in the order of queueing, from 1
	Mark     uint8  // means nothing to the queue: it is handed through
	Data     []byte // the queue's from Push until Release
	Cost     int    // bytes of memory that the payload holds; at least len(Data) counts. Push adds EntryCost
	Owner    interface {
		Release(data []byte) // takes Data back when it is written or dropped; called once, without locks held
	}
}

// EntryCost is what a queued message costs beside its payload: its node and its place in the batch that Take fills.
const EntryCost = int(unsafe.Sizeof(node{}) + unsafe.Sizeof(Entry{}))

// Queue is the one queue between reception and storage: bounded in bytes, never blocking the side that pushes.
//
// When it is full, topics give way in the order of their priority, lowest first, and among equals by their bandwidth,
// largest first: queued messages of the topic that is first in this order are dropped, newest first, to make room, or
// the message pushed is dropped itself when its own topic is the one to give way. Messages of SmallLimit and more may
// use 1−Reserve of the queue only. Whatever is dropped is released and counted on its topic.
//
// A message bigger than all of the queue is taken when the queue is empty, as rosbag2 does.
//
// Any number of goroutines may Push; one goroutine may Take.
type Queue struct {
	o        QueueOptions
	bigLimit int64
	reserve  int64
	start    time.Time
	wake     chan struct{} // capacity 1

	mu      sync.Mutex
	topics  map[string]*QueueTopic
	ranking []*QueueTopic // who gives way, first to last
	ranked  time.Duration // when, since start
	stale   bool          // a topic is new since

	head, tail *node // what is queued, by Order
	n          int
	bytes      int64 // cost of what is queued or taken and not done
	held       int64 // part of bytes of the topics of Held
	givers     int   // so many topics at the head of ranking may have to give way
	small      int64 // part of bytes of small messages
	queued     int64 // part of bytes that is still queued
	order      uint64
	waiting    bool
	closed     bool

	free  *node // for reuse
	nfree int

	highWater    int64
	pushed       uint64
	dropped      uint64
	droppedBytes uint64
}

// QueueTopic is a topic of a Queue with its counters.
type QueueTopic struct {
	q        *Queue
	name     string
	priority int
	held     bool

	// Guarded by q.mu.
	rank         int
	rate         rate
	big, small   backlog
	pushed       uint64
	dropped      uint64
	droppedBytes uint64
}

// backlog is what is queued of a topic and size.
type backlog struct {
	newest *node // linked backwards
	bytes  int64 // cost
}

// node is a queued message, linked with all others by Order and with those of its topic and size by age.
type node struct {
	e          Entry
	next, prev *node
	older      *node
}

// QueueStats describe a Queue at one moment.
type QueueStats struct {
	Len       int   // messages queued
	Bytes     int64 // their cost and that of what was taken and is not done
	InFlight  int64 // the part of Bytes that was taken and is not done
	MaxBytes  int64
	Held      int64 // the part of Bytes of the topics of QueueOptions.Held
	HighWater int64 // largest Bytes so far

	Pushed       uint64 // messages given to Push
	Dropped      uint64 // those of them that were not and will not be taken
	DroppedBytes uint64 // payload bytes of those
}

// maxFree bounds the nodes kept for reuse (2 MiB).
const maxFree = 16384

// NewQueue returns an empty queue.
func NewQueue(o QueueOptions) *Queue {
	o = o.withDefaults()
	q := &Queue{o: o, start: time.Now(), wake: make(chan struct{}, 1), topics: map[string]*QueueTopic{}}
	q.reserve = int64(float64(o.MaxBytes) * o.Reserve)
	q.bigLimit = o.MaxBytes - q.reserve
	return q
}

// Topic returns the topic of that name, the same for every call.
func (q *Queue) Topic(name string) *QueueTopic {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.topics[name]
	if t == nil {
		t = &QueueTopic{q: q, name: name, priority: q.o.Priority[name], held: slices.Contains(q.o.Held, name), rank: len(q.ranking)}
		q.topics[name] = t
		q.ranking = append(q.ranking, t)
		q.stale = true
	}
	return t
}

// Name returns the topic's name.
func (t *QueueTopic) Name() string { return t.name }

// Pushed returns how many messages of the topic were given to Push.
func (t *QueueTopic) Pushed() uint64 { p, _, _ := t.Counts(); return p }

// Dropped returns how many of them were dropped.
func (t *QueueTopic) Dropped() uint64 { _, d, _ := t.Counts(); return d }

// DroppedBytes returns the payload bytes of those.
func (t *QueueTopic) DroppedBytes() uint64 { _, _, b := t.Counts(); return b }

// Counts returns the three counters as they were at one moment.
func (t *QueueTopic) Counts() (pushed, dropped, droppedBytes uint64) {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	return t.pushed, t.dropped, t.droppedBytes
}

// Push queues a message without ever waiting for the storage. It reports false when this message was dropped: the queue
// is closed, or full and the message's topic is the one to give way. The queue owns e.Data from here on, whatever is
// returned. In steady state nothing is allocated.
func (q *Queue) Push(e Entry) bool {
	e.Cost = max(e.Cost, len(e.Data)) + EntryCost
	q.mu.Lock()
	now := time.Since(q.start)
	t := e.Topic
	t.pushed++
	q.pushed++
	t.rate.add(now, len(e.Data))
	var evicted *node
	if q.closed || q.tooLong(&e) || !q.fits(&e) && !q.makeRoom(&e, now, &evicted) {
		q.countDrop(&e)
		q.mu.Unlock()
		release(&e)
		return false
	}
	q.order++
	e.Order = q.order
	q.link(&e)
	q.queuedOne(evicted)
	return true
}

// queuedOne releases q.mu after a message was linked: it wakes Take and gives back what was evicted.
func (q *Queue) queuedOne(evicted *node) {
	wake := q.waiting
	q.waiting = false
	q.mu.Unlock()
	if wake {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
	if evicted != nil {
		q.recycle(evicted)
	}
}

// Offer is Push for a topic of QueueOptions.Held: where Push would drop the message it is refused instead. Then nothing is
// counted, e.Data stays the caller's, and there is room again when QueueStats.Held has fallen. All topics of Held together
// have half of the queue, or one message.
func (q *Queue) Offer(e Entry) bool {
	e.Cost = max(e.Cost, len(e.Data)) + EntryCost
	q.mu.Lock()
	now := time.Since(q.start)
	var evicted *node
	if q.closed || q.held > 0 && q.held+int64(e.Cost) > q.o.MaxBytes/2 || q.tooLong(&e) ||
		!q.fits(&e) && !q.makeRoom(&e, now, &evicted) {
		q.mu.Unlock()
		return false
	}
	e.Topic.pushed++
	q.pushed++
	e.Topic.rate.add(now, len(e.Data))
	q.order++
	e.Order = q.order
	q.link(&e)
	q.queuedOne(evicted)
	return true
}

// tooLong says whether e is too far from what has waited longest.
func (q *Queue) tooLong(e *Entry) bool {
	return q.o.MaxSpan > 0 && q.head != nil && e.RecvTime-q.head.e.RecvTime > int64(q.o.MaxSpan)
}

func (q *Queue) isSmall(e *Entry) bool { return len(e.Data) < q.o.SmallLimit }

// fits says whether the limits allow e. Small messages always have the reserve, even beside a message that is bigger than
// the queue.
func (q *Queue) fits(e *Entry) bool {
	cost := int64(e.Cost)
	if q.isSmall(e) && q.small+cost <= q.reserve {
		return true
	}
	if q.bytes == 0 {
		return true
	}
	return q.bytes+cost <= q.o.MaxBytes && (q.isSmall(e) || q.bytes-q.small+cost <= q.bigLimit)
}

// link appends e to the queue and to its topic.
func (q *Queue) link(e *Entry) {
	n := q.free
	if n != nil {
		q.free = n.next
		q.nfree--
		n.next = nil
	} else {
		n = &node{}
	}
	n.e = *e
	n.prev = q.tail
	if q.tail != nil {
		q.tail.next = n
	} else {
		q.head = n
	}
	q.tail = n

	cost := int64(e.Cost)
	b := q.backlog(e)
	n.older = b.newest
	b.newest = n
	b.bytes += cost

	q.n++
	if e.Topic.held {
		q.held += cost
	}
	q.bytes += cost
	q.queued += cost
	if q.isSmall(e) {
		q.small += cost
	}
	q.highWater = max(q.highWater, q.bytes)
}

func (q *Queue) backlog(e *Entry) *backlog {
	if q.isSmall(e) {
		return &e.Topic.small
	}
	return &e.Topic.big
}

// evict takes the newest message of a backlog out of the queue, counts it as dropped and puts it in front of list.
func (q *Queue) evict(b *backlog, list **node) {
	n := b.newest
	b.newest = n.older
	b.bytes -= int64(n.e.Cost)
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		q.head = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		q.tail = n.prev
	}
	q.n--
	q.queued -= int64(n.e.Cost)
	q.account(&n.e)
	q.countDrop(&n.e)
	n.prev, n.older = nil, nil
	n.next = *list
	*list = n
}

// account takes the cost of e off.
func (q *Queue) account(e *Entry) {
	if e.Topic.held {
		q.held -= int64(e.Cost)
	}
	q.bytes -= int64(e.Cost)
	if q.isSmall(e) {
		q.small -= int64(e.Cost)
	}
}

func (q *Queue) countDrop(e *Entry) {
	e.Topic.dropped++
	e.Topic.droppedBytes += uint64(len(e.Data))
	q.dropped++
	q.droppedBytes += uint64(len(e.Data))
}

// Take appends all that is queued to dst, ordered by Order, and waits while there is nothing. The entries' cost stays
// counted until Done is called for them; hand back parts as soon as they are written, so that their room is free again.
// io.EOF once the queue is closed and empty; the error of ctx when that ends first. One goroutine may take.
func (q *Queue) Take(ctx context.Context, dst []Entry) ([]Entry, error) {
	if err := q.waitLocked(ctx); err != nil {
		return dst, err
	}
	list, n := q.detach()
	q.mu.Unlock()

	dst = slices.Grow(dst, n)
	kept, last := 0, (*node)(nil)
	for at := list; at != nil; at = at.next {
		dst = append(dst, at.e)
		at.e = Entry{}
		at.prev, at.older = nil, nil
		if kept < maxFree {
			kept, last = kept+1, at
		}
	}
	q.mu.Lock()
	if q.nfree+kept <= maxFree {
		last.next = q.free
		q.free = list
		q.nfree += kept
	}
	q.mu.Unlock()
	return dst, nil
}

// waitLocked returns nil with q.mu held when something is queued, else an error without it.
func (q *Queue) waitLocked(ctx context.Context) error {
	for done := false; ; {
		q.mu.Lock()
		switch {
		case q.head != nil:
			return nil
		case q.closed:
			q.mu.Unlock()
			return io.EOF
		case done:
			q.mu.Unlock()
			return ctx.Err()
		}
		q.waiting = true
		q.mu.Unlock()
		select {
		case <-q.wake:
		case <-ctx.Done():
			done = true
		}
	}
}

// detach empties the queue and returns the list of its n nodes. q.mu is held.
func (q *Queue) detach() (list *node, n int) {
	list, n = q.head, q.n
	q.head, q.tail, q.n, q.queued = nil, nil, 0, 0
	for _, t := range q.ranking {
		t.big, t.small = backlog{}, backlog{}
	}
	return list, n
}

// Done releases the data of entries that Take returned and gives their cost back. Entries may be handed back in parts,
// each once; they are cleared.
func (q *Queue) Done(entries []Entry) {
	q.mu.Lock()
	for i := range entries {
		if entries[i].Topic != nil {
			q.account(&entries[i])
		}
	}
	q.mu.Unlock()
	for i := range entries {
		release(&entries[i])
		entries[i] = Entry{}
	}
}

// Close ends the queue: Push drops from now on, Take returns what is left and then io.EOF. Idempotent.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	q.waiting = false
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Stats describes the queue.
func (q *Queue) Stats() QueueStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return QueueStats{Len: q.n, Bytes: q.bytes, InFlight: q.bytes - q.queued, MaxBytes: q.o.MaxBytes, Held: q.held, HighWater: q.highWater,
		Pushed: q.pushed, Dropped: q.dropped, DroppedBytes: q.droppedBytes}
}

func release(e *Entry) {
	if e.Owner != nil {
		e.Owner.Release(e.Data)
	}
}

// recycle releases what was evicted and keeps the nodes.
func (q *Queue) recycle(list *node) {
	last, n := list, 1
	for at := list; at != nil; at = at.next {
		release(&at.e)
		at.e = Entry{}
		if at != list {
			last, n = at, n+1
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.nfree+n <= maxFree {
		last.next = q.free
		q.free = list
		q.nfree += n
	}
}
