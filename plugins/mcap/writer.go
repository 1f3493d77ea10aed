package mcap

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/plugin"
)

// writer appends to a file. mu guards everything but Sync's wait for the disk, which syncMu keeps apart from Close.
type writer struct {
	syncMu sync.Mutex
	mu     sync.Mutex
	f      *os.File
	path   string
	set    settings
	comp   *compressor
	distro string
	err    error // of a failed write or sync; stays
	closed bool
	done   error // what Close returned

	off      int64  // length of the file
	crc      uint32 // of the file so far
	pushed   int64  // the system was asked to write the file back up to here
	pushing  atomic.Bool
	pushers  sync.WaitGroup
	synced   int64 // the file is durable up to here
	syncedAt time.Time
	size     atomic.Int64

	topics   []*topicState
	byKey    map[topicKey]plugin.TopicID
	dirty    []*topicState // to be written before the next chunk
	schemas  map[schemaKey]uint16
	schemaAt []schemaKey
	channels []*channel
	metadata []place

	chunk      records // the open one
	perMessage []byte  // of its pack
	head, tail []byte  // scratch
	pieces     [][]byte
	messages   uint64 // in it
	order      uint64 // of the last message
	first      uint64 // order of the first message of the chunk
	start, end int64
	began      time.Time
	touched    []*channel // that have messages in it

	total span
	all   uint64 // messages in the file
	index []byte // of all chunks, packed; see indexChunk
	nidx  int
	extra int64 // estimated length of the summary
}

type span struct{ lo, hi int64 }

type topicKey struct{ name, typ string }

type schemaKey struct{ name, encoding, text string }

// channel is an MCAP channel: what its record says, how many messages it has, and their index in the open chunk.
type channel struct {
	id       uint16
	schema   uint16
	topic    *topicState
	metadata []string // pairs of keys and values, the same in both records of the channel
	count    uint64
	entries  []byte // stamp and offset of its messages in the open chunk
	n        uint64
	bytes    uint64
}

// AddTopic adds or updates a topic. Its schema and channel are written with its first message, or at closing; what
// changes later stands in records of ours, and a changed definition in a new channel.
func (w *writer) AddTopic(t plugin.Topic) (plugin.TopicID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return 0, err
	}
	if t.Definition.Text == "" {
		t.Definition = plugin.Definition{}
	}
	key := topicKey{t.Name, t.Type}
	id, ok := w.byKey[key]
	if !ok {
		if len(w.topics) >= math.MaxUint16 {
			return 0, fmt.Errorf("add topic %q: an MCAP file has at most %d channels: %w", t.Name, math.MaxUint16, plugin.ErrUnsupported)
		}
		id = plugin.TopicID(len(w.topics) + 1)
		t.ID, t.Sources = id, slices.Clone(t.Sources)
		s := &topicState{Topic: t}
		w.topics = append(w.topics, s)
		w.byKey[key] = id
		w.dirty = append(w.dirty, s)
		w.extra += int64(2*len(t.Definition.Text) + 3*len(t.Name) + 300)
		w.updateSize()
		return id, nil
	}
	s := w.topics[id-1]
	old := s.Topic
	s.OfferedQoS, s.TypeHash = cmp.Or(t.OfferedQoS, s.OfferedQoS), cmp.Or(t.TypeHash, s.TypeHash)
	if t.Definition.Text != "" {
		s.Definition = t.Definition
	}
	if t.Sources != nil {
		s.Sources = slices.Clone(t.Sources)
	}
	if s.OfferedQoS != old.OfferedQoS || s.TypeHash != old.TypeHash || s.Definition != old.Definition || !slices.Equal(s.Sources, old.Sources) {
		w.markDirty(s)
	}
	return id, nil
}

func (w *writer) markDirty(s *topicState) {
	if !slices.Contains(w.dirty, s) {
		w.dirty = append(w.dirty, s)
	}
}

func (w *writer) usable() error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return plugin.ErrClosed
	}
	return nil
}

// Write appends a batch to the open chunk and writes out the chunk when it is full or a second old.
func (w *writer) Write(batch []plugin.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	for i := range batch {
		if m := &batch[i]; m.Topic == 0 || int(m.Topic) > len(w.topics) {
			return fmt.Errorf("write: topic %d: %w", m.Topic, plugin.ErrUnknownTopic)
		} else if len(m.Data) > maxMessage {
			return fmt.Errorf("write: message of %d bytes, at most %d: %w", len(m.Data), maxMessage, plugin.ErrUnsupported)
		}
	}
	defer w.chunk.forget()
	for i := range batch {
		if err := w.message(&batch[i]); err != nil {
			return w.poison(err)
		}
	}
	if w.messages > 0 && (w.chunk.bytes >= lendAtLeast || time.Since(w.began) >= chunkAge) {
		if err := w.flush(); err != nil {
			return w.poison(err)
		}
	}
	w.chunk.settle()
	w.updateSize()
	return nil
}

func (w *writer) poison(err error) error {
	w.err = fmt.Errorf("write storage %s: %w", w.path, err)
	return w.err
}

func (w *writer) message(m *plugin.Message) error {
	if w.messages > 0 && int64(w.chunk.len()+len(m.Data)) > w.set.chunkSize {
		if err := w.flush(); err != nil {
			return err
		}
	}
	c, err := w.channelOf(w.topics[m.Topic-1])
	if err != nil {
		return err
	}
	order := m.Order
	if order <= w.order || order >= 1<<63 {
		order = w.order + 1
	}
	if w.messages == 0 {
		w.first, w.start, w.end, w.began = order, m.RecvTime, m.RecvTime, time.Now()
	} else {
		w.start, w.end = min(w.start, m.RecvTime), max(w.end, m.RecvTime)
	}
	w.notePack(m, order)
	w.order = order
	w.messages++
	if c.n == 0 {
		w.touched = append(w.touched, c)
	}
	c.n++
	c.bytes += uint64(len(m.Data))
	c.entries = le.AppendUint64(le.AppendUint64(c.entries, uint64(m.RecvTime)), uint64(w.chunk.len()))

	publish := m.SendTime
	if publish == 0 { // MCAP asks for the log time where it is unknown
		publish = m.RecvTime
	}
	b := append(w.chunk.buf, opMessage)
	b = le.AppendUint64(b, uint64(messageHead+len(m.Data)))
	b = le.AppendUint32(le.AppendUint16(b, c.id), uint32(m.Seq))
	w.chunk.buf = le.AppendUint64(le.AppendUint64(b, uint64(m.RecvTime)), uint64(publish))
	if len(m.Data) < lendSize {
		w.chunk.add(m.Data)
	} else {
		w.chunk.lend(m.Data)
	}
	if int64(w.chunk.len()) >= w.set.chunkSize {
		return w.flush()
	}
	return nil
}

// notePack notes what the message record has no field for.
func (w *writer) notePack(m *plugin.Message, order uint64) {
	var bits byte
	if m.SendTime != 0 {
		bits |= packSend
	}
	if m.Seq>>32 != 0 {
		bits |= packHigh
	}
	gap := w.messages > 0 && order != w.order+1
	if gap {
		bits |= packOrder
	}
	w.perMessage = binary.AppendUvarint(append(w.perMessage, bits), uint64(m.Source))
	if bits&packHigh != 0 {
		w.perMessage = binary.AppendUvarint(w.perMessage, m.Seq>>32)
	}
	if gap {
		w.perMessage = binary.AppendUvarint(w.perMessage, order-w.order)
	}
}

// channelOf returns the channel for the next message of t, and puts its record into the chunk if it is new.
func (w *writer) channelOf(t *topicState) (*channel, error) {
	if n := len(t.channels); n > 0 {
		c := w.channels[t.channels[n-1]-1]
		if w.schemaAt[c.schema-1] == (schemaKey{t.Type, t.Definition.Encoding, t.Definition.Text}) {
			return c, nil
		}
	}
	if len(w.channels) >= math.MaxUint16 {
		return nil, fmt.Errorf("topic %q: an MCAP file has at most %d channels: %w", t.Name, math.MaxUint16, plugin.ErrUnsupported)
	}
	key := schemaKey{t.Type, t.Definition.Encoding, t.Definition.Text}
	schema, ok := w.schemas[key]
	if !ok {
		w.schemaAt = append(w.schemaAt, key)
		schema = uint16(len(w.schemaAt))
		w.schemas[key] = schema
		w.chunk.buf = w.appendSchema(w.chunk.buf, schema)
	}
	c := &channel{id: uint16(len(w.channels) + 1), schema: schema, topic: t, metadata: channelMetadata(&t.Topic)}
	w.channels = append(w.channels, c)
	t.channels = append(t.channels, c.id)
	w.markDirty(t)
	w.chunk.buf = appendChannel(w.chunk.buf, c)
	return c, nil
}

func (w *writer) appendSchema(b []byte, id uint16) []byte {
	k := w.schemaAt[id-1]
	b, at := begin(b, opSchema)
	b = appendString(appendString(le.AppendUint16(b, id), k.name), k.encoding)
	return end(appendString(b, k.text), at)
}

func appendChannel(b []byte, c *channel) []byte {
	b, at := begin(b, opChannel)
	b = le.AppendUint16(le.AppendUint16(b, c.id), c.schema)
	b = appendString(appendString(b, c.topic.Name), c.topic.SerializationFormat)
	return end(appendMap(b, c.metadata...), at)
}

// channelMetadata is rosbag2's, and for ROS 1 what the MCAP registry says besides.
func channelMetadata(t *plugin.Topic) []string {
	pairs := []string{"offered_qos_profiles", t.OfferedQoS, "topic_type_hash", t.TypeHash}
	if t.SerializationFormat == ros1Encoding {
		pairs = append(pairs, ros1Metadata(t)...)
	}
	return pairs
}

// Sync writes out the open chunk and waits for the disk as often as the preset says.
func (w *writer) Sync() error {
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	w.mu.Lock()
	if err := w.usable(); err != nil {
		w.mu.Unlock()
		return err
	}
	if err := w.flush(); err != nil {
		defer w.mu.Unlock()
		return w.poison(err)
	}
	w.updateSize()
	upTo := w.off
	wait := upTo > w.synced && w.set.syncEvery >= 0 &&
		(w.set.syncEvery == 0 || time.Since(w.syncedAt) >= w.set.syncEvery || upTo-w.synced >= w.set.syncBytes)
	w.mu.Unlock()
	if !wait {
		return nil
	}
	err := datasync(w.f)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err = fmt.Errorf("sync storage %s: %w", w.path, err)
		return w.err
	}
	w.synced, w.syncedAt = upTo, time.Now()
	return nil
}

// Size is the length the file would have if closed now; for compressed chunks the open one counts as it is.
func (w *writer) Size() int64 { return w.size.Load() }

func (w *writer) updateSize() {
	n := w.off + int64(w.chunk.len()+len(w.perMessage)) + int64(w.messages)*16 + w.extra + 512
	if n > w.size.Load() {
		w.size.Store(n)
	}
}
