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

func (p *Player) emit(kind EventKind, level slog.Level, topic, text string) {
	if p.o.OnEvent == nil {
		if topic != "" {
			p.o.Logger.Log(context.Background(), level, text, "topic", topic)
		} else {
			p.o.Logger.Log(context.Background(), level, text)
		}
		return
	}
	p.eventMu.Lock()
	defer p.eventMu.Unlock()
	p.o.OnEvent(Event{kind, level, topic, text})
}
