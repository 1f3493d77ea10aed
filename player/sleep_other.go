//go:build !linux

package player

import "time"

// fineSleep is the last part of a wait. The runtime's timers are precise enough here, so it is as good as empty.
const fineSleep = 0

func lockThread() (unlock func()) { return func() {} }

func sleepFine(t time.Time) { time.Sleep(time.Until(t)) }
