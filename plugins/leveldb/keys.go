package leveldb

import (
	"encoding/binary"
	"errors"

	"github.com/gobag/gobag/plugin"
)

// The first byte of every key says what the record is. Kinds below kindMessage describe the storage and are few; so
// tables of messages and the table of the others never overlap.
const (
	kindFormat     = 'a' // one record: format version and ROS distribution
	kindMetadata   = 'b' // one record: the bag's own description
	kindTotals     = 'c' // one record, written by Close: counts and stamps of all topics
	kindCounts     = 'd' // ‖ numbers of a first and a last table, BE64: the same for these, while the storage is not closed
	kindDefinition = 'e' // ‖ number, BE32: the text of a type
	kindTopic      = 'f' // ‖ topic id, BE32
	kindMessage    = 'm' // ‖ RecvTime, BE64 with the sign flipped ‖ Order, BE64
)

const (
	formatVersion = 1

	messageKeySize = 17
	trailerSize    = 8 // LevelDB appends sequence number and type to every key: uint64 LE, seq<<8 | type

	maxHeader = 2*binary.MaxVarintLen32 + 2*binary.MaxVarintLen64 // before the payload of a message
)

// stamp places a message in the order of a storage.
type stamp struct {
	time  int64
	order uint64
}

func (a stamp) less(b stamp) bool {
	return a.time < b.time || a.time == b.time && a.order < b.order
}

// appendMessageKey appends the key of a message: bytewise order is that of (RecvTime, Order).
func appendMessageKey(b []byte, s stamp) []byte {
	b = append(b, kindMessage)
	b = binary.BigEndian.AppendUint64(b, uint64(s.time)^1<<63)
	return binary.BigEndian.AppendUint64(b, s.order)
}

// parseMessageKey is the reverse of appendMessageKey.
func parseMessageKey(b []byte) (stamp, error) {
	if len(b) != messageKeySize || b[0] != kindMessage {
		return stamp{}, errors.New("a key is not that of a message")
	}
	return stamp{int64(binary.BigEndian.Uint64(b[1:]) ^ 1<<63), binary.BigEndian.Uint64(b[9:])}, nil
}

// numberKey is the key of record number n of a kind that has many.
func numberKey(kind byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{kind}, n)
}

// appendHeader appends what stands before the payload in the value of a message: topic, source, sequence number, and
// the send time as its distance from the receive time.
func appendHeader(b []byte, m *plugin.Message) []byte {
	b = binary.AppendUvarint(b, uint64(m.Topic))
	b = binary.AppendUvarint(b, uint64(m.Source))
	b = binary.AppendUvarint(b, m.Seq)
	return binary.AppendVarint(b, m.SendTime-m.RecvTime)
}

var errValue = errors.New("the value of a message does not begin with topic, source, sequence number and send time")

// parseValue fills m from the value of a message; m.Data aliases v. m.RecvTime must be set.
func parseValue(v []byte, m *plugin.Message) error {
	topic, n := binary.Uvarint(v)
	if n <= 0 || topic == 0 || topic > 1<<32-1 {
		return errValue
	}
	v = v[n:]
	source, n := binary.Uvarint(v)
	if n <= 0 || source > 1<<32-1 {
		return errValue
	}
	v = v[n:]
	seq, n := binary.Uvarint(v)
	if n <= 0 {
		return errValue
	}
	v = v[n:]
	delta, n := binary.Varint(v)
	if n <= 0 {
		return errValue
	}
	m.Topic, m.Source, m.Seq = plugin.TopicID(topic), uint32(source), seq
	m.SendTime = m.RecvTime + delta
	m.Data = v[n:]
	return nil
}

// valueTopic returns only the topic of a message's value; 0 where there is none.
func valueTopic(v []byte) plugin.TopicID {
	topic, n := binary.Uvarint(v)
	if n <= 0 || topic > 1<<32-1 {
		return 0
	}
	return plugin.TopicID(topic)
}
