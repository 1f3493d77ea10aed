package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"github.com/gobag/gobag/plugin"
)

// A pack is a row of gobag_data that holds, for up to packMessages messages, what the messages table has no column
// for. Its id is the id of its first message, and it is written in the transaction that writes the messages.
//
//	byte     packVersion
//	uvarint  number of messages
//	uvarint  number of topics, then for each: uvarint topic id, uvarint messages, uvarint payload bytes
//	for each message:
//	  uvarint  (id − id of the message before) << 1 | has a send time; the first message counts from the pack's id
//	  varint   send time − receive time, only if it has one (zigzag, modulo 2^64)
//	  uvarint  source
//	  uvarint  sequence number
const (
	packVersion  = 1
	packMessages = 128     // little to read for one of them
	packLimit    = 1 << 16 // that readers take
)

// packer gathers the messages of the next pack.
type packer struct {
	first, last int64
	n           int
	topics      []packTotal
	byTopic     map[plugin.TopicID]int // index in topics
	entries     []byte
	row         []byte
}

type packTotal struct {
	topic        plugin.TopicID
	count, bytes uint64
}

func (p *packer) add(id int64, m *plugin.Message) {
	if p.n == 0 {
		p.first, p.last = id, id
	}
	p.n++
	head := uint64(id-p.last) << 1
	p.last = id
	if m.SendTime != 0 {
		head |= 1
	}
	p.entries = binary.AppendUvarint(p.entries, head)
	if m.SendTime != 0 {
		p.entries = binary.AppendVarint(p.entries, m.SendTime-m.RecvTime)
	}
	p.entries = binary.AppendUvarint(p.entries, uint64(m.Source))
	p.entries = binary.AppendUvarint(p.entries, m.Seq)

	if p.byTopic == nil {
		p.byTopic = map[plugin.TopicID]int{}
	}
	i, ok := p.byTopic[m.Topic]
	if !ok {
		i = len(p.topics)
		p.byTopic[m.Topic] = i
		p.topics = append(p.topics, packTotal{topic: m.Topic})
	}
	p.topics[i].count++
	p.topics[i].bytes += uint64(len(m.Data))
}

// size is about how many bytes the pack will have.
func (p *packer) size() int64 { return int64(len(p.entries) + 8*len(p.topics)) }

// take returns the finished pack, valid until the next add, and starts a new one.
func (p *packer) take() (first int64, row []byte) {
	r := append(p.row[:0], packVersion)
	r = binary.AppendUvarint(r, uint64(p.n))
	r = binary.AppendUvarint(r, uint64(len(p.topics)))
	for _, t := range p.topics {
		r = binary.AppendUvarint(r, uint64(t.topic))
		r = binary.AppendUvarint(r, t.count)
		r = binary.AppendUvarint(r, t.bytes)
	}
	p.row = append(r, p.entries...)
	p.n, p.topics, p.entries = 0, p.topics[:0], p.entries[:0]
	clear(p.byTopic)
	return p.first, p.row
}

// extra is what a pack says of one message.
type extra struct {
	id        int64
	sendDelta int64 // send time − receive time, modulo 2^64
	seq       uint64
	source    uint32
	hasSend   bool
}

// parsePack reads a pack row. With totals set the entries are left unread.
func parsePack(first int64, row []byte, onlyTotals bool) (totals []packTotal, extras []extra, err error) {
	r := packReader{b: row}
	if v := r.byte(); v != packVersion && !r.bad {
		return nil, nil, fmt.Errorf("pack %d: version %d: %w", first, v, errPack)
	}
	n := r.uvarint()
	k := r.uvarint()
	if r.bad {
		return nil, nil, r.err(first)
	}
	if n > packLimit || k > n {
		return nil, nil, fmt.Errorf("pack %d: %d messages of %d topics: %w", first, n, k, errPack)
	}
	for range k {
		totals = append(totals, packTotal{plugin.TopicID(r.uvarint()), r.uvarint(), r.uvarint()})
	}
	if onlyTotals {
		return totals, nil, r.err(first)
	}
	id := first
	extras = make([]extra, 0, n)
	for range n {
		head := r.uvarint()
		e := extra{hasSend: head&1 != 0}
		id += int64(head >> 1)
		e.id = id
		if e.hasSend {
			e.sendDelta = r.varint()
		}
		e.source = uint32(r.uvarint())
		e.seq = r.uvarint()
		extras = append(extras, e)
		if r.bad {
			break
		}
	}
	return totals, extras, r.err(first)
}

// find returns the entry of a message, looking first behind the entry found before.
func find(extras []extra, id int64, at *int) *extra {
	if i := *at + 1; i < len(extras) && extras[i].id == id {
		*at = i
		return &extras[i]
	}
	i := sort.Search(len(extras), func(i int) bool { return extras[i].id >= id })
	if i == len(extras) || extras[i].id != id {
		return nil
	}
	*at = i
	return &extras[i]
}

// packCursor finds the entries of messages in a pack row, one behind the other without reading any twice.
type packCursor struct {
	first int64
	row   []byte
	r     packReader
	left  uint64 // entries not yet read
	at    extra  // the entry read last; its id is first before that
	begun bool
}

// open goes to the beginning of a pack.
func (c *packCursor) open(first int64, row []byte) error {
	*c = packCursor{first: first, row: row, r: packReader{b: row}}
	c.at.id = first
	if v := c.r.byte(); v != packVersion && !c.r.bad {
		return fmt.Errorf("pack %d: version %d: %w", first, v, errPack)
	}
	c.left = c.r.uvarint()
	for k := c.r.uvarint(); k > 0 && !c.r.bad; k-- {
		c.r.uvarint()
		c.r.uvarint()
		c.r.uvarint()
	}
	return c.r.err(first)
}

// find goes on to a message; ok is false where the pack, from here on, has none with that id.
func (c *packCursor) find(id int64) (ok bool, err error) {
	for c.left > 0 && (!c.begun || c.at.id < id) {
		c.begun = true
		c.left--
		head := c.r.uvarint()
		e := extra{id: c.at.id + int64(head>>1), hasSend: head&1 != 0}
		if e.hasSend {
			e.sendDelta = c.r.varint()
		}
		e.source = uint32(c.r.uvarint())
		e.seq = c.r.uvarint()
		c.at = e
		if c.r.bad {
			c.left = 0
			return false, c.r.err(c.first)
		}
	}
	return c.begun && c.at.id == id, nil
}

// packReader reads varints; after the end it sets bad and returns zeros.
type packReader struct {
	b   []byte
	bad bool
}

func (r *packReader) err(id int64) error {
	if r.bad {
		return fmt.Errorf("pack %d: %w: %w", id, errPack, errCutOff)
	}
	return nil
}

var (
	errPack   = errors.New("unknown form")
	errCutOff = errors.New("cut off")
)

func (r *packReader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *packReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		r.b = nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *packReader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad = true
		r.b = nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *packReader) string() string {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.bad = true
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// A topic row of gobag_data, id −(topic id), holds what rosbag2's tables have no place for: a version byte, then
// strings, each with a uvarint length before it: type hash, encoding and text of the definition (all three only in the
// Humble form, where rosbag2's schema lacks them), the number of sources as uvarint, and the sources.
const topicRowVersion = 1

type topicRow struct {
	typeHash   string
	definition plugin.Definition
	sources    []string
}

func (t *topicRow) encode() []byte {
	b := []byte{topicRowVersion}
	str := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	str(t.typeHash)
	str(t.definition.Encoding)
	str(t.definition.Text)
	b = binary.AppendUvarint(b, uint64(len(t.sources)))
	for _, s := range t.sources {
		str(s)
	}
	return b
}

func parseTopicRow(id int64, row []byte) (topicRow, error) {
	r := packReader{b: row}
	if v := r.byte(); v != topicRowVersion && !r.bad {
		return topicRow{}, fmt.Errorf("topic row %d: version %d: %w", id, v, errPack)
	}
	t := topicRow{typeHash: r.string()}
	t.definition = plugin.Definition{Encoding: r.string(), Text: r.string()}
	n := r.uvarint()
	for i := uint64(0); i < n && !r.bad; i++ {
		t.sources = append(t.sources, r.string())
	}
	if r.bad {
		return topicRow{}, fmt.Errorf("topic row %d: %w: %w", id, errPack, errCutOff)
	}
	return t, nil
}
