package rtps

// Back-pressure: ReaderConfig.Offer may refuse a sample. Then the writer's samples are not acknowledged from that one on.
// The refused sample stays among the pending ones; what comes behind it and is not begun yet is dropped, since a reliable
// writer has to keep it, and asked for again after Resume.

// offers reports whether samples are offered before they are delivered.
func (s *source) offers() bool { return s.r.cfg.Offer != nil && s.reliable && !s.ignored }

// offer offers the complete sample at the head. It reports false, and holds, when it was refused.
func (s *source) offer(e *pend) bool {
	m := meta{seq: e.seq, time: e.time, payload: e.data, key: e.key, inline: e.inline}
	if m.data() {
		if !s.r.cfg.Offer(s.sample(&m, e.buf, int(e.charged))) {
			s.held = true
			return false
		}
		e.buf = nil // gone with the sample
		s.received++
		s.r.received++
	}
	if s.first == 0 {
		s.first = m.seq
	}
	s.last = m.seq
	s.next++
	delete(s.pending, m.seq)
	s.p.freePend(e)
	return true
}

// Resume has samples offered again that ReaderConfig.Offer refused. It does nothing where none was.
func (r *Reader) Resume() {
	p := r.p
	p.lock()
	defer p.unlock()
	for _, s := range r.sources {
		if !s.held {
			continue
		}
		s.held = false
		s.drain()
		if !s.held {
			s.stalls = 0
			s.setDue(true) // the writer may be waiting, and what was dropped is asked for
			p.timers.by(&s.timer, s.nextTimer())
		}
	}
}
