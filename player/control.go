package player

import (
	"fmt"
	"log/slog"
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
		select { // a step that was asked for too late
		case <-p.step:
		default:
		}
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
	select {
	case p.step <- struct{}{}:
	default: // one is asked for already
	}
	return true
}
