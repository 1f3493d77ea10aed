package rtps

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/gobag/gobag/rtps/wire"
)

// maxGone is how many writers that left are remembered one by one in a reader's statistics.
const maxGone = 1024

// meta is a sample on its way to a builtin endpoint's function: what a Sample has no room for.
type meta struct {
	seq     int64
	time    int64 // source time, ns since the Unix epoch; 0 none was sent
	payload []byte
	key     bool // payload is a key
	inline  wire.InlineQoS
}

// data reports whether a sample carries data, not the end of an instance.
func (m *meta) data() bool { return len(m.payload) >= 4 && !m.key && m.inline.Status&3 == 0 }

type builtinFunc func(*source, *meta)

// Reader receives a topic. Safe for concurrent use.
type Reader struct {
	p       *Participant
	guid    GUID
	entity  wire.EntityID
	cfg     ReaderConfig
	lane    int         // of Participant.lanes, where there are any
	take    builtinFunc // builtin readers: instead of cfg.Handler
	sources map[GUID]*source

	received, lost uint64
	gone           []WriterStats // of writers that left
	closed         bool
}

// NewReader makes a reader and announces it at once.
func (p *Participant) NewReader(cfg ReaderConfig) (*Reader, error) {
	if cfg.Handler == nil {
		return nil, errors.New("new reader: no handler")
	}
	if err := checkNames(cfg.Topic, cfg.Type, cfg.UserData); err != nil {
		return nil, fmt.Errorf("new reader: %w", err)
	}
	if cfg.QoS.Representation == nil {
		cfg.QoS.Representation = []int16{wire.XCDR1, wire.XCDR2}
	}
	cfg.UserData = bytes.Clone(cfg.UserData)
	p.lock()
	defer p.unlock()
	if p.closed {
		return nil, fmt.Errorf("new reader %s: %w", cfg.Topic, ErrClosed)
	}
	id, err := p.newEntity(wire.KindReaderKeyless)
	if err != nil {
		return nil, fmt.Errorf("new reader %s: %w", cfg.Topic, err)
	}
	r := &Reader{p: p, guid: wire.MakeGUID(p.prefix, id), entity: id, cfg: cfg, lane: p.pickLane(cfg.Topic), sources: map[GUID]*source{}}
	p.readers[id] = r
	p.publish(r.endpoint(), false)
	for _, e := range p.topics[cfg.Topic] {
		if e.Writer {
			r.consider(e)
		}
	}
	p.dirty = true
	return r, nil
}

// newEntity takes the next entity id; they are not used again in the life of a participant.
func (p *Participant) newEntity(kind byte) (wire.EntityID, error) {
	if p.lastKey >= 1<<24-1 {
		return wire.EntityID{}, errors.New("out of entity ids")
	}
	p.lastKey++
	return wire.EntityID{byte(p.lastKey >> 16), byte(p.lastKey >> 8), byte(p.lastKey), kind}, nil
}

func checkNames(topic, typ string, userData []byte) error {
	switch {
	case topic == "" || len(topic) > 1024:
		return fmt.Errorf("topic name of %d bytes: 1 to 1024 expected", len(topic))
	case typ == "" || len(typ) > 1024:
		return fmt.Errorf("type name of %d bytes: 1 to 1024 expected", len(typ))
	case len(userData) > maxUserData:
		return fmt.Errorf("user data of %d bytes: at most %d", len(userData), maxUserData)
	}
	return nil
}

func (r *Reader) builtin() bool { return r.take != nil }

func (r *Reader) endpoint() Endpoint {
	return Endpoint{GUID: r.guid, Local: true, Topic: r.cfg.Topic, Type: r.cfg.Type, QoS: r.cfg.QoS, UserData: r.cfg.UserData, Vendor: wire.VendorGobag}
}

// GUID identifies the reader.
func (r *Reader) GUID() GUID { return r.guid }

// Stats counts what was received and what not. It keeps working after Close.
func (r *Reader) Stats() ReaderStats {
	p := r.p
	p.lock()
	defer p.unlock()
	st := ReaderStats{Received: r.received, Lost: r.lost, Writers: slices.Clone(r.gone)}
	for _, s := range r.sources {
		if !s.ignored {
			st.Writers = append(st.Writers, s.stats(true))
		}
	}
	if !r.closed {
		st.Mismatches = p.mismatches(r.cfg.Topic, true, func(e *endpoint) string { return unfit(e, r.cfg.Type, e.QoS, r.cfg.QoS) })
	}
	return st
}

// Close withdraws the reader. No call of the handler is running or will start when it returns. Idempotent; it must not
// be called by the handler.
func (r *Reader) Close() error {
	p := r.p
	p.lock()
	defer p.unlock()
	if r.closed {
		return nil
	}
	r.shut()
	delete(p.readers, r.entity)
	p.withdraw(r.guid, false)
	p.dirty = true
	return nil
}

// shut ends reception.
func (r *Reader) shut() {
	for _, s := range r.sources {
		r.remove(s)
	}
	r.closed = true
}

// match begins reception from a remote writer. An ignored one is acknowledged, but what it sends is dropped.
func (r *Reader) match(g GUID, q *peer, dst netip.AddrPort, offered QoS, ignored bool) {
	p := r.p
	if r.sources[g] != nil || r.closed {
		return
	}
	s := &source{r: r, p: p, guid: g, peer: q, dst: dst, ignored: ignored,
		reliable: r.cfg.QoS.Reliability == Reliable, history: r.cfg.QoS.Durability != Volatile || offered.Durability == Volatile}
	if early, ok := p.early[g]; ok {
		s.early = early
		delete(p.early, g)
	}
	s.timer.fire = s.onTimer
	r.sources[g] = s
	p.sources[g] = append(slices.Clip(p.sources[g]), s)
	if s.reliable {
		s.matched = p.now
		s.solicit()
		p.timers.set(&s.timer, s.nextTimer())
	}
}

// unmatch ends reception from a writer that is gone: what arrived behind a hole is delivered, the hole is lost.
func (r *Reader) unmatch(s *source) {
	s.finish()
	r.remove(s)
}

func (r *Reader) unmatchPeer(q *peer) {
	for _, s := range r.sources {
		if s.peer == q {
			r.unmatch(s)
		}
	}
}

// readdress follows a peer's new address.
func (r *Reader) readdress(q *peer) {
	for _, s := range r.sources {
		if s.peer == q && q.meta.IsValid() {
			s.dst = q.meta
		}
	}
}

// remove forgets a source but for its statistics.
func (r *Reader) remove(s *source) {
	p := r.p
	s.drop()
	s.removed = true
	p.timers.stop(&s.timer)
	delete(r.sources, s.guid)
	rest := slices.DeleteFunc(slices.Clone(p.sources[s.guid]), func(x *source) bool { return x == s })
	if len(rest) == 0 {
		delete(p.sources, s.guid)
	} else {
		p.sources[s.guid] = rest
	}
	if !s.ignored && !r.builtin() {
		if len(r.gone) >= maxGone {
			r.gone = slices.Delete(r.gone, 0, maxGone/2)
		}
		r.gone = append(r.gone, s.stats(false))
	}
}
