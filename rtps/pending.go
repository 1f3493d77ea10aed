package rtps

import (
	"sync"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// pend is a sample that cannot be delivered yet: incomplete, or behind a hole.
type pend struct {
	seq      int64
	time     int64
	data     []byte // the payload, as far as it is here
	buf      *buffer
	peer     *peer
	charged  int64 // against Config.MaxReassembly
	key      bool
	complete bool
	inline   wire.InlineQoS

	// Fragments, while incomplete. Numbers count from 0 here.
	fragSize  int
	frags     uint32
	have      uint32
	top       uint32   // one behind the highest fragment seen
	bits      []uint64 // which are here
	at        mono     // last fragment
	askedAt   mono     // last NACK_FRAG
	asked     wire.FragSet
	askedTop  uint32 // the highest of asked
	askedLeft int    // of asked that has not come
	replied   bool   // some of it has
	pull      bool   // fragments come on request only
	more      bool   // the last request was not for all that is missing
}

var pends = sync.Pool{New: func() any { return new(pend) }}

// newPend makes room for a sample of the given size. It returns nil if the memory for out-of-order samples is used up.
// frags is 0 for a sample that comes whole.
func (s *source) newPend(seq int64, size int, frags uint32) *pend {
	p := s.p
	if len(s.pending) >= maxPending && !s.evict(seq) {
		return nil
	}
	need := pendCost(size, frags)
	for p.held+need > p.cfg.MaxReassembly {
		if !p.evictGreedy(s.peer, need) && !s.evict(seq) && !p.reclaim() {
			p.refuse(s.peer)
			return nil
		}
	}
	e := pends.Get().(*pend)
	bits := e.bits
	*e = pend{seq: seq, peer: s.peer, charged: need, frags: frags, at: p.now}
	e.data, e.buf, _ = p.fill.alloc(size)
	if words := int(frags+63) / 64; cap(bits) >= words {
		e.bits = bits[:words]
		clear(e.bits)
	} else {
		e.bits = make([]uint64, words)
	}
	p.held += need
	s.peer.held += need
	if s.pending == nil {
		s.pending = map[int64]*pend{}
	}
	s.pending[seq] = e
	s.far = max(s.far, seq)
	return e
}

// pendCost is the memory of a pending sample in bytes.
func pendCost(size int, frags uint32) int64 { return int64(allocCost(size)) + int64(frags/8) }

// evict drops the pending sample that is farthest ahead, if it is farther than seq. A reliable writer sends it again.
func (s *source) evict(seq int64) bool {
	if seq >= s.far {
		return false
	}
	far := seq
	for k := range s.pending {
		far = max(far, k)
	}
	s.far = far
	if far == seq {
		return false
	}
	e := s.pending[far]
	delete(s.pending, far)
	s.p.freePend(e)
	return true
}

// reclaim frees incomplete samples that nobody has continued for a while, of any writer. A reliable writer is asked for
// them again.
func (p *Participant) reclaim() bool {
	if p.now.sub(p.reclaimed) < 100*time.Millisecond {
		return false
	}
	p.reclaimed = p.now
	some := false
	for _, list := range p.sources {
		for _, s := range list {
			for seq, e := range s.pending {
				if !e.complete && p.now.sub(e.at) > 2*time.Second {
					delete(s.pending, seq)
					p.freePend(e)
					some = true
				}
			}
		}
	}
	return some
}

// evictGreedy takes room from the peer that holds most of the memory for incomplete and out-of-order samples, if that is
// more than another one would have with what it needs: one peer does not use up what is there for all.
func (p *Participant) evictGreedy(q *peer, need int64) bool {
	var most *peer
	for _, o := range p.peers {
		if o != q && (most == nil || o.held > most.held) {
			most = o
		}
	}
	if most == nil || most.held <= q.held+need {
		return false
	}
	var from *source
	for _, list := range p.sources {
		for _, s := range list {
			if s.peer == most && len(s.pending) > 0 && (from == nil || len(s.pending) > len(from.pending)) {
				from = s
			}
		}
	}
	if from == nil {
		return false
	}
	most.refused++
	p.refused.Add(1)
	return from.evict(0)
}

// freePend returns what a pend holds.
func (p *Participant) freePend(e *pend) {
	p.held -= e.charged
	e.peer.held -= e.charged
	if e.buf != nil {
		e.buf.release()
	}
	e.buf, e.data = nil, nil
	if cap(e.bits) > 1<<13 {
		e.bits = nil
	}
	pends.Put(e)
}

// unpack moves the sample out of a pend, for delivery.
func (s *source) unpack(e *pend) (m *meta, owner *buffer, cost int) {
	m = &s.p.scratch
	*m = meta{seq: e.seq, time: e.time, payload: e.data, key: e.key, inline: e.inline}
	owner, cost = e.buf, int(e.charged)
	e.buf = nil
	s.p.freePend(e)
	return m, owner, cost
}

func (e *pend) has(f uint32) bool { return e.bits[f/64]>>(f%64)&1 != 0 }
