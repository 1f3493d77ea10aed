package rtps

import (
	"errors"

	"github.com/gobag/gobag/rtps/wire"
)

// GUID identifies a participant's endpoint: prefix (12 bytes) and entity id (4).
type GUID = wire.GUID

// ErrClosed is returned by operations on something that was closed.
var ErrClosed = errors.New("closed")

// Peer is a remote participant.
type Peer struct {
	Prefix         wire.Prefix
	Vendor         wire.VendorID
	Name, UserData string
	Locators       []string // "udp/192.0.2.2:7411", …; what it announced for user data
	Reachable      bool     // we have an address to talk to
	Reason         string   // why not: "no UDP unicast locator"
	Secured        bool     // it has an identity of DDS Security; reachable only if it admits those without
	Refused        uint64   // announcements and samples of it that were turned away because a limit was reached
}

// Endpoint is a user reader or writer, remote or ours.
type Endpoint struct {
	GUID          GUID
	Writer, Local bool
	Topic, Type   string // as on the wire: "rt/chatter", "std_msgs::msg::dds_::String_"
	Keyed         bool
	QoS           QoS
	UserData      []byte // shared, not to be changed
	Vendor        wire.VendorID
}

// Owner takes back the memory of a sample.
type Owner interface{ Release(data []byte) }

// SampleID names a sample. Requests and replies of services refer to each other by it (RELATED_SAMPLE_IDENTITY, DDS-RPC
// 1.0 §7.8.2).
type SampleID struct {
	Writer GUID
	Seq    int64
}

// UnknownSeq is the sequence number of a SampleID that names a writer or reader only (RTPS 2.5 §9.3.2.10).
const UnknownSeq = -1 << 32

// Sample is a received payload. It belongs to the handler until Release.
type Sample struct {
	Data       []byte // serialized, with its 4-byte encapsulation header, as it came
	SourceTime int64  // the writer's stamp, ns since the Unix epoch; RecvTime where it sent none
	RecvTime   int64  // wall clock when it came, by the kernel where that tells, ns since the Unix epoch
	Writer     GUID
	Seq        int64     // the writer's sequence number, ≥ 1
	Cost       int       // bytes of memory the sample keeps in use, overhead included
	Related    *SampleID // with ReaderConfig.Related: the sample that the writer says this one belongs to; nil none
	Owner      Owner     // takes Data back
}

// Release gives the memory back. Exactly once, on any goroutine; the sample must not be used after it.
func (s *Sample) Release() {
	if s.Owner != nil {
		s.Owner.Release(s.Data)
	}
	s.Owner, s.Data = nil, nil
}

// Mismatch is a remote endpoint on our topic that does not pair with ours.
type Mismatch struct {
	GUID   GUID
	Reason string // "reliability: offered best effort, requested reliable"
}

// ReaderStats counts since the reader was made.
type ReaderStats struct {
	Received   uint64 // samples handed to the handler
	Lost       uint64 // samples of matched writers that are gone for good, counted from the first sample seen of each
	Mismatches []Mismatch
	Writers    []WriterStats // every writer ever matched; those long gone are dropped when there are over a thousand
}

// WriterStats counts what came from one remote writer.
type WriterStats struct {
	GUID           GUID
	Received, Lost uint64
	First, Last    int64 // sequence numbers of the first and last sample received; 0 none
	Matched        bool  // still there
	Reliable       bool  // received with acknowledgement
	Heard          bool  // it sent a HEARTBEAT: it knows the reader, as far as one can tell
}

// WriterInfo describes a local writer.
type WriterInfo struct {
	Sent       uint64 // samples written
	Matched    int    // remote readers
	Reliable   int    // of them acknowledging
	Ready      int    // of those that answered: they know the writer
	Unacked    int    // samples not yet acknowledged by all of those
	Dropped    uint64 // samples given up before every matched reliable reader had acknowledged them
	Resent     uint64 // datagrams sent again because a reader asked for them
	Mismatches []Mismatch
}

// Stats counts what a participant's sockets and parser did.
type Stats struct {
	Datagrams   uint64 // received
	Bytes       uint64 // received, UDP payload
	Malformed   uint64 // datagrams that were not, or not wholly, well-formed RTPS
	Refused     uint64 // announcements and samples turned away because a limit was reached
	SentPackets uint64
	SentBytes   uint64
	SendErrors  uint64
	KernelDrops uint64 // datagrams that the kernel dropped because a receive buffer was full; Linux only
	RecvBuffer  int    // effective receive buffer of the data socket in bytes; 0 unknown
	Reassembly  int64  // bytes held by incomplete and out-of-order samples now
}
