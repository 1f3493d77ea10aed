package recorder

import (
	"context"
	"log/slog"
)

// Event is something the user should see. Text is a whole line; the texts of EventSubscribed, EventListening,
// EventRecording, EventStopped and EventAllSubscribed are those of rosbag2, which other tools wait for.
type Event struct {
	Kind  EventKind
	Level slog.Level // Info, Warn or Error
	Topic string     // "" where it concerns no single topic
	Text  string
}

// EventKind tells events apart.
type EventKind int

// The kinds of events.
const (
	EventListening     EventKind = iota + 1 // discovery has begun
	EventRecording                          // the bag is open
	EventSubscribed                         // to a topic
	EventAllSubscribed                      // every named topic is subscribed
	EventSplit                              // a new file was begun
	EventStopped                            // the bag is closed
	EventMissing                            // a named topic is not there yet, or nothing has come
	EventTypeConflict                       // a topic has several types
	EventQoS                                // publishers that an override cannot receive, or that differ
	EventClockStep                          // the wall clock was set
	EventLoss                               // messages were lost; at most one a second
	EventStorage                            // the storage stalls, recovers or fails
	EventDiskLow                            // the disk is nearly full
	EventOther                              // anything else worth a line
)

// emit hands an event to whoever listens. It must not be called with locks held that Snapshot needs, nor on a receive
// goroutine.
func (r *Recorder) emit(kind EventKind, level slog.Level, topic, text string) {
	if r.o.OnEvent == nil {
		if topic != "" {
			r.o.Logger.Log(context.Background(), level, text, "topic", topic)
		} else {
			r.o.Logger.Log(context.Background(), level, text)
		}
		return
	}
	r.eventMu.Lock()
	defer r.eventMu.Unlock()
	r.o.OnEvent(Event{kind, level, topic, text})
}
