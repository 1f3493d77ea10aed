//go:build !linux

package player

import "time"

// preciseSleeper leaves nothing to itself: the runtime's timers are as precise as can be had without more packages.
var preciseSleeper = sleeper{lock: func() func() { return func() {} }, until: func(at time.Time) { time.Sleep(time.Until(at)) }}
