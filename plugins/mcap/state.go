package mcap

import (
	"encoding/binary"

	"github.com/gobag/gobag/plugin"
)

// topicState is a topic with the channels that its messages are in and their sums. A topic has more than one channel
// when its definition changed, since a channel cannot.
type topicState struct {
	plugin.Topic
	channels []uint16
	count    uint64
	bytes    int64
}

// finalState is the content of the record opFinal.
type finalState struct {
	topics     []topicState
	distro     string
	start, end int64
}

// appendTopics appends topics, each distinct definition once.
func appendTopics(b []byte, topics []*topicState) []byte {
	var defs []plugin.Definition
	number := map[plugin.Definition]int{{}: 0}
	for _, t := range topics {
		if _, ok := number[t.Definition]; !ok {
			defs = append(defs, t.Definition)
			number[t.Definition] = len(defs)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(defs)))
	for _, d := range defs {
		b = appendText(appendText(b, d.Encoding), d.Text)
	}
	b = binary.AppendUvarint(b, uint64(len(topics)))
	for _, t := range topics {
		b = binary.AppendUvarint(b, uint64(t.ID))
		for _, s := range []string{t.Name, t.Type, t.SerializationFormat, t.OfferedQoS, t.TypeHash} {
			b = appendText(b, s)
		}
		b = binary.AppendUvarint(b, uint64(number[t.Definition]))
		b = binary.AppendUvarint(b, uint64(len(t.channels)))
		for _, c := range t.channels {
			b = binary.AppendUvarint(b, uint64(c))
		}
		b = binary.AppendUvarint(b, uint64(len(t.Sources)))
		for _, s := range t.Sources {
			b = appendText(b, s)
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, t.count), uint64(t.bytes))
	}
	return b
}

func (f *fields) topics() []topicState {
	defs := []plugin.Definition{{}}
	for n := f.uvarint(); n > 0 && !f.bad; n-- {
		defs = append(defs, plugin.Definition{Encoding: f.text(), Text: f.text()})
	}
	var ts []topicState
	for n := f.uvarint(); n > 0 && !f.bad; n-- {
		t := topicState{Topic: plugin.Topic{ID: plugin.TopicID(f.uvarint()), Name: f.text(), Type: f.text(), SerializationFormat: f.text(),
			OfferedQoS: f.text(), TypeHash: f.text()}}
		if d := f.uvarint(); d < uint64(len(defs)) {
			t.Definition = defs[d]
		} else {
			f.bad = true
		}
		for n := f.uvarint(); n > 0 && !f.bad; n-- {
			t.channels = append(t.channels, uint16(f.uvarint()))
		}
		for n := f.uvarint(); n > 0 && !f.bad; n-- {
			t.Sources = append(t.Sources, f.text())
		}
		t.count, t.bytes = f.uvarint(), int64(f.uvarint())
		ts = append(ts, t)
	}
	return ts
}

func appendFinal(b []byte, topics []*topicState, distro string, start, end int64) []byte {
	b = appendText(b, distro)
	b = le.AppendUint64(le.AppendUint64(b, uint64(start)), uint64(end))
	return appendTopics(b, topics)
}

func parseFinal(content []byte) (finalState, bool) {
	f, ok := openOwn(content)
	if !ok {
		return finalState{}, false
	}
	s := finalState{distro: f.text(), start: int64(f.u64()), end: int64(f.u64())}
	s.topics = f.topics()
	return s, !f.bad
}

// pack is the head of the record opPack, which stands before the chunk or the run of message records it belongs to.
type pack struct {
	synced     int64 // the file was durable up to here when the pack was written
	raw        bool  // message records follow, not a chunk
	size       int64 // length of the records, uncompressed
	crc        uint32
	messages   uint64
	order      uint64 // of the first message
	start, end int64
	channels   []packChannel
	perMessage fields
}

type packChannel struct {
	id           uint16
	count, bytes uint64
}

// Bits of the byte that begins each message of a pack.
const (
	packSend  = 1 << iota // the publish time is the send time; without it that is unknown
	packHigh              // the sequence number has more than 32 bits
	packOrder             // the order number is not that of the message before plus one
)

func parsePack(content []byte) (pack, bool) {
	f, ok := openOwn(content)
	if !ok {
		return pack{}, false
	}
	p := pack{raw: f.u8() != 0, synced: int64(f.u64()), size: int64(f.u64()), crc: f.u32(), messages: f.u64(), order: f.u64(),
		start: int64(f.u64()), end: int64(f.u64())}
	for n := f.uvarint(); n > 0 && !f.bad; n-- {
		p.channels = append(p.channels, packChannel{uint16(f.uvarint()), f.uvarint(), f.uvarint()})
	}
	p.perMessage = f
	return p, !f.bad
}

func appendPack(b []byte, p *pack, perMessage []byte) []byte {
	b, at := beginOwn(b, opPack)
	raw := byte(0)
	if p.raw {
		raw = 1
	}
	b = le.AppendUint64(append(b, raw), uint64(p.synced))
	b = le.AppendUint32(le.AppendUint64(b, uint64(p.size)), p.crc)
	for _, v := range []uint64{p.messages, p.order, uint64(p.start), uint64(p.end)} {
		b = le.AppendUint64(b, v)
	}
	b = binary.AppendUvarint(b, uint64(len(p.channels)))
	for _, c := range p.channels {
		b = binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(b, uint64(c.id)), c.count), c.bytes)
	}
	return endOwn(append(b, perMessage...), at)
}
