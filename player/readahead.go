package player

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gobag/gobag/plugin"
)

// item is one step of the playback.
type item struct {
	pub   *publication // nil: the bag begins again
	stamp int64        // when the message was received, ns since the Unix epoch
	data  []byte       // owned by the item, goes back to the buffers
}

// readAhead reads messages into memory ahead of their time.
type readAhead struct {
	src     *source
	query   plugin.Query
	start   int64 // where every pass but the first begins
	loop    bool
	bySent  bool // order by the publishers' stamps
	sorted  sentHeap
	pubs    map[plugin.TopicID]*publication
	buffers *buffers
	items   chan item
	met     func(*publication, []byte) // told about every message before it is handed over
	damaged func(error)                // told about every damaged storage

	err error // valid after items is closed
}

// maxDamage bounds how many damaged storages are passed over.
const maxDamage = 1000

// run reads until the end of the bag, an error or the end of ctx, then closes items. A damaged storage ends with its last
// whole message; the others are read all the same, and the damage is the error in the end.
func (r *readAhead) run(ctx context.Context) {
	defer close(r.items)
	defer func() {
		for _, it := range r.sorted {
			r.buffers.put(it.data)
		}
	}()
	for {
		n, err := r.pass(ctx)
		if err != nil {
			r.err = err
			return
		}
		if !r.loop || n == 0 && r.query.Range.Start <= r.start {
			return
		}
		r.query.Range = &plugin.TimeRange{Start: r.start, End: r.query.Range.End}
		if err := r.send(ctx, item{}); err != nil {
			r.err = err
			return
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
		r.met(pub, m.Data)
		for len(r.sorted) > 0 && !r.buffers.fits(len(m.Data)) { // what waits to be sorted holds the memory
			if err := r.release(ctx, len(r.sorted)-1); err != nil {
				return n, err
			}
		}
		data, err := r.buffers.get(ctx, len(m.Data))
		if err != nil {
			return n, err
		}
		copy(data, m.Data)
		it := item{pub, m.RecvTime, data}
		if r.bySent {
			if m.SendTime != 0 {
				it.stamp = m.SendTime
			}
			heap.Push(&r.sorted, sentItem{it, n})
			err = r.release(ctx, cap(r.items))
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

func (r *readAhead) send(ctx context.Context, it item) error {
	select {
	case r.items <- it:
		return nil
	case <-ctx.Done():
		if it.data != nil {
			r.buffers.put(it.data)
		}
		return ctx.Err()
	}
}
