package mcap

import (
	"hash/crc32"
	"strings"

	"github.com/gobag/gobag/plugin"
)

// What the MCAP registry says of ROS 1: profile ros1, message encoding ros1, schema encoding ros1msg, and the connection
// header in the channel's metadata, "callerid" and "latching" among it; other writers put "md5sum" and "topic" there too.
const (
	ros1Encoding = "ros1"
	ros1Profile  = "ros1"
	ros2Profile  = "ros2"
)

// profileAt is the offset of the profile in a file: behind the magic, the head of the header record and the length.
const profileAt = int64(len(magic)) + recordHead + 4

// ros1Metadata is what a channel of ROS 1 says of its connection, as pairs of keys and values.
func ros1Metadata(t *plugin.Topic) []string {
	latching := "false"
	if strings.Contains(t.OfferedQoS, "durability: transient_local") || strings.Contains(t.OfferedQoS, "durability: 1\n") {
		latching = "true"
	}
	pairs := []string{"topic", t.Name, "md5sum", t.TypeHash, "latching", latching}
	if len(t.Sources) == 1 { // a channel of several publishers is nobody's
		pairs = append(pairs, "callerid", t.Sources[0])
	}
	return pairs
}

// ros1Topic takes over what such metadata says, where nothing else says it.
func ros1Topic(t *plugin.Topic, metadata map[string]string) {
	if t.TypeHash == "" {
		t.TypeHash = metadata["md5sum"]
	}
	if caller := metadata["callerid"]; caller != "" && t.Sources == nil {
		t.Sources = []string{caller}
	}
	latching, known := metadata["latching"]
	if t.OfferedQoS != "" || !known {
		return
	}
	depth, durability := "10", "volatile"
	if latching == "true" || latching == "1" {
		depth, durability = "1", "transient_local"
	}
	const forever = "    sec: 9223372036\n    nsec: 854775807\n"
	t.OfferedQoS = "- history: keep_last\n  depth: " + depth + "\n  reliability: reliable\n  durability: " + durability + "\n  deadline:\n" + forever +
		"  lifespan:\n" + forever + "  liveliness: automatic\n  liveliness_lease_duration:\n" + forever + "  avoid_ros_namespace_conventions: false\n"
}

// writeProfile puts ros1 in place of ros2 into the header of a file that holds nothing else; the two are of one length. A
// recording that is cut off keeps ros2 there; its channels say ros1 all the same.
func (w *writer) writeProfile() error {
	for _, t := range w.topics {
		if t.SerializationFormat != ros1Encoding {
			return nil
		}
	}
	if len(w.topics) == 0 {
		return nil
	}
	head := header(ros2Profile)
	before := crc32.ChecksumIEEE(head)
	copy(head[profileAt:], ros1Profile)
	if _, err := w.f.WriteAt(head[profileAt:profileAt+int64(len(ros1Profile))], profileAt); err != nil {
		return err
	}
	if !w.set.noDataCRC {
		w.crc ^= crcCombine(before^crc32.ChecksumIEEE(head), 0, w.off-int64(len(head)))
	}
	return nil
}

// header is the beginning of a file.
func header(profile string) []byte {
	b, at := begin([]byte(magic), opHeader)
	return end(appendString(appendString(b, profile), library), at)
}
