package player

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// State says what a player is doing.
type State int32

// The states of a player.
const (
	StateWaiting State = iota // for discovery
	StateDelay                // Options.Delay
	StatePlaying
	StatePaused
	StateStopped
)

// String names the state.
func (s State) String() string {
	return [...]string{"waiting", "delay", "playing", "paused", "stopped"}[s]
}

// Snapshot is the state of a playback at one moment, for a progress line.
type Snapshot struct {
	State      State
	Position   int64 // bag time, ns since the Unix epoch
	Start, End int64 // of what is played, ns since the Unix epoch
	Elapsed    time.Duration
	Total      time.Duration
	Rate       float64
	Played     uint64
	Loops      uint64
	Lateness   Lateness
}

// Snapshot describes the playback as it stands.
func (p *Player) Snapshot() Snapshot {
	s := Snapshot{State: State(p.state.Load()), Start: p.start, End: p.end, Rate: p.clock.getRate(), Played: p.played.Load(),
		Loops: p.loops.Load(), Lateness: p.lateness.summary()}
	s.Position = p.start
	if s.State >= StatePlaying {
		s.Position = max(p.start, min(p.clock.now(), p.end))
	}
	if s.State == StatePlaying && p.clock.isPaused() {
		s.State = StatePaused
	}
	s.Elapsed, s.Total = time.Duration(sub(s.Position, s.Start)), time.Duration(max(0, sub(s.End, s.Start)))
	return s
}

// Pause stops the bag's time. Calling it again does nothing.
func (p *Player) Pause() {
	if p.clock.setPaused(true) {
		p.emit(EventPaused, slog.LevelInfo, "", "Pausing play.")
	}
}

// Resume lets the bag's time run again, from where it stopped. Calling it again does nothing.
func (p *Player) Resume() {
	if p.clock.setPaused(false) {
		p.steps.clear() // what was asked for too late
		p.emit(EventResumed, slog.LevelInfo, "", "Resuming play.")
	}
}

// Toggle pauses or resumes and reports whether the playback is paused now.
func (p *Player) Toggle() bool {
	if p.clock.isPaused() {
		p.Resume()
	} else {
		p.Pause()
	}
	return p.clock.isPaused()
}

// Paused says whether the playback is paused.
func (p *Player) Paused() bool { return p.clock.isPaused() }

// Rate returns the rate.
func (p *Player) Rate() float64 { return p.clock.getRate() }

// SetRate changes the rate from the bag time reached on. The error says that it is not more than 0.
func (p *Player) SetRate(rate float64) error {
	if err := checkRate(rate); err != nil {
		return err
	}
	p.clock.setRate(rate)
	p.emit(EventRate, slog.LevelInfo, "", fmt.Sprintf("Set rate to %g", rate))
	return nil
}

// PlayNext publishes the next message at once, whatever its time, and moves the bag's time to it. It returns false, and
// does nothing, unless the playback is paused.
func (p *Player) PlayNext() bool {
	if !p.clock.isPaused() || State(p.state.Load()) != StatePlaying {
		return false
	}
	p.steps.add(1)
	return true
}

// SeekTo goes to a stamp of the bag, ns since the Unix epoch: playback goes on from there, or stays paused there. A stamp
// before the start counts as the start; one behind the end is refused. What latched topics published before is published
// first.
func (p *Player) SeekTo(stamp int64) bool {
	if s := State(p.state.Load()); s == StateStopped || stamp > p.end {
		return false
	}
	stamp = max(stamp, p.start)
	p.seek.set(stamp)
	p.clock.jump(stamp) // who waits looks again
	p.emit(EventOther, slog.LevelInfo, "", fmt.Sprintf("Playing from %.3f s of the bag", float64(sub(stamp, p.start))/1e9))
	return true
}

// Stop ends the playback in order, as the end of Run's context does. It does not wait.
func (p *Player) Stop() {
	if cancel := p.cancel.Load(); cancel != nil {
		(*cancel)()
	}
}

// Bounds returns the stamps where playback begins and ends, ns since the Unix epoch.
func (p *Player) Bounds() (start, end int64) { return p.start, p.end }

// seek is another place that the playback is to go on from.
type seek struct {
	mu    sync.Mutex
	to    int64
	given atomic.Bool
	wake  chan struct{} // holds a token while given
}

func (s *seek) init() { s.wake = make(chan struct{}, 1) }

func (s *seek) set(to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = to
	s.given.Store(true)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *seek) pending() bool { return s.given.Load() }

func (s *seek) take() (to int64, given bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, given = s.to, s.given.Swap(false)
	select {
	case <-s.wake:
	default:
	}
	return to, given
}
