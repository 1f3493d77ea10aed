package mcap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/gobag/gobag/plugin"
)

// cacheEntries is how many messages' index entries a reader keeps: 8 MiB.
const cacheEntries = 8 << 20 / 48

// reader reads a file as it was when it was opened.
type reader struct {
	f    *os.File
	path string
	size int64
	own  bool // gobag wrote it, with packs

	info      plugin.Info
	spanned   bool // a message was seen
	schemas   map[uint16]schemaKey
	channels  map[uint16]*foreignChannel
	seen      []uint16 // channels in the order they were met
	topics    []topicState
	byChannel map[uint16]plugin.TopicID
	blocks    []block

	mu     sync.Mutex
	cache  map[int]*blockIndex
	cached int
	closed bool
}

// foreignChannel is what a channel record says.
type foreignChannel struct {
	schema          uint16
	topic, encoding string
	metadata        map[string]string
	count           uint64
	bytes           int64 // -1 unknown
}

func openReader(ctx context.Context, path string, o plugin.ReadOptions) (*reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkReadConfig(o.Config); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := newReader(f, path)
	if err == nil {
		err = r.describe(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

func newReader(f *os.File, path string) (*reader, error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: not a file", plugin.ErrFormat)
	}
	r := &reader{f: f, path: path, size: fi.Size(), cache: map[int]*blockIndex{}}
	r.reset()
	b := make([]byte, min(r.size, 64))
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(b, []byte(magic)):
		return r, nil
	case bytes.HasPrefix(b, []byte(magic[:5])) && len(b) >= 8 && string(b[6:8]) == magic[6:]:
		return nil, fmt.Errorf("%w: MCAP of version %q, known is 0", plugin.ErrFormat, b[5])
	case bytes.HasPrefix(b, []byte("version https://git-lfs")):
		return nil, fmt.Errorf("%w: a git-LFS pointer, run git lfs pull", plugin.ErrFormat)
	case bytes.HasPrefix(b, []byte("#ROSBAG V")):
		return nil, fmt.Errorf("%w: a ROS 1 bag, convert it first", plugin.ErrFormat)
	}
	return nil, plugin.ErrFormat
}

func (r *reader) reset() {
	r.info = plugin.Info{Start: plugin.NoStart, Size: r.size}
	r.schemas, r.channels, r.byChannel = map[uint16]schemaKey{}, map[uint16]*foreignChannel{}, map[uint16]plugin.TopicID{}
	r.seen, r.topics, r.blocks, r.own, r.spanned = nil, nil, nil, false, false
}

// describe fills Info and the list of blocks: from the summary where it can be trusted, else from the whole file.
func (r *reader) describe(ctx context.Context) error {
	ok, err := r.fromSummary()
	if err != nil {
		return err
	}
	if !ok {
		r.reset()
		if err := r.scan(ctx); err != nil {
			return err
		}
	}
	if r.info.Format = "MCAP 0"; r.own {
		r.info.Format = "MCAP 0, gobag 1"
	} else {
		r.foreignTopics()
	}
	for i := range r.topics {
		t := &r.topics[i]
		r.info.Topics = append(r.info.Topics, plugin.TopicInfo{Topic: t.Topic, Count: t.count, Bytes: t.bytes})
		r.info.Messages += t.count
	}
	if r.info.Messages == 0 {
		r.info.Start, r.info.End = plugin.NoStart, 0
	}
	if r.info.ROSDistro == "" {
		if s, ok := topLevel(r.info.Metadata.Text, "ros_distro"); ok && s != "~" && s != "null" {
			r.info.ROSDistro = strings.Trim(s, `"'`)
		}
	}
	return nil
}

// ownTopics takes over topics from records of ours.
func (r *reader) ownTopics(ts []topicState) error {
	for _, t := range ts {
		i := int(t.ID) - 1
		switch {
		case i < 0 || i > len(r.topics):
			return fmt.Errorf("gobag's record of topics names topic %d after %d topics", t.ID, len(r.topics))
		case i == len(r.topics):
			r.topics = append(r.topics, t)
		default:
			r.topics[i] = t
		}
		for _, c := range t.channels {
			r.byChannel[c] = t.ID
		}
	}
	return nil
}

// foreignTopics makes topics of the channels: those of one name, type and encoding are one topic.
func (r *reader) foreignTopics() {
	type key struct{ name, typ, encoding string }
	ids := map[key]plugin.TopicID{}
	for _, id := range r.seen {
		c := r.channels[id]
		s, ok := r.schemas[c.schema]
		if !ok && c.schema != 0 {
			r.warn("channel %d (%s) names schema %d, which is not in the file: its type is unknown", id, c.topic, c.schema)
		}
		k := key{c.topic, s.name, c.encoding}
		tid, ok := ids[k]
		if !ok {
			tid = plugin.TopicID(len(r.topics) + 1)
			ids[k] = tid
			r.topics = append(r.topics, topicState{Topic: plugin.Topic{ID: tid, Name: c.topic, Type: s.name, SerializationFormat: c.encoding}})
		}
		t := &r.topics[tid-1]
		t.channels = append(t.channels, id)
		r.byChannel[id] = tid
		if q := c.metadata["offered_qos_profiles"]; q != "" {
			t.OfferedQoS = q
		}
		if h := c.metadata["topic_type_hash"]; h != "" {
			t.TypeHash = h
		}
		if c.encoding == ros1Encoding {
			ros1Topic(&t.Topic, c.metadata)
		}
		if s.text != "" {
			t.Definition = plugin.Definition{Encoding: s.encoding, Text: s.text}
		} else if t.Definition.Text == "" && s.encoding != "" {
			t.Definition.Encoding = "unknown"
		}
		t.count += c.count
		if c.bytes < 0 || t.bytes < 0 {
			t.bytes = -1
		} else {
			t.bytes += c.bytes
		}
	}
}

func (r *reader) warn(format string, args ...any) {
	if len(r.info.Warnings) < 100 {
		r.info.Warnings = append(r.info.Warnings, fmt.Sprintf(format, args...))
	}
}

// record takes over a schema, channel, metadata or topics record from anywhere in the file.
func (r *reader) record(op byte, content []byte) error {
	f := fields{b: content}
	switch op {
	case opSchema:
		id := f.u16()
		s := schemaKey{f.str(), f.str(), f.str()}
		if f.bad || id == 0 {
			return errors.New("schema record is damaged")
		}
		if old, ok := r.schemas[id]; ok && old != s {
			r.warn("schema %d stands in the file with two contents, the first counts", id)
		} else {
			r.schemas[id] = s
		}
	case opChannel:
		id := f.u16()
		c := &foreignChannel{schema: f.u16(), topic: f.str(), encoding: f.str(), metadata: f.pairs()}
		if f.bad {
			return errors.New("channel record is damaged")
		}
		if old, ok := r.channels[id]; ok {
			if old.topic != c.topic || old.schema != c.schema || old.encoding != c.encoding {
				r.warn("channel %d stands in the file with two contents, the first counts", id)
			}
			return nil
		}
		r.channels[id] = c
		r.seen = append(r.seen, id)
	case opMetadata:
		name, m := f.str(), f.pairs()
		if f.bad {
			return errors.New("metadata record is damaged")
		}
		if name != metadataName {
			return nil
		}
		if text, ok := m[metadataKey]; ok {
			r.info.Metadata = plugin.Metadata{Version: metadataVersion(text), Text: text}
		}
		if d := m["ROS_DISTRO"]; d != "" { // the plugin's first versions
			r.info.ROSDistro = d
		}
	}
	return nil
}

// span widens Info's bounds.
func (r *reader) span(start, end int64) {
	if !r.spanned {
		r.spanned, r.info.Start, r.info.End = true, start, end
	}
	r.info.Start, r.info.End = min(r.info.Start, start), max(r.info.End, end)
}

// Info describes the file.
func (r *reader) Info() plugin.Info {
	i := r.info
	i.Topics, i.Warnings = slices.Clone(i.Topics), slices.Clone(i.Warnings)
	return i
}

// Close closes the file; iterators must not be used any more.
func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	return r.f.Close()
}

// indexOf returns the index of block number i if it is in the cache.
func (r *reader) indexOf(i int) *blockIndex {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cache[i]
}

// keep puts the index of block number i into the cache.
func (r *reader) keep(i int, x *blockIndex) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cache[i] != nil || len(x.entries) > cacheEntries {
		return
	}
	r.cache[i] = x
	r.cached += len(x.entries) + 8
	for k, old := range r.cache {
		if r.cached <= cacheEntries {
			return
		}
		if k != i {
			r.cached -= len(old.entries) + 8
			delete(r.cache, k)
		}
	}
}
