package leveldb

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/gobag/gobag/plugin"
)

var errRecord = errors.New("a record of the storage's description is damaged")

func encodeFormat(distro string) []byte {
	return append(binary.AppendUvarint(nil, formatVersion), distro...)
}

func decodeFormat(b []byte) (version uint64, distro string, err error) {
	version, b, ok := cutUvarint(b)
	if !ok {
		return 0, "", errRecord
	}
	return version, string(b), nil
}

func encodeMetadata(m plugin.Metadata) []byte {
	return append(binary.AppendUvarint(nil, uint64(m.Version)), m.Text...)
}

func decodeMetadata(b []byte) (plugin.Metadata, error) {
	v, b, ok := cutUvarint(b)
	if !ok || v > 1<<20 {
		return plugin.Metadata{}, errRecord
	}
	return plugin.Metadata{Version: int(v), Text: string(b)}, nil
}

func encodeDefinition(d plugin.Definition) []byte {
	return append(appendBytes(nil, d.Encoding), d.Text...)
}

func decodeDefinition(b []byte) (plugin.Definition, error) {
	e, b, ok := cutBytes(b)
	if !ok {
		return plugin.Definition{}, errRecord
	}
	return plugin.Definition{Encoding: string(e), Text: string(b)}, nil
}

// encodeTopic leaves out the definition, which def names; 0 is none.
func encodeTopic(t *plugin.Topic, def uint32) []byte {
	var b []byte
	for _, s := range []string{t.Name, t.Type, t.SerializationFormat, t.OfferedQoS, t.TypeHash} {
		b = appendBytes(b, s)
	}
	b = binary.AppendUvarint(b, uint64(def))
	b = binary.AppendUvarint(b, uint64(len(t.Sources)))
	for _, s := range t.Sources {
		b = appendBytes(b, s)
	}
	return b
}

func decodeTopic(b []byte) (t plugin.Topic, def uint32, err error) {
	for _, s := range []*string{&t.Name, &t.Type, &t.SerializationFormat, &t.OfferedQoS, &t.TypeHash} {
		v, rest, ok := cutBytes(b)
		if !ok {
			return t, 0, errRecord
		}
		*s, b = string(v), rest
	}
	d, b, ok := cutUvarint(b)
	if !ok || d > 1<<32-1 {
		return t, 0, errRecord
	}
	n, b, ok := cutUvarint(b)
	if !ok || n > uint64(len(b)) {
		return t, 0, errRecord
	}
	for ; n > 0; n-- {
		v, rest, ok := cutBytes(b)
		if !ok {
			return t, 0, errRecord
		}
		t.Sources, b = append(t.Sources, string(v)), rest
	}
	if len(b) > 0 {
		return t, 0, errRecord
	}
	return t, uint32(d), nil
}

// count is what a table, or a storage, holds of a topic.
type count struct {
	messages uint64
	bytes    int64 // of payload
	first    int64 // smallest and largest RecvTime
	last     int64
}

func (c *count) add(recv int64, n int) {
	c.merge(count{1, int64(n), recv, recv})
}

func (c *count) merge(o count) {
	if o.messages == 0 {
		return
	}
	if c.messages == 0 {
		c.first, c.last = o.first, o.last
	}
	c.messages += o.messages
	c.bytes += o.bytes
	c.first, c.last = min(c.first, o.first), max(c.last, o.last)
}

type counts map[plugin.TopicID]count

func (cs counts) merge(o counts) {
	for id, c := range o {
		sum := cs[id]
		sum.merge(c)
		cs[id] = sum
	}
}

func encodeCounts(cs counts) []byte {
	var b []byte
	for _, id := range slices.Sorted(maps.Keys(cs)) {
		c := cs[id]
		b = binary.AppendUvarint(b, uint64(id))
		b = binary.AppendUvarint(b, c.messages)
		b = binary.AppendUvarint(b, uint64(c.bytes))
		b = binary.AppendVarint(b, c.first)
		b = binary.AppendVarint(b, c.last)
	}
	return b
}

func decodeCounts(b []byte) (counts, error) {
	cs := counts{}
	for len(b) > 0 {
		var u [3]uint64
		for i := range u {
			var ok bool
			if u[i], b, ok = cutUvarint(b); !ok {
				return nil, errRecord
			}
		}
		first, n := binary.Varint(b)
		if n <= 0 {
			return nil, errRecord
		}
		last, k := binary.Varint(b[n:])
		if k <= 0 || u[0] == 0 || u[0] > 1<<32-1 {
			return nil, errRecord
		}
		b = b[n+k:]
		cs[plugin.TopicID(u[0])] = count{u[1], int64(u[2]), first, last}
	}
	return cs, nil
}
