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
	buffers *buffers
	byPub   map[*publication]chan dueItem
	running sync.WaitGroup
}

// dueItem is a message to be sent now. at is when it was due; zero if it had no due time.
type dueItem struct {
	item
	at time.Time
}

// send publishes a message, or hands it to the lane of its topic. The data goes back to the buffers. One goroutine calls
// it. The error is that of the publisher, or of the playback's end.
func (l *lanes) send(it dueItem) error {
	lane := l.byPub[it.pub]
	if lane == nil {
		if len(it.data) < largeMessage {
			return l.publish(it)
		}
		lane = make(chan dueItem, laneLength)
		l.byPub[it.pub] = lane
		l.running.Go(func() { l.run(lane) })
	}
	select {
	case lane <- it:
		return nil
	case <-l.ctx.Done():
		l.buffers.put(it.data)
		return context.Cause(l.ctx)
	}
}

// run publishes what is put into a lane until that is closed. After the end of the playback it only gives the data back.
func (l *lanes) run(lane <-chan dueItem) {
	for it := range lane {
		if l.ctx.Err() != nil {
			l.buffers.put(it.data)
			continue
		}
		if err := l.publish(it); err != nil {
			l.fail(err)
		}
	}
}

func (l *lanes) publish(it dueItem) error {
	if !it.at.IsZero() {
		l.p.lateness.add(time.Since(it.at))
	}
	err := l.p.publish(it.item)
	l.buffers.put(it.data)
	return err
}

// close waits until everything that was handed over is sent.
func (l *lanes) close() {
	for _, lane := range l.byPub {
		close(lane)
	}
	l.running.Wait()
}
