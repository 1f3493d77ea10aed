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
		s.node.queue.release(size)
		s.held[0] = item{}
		s.held = s.held[1:]
	}
}

// dropHeld gives up what was refused, when the subscription closes. s.mu is held.
func (s *subscription) dropHeld() {
	for _, it := range s.held {
		it.pair.pending.Add(-1)
		s.node.queue.release(it.size())
		it.discard()
	}
	s.held = nil
}

// release frees the room of a sample that was held: until then publishers have to wait for it.
func (q *queue) release(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free(n)
}
