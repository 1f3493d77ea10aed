package rtps

import (
	"sync"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// pacer limits what is sent to one address to what its socket can take: bursts of some size, a rate between them that
// gives way when the peer asks for things again and recovers while it acknowledges, and the bytes on their way. It is
// shared by all writers.
type pacer struct {
	// Guarded by the participant's mutex.
	refs      int // sinks that use it
	flight    int // bytes sent and not acknowledged
	flightMax int // grows while waiting for it brings no loss
	flightMin int
	flightCap int
	large     int              // flight when a large sample was sent last; 0 once it has sunk below flightMax
	waiting   map[*Writer]bool // for flight to sink

	mu     sync.Mutex
	burst  float64 // bytes
	rate   float64 // bytes per ns
	credit float64 // bytes that may be sent now; below zero: debt
	at     mono
	slowed mono
	acked  int // bytes acknowledged since the last step up

	startRate, maxRate float64
}

const (
	gigabyte    = 1.0 // bytes per ns of 1 GB/s
	minRate     = 0.1
	farPeriod   = 8500 // ns a datagram off the host, to begin with: two Gigabit Ethernets, and about what readers take
	shortestNap = 40 * time.Microsecond
	gateLimit   = 100 * time.Millisecond // how long a reader that says nothing is waited for
	flightStep  = 256 << 10
	smallSample = 16 << 10 // bytes; smaller ones do not wait behind a large one
)

// newPacer guesses a start from who the peer is. The default receive buffer of a Linux socket holds three datagrams of
// 60 KB; Cyclone DDS announces the size of its own.
func newPacer(q *peer) *pacer {
	c := &pacer{burst: 84_000, rate: gigabyte, maxRate: 4 * gigabyte, flightMax: 1 << 20, flightCap: 16 << 20, waiting: map[*Writer]bool{}}
	switch {
	case q.vendor == wire.VendorCyclone && q.data.RecvBuffer > 0:
		c.burst = min(max(float64(q.data.RecvBuffer)/4, 64_000), 4e6)
		c.rate = 2 * gigabyte
		c.flightMax = max(512<<10, int(q.data.RecvBuffer/2))
		c.flightCap = max(3<<20, int(q.data.RecvBuffer/4)*3)
	case q.vendor == wire.VendorGobag:
		c.burst, c.rate, c.flightMax = 256_000, 2*gigabyte, 4<<20
	}
	c.credit, c.flightMin, c.startRate = c.burst, c.flightMax, c.rate
	return c
}

// take accounts for n bytes and returns how long to wait before sending them.
func (c *pacer) take(n int, now mono) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now > c.at {
		c.credit = min(c.burst, c.credit+float64(now-c.at)*c.rate)
		c.at = now
	}
	c.credit -= float64(n)
	if c.credit >= 0 {
		return 0
	}
	if d := time.Duration(-c.credit / c.rate); d >= shortestNap {
		return d
	}
	return 0
}

// lost tells that the peer asked for something again. The participant's mutex is held.
func (c *pacer) lost(now mono) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked = 0
	if c.slowed != 0 && now.sub(c.slowed) < 20*time.Millisecond {
		return
	}
	c.slowed = now
	c.rate = max(c.rate*0.7, minRate)
	c.flightMax = max(c.flightMax*7/10, c.flightMin)
}

// got tells that the peer acknowledged n bytes.
func (c *pacer) got(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.acked += n; c.acked >= 1<<20; c.acked -= 1 << 20 {
		c.rate = min(c.rate*1.05, c.maxRate)
	}
}

// renew forgets what was learnt of the rate: datagrams are of another size from now on.
func (c *pacer) renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rate = max(c.rate, c.startRate)
}

// launched adds to the bytes on their way to a reader.
func (k *sink) launched(n int) {
	k.flight += n
	c := k.pacer
	if c.flight += n; n > smallSample {
		c.large = c.flight
	}
}

// landed takes bytes that are acknowledged, or given up, from those on their way.
func (k *sink) landed(n int) {
	n = min(n, k.flight)
	k.flight -= n
	c := k.pacer
	c.flight -= n
	if c.flight < c.flightMax {
		c.large = 0
	}
	if c.flight < c.flightMax && len(c.waiting) > 0 {
		c.flightMax = min(c.flightMax+flightStep, max(c.flightMax, c.flightCap))
		for w := range c.waiting {
			delete(c.waiting, w)
			w.wake()
		}
	}
}

// room reports whether n more bytes may be on their way. Small samples have a quarter on top for themselves: a large one,
// which a reader may take ten milliseconds for, holds up those of its own kind only.
func (c *pacer) room(n int) bool {
	limit := c.flightMax
	if n <= smallSample {
		limit = max(limit, c.large) + c.flightMax/4
	}
	return c.flight+n <= limit
}

// gated reports whether a sample of n bytes must wait for acknowledgements, because a socket may not hold more. A reader
// that says nothing for a while is not waited for.
func (w *Writer) gated(n int) bool {
	now := w.p.now
	wait := false
	for _, k := range w.sinks {
		c := k.pacer
		if !k.reliable || !k.ready || k.flight == 0 || c.room(n) {
			continue
		}
		if k.behind == 0 {
			w.heartbeat(k, false, false) // else nobody tells us
		}
		if until := k.behind.add(gateLimit); until > now {
			c.waiting[w] = true
			w.p.timers.by(&w.gate, until)
			wait = true
		}
	}
	return wait
}

// pacerFor returns the pacer of an address, with a reference.
func (p *Participant) pacerFor(k *sink) *pacer {
	c := p.pacers[k.dst]
	if c == nil {
		c = newPacer(k.peer)
		if !k.peer.local {
			c.rate = min(c.rate, float64(k.cut.frame+datagramTax)/farPeriod)
			c.startRate = c.rate
		}
		p.pacers[k.dst] = c
	}
	c.refs++
	return c // k.flight is 0
}

// dropPacer gives a reference back.
func (p *Participant) dropPacer(k *sink) {
	k.landed(k.flight)
	delete(k.pacer.waiting, k.w)
	if k.pacer.refs--; k.pacer.refs == 0 && p.pacers[k.dst] == k.pacer {
		delete(p.pacers, k.dst)
	}
}
