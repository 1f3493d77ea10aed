package rtps

import "github.com/gobag/gobag/rtps/wire"

// The participant is the wire.Handler of its datagrams. Every submessage is taken on every socket: Cyclone DDS uses one
// port for discovery and data.

// maxEarly bounds the memory of writers that sent before they were discovered.
const maxEarly = 256

// ours reports whether a submessage is meant for us and not from us.
func (p *Participant) ours(ctx *wire.Context) bool {
	return (ctx.Dest == p.prefix || ctx.Dest == wire.Prefix{}) && ctx.Source != p.prefix
}

// sourcesOf finds the readers' states for the writer of a submessage.
func (p *Participant) sourcesOf(ctx *wire.Context, writer wire.EntityID) []*source {
	if !p.ours(ctx) {
		return nil
	}
	return p.sources[wire.MakeGUID(ctx.Source, writer)]
}

// sinkOf finds a writer's state for the reader of a submessage.
func (p *Participant) sinkOf(ctx *wire.Context, reader, writer wire.EntityID) *sink {
	if !p.ours(ctx) {
		return nil
	}
	w := p.writers[writer]
	if w == nil {
		return nil
	}
	return w.sinks[wire.MakeGUID(ctx.Source, reader)]
}

func (s *source) wants(reader wire.EntityID) bool {
	return reader == wire.EntityUnknown || reader == s.r.entity
}

func sourceTime(ctx *wire.Context) int64 {
	if ctx.HasTime {
		return ctx.Time.Unix()
	}
	return 0
}

// Data implements wire.Handler.
func (p *Participant) Data(ctx *wire.Context, d *wire.Data) {
	if d.Writer == wire.EntitySPDPWriter {
		if p.ours(ctx) {
			p.spdp(ctx, d)
		}
		return
	}
	list := p.sourcesOf(ctx, d.Writer)
	if len(list) == 0 {
		p.noteEarly(ctx, d.Reader, d.Writer, d.Seq)
		return
	}
	for _, s := range list {
		if s.wants(d.Reader) && !s.removed {
			p.scratch = meta{seq: d.Seq, time: sourceTime(ctx), payload: d.Payload, key: d.Key, inline: d.InlineQoS}
			s.onData(&p.scratch)
		}
	}
}

// DataFrag implements wire.Handler.
func (p *Participant) DataFrag(ctx *wire.Context, d *wire.DataFrag) {
	list := p.sourcesOf(ctx, d.Writer)
	if len(list) == 0 {
		p.noteEarly(ctx, d.Reader, d.Writer, d.Seq)
		return
	}
	for _, s := range list {
		if s.wants(d.Reader) && !s.removed {
			s.onFrag(d, sourceTime(ctx))
		}
	}
}

// noteEarly remembers that a writer we have not discovered yet sent us data: it knows our reader already.
func (p *Participant) noteEarly(ctx *wire.Context, reader, writer wire.EntityID, seq int64) {
	if ctx.Dest != p.prefix || ctx.Source == p.prefix || writer[3]&0xc0 != 0 || p.readers[reader] == nil {
		return
	}
	g := wire.MakeGUID(ctx.Source, writer)
	if low, ok := p.early[g]; ok {
		p.early[g] = min(low, seq)
		return
	}
	if len(p.early) >= maxEarly {
		for old := range p.early { // any: whoever is discovered in time is not affected by the loss of an old one
			delete(p.early, old)
			break
		}
	}
	p.early[g] = seq
}

// Heartbeat implements wire.Handler.
func (p *Participant) Heartbeat(ctx *wire.Context, h *wire.Heartbeat) {
	for _, s := range p.sourcesOf(ctx, h.Writer) {
		if s.wants(h.Reader) && !s.removed {
			s.onHeartbeat(h)
		}
	}
}

// HeartbeatFrag implements wire.Handler.
func (p *Participant) HeartbeatFrag(ctx *wire.Context, h *wire.HeartbeatFrag) {
	for _, s := range p.sourcesOf(ctx, h.Writer) {
		if s.wants(h.Reader) && !s.removed {
			s.onHeartbeatFrag(h)
		}
	}
}

// Gap implements wire.Handler.
func (p *Participant) Gap(ctx *wire.Context, g *wire.Gap) {
	for _, s := range p.sourcesOf(ctx, g.Writer) {
		if s.wants(g.Reader) && !s.removed {
			s.onGap(g)
		}
	}
}

// AckNack implements wire.Handler.
func (p *Participant) AckNack(ctx *wire.Context, a *wire.AckNack) {
	if k := p.sinkOf(ctx, a.Reader, a.Writer); k != nil {
		k.onAckNack(a)
	} else if w := p.writers[a.Writer]; w != nil && p.ours(ctx) {
		w.onRefused(wire.MakeGUID(ctx.Source, a.Reader), a)
	}
}

// NackFrag implements wire.Handler.
func (p *Participant) NackFrag(ctx *wire.Context, n *wire.NackFrag) {
	if k := p.sinkOf(ctx, n.Reader, n.Writer); k != nil {
		k.onNackFrag(n)
	}
}
