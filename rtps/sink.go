package rtps

import (
	"net/netip"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// Timing of a writer (RTPS 2.5 §8.4.9).
const (
	firstHeartbeat = 20 * time.Millisecond // after data that nobody acknowledged; doubling
	leastBeat      = 3 * time.Millisecond  // the same after something was sent again, beside twice the reader's reaction
	lastHeartbeat  = time.Second
	resendPause    = 10 * time.Millisecond // the same sample is not sent again to the same reader within
	handshakeLimit = 3 * time.Second       // a reader that answers nothing for so long holds nobody up any more
	silenceLimit   = 2 * time.Second       // the same for one that falls silent
	handshakeGuess = 300 * time.Millisecond
	repairTwice    = 5 * time.Second // repairs are sent twice after one was lost
)

// sink is what a writer knows of one remote reader. Guarded by the participant's mutex.
type sink struct {
	w        *Writer
	guid     GUID
	peer     *peer
	dst      netip.AddrPort
	cut      cut // bytes of payload in a datagram to it
	reliable bool
	history  bool // gets samples written before the match
	pacer    *pacer
	flight   int // bytes sent to it and not acknowledged

	// A reliable reader gets data only when it has answered a HEARTBEAT: a Cyclone DDS reader fixes by the first one
	// which samples are before its time, and throws away what came earlier.
	ready   bool
	from    int64 // samples above were sent to it when they were written
	start   int64 // first sample that is for it
	acked   int64 // everything up to here is acknowledged
	matched mono
	heard   mono // last ACKNACK
	behind  mono // first HEARTBEAT since then that asked for an answer; 0 none

	ackCount   uint32
	fragCount  uint32
	hbAt       mono
	hbWait     time.Duration
	heartbeats int
	unanswered int           // HEARTBEATs that asked for an answer since the last one
	reacts     time.Duration // smoothed time from a HEARTBEAT to the request that it causes; 0 unknown

	want  wire.SeqSet // asked for and not yet sent again
	frags []fragRequest
	again resendRing
	tally tally
}

// tally is what a reader has asked for of the sample that it is at: one that was sent to it when it was written, in
// fragments.
type tally struct {
	seq      int64
	rounds   int    // requests
	missing  int    // fragments lost on their first way
	alone    int    // of them, not in a long row
	top      uint32 // the highest one asked for
	overflow bool   // they were lost in such a way
}

// take adds a request, and reports whether it looks as if datagrams came too fast: those of the sample, which is worth
// telling the pacer once, or those sent again.
func (t *tally) take(n *wire.NackFrag) (overflow bool) {
	if t.seq != n.Seq {
		*t = tally{seq: n.Seq}
	}
	t.rounds++
	var fresh, again pattern
	for f := range n.Set.All() {
		if f <= t.top {
			again.add(int64(f))
			continue
		}
		fresh.add(int64(f))
		t.top = f
	}
	t.missing, t.alone = t.missing+fresh.count, t.alone+fresh.alone
	overflow = again.overflow() || !t.overflow && fresh.overflow()
	t.overflow = t.overflow || overflow
	return overflow
}

// fragRequest is the fragments of a sample that a reader asks for.
type fragRequest struct {
	seq int64
	set wire.FragSet
}

// resendRing remembers what was sent again lately.
type resendRing struct {
	at *[256]struct {
		seq int64
		at  mono
	}
	frag  fragRequest // last fragments
	when  mono
	twice mono // until then a few fragments are sent twice: what was sent again was lost again
}

// recent reports whether seq was sent again a moment ago, and notes that it is now if not.
func (r *resendRing) recent(seq int64, now mono) bool {
	if r.at == nil {
		r.at = new([256]struct {
			seq int64
			at  mono
		})
	}
	e := &r.at[seq%int64(len(r.at))]
	if e.seq == seq && now.sub(e.at) < resendPause {
		return true
	}
	e.seq, e.at = seq, now
	return false
}

// counts reports whether the writer waits for this reader's acknowledgements. One that does not react to HEARTBEATs at
// all is not waited for until it does.
func (k *sink) counts(now mono) bool {
	if !k.ready {
		return now.sub(k.matched) < handshakeLimit
	}
	return k.behind == 0 || now.sub(k.behind) < max(silenceLimit, 2*k.w.cfg.QoS.MaxBlocking)
}

// match begins to serve a remote reader.
func (w *Writer) match(g GUID, q *peer, dst netip.AddrPort, requested QoS) {
	p := w.p
	if w.sinks[g] != nil || w.closed {
		return
	}
	k := &sink{w: w, guid: g, peer: q, dst: dst, matched: p.now, hbWait: firstHeartbeat, heard: p.now,
		reliable: requested.Reliability == Reliable && w.cfg.QoS.Reliability == Reliable}
	k.history = k.reliable && requested.Durability != Volatile && w.cfg.QoS.Durability != Volatile
	if k.cut.frame = w.cfg.FragmentSize; k.cut.frame == 0 {
		k.cut.frame = fragmentFor(q.local, p.link.mtu(dst.Addr()))
	}
	k.cut.fixed = w.cfg.FragmentSize != 0
	if w.cfg.Related {
		k.cut.frame -= relatedBytes
	}
	k.start = w.last + 1
	if k.history {
		w.trim() // lifespans may have ended
		k.start = w.hist.first
		if w.cfg.QoS.History == KeepLast && !w.builtin() {
			k.start = max(k.start, w.last-int64(w.cfg.QoS.Depth)+1)
		}
	}
	k.acked, k.from, k.ready = k.start-1, w.last, !k.reliable
	k.pacer = p.pacerFor(k)
	w.sinks[g] = k
	w.stale = true
	if k.reliable {
		w.heartbeat(k, false, false)
		p.timers.by(&w.timer, p.now.add(k.hbWait))
	}
}

// fragmentFor is how much of a sample fits one datagram that nothing on the way cuts. mtu is that of the interface whose
// subnet the reader is on, 0 if it is on none.
func fragmentFor(local bool, mtu int) int {
	switch {
	case local:
		return localFragment
	case mtu <= 1500:
		return remoteFragment
	}
	const headers = 28 + headerBytes + infoDstBytes + infoTSBytes + fragHeadBytes + 32 // IP, UDP, RTPS, a HEARTBEAT
	return min((mtu-headers)&^3, localFragment)
}

// unmatch forgets a remote reader.
func (w *Writer) unmatch(k *sink) {
	w.p.dropPacer(k)
	delete(w.sinks, k.guid)
	w.stale = true
	w.trim()
}

func (w *Writer) unmatchPeer(q *peer) {
	for _, k := range w.sinks {
		if k.peer == q {
			w.unmatch(k)
		}
	}
}

// moved follows a reader to another address.
func (w *Writer) moved(k *sink, dst netip.AddrPort) {
	if k.dst == dst {
		return
	}
	w.p.dropPacer(k)
	k.dst = dst
	k.pacer = w.p.pacerFor(k)
	w.stale = true
}

// readdress follows a peer's new discovery address.
func (w *Writer) readdress(q *peer) {
	for _, k := range w.sinks {
		if k.peer == q && q.meta.IsValid() {
			w.moved(k, q.meta)
		}
	}
}

// heartbeatFor makes the HEARTBEAT for a reader when samples up to last have been sent. Before the handshake it ends
// where the reader's samples begin.
func (w *Writer) heartbeatFor(k *sink, last int64, final, liveliness bool) wire.Heartbeat {
	w.hbCount++
	h := wire.Heartbeat{Reader: k.guid.Entity(), Writer: w.entity, Last: last, Count: w.hbCount, Final: final, Liveliness: liveliness}
	if !k.ready && !k.history {
		h.Last = min(h.Last, k.start-1)
	}
	h.First = min(max(k.start, w.hist.first, 1), h.Last+1)
	k.hbAt = w.p.now
	k.heartbeats++
	if !final {
		k.unanswered++
		if k.behind == 0 {
			k.behind = w.p.now
		}
	}
	return h
}

// heartbeat sends a HEARTBEAT to one reader.
func (w *Writer) heartbeat(k *sink, final, liveliness bool) {
	h := w.heartbeatFor(k, w.sent, final, liveliness)
	b := w.p.out.open(w.p, k.dst, k.guid.Prefix(), 32)
	w.p.out.close(wire.AppendHeartbeat(b, &h))
}

// onAckNack takes an ACKNACK submessage.
func (k *sink) onAckNack(a *wire.AckNack) {
	w, now := k.w, k.w.p.now
	if !k.reliable || k.ackCount != 0 && int32(a.Count-k.ackCount) <= 0 && now.sub(k.heard) < countForget {
		return
	}
	k.ackCount = a.Count
	k.answered(now, !a.Set.Empty())
	preemptive := a.Set.Empty() && a.Set.Base <= 1 && !a.Final
	if !k.ready && (!preemptive || k.heartbeats >= 3 && now.sub(k.matched) >= handshakeGuess) {
		k.begin()
	}
	if acked := min(a.Set.Base-1, w.sent); acked > k.acked {
		n := k.settle(acked)
		k.pacer.got(n)
		k.landed(n)
		k.acked = acked
		if acked == w.sent && !w.busy {
			k.landed(k.flight)
		}
		k.hbWait = firstHeartbeat
		w.trim()
	}
	asked := false
	if !a.Set.Empty() {
		asked = k.request(&a.Set)
		k.hbWait = k.beat()
	}
	switch {
	case asked: // answered with the samples, then a HEARTBEAT
		w.serve()
	case !a.Final:
		w.heartbeat(k, k.ready && k.acked >= w.sent && !preemptive, false)
	}
	if k.acked < w.sent {
		w.p.timers.by(&w.timer, now.add(k.hbWait))
	}
}

// begin ends the handshake: from now on the reader gets what is written. What was written meanwhile it learns of by a
// HEARTBEAT and asks for.
func (k *sink) begin() {
	w := k.w
	k.ready, k.from = true, w.last
	k.hbWait = firstHeartbeat
	w.stale = true
	if !k.history && k.start <= w.sent {
		w.heartbeat(k, false, false)
	}
}

// answered notes that the reader has reacted to HEARTBEATs; asks says that it wants something.
func (k *sink) answered(now mono, asks bool) {
	if asks && k.behind != 0 && k.unanswered == 1 { // of several nobody knows which one it was
		d := now.sub(k.behind)
		if k.reacts == 0 {
			k.reacts = d
		}
		k.reacts += (d - k.reacts) / 4
	}
	k.heard, k.behind, k.unanswered = now, 0, 0
}

// beat is how long to wait for the answer to the HEARTBEAT behind what was sent again, before that is repeated: Cyclone DDS
// asks at once for what is still missing, Fast DDS after 5 ms.
func (k *sink) beat() time.Duration {
	if k.reacts == 0 {
		return firstHeartbeat
	}
	return min(2*k.reacts+leastBeat, firstHeartbeat)
}

// settle takes notice that the reader has acknowledged everything up to a sample, and returns how many bytes that is more.
func (k *sink) settle(acked int64) (bytes int) {
	w := k.w
	next := w.sent + 1
	if w.busy {
		next++
	}
	for seq := max(k.acked+1, w.hist.first); seq <= acked; seq++ {
		s := w.hist.at(seq)
		if s == nil {
			continue
		}
		bytes += len(s.data)
		if len(s.data) <= k.cut.frame || seq <= k.from {
			continue
		}
		var t tally
		if k.tally.seq == seq {
			t = k.tally
		}
		if k.cut.judge(seq, len(s.data), &t, next, w.p.now) {
			w.stale = true // what readers of one participant get together
			k.pacer.renew()
		}
	}
	return bytes
}

// request notes the samples that a reader asks for and says at once which of them are gone. It reports whether any are
// to be sent.
func (k *sink) request(set *wire.SeqSet) bool {
	w, now := k.w, k.w.p.now
	k.want = wire.SeqSet{Base: max(set.Base, 1)}
	first := max(k.start, w.hist.first)
	var gap span
	gone := false
	var lost pattern
	whole := false
	for seq := range set.All() {
		if seq > w.sent {
			break // not sent yet: it comes in its turn
		}
		if s := w.hist.at(seq); seq >= first && s != nil {
			if !k.again.recent(seq, now) {
				k.want.Add(seq)
				if seq > k.from {
					lost.add(seq)
					whole = whole || len(s.data) > overflowRun*k.cut.frame // many datagrams
				}
			}
			continue
		}
		end := seq + 1
		if seq < first {
			end = min(first, w.sent+1) // everything below is gone as well
		}
		if seq > gap.b {
			k.gap(gap)
			gap.a = seq
		}
		gap.b = max(gap.b, end)
		gone = true
	}
	k.gap(gap)
	if whole || lost.overflow() || lost.count > 0 && k.peer.local {
		k.pacer.lost(now)
	}
	return !k.want.Empty() || gone
}

// gap tells the reader that samples will not come.
func (k *sink) gap(g span) {
	if g.a >= g.b || g.a < 1 {
		return
	}
	m := wire.Gap{Reader: k.guid.Entity(), Writer: k.w.entity, Start: g.a, Set: wire.SeqSet{Base: g.b}}
	b := k.w.p.out.open(k.w.p, k.dst, k.guid.Prefix(), 32)
	k.w.p.out.close(wire.AppendGap(b, &m))
}

// maxFragRequests is how many samples of one reader are repaired at the same time.
const maxFragRequests = 16

// onNackFrag takes a NACK_FRAG submessage.
func (k *sink) onNackFrag(n *wire.NackFrag) {
	w, now := k.w, k.w.p.now
	if !k.reliable || k.fragCount != 0 && int32(n.Count-k.fragCount) <= 0 && now.sub(k.heard) < countForget {
		return
	}
	k.fragCount = n.Count
	k.answered(now, true)
	if n.Seq > w.sent || n.Set.Empty() {
		return
	}
	if w.hist.at(n.Seq) == nil || n.Seq < k.start {
		k.gap(span{n.Seq, n.Seq + 1})
		w.heartbeat(k, false, false)
		return
	}
	if last := &k.again.frag; last.seq == n.Seq && last.set.Contains(n.Set.Base) && now.sub(k.again.when) >= resendPause {
		k.again.twice = now.add(repairTwice)
	}
	k.hbWait = k.beat()                                      // it gets on; what is sent again may be lost as well, with the HEARTBEAT behind it
	if n.Seq > k.from && (k.tally.take(n) || k.peer.local) { // nothing is lost on this host but where a socket is full
		k.pacer.lost(now)
	}
	set := n.Set
	if k.again.frag.seq == n.Seq && now.sub(k.again.when) < resendPause {
		set = wire.FragSet{Base: n.Set.Base}
		for f := range n.Set.All() {
			if !k.again.frag.set.Contains(f) {
				set.Add(f)
			}
		}
		if set.Empty() {
			return
		}
	}
	k.again.frag, k.again.when = fragRequest{n.Seq, set}, now
	for i := range k.frags {
		if k.frags[i].seq == n.Seq {
			k.frags[i].set = set
			w.serve()
			return
		}
	}
	if len(k.frags) < maxFragRequests {
		k.frags = append(k.frags, fragRequest{n.Seq, set})
	}
	w.serve()
}

// onTimer repeats HEARTBEATs to readers that have not acknowledged everything, ever more slowly.
func (w *Writer) onTimer(now mono) {
	if w.busy { // never within a sample
		w.p.timers.set(&w.timer, now.add(5*time.Millisecond))
		return
	}
	next := never
	stuck := false
	for _, k := range w.sinks {
		if !k.reliable || k.ready && k.acked >= w.sent {
			continue
		}
		if at := k.hbAt.add(k.hbWait); at > now {
			next = min(next, at)
			continue
		}
		w.heartbeat(k, false, false)
		k.hbWait = min(2*k.hbWait, lastHeartbeat)
		next = min(next, now.add(k.hbWait))
		stuck = stuck || !k.counts(now)
	}
	if stuck {
		w.trim()
	}
	w.p.timers.set(&w.timer, next)
}
