package rosbag1

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/gobag/gobag/plugin"
)

const (
	formatROS1   = "ros1"    // the serialization format
	encodingROS1 = "ros1msg" // of definitions
	maxWarnings  = 100
)

// reader reads a bag as it was when it was opened.
type reader struct {
	f    *os.File
	path string
	size int64

	info      plugin.Info
	conns     map[uint32]*connection
	connOrder []uint32
	blocks    []block // by place in the file
	route     map[uint32]route

	mu     sync.Mutex
	head   window // for headers of records
	closed bool
}

// route is what messages of a connection belong to.
type route struct {
	topic  plugin.TopicID
	source uint32
}

func (r *reader) reset() {
	unclean, warnings := r.info.Unclean, r.info.Warnings
	r.info = plugin.Info{Start: plugin.NoStart, Size: r.size, Format: "ROS 1 bag 2.0", Unclean: unclean, Warnings: warnings}
	r.conns, r.connOrder, r.blocks = map[uint32]*connection{}, nil, nil
}

func (r *reader) warn(format string, args ...any) {
	if len(r.info.Warnings) < maxWarnings {
		r.info.Warnings = append(r.info.Warnings, fmt.Sprintf(format, args...))
	}
}

func (r *reader) corrupt(off int64, err error) error {
	return &plugin.CorruptError{Path: r.path, Offset: off, Err: err}
}

// describe makes topics of the connections and sums up the blocks.
func (r *reader) describe() {
	type key struct{ name, typ string }
	ids := map[key]plugin.TopicID{}
	r.route = map[uint32]route{}
	latched := map[plugin.TopicID][2]bool{} // volatile, latched
	conflict := map[plugin.TopicID]bool{}
	for _, conn := range r.connOrder {
		c := r.conns[conn]
		k := key{c.topic, c.typ}
		id, ok := ids[k]
		if !ok {
			id = plugin.TopicID(len(r.info.Topics) + 1)
			ids[k] = id
			r.info.Topics = append(r.info.Topics, plugin.TopicInfo{Bytes: -1, Topic: plugin.Topic{ID: id, Name: c.topic, Type: c.typ,
				SerializationFormat: formatROS1, TypeHash: c.md5, Definition: plugin.Definition{Encoding: encodingROS1, Text: c.definition}}})
		}
		t := &r.info.Topics[id-1]
		if t.TypeHash != c.md5 && !conflict[id] {
			conflict[id] = true
			r.warn("topic %q: its publishers have different definitions of %s (md5sum %s and %s); it is read without a definition", c.topic, c.typ, t.TypeHash, c.md5)
		}
		n := slices.Index(t.Sources, c.caller)
		if n < 0 {
			n = len(t.Sources)
			t.Sources = append(t.Sources, c.caller)
		}
		r.route[conn] = route{id, uint32(n + 1)}
		l := latched[id]
		if c.latching {
			l[1] = true
		} else {
			l[0] = true
		}
		latched[id] = l
	}
	for i := range r.info.Topics {
		t := &r.info.Topics[i]
		if conflict[t.ID] {
			t.TypeHash, t.Definition = "", plugin.Definition{Encoding: "unknown"}
		}
		if latched[t.ID][0] {
			t.OfferedQoS += profile("volatile")
		}
		if latched[t.ID][1] {
			t.OfferedQoS += profile("transient_local")
		}
	}
	seen := false
	for i := range r.blocks {
		b := &r.blocks[i]
		n := uint64(0)
		for _, c := range b.counts {
			if to, ok := r.route[c.conn]; ok {
				r.info.Topics[to.topic-1].Count += uint64(c.count)
				n += uint64(c.count)
			}
		}
		r.info.Messages += n
		if n == 0 {
			continue
		}
		if !seen {
			seen, r.info.Start, r.info.End = true, b.start, b.end
		}
		r.info.Start, r.info.End = min(r.info.Start, b.start), max(r.info.End, b.end)
	}
}

// profile is the quality of service that stands for a ROS 1 publisher, in rosbag2's form: over TCP nothing is lost on
// the way, and a latching publisher keeps its last message for those that come later.
func profile(durability string) string {
	depth, forever := 10, "    sec: 9223372036\n    nsec: 854775807\n"
	if durability == "transient_local" {
		depth = 1
	}
	return fmt.Sprintf("- history: keep_last\n  depth: %d\n  reliability: reliable\n  durability: %s\n  deadline:\n%s  lifespan:\n%s"+
		"  liveliness: automatic\n  liveliness_lease_duration:\n%s  avoid_ros_namespace_conventions: false\n", depth, durability, forever, forever, forever)
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
