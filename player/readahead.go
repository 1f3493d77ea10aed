package player

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gobag/gobag/bag"
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
	bag     *bag.Reader
	query   plugin.Query
	loop    bool
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
	for {
		n, err := r.pass(ctx)
		if err != nil {
			r.err = err
			return
		}
		if !r.loop || n == 0 {
			return
		}
		if err := r.send(ctx, item{}); err != nil {
			r.err = err
			return
		}
	}
}

// pass reads the bag once and returns the number of messages.
func (r *readAhead) pass(ctx context.Context) (n int, err error) {
	it, err := r.bag.Messages(r.query)
	if err != nil {
		return 0, fmt.Errorf("read bag: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var m plugin.Message
	var damage *plugin.CorruptError
	for found := 0; ; {
		switch err := it.Next(&m); {
		case errors.Is(err, io.EOF):
			return n, nil
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
		data, err := r.buffers.get(ctx, len(m.Data))
		if err != nil {
			return n, err
		}
		copy(data, m.Data)
		if err := r.send(ctx, item{pub, m.RecvTime, data}); err != nil {
			return n, err
		}
		n++
	}
}

func (r *readAhead) send(ctx context.Context, it item) error {
	select {
	case r.items <- it:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
