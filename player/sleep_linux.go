package player

import (
	"runtime"
	"syscall"
	"time"
)

// fineSleep is the last part of a wait: below it the runtime's timers, which are a millisecond late, give way to
// nanosleep(2) on a thread of its own without timer slack.
const fineSleep = 3 * time.Millisecond

const prSetTimerSlack = 29 // prctl(2)

// lockThread prepares the calling goroutine for sleepFine; the function returned undoes it.
func lockThread() (unlock func()) {
	runtime.LockOSThread()
	syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 1, 0) // 1 ns; where refused, 50 µs remain
	return func() {
		syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 0, 0) // back to the default
		runtime.UnlockOSThread()
	}
}

// sleepFine sleeps until t, at most fineSleep away. Signals do not cut it short.
func sleepFine(t time.Time) {
	for d := time.Until(t); d > 0; d = time.Until(t) {
		ts := syscall.NsecToTimespec(int64(d))
		if err := syscall.Nanosleep(&ts, nil); err != nil && err != syscall.EINTR {
			time.Sleep(d)
		}
	}
}
