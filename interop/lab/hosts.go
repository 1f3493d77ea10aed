//go:build linux

package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
)

// Hosts is two hosts, a network namespace each, with a relay of ours as the cable between them. It needs root.
type Hosts struct {
	A, B  *Net
	Relay *Relay
	cable string // the namespace that the relay stands in
}

// Addresses of the two hosts, on their eth0.
var (
	AddressA = netip.MustParseAddr("10.77.0.1")
	AddressB = netip.MustParseAddr("10.77.0.2")
)

// LargeMTU lets every UDP datagram pass as one frame, so that what a rule drops is a datagram. EthernetMTU cuts larger ones
// into IP fragments, as a real cable does.
const (
	LargeMTU    = 65535
	EthernetMTU = 1500
)

// ethernetConfig keeps Cyclone on the cable.
const ethernetConfig = `<CycloneDDS><Domain id="any"><General><Interfaces><NetworkInterface name="eth0" multicast="true"/>` +
	`</Interfaces></General></Domain></CycloneDDS>`

// NewHosts makes two hosts. Close them. ErrNoHosts where this process may not make any.
func NewHosts(mtu int) (*Hosts, error) {
	if os.Geteuid() != 0 {
		return nil, ErrNoHosts
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, ErrNoHosts
	}
	h := &Hosts{}
	var err error
	if h.A, err = NewNet(); err == nil {
		h.B, err = NewNet()
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	if h.A.Namespace == "" || h.B.Namespace == "" {
		return nil, errors.Join(ErrNoHosts, h.Close())
	}
	h.B.Domain = h.A.Domain
	h.A.CycloneURI, h.B.CycloneURI = ethernetConfig, ethernetConfig
	if err := h.lay(mtu); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// ErrNoHosts says that network namespaces cannot be made here.
var ErrNoHosts = errors.New("network namespaces need root and iproute2")

// lay makes the cable: a pair of virtual interfaces from each host to the relay.
func (h *Hosts) lay(mtu int) error {
	cable := h.A.Namespace + "-cable"
	if err := run("ip", "netns", "add", cable); err != nil {
		return err
	}
	h.cable = cable
	if err := run("ip", "netns", "exec", cable, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"); err != nil {
		return err
	}
	size := fmt.Sprint(mtu)
	for _, end := range []struct {
		n       *Net
		port    string
		address netip.Addr
	}{{h.A, "toa", AddressA}, {h.B, "tob", AddressB}} {
		ns := end.n.Namespace
		for _, args := range [][]string{
			// gso_max_segs: datagrams that the kernel would cut later (UDP_SEGMENT) must be cut before they get here.
			{"link", "add", "eth0", "mtu", size, "gso_max_segs", "1", "netns", ns, "type", "veth", "peer", "name", end.port, "mtu", size, "netns", cable},
			{"-n", ns, "addr", "add", end.address.String() + "/24", "dev", "eth0"},
			{"-n", ns, "link", "set", "eth0", "up"},
			{"-n", ns, "route", "add", "default", "dev", "eth0"},
			{"-n", cable, "link", "set", "dev", end.port, "up"},
		} {
			if err := run("ip", args...); err != nil {
				return err
			}
		}
	}
	var err error
	h.Relay, err = startRelay(cable, "toa", "tob", mtu)
	return err
}

// Close ends the relay and removes the hosts. Processes on them must have ended.
func (h *Hosts) Close() error {
	var errs []error
	if h.Relay != nil {
		errs = append(errs, h.Relay.Close())
	}
	for _, n := range []*Net{h.A, h.B} {
		if n != nil {
			errs = append(errs, n.Close())
		}
	}
	if h.cable != "" {
		errs = append(errs, run("ip", "netns", "del", h.cable))
		h.cable = ""
	}
	return errors.Join(errs...)
}

// WithoutMulticast lets no datagram of the network get to a multicast group. It needs a namespace.
func (n *Net) WithoutMulticast() error {
	if n.Namespace == "" {
		return ErrNoHosts
	}
	if err := n.LoopbackFlag(false); err != nil {
		return err
	}
	return run("ip", "-n", n.Namespace, "route", "add", "blackhole", "239.0.0.0/8", "table", "local")
}

// LoopbackFlag sets or clears the MULTICAST flag of loopback. It needs a namespace.
func (n *Net) LoopbackFlag(on bool) error {
	value := map[bool]string{true: "on", false: "off"}[on]
	return run("ip", "-n", n.Namespace, "link", "set", "lo", "multicast", value)
}
