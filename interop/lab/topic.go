//go:build linux

package lab

import (
	"fmt"
	"strings"
)

// Kind is a message type of the peers.
type Kind string

// The message types that the peers speak.
const (
	String Kind = "string"
	Imu    Kind = "imu"
	Image  Kind = "image"
	Blob   Kind = "blob"
	Keyed  Kind = "keyed"
	// Reading is of a type that no distribution of ROS has: see SecretFiles.
	Reading Kind = "reading"
)

// Type is the ROS name of the type.
func (k Kind) Type() string {
	switch k {
	case String:
		return "std_msgs/msg/String"
	case Imu:
		return "sensor_msgs/msg/Imu"
	case Image:
		return "sensor_msgs/msg/Image"
	case Keyed:
		return "load_msgs/msg/Keyed"
	case Reading:
		return "secret_msgs/msg/Reading"
	default:
		return "load_msgs/msg/Blob"
	}
}

// Type is the ROS name of the topic's type.
func (t Topic) Type() string {
	if t.As == "" {
		return t.Kind.Type()
	}
	return strings.ReplaceAll(strings.TrimSuffix(strings.Replace(t.As, "::dds_::", "::", 1), "_"), "::", "/")
}

// Topic is what a peer publishes or subscribes. The zero value of a field is the peer's default: reliable, volatile,
// KEEP_ALL.
type Topic struct {
	Kind           Kind
	Name           string  // "/chatter"
	Instances      int     // topics /name_0 …; 0 = one without suffix
	Hz             float64 // 0 = at once
	Count          int     // 0 = no end
	Size           int     // payload bytes of string, image and blob; string 0 = varying
	BestEffort     bool
	TransientLocal bool
	Depth          int // 0 = KEEP_ALL
	BlockMS        int // longest blocking of a write; 0 = 10 s
	Early          bool
	Hash           string
	Partition      string

	Grow        int    // bytes by which every sample of a blob is larger than the one before; needs Count
	As          string // type name on the wire; "" = that of the kind
	DeadlineMS  int    // 0 = none
	LatencyMS   int
	LeaseMS     int
	Liveliness  string // "", "manual_participant", "manual_topic"
	Exclusive   bool   // ownership
	SourceOrder bool   // destination order by source stamp
	XCDR2       bool   // data representation
}

// Arg is the topic in the peers' command line.
func (t Topic) Arg() string {
	f := []string{"type=" + string(t.Kind), "topic=" + t.Name, fmt.Sprintf("hz=%g", t.Hz)}
	add := func(on bool, format string, v any) {
		if on {
			f = append(f, fmt.Sprintf(format, v))
		}
	}
	add(t.Instances > 0, "n=%d", t.Instances)
	add(t.Count > 0, "count=%d", t.Count)
	add(t.Size > 0, "size=%d", t.Size)
	add(t.BestEffort, "rel=%s", "best_effort")
	add(t.TransientLocal, "dur=%s", "transient_local")
	add(t.Depth > 0, "depth=%d", t.Depth)
	add(t.BlockMS > 0, "block_ms=%d", t.BlockMS)
	add(t.Early, "early=%d", 1)
	add(t.Hash != "", "hash=%s", t.Hash)
	add(t.Partition != "", "part=%s", t.Partition)
	add(t.Grow > 0, "grow=%d", t.Grow)
	add(t.As != "", "as=%s", t.As)
	add(t.DeadlineMS > 0, "deadline_ms=%d", t.DeadlineMS)
	add(t.LatencyMS > 0, "latency_ms=%d", t.LatencyMS)
	add(t.LeaseMS > 0, "lease_ms=%d", t.LeaseMS)
	add(t.Liveliness != "", "live=%s", t.Liveliness)
	add(t.Exclusive, "own=%s", "exclusive")
	add(t.SourceOrder, "order=%s", "source")
	add(t.XCDR2, "repr=%s", "xcdr2")
	return strings.Join(f, ",")
}

// Args are the peers' arguments for several topics.
func Args(topics []Topic) []string {
	var args []string
	for _, t := range topics {
		args = append(args, "-t", t.Arg())
	}
	return args
}

// Names returns the names of all topics, instances written out.
func Names(topics []Topic) []string {
	var names []string
	for _, t := range topics {
		names = append(names, t.Names()...)
	}
	return names
}

// Names returns the topic's names, one an instance.
func (t Topic) Names() []string {
	if t.Instances == 0 {
		return []string{t.Name}
	}
	names := make([]string, t.Instances)
	for i := range names {
		names[i] = fmt.Sprintf("%s_%d", t.Name, i)
	}
	return names
}
