package rostest

// Resume implements ros.HeldSubscription.
func (s *subscription) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offerHeld()
}

// offerHeld offers what was refused, until something is again. s.mu is held.
func (s *subscription) offerHeld() {
	for len(s.held) > 0 {
		it := s.held[0]
		size := it.size() // who takes it may give its buffer back at once
		if !it.pair.hand(it, s.offer) {
			return
		}
		s.node.queue.keep(-size)
		s.held[0] = item{}
		s.held = s.held[1:]
	}
}

// dropHeld gives up what was refused, when the subscription closes. s.mu is held.
func (s *subscription) dropHeld() {
	for _, it := range s.held {
		it.pair.pending.Add(-1)
		s.node.queue.keep(-it.size())
		it.discard()
	}
	s.held = nil
}

// keep counts bytes that were handed over and refused: publishers have to wait for their room.
func (q *queue) keep(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes += n
	if n < 0 && q.space != nil {
		close(q.space)
		q.space = nil
	}
}
