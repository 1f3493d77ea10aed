package rtps

import (
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// maxFragments bounds the bookkeeping of one sample: a sample of 64 MiB in pieces of 64 bytes.
const maxFragments = 1 << 20

// arrived notes that data came.
func (s *source) arrived(seq int64) {
	now := s.p.now
	if s.dataAt != 0 {
		s.interval += (now - s.dataAt - s.interval) / 8
	}
	s.dataAt = now
	s.top = max(s.top, seq)
	if s.asked != nil {
		if a := &s.asked[seq%int64(len(s.asked))]; a.seq == seq && !a.came {
			a.came = true
			s.replied(now.sub(a.at))
		}
	}
	s.probed = 0
}

// onData takes a sample that came whole.
func (s *source) onData(m *meta) {
	if s.ignored {
		return
	}
	s.arrived(m.seq)
	if !s.reliable {
		s.bestEffort(m, nil, 0)
		return
	}
	switch {
	case s.next != 0 && m.seq < s.next:
		return // again
	case m.seq == s.next && !s.offers():
		if e := s.pending[m.seq]; e != nil {
			delete(s.pending, m.seq)
			s.p.freePend(e)
		}
		s.next++
		s.stalls = 0
		s.hand(m)
		if len(s.pending) > 0 || len(s.gaps) > 0 || s.owes != 0 {
			s.drain()
		}
	default:
		e := s.pending[m.seq]
		if e != nil && e.complete || s.isGap(m.seq) || s.held {
			return
		}
		if e != nil {
			delete(s.pending, m.seq)
			s.p.freePend(e)
		}
		if s.tooLarge(m.seq, len(m.payload), 0) {
			return
		}
		if e = s.newPend(m.seq, len(m.payload), 0); e == nil {
			return
		}
		e.time, e.key, e.inline, e.complete = m.time, m.key, m.inline, true
		copy(e.data, m.payload)
		if m.seq == s.next { // offered
			s.stalls = 0
			s.drain()
		}
	}
	s.p.timers.by(&s.timer, s.nextTimer())
}

// hand delivers a sample whose payload is in the datagram.
func (s *source) hand(m *meta) {
	if s.r.take != nil || !m.data() {
		s.deliver(m, nil, 0)
		return
	}
	data, owner, cost := s.p.fill.copy(m.payload)
	m.payload = data
	s.deliver(m, owner, cost)
}

// bestEffort delivers a sample unless it is older than what was delivered. owner is nil if the payload is in the
// datagram.
func (s *source) bestEffort(m *meta, owner *buffer, cost int) {
	if m.seq < s.next {
		if owner != nil {
			owner.release()
		}
		return
	}
	if s.next != 0 {
		s.lose(m.seq - s.next)
	}
	s.next = m.seq + 1
	for seq, e := range s.pending { // incomplete ones that have been overtaken
		if seq < s.next {
			delete(s.pending, seq)
			s.p.freePend(e)
		}
	}
	if owner == nil {
		s.hand(m)
	} else {
		s.deliver(m, owner, cost)
	}
}

// tooLarge gives up a sample that can never be held.
func (s *source) tooLarge(seq int64, size, frags int) bool {
	if frags <= maxFragments && pendCost(size, uint32(frags)) <= s.p.cfg.MaxReassembly {
		return false
	}
	s.p.refuse(s.peer)
	s.p.log.Warn("sample is too large to be received", "topic", s.r.cfg.Topic, "bytes", size, "limit", s.p.cfg.MaxReassembly)
	if s.reliable {
		s.gap(seq, seq+1)
		s.drain()
	}
	return true
}

// onFrag takes some fragments of a sample.
func (s *source) onFrag(d *wire.DataFrag, time int64) {
	if s.ignored {
		return
	}
	size, fragSize := int(d.SampleSize), int(d.Size)
	if fragSize == 0 || size == 0 || s.next != 0 && d.Seq < s.next {
		return
	}
	s.arrived(d.Seq)
	e := s.pending[d.Seq]
	if e == nil {
		frags := (size + fragSize - 1) / fragSize
		if s.held || s.isGap(d.Seq) || s.tooLarge(d.Seq, size, frags) {
			return
		}
		if !s.reliable {
			s.limitPartial()
		}
		if e = s.newPend(d.Seq, size, uint32(frags)); e == nil {
			return
		}
		e.fragSize, e.time, e.key, e.inline = fragSize, time, d.Key, d.InlineQoS
	}
	if !e.inline.Present {
		e.inline = d.InlineQoS // not every fragment need carry it
	}
	if e.complete || e.fragSize != fragSize || len(e.data) != size {
		return // here already, or not the sample that was begun
	}
	s.place(e, d)
	if e.have == e.frags {
		s.complete(e)
	} else if e.askedLeft == 0 && (e.pull || e.more) && s.reliable {
		s.setDue(false) // what was asked for is here: ask for more at once
	}
	s.p.timers.by(&s.timer, s.nextTimer())
}

// place copies fragments to where they belong.
func (s *source) place(e *pend, d *wire.DataFrag) {
	e.at = s.p.now
	if e.placeRun(d) {
		return
	}
	for i := range int(d.Count) {
		f := d.First - 1 + uint32(i)
		if f >= e.frags {
			return
		}
		from, to := int(f)*e.fragSize, min(int(f+1)*e.fragSize, len(e.data))
		src := i * e.fragSize
		if src+to-from > len(d.Payload) {
			return
		}
		e.top = max(e.top, f+1)
		if e.has(f) {
			continue
		}
		copy(e.data[from:to], d.Payload[src:])
		e.bits[f/64] |= 1 << (f % 64)
		e.have++
		if e.askedLeft > 0 && e.asked.Contains(f+1) {
			if !e.replied {
				e.replied = true
				s.replied(e.at.sub(e.askedAt))
			}
			if e.askedLeft--; f+1 == e.askedTop {
				e.askedLeft = 0 // the writer is through: what has not come is lost again
			}
		}
	}
}

// placeRun is place where all of the fragments are new and none was asked for, the usual case: one copy.
func (e *pend) placeRun(d *wire.DataFrag) bool {
	f, end := d.First-1, d.First-1+uint32(d.Count)
	if e.askedLeft > 0 || d.Count == 0 || end > e.frags || end < f {
		return false
	}
	from, to := int(f)*e.fragSize, min(int(end)*e.fragSize, len(e.data))
	if to-from > len(d.Payload) {
		return false
	}
	for k := f; k < end; k++ {
		if e.has(k) {
			return false
		}
	}
	copy(e.data[from:to], d.Payload)
	for k := f; k < end; k++ {
		e.bits[k/64] |= 1 << (k % 64)
	}
	e.have += uint32(d.Count)
	e.top = max(e.top, end)
	return true
}

// complete takes a sample whose last missing fragment came.
func (s *source) complete(e *pend) {
	e.complete = true
	s.stalls = 0
	if !s.reliable {
		delete(s.pending, e.seq)
		s.bestEffort(s.unpack(e))
		return
	}
	if e.seq == s.next {
		s.drain()
	}
}

// limitPartial makes room for one more incomplete sample of a best-effort writer.
func (s *source) limitPartial() {
	if len(s.pending) < maxPartial {
		return
	}
	low := s.lowest()
	if e := s.pending[low]; e != nil {
		delete(s.pending, low)
		s.p.freePend(e)
	}
}

// expirePartial drops incomplete samples of a best-effort writer that nobody continues.
func (s *source) expirePartial(now mono) {
	for seq, e := range s.pending {
		if now.sub(e.at) >= time.Second {
			delete(s.pending, seq)
			s.p.freePend(e)
		}
	}
}
