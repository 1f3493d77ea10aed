package player

import (
	"context"
	"sync"
)

// steps are messages to be sent at once while the playback is paused.
type steps struct {
	mu     sync.Mutex
	want   uint64
	taken  uint64
	wake   chan struct{} // holds a token when want has grown
	parted chan struct{} // closed and made anew when want has shrunk
}

func (s *steps) init() { s.wake, s.parted = make(chan struct{}, 1), make(chan struct{}) }

// add asks for n more.
func (s *steps) add(n uint64) {
	s.mu.Lock()
	if s.want += n; s.want < n {
		s.want = 1<<64 - 1
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take says whether a step is wanted, and counts it as taken.
func (s *steps) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.want == 0 {
		return false
	}
	s.want--
	s.taken++
	s.changed()
	return true
}

// clear forgets what is wanted.
func (s *steps) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want = 0
	s.changed()
}

func (s *steps) changed() {
	close(s.parted)
	s.parted = make(chan struct{})
}

// left says how many are still wanted, and how many were taken ever.
func (s *steps) left() (want, taken uint64, parted <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.want, s.taken, s.parted
}

// Burst publishes the next n messages at once, whatever their times, all that are left for 0, and stays paused. It returns
// when that is done, the playback goes on or ends, or ctx ends, with how many were sent; it sends none unless the playback
// is paused.
func (p *Player) Burst(ctx context.Context, n uint64) uint64 {
	if !p.clock.isPaused() || State(p.state.Load()) >= StateStopped {
		return 0
	}
	if n == 0 {
		n = 1<<64 - 1
	}
	_, before, _ := p.steps.left()
	p.steps.add(n)
	for {
		left, _, changed := p.steps.left()
		if left == 0 {
			break
		}
		select {
		case <-changed:
			continue
		case <-p.over:
		case <-ctx.Done():
		}
		break
	}
	_, after, _ := p.steps.left()
	return min(after-before, n)
}
