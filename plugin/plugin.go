package plugin

import (
	"context"
	"math"
)

// TopicID names a topic within one storage. It is given out by [Writer.AddTopic] and counts from 1; 0 is no topic.
type TopicID uint32

// Message is one recorded message.
type Message struct {
	Topic    TopicID
	RecvTime int64  // wall clock at reception, ns since the Unix epoch; any int64 is legal
	SendTime int64  // the publisher's stamp, same unit; 0 where unknown
	Source   uint32 // which writer of the topic: Topic.Sources[Source-1]; 0 unknown
	Seq      uint64 // the writer's sequence number on the wire; 0 unknown
	Order    uint64 // running number in the recording; breaks ties of RecvTime. See Writer.Write
	Data     []byte // as serialized: CDR with its 4-byte header; ROS 1 bare
}

// Topic describes a topic of a storage.
type Topic struct {
	ID                  TopicID // set by readers; ignored by Writer.AddTopic
	Name                string  // "/camera/image"
	Type                string  // "sensor_msgs/msg/Image"
	SerializationFormat string  // "cdr"
	OfferedQoS          string  // YAML list of the publishers' profiles, as rosbag2 writes it; "" unknown
	TypeHash            string  // "RIHS01_…", of ROS 1 the md5sum; "" unknown
	Definition          Definition
	Sources             []string // writers of the topic: Message.Source is the index + 1
}

// Definition is the text that a type was generated from, its dependencies appended, as rosbag2 stores it.
type Definition struct {
	Encoding string // "ros2msg", "ros2idl", "ros1msg"; "" or "unknown" when there is no text
	Text     string
}

// Metadata is the bag's own description (rosbag2's BagMetadata), kept inside a storage where the format can.
type Metadata struct {
	Version int    // metadata version of Text: 1..9
	Text    string // YAML of the map below rosbag2_bagfile_information
}

// Presets that every driver accepts in WriteOptions.Preset; "" means PresetResilient. A driver may accept further
// names (rosbag2's own) as aliases of these.
const (
	PresetResilient = "resilient" // SIGKILL and power loss cost at most what came after the last Sync
	PresetFast      = "fast"      // fewer syncs; what may be lost stands in docs/formats
	PresetSmall     = "small"     // compressed; otherwise like resilient
	PresetNone      = "none"      // rosbag2's default settings, or the nearest that cannot damage the file
)

// Compat is the generation of ROS whose tools must be able to open what is written.
type Compat string

// The generations of Compat; the zero value is CompatJazzy.
const (
	CompatJazzy  Compat = "jazzy"
	CompatHumble Compat = "humble"
)

// WriteOptions configure Driver.Create. The zero value works.
type WriteOptions struct {
	Preset    string         // "" = PresetResilient; an unknown name is an error that lists the known ones
	Config    map[string]any // decoded storage config file (only its write part, where the format has one); unknown keys are errors
	Compat    Compat
	ROSDistro string   // recorded where the format has a place for it; may be ""
	Metadata  Metadata // the bag's description at this moment; stored at once where the format can
}

// ReadOptions configure Driver.OpenReader. The zero value works.
type ReadOptions struct {
	Config map[string]any // decoded storage config file (only its read part)
}

// Features says what a format can do. The zero value promises nothing.
type Features struct {
	SendTime       bool  // Message.SendTime survives
	Source         bool  // Message.Source, Message.Seq and Topic.Sources survive
	Metadata       bool  // Metadata is stored inside
	Definitions    bool  // Topic.Definition survives
	Reverse        bool  // Query.Reverse is supported
	Directory      bool  // a storage is a directory, not a file
	ReadOnly       bool  // Create is ErrUnsupported
	MinSplitSize   int64 // the smallest sensible split size, bytes
	MaxMessageSize int64 // largest Message.Data, bytes; 0 = no limit. Callers sort larger ones out before Write
	Buffers        int64 // memory the format needs beside the queue, bytes
	Presets        []PresetInfo
}

// PresetInfo names a preset and says in a line what a crash may cost.
type PresetInfo struct{ Name, Help string }

// Driver is one storage format. Drivers are stateless and safe for concurrent use.
type Driver interface {
	Name() string      // storage identifier, as in metadata.yaml: "sqlite3"
	Extension() string // with the dot: ".db3"
	Features() Features

	// Detect says whether path holds this format, by magic bytes; it changes nothing on disk.
	Detect(path string) (bool, error)

	// Create makes a new storage at path. ErrExists if anything is there already.
	Create(ctx context.Context, path string, o WriteOptions) (Writer, error)

	// OpenReader opens an existing storage read-only: it works on read-only media and changes no byte of it. A
	// storage that was cut off (crash, power loss, still being written) opens with what is whole, and Info says so.
	// Errors: fs.ErrNotExist, ErrFormat, *CorruptError.
	OpenReader(ctx context.Context, path string, o ReadOptions) (Reader, error)
}

// Writer appends to a storage. AddTopic, Write and Close are called by one goroutine; Sync and Size may be called
// by another at the same time. After a failed Write or Sync every later call returns that error (Close closes the file
// all the same).
type Writer interface {
	// AddTopic adds a topic, or, for a name and type that are there already, updates its QoS, hash, definition and
	// sources (a zero field leaves what is there) and returns the same id. A name that is there with another type is
	// a new topic.
	AddTopic(Topic) (TopicID, error)

	// Write appends a batch, in order, and keeps nothing of it after it returns. RecvTime need not ascend; Order does:
	// it may skip numbers, and a message whose Order is not above that of the message before (0, say), or is 1<<63 or
	// more, gets the next number. Readers return the number that was given. ErrUnknownTopic if a message names no
	// topic, ErrUnsupported if one is larger than Features.MaxMessageSize: nothing of the batch is written and the
	// writer stays usable.
	Write(batch []Message) error

	// Sync returns nil when everything that Write had returned for before the call survives SIGKILL and power loss
	// (within what the preset promises).
	Sync() error

	// Size is the size in bytes the storage would have if closed now, pending bytes included. Cheap: it is asked
	// for after every batch.
	Size() int64

	// Close finishes the storage, storing m inside where the format can, syncs it and its directory. Idempotent.
	Close(m Metadata) error
}

// Reader reads a storage. Safe for concurrent use; iterators are not.
type Reader interface {
	Info() Info

	// Messages returns the messages that match q, ordered by (RecvTime, Order), or backwards.
	Messages(q Query) (Iterator, error)

	Close() error
}

// Iterator walks over messages.
type Iterator interface {
	// Next fills m. io.EOF at the end; *CorruptError where the storage is damaged (what follows is not read).
	// m.Data is valid until the next call of Next or Close.
	Next(m *Message) error
	Close() error
}

// Query selects messages. The zero value selects all.
type Query struct {
	Topics  []TopicID  // nil = all; empty but not nil = none
	Range   *TimeRange // nil = all
	Reverse bool

	// Fields is a hint: only these fields of the payloads are looked at, named by their path from the root with dots
	// ("header.stamp"); a name covers what is below it. A format that keeps fields apart may then hand out payloads whose
	// other fields are zero or empty; the rest of a Message is as ever. nil = whole payloads; empty but not nil = none.
	Fields []string
}

// TimeRange is a span of RecvTime, ns since the Unix epoch, both ends included.
type TimeRange struct{ Start, End int64 }

// Info describes a storage without reading its messages where the format can.
type Info struct {
	Topics   []TopicInfo // by ID; topics without messages too
	Messages uint64
	Start    int64    // smallest RecvTime; NoStart where there is no message
	End      int64    // largest RecvTime; 0 where there is no message
	Size     int64    // bytes on disk
	Metadata Metadata // the newest one stored inside; Version 0 if none

	ROSDistro string
	Format    string   // format version in words, as docs/formats names it: "schema 4"
	Unclean   bool     // not closed in order: cut off, or being written right now
	Warnings  []string // oddities met while opening, one line each
}

// TopicInfo is a topic with what the storage holds of it.
type TopicInfo struct {
	Topic
	Count uint64
	Bytes int64 // payload bytes; -1 unknown
}

// NoStart is the start of a storage without messages, as rosbag2 writes it.
const NoStart = math.MaxInt64

// Salvager is implemented by drivers that can read more out of a damaged storage than OpenReader.
type Salvager interface {
	// Salvage hands every whole message still in path to w's topics and messages, in file order, and leaves path as
	// it is.
	Salvage(ctx context.Context, path string, w Writer) (Report, error)
}

// Report says what a salvage kept and lost.
type Report struct {
	Messages uint64
	Lost     uint64   // messages known to have been there and gone
	Notes    []string // what was wrong and where, one line each
}
