package rtps

import (
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// Timing of a reliable reader (RTPS 2.5 §8.4.12). Cyclone DDS answers requests at once, Fast DDS after 5 ms.
const (
	holeDelay     = 20 * time.Millisecond  // a hole that no HEARTBEAT told of is asked for after
	localHole     = 3 * time.Millisecond   // the same on this host, where nothing is overtaken
	tailDelay     = 8 * time.Millisecond   // samples behind everything seen may still be on the way for
	repeatDelay   = 30 * time.Millisecond  // the same sample is asked for again after, doubling
	maxRepeat     = 500 * time.Millisecond // at most
	quickRepeats  = 3                      // times before it is doubled, where the writer has answered before
	partDelay     = 8 * time.Millisecond   // silence within a sample before what is missing of it so far is asked for
	fragDelay     = 20 * time.Millisecond  // and before its rest is
	fragRepeat    = 60 * time.Millisecond  // the same fragments are asked for again after so much silence
	leastRepeat   = 15 * time.Millisecond  // both repetitions come sooner where the writer has been seen to answer sooner: after
	repeatFactor  = 3                      // so many times what it took, but not less than this
	probeDelay    = 50 * time.Millisecond  // silence after data before a HEARTBEAT is asked for
	probeRepeat   = 250 * time.Millisecond // it is asked for again after, doubling, while none comes
	maxProbes     = 4                      // times in all: Fast DDS repeats its own after 3 s
	startDelay    = 200 * time.Millisecond // how long the start waits for samples that may not be for us
	countForget   = 500 * time.Millisecond // a count that does not rise is believed again after (Cyclone DDS does so)
	bytesPerRound = 1 << 20                // asked for by one NACK_FRAG, less if the socket holds less

	socketOverhead = 1000 // bytes of a socket's buffer that a datagram costs beside its fragment
)

// askedRing remembers when samples were asked for, so that a request is not repeated while the answer is on its way.
type askedRing [256]struct {
	seq  int64
	at   mono
	came bool // since
}

func (s *source) setDue(must bool) {
	s.mustAck = s.mustAck || must
	if !s.isDue {
		s.isDue = true
		s.p.due = append(s.p.due, s)
	}
}

// answerDue sends what the sources owe for the batch that was processed: one ACKNACK each, however many HEARTBEATs came.
func (p *Participant) answerDue() {
	for i := 0; i < len(p.due); i++ {
		s := p.due[i]
		p.due[i] = nil
		s.isDue = false
		if !s.removed {
			must := s.mustAck
			s.mustAck = false
			s.answer(must)
		}
	}
	p.due = p.due[:0]
}

// onHeartbeat takes a HEARTBEAT submessage.
func (s *source) onHeartbeat(h *wire.Heartbeat) {
	if !s.reliable {
		return
	}
	now := s.p.now
	if s.hbSeen && int32(h.Count-s.hbCount) <= 0 && now.sub(s.hbAt) < countForget {
		return
	}
	if s.hbSeen && (h.Last < s.hbLast || h.Last < s.top) && h.First <= s.next {
		// Overtaken by a later one or by data; but it still wants its answer.
		s.setDue(!h.Final)
		return
	}
	first := !s.hbSeen
	s.hbSeen, s.hbCount, s.hbAt, s.hbLast = true, h.Count, now, h.Last
	if s.ignored {
		s.next = max(s.next, h.Last+1)
		s.setDue(!h.Final)
		return
	}
	if s.next == 0 {
		s.start(h)
	}
	if h.First > s.next {
		s.skipTo(h.First)
	}
	s.drain()
	s.setDue(!h.Final || first)
	s.p.timers.by(&s.timer, s.nextTimer())
}

// start decides at the first HEARTBEAT where to begin. A reader that wants history begins with the oldest sample there
// is. So does a volatile reader of a volatile writer: what the writer still has is not yet acknowledged by all, and may
// have been sent to us before we knew it. A volatile reader of a writer with history begins behind it, but never behind
// data that was seen.
func (s *source) start(h *wire.Heartbeat) {
	next := h.First
	if !s.history {
		next = h.Last + 1
		if low := s.lowest(); low != 0 {
			next = min(next, low)
		}
		if s.early != 0 {
			next = min(next, s.early)
		}
		next = max(next, h.First)
	}
	s.guess = 0
	if s.history && s.r.cfg.QoS.Durability == Volatile {
		s.guess, s.started = h.Last+1, s.p.now
		if low := s.lowest(); low != 0 {
			s.guess = min(s.guess, low)
		}
	}
	s.begin(next)
}

// giveUpStart passes over what a volatile reader asked for on suspicion and the writer does not answer to.
func (s *source) giveUpStart(now mono) {
	if s.next >= s.guess || now.sub(s.started) < startDelay || s.stalls < 3 {
		return
	}
	to := s.guess
	if low := s.lowest(); low > s.next {
		to = min(to, low)
	}
	s.skipTo(to)
	s.drain()
}

// answer sends ACKNACK and NACK_FRAG as far as needed; must asks for an ACKNACK in any case.
func (s *source) answer(must bool) {
	if !s.hbSeen && s.next == 0 {
		return
	}
	now := s.p.now
	limit := s.top // what is above may still be on the way
	if now.sub(s.hbAt) >= tailDelay && now.sub(s.dataAt) >= tailDelay || s.r.builtin() || s.dataAt == 0 && s.r.cfg.QoS.Durability == Volatile {
		limit = max(limit, s.hbLast)
	}
	var set wire.SeqSet
	set.Base = max(s.next, 1)
	asks := false
	var partial [4]*pend // asked for by fragments
	partials := 0
	if s.held { // nothing is asked for until the one at hand is taken
		limit = 0
	}
	for seq := set.Base; seq <= limit && seq-set.Base < wire.SetBits; seq++ {
		if e := s.pending[seq]; e != nil {
			if !e.complete && partials < len(partial) {
				partial[partials] = e
				partials++
			}
			continue
		}
		if s.isGap(seq) {
			continue
		}
		if s.ask(seq, now) {
			set.Add(seq)
			asks = true
		}
	}
	if asks {
		s.asking = now
		s.stalls++
		s.owes = max(s.owes, set.Highest())
	}
	if asks || must {
		s.sendAckNack(&set, !asks)
	}
	for _, e := range partial[:partials] {
		s.askFragments(e, now)
	}
	s.p.timers.by(&s.timer, s.nextTimer())
}

// repeat is how long to wait before asking again: doubling while nothing comes.
func (s *source) repeat() time.Duration {
	d, quick := s.patience(repeatDelay), 1
	if s.reply > 0 {
		quick = quickRepeats
	}
	for i := quick; i < s.stalls && d < maxRepeat; i++ {
		d *= 2
	}
	return min(d, maxRepeat)
}

// ask reports whether seq may be asked for now and remembers that it was.
func (s *source) ask(seq int64, now mono) bool {
	if s.asked == nil {
		s.asked = new(askedRing)
	}
	a := &s.asked[seq%int64(len(s.asked))]
	if a.seq == seq && now.sub(a.at) < s.repeat() {
		return false
	}
	a.seq, a.at, a.came = seq, now, false
	return true
}

// askFragments asks for the missing fragments of a sample: those below the highest seen, or the rest too once the sender
// has fallen silent or sends on request only.
func (s *source) askFragments(e *pend, now mono) {
	if e.complete || e.askedLeft > 0 && now < s.repeatAt(e) {
		return
	}
	upto := e.top
	if e.pull || now.sub(e.at) >= s.fragDelay(e) {
		upto, e.pull = e.frags, true
	}
	f := uint32(0)
	for f < upto && e.has(f) {
		if f%64 == 0 && e.bits[f/64] == ^uint64(0) {
			f += 64
			continue
		}
		f++
	}
	if f >= upto {
		return
	}
	n := wire.NackFrag{Reader: s.r.entity, Writer: s.guid.Entity(), Seq: e.seq, Set: wire.FragSet{Base: f + 1}}
	most := max(1, min(bytesPerRound/e.fragSize, s.p.askLimit/(e.fragSize+socketOverhead)))
	asked := 0
	for ; f < upto && asked < most; f++ {
		if !e.has(f) {
			if !n.Set.Add(f + 1) {
				break
			}
			asked++
			e.askedTop = f + 1
		}
	}
	e.asked, e.askedLeft, e.askedAt, e.replied, e.more = n.Set, asked, now, false, f < upto
	s.owes = max(s.owes, e.seq)
	s.acks++
	n.Count = s.acks
	b := s.p.out.open(s.p, s.dst, s.guid.Prefix(), 64)
	s.p.out.close(wire.AppendNackFrag(b, &n))
}

// repeatAt is when fragments that were asked for and do not come are asked for again.
func (s *source) repeatAt(e *pend) mono {
	return max(e.askedAt, e.at).add(s.patience(fragRepeat))
}

// patience is how long to wait for the answer to a request, at most so long.
func (s *source) patience(most time.Duration) time.Duration {
	if s.reply == 0 {
		return most
	}
	return min(max(repeatFactor*s.reply, leastRepeat), most)
}

// replied notes how long the writer took to answer a request.
func (s *source) replied(d time.Duration) {
	if s.reply == 0 {
		s.reply = d
	}
	s.reply += (d - s.reply) / 4
}

func (s *source) holeDelay() time.Duration {
	if s.peer.local {
		return localHole
	}
	return holeDelay
}

// fragDelay is how long the rest of a sample is waited for: where the writer has gone on to the next one, as for a hole.
func (s *source) fragDelay(e *pend) time.Duration {
	if e.seq < s.top {
		return s.holeDelay()
	}
	return fragDelay
}

func (s *source) sendAckNack(set *wire.SeqSet, final bool) {
	s.acks++
	a := wire.AckNack{Reader: s.r.entity, Writer: s.guid.Entity(), Set: *set, Count: s.acks, Final: final}
	b := s.p.out.open(s.p, s.dst, s.guid.Prefix(), 64)
	s.p.out.close(wire.AppendAckNack(b, &a))
}

// solicit asks for a HEARTBEAT. Fast DDS sends one at once only for base 0, for any other base it restarts its timer of
// 3 s; Cyclone DDS calls base 0 malformed.
func (s *source) solicit() {
	if s.ignored {
		return
	}
	set := wire.SeqSet{Base: max(s.next, 1)}
	if s.peer.vendor == wire.VendorFast {
		set.Base = 0
	}
	s.solicited = s.p.now
	s.solicits++
	s.sendAckNack(&set, false)
}

// onHeartbeatFrag takes a HEARTBEAT_FRAG submessage: fragments up to its number have been sent.
func (s *source) onHeartbeatFrag(h *wire.HeartbeatFrag) {
	if !s.reliable || s.ignored {
		return
	}
	if e := s.pending[h.Seq]; e != nil && !e.complete {
		e.top = max(e.top, min(h.LastFrag, e.frags))
		s.askFragments(e, s.p.now)
	}
}

// quiet is how long after data a Fast DDS writer is asked whether there was more: it does not repeat HEARTBEATs for 3 s.
// Writers that send at a steady rate are not asked between samples.
func (s *source) quiet() time.Duration {
	return max(probeDelay, min(4*time.Duration(s.interval), time.Second))
}

func (s *source) probes() bool {
	return s.peer.vendor != wire.VendorCyclone && s.peer.vendor != wire.VendorGobag && !s.ignored
}

// nextTimer is when the source has something to do if nothing comes.
func (s *source) nextTimer() mono {
	if !s.reliable {
		if len(s.pending) > 0 {
			return s.p.now.add(time.Second)
		}
		return never
	}
	t := never
	if !s.hbSeen && !s.ignored {
		wait := 100 * time.Millisecond
		if s.solicits > 5 {
			wait = time.Second
		}
		t = s.solicited.add(wait)
		if s.next == 0 && len(s.pending) > 0 {
			t = min(t, s.matched.add(startDelay))
		}
	}
	if s.next == 0 || s.held {
		return t
	}
	if s.next <= max(s.top, s.hbLast) {
		t = min(t, s.holeTimer())
	} else {
		t = min(t, s.probeTimer())
	}
	return t
}

// probeTimer is when to ask whether there was more after the last data: the question or its answer may be lost as well.
func (s *source) probeTimer() mono {
	switch {
	case !s.probes() || s.dataAt == 0:
		return never
	case s.probed == 0:
		return s.dataAt.add(s.quiet())
	case s.hbAt >= s.solicited || s.probed >= maxProbes:
		return never
	}
	return s.solicited.add(probeRepeat << (s.probed - 1))
}

// holeTimer is when to ask for what is missing.
func (s *source) holeTimer() mono {
	t := max(s.dataAt, s.hbAt).add(tailDelay)
	if s.next <= s.top { // data went past it
		if s.stuck != s.next {
			s.stuck, s.stuckAt = s.next, s.p.now
		}
		t = s.stuckAt.add(s.holeDelay())
	}
	if e := s.pending[s.next]; e != nil && !e.complete {
		t = e.at.add(s.fragDelay(e))
		if e.have < e.top && e.askedLeft == 0 {
			t = min(t, e.at.add(partDelay))
		}
		if e.askedLeft > 0 {
			t = max(t, s.repeatAt(e))
		}
	} else if s.asking != 0 {
		t = max(t, s.asking.add(s.repeat()))
	}
	return t
}

func (s *source) onTimer(now mono) {
	if !s.reliable {
		s.expirePartial(now)
		s.p.timers.set(&s.timer, s.nextTimer())
		return
	}
	if !s.hbSeen && !s.ignored {
		if s.next == 0 && len(s.pending) > 0 && now.sub(s.matched) >= startDelay {
			s.begin(s.lowest()) // no HEARTBEAT comes: begin with what is here
		}
		if s.nextTimer() <= now {
			s.solicit()
		}
	}
	if s.held {
		return // Resume goes on
	}
	if s.next != 0 && s.next <= max(s.top, s.hbLast) {
		if s.holeTimer() <= now {
			s.giveUpStart(now)
			s.answer(false)
		}
	} else if s.next != 0 && s.probeTimer() <= now {
		s.probed++
		s.solicit()
	}
	next := s.nextTimer()
	if next <= now {
		next = now.add(5 * time.Millisecond)
	}
	s.p.timers.set(&s.timer, next)
}
