package player

import (
	"context"
	"sync"
	"time"
)

const (
	// largeMessage is a payload that takes long to send: more than one datagram.
	largeMessage = 64 << 10

	// laneLength is how many messages may wait in a lane before the whole playback waits. It bounds how far topics can
	// get out of step when sending is slower than the schedule.
	laneLength = 8
)

// lanes publishes messages that are due. Sending a large message takes milliseconds, in which those of other topics come
// due; so a topic that has large messages gets a goroutine of its own from its first large message on. The order within a
// topic is kept.
type lanes struct {
	p       *Player
	ctx     context.Context // of the playback
	fail    func(error)     // ends it
	open    []chan dueItem
	running sync.WaitGroup
}

// dueItem is a message to be sent now. at is when it was due; zero if it had no due time.
type dueItem struct {
	item
	at time.Time
}

// send publishes a message, or hands it to the lane of its topic, and tells its block that it is done. One goroutine calls
// it. The error is that of the publisher, or of the playback's end.
func (l *lanes) send(it dueItem, now time.Time) error {
	lane := it.pub.lane
	if lane == nil {
		if len(it.data) < largeMessage {
			return l.publish(&it, now)
		}
		lane = make(chan dueItem, laneLength)
		it.pub.lane = lane
		l.open = append(l.open, lane)
		l.running.Go(func() { l.run(lane) })
	}
	select {
	case lane <- it:
		return nil
	case <-l.ctx.Done():
		it.done()
		return context.Cause(l.ctx)
	}
}

// run publishes what is put into a lane until that is closed. After the end of the playback it only gives the memory back.
func (l *lanes) run(lane <-chan dueItem) {
	for it := range lane {
		if l.ctx.Err() != nil {
			it.done()
			continue
		}
		if err := l.publish(&it, time.Now()); err != nil {
			l.fail(err)
		}
	}
}

func (l *lanes) publish(it *dueItem, now time.Time) error {
	if !it.at.IsZero() {
		l.p.lateness.add(now.Sub(it.at))
	}
	err := l.p.publish(&it.item, now)
	it.done()
	return err
}

// close waits until everything that was handed over is sent.
func (l *lanes) close() {
	for _, lane := range l.open {
		close(lane)
	}
	l.running.Wait()
}
