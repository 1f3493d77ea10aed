package ros2

import (
	"log/slog"
	"time"

	"github.com/gobag/gobag/rtps"
)

// Range says how far discovery reaches: the values of ROS_AUTOMATIC_DISCOVERY_RANGE.
type Range = rtps.Range

// The ranges.
const (
	RangeSubnet        = rtps.RangeSubnet
	RangeLocalhost     = rtps.RangeLocalhost
	RangeOff           = rtps.RangeOff
	RangeSystemDefault = rtps.RangeSystemDefault
)

// Options configure a node. The zero value joins domain 0 on every interface.
type Options struct {
	Domain      int      // ROS_DOMAIN_ID, 0 to 232
	Range       Range    // how far discovery reaches
	Peers       []string // hosts that are announced to by unicast as well, "10.0.0.2" or "robot.local", optionally ":port"
	Interfaces  []string // names or addresses; empty = every IPv4 interface that is up, loopback included
	NoMulticast bool     // discover by unicast only

	DataMulticast bool // receive data by multicast too, from writers that send so; see rtps.Config

	Name string // what the participant is called on the wire; "" = "/", as ROS nodes are

	RecvBuffer    int           // bytes asked of the kernel for the receive buffer; 0 = 16 MiB
	MaxReassembly int64         // bytes that incomplete samples may hold; 0 = 64 MiB. Larger samples are lost
	Window        int           // bytes that a publisher keeps for reliable subscriptions that are behind; 0 = 8 MiB
	MaxBlocking   time.Duration // how long Publish waits for them; 0 = 100 ms

	Now    func() int64 // wall clock for receive stamps, ns since the Unix epoch; nil = the system's
	Logger *slog.Logger // nil is silent

	// NoNodeNames leaves ros_discovery_info alone. Endpoint.Node is empty then.
	NoNodeNames bool

	// NodeName is the ROS node that our endpoints are credited to, "/gobag_recorder": others list it (`ros2 node list`).
	// "" is no node, and nothing is published about us.
	NodeName string

	// NodeInfo restricts the forms in which NodeName is published.
	NodeInfo InfoForm

	// Transport replaces the UDP sockets, for tests.
	Transport rtps.Transport
}

// config is what package rtps gets of it.
func (o *Options) config() rtps.Config {
	return rtps.Config{
		Domain: o.Domain, Range: o.Range, Peers: o.Peers, Interfaces: o.Interfaces, NoMulticast: o.NoMulticast,
		DataMulticast: o.DataMulticast, Name: o.Name,
		RecvBuffer: o.RecvBuffer, MaxReassembly: o.MaxReassembly, Now: o.Now, Logger: o.Logger, Transport: o.Transport,
	}
}
