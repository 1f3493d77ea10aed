package rostest

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/ros"
)

// pair is a publisher matched with a subscription.
type pair struct {
	pub      *publisher
	sub      *subscription
	reliable bool
	random   *rand.Rand // under the network's lock
	offered  int        // samples sent this way, under the network's lock
	due      time.Time  // of the latest of them: a shorter delay must not change their order
	pending  atomic.Int64

	stats ros.WriterStats // under sub.mu
}

// match pairs two endpoints of a topic if they are compatible, and sends the history that a transient-local
// subscription asks for. n.mu is held.
func (n *Network) match(t *topic, p *publisher, s *subscription) {
	if _, ok := mismatch(p, s); ok || p.node == s.node {
		return
	}
	q := s.qos.Resolve(p.qos)
	pr := &pair{pub: p, sub: s, reliable: q.Reliability == ros.Reliable, random: n.random(p.id, s.id, t.name)}
	p.pairs = append(p.pairs, pr)
	s.add(pr)
	if pr.reliable && q.Durability == ros.TransientLocal {
		for _, old := range p.history {
			n.send(t, pr, old)
		}
	}
}

// mismatch says why two endpoints of one topic do not pair.
func mismatch(p *publisher, s *subscription) (reason string, mismatched bool) {
	if p.topic.Type != s.topic.Type {
		return "type: offered " + p.topic.Type + ", requested " + s.topic.Type, true
	}
	reason, ok := ros.Compatible(p.qos, s.qos)
	return reason, !ok
}

// record is a published sample.
type record struct {
	data       []byte
	sourceTime int64
	seq        uint64
}

// send puts a sample on its way to the subscription, or loses it. n.mu is held.
func (n *Network) send(t *topic, p *pair, r record) {
	l := t.link
	if due := time.Now().Add(l.Delay); due.After(p.due) {
		p.due = due
	}
	it := item{due: p.due, pair: p, sourceTime: r.sourceTime, seq: r.seq}
	lost := p.random.Float64() < l.Loss && p.offered >= l.Spare
	lost = l.Drop != nil && l.Drop(p.pub.id, r.seq) || lost
	full := p.sub.node.queue.full(len(r.data)) != nil
	p.offered++
	t.traffic.Offered++
	if lost || full {
		t.traffic.Dropped++
		if !p.reliable {
			return
		}
		if full {
			p.pub.dropped++
		}
	} else {
		it.buffer = n.buffer(r.data)
	}
	p.pending.Add(1)
	p.sub.node.queue.push(it)
}

// deliver hands an item to the subscription, on the receiving node's goroutine; true if that is going to free its room.
func (p *pair) deliver(it item) (held bool) {
	s := p.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offer != nil && p.reliable && !s.closed {
		s.held = append(s.held, it)
		if len(s.held) == 1 {
			s.offerHeld()
		}
		return true
	}
	p.hand(it, nil)
	return false
}

// hand gives an item to the handler, or to offer unless that is nil; false if it was refused. s.mu is held.
func (p *pair) hand(it item, offer func(ros.Sample) bool) bool {
	s := p.sub
	if s.closed {
		p.pending.Add(-1)
		it.discard()
		return true
	}
	var sample ros.Sample
	now := s.node.net.clock.Now()
	if it.buffer != nil {
		sample = ros.Sample{Data: it.buffer.data, SourceTime: it.sourceTime, RecvTime: now, Writer: p.pub.id, Seq: it.seq,
			Cost: cap(it.buffer.data) + bufferOverhead, Owner: it.buffer}
		if sample.SourceTime == 0 {
			sample.SourceTime = now
		}
		if offer != nil && !offer(sample) {
			return false
		}
	}
	p.pending.Add(-1)
	w := &p.stats
	if it.buffer == nil { // only reliable publishers say so
		w.Lost++
		return true
	}
	switch {
	case w.First == 0:
		w.First = it.seq
	case !p.reliable && it.seq > w.Last+1:
		w.Lost += it.seq - w.Last - 1
	}
	w.Last = it.seq
	w.Received++
	if offer == nil {
		s.handler(sample)
	}
	return true
}

// buffer owns the data of one sample.
type buffer struct {
	net  *Network
	data []byte
	used atomic.Bool
}

const bufferOverhead = 64 // bytes of a buffer besides its data

// buffer returns a copy of data that counts as outstanding until its release.
func (n *Network) buffer(data []byte) *buffer {
	b := n.pool.Get().(*buffer)
	b.net = n
	b.data = append(b.data[:0], data...)
	b.used.Store(true)
	n.live.Add(1)
	return b
}

// Release implements ros.Owner. It overwrites the start of the data, so that a use after it shows, and panics when the
// sample was released before.
func (b *buffer) Release([]byte) {
	if !b.used.CompareAndSwap(true, false) {
		panic("rostest: sample released twice")
	}
	for i := range min(len(b.data), 64) {
		b.data[i] = 0xdb
	}
	b.net.live.Add(-1)
	b.net.pool.Put(b)
}
