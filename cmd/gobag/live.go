package main

import (
	"sync"
	"time"
)

// live redraws a status line on a terminal. Without a terminal it does nothing at all, not even wake up.
type live struct {
	con  *console
	stop chan struct{}
	wg   sync.WaitGroup
	once sync.Once
}

func startLive(con *console, every time.Duration, line func() string) *live {
	l := &live{con: con, stop: make(chan struct{})}
	if !con.Terminal() {
		return l
	}
	l.wg.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-l.stop:
				return
			case <-tick.C:
				con.SetStatus(line())
			}
		}
	})
	return l
}

// Stop takes the line away. Idempotent.
func (l *live) Stop() {
	l.once.Do(func() {
		close(l.stop)
		l.wg.Wait()
		l.con.SetStatus("")
	})
}
