package player

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

// maxLatched bounds how many messages of a latched topic are looked up before the start.
const maxLatched = 100

// playLatched publishes, before a playback that begins at a stamp behind the start of the bag, what transient-local publishers would
// still have served at that moment: per topic the last messages, as many as were kept. Without them a subscriber would
// never see a map or static transforms published before the start offset.
func (p *Player) playLatched(ctx context.Context, pubs []*publication, at int64) error {
	if at == math.MinInt64 {
		return nil
	}
	for _, pub := range pubs {
		if pub.qos.Durability != ros.TransientLocal {
			continue
		}
		keep := maxLatched
		if pub.qos.History == ros.KeepLast {
			keep = max(1, min(keep, pub.qos.Depth))
		}
		last, err := p.lastBefore(ctx, pub, keep, at)
		if err != nil {
			return err
		}
		for _, data := range last {
			p.learn(pub, data)
			if err := p.publish(&item{pub: pub, data: data}, time.Now()); err != nil {
				return err
			}
		}
		if len(last) > 0 {
			p.emit(EventOther, slog.LevelInfo, pub.from, fmt.Sprintf("topic '%s' is latched: %s from before the start published",
				pub.from, plural(uint64(len(last)), "message")))
		}
	}
	return nil
}

// lastBefore returns copies of the last messages of a publication before the start, oldest first: at most keep, and no
// more bytes than are read ahead. Where the storage cannot be read backwards it is read up to the start.
func (p *Player) lastBefore(ctx context.Context, pub *publication, keep int, at int64) ([][]byte, error) {
	q := plugin.Query{Topics: pub.ids, Range: &plugin.TimeRange{Start: math.MinInt64, End: at - 1}, Reverse: true}
	last, err := p.collect(ctx, q, keep)
	if errors.Is(err, plugin.ErrUnsupported) {
		q.Reverse = false
		last, err = p.collect(ctx, q, keep)
	}
	if err != nil {
		return nil, fmt.Errorf("read bag before the start: %w", err)
	}
	if q.Reverse {
		slices.Reverse(last)
	}
	return last, nil
}

// collect returns copies of the messages of a query that are nearest to the start, as they come.
func (p *Player) collect(ctx context.Context, q plugin.Query, keep int) (last [][]byte, err error) {
	it, err := p.src.messages(q)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var bytes int64
	var m plugin.Message
	var damage *plugin.CorruptError
	for found := 0; ; {
		switch err := it.Next(&m); {
		case errors.Is(err, io.EOF):
			return last, nil
		case errors.As(err, &damage) && found < maxDamage: // reported when playback reaches it
			found++
			continue
		case err != nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, nil
		}
		full := func() bool {
			return len(last) > 0 && (len(last) >= keep || bytes+int64(len(m.Data)) > p.o.ReadAheadBytes)
		}
		if q.Reverse && full() {
			return last, nil
		}
		var buf []byte // of the oldest, used again
		for full() {
			buf = last[0]
			bytes -= int64(len(buf))
			last = last[1:]
		}
		last = append(last, append(buf[:0], m.Data...))
		bytes += int64(len(m.Data))
	}
}
