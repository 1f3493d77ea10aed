package rtps

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// Limits of what is kept for one writer while samples are out of order.
const (
	maxPending = 16384 // samples
	maxPartial = 4     // incomplete samples of a best-effort writer
	maxGaps    = 128   // ranges of sequence numbers that are known to be gone
)

// source is what a reader knows of one remote writer. Guarded by the participant's mutex.
type source struct {
	r        *Reader
	p        *Participant
	guid     GUID
	peer     *peer
	dst      netip.AddrPort
	reliable bool // acknowledged: the reader is reliable (and so is a writer that it matches)
	history  bool // begin with the oldest sample that the writer has, not with the first new one
	ignored  bool // acknowledge and drop
	removed  bool
	held     bool  // ReaderConfig.Offer refused the next sample: nothing is taken until Resume
	early    int64 // lowest sequence number seen before the match; 0 none

	received, lost uint64
	first, last    int64 // delivered

	// Sequence numbers below next are dealt with; 0 until it is known where to begin.
	next    int64
	pending map[int64]*pend // received out of order or in part, all ≥ next
	gaps    []span          // ascending, disjoint, all > next
	far     int64           // no pending one is higher
	top     int64           // highest sequence number of any data seen

	guess   int64 // a volatile reader's samples begin here at the latest; below it nobody knows
	started mono  // when next was set by guessing

	hbSeen  bool
	hbLast  int64
	hbCount uint32
	hbAt    mono

	matched   mono
	solicited mono // last request for a HEARTBEAT
	solicits  int
	acks      uint32 // count of the last ACKNACK or NACK_FRAG
	mustAck   bool   // at the end of the batch
	isDue     bool   // is in Participant.due
	owes      int64  // highest sequence number asked for: acknowledge as soon as it is passed; 0 none
	asked     *askedRing
	stuck     int64 // next when a hole was noticed at it
	stuckAt   mono
	stalls    int           // requests in a row without progress
	asking    mono          // last request
	dataAt    mono          // last data
	interval  mono          // smoothed time between data
	probed    int           // how often a HEARTBEAT was asked for after the last data
	reply     time.Duration // smoothed time from a request to the first of what was asked for; 0 unknown
	timer     timer
}

// span is the sequence numbers from a to b-1.
type span struct{ a, b int64 }

func (s *source) stats(matched bool) WriterStats {
	return WriterStats{GUID: s.guid, Received: s.received, Lost: s.lost, First: s.first, Last: s.last, Matched: matched, Reliable: s.reliable, Heard: s.hbSeen}
}

// drop frees what is pending.
func (s *source) drop() {
	for _, e := range s.pending {
		s.p.freePend(e)
	}
	s.pending, s.gaps = nil, nil
}

// finish delivers what can be delivered of a writer that is gone and counts its holes.
func (s *source) finish() {
	if s.ignored || !s.reliable {
		return
	}
	if s.next == 0 {
		s.begin(s.lowest())
	}
	if s.next != 0 {
		s.skipTo(max(s.top, s.hbLast) + 1)
	}
}

// lowest is the lowest pending sequence number, 0 if there is none.
func (s *source) lowest() int64 {
	low := int64(0)
	for seq := range s.pending {
		if low == 0 || seq < low {
			low = seq
		}
	}
	return low
}

// begin sets where to begin and delivers what is there.
func (s *source) begin(next int64) {
	if next == 0 {
		return
	}
	s.next = next
	for seq, e := range s.pending {
		if seq < next {
			delete(s.pending, seq)
			s.p.freePend(e)
		}
	}
	gaps := s.gaps
	s.gaps = nil
	for _, g := range gaps {
		s.gap(g.a, g.b)
	}
	s.drain()
}

// deliver hands a sample over. data lives in owner's memory, of which the handler gets a reference; builtin readers get
// the bytes for the call only.
func (s *source) deliver(m *meta, owner *buffer, cost int) {
	r := s.r
	if s.first == 0 {
		s.first = m.seq
	}
	s.last = m.seq
	if r.take != nil {
		r.take(s, m)
		if owner != nil {
			owner.release()
		}
		return
	}
	if !m.data() {
		if owner != nil {
			owner.release()
		}
		return
	}
	s.received++
	r.received++
	r.cfg.Handler(s.sample(m, owner, cost))
}

// sample is what a handler gets.
func (s *source) sample(m *meta, owner *buffer, cost int) Sample {
	t := m.time
	if t == 0 {
		t = s.p.wall
	}
	out := Sample{Data: m.payload, SourceTime: t, RecvTime: s.p.wall, Writer: s.guid, Seq: m.seq, Cost: cost, Owner: owner}
	if s.r.cfg.Related && m.inline.HasRelated {
		out.Related = &SampleID{Writer: m.inline.RelatedGUID, Seq: m.inline.RelatedSeq}
	}
	return out
}

// drain delivers what is complete at the head.
func (s *source) drain() {
	for s.next != 0 {
		if len(s.gaps) > 0 && s.gaps[0].a <= s.next {
			g := s.gaps[0]
			s.gaps = s.gaps[1:]
			s.skipTo(g.b)
			continue
		}
		e := s.pending[s.next]
		if e == nil || !e.complete || s.held {
			break
		}
		if s.offers() {
			if !s.offer(e) {
				break
			}
			continue
		}
		delete(s.pending, s.next)
		s.next++
		s.deliverPend(e)
	}
	if s.owes != 0 && s.next > s.owes {
		s.owes = 0 // the writer may be blocked on us, and its next HEARTBEAT seconds away
		s.setDue(true)
	}
}

func (s *source) deliverPend(e *pend) { s.deliver(s.unpack(e)) }

// skipTo gives up everything below to that has not arrived. Complete samples among it are delivered, the others are lost
// if a sample was seen before.
func (s *source) skipTo(to int64) {
	if to <= s.next {
		return
	}
	for _, seq := range s.pendingBelow(to) {
		e := s.pending[seq]
		delete(s.pending, seq)
		if !e.complete {
			s.p.freePend(e)
			continue
		}
		s.lose(seq - s.next)
		s.next = seq + 1
		s.deliverPend(e)
	}
	s.lose(to - s.next)
	s.next = to
	for len(s.gaps) > 0 && s.gaps[0].b <= to {
		s.gaps = s.gaps[1:]
	}
}

// pendingBelow lists the pending sequence numbers from next to before to, ascending.
func (s *source) pendingBelow(to int64) []int64 {
	var seqs []int64
	if to-s.next <= int64(len(s.pending)) {
		for seq := s.next; seq < to; seq++ {
			if s.pending[seq] != nil {
				seqs = append(seqs, seq)
			}
		}
		return seqs
	}
	for seq := range s.pending {
		if seq < to {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs
}

// lose counts samples that will not come any more. Before the first one seen nobody knows what was for us.
func (s *source) lose(n int64) {
	if n <= 0 || s.first == 0 {
		return
	}
	s.lost += uint64(n)
	s.r.lost += uint64(n)
}

// gap takes notice that [a, b) will not come.
func (s *source) gap(a, b int64) {
	if s.next != 0 {
		a = max(a, s.next)
	}
	if a >= b {
		return
	}
	if s.next == a {
		s.skipTo(b)
		return
	}
	i, _ := slices.BinarySearchFunc(s.gaps, a, func(g span, a int64) int {
		if g.b < a {
			return -1
		}
		return 1
	})
	j := i // gaps[i:j] touch or overlap the new one
	for j < len(s.gaps) && s.gaps[j].a <= b {
		a, b = min(a, s.gaps[j].a), max(b, s.gaps[j].b)
		j++
	}
	if j == i && len(s.gaps) >= maxGaps {
		return // asked for again later
	}
	s.gaps = slices.Replace(s.gaps, i, j, span{a, b})
}

// isGap reports whether seq is known to be gone.
func (s *source) isGap(seq int64) bool {
	for _, g := range s.gaps {
		if seq < g.a {
			return false
		}
		if seq < g.b {
			return true
		}
	}
	return false
}

// onGap takes a GAP submessage.
func (s *source) onGap(g *wire.Gap) {
	if !s.reliable || s.ignored {
		return
	}
	run := span{g.Start, g.Set.Base}
	for seq := range g.Set.All() {
		if seq != run.b {
			s.gap(run.a, run.b)
			run.a = seq
		}
		run.b = seq + 1
	}
	s.gap(run.a, run.b)
	s.drain()
}
