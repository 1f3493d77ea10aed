package rtps

import (
	"hash/maphash"
	"net/netip"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// Discovery of participants (RTPS 2.5 §8.5.3).

var digestSeed = maphash.MakeSeed()

// announcement is the datagram that announces us to an audience that reaches us at the given addresses.
func (p *Participant) announcement(discovery, data []netip.AddrPort) []byte {
	d := wire.ParticipantData{
		GUID: p.GUID(), Version: wire.Protocol, Vendor: wire.VendorGobag, Endpoints: wire.BuiltinAll, Lease: p.cfg.Lease,
		DomainID: p.cfg.Domain, Name: p.cfg.Name, UserData: p.cfg.UserData,
	}
	for _, a := range discovery {
		d.MetaUnicast = append(d.MetaUnicast, wire.LocatorFrom(a))
	}
	for _, a := range data {
		if a.Addr().IsMulticast() {
			d.DefaultMulticast = append(d.DefaultMulticast, wire.LocatorFrom(a))
		} else {
			d.DefaultUnicast = append(d.DefaultUnicast, wire.LocatorFrom(a))
		}
	}
	b := wire.AppendHeader(nil, p.header)
	return p.appendAnnouncement(b, &d)
}

func (p *Participant) appendAnnouncement(b []byte, d *wire.ParticipantData) []byte {
	b = wire.AppendInfoTS(b, wire.TimestampFromUnix(p.cfg.Now()))
	return wire.AppendData(b, &wire.Data{Reader: wire.EntitySPDPReader, Writer: wire.EntitySPDPWriter, Seq: 1, Payload: d.Append(nil)})
}

// goodbye appends the datagram that ends our presence, in the form that every vendor understands.
func (p *Participant) goodbye(b []byte) []byte {
	b = wire.AppendHeader(b, p.header)
	b = wire.AppendInfoTS(b, wire.TimestampFromUnix(p.cfg.Now()))
	g := p.GUID()
	return wire.AppendData(b, &wire.Data{Reader: wire.EntitySPDPReader, Writer: wire.EntitySPDPWriter, Seq: 2, Key: true,
		InlineQoS: wire.InlineQoS{Status: 3, HasKeyHash: true, KeyHash: g}, Payload: wire.AppendKey(nil, g)})
}

// greetPeer sends our announcement to one peer. With reply set it is for that peer alone: Cyclone DDS answers
// announcements that are for everyone.
func (p *Participant) greetPeer(q *peer, reply bool) {
	if !q.meta.IsValid() {
		return
	}
	b := p.announcement(p.link.Locators(q.meta.Addr()))[wire.HeaderSize:]
	to := wire.Prefix{}
	if reply {
		to = q.prefix
	}
	p.out.close(append(p.out.open(p, q.meta, to, len(b)), b...))
}

// announceToPeers repeats our announcement to everyone we know: not all of them may hear multicast.
func (p *Participant) announceToPeers() {
	for _, q := range p.peers {
		p.greetPeer(q, false)
	}
}

// spdp takes a participant's announcement or goodbye. The sequence number means nothing: announcements repeat it.
func (p *Participant) spdp(ctx *wire.Context, d *wire.Data) {
	if p.cfg.Range == RangeOff {
		return
	}
	if d.Key || d.InlineQoS.Status&3 != 0 || len(d.Payload) == 0 {
		g, err := wire.ParseKey(d.Payload, &d.InlineQoS)
		if err != nil {
			p.malformed.Add(1)
			return
		}
		if q := p.peers[g.Prefix()]; q != nil && g.Prefix() == ctx.Source {
			p.dropPeer(q, "said goodbye")
		}
		return
	}
	q := p.peers[ctx.Source]
	digest := maphash.Bytes(digestSeed, d.Payload)
	if q != nil && q.digest == digest {
		return // the usual repetition
	}
	data, err := wire.ParseParticipant(d.Payload, &d.InlineQoS, ctx.Vendor)
	if err != nil {
		p.malformed.Add(1)
		return
	}
	if data.GUID.Prefix() != ctx.Source || data.DomainID >= 0 && data.DomainID != p.cfg.Domain || data.DomainTag != "" {
		return // relayed, or not of our domain
	}
	cost := 1024 + len(data.Name) + len(data.UserData) + 24*(len(data.MetaUnicast)+len(data.DefaultUnicast))
	if q == nil {
		p.addPeer(data, digest, cost)
		return
	}
	if p.tooMuch(q, cost-q.announce) {
		p.refuse(q)
		return
	}
	p.announced += cost - q.announce
	q.texts += cost - q.announce
	q.data, q.digest, q.announce = data, digest, cost
	p.locate(q)
	p.relocate(q)
	p.dirty = true
}

// addPeer makes the acquaintance of a participant.
func (p *Participant) addPeer(data wire.ParticipantData, digest uint64, cost int) {
	q := &peer{prefix: data.GUID.Prefix(), vendor: data.Vendor, data: data, digest: digest, announce: cost, seen: p.now,
		writers: map[GUID]*endpoint{}, readers: map[GUID]*endpoint{}}
	p.locate(q)
	if len(p.peers) >= maxPeers || p.tooMuch(q, cost) || p.fullHost(q) {
		p.refused.Add(1)
		return
	}
	p.announced += cost
	q.texts = cost
	p.peers[q.prefix] = q
	p.dirty = true
	p.log.Debug("participant found", "peer", q.prefix, "vendor", q.vendor, "name", data.Name, "at", q.meta)
	if data.Secured {
		p.log.Warn("participant uses DDS Security, which is not spoken here: nothing comes from it unless it admits participants without",
			"peer", q.prefix, "vendor", q.vendor, "name", data.Name)
	}
	if q.reason != "" {
		p.log.Warn("participant cannot be reached", "peer", q.prefix, "vendor", q.vendor, "reason", q.reason)
	}
	q.lease.fire = func(now mono) { p.checkLease(q, now) }
	p.timers.set(&q.lease, leaseEnd(q))
	if !q.meta.IsValid() {
		return
	}
	q.greet.fire = func(now mono) {
		p.greetPeer(q, true)
		if q.greeted++; q.greeted < 3 {
			p.timers.set(&q.greet, now.add(time.Duration(q.greeted*q.greeted)*100*time.Millisecond))
		}
	}
	q.greet.fire(p.now)
	p.matchBuiltin(q)
}

// tooMuch reports whether more bytes of announcements of a peer are too many.
func (p *Participant) tooMuch(q *peer, more int) bool {
	return p.announced+more > maxAnnounced || q.texts+more > maxPeerAnnounced
}

// fullHost reports whether as many participants are known at a newcomer's address as may be: invented ones leave room for
// those of other hosts.
func (p *Participant) fullHost(q *peer) bool {
	if len(p.peers) < maxHostPeers {
		return false
	}
	n := 0
	for _, o := range p.peers {
		if o.meta.Addr() == q.meta.Addr() {
			n++
		}
	}
	return n >= maxHostPeers
}

func leaseEnd(q *peer) mono {
	if q.data.Lease <= 0 {
		return never
	}
	return q.seen.add(q.data.Lease)
}

// checkLease drops a peer that has been silent for its lease.
func (p *Participant) checkLease(q *peer, now mono) {
	if end := leaseEnd(q); end > now {
		p.timers.set(&q.lease, end)
		return
	}
	p.dropPeer(q, "lease expired")
}

// dropPeer forgets a peer with all its endpoints.
func (p *Participant) dropPeer(q *peer, why string) {
	p.log.Debug("participant gone", "peer", q.prefix, "vendor", q.vendor, "why", why)
	p.timers.stop(&q.lease)
	p.timers.stop(&q.greet)
	for _, e := range q.writers {
		p.dropEndpoint(e)
	}
	for _, e := range q.readers {
		p.dropEndpoint(e)
	}
	for _, r := range []*Reader{p.pubReader, p.subReader, p.liveReader} {
		r.unmatchPeer(q)
	}
	for _, w := range []*Writer{p.pubWriter, p.subWriter, p.liveWriter} {
		w.unmatchPeer(q)
	}
	p.announced -= q.announce
	delete(p.peers, q.prefix)
	p.dirty = true
}

// dropAll forgets everyone, when the participant closes.
func (p *Participant) dropAll() {
	for _, q := range p.peers {
		p.dropPeer(q, "closing")
	}
}
