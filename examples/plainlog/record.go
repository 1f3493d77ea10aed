package plainlog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/gobag/gobag/plugin"
)

const (
	magic       = "plainlog storage 1\n\x00"
	headerBytes = len(magic) + 8 + 4

	kindOptions  = 'O'
	kindMetadata = 'D'
	kindTopic    = 'T'
	kindMessage  = 'M'
	kindEnd      = 'E'

	recordBytes  = 1 + 4 + 4 + 4         // before the body
	messageBytes = 4 + 4 + 8 + 8 + 8 + 8 // of a message's body, before the payload

	maxPayload = 1 << 30
	maxBody    = maxPayload + messageBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// appendSynced appends what the header says behind the magic.
func appendSynced(b []byte, synced int64) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(synced))
	return binary.LittleEndian.AppendUint32(b, sum(b[at:]))
}

// parseSynced reads it. Where it is damaged nothing is known, and no damage further on passes for a torn end.
func parseSynced(b []byte) (synced int64, known bool) {
	return int64(binary.LittleEndian.Uint64(b)), sum(b[:8]) == binary.LittleEndian.Uint32(b[8:])
}

// beginRecord appends the first bytes of a record and returns where it begins; endRecord fills in what is known when the
// body is there. Between the two the caller appends the body.
func beginRecord(b []byte, kind byte) ([]byte, int) {
	at := len(b)
	b = append(b, kind)
	return append(b, make([]byte, recordBytes-1)...), at
}

func endRecord(b []byte, at int) []byte {
	body := b[at+recordBytes:]
	binary.LittleEndian.PutUint32(b[at+1:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[at+5:], sum(b[at:at+5]))
	binary.LittleEndian.PutUint32(b[at+9:], sum(body))
	return b
}

func appendMessage(b []byte, m *plugin.Message, order uint64) []byte {
	b, at := beginRecord(b, kindMessage)
	b = binary.LittleEndian.AppendUint32(b, uint32(m.Topic))
	b = binary.LittleEndian.AppendUint32(b, m.Source)
	b = binary.LittleEndian.AppendUint64(b, uint64(m.RecvTime))
	b = binary.LittleEndian.AppendUint64(b, uint64(m.SendTime))
	b = binary.LittleEndian.AppendUint64(b, m.Seq)
	b = binary.LittleEndian.AppendUint64(b, order)
	return endRecord(append(b, m.Data...), at)
}

// parseMessage reads a body of at least messageBytes. m.Data aliases it.
func parseMessage(b []byte, m *plugin.Message) {
	*m = plugin.Message{
		Topic: plugin.TopicID(binary.LittleEndian.Uint32(b)), Source: binary.LittleEndian.Uint32(b[4:]),
		RecvTime: int64(binary.LittleEndian.Uint64(b[8:])), SendTime: int64(binary.LittleEndian.Uint64(b[16:])),
		Seq: binary.LittleEndian.Uint64(b[24:]), Order: binary.LittleEndian.Uint64(b[32:]), Data: b[messageBytes:],
	}
}

func appendTopic(b []byte, t *plugin.Topic) []byte {
	b, at := beginRecord(b, kindTopic)
	b = binary.AppendUvarint(b, uint64(t.ID))
	for _, s := range []string{t.Name, t.Type, t.SerializationFormat, t.OfferedQoS, t.TypeHash, t.Definition.Encoding, t.Definition.Text} {
		b = appendString(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(t.Sources)))
	for _, s := range t.Sources {
		b = appendString(b, s)
	}
	return endRecord(b, at)
}

func parseTopic(body []byte) (plugin.Topic, error) {
	p := parser{b: body}
	t := plugin.Topic{ID: plugin.TopicID(p.uvarint())}
	for _, s := range []*string{&t.Name, &t.Type, &t.SerializationFormat, &t.OfferedQoS, &t.TypeHash, &t.Definition.Encoding, &t.Definition.Text} {
		*s = p.string()
	}
	for n := p.uvarint(); n > 0 && p.err == nil; n-- { // ends with the bytes, whatever the count says
		t.Sources = append(t.Sources, p.string())
	}
	return t, p.end()
}

func appendMetadata(b []byte, m plugin.Metadata) []byte {
	b, at := beginRecord(b, kindMetadata)
	b = binary.AppendUvarint(b, uint64(m.Version))
	return endRecord(appendString(b, m.Text), at)
}

func parseMetadata(body []byte) (plugin.Metadata, error) {
	p := parser{b: body}
	m := plugin.Metadata{Version: int(p.uvarint()), Text: p.string()}
	return m, p.end()
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// parser reads a body; after the first error it returns zero values.
type parser struct {
	b   []byte
	err error
}

var errShort = errors.New("record ends within a field")

func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 {
		p.err, p.b = errShort, nil
		return 0
	}
	p.b = p.b[n:]
	return v
}

func (p *parser) string() string {
	n := p.uvarint()
	if n > uint64(len(p.b)) {
		p.err, p.b = errShort, nil
		return ""
	}
	s := string(p.b[:n])
	p.b = p.b[n:]
	return s
}

func (p *parser) end() error {
	if p.err == nil && len(p.b) > 0 {
		return errors.New("record is longer than its fields")
	}
	return p.err
}
