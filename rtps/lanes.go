package rtps

import (
	"net"
	"net/netip"

	"github.com/gobag/gobag/rtps/wire"
)

// Where the kernel gives a socket less memory than a burst of a hundred topics needs (net.core.rmem_max of a Linux on which
// nobody has changed anything), readers are spread over more sockets: lanes. All readers of a topic have the same one, so
// that a writer sends to one address only. Lanes are for peers on this host: they are bound to loopback, on ports that
// nobody need know, and a firewall between hosts would not know them either.
const (
	laneBelow = 4 << 20 // effective bytes of the data socket's buffer from which on it is enough by itself
	laneTotal = 8 << 20 // effective bytes that all lanes have together,
	maxLanes  = 16      // in so many sockets at most
)

// lanesFor is how many lanes a participant has that asked for a receive buffer and got an effective one, as the kernel
// accounts it: twice what was asked for at best. 0 is not known.
func lanesFor(asked, effective int) int {
	if effective <= 0 || effective >= laneBelow || effective >= asked {
		return 0
	}
	return min(laneTotal/effective, maxLanes)
}

// openLanes binds n lanes, or fewer where no more are to be had.
func (l *udpLink) openLanes(n int) {
	for range n {
		s, err := listenLoopback()
		if err != nil {
			l.log.Debug("no further receive socket", "err", err)
			return
		}
		s.setBuffers(l.cfg.RecvBuffer, 0)
		l.spread = append(l.spread, s)
	}
}

// lanes lists the addresses of the lanes.
func (l *udpLink) lanes() []netip.AddrPort {
	var out []netip.AddrPort
	for _, s := range l.spread {
		out = append(out, netip.AddrPortFrom(loopback, uint16(s.LocalAddr().(*net.UDPAddr).Port)))
	}
	return out
}

// pickLane chooses a new reader's lane: that of the topic's other readers, else the one with the fewest.
func (p *Participant) pickLane(topic string) int {
	if len(p.lanes) == 0 {
		return 0
	}
	readers := make([]int, len(p.lanes))
	for _, r := range p.readers {
		if r.builtin() {
			continue
		}
		if r.cfg.Topic == topic {
			return r.lane
		}
		readers[r.lane]++
	}
	best := 0
	for i, n := range readers {
		if n < readers[best] {
			best = i
		}
	}
	return best
}

// announcementFor is what a peer is told of one of our readers: what everyone is, and a peer that can reach it the reader's
// lane. It is valid until the next call.
func (p *Participant) announcementFor(q *peer, reader GUID, everyone []byte) []byte {
	if len(p.lanes) == 0 || !q.local {
		return everyone
	}
	r := p.readers[reader.Entity()]
	if r == nil || r.builtin() {
		return everyone
	}
	d := announced(r.endpoint())
	d.Unicast = []wire.Locator{wire.LocatorFrom(p.lanes[r.lane])}
	p.laned = d.Append(p.laned[:0], false)
	return p.laned
}
