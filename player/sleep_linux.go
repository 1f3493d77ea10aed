package player

import (
	"runtime"
	"syscall"
	"time"
)

// preciseSleeper leaves the last 3 ms of a wait to nanosleep(2) on a thread of its own without timer slack, since the
// runtime's timers are a millisecond late.
var preciseSleeper = sleeper{span: 3 * time.Millisecond, lock: lockThread, until: sleepFine}

const prSetTimerSlack = 29 // prctl(2)

// lockThread prepares the calling goroutine for sleepFine; the function returned undoes it.
func lockThread() (unlock func()) {
	runtime.LockOSThread()
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 1, 0) // 1 ns; where refused, 50 µs remain
	return func() {
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 0, 0) // back to the default
		runtime.UnlockOSThread()
	}
}

// sleepFine sleeps until t. Signals do not cut it short.
func sleepFine(t time.Time) {
	for d := time.Until(t); d > 0; d = time.Until(t) {
		ts := syscall.NsecToTimespec(int64(d))
		if err := syscall.Nanosleep(&ts, nil); err != nil && err != syscall.EINTR {
			time.Sleep(d)
		}
	}
}
