package rtps

import (
	"bytes"

	"github.com/gobag/gobag/rtps/wire"
)

// Discovery of endpoints (RTPS 2.5 §8.5.4) and liveliness messages (§8.4.13), over builtin readers and writers that use
// the same machinery as user ones.

// addBuiltin makes the builtin endpoints.
func (p *Participant) addBuiltin() {
	qos := QoS{Reliability: Reliable, Durability: TransientLocal, History: KeepLast, Depth: 1}
	reader := func(id wire.EntityID, take builtinFunc) *Reader {
		r := &Reader{p: p, guid: wire.MakeGUID(p.prefix, id), entity: id, cfg: ReaderConfig{QoS: qos}, take: take,
			sources: map[GUID]*source{}}
		p.readers[id] = r
		return r
	}
	writer := func(id wire.EntityID) *Writer {
		w := newWriter(p, id, WriterConfig{QoS: qos})
		p.writers[id] = w
		return w
	}
	p.pubReader = reader(wire.EntityPubReader, func(s *source, m *meta) { p.sedp(s, m, true) })
	p.subReader = reader(wire.EntitySubReader, func(s *source, m *meta) { p.sedp(s, m, false) })
	p.liveReader = reader(wire.EntityLivelinessReader, func(*source, *meta) {}) // any message renews the lease
	p.pubWriter = writer(wire.EntityPubWriter)
	p.subWriter = writer(wire.EntitySubWriter)
	p.liveWriter = writer(wire.EntityLivelinessWriter)
	p.liveTimer.fire = p.assertLiveliness
}

// matchBuiltin pairs the builtin endpoints with a peer's. Which it has is a matter of its announcement alone.
func (p *Participant) matchBuiltin(q *peer) {
	has := func(bit uint32) bool {
		return q.data.Endpoints == 0 || q.data.Endpoints&bit != 0
	}
	for _, m := range []struct {
		bit    uint32
		r      *Reader
		remote wire.EntityID
	}{
		{wire.BuiltinPubWriter, p.pubReader, wire.EntityPubWriter},
		{wire.BuiltinSubWriter, p.subReader, wire.EntitySubWriter},
		{wire.BuiltinLivelinessWriter, p.liveReader, wire.EntityLivelinessWriter},
	} {
		if has(m.bit) {
			m.r.match(wire.MakeGUID(q.prefix, m.remote), q, q.meta, QoS{Reliability: Reliable, Durability: TransientLocal}, false)
		}
	}
	for _, m := range []struct {
		bit    uint32
		w      *Writer
		remote wire.EntityID
	}{
		{wire.BuiltinPubReader, p.pubWriter, wire.EntityPubReader},
		{wire.BuiltinSubReader, p.subWriter, wire.EntitySubReader},
		{wire.BuiltinLivelinessReader, p.liveWriter, wire.EntityLivelinessReader},
	} {
		if has(m.bit) {
			m.w.match(wire.MakeGUID(q.prefix, m.remote), q, q.meta, QoS{Reliability: Reliable, Durability: TransientLocal})
		}
	}
}

// sedp takes an endpoint's announcement or goodbye.
func (p *Participant) sedp(s *source, m *meta, writer bool) {
	if m.key || m.inline.Status&3 != 0 || len(m.payload) == 0 {
		g, err := wire.ParseKey(m.payload, &m.inline)
		if err != nil {
			p.malformed.Add(1)
			return
		}
		if e := s.peer.endpoints(writer)[g]; e != nil {
			p.dropEndpoint(e)
			delete(s.peer.endpoints(writer), g)
		}
		return
	}
	data, err := wire.ParseEndpoint(m.payload, &m.inline, s.peer.vendor, writer)
	if err != nil {
		p.malformed.Add(1)
		p.log.Debug("endpoint announcement is malformed", "peer", s.peer.prefix, "err", err)
		return
	}
	if data.GUID.Prefix() != s.peer.prefix || data.GUID.Entity()[3]&0xc0 == 0xc0 {
		return // on behalf of someone else, or a vendor's builtin endpoint
	}
	p.addEndpoint(s.peer, data, writer)
}

func (q *peer) endpoints(writer bool) map[GUID]*endpoint {
	if writer {
		return q.writers
	}
	return q.readers
}

// addEndpoint adds or updates a remote endpoint and matches it.
func (p *Participant) addEndpoint(q *peer, data wire.EndpointData, writer bool) {
	text := len(data.Topic) + len(data.Type) + len(data.UserData) + len(data.Name)
	for _, s := range data.QoS.Partition {
		text += len(s)
	}
	e := q.endpoints(writer)[data.GUID]
	old := 0
	if e != nil {
		old = e.cost
	}
	cost := 1024 + text + 24*(len(data.Unicast)+len(data.Multicast))
	if text > maxTextBytes || p.tooMuch(q, cost-old) ||
		e == nil && (len(q.writers)+len(q.readers) >= maxPeerEndpoints || p.endpoints >= maxEndpoints) {
		p.refuse(q)
		return
	}
	if e == nil {
		e = &endpoint{peer: q}
		q.endpoints(writer)[data.GUID] = e
		p.endpoints++
	} else if e.Topic != data.Topic || e.Type != data.Type {
		p.unmatchEndpoint(e) // an identity reused; nothing says it cannot be
		p.unlist(e)
	}
	if p.topics[data.Topic] == nil {
		p.topics[data.Topic] = map[GUID]*endpoint{}
	}
	p.topics[data.Topic][data.GUID] = e
	p.announced += cost - old
	q.texts += cost - old
	e.cost, e.data = cost, data
	e.Endpoint = Endpoint{GUID: data.GUID, Writer: writer, Topic: data.Topic, Type: data.Type, Keyed: data.GUID.Entity().Keyed(),
		QoS: data.QoS, UserData: bytes.Clone(data.UserData), Vendor: q.vendor}
	p.locateEndpoint(e)
	p.dirty = true
	p.matchEndpoint(e)
}

// locateEndpoint finds the address of an endpoint: its own locators, else the participant's.
func (p *Participant) locateEndpoint(e *endpoint) {
	e.addr, e.reason = e.peer.user, e.peer.reason
	if len(e.data.Unicast) > 0 {
		if a, _, ok := p.choose(e.data.Unicast); ok {
			e.addr, e.reason = a, ""
		} else {
			e.reason = "no UDP unicast locator" + describe(e.data.Unicast)
		}
	}
	if !e.addr.IsValid() && e.reason == "" {
		e.reason = "no UDP unicast locator"
	}
}

// relocate follows a peer whose addresses may have changed.
func (p *Participant) relocate(q *peer) {
	for _, r := range p.readers {
		if r.builtin() {
			r.readdress(q)
		}
	}
	for _, w := range p.writers {
		if w.builtin() {
			w.readdress(q)
		}
	}
	for _, set := range []map[GUID]*endpoint{q.writers, q.readers} {
		for _, e := range set {
			p.locateEndpoint(e)
			p.matchEndpoint(e)
		}
	}
}

// unlist takes an endpoint out of the list by topic.
func (p *Participant) unlist(e *endpoint) {
	list := p.topics[e.Topic]
	if delete(list, e.GUID); len(list) == 0 {
		delete(p.topics, e.Topic)
	}
}

// dropEndpoint unmatches a remote endpoint and forgets what it cost; the caller removes it from its peer.
func (p *Participant) dropEndpoint(e *endpoint) {
	p.unmatchEndpoint(e)
	p.unlist(e)
	p.endpoints--
	p.announced -= e.cost
	e.peer.texts -= e.cost
	p.dirty = true
}

// announced is what everyone is told of a local endpoint. It has no locators: the participant's apply, and those differ by
// audience (loopback or not).
func announced(e Endpoint) wire.EndpointData {
	return wire.EndpointData{GUID: e.GUID, Version: wire.Protocol, Vendor: wire.VendorGobag, Topic: e.Topic, Type: e.Type, QoS: e.QoS, UserData: e.UserData}
}

// publish announces a local endpoint.
func (p *Participant) publish(e Endpoint, writer bool) {
	d := announced(e)
	w := p.subWriter
	if writer {
		w = p.pubWriter
	}
	w.put(e.GUID, d.Append(nil, writer), wire.InlineQoS{}, false)
}

// withdraw says that a local endpoint is gone.
func (p *Participant) withdraw(g GUID, writer bool) {
	w := p.subWriter
	if writer {
		w = p.pubWriter
	}
	w.put(g, wire.AppendKey(nil, g), wire.InlineQoS{Status: 3, HasKeyHash: true, KeyHash: g}, true)
}
