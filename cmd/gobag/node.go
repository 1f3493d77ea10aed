package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros2"
	"github.com/spf13/pflag"
)

// nodeFlags say how to join the network. What they leave open comes from the environment, as for every ROS 2 node.
type nodeFlags struct {
	name       string
	domain     int
	interfaces []string
	peers      []string
	localhost  bool
	multicast  bool
}

func (f *nodeFlags) define(fs *pflag.FlagSet, name string) {
	fs.StringVar(&f.name, "node-name", name, "`NAME` we have on the network")
	fs.IntVar(&f.domain, "domain-id", -1, "ROS domain `N`, 0 to 232 (default: ROS_DOMAIN_ID, else 0)")
	fs.Lookup("domain-id").DefValue = "0" // keeps "(default -1)" out of the help
	listFlag(fs, &f.interfaces, "interface", "", "network interfaces `IF...` to use, names or addresses (default: all)", true)
	listFlag(fs, &f.peers, "peer", "", "`HOST...` to look for by unicast as well, as ROS_STATIC_PEERS", true)
	switchFlag(fs, &f.multicast, "data-multicast", "", "receive data by multicast too, from writers that send so (Cyclone DDS): one datagram for all subscribers")
	switchFlag(fs, &f.localhost, "localhost", "", "this host only, as ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST")
	hide(fs, "localhost")
}

// options combine flags and environment and print the environment's warnings.
func (f *nodeFlags) options(a *app) (ros2.Options, error) {
	o, warnings, err := ros2.OptionsFromEnv(a.env)
	for _, w := range warnings {
		a.logger.Warn(w)
	}
	if err != nil {
		return o, err
	}
	if f.domain != -1 {
		if f.domain < 0 || f.domain > 232 {
			return o, usageError("--domain-id %d: not in 0..232", f.domain)
		}
		o.Domain = f.domain
	}
	if len(f.interfaces) > 0 {
		o.Interfaces = f.interfaces
	}
	o.Peers = append(o.Peers, f.peers...)
	if f.localhost {
		o.Range = ros2.RangeLocalhost
	}
	if o.DataMulticast = f.multicast; f.multicast && o.NoMulticast {
		return o, usageError("--data-multicast: CYCLONEDDS_URI switches multicast off")
	}
	if o.Range == ros2.RangeOff {
		a.logger.Warn("ROS_AUTOMATIC_DISCOVERY_RANGE=OFF: nobody is looked for and nobody finds us")
	}
	o.Name, o.Logger = f.name, a.logger
	if f.name == "" {
		return o, nil // in no list of nodes
	}
	if o.NodeName = "/" + strings.TrimPrefix(f.name, "/"); ros.ValidName(o.NodeName) != nil {
		return o, usageError("--node-name %q: letters, digits and underscores expected, as in gobag_recorder", f.name)
	}
	return o, nil
}

// openNode joins the network.
func openNode(a *app, f *nodeFlags) (*ros2.Node, error) {
	o, err := f.options(a)
	if err != nil {
		return nil, err
	}
	return ros2.New(o)
}

// What the player keeps of a topic for subscriptions that are behind, and how long it waits for them before it gives a
// message up: a second or two of camera images.
const (
	playWindow   = 64 << 20
	playBlocking = 2 * time.Second
)

// openPlayNode joins the network as a publisher that would rather wait than lose.
func openPlayNode(a *app, f *nodeFlags) (*ros2.Node, error) {
	o, err := f.options(a)
	if err != nil {
		return nil, err
	}
	o.Window, o.MaxBlocking = playWindow, playBlocking
	return ros2.New(o)
}

// loopbackNode joins a domain on this host only, whatever the environment says.
func loopbackNode(a *app, domain int, name string) (*ros2.Node, error) {
	return ros2.New(ros2.Options{Domain: domain, Range: ros2.RangeLocalhost, Name: name, Logger: a.logger})
}

// smallBuffer is the receive buffer below which bursts of large messages are lost on the way in, as measured: at 2 MB
// a few percent of 100 MB/s, at 416 KB (Linux's stock limit) most of it.
const smallBuffer = 4 << 20

// bufferHint says what to do about a small receive buffer; "" when there is nothing to do.
func bufferHint(size int) string {
	if size <= 0 || size >= smallBuffer {
		return ""
	}
	text := fmt.Sprintf("the kernel grants a receive buffer of %s only: bursts of large messages will be lost on the way in.", fileSize(int64(size)))
	if hint := sysctlHint(); hint != "" {
		text += " Mend it with: " + hint
	}
	return text
}

// sysctlHint is the command that allows larger receive buffers.
func sysctlHint() string {
	if runtime.GOOS != "linux" {
		return ""
	}
	return "sudo sysctl -w net.core.rmem_max=33554432"
}
