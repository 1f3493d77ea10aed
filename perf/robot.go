package perf

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gobag/gobag/ros"
)

// Robot publishes streams on a node.
type Robot struct {
	streams []*Stream
	pubs    []ros.Publisher
	sent    []uint64
}

// NewRobot advertises all streams and publishes the latched ones. The node stays the caller's.
func NewRobot(node ros.Node, streams []*Stream) (*Robot, error) {
	r := &Robot{streams: streams, sent: make([]uint64, len(streams))}
	for i, s := range streams {
		p, err := node.Advertise(s.Topic, s.QoS)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("advertise %s: %w", s.Topic.Name, err), r.Close())
		}
		r.pubs = append(r.pubs, p)
		if s.Period == 0 {
			if err := p.Publish(s.Append(nil, 0), s.base); err != nil {
				return nil, errors.Join(fmt.Errorf("publish %s: %w", s.Topic.Name, err), r.Close())
			}
			r.sent[i] = 1
		}
	}
	return r, nil
}

// WaitMatched waits until every stream has a subscription.
func (r *Robot) WaitMatched(ctx context.Context) error { return waitMatched(ctx, r.pubs) }

// Run publishes every stream with its period, each on a goroutine of its own and on an absolute schedule, for d or until
// ctx ends, and waits until the subscriptions have acknowledged everything, at most 5 s. Call it once.
func (r *Robot) Run(ctx context.Context, d time.Duration) error {
	start := time.Now()
	errs := make([]error, len(r.streams))
	var wg sync.WaitGroup
	for i, s := range r.streams {
		if s.Period == 0 {
			continue
		}
		wg.Go(func() {
			var buf []byte
			for n := uint64(0); time.Duration(n)*s.Period < d; n++ {
				if !sleepUntil(ctx, start.Add(time.Duration(n)*s.Period)) {
					return
				}
				buf = s.Append(buf[:0], n)
				if err := r.pubs[i].Publish(buf, time.Now().UnixNano()); err != nil {
					errs[i] = fmt.Errorf("publish %s: %w", s.Topic.Name, err)
					return
				}
				r.sent[i] = n + 1
			}
		})
	}
	wg.Wait()
	waitAcked(ctx, r.pubs, 5*time.Second)
	return errors.Join(errs...)
}

// Sent is the number of messages of each stream, in their order, once Run has returned.
func (r *Robot) Sent() []uint64 { return r.sent }

// Close withdraws the publishers. Idempotent.
func (r *Robot) Close() error {
	var errs []error
	for _, p := range r.pubs {
		errs = append(errs, p.Close())
	}
	r.pubs = nil
	return errors.Join(errs...)
}

// sleepUntil waits for t, or returns false when ctx ends before.
func sleepUntil(ctx context.Context, t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return ctx.Err() == nil
	}
	if d < 2*time.Millisecond { // a timer with a context costs more than it is worth
		time.Sleep(d)
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func waitMatched(ctx context.Context, pubs []ros.Publisher) error {
	for i := 0; ; {
		for i < len(pubs) && pubs[i].Stats().Matched > 0 {
			i++
		}
		if i == len(pubs) {
			return nil
		}
		if !sleepUntil(ctx, time.Now().Add(5*time.Millisecond)) {
			return fmt.Errorf("no subscription of %s appeared (%d of %d topics have one): %w", pubs[i].Topic().Name, i, len(pubs), ctx.Err())
		}
	}
}

// waitAcked waits until nothing is unacknowledged, at most limit, and reports whether that was reached.
func waitAcked(ctx context.Context, pubs []ros.Publisher, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for i := 0; ; {
		for i < len(pubs) && pubs[i].Stats().Unacked == 0 {
			i++
		}
		if i == len(pubs) {
			return true
		}
		if !sleepUntil(ctx, time.Now().Add(5*time.Millisecond)) {
			return false
		}
	}
}
