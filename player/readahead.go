package player

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/plugin"
)

// item is one step of the playback.
type item struct {
	pub   *publication // nil: another file, or the bag begins again
	stamp int64        // when the message was received, ns since the Unix epoch
	data  []byte
	block *block // holds data and is told when it is done
	file  string // with pub nil: a file that is read from here on; "" = the bag begins again
}

func (it *item) done() {
	if it.block != nil {
		it.block.done()
	}
}

// What goes from the reader to the playback at a time: so many items, fewer where they are large, and what there is when
// the playback waits for it.
const (
	batchItems = 64
	batchBytes = 256 << 10
	batchTime  = 100 * time.Microsecond
)

// readAhead reads messages into memory ahead of their time.
type readAhead struct {
	src     *source
	query   plugin.Query
	start   int64 // where every pass but the first begins
	loop    bool
	bySent  bool // order by the publishers' stamps
	keep    int  // messages that wait to be sorted
	sorted  sentHeap
	pubs    map[plugin.TopicID]*publication
	blocks  *blocks
	met     func(*publication, []byte) // told about every message before it is handed over
	damaged func(error)                // told about every damaged storage

	items  chan []item // not empty
	free   chan []item // used up
	hungry atomic.Bool // the playback waits
	batch  []item      // being filled
	most   int         // items of a batch
	bytes  int         // of batch
	sent   time.Time   // the last one
	file   string      // of the message read last
	seen   map[string]bool

	err error // valid after items is closed
}

// newReadAhead reads about so many messages ahead.
func newReadAhead(messages int, b *buffers) *readAhead {
	most := max(1, min(batchItems, messages/8))
	n := max(1, messages/most)
	return &readAhead{seen: map[string]bool{}, keep: messages, most: most, blocks: newBlocks(b), items: make(chan []item, n), free: make(chan []item, n+2)}
}

// maxDamage bounds how many damaged storages are passed over.
const maxDamage = 1000

// run reads until the end of the bag, an error or the end of ctx, then closes items. A damaged storage ends with its last
// whole message; the others are read all the same, and the damage is the error in the end.
func (r *readAhead) run(ctx context.Context) {
	defer close(r.items)
	defer func() {
		r.blocks.close()
		doneAll(r.batch)
		for _, it := range r.sorted {
			it.done()
		}
	}()
	if r.err = r.passes(ctx); r.err == nil {
		r.err = r.flush(ctx)
	} else if ctx.Err() == nil {
		_ = r.flush(ctx) // what was read before is played
	}
}

func (r *readAhead) passes(ctx context.Context) error {
	for {
		n, err := r.pass(ctx)
		if err != nil {
			return err
		}
		if !r.loop || n == 0 && r.query.Range.Start <= r.start {
			return nil
		}
		r.query.Range = &plugin.TimeRange{Start: r.start, End: r.query.Range.End}
		r.file = ""
		clear(r.seen)
		if err := r.send(ctx, item{}); err != nil {
			return err
		}
	}
}

// pass reads the bag once and returns the number of messages.
func (r *readAhead) pass(ctx context.Context) (n int, err error) {
	it, err := r.src.messages(r.query)
	if err != nil {
		return 0, fmt.Errorf("read bag: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	files, _ := it.(interface{ File() string })
	var m plugin.Message
	var damage *plugin.CorruptError
	for found := 0; ; {
		switch err := it.Next(&m); {
		case errors.Is(err, io.EOF):
			return n, r.release(ctx, 0)
		case errors.As(err, &damage) && found < maxDamage:
			found++
			r.damaged(err)
			continue
		case err != nil:
			return n, fmt.Errorf("read bag: %w", err)
		}
		pub := r.pubs[m.Topic]
		if pub == nil {
			continue
		}
		if files != nil {
			if err := r.readsFile(ctx, files.File()); err != nil {
				return n, err
			}
		}
		r.met(pub, m.Data)
		for len(r.sorted) > 0 && !r.blocks.fits(len(m.Data)) { // what waits to be sorted holds the memory
			if err := r.release(ctx, len(r.sorted)-1); err != nil {
				return n, err
			}
		}
		if !r.blocks.fits(len(m.Data)) {
			if err := r.flush(ctx); err != nil {
				return n, err
			}
		}
		data, in, err := r.blocks.put(ctx, m.Data)
		if err != nil {
			return n, err
		}
		it := item{pub: pub, stamp: m.RecvTime, data: data, block: in}
		if r.bySent {
			if m.SendTime != 0 {
				it.stamp = m.SendTime
			}
			heap.Push(&r.sorted, sentItem{it, n})
			err = r.release(ctx, r.keep)
		} else {
			err = r.send(ctx, it)
		}
		if err != nil {
			return n, err
		}
		n++
	}
}

// release hands over what comes first until at most keep wait to be sorted.
func (r *readAhead) release(ctx context.Context, keep int) error {
	for len(r.sorted) > keep {
		if err := r.send(ctx, heap.Pop(&r.sorted).(sentItem).item); err != nil {
			return err
		}
	}
	return nil
}

// sentHeap orders messages by stamp, equal ones as they were read.
type sentHeap []sentItem

type sentItem struct {
	item
	n int
}

func (h sentHeap) Len() int      { return len(h) }
func (h sentHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h sentHeap) Less(i, j int) bool {
	if h[i].stamp != h[j].stamp {
		return h[i].stamp < h[j].stamp
	}
	return h[i].n < h[j].n
}
func (h *sentHeap) Push(x any) { *h = append(*h, x.(sentItem)) }
func (h *sentHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = sentItem{}
	*h = (*h)[:last]
	return x
}

// readsFile notes the file that the next message is from. Bags that are merged, and files that overlap, take turns; the
// first message of each counts.
func (r *readAhead) readsFile(ctx context.Context, file string) error {
	if file == r.file {
		return nil
	}
	r.file = file
	if r.seen[file] {
		return nil
	}
	r.seen[file] = true
	return r.send(ctx, item{file: file})
}

// send hands an item over, together with those that follow.
func (r *readAhead) send(ctx context.Context, it item) error {
	if r.batch == nil {
		select {
		case r.batch = <-r.free:
		default:
			r.batch = make([]item, 0, r.most)
		}
	}
	r.batch = append(r.batch, it)
	r.bytes += len(it.data)
	if len(r.batch) < r.most && r.bytes < batchBytes && !(r.hungry.Load() && time.Since(r.sent) >= batchTime) {
		return nil
	}
	return r.flush(ctx)
}

// flush hands over what there is.
func (r *readAhead) flush(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	batch := r.batch
	r.batch, r.bytes = nil, 0
	select {
	case r.items <- batch:
		r.sent = time.Now()
		return nil
	case <-ctx.Done():
		doneAll(batch)
		return ctx.Err()
	}
}

// doneAll gives back the memory of items that are not played.
func doneAll(batch []item) {
	for i := range batch {
		batch[i].done()
	}
}

// intake is the playback's end of a readAhead.
type intake struct {
	*readAhead
	batch []item // being played
	at    int
}

// next returns the next item; waited says that it was not there yet. It is not ok at the end, at the end of ctx and when
// another place is sought.
func (in *intake) next(ctx context.Context, s *seek) (it *item, waited, ok bool) {
	if s.pending() {
		return nil, false, false
	}
	if in.at == len(in.batch) {
		if waited, ok = in.more(ctx, s); !ok {
			return nil, false, false
		}
	}
	in.at++
	return &in.batch[in.at-1], waited, true
}

// more takes the next batch.
func (in *intake) more(ctx context.Context, s *seek) (waited, ok bool) {
	if in.batch != nil {
		clear(in.batch)
		in.free <- in.batch[:0]
		in.batch, in.at = nil, 0
	}
	select {
	case in.batch, ok = <-in.items:
		return false, ok
	default:
	}
	in.hungry.Store(true)
	defer in.hungry.Store(false)
	select {
	case in.batch, ok = <-in.items:
		return true, ok
	case <-s.wake:
	case <-ctx.Done():
	}
	return false, false
}

// close gives back what is not played. The reader must have ended.
func (in *intake) close() {
	doneAll(in.batch[in.at:])
	in.batch, in.at = nil, 0
	for batch := range in.items {
		doneAll(batch)
	}
}
