package bag

import (
	"fmt"

	"github.com/gobag/gobag/plugin"
)

// Transcoding turns the payloads of a topic from one serialization into another.
type Transcoding struct {
	Type                string
	TypeHash            string
	SerializationFormat string
	Definition          plugin.Definition

	// Append appends the turned payload to dst. An error means that this payload cannot be turned. Called by one
	// goroutine at a time.
	Append func(dst, payload []byte) ([]byte, error)
}

// Transcoder returns how the payloads of a topic are turned; nil where they stay as they are. An error says why they
// cannot be turned. It is called once per topic, and once more per iterator that has messages of the topic.
type Transcoder func(t plugin.Topic) (*Transcoding, error)

// TurnError is a message that cannot be turned.
type TurnError struct {
	Topic    string
	RecvTime int64
	Err      error
}

func (e *TurnError) Error() string {
	return fmt.Sprintf("topic %s: message received at %d: %v", e.Topic, e.RecvTime, e.Err)
}

// Unwrap returns why.
func (e *TurnError) Unwrap() error { return e.Err }

// turned returns the topics as they are after ReaderOptions.Transcode. r.mu is held.
func (r *Reader) turned() []TopicInfo {
	if r.o.Transcode == nil {
		return r.topics[:len(r.topics):len(r.topics)]
	}
	for i := len(r.turnedTopics); i < len(r.topics); i++ {
		t := r.topics[i]
		if x, err := r.o.Transcode(t.Topic); err != nil {
			t.Refused = err.Error()
		} else if x != nil {
			t.Type, t.TypeHash, t.SerializationFormat, t.Definition = x.Type, x.TypeHash, x.SerializationFormat, x.Definition
			t.Bytes = -1
		}
		r.turnedTopics = append(r.turnedTopics, t)
	}
	return r.turnedTopics[:len(r.topics):len(r.topics)]
}

// turns is what an iterator knows of its topics' transcodings.
type turns struct {
	by   map[plugin.TopicID]*turn
	buf  []byte
	last *turn
	id   plugin.TopicID
}

type turn struct {
	x     *Transcoding
	topic string
}

// turn turns the payload of a message. skip says that it is left out, as ReaderOptions.OnTurnError was told.
func (it *mergeIterator) turn(m *plugin.Message) (skip bool, err error) {
	t := it.turns.last
	if t == nil || it.turns.id != m.Topic {
		if t = it.turns.by[m.Topic]; t == nil {
			t = it.r.newTurn(m.Topic)
			if it.turns.by == nil {
				it.turns.by = map[plugin.TopicID]*turn{}
			}
			it.turns.by[m.Topic] = t
		}
		it.turns.last, it.turns.id = t, m.Topic
	}
	if t.x == nil {
		return false, nil
	}
	data, err := t.x.Append(it.turns.buf[:0], m.Data)
	if err == nil {
		it.turns.buf, m.Data = data, data
		return false, nil
	}
	e := &TurnError{Topic: t.topic, RecvTime: m.RecvTime, Err: err}
	if it.r.o.OnTurnError != nil {
		it.r.o.OnTurnError(e)
		return true, nil
	}
	return false, fmt.Errorf("read bag %s: %w", it.r.path, e)
}

// newTurn asks for the transcoding of a topic; one that is refused stays as it is.
func (r *Reader) newTurn(id plugin.TopicID) *turn {
	r.mu.Lock()
	topic := r.topics[id-1].Topic
	r.mu.Unlock()
	x, err := r.o.Transcode(topic)
	if err != nil {
		x = nil
	}
	return &turn{x, topic.Name}
}
