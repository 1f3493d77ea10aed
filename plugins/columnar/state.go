package columnar

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

const (
	stateName  = "storage.columnar"
	stateMagic = "gobag columnar 1"
	logDir     = "log"
	stateHead  = len(stateMagic) + 8 // length and checksum of what follows
	maxState   = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// state is what is known of a storage beside its unsealed messages. It is saved whole, and the records of the log bring
// it forward: applying a record again does no harm.
type state struct {
	closed   bool
	distro   string
	metadata plugin.Metadata
	firstLog uint64 // number of the first file of the log that counts
	nextPart uint64
	defs     []plugin.Definition // all there have been; typed parts refer to them
	topics   []*topicState
	parts    []partRef
}

// topicState is a topic with the sums of what is in parts.
type topicState struct {
	plugin.Topic
	dir    string // of its parts, relative to the storage
	def    int    // 1 + the definition's index in state.defs; 0 none
	sealed uint64 // messages up to this order number are in parts
	count  uint64
	bytes  int64
}

// Kinds of parts.
const (
	partTyped = 1 + iota // one topic, as columns
	partRaw              // one topic, payloads as they are
	partMixed            // payloads of several small topics
)

// partRef is a part.
type partRef struct {
	number     uint64
	kind       byte
	topic      plugin.TopicID // 0 for a mixed one
	def        int            // of a typed one: 1 + index in state.defs
	name       string         // relative to the storage, with slashes
	rows       uint64
	bytes      int64 // payloads
	size       int64 // of the file
	start, end int64 // stamps
}

// definition returns 1 + the index of d in s.defs, where it is put if it is new; 0 for none.
func (s *state) definition(d plugin.Definition) int {
	if d.Text == "" {
		return 0
	}
	if i := slices.Index(s.defs, d); i >= 0 {
		return i + 1
	}
	s.defs = append(s.defs, d)
	return len(s.defs)
}

// setTopic takes over a topic as it stands in a record.
func (s *state) setTopic(t plugin.Topic) error {
	i := int(t.ID) - 1
	switch {
	case i < 0 || i > len(s.topics):
		return fmt.Errorf("topic %d after %d topics", t.ID, len(s.topics))
	case i == len(s.topics):
		s.topics = append(s.topics, &topicState{Topic: t, dir: s.topicDir(t)})
	default:
		s.topics[i].Topic = t
	}
	s.topics[i].def = s.definition(t.Definition)
	return nil
}

// publication says that parts hold all messages of some topics up to an order number.
type publication struct {
	parts  []partRef
	topics []topicSums
}

type topicSums struct {
	id     plugin.TopicID
	sealed uint64
	count  uint64
	bytes  int64
}

func (s *state) publish(p *publication) error {
	for _, t := range p.topics {
		i := int(t.id) - 1
		if i < 0 || i >= len(s.topics) {
			return fmt.Errorf("a part of topic %d of %d", t.id, len(s.topics))
		}
		if ts := s.topics[i]; t.sealed >= ts.sealed {
			ts.sealed, ts.count, ts.bytes = t.sealed, t.count, t.bytes
		}
	}
	for _, n := range p.parts {
		if int(n.topic) > len(s.topics) || n.def > len(s.defs) || n.kind < partTyped || n.kind > partMixed || (n.topic == 0) != (n.kind == partMixed) ||
			(n.kind == partTyped) != (n.def > 0) || !filepath.IsLocal(filepath.FromSlash(n.name)) {
			return fmt.Errorf("part %d is not one of this storage", n.number)
		}
		at, there := slices.BinarySearchFunc(s.parts, n.number, func(p partRef, n uint64) int { return cmp.Compare(p.number, n) })
		if !there {
			s.parts = slices.Insert(s.parts, at, n)
		}
		s.nextPart = max(s.nextPart, n.number+1)
	}
	return nil
}

func appendTopic(b []byte, t *plugin.Topic) []byte {
	b = binary.AppendUvarint(b, uint64(t.ID))
	for _, s := range []string{t.Name, t.Type, t.SerializationFormat, t.OfferedQoS, t.TypeHash, t.Definition.Encoding, t.Definition.Text} {
		b = appendText(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(t.Sources)))
	for _, s := range t.Sources {
		b = appendText(b, s)
	}
	return b
}

func (f *fields) topic() plugin.Topic {
	t := plugin.Topic{ID: plugin.TopicID(f.uvarint()), Name: f.text(), Type: f.text(), SerializationFormat: f.text(), OfferedQoS: f.text(),
		TypeHash: f.text(), Definition: plugin.Definition{Encoding: f.text(), Text: f.text()}}
	for n := f.count(); n > 0 && !f.bad; n-- {
		t.Sources = append(t.Sources, f.text())
	}
	return t
}

func appendPublication(b []byte, p *publication) []byte {
	b = binary.AppendUvarint(b, uint64(len(p.parts)))
	for _, n := range p.parts {
		b = binary.AppendUvarint(append(binary.AppendUvarint(b, n.number), n.kind), uint64(n.topic))
		b = appendText(binary.AppendUvarint(b, uint64(n.def)), n.name)
		for _, v := range []uint64{n.rows, uint64(n.bytes), uint64(n.size)} {
			b = binary.AppendUvarint(b, v)
		}
		b = binary.AppendVarint(binary.AppendVarint(b, n.start), n.end)
	}
	b = binary.AppendUvarint(b, uint64(len(p.topics)))
	for _, t := range p.topics {
		for _, v := range []uint64{uint64(t.id), t.sealed, t.count, uint64(t.bytes)} {
			b = binary.AppendUvarint(b, v)
		}
	}
	return b
}

func (f *fields) publication() publication {
	var p publication
	for n := f.count(); n > 0 && !f.bad; n-- {
		r := partRef{number: f.uvarint()}
		if len(f.b) == 0 {
			f.fail()
			break
		}
		r.kind, f.b = f.b[0], f.b[1:]
		r.topic, r.def, r.name = plugin.TopicID(f.uvarint()), int(f.uvarint()&0xffffffff), f.text()
		r.rows, r.bytes, r.size = f.uvarint(), int64(f.uvarint()), int64(f.uvarint())
		r.start, r.end = f.varint(), f.varint()
		p.parts = append(p.parts, r)
	}
	for n := f.count(); n > 0 && !f.bad; n-- {
		p.topics = append(p.topics, topicSums{plugin.TopicID(f.uvarint()), f.uvarint(), f.uvarint(), int64(f.uvarint())})
	}
	return p
}

// encode returns the content of the state file. Definitions stand before topics, which leave their text out.
func (s *state) encode() []byte {
	b := append(make([]byte, 0, 64<<10), stateMagic...)
	b = append(b, make([]byte, 8)...)
	closed := byte(0)
	if s.closed {
		closed = 1
	}
	b = appendText(append(b, closed), s.distro)
	b = appendText(binary.AppendVarint(b, int64(s.metadata.Version)), s.metadata.Text)
	b = binary.AppendUvarint(binary.AppendUvarint(b, s.firstLog), s.nextPart)
	b = binary.AppendUvarint(b, uint64(len(s.defs)))
	for _, d := range s.defs {
		b = appendText(appendText(b, d.Encoding), d.Text)
	}
	b = binary.AppendUvarint(b, uint64(len(s.topics)))
	p := publication{parts: s.parts}
	for _, t := range s.topics {
		bare := t.Topic
		bare.Definition.Text = ""
		b = binary.AppendUvarint(appendText(appendTopic(b, &bare), t.dir), uint64(t.def))
		p.topics = append(p.topics, topicSums{t.ID, t.sealed, t.count, t.bytes})
	}
	b = appendPublication(b, &p)
	le.PutUint32(b[len(stateMagic):], uint32(len(b)-stateHead))
	le.PutUint32(b[len(stateMagic)+4:], checksum(b[stateHead:]))
	return b
}

func parseState(b []byte) (*state, error) {
	if len(b) < stateHead || string(b[:len(stateMagic)]) != stateMagic {
		return nil, plugin.ErrFormat
	}
	n, crc := le.Uint32(b[len(stateMagic):]), le.Uint32(b[len(stateMagic)+4:])
	if uint64(n) > uint64(len(b)-stateHead) {
		return nil, fmt.Errorf("state of %d bytes, there are %d", n, len(b)-stateHead)
	}
	b = b[stateHead : stateHead+int(n)]
	if checksum(b) != crc {
		return nil, errors.New("checksum of state is wrong")
	}
	f := fields{b: b}
	s := &state{}
	if len(b) > 0 {
		s.closed, f.b = b[0] == 1, b[1:]
	}
	s.distro = f.text()
	s.metadata = plugin.Metadata{Version: int(f.varint()), Text: f.text()}
	s.firstLog, s.nextPart = f.uvarint(), f.uvarint()
	for n := f.count(); n > 0 && !f.bad; n-- {
		s.defs = append(s.defs, plugin.Definition{Encoding: f.text(), Text: f.text()})
	}
	for n := f.count(); n > 0 && !f.bad; n-- {
		t := f.topic()
		dir, def := f.text(), int(f.uvarint()&0xffffffff)
		if int(t.ID) != len(s.topics)+1 || def > len(s.defs) {
			f.fail()
			break
		}
		if def > 0 {
			t.Definition = s.defs[def-1]
		}
		s.topics = append(s.topics, &topicState{Topic: t, dir: dir, def: def})
	}
	p := f.publication()
	if f.bad {
		return nil, errors.New("state is damaged")
	}
	return s, s.publish(&p)
}

// save replaces the state file, durably.
func (s *state) save(dir string) error { return fsx.Publish(filepath.Join(dir, stateName), s.encode()) }

// readState reads the state file. Damage is a *plugin.CorruptError.
func readState(dir string) (*state, error) {
	path := filepath.Join(dir, stateName)
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if fi.Size() > maxState {
		return nil, &plugin.CorruptError{Path: path, Offset: -1, Err: fmt.Errorf("state of %d bytes", fi.Size())}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := parseState(b)
	if err != nil && !errors.Is(err, plugin.ErrFormat) {
		return nil, &plugin.CorruptError{Path: path, Offset: int64(stateHead), Err: err}
	}
	return s, err
}
