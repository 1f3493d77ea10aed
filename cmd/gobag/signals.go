package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
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

// stopper turns signals into two contexts: ctx ends at the first SIGINT, SIGTERM or SIGHUP (stop in order), hurry at the second
// (leave out what may be left out: what is in memory still goes to disk, nobody is waited for).
type stopper struct {
	ctx, hurry context.Context
	stop, rush context.CancelFunc
	signals    chan os.Signal
	done       chan struct{}
	once       sync.Once
	got        os.Signal // what ended ctx; read after ctx.Done()
}

// newStopper listens for signals until Close. onSignal, which may be nil, is called with every one and its number,
// counted from 1.
func newStopper(parent context.Context, onSignal func(s os.Signal, n int)) *stopper {
	s := &stopper{signals: make(chan os.Signal, 4), done: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(parent)
	s.hurry, s.rush = context.WithCancel(parent)
	signal.Ignore(syscall.SIGPIPE) // who closes our output does not end the work
	signal.Notify(s.signals, stopSignals()...)
	go func() {
		defer close(s.done)
		n := 0
		for sig := range s.signals {
			n++
			if n == 1 {
				s.got = sig
			}
			if onSignal != nil {
				onSignal(sig, n)
			}
			if n == 1 {
				s.stop()
			} else {
				s.rush()
			}
		}
	}()
	return s
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
