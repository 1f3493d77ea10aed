//go:build linux

package lab

import (
	"math/rand/v2"
	"net/netip"
)

// Lossy returns a rule that drops that share of the UDP datagrams that carry something of user topics, both ways,
// discovery excepted. A datagram that IP cuts into frames is lost as a whole or not at all, so that the share is the same
// for those who send few large datagrams and those who send many small ones.
func Lossy(seed uint64, share float64) Rule {
	r := rand.New(rand.NewPCG(seed, 7))
	type datagram struct {
		from, to netip.Addr
		id       uint16
	}
	cut := map[datagram]bool{} // datagrams in fragments: whether it is dropped
	var order []datagram       // the oldest first
	return func(p *Packet) Fate {
		key := datagram{p.From.Addr(), p.To.Addr(), p.ID}
		if !p.First {
			return Fate{Drop: cut[key]}
		}
		drop := p.RTPS && !p.Multicast && (p.Fragmented || p.userTraffic()) && r.Float64() < share
		if p.Fragmented {
			if _, ok := cut[key]; !ok {
				order = append(order, key)
			}
			cut[key] = drop
			if len(order) > 4096 { // ids are used again after 65536
				delete(cut, order[0])
				order = order[1:]
			}
		}
		return Fate{Drop: drop}
	}
}

// userTraffic reports whether something in the datagram does not belong to discovery.
func (p *Packet) userTraffic() bool {
	for i := range p.Submessage {
		if !p.Submessage[i].Writer.Builtin() {
			return true
		}
	}
	return false
}
