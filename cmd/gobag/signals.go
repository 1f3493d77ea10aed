package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// stopSignals are what asks a verb to stop in order: Ctrl-C, SIGTERM, and the end of the terminal, unless nohup asked
// for that to be ignored.
func stopSignals() []os.Signal {
	s := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		s = append(s, syscall.SIGHUP)
	}
	return s
}

// sameSignal: what comes this soon after a signal is the same one once more. timeout(1) and other wrappers send it to us
// and then to the whole group.
const sameSignal = 500 * time.Millisecond

// stopper turns signals into two contexts: ctx ends at the first SIGINT, SIGTERM or SIGHUP (stop in order), hurry at the
// second (wait for nobody).
type stopper struct {
	ctx, hurry context.Context
	stop, rush context.CancelFunc
	signals    chan os.Signal
	done       chan struct{}
	once       sync.Once
}

// newStopper listens for signals until Close. onSignal, which may be nil, is called with every one and its number,
// counted from 1.
func newStopper(parent context.Context, onSignal func(s os.Signal, n int)) *stopper {
	s := &stopper{signals: make(chan os.Signal, 4), done: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(parent)
	s.hurry, s.rush = context.WithCancel(parent)
	signal.Ignore(syscall.SIGPIPE) // who closes our output does not end the work
	signal.Notify(s.signals, stopSignals()...)
	go s.run(onSignal)
	return s
}

func (s *stopper) run(onSignal func(os.Signal, int)) {
	defer close(s.done)
	n := 0
	var last time.Time
	for sig := range s.signals {
		if n > 0 && time.Since(last) < sameSignal {
			continue
		}
		last = time.Now()
		n++
		if onSignal != nil {
			onSignal(sig, n)
		}
		if n == 1 {
			s.stop()
		} else {
			s.rush()
		}
	}
}

// Close gives the signals back to their default. Idempotent.
func (s *stopper) Close() {
	s.once.Do(func() {
		signal.Stop(s.signals)
		close(s.signals)
		<-s.done
		s.stop()
		s.rush()
	})
}
