package rtps

import (
	"net/netip"
	"slices"

	"github.com/gobag/gobag/rtps/wire"
)

// Limits that keep a flood of announcements from eating the memory. A large robot has tens of participants and
// thousands of endpoints.
const (
	maxPeers         = 1024
	maxHostPeers     = 512 // of them with the same address for discovery
	maxPeerEndpoints = 8192
	maxEndpoints     = 32768
	maxAnnounced     = 64 << 20 // bytes of names and user data of all peers and endpoints
	maxPeerAnnounced = 16 << 20 // of one peer and its endpoints
	maxTextBytes     = 16 << 10 // of one announcement
)

// peer is a remote participant. Guarded by the participant's mutex.
type peer struct {
	prefix wire.Prefix
	vendor wire.VendorID
	data   wire.ParticipantData
	digest uint64         // of the last SPDP payload
	meta   netip.AddrPort // where its discovery data goes
	user   netip.AddrPort // where data goes for endpoints without locators of their own; may be invalid
	local  bool           // on this host
	reason string         // why it cannot be reached; "" it can

	seen     mono // last sign of life
	lease    timer
	greet    timer // directed announcements to a newcomer
	greeted  int
	writers  map[GUID]*endpoint // its user endpoints
	readers  map[GUID]*endpoint
	announce int // bytes that it costs
	texts    int // bytes that it and its endpoints cost

	held    int64  // bytes of its incomplete and out-of-order samples
	refused uint64 // announcements and samples of it that were turned away
}

// refuse counts something of a peer that was turned away because a limit was reached.
func (p *Participant) refuse(q *peer) {
	p.refused.Add(1)
	q.refused++
}

// endpoint is a remote user endpoint.
type endpoint struct {
	Endpoint
	peer   *peer
	data   wire.EndpointData
	addr   netip.AddrPort
	reason string // why it cannot be reached
	cost   int
}

// choose picks the address to send to from a list of locators. local tells that the peer is on this host.
func (p *Participant) choose(locs []wire.Locator) (addr netip.AddrPort, local, ok bool) {
	var all []netip.AddrPort
	for _, l := range locs {
		if a, ok := l.AddrPort(); ok && a.Addr().Is4() && !a.Addr().IsUnspecified() && !a.Addr().IsMulticast() {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return addr, false, false
	}
	isLoopback := func(a netip.AddrPort) bool { return a.Addr().IsLoopback() }
	// 127/8 is a peer's own loopback unless it shows that it is on this host (Cyclone DDS's rule).
	local = slices.ContainsFunc(all, func(a netip.AddrPort) bool { return !isLoopback(a) && p.link.Local(a.Addr()) }) ||
		!slices.ContainsFunc(all, func(a netip.AddrPort) bool { return !isLoopback(a) })
	if local {
		if i := slices.IndexFunc(all, isLoopback); i >= 0 {
			return all[i], true, true
		}
		return all[slices.IndexFunc(all, func(a netip.AddrPort) bool { return p.link.Local(a.Addr()) })], true, true
	}
	all = slices.DeleteFunc(all, isLoopback)
	if i := slices.IndexFunc(all, func(a netip.AddrPort) bool { return p.link.onLink(a.Addr()) }); i >= 0 {
		return all[i], false, true
	}
	return all[0], false, true
}

// locate sets a peer's addresses from its announcement.
func (p *Participant) locate(q *peer) {
	var okMeta, okUser bool
	q.meta, q.local, okMeta = p.choose(q.data.MetaUnicast)
	q.user, _, okUser = p.choose(q.data.DefaultUnicast)
	q.reason = ""
	switch {
	case !okMeta:
		q.reason = "no UDP unicast locator for discovery" + describe(q.data.MetaUnicast)
	case !okUser && len(q.data.DefaultUnicast) > 0:
		q.reason = "no UDP unicast locator for data" + describe(q.data.DefaultUnicast)
	}
}

// reasonSecured is why nothing comes from a participant that keeps to itself.
const reasonSecured = "it uses DDS Security, which is not spoken here"

// describe lists what else was announced: " (shared memory port 7413)".
func describe(locs []wire.Locator) string {
	if len(locs) == 0 {
		return ""
	}
	s := " ("
	for i, l := range locs {
		if i > 0 {
			s += ", "
		}
		s += l.String()
	}
	return s + ")"
}

func (q *peer) public() Peer {
	out := Peer{Prefix: q.prefix, Vendor: q.vendor, Name: q.data.Name, UserData: string(q.data.UserData), Reachable: q.reason == "", Reason: q.reason,
		Secured: q.data.Secured, Refused: q.refused}
	// It may admit those without an identity: then it tells us of its endpoints.
	if q.data.Secured && q.reason == "" && len(q.writers)+len(q.readers) == 0 {
		out.Reachable, out.Reason = false, reasonSecured
	}
	for _, l := range q.data.DefaultUnicast {
		out.Locators = append(out.Locators, l.String())
	}
	return out
}
