package rtps

import (
	"net/netip"
)

// Transport moves datagrams for a participant: the UDP sockets, or a simulated network in tests. Its methods use
// standard types only, so that a simulation need not import this package.
type Transport interface {
	// Start begins delivery. receive may be called from several goroutines; it keeps nothing of a datagram after it
	// returns. Start is called once, before anything else but the locators.
	Start(receive func(datagrams [][]byte)) error

	// Locators are the addresses at which unicast from dst arrives: for discovery, and for user data. Both may be the same. Data may
	// come by multicast too: addresses of groups are among the latter.
	Locators(dst netip.Addr) (discovery, data []netip.AddrPort)

	// Send sends one datagram to a unicast address. It keeps nothing of it and does not block for long. An error means
	// that this datagram was lost.
	Send(dst netip.AddrPort, datagram []byte) error

	// Announce sends a datagram to everyone who might be there: the multicast groups and the static peers. build makes it
	// for an audience, given the locators at which that audience reaches us; it may be called several times.
	Announce(build func(discovery, data []netip.AddrPort) []byte) error

	// Local reports whether an address leads to this host.
	Local(a netip.Addr) bool

	// Close ends delivery: when it returns no call of receive is running or will start.
	Close() error
}

// outMsg is a datagram to send: the concatenation of its parts, or with segment > 0 several datagrams of that size
// (the last may be shorter) in one.
type outMsg struct {
	dst     netip.AddrPort
	bufs    [][]byte
	segment int
}

func (m *outMsg) size() int {
	n := 0
	for _, b := range m.bufs {
		n += len(b)
	}
	return n
}

// link is what the participant uses below it: a Transport with batches.
type link interface {
	Transport
	sendBatch(ms []outMsg) error // all of them, in order, waiting while the socket is full; not on one goroutine only
	segmentation() bool          // outMsg.segment works
	onLink(a netip.Addr) bool    // a is on a subnet of one of our interfaces
	mtu(a netip.Addr) int        // of that interface; 0 where a is on none
	lanes() []netip.AddrPort     // further addresses on this host that we receive at
	stats(*Stats)
}

// plainLink makes a link of a Transport by joining the parts of each message.
type plainLink struct{ Transport }

func (l plainLink) segmentation() bool      { return false }
func (l plainLink) onLink(netip.Addr) bool  { return false }
func (l plainLink) mtu(netip.Addr) int      { return 0 }
func (l plainLink) lanes() []netip.AddrPort { return nil }
func (l plainLink) stats(*Stats)            {}

func (l plainLink) sendBatch(ms []outMsg) error {
	var first error
	for i := range ms {
		b := make([]byte, 0, ms[i].size())
		for _, p := range ms[i].bufs {
			b = append(b, p...)
		}
		if err := l.Send(ms[i].dst, b); err != nil && first == nil {
			first = err
		}
	}
	return first
}
