package player

import (
	"context"
	"log/slog"
)

// Event is something the user should see. Text is a whole line.
type Event struct {
	Kind  EventKind
	Level slog.Level // Info, Warn or Error
	Topic string     // name in the bag; "" where it concerns no single topic
	Text  string
}

// EventKind tells events apart.
type EventKind int

// The kinds of events.
const (
	EventStarted EventKind = iota + 1 // the first message is due
	EventPaused
	EventResumed
	EventRate    // the rate changed
	EventLoop    // the bag begins again
	EventStopped // the last message is sent and acknowledged
	EventSkipped // a topic is not played
	EventQoS     // the recorded profiles differ, or a subscription cannot receive
	EventStarved // reading does not keep up
	EventGap     // the next message is far away
	EventAcks    // acknowledgements are missing at the end
	EventOther   // anything else worth a line
)

// maxEvents is how many events may wait for a listener that is behind; what comes then is not told.
const maxEvents = 256

// emit hands an event to whoever listens, without waiting for it: a terminal that stands still must not stop the playback.
func (p *Player) emit(kind EventKind, level slog.Level, topic, text string) {
	select {
	case p.events <- Event{kind, level, topic, text}:
	default:
	}
}

// tell hands events over, one after the other, until end is closed and none is left.
func (p *Player) tell(end <-chan struct{}) {
	for {
		select {
		case e := <-p.events:
			p.tellOne(e)
			continue
		case <-end:
		}
		select {
		case e := <-p.events:
			p.tellOne(e)
		default:
			return
		}
	}
}

func (p *Player) tellOne(e Event) {
	switch {
	case p.o.OnEvent != nil:
		p.o.OnEvent(e)
	case e.Topic != "":
		p.o.Logger.Log(context.Background(), e.Level, e.Text, "topic", e.Topic)
	default:
		p.o.Logger.Log(context.Background(), e.Level, e.Text)
	}
}
