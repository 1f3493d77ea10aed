package ros

import (
	"encoding/hex"
	"errors"
)

// Errors that callers test for.
var (
	ErrClosed = errors.New("closed")
	ErrName   = errors.New("not a valid ROS name")
)

// Topic names what is subscribed or advertised.
type Topic struct {
	Name     string // fully qualified: "/camera/image"
	Type     string // "sensor_msgs/msg/Image"
	TypeHash string // "RIHS01_…" of the peers' endpoints, repeated by ours; "" unknown
}

// EndpointID identifies a writer or reader for its life: an RTPS GUID (16 bytes) in ROS 2.
type EndpointID [16]byte

// String is the id in hexadecimal.
func (id EndpointID) String() string { return hex.EncodeToString(id[:]) }

// Endpoint is a publisher or subscription in the graph.
type Endpoint struct {
	ID       EndpointID
	Topic    Topic
	QoS      QoS
	Node     string // fully qualified node name; "" unknown
	Vendor   string // "Cyclone DDS", "Fast DDS", …; "" unknown
	Local    bool   // it is one of our own node
	Reliable bool   // shorthand for QoS.Reliability == Reliable

	// Unsettled says that QoS and type hash are not known yet: in ROS 1 a publisher tells them when it is connected to.
	Unsettled bool
}

// TopicInfo is a topic of the graph with everything known about it. A name can carry several types.
type TopicInfo struct {
	Name          string
	Types         []string // sorted; more than one is a conflict worth a warning
	Publishers    []Endpoint
	Subscriptions []Endpoint
}

// Graph is what a node knows of the network. Safe for concurrent use.
type Graph interface {
	// Topics returns a snapshot sorted by name, our own endpoints included (Endpoint.Local). It may be shared with other
	// callers: do not modify it.
	Topics() []TopicInfo

	// Changed returns a channel that is closed at the next change after this call. Take it before Topics, so that no
	// change is missed.
	Changed() <-chan struct{}
}

// Node takes part in a ROS graph. Safe for concurrent use.
type Node interface {
	Graph() Graph

	// Subscribe calls h with every sample of the topic. A QoS with BestAvailable policies follows the publishers: all
	// of them are received, later and weaker ones too, and a sample that comes twice is handed over once.
	//
	// h runs on the receive goroutine: it must not block and must not call the node. The sample belongs to h until
	// Sample.Release. The node's own publishers are not received.
	Subscribe(t Topic, q QoS, h func(Sample)) (Subscription, error)

	// Advertise announces a publisher.
	Advertise(t Topic, q QoS) (Publisher, error)

	// Close says goodbye to the peers and waits for every goroutine of the node. Idempotent.
	Close() error
}

// Subscription is a topic being received.
type Subscription interface {
	Topic() Topic
	Stats() SubscriptionStats
	Close() error // no call of the handler is running or will start when it returns; idempotent
}

// SubscriptionStats counts since the subscription began.
type SubscriptionStats struct {
	Received uint64 // samples handed to the handler
	Lost     uint64 // gaps in the writers' sequence numbers after their first sample seen, and what they said is gone
	// Mismatches names publishers that cannot be received, with the reason.
	Mismatches []Mismatch
	Writers    []WriterStats
}

// WriterStats counts what came from one publisher.
type WriterStats struct {
	ID             EndpointID
	Received, Lost uint64
	First, Last    uint64 // sequence numbers of the first and the last sample seen; 0 none
	Matched        bool   // still there
	Reliable       bool   // received with acknowledgement
}

// Mismatch is a remote endpoint on the same topic that does not pair with ours.
type Mismatch struct {
	ID     EndpointID
	Reason string // "reliability: offered best effort, requested reliable"
}

// Publisher is a topic being sent.
type Publisher interface {
	Topic() Topic

	// Publish sends a serialized message with its source stamp (ns since the Unix epoch). data may be reused when it
	// returns. It blocks while a reliable reader is behind, at most for the publisher's blocking time.
	Publish(data []byte, sourceTime int64) error

	// Stats tells how many subscriptions there are and what is not yet acknowledged.
	Stats() PublisherStats

	Close() error
}

// PublisherStats describes a publisher.
type PublisherStats struct {
	Sent       uint64 // samples published
	Matched    int    // subscriptions
	Reliable   int    // of them acknowledging
	Unacked    int    // samples not yet acknowledged by all of those
	Dropped    uint64 // samples given up before a matched reliable reader acknowledged them
	Mismatches []Mismatch
}
