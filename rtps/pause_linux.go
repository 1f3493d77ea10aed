package rtps

import (
	"time"

	"golang.org/x/sys/unix"
)

// pause sleeps for microseconds with the precision of nanosleep(2); time.Sleep takes over a millisecond for any of
// them.
func pause(d time.Duration) {
	if d > 2*time.Millisecond {
		time.Sleep(d)
		return
	}
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil)
}
