package rtps

import (
	"fmt"

	"github.com/gobag/gobag/rtps/wire"
)

// Matching of local and remote endpoints (DDS 1.4 §2.2.3, RTPS 2.5 §8.5.4).

// matchEndpoint pairs a new or changed remote endpoint with ours, and parts those that do not fit any more.
func (p *Participant) matchEndpoint(e *endpoint) {
	if e.Writer {
		for _, r := range p.readers {
			if r.cfg.Topic == e.Topic && !r.builtin() {
				r.consider(e)
			}
		}
		return
	}
	for _, w := range p.writers {
		if w.cfg.Topic == e.Topic && !w.builtin() {
			w.consider(e)
		}
	}
}

// unmatchEndpoint parts a remote endpoint from all of ours.
func (p *Participant) unmatchEndpoint(e *endpoint) {
	if e.Writer {
		for _, s := range p.sources[e.GUID] {
			s.r.unmatch(s)
		}
		return
	}
	for _, w := range p.writers {
		delete(w.refused, e.GUID)
		if k := w.sinks[e.GUID]; k != nil {
			w.unmatch(k)
		}
	}
}

// unfit says why a remote endpoint on the same topic cannot be paired with ours; "" if it can.
func unfit(e *endpoint, typ string, offered, requested QoS) string {
	if e.Type != typ {
		return fmt.Sprintf("type: %s there, %s here", e.Type, typ)
	}
	if e.Keyed {
		return "key: the topic has a key there, none here"
	}
	if reason, ok := Compatible(offered, requested); !ok {
		return reason
	}
	return e.reason
}

// consider matches a remote writer or parts it, as its offer asks for.
func (r *Reader) consider(e *endpoint) {
	s := r.sources[e.GUID]
	fit := unfit(e, r.cfg.Type, e.QoS, r.cfg.QoS) == ""
	switch {
	case fit && s == nil:
		refused := r.cfg.Accept != nil && !r.cfg.Accept(e.Endpoint)
		if refused && r.cfg.QoS.Reliability != Reliable {
			return
		}
		r.match(e.GUID, e.peer, e.addr, e.QoS, refused)
	case fit:
		s.dst = e.addr
	case s != nil:
		r.unmatch(s)
	}
}

// consider matches a remote reader or parts it.
func (w *Writer) consider(e *endpoint) {
	k := w.sinks[e.GUID]
	fit := unfit(e, w.cfg.Type, w.cfg.QoS, e.QoS) == ""
	if w.cfg.Accept != nil {
		delete(w.refused, e.GUID)
		if fit && !w.cfg.Accept(e.Endpoint, e.peer.public()) {
			fit = false
			w.refused[e.GUID] = e.addr
		}
	}
	switch {
	case fit && k == nil:
		w.match(e.GUID, e.peer, e.addr, e.QoS)
	case fit:
		w.moved(k, e.addr)
	case k != nil:
		w.unmatch(k)
	}
}

// onRefused answers a reader that the writer has turned away: the reader has matched the writer all the same and asks for
// what there is. It hears that there is nothing, and is content.
func (w *Writer) onRefused(reader GUID, a *wire.AckNack) {
	dst, ok := w.refused[reader]
	if !ok || a.Final {
		return
	}
	w.hbCount++
	h := wire.Heartbeat{Reader: reader.Entity(), Writer: w.entity, First: 1, Last: 0, Count: w.hbCount, Final: true}
	b := w.p.out.open(w.p, dst, reader.Prefix(), 32)
	w.p.out.close(wire.AppendHeartbeat(b, &h))
}

// mismatches lists the remote endpoints on our topic that do not pair with ours.
func (p *Participant) mismatches(topic string, writers bool, unfit func(*endpoint) string) []Mismatch {
	var out []Mismatch
	for _, e := range p.topics[topic] {
		if e.Writer != writers {
			continue
		}
		if reason := unfit(e); reason != "" {
			out = append(out, Mismatch{GUID: e.GUID, Reason: reason})
		}
	}
	return out
}
