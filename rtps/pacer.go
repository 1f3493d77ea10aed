package rtps

import (
	"sync"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// pacer limits what is sent to one address to what its socket can take: bursts of some size, and a rate between them
// that gives way when the peer asks for things again and recovers while it acknowledges. It is shared by all writers.
type pacer struct {
	refs int // sinks that use it; participant's mutex

	mu      sync.Mutex
	burst   float64 // bytes
	rate    float64 // bytes per ns
	credit  float64 // bytes that may be sent now; below zero: debt
	at      mono
	slowed  mono
	acked   int // bytes acknowledged since the last step up
	maxRate float64
}

const (
	gigabyte    = 1.0  // bytes per ns of 1 GB/s
	minRate     = 0.02 // 20 MB/s
	shortestNap = 40 * time.Microsecond
)

// newPacer guesses a start from who the peer is. The default receive buffer of a Linux socket holds three datagrams of
// 60 KB; Cyclone DDS announces the size of its own.
func newPacer(q *peer) *pacer {
	c := &pacer{burst: 84_000, rate: gigabyte, maxRate: 4 * gigabyte}
	switch {
	case q.vendor == wire.VendorCyclone && q.data.RecvBuffer > 0:
		c.burst = min(max(float64(q.data.RecvBuffer)/4, 64_000), 4e6)
		c.rate = 2 * gigabyte
	case q.vendor == wire.VendorGobag:
		c.burst, c.rate = 256_000, 2*gigabyte
	}
	c.credit = c.burst
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

// lost tells that the peer asked for something again.
func (c *pacer) lost(now mono) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked = 0
	if c.slowed != 0 && now.sub(c.slowed) < 20*time.Millisecond {
		return
	}
	c.slowed = now
	c.rate = max(c.rate*0.7, minRate)
}

// got tells that the peer acknowledged n bytes.
func (c *pacer) got(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.acked += n; c.acked >= 1<<20 {
		c.acked = 0
		c.rate = min(c.rate*1.05, c.maxRate)
	}
}

// pacerFor returns the pacer of an address, with a reference.
func (p *Participant) pacerFor(k *sink) *pacer {
	c := p.pacers[k.dst]
	if c == nil {
		c = newPacer(k.peer)
		p.pacers[k.dst] = c
	}
	c.refs++
	return c
}

// dropPacer gives a reference back.
func (p *Participant) dropPacer(k *sink) {
	if k.pacer.refs--; k.pacer.refs == 0 && p.pacers[k.dst] == k.pacer {
		delete(p.pacers, k.dst)
	}
}
