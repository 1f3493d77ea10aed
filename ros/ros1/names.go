package ros1

import (
	"crypto/sha256"
	"strconv"

	"github.com/gobag/gobag/ros"
)

// endpointID is the id of a publisher or subscription: what ROS 1 knows of it is the node and the topic. A publisher that
// is connected to again is another writer, since what it sent in between is unknown: generation counts that.
func endpointID(kind, node, topic string, generation int) (id ros.EndpointID) {
	text := kind + "\x00" + node + "\x00" + topic
	if generation > 0 {
		text += "\x00" + strconv.Itoa(generation)
	}
	sum := sha256.Sum256([]byte(text))
	copy(id[:], sum[:])
	return id
}

const (
	kindPublisher    = "p"
	kindSubscription = "s"
)

// offered is the profile that stands for a publisher of ROS 1.
func offered(latching bool) ros.QoS {
	q := ros.DefaultQoS()
	if latching {
		q.Durability, q.Depth = ros.TransientLocal, 1
	}
	return q
}
