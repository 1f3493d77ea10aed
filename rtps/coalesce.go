package rtps

import "time"

// A socket on which thousands of small datagrams come in a second, one by one, costs more in wake-ups than in work. Then
// reading waits a moment after each batch, so that some come together. What it costs is latency of two milliseconds; stamps
// are the kernel's (see socket.receive), and where waiting does not bring more at once, say because the sender waits for
// our answer, it is given up for a while.
const (
	lullWindow = 10 * time.Millisecond // over which datagrams are counted
	lullRate   = 20                    // datagrams in a window from which on it is worth it: 2,000 a second
	lullBatch  = 32                    // a batch of so many datagrams needs no waiting
	lullSize   = 1500                  // nor one of datagrams of so many bytes on average: a wake-up is little beside them
	lull       = 2 * time.Millisecond  // how long reading waits
	lullMisses = 5                     // waits in a row that brought at most two datagrams: they do not help
	lullPause  = 500 * time.Millisecond
)

// lulls decides when reading waits. The zero value is ready.
type lulls struct {
	window    time.Duration // when the current one began
	datagrams int           // in it
	on        bool
	waited    bool // before the current batch
	misses    int
	banned    time.Duration // no waiting before
}

// after takes notice of a batch of n datagrams with so many bytes that was dealt with at a monotonic time, and returns how
// long to wait before the next one is read.
func (l *lulls) after(n, bytes int, now time.Duration) time.Duration {
	if l.waited {
		l.waited = false
		if l.misses++; n > 2 {
			l.misses = 0
		}
		if l.misses >= lullMisses {
			*l = lulls{window: now, banned: now + lullPause}
		}
	}
	l.datagrams += n
	if now-l.window >= lullWindow {
		// Only full windows count: the first datagram after a silence begins one.
		l.on = now-l.window < 2*lullWindow && l.datagrams >= lullRate && now >= l.banned
		l.window, l.datagrams = now, 0
	}
	if !l.on || n >= lullBatch || bytes >= n*lullSize {
		return 0
	}
	l.waited = true
	return lull
}
