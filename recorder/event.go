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
	EventMissing                            // what was named is not there yet, or nothing has come
	EventTypeConflict                       // a topic has several types
	EventDefinition                         // a type's definition is not known, or was found after all
	EventQoS                                // publishers that an override cannot receive, or that differ
	EventClockStep                          // the wall clock was set
	EventLoss                               // messages were lost; at most one a second
	EventStorage                            // the storage stalls, recovers or fails
	EventDiskLow                            // the disk is nearly full
	EventPaused                             // recording pauses
	EventResumed                            // it goes on
	EventSnapshot                           // a snapshot was begun, finished or refused
	EventDeleted                            // an old file or snapshot was deleted to make room
	EventOther                              // anything else worth a line
)

// maxEvents is how many events may wait for a listener that is behind; what comes then is not told.
const maxEvents = 256

// emit hands an event to whoever listens, without waiting for it: a terminal that stands still must not stop the recording.
func (r *Recorder) emit(kind EventKind, level slog.Level, topic, text string) {
	select {
	case r.events <- Event{kind, level, topic, text}:
	default:
	}
}

// tell hands events over, one after the other, until end is closed and none is left.
func (r *Recorder) tell(end <-chan struct{}) {
	for {
		select {
		case e := <-r.events:
			r.tellOne(e)
			continue
		case <-end:
		}
		select {
		case e := <-r.events:
			r.tellOne(e)
		default:
			return
		}
	}
}

func (r *Recorder) tellOne(e Event) {
	switch {
	case r.o.OnEvent != nil:
		r.o.OnEvent(e)
	case e.Topic != "":
		r.o.Logger.Log(context.Background(), e.Level, e.Text, "topic", e.Topic)
	default:
		r.o.Logger.Log(context.Background(), e.Level, e.Text)
	}
}
