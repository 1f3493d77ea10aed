package bag

import (
	"math"
	"time"

	"github.com/gobag/gobag/plugin"
)

// MetadataFile is the name of the bag's description inside its directory.
const MetadataFile = "metadata.yaml"

// Metadata versions: what rosbag2 of a generation writes.
const (
	MetadataVersion       = 9 // Jazzy and later
	MetadataVersionHumble = 5

	customDataVersion = 6 // the first that has custom_data
)

// Compression modes of a bag, as metadata.yaml spells them.
const (
	CompressionNone    = ""
	CompressionFile    = "FILE"    // whole storage files, "x_0.db3.zstd"
	CompressionMessage = "MESSAGE" // each payload
)

// Metadata is a bag's description, rosbag2's BagMetadata of versions 1 to 9.
type Metadata struct {
	Version           int
	StorageIdentifier string // "sqlite3"
	Start             int64  // smallest RecvTime, ns since the Unix epoch; plugin.NoStart in an empty bag
	Duration          time.Duration
	MessageCount      uint64
	Topics            []TopicMetadata
	CompressionFormat string // "zstd" or ""
	CompressionMode   string // CompressionNone, CompressionFile or CompressionMessage
	Paths             []string
	Files             []FileMetadata // version 5 and later
	CustomData        map[string]string
	ROSDistro         string

	Warnings []string // oddities that parsing passed over, one line each
}

// TopicMetadata describes one topic of a bag.
type TopicMetadata struct {
	Name                string
	Type                string
	SerializationFormat string
	OfferedQoS          []QoSProfile // nil: unknown
	TypeHash            string
	MessageCount        uint64
}

// FileMetadata describes one storage of a bag.
type FileMetadata struct {
	Path         string // relative to the bag directory, with slashes
	Start        int64  // plugin.NoStart when it holds no message
	Duration     time.Duration
	MessageCount uint64
}

// End returns the largest RecvTime that Start and Duration give; 0 for an empty bag.
func (m *Metadata) End() int64 { return endOf(m.Start, m.Duration, m.MessageCount) }

// End returns the largest RecvTime that Start and Duration give; 0 for an empty storage.
func (f FileMetadata) End() int64 { return endOf(f.Start, f.Duration, f.MessageCount) }

func endOf(start int64, d time.Duration, count uint64) int64 {
	if count == 0 {
		return 0
	}
	if e := start + int64(d); e >= start {
		return e
	}
	return math.MaxInt64
}

// span is a growing range of stamps; the zero value is empty.
type span struct {
	any        bool
	start, end int64
}

func (s *span) add(t int64) {
	if !s.any {
		*s = span{true, t, t}
		return
	}
	s.start, s.end = min(s.start, t), max(s.end, t)
}

func (s *span) merge(o span) {
	if o.any {
		s.add(o.start)
		s.add(o.end)
	}
}

// times returns the start and duration as metadata gives them. Spans beyond 292 years count as that much.
func (s span) times() (start int64, d time.Duration) {
	if !s.any {
		return plugin.NoStart, 0
	}
	d = time.Duration(s.end - s.start)
	if d < 0 { // end ≥ start, so this is an overflow
		d = math.MaxInt64
	}
	return s.start, d
}
