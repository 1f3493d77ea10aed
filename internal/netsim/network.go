package netsim

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// maxDatagram is the largest UDP payload over IPv4.
const maxDatagram = 65507

// Network connects hosts.
type Network struct {
	judge judge
	mu    sync.Mutex
	hosts []*Host
}

// New makes a network without hosts.
func New(f Faults) *Network {
	n := new(Network)
	n.judge.set(f)
	return n
}

// SetFaults replaces the faults from now on. With another seed chance starts anew.
func (n *Network) SetFaults(f Faults) { n.judge.set(f) }

// Stats counts datagrams since New; one for each receiver of a multicast.
func (n *Network) Stats() Stats { return n.judge.count() }

// Host adds a participant's sockets at an IPv4 address. Several at the same address are on the same host; each has two
// ports of its own, from 7410 upward.
func (n *Network) Host(addr netip.Addr) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	port := uint16(7410)
	for _, h := range n.hosts {
		if h.discovery.Addr() == addr {
			port = max(port, h.discovery.Port()+2)
		}
	}
	h := &Host{network: n, discovery: netip.AddrPortFrom(addr, port), data: netip.AddrPortFrom(addr, port+1), queue: newQueue()}
	n.hosts = append(n.hosts, h)
	return h
}

// Close closes all hosts.
func (n *Network) Close() error {
	n.mu.Lock()
	hosts := n.hosts
	n.mu.Unlock()
	var errs []error
	for _, h := range hosts {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}

// find is the open host with that address, or nil. Loopback addresses stand for the sender's host.
func (n *Network) find(sender *Host, to netip.AddrPort) *Host {
	if to.Addr().IsLoopback() {
		to = netip.AddrPortFrom(sender.discovery.Addr(), to.Port())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.hosts {
		if !h.isClosed() && (h.discovery == to || h.data == to) {
			return h
		}
	}
	return nil
}

// deliver sends a copy of b to a host, through the faults.
func (n *Network) deliver(from *Host, to *Host, addr netip.AddrPort, multicast bool, b []byte) {
	late, copies := n.judge.decide(from.discovery, addr, multicast, b)
	for i := range copies {
		if !to.queue.add(late[i], bytes.Clone(b), nil) {
			n.judge.overflow(1)
		}
	}
}

// Host is a participant's connection to a Network. It has the methods of rtps.Transport.
type Host struct {
	network         *Network
	discovery, data netip.AddrPort
	queue           *queue
	mu              sync.Mutex
	closed          bool
}

// Start begins delivery to receive, on one goroutine. The datagrams are receive's until it returns.
func (h *Host) Start(receive func(datagrams [][]byte)) error {
	if h.isClosed() {
		return net.ErrClosed
	}
	h.queue.start(receive)
	return nil
}

// Locators are the host's two addresses, whoever asks.
func (h *Host) Locators(netip.Addr) (discovery, data []netip.AddrPort) {
	return []netip.AddrPort{h.discovery}, []netip.AddrPort{h.data}
}

// Send sends to another host. Like UDP it says nothing when nobody is there.
func (h *Host) Send(dst netip.AddrPort, datagram []byte) error {
	if h.isClosed() {
		return net.ErrClosed
	}
	if len(datagram) > maxDatagram {
		return fmt.Errorf("send to %s: datagram of %d bytes, %d at most", dst, len(datagram), maxDatagram)
	}
	if to := h.network.find(h, dst); to != nil {
		h.network.deliver(h, to, dst, false, datagram)
	}
	return nil
}

// Announce sends to every host, the sender included, as multicast does.
func (h *Host) Announce(build func(discovery, data []netip.AddrPort) []byte) error {
	if h.isClosed() {
		return net.ErrClosed
	}
	b := build(h.Locators(netip.Addr{}))
	h.network.mu.Lock()
	hosts := h.network.hosts[:len(h.network.hosts):len(h.network.hosts)]
	h.network.mu.Unlock()
	for _, to := range hosts {
		if !to.isClosed() {
			h.network.deliver(h, to, to.discovery, true, b)
		}
	}
	return nil
}

// Local reports whether an address is the host's own or loopback.
func (h *Host) Local(a netip.Addr) bool { return a == h.discovery.Addr() || a.IsLoopback() }

func (h *Host) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// Close ends delivery and waits for a receive that is running. It must not be called by receive.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.queue.close()
	return nil
}
