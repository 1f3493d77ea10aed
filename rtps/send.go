package rtps

import (
	"net/netip"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// group is readers that one datagram serves: one, or all matched readers of a participant. Only ready ones are in groups.
type group struct {
	dst    netip.AddrPort
	prefix wire.Prefix
	reader wire.EntityID // unknown: all of them
	pacer  *pacer
	sinks  []*sink
	start  int64 // highest start of the sinks
}

// maxBeats bounds the HEARTBEATs that ride on one datagram.
const maxBeats = 24

// currentGroups returns the groups, made anew if readers came, went or became ready. A DATA without reader id reaches
// all readers of a participant that match us, and so must not be sent where one is not ready.
func (w *Writer) currentGroups() []group {
	if !w.stale {
		return w.groups
	}
	w.stale = false
	all := map[wire.Prefix][]*sink{}
	for _, k := range w.sinks {
		all[k.peer.prefix] = append(all[k.peer.prefix], k)
	}
	w.groups = nil // jobs may still look at the old ones
	for prefix, sinks := range all {
		first := sinks[0]
		g := group{dst: first.dst, prefix: prefix, pacer: first.pacer, sinks: sinks}
		together := len(sinks) > 1 && w.cfg.Accept == nil // a reader we refuse, or do not know yet, would take it as well
		for _, k := range sinks {
			together = together && k.ready && k.cut.same(&first.cut) && k.dst == first.dst
			g.start = max(g.start, k.start)
		}
		if together {
			w.groups = append(w.groups, g)
			continue
		}
		for _, k := range sinks {
			if k.ready {
				w.groups = append(w.groups, k.group())
			}
		}
	}
	return w.groups
}

// group is the reader alone.
func (k *sink) group() group {
	return group{dst: k.dst, prefix: k.peer.prefix, reader: k.guid.Entity(), pacer: k.pacer, sinks: []*sink{k}, start: k.start}
}

// job is what to send outside of the participant's mutex. There is one per writer, guarded by Writer.sending.
type job struct {
	w       *Writer
	samples []wsample // with a reference each
	targets []target  // of fresh samples
	beats   []byte    // encoded HEARTBEATs
	frags   []fragRequest
	cuts    []int  // of samples sent again: bytes of their fragments
	repair  target // of samples sent again
	repairs bool
	copies  int // of the fragments sent again
}

func (j *job) reset(w *Writer) *job {
	*j = job{w: w, samples: j.samples[:0], targets: j.targets[:0], beats: j.beats[:0], frags: j.frags[:0], cuts: j.cuts[:0]}
	return j
}

// release gives back the samples.
func (j *job) release() {
	for i := range j.samples {
		j.samples[i].buf.release()
		j.samples[i] = wsample{}
	}
	j.samples = j.samples[:0]
}

func (j *job) take(s *wsample) {
	s.buf.retain()
	j.samples = append(j.samples, *s)
}

// freshJob plans the first transmission of a sample.
func (w *Writer) freshJob(s *wsample) *job {
	j := w.job.reset(w)
	j.take(s)
	w.hbBytes += len(s.data)
	beat := w.hbAt == 0 || w.p.now.sub(w.hbAt) >= heartbeatWait || w.hbBytes >= min(heartbeatBytes, w.cfg.Window/4)
	beats := false
	for _, g := range w.currentGroups() {
		if g.start <= s.seq {
			beats = j.target(&g, s.seq, beat) || beats
			continue
		}
		for _, k := range g.sinks {
			if k.start <= s.seq {
				single := k.group()
				beats = j.target(&single, s.seq, beat) || beats
			}
		}
	}
	if beats {
		w.hbAt, w.hbBytes = w.p.now, 0
	}
	return j
}

// target adds a group to a job and reports whether a HEARTBEAT goes along.
func (j *job) target(g *group, seq int64, beat bool) (beats bool) {
	c := &g.sinks[0].cut
	t := target{dst: g.dst, prefix: g.prefix, reader: g.reader, frame: c.frame, fragment: c.size(seq, len(j.samples[0].data)), pacer: g.pacer,
		hbStart: len(j.beats)}
	n := 0
	for _, k := range g.sinks {
		if k.reliable {
			k.launched(len(j.samples[0].data))
		}
		if beat && k.reliable && n < maxBeats {
			h := j.w.heartbeatFor(k, seq, false, false)
			j.beats = wire.AppendHeartbeat(j.beats, &h)
			n++
		}
	}
	t.hbEnd = len(j.beats)
	j.targets = append(j.targets, t)
	return n > 0
}

// send sends what was planned, paced, and returns the number of datagrams. No mutex but Writer.sending is held.
func (j *job) send() (datagrams uint64) {
	e := emitters.Get().(*emitter)
	defer emitters.Put(e)
	e.p, e.sent = j.w.p, 0
	if j.repairs {
		for i := range j.samples {
			s := &j.samples[i]
			j.repair.fragment = j.cuts[i]
			if i < len(j.frags) && j.frags[i].seq != 0 {
				for range j.copies {
					for f := range j.frags[i].set.All() {
						if int(f-1)*j.repair.fragment < len(s.data) && f > 0 {
							e.fragments(&j.repair, j.w.entity, s, f-1, f, nil)
						}
					}
				}
				continue
			}
			e.sample(&j.repair, j.w.entity, s, nil)
		}
	} else {
		for i := range j.targets {
			t := &j.targets[i]
			e.sample(t, j.w.entity, &j.samples[0], j.beats[t.hbStart:t.hbEnd])
		}
	}
	e.flush()
	return e.sent
}

// afterSend keeps the books when w.sent has risen.
func (w *Writer) afterSend() {
	reliable := false
	for _, k := range w.sinks {
		reliable = reliable || k.reliable
	}
	if reliable {
		w.p.timers.by(&w.timer, w.p.now.add(firstHeartbeat))
	}
	w.trim()
}

// sendNext sends one thing: what readers asked for first, then the next new sample. It reports whether there was any.
// Writer.sending is held.
func (w *Writer) sendNext() bool {
	p := w.p
	p.lock()
	if w.closed {
		p.unlock()
		return false
	}
	if k := w.nextRepair(); k != nil {
		j := w.repairJob(k)
		p.unlock()
		n := j.send()
		j.release()
		p.lock()
		w.count.Resent += n
		if w.sinks[k.guid] == k && !w.closed {
			w.heartbeat(k, false, false)
			p.timers.by(&w.timer, p.now.add(k.hbWait))
		}
		p.unlock()
		return true
	}
	if w.sent >= w.last {
		p.unlock()
		return false
	}
	seq := w.sent + 1
	s := w.hist.at(seq)
	if s == nil {
		w.sent = seq // given up meanwhile
		w.trim()
		p.unlock()
		return true
	}
	if w.gated(len(s.data)) {
		p.unlock()
		return false
	}
	j := w.freshJob(s)
	w.busy = true
	p.unlock()
	j.send()
	j.release()
	p.lock()
	w.busy = false
	w.sent = max(w.sent, seq)
	if !w.closed {
		w.afterSend()
	}
	p.unlock()
	return true
}

// nextRepair picks a reader that waits for something to be sent again.
func (w *Writer) nextRepair() *sink {
	for _, k := range w.sinks {
		if !k.want.Empty() || len(k.frags) > 0 {
			return k
		}
	}
	return nil
}

// Limits of one repair job, so that new samples and other readers get their turn.
const (
	maxRepairs     = 32
	maxRepairBytes = 1 << 20
)

// maxTwice is how many fragments are sent twice at most: more are missing where a socket was full, and more would not help.
const maxTwice = 48

// requested is how many fragments are asked for.
func requested(list []fragRequest) (n int) {
	for i := range list {
		for range list[i].set.All() {
			n++
		}
	}
	return n
}

// repairJob plans what is sent again to a reader.
func (w *Writer) repairJob(k *sink) *job {
	j := w.job.reset(w)
	j.repairs, j.copies = true, 1
	if w.p.now < k.again.twice && requested(k.frags) <= maxTwice {
		j.copies = 2 // a Cyclone DDS reader asks for the same fragment only every 100 ms
	}
	j.repair = target{dst: k.dst, prefix: k.peer.prefix, reader: k.guid.Entity(), frame: k.cut.frame, pacer: k.pacer}
	for _, f := range k.frags {
		if s := w.hist.at(f.seq); s != nil {
			j.take(s)
			j.frags = append(j.frags, f)
			j.cuts = append(j.cuts, k.cut.size(f.seq, len(s.data)))
		}
	}
	k.frags = k.frags[:0]
	bytes := 0
	rest := wire.SeqSet{Base: k.want.Base}
	for seq := range k.want.All() {
		s := w.hist.at(seq)
		if s == nil {
			continue // gone meanwhile: the HEARTBEAT that follows says so
		}
		if len(j.samples) >= maxRepairs || bytes >= maxRepairBytes {
			rest.Add(seq)
			continue
		}
		bytes += len(s.data)
		j.take(s)
		j.cuts = append(j.cuts, k.cut.size(seq, len(s.data)))
	}
	k.want = rest
	return j
}

// serve answers what readers have asked for.
func (w *Writer) serve() {
	if !w.builtin() {
		w.wake()
		return
	}
	for k := w.nextRepair(); k != nil; k = w.nextRepair() {
		k.frags = k.frags[:0] // builtin samples are not fragmented
		for seq := range k.want.All() {
			if s := w.hist.at(seq); s != nil {
				w.postBuiltin(k, s)
			}
		}
		k.want = wire.SeqSet{}
		w.heartbeat(k, false, false)
	}
}

// put writes a sample of a builtin topic: it replaces the one with the same key. end says that the key is gone.
func (w *Writer) put(key GUID, payload []byte, inline wire.InlineQoS, end bool) {
	if old := w.keyedSeqs[key]; old != 0 {
		w.hist.remove(old)
		delete(w.keyedSeqs, key)
	}
	w.last++
	s := wsample{seq: w.last, time: w.p.cfg.Now(), keep: !end, isKey: end, key: key, inline: &inline}
	s.data, s.buf, _ = w.p.fill.copy(payload)
	w.hist.push(s)
	if !end {
		w.keyedSeqs[key] = w.last
	}
	if w.post.pos > 0 {
		return // they go together
	}
	if at := w.posted.add(postPause); w.posted != 0 && w.p.now < at {
		w.p.timers.set(&w.post, at)
		return
	}
	w.postNew(w.p.now)
}

// Announcements of endpoints that are made one after the other, say by a recorder that subscribes to a thousand topics, go
// out together: a few in a datagram and one HEARTBEAT behind them.
const (
	postPause = 5 * time.Millisecond // between two posts of a builtin writer
	postLimit = 256 << 10            // bytes in one, to all readers together
)

// postNew sends the samples of a builtin topic that are new.
func (w *Writer) postNew(now mono) {
	ready := 0
	for _, k := range w.sinks {
		if k.ready {
			ready++
		}
	}
	upto, bytes := w.sent, 0
	for upto < w.last && bytes < postLimit {
		upto++
		if s := w.hist.at(upto); s != nil {
			bytes += ready * (len(s.data) + 64)
		}
	}
	from := w.sent + 1
	w.sent, w.posted = upto, now
	for _, k := range w.sinks {
		if !k.ready {
			continue
		}
		for seq := from; seq <= upto; seq++ {
			if s := w.hist.at(seq); s != nil {
				w.postBuiltin(k, s)
			}
		}
		w.heartbeat(k, false, false)
		k.hbWait = firstHeartbeat
	}
	w.afterSend()
	if w.sent < w.last {
		w.p.timers.set(&w.post, now.add(postPause))
	}
}

// postAll sends everything that is new at once: there is no later.
func (w *Writer) postAll() {
	w.p.timers.stop(&w.post)
	for w.sent < w.last {
		w.postNew(w.p.now)
	}
	w.p.timers.stop(&w.post)
}

// postBuiltin sends a sample of a builtin topic to one reader.
func (w *Writer) postBuiltin(k *sink, s *wsample) {
	payload := s.data
	if w == w.p.subWriter && !s.isKey {
		payload = w.p.announcementFor(k.peer, s.key, payload)
	}
	b := w.p.out.open(w.p, k.dst, k.guid.Prefix(), len(payload)+64)
	b = wire.AppendInfoTS(b, wire.TimestampFromUnix(s.time))
	b = wire.AppendData(b, &wire.Data{Reader: k.guid.Entity(), Writer: w.entity, Seq: s.seq, Key: s.isKey, InlineQoS: *s.inline, Payload: payload})
	w.p.out.close(b)
}
