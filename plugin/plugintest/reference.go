package plugintest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gobag/gobag/plugin"
)

// The reference format is a log: refMagic, then records of a 4-byte little-endian length, the CRC-32 of the body, and
// the body, whose first byte is the kind. A storage is cut off until its last record is an end record.
const (
	refMagic    = "gobag reference storage 1\n"
	refHeader   = 8
	refMaxBody  = 1 << 30
	recOptions  = 'O' // gob of refOptions
	recTopic    = 'T' // gob of plugin.Topic, as it is from here on
	recMessage  = 'M' // topic, recv, send, source, seq, order as 8 bytes each, then the data
	recMetadata = 'D' // gob of plugin.Metadata
	recEnd      = 'E'
	msgFields   = 6 * 8
)

type refOptions struct{ ROSDistro string }

// NewMemory returns the reference driver, called "memory". Its readers hold a whole storage in memory and its writers
// append to a plain log, so it is for tests and small bags only; apart from that it keeps every promise of the
// contract, surviving SIGKILL included.
func NewMemory() plugin.Driver { return &reference{} }

// reference is the reference driver. Its faults are switched on by the test of the suite, to show that each case bites.
type reference struct{ fault fault }

// fault names one way to break the contract.
type fault string

func (*reference) Name() string      { return "memory" }
func (*reference) Extension() string { return ".mem" }

func (*reference) Features() plugin.Features {
	return plugin.Features{
		SendTime: true, Source: true, Metadata: true, Definitions: true, Reverse: true,
		MinSplitSize: 4 << 10, MaxMessageSize: refMaxBody / 2, Buffers: 1 << 20,
		Presets: []plugin.PresetInfo{
			{Name: plugin.PresetResilient, Help: "nothing is lost after a sync"},
			{Name: plugin.PresetFast, Help: "the same as resilient"},
			{Name: plugin.PresetSmall, Help: "the same as resilient, not compressed"},
			{Name: plugin.PresetNone, Help: "the same as resilient"},
		},
	}
}

func (d *reference) Detect(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return false, err
	}
	if d.fault == "detect anything" {
		return true, nil
	}
	b := make([]byte, len(refMagic))
	if _, err := io.ReadFull(f, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		return false, err
	}
	return string(b) == refMagic, nil
}

// checkOptions refuses presets and configuration keys that the reference format does not know.
func (d *reference) checkOptions(o plugin.WriteOptions) error {
	switch o.Preset {
	case "", plugin.PresetResilient, plugin.PresetFast, plugin.PresetSmall, plugin.PresetNone:
	default:
		if d.fault == "any preset" {
			break
		}
		return fmt.Errorf("unknown preset %q (there is: resilient, fast, small, none)", o.Preset)
	}
	return d.checkConfig(o.Config)
}

func (d *reference) checkConfig(c map[string]any) error {
	if d.fault == "any config" {
		return nil
	}
	for _, k := range slices.Sorted(maps.Keys(c)) {
		return fmt.Errorf("unknown storage configuration key %q (this format has none)", k)
	}
	return nil
}

func (d *reference) Create(ctx context.Context, path string, o plugin.WriteOptions) (plugin.Writer, error) {
	if err := ctx.Err(); err != nil && d.fault != "ignore the context" {
		return nil, err
	}
	if o.Compat == plugin.CompatHumble && d.fault == "one generation" {
		return nil, plugin.ErrUnsupported
	}
	if err := d.checkOptions(o); err != nil {
		return nil, fmt.Errorf("create storage %s: %w", path, err)
	}
	flag := os.O_EXCL
	if d.fault == "overwrite" {
		flag = os.O_TRUNC
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create storage %s: %w", path, plugin.ErrExists)
	}
	if err != nil {
		return nil, fmt.Errorf("create storage: %w", err)
	}
	w := &refWriter{f: f, dir: filepath.Dir(path), fault: d.fault, topics: map[plugin.TopicID]plugin.Topic{}}
	w.buf = append(w.buf, refMagic...)
	w.encode(recOptions, refOptions{o.ROSDistro})
	if o.Metadata.Version != 0 {
		w.encode(recMetadata, o.Metadata)
	}
	if err := w.flush(); err != nil {
		return nil, errors.Join(fmt.Errorf("create storage %s: %w", path, err), f.Close())
	}
	return w, nil
}

// refWriter holds its lock for the whole of every call: simple rather than fast.
type refWriter struct {
	mu     sync.Mutex
	f      *os.File
	dir    string
	fault  fault
	buf    []byte // records not yet written to f
	size   int64  // bytes written to f
	topics map[plugin.TopicID]plugin.Topic
	order  uint64 // of the last message
	held   []plugin.Message
	err    error // of a failed write or sync; stays
	closed bool
}

// record appends one record to the buffer.
func (w *refWriter) record(kind byte, parts ...[]byte) {
	n := 1
	for _, p := range parts {
		n += len(p)
	}
	w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(n))
	at := len(w.buf)
	w.buf = append(w.buf, 0, 0, 0, 0, kind)
	for _, p := range parts {
		w.buf = append(w.buf, p...)
	}
	binary.LittleEndian.PutUint32(w.buf[at:], crc32.ChecksumIEEE(w.buf[at+4:]))
}

// encode appends a record that holds v in gob form, which keeps strings that are not UTF-8.
func (w *refWriter) encode(kind byte, v any) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		panic(err) // no type of ours can fail
	}
	w.record(kind, b.Bytes())
}

func decode(b []byte, v any) error { return gob.NewDecoder(bytes.NewReader(b)).Decode(v) }

// flush hands the buffer to the file, which is enough to survive SIGKILL.
func (w *refWriter) flush() error {
	n, err := w.f.Write(w.buf)
	w.size += int64(n)
	w.buf = w.buf[:0]
	if err != nil {
		w.err = err
	}
	return err
}

func (w *refWriter) usable() error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return plugin.ErrClosed
	}
	return nil
}

func (w *refWriter) AddTopic(t plugin.Topic) (plugin.TopicID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return 0, err
	}
	if t.Definition.Text == "" {
		t.Definition = plugin.Definition{}
	}
	t.ID = plugin.TopicID(len(w.topics) + 1)
	for _, old := range w.topics {
		same := old.Name == t.Name && (old.Type == t.Type || w.fault == "topic by name alone")
		if w.fault == "colliding names" {
			same = strings.ReplaceAll(old.Name, "/", "_") == strings.ReplaceAll(t.Name, "/", "_")
		}
		if same && w.fault != "topic twice" {
			t = merged(old, t, w.fault)
		}
	}
	w.topics[t.ID] = t
	w.encode(recTopic, t)
	return t.ID, w.flush()
}

// merged returns old updated by what t has.
func merged(old, t plugin.Topic, f fault) plugin.Topic {
	if f == "no updates" {
		return old
	}
	if t.OfferedQoS != "" || f == "update clears" {
		old.OfferedQoS = t.OfferedQoS
	}
	if t.TypeHash != "" {
		old.TypeHash = t.TypeHash
	}
	if t.Definition.Text != "" {
		old.Definition = t.Definition
	}
	if t.Sources != nil {
		old.Sources = slices.Clone(t.Sources)
	}
	return old
}

func (w *refWriter) Write(batch []plugin.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	for i := range batch {
		m := &batch[i]
		if _, ok := w.topics[m.Topic]; !ok && w.fault != "any topic" {
			err := fmt.Errorf("write message %d of %d: topic %d: %w", i+1, len(batch), m.Topic, plugin.ErrUnknownTopic)
			if w.fault == "unknown topic poisons" {
				w.err = err
			}
			return err
		}
		if len(m.Data) > refMaxBody/2 && w.fault == "cut large messages" {
			m.Data = m.Data[:1]
		}
		if len(m.Data) > refMaxBody/2 {
			return fmt.Errorf("write message %d of %d: %d bytes: %w", i+1, len(batch), len(m.Data), plugin.ErrUnsupported)
		}
		if w.fault == "part of a batch" {
			w.message(m)
		}
	}
	if w.fault == "keep the batch" {
		w.held = append(w.held, batch...)
		return nil
	}
	if w.fault != "part of a batch" {
		for i := range batch {
			w.message(&batch[i])
		}
	}
	if w.fault == "write in memory" {
		return nil
	}
	return w.flush()
}

// message appends one message to the buffer.
func (w *refWriter) message(m *plugin.Message) {
	order := m.Order
	if order <= w.order || order >= 1<<63 {
		order = w.order + 1
	}
	if w.fault == "no order" {
		order = 0
	}
	w.order = order
	var h [msgFields]byte
	for i, v := range []uint64{uint64(m.Topic), uint64(m.RecvTime), uint64(m.SendTime), uint64(m.Source), m.Seq, order} {
		binary.LittleEndian.PutUint64(h[i*8:], v)
	}
	w.record(recMessage, h[:], m.Data)
}

func (w *refWriter) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	if w.fault == "write in memory" {
		return nil
	}
	if w.fault == "sync while writing" && len(w.topics) > 1 {
		w.err = errors.New("busy")
		return w.err
	}
	if err := w.f.Sync(); err != nil {
		w.err = err
	}
	return w.err
}

func (w *refWriter) Size() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault == "size without pending" {
		return int64(len(refMagic))
	}
	return w.size + int64(len(w.buf))
}

func (w *refWriter) Close(m plugin.Metadata) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		if w.fault == "close once" {
			return plugin.ErrClosed
		}
		return nil
	}
	w.closed = true
	err := w.err
	if err == nil {
		for i := range w.held {
			w.message(&w.held[i])
		}
		if m.Version != 0 && w.fault != "first metadata" {
			w.encode(recMetadata, m)
		}
		if w.fault != "never closed" {
			w.record(recEnd)
		}
		err = errors.Join(w.flush(), w.f.Sync())
	}
	err = errors.Join(err, w.f.Close())
	if w.fault == "write after close" {
		w.closed = false
		w.f, _ = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	return err
}

func (d *reference) OpenReader(ctx context.Context, path string, o plugin.ReadOptions) (plugin.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.checkConfig(o.Config); err != nil {
		return nil, fmt.Errorf("open storage %s: %w", path, err)
	}
	mode := os.O_RDONLY
	if d.fault == "open for writing" {
		mode = os.O_RDWR
	}
	f, err := os.OpenFile(path, mode, 0)
	if err != nil {
		return nil, fmt.Errorf("open storage: %w", err)
	}
	defer f.Close()
	if d.fault == "touch the file" {
		w, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = w.Write([]byte{0})
			err = errors.Join(err, w.Close())
		}
		if err != nil {
			return nil, err
		}
	}
	r := &refReader{fault: d.fault}
	r.info.Start, r.info.Unclean, r.info.Format = plugin.NoStart, true, "reference 1"
	if d.fault == "empty starts at zero" {
		r.info.Start = 0
	}
	if err := r.load(bufio.NewReaderSize(f, 1<<20), path); err != nil {
		return nil, fmt.Errorf("open storage: %w", err)
	}
	return r, nil
}

type refReader struct {
	shared *refIterator // for a fault
	info   plugin.Info
	msgs   []plugin.Message // sorted
	damage error            // what ended the log before its end; reported after the messages
	fault  fault

	mu     sync.Mutex
	closed bool
}

// load reads the whole log. A record that the file ends within is a log that was cut off; one that fails its checksum
// is damage.
func (r *refReader) load(in *bufio.Reader, path string) error {
	magic := make([]byte, len(refMagic))
	if _, err := io.ReadFull(in, magic); (err != nil || string(magic) != refMagic) && r.fault != "open anything" {
		return fmt.Errorf("%s: %w", path, plugin.ErrFormat)
	}
	off := int64(len(refMagic))
	topics := map[plugin.TopicID]*plugin.TopicInfo{}
	var body []byte
	for {
		var h [refHeader]byte
		if _, err := io.ReadFull(in, h[:]); err != nil {
			break
		}
		n := binary.LittleEndian.Uint32(h[:])
		if n == 0 || n > refMaxBody {
			r.damage = &plugin.CorruptError{Path: path, Offset: off, Err: fmt.Errorf("record of %d bytes", n)}
			break
		}
		var err error
		if body, err = readBody(in, body, int(n)); err != nil {
			break
		}
		if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(h[4:]) && r.fault != "no checksums" {
			r.damage = &plugin.CorruptError{Path: path, Offset: off, Err: errors.New("wrong checksum")}
			break
		}
		if err := r.apply(body[0], body[1:], topics); err != nil {
			r.damage = &plugin.CorruptError{Path: path, Offset: off, Err: err}
			break
		}
		off += refHeader + int64(n)
	}
	r.info.Size = off
	if r.fault == "always clean" {
		r.info.Unclean = false
	}
	for _, id := range slices.Sorted(maps.Keys(topics)) {
		if t := topics[id]; t.Count > 0 || r.fault != "no empty topics" {
			r.info.Topics = append(r.info.Topics, *t)
		}
	}
	slices.SortStableFunc(r.msgs, func(a, b plugin.Message) int { return r.compare(&a, &b) })
	return nil
}

// readBody fills a buffer of n bytes, growing it no faster than the bytes arrive.
func readBody(in *bufio.Reader, buf []byte, n int) ([]byte, error) {
	buf = buf[:0]
	for len(buf) < n {
		step := min(n-len(buf), 1<<20)
		buf = slices.Grow(buf, step)
		if _, err := io.ReadFull(in, buf[len(buf):len(buf)+step]); err != nil {
			return buf, err
		}
		buf = buf[:len(buf)+step]
	}
	return buf, nil
}

// compare is the order of messages.
func (r *refReader) compare(a, b *plugin.Message) int {
	at, bt, ao, bo := a.RecvTime, b.RecvTime, a.Order, b.Order
	switch r.fault {
	case "write order":
		at, bt = 0, 0
	case "unsigned stamps":
		at, bt = at^math.MinInt64, bt^math.MinInt64
	case "ties backwards":
		ao, bo = bo, ao
	case "ties by topic":
		ao, bo = uint64(a.Topic), uint64(b.Topic)
	}
	switch {
	case at < bt:
		return -1
	case at > bt:
		return 1
	case ao < bo:
		return -1
	case ao > bo:
		return 1
	}
	return 0
}

// apply takes in one whole record.
func (r *refReader) apply(kind byte, body []byte, topics map[plugin.TopicID]*plugin.TopicInfo) error {
	switch kind {
	case recOptions:
		var o refOptions
		err := decode(body, &o)
		r.info.ROSDistro = o.ROSDistro
		return err
	case recMetadata:
		var m plugin.Metadata
		err := decode(body, &m)
		if r.info.Metadata.Version == 0 || r.fault != "oldest metadata" {
			r.info.Metadata = m
		}
		return err
	case recTopic:
		var t plugin.Topic
		if err := decode(body, &t); err != nil {
			return err
		}
		if r.fault == "no definitions" {
			t.Definition = plugin.Definition{}
		}
		if old := topics[t.ID]; old != nil {
			old.Topic = t
		} else {
			topics[t.ID] = &plugin.TopicInfo{Topic: t}
		}
		return nil
	case recMessage:
		return r.addMessage(body, topics)
	case recEnd:
		r.info.Unclean = r.fault == "always unclean"
		return nil
	}
	return fmt.Errorf("record of unknown kind %q", kind)
}

func (r *refReader) addMessage(body []byte, topics map[plugin.TopicID]*plugin.TopicInfo) error {
	if len(body) < msgFields {
		return fmt.Errorf("message record of %d bytes", len(body))
	}
	f := func(i int) uint64 { return binary.LittleEndian.Uint64(body[i*8:]) }
	m := plugin.Message{
		Topic: plugin.TopicID(f(0)), RecvTime: int64(f(1)), SendTime: int64(f(2)),
		Source: uint32(f(3)), Seq: f(4), Order: f(5), Data: slices.Clone(body[msgFields:]),
	}
	if r.fault == "no send time" {
		m.SendTime = 0
	}
	if r.fault == "no source" {
		m.Source, m.Seq = 0, 0
	}
	if r.fault == "empty payloads lost" && len(m.Data) == 0 {
		return nil
	}
	if r.fault == "payload cut at 16 MiB" && len(m.Data) > 16<<20 {
		m.Data = m.Data[:16<<20]
	}
	t := topics[m.Topic]
	if t == nil {
		return fmt.Errorf("message of topic %d, which is not there", m.Topic)
	}
	t.Count++
	t.Bytes += int64(len(m.Data))
	if r.fault != "wrong count" || r.info.Messages == 0 {
		r.info.Messages++
	}
	if r.fault == "first is start" {
		if r.info.Messages == 1 {
			r.info.Start = m.RecvTime
		}
	} else {
		r.info.Start = min(r.info.Start, m.RecvTime)
	}
	if r.info.Messages == 1 {
		r.info.End = m.RecvTime
	}
	r.info.End = max(r.info.End, m.RecvTime)
	r.msgs = append(r.msgs, m)
	return nil
}

func (r *refReader) Info() plugin.Info {
	i := r.info
	i.Topics = slices.Clone(i.Topics)
	for k := range i.Topics {
		i.Topics[k].Sources = slices.Clone(i.Topics[k].Sources)
	}
	return i
}

func (r *refReader) Messages(q plugin.Query) (plugin.Iterator, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, plugin.ErrClosed
	}
	it := &refIterator{r: r, q: q}
	if q.Reverse && r.fault != "no reverse" {
		it.at = len(r.msgs) - 1
	}
	if r.fault == "shared position" {
		if r.shared == nil || r.shared.at >= len(r.msgs) {
			r.shared = it
		}
		return r.shared, nil
	}
	if r.fault == "one iterator" {
		if r.info.Format == "iterating" {
			return nil, errors.New("one iterator at a time")
		}
		r.info.Format = "iterating"
	}
	return it, nil
}

func (r *refReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed && r.fault == "close once" {
		return plugin.ErrClosed
	}
	r.closed = true
	return nil
}

type refIterator struct {
	r      *refReader
	q      plugin.Query
	at     int
	closed bool
}

func (it *refIterator) Next(m *plugin.Message) error {
	if it.closed {
		return plugin.ErrClosed
	}
	for it.at >= 0 && it.at < len(it.r.msgs) {
		c := &it.r.msgs[it.at]
		if it.q.Reverse && it.r.fault != "no reverse" {
			it.at--
		} else {
			it.at++
		}
		if it.wants(c) {
			*m = *c
			return nil
		}
	}
	if it.r.damage != nil && it.r.fault != "silent damage" {
		return it.r.damage
	}
	if it.r.fault == "again after the end" {
		it.at = 0
	}
	return io.EOF
}

func (it *refIterator) wants(m *plugin.Message) bool {
	f := it.r.fault
	if t := it.q.Range; t != nil && f != "no range" {
		if m.RecvTime < t.Start || m.RecvTime > t.End || m.RecvTime == t.End && f == "range without end" {
			return false
		}
	}
	if it.q.Topics == nil || f == "no topic filter" || len(it.q.Topics) == 0 && f == "empty is all" {
		return true
	}
	return slices.Contains(it.q.Topics, m.Topic)
}

func (it *refIterator) Close() error {
	if it.closed && it.r.fault == "close once" {
		return plugin.ErrClosed
	}
	it.closed = true
	return nil
}
