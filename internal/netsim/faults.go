package netsim

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"
)

// Faults says what happens to datagrams. The zero value is a perfect network.
type Faults struct {
	Seed uint64

	Loss, Duplicate, Reorder float64 // probabilities, 0 to 1

	Delay  time.Duration // of every datagram
	Jitter time.Duration // 0 to so much more, by chance
	Hold   time.Duration // by how much a reordered datagram comes late; default 5 ms

	// Drop loses the datagrams for which it is true. It runs under a lock of the network: it must not call it.
	Drop func(*Datagram) bool

	// Tap sees every datagram and whether it is lost. Like Drop it must not call the network.
	Tap func(d *Datagram, lost bool)
}

// Stats counts datagrams.
type Stats struct {
	Sent, Lost, Duplicated int // Lost by faults
	Overflowed             int // given up because a receiver's queue was full
}

// judge decides about datagrams.
type judge struct {
	mu     sync.Mutex
	faults Faults
	flows  map[[2]netip.Addr]*flow
	parser parser
	stats  Stats
}

// flow is the path between two addresses.
type flow struct {
	rnd *rand.Rand
	n   int
}

// set replaces the faults. Paths start anew if the seed differs.
func (j *judge) set(f Faults) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.flows == nil || f.Seed != j.faults.Seed {
		j.flows = map[[2]netip.Addr]*flow{}
	}
	if f.Hold == 0 {
		f.Hold = 5 * time.Millisecond
	}
	j.faults = f
}

// decide says how often the datagram arrives (0 to 2 times) and how late each time.
func (j *judge) decide(from, to netip.AddrPort, multicast bool, b []byte) (late [2]time.Duration, copies int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := &j.faults
	key := [2]netip.Addr{from.Addr(), to.Addr()}
	path := j.flows[key]
	if path == nil {
		path = &flow{rnd: rand.New(rand.NewPCG(f.Seed, hash(key)))}
		j.flows[key] = path
	}
	path.n++
	j.stats.Sent++

	// All numbers are drawn whatever the outcome: one setting does not shift the chances of another.
	loss, duplicate, reorder := path.rnd.Float64() < f.Loss, path.rnd.Float64() < f.Duplicate, path.rnd.Float64() < f.Reorder
	for i := range late {
		late[i] = f.Delay + time.Duration(path.rnd.Float64()*float64(f.Jitter))
	}
	if reorder {
		late[0] += f.Hold
	}
	if f.Drop != nil || f.Tap != nil {
		d := Datagram{From: from, To: to, Multicast: multicast, N: path.n, Bytes: b, Submessages: j.parser.parse(b)}
		if f.Drop != nil && f.Drop(&d) {
			loss = true
		}
		if f.Tap != nil {
			f.Tap(&d, loss)
		}
	}
	switch {
	case loss:
		j.stats.Lost++
		return late, 0
	case duplicate:
		j.stats.Duplicated++
		return late, 2
	}
	return late, 1
}

func (j *judge) overflow(n int) {
	j.mu.Lock()
	j.stats.Overflowed += n
	j.mu.Unlock()
}

func (j *judge) count() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stats
}

// hash mixes two addresses (FNV-1a).
func hash(key [2]netip.Addr) uint64 {
	h := uint64(14695981039346656037)
	for _, a := range key {
		for _, c := range a.As16() {
			h = (h ^ uint64(c)) * 1099511628211
		}
	}
	return h
}
