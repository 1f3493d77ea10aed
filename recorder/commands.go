package recorder

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
)

// commands are calls that the writer goroutine makes between two batches.
type commands struct {
	queue  chan func(*writer)
	wake   atomic.Pointer[context.CancelFunc] // ends the wait for messages
	closed chan struct{}
	once   sync.Once
}

// maxCommands may wait for the writer goroutine; further callers wait for it themselves.
const maxCommands = 16

func (c *commands) init() {
	c.queue, c.closed = make(chan func(*writer), maxCommands), make(chan struct{})
}

// context bounds the next wait for messages: by the tick, or by the next command.
func (c *commands) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), writerTick)
	c.wake.Store(&cancel)
	return ctx, cancel
}

// run makes the calls that wait.
func (c *commands) run(w *writer) {
	for {
		select {
		case f := <-c.queue:
			f(w)
		default:
			return
		}
	}
}

// close refuses commands from now on.
func (c *commands) close() { c.once.Do(func() { close(c.closed) }) }

// post hands a call to the writer goroutine.
func (c *commands) post(f func(*writer)) error {
	select {
	case <-c.closed:
		return ErrNotRecording
	default:
	}
	select {
	case c.queue <- f:
	case <-c.closed:
		return ErrNotRecording
	}
	if wake := c.wake.Load(); wake != nil {
		(*wake)()
	}
	return nil
}

// do is post that waits for the call to return.
func (c *commands) do(f func(*writer)) error {
	done := make(chan struct{})
	if err := c.post(func(w *writer) { f(w); close(done) }); err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-c.closed:
		select {
		case <-done:
			return nil
		default:
			return ErrNotRecording
		}
	}
}

// Split ends the file being written and begins a new one. Without messages in the current file it does nothing.
func (r *Recorder) Split() error {
	if State(r.state.Load()) != StateRecording {
		return ErrNotRecording
	}
	if r.o.SnapshotMode {
		return fmt.Errorf("split: %w", ErrNoSnapshotMode)
	}
	var err error
	if cerr := r.commands.do(func(w *writer) {
		if w.bag == nil {
			return
		}
		if w.failed == nil {
			w.r.busy.begin()
			err = w.bag.Split()
			w.r.busy.end()
		} else {
			err = w.failed
		}
	}); cerr != nil {
		return cerr
	}
	return err
}

// emitSplit tells that a file was closed; opened is "" at the end of the bag.
func (r *Recorder) emitSplit(closed, opened string) {
	if opened != "" {
		r.emit(EventSplit, slog.LevelInfo, "", fmt.Sprintf("split: closed %s, opened %s", closed, opened))
	}
	if r.o.OnSplit != nil {
		r.o.OnSplit(closed, opened)
	}
}

// Stop ends the recording in order, as the end of Run's context does. It does not wait.
func (r *Recorder) Stop() { r.stop(StopAsked, nil) }

// StopDiscovery keeps what is subscribed and looks for no further topics. Calling it again does nothing.
func (r *Recorder) StopDiscovery() { r.undiscovered.Store(true) }

// StartDiscovery looks for topics again after StopDiscovery.
func (r *Recorder) StartDiscovery() { r.undiscovered.Store(false) }

// Discovering says whether topics are looked for.
func (r *Recorder) Discovering() bool {
	return State(r.state.Load()) == StateRecording && !r.undiscovered.Load() && !r.o.NoDiscovery
}
