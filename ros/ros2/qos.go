package ros2

import (
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

// fromRTPS is the profile of a remote endpoint in ROS's terms. Fast DDS does not announce its history, which is then
// unknown; Cyclone DDS leaves out what is the default, keep last 1.
func fromRTPS(q *rtps.QoS, vendor wire.VendorID) ros.QoS {
	out := ros.QoS{
		History:                 ros.KeepLast,
		Depth:                   q.Depth,
		Reliability:             ros.BestEffort,
		Durability:              ros.Volatile,
		Deadline:                infinite(q.Deadline),
		Lifespan:                infinite(q.Lifespan),
		Liveliness:              ros.Automatic,
		LivelinessLeaseDuration: infinite(q.LeaseDuration),
	}
	switch {
	case q.History == rtps.KeepAll:
		out.History, out.Depth = ros.KeepAll, 0
	case q.Depth == 0 && vendor == wire.VendorCyclone:
		out.Depth = 1
	case q.Depth == 0:
		out.History = ros.HistoryUnknown
	}
	if q.Reliability == rtps.Reliable {
		out.Reliability = ros.Reliable
	}
	if q.Durability >= rtps.TransientLocal { // whoever asks for transient local gets it from stronger ones too
		out.Durability = ros.TransientLocal
	}
	switch q.Liveliness {
	case rtps.ManualByParticipant:
		out.Liveliness = ros.ManualByNode
	case rtps.ManualByTopic:
		out.Liveliness = ros.ManualByTopic
	}
	return out
}

// writerQoS is the offer of a publisher of ours.
func writerQoS(q ros.QoS) rtps.QoS {
	q = q.Normalized()
	out := rtps.QoS{Deadline: finite(q.Deadline), Lifespan: finite(q.Lifespan), LeaseDuration: finite(q.LivelinessLeaseDuration)}
	setCommon(&out, q)
	switch q.Liveliness {
	case ros.ManualByNode:
		out.Liveliness = rtps.ManualByParticipant
	case ros.ManualByTopic:
		out.Liveliness = rtps.ManualByTopic
	}
	return out
}

// readerQoS is the request of a reader of ours. It asks for no deadline and no liveliness, as rosbag2's recorder does:
// they do not change what is received, and every publisher satisfies that.
func readerQoS(q ros.QoS) rtps.QoS {
	var out rtps.QoS
	setCommon(&out, q.Normalized())
	return out
}

func setCommon(out *rtps.QoS, q ros.QoS) {
	out.History, out.Depth = rtps.KeepLast, q.Depth
	if q.History == ros.KeepAll {
		out.History, out.Depth = rtps.KeepAll, 0
	}
	if q.Reliability == ros.Reliable {
		out.Reliability = rtps.Reliable
	}
	if q.Durability == ros.TransientLocal {
		out.Durability = rtps.TransientLocal
	}
}

// infinite turns the 0 that means no limit in package rtps into ros.Infinite, finite turns it back.
func infinite(d time.Duration) time.Duration {
	if d == 0 {
		return ros.Infinite
	}
	return d
}

func finite(d time.Duration) time.Duration {
	if d == ros.Infinite {
		return 0
	}
	return d
}

// class is a kind of quality of service that needs a reader of its own. What is reliable and latched is received with
// its history, what is reliable without, the rest as it comes. (History is only resent to reliable readers, so best
// effort and latched is no class of its own unless a subscription asks for it.)
type class struct{ reliable, latched bool }

// classOf returns the class in which a subscription receives a writer that offers this much; for writers that offer too
// little it is a class that they do not match.
func classOf(requested ros.QoS, reliable, latched bool) class {
	c := class{reliable: requested.Reliability == ros.Reliable, latched: requested.Durability == ros.TransientLocal}
	if requested.Reliability == ros.ReliabilityBestAvailable {
		c.reliable = reliable
	}
	if requested.Durability == ros.DurabilityBestAvailable {
		c.latched = latched && c.reliable
	}
	return c
}

// classes is the number of classes, index counts them.
const classes = 4

func (c class) index() (i int) {
	if c.reliable {
		i |= 1
	}
	if c.latched {
		i |= 2
	}
	return i
}

// qos is the subscription's profile narrowed to the class.
func (c class) qos(requested ros.QoS) ros.QoS {
	requested.Reliability, requested.Durability = ros.BestEffort, ros.Volatile
	if c.reliable {
		requested.Reliability = ros.Reliable
	}
	if c.latched {
		requested.Durability = ros.TransientLocal
	}
	return requested
}
