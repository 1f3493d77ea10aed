package rostest

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gobag/gobag/ros"
)

// publisher implements ros.Publisher. Everything is guarded by the network's lock.
type publisher struct {
	endpoint
	closed  bool
	seq     uint64
	history []record // what late joiners get; empty unless transient local
	pairs   []*pair  // with open subscriptions
	dropped uint64
}

func (p *publisher) Topic() ros.Topic { return p.topic }

// Publish implements ros.Publisher.
func (p *publisher) Publish(data []byte, sourceTime int64) error {
	n := p.node.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if !p.closed {
		p.await(len(data))
	}
	if p.closed {
		return fmt.Errorf("publish %s: %w", p.topic.Name, ros.ErrClosed)
	}
	t := n.topic(p.topic.Name)
	t.traffic.Published++
	p.seq++
	r := record{data: data, sourceTime: sourceTime, seq: p.seq}
	for _, pr := range p.pairs {
		n.send(t, pr, r)
	}
	if p.qos.Durability == ros.TransientLocal {
		r.data = bytes.Clone(data)
		p.history = append(p.history, r)
		if p.qos.History == ros.KeepLast && len(p.history) > p.qos.Depth {
			p.history = slices.Delete(p.history, 0, len(p.history)-p.qos.Depth)
		}
	}
	return nil
}

// await waits, at most for the blocking time, until every reliable receiver has room. n.mu is held, but not while waiting.
func (p *publisher) await(size int) {
	n := p.node.net
	var timeout <-chan time.Time
	for {
		var full <-chan struct{}
		for _, pr := range p.pairs {
			if pr.reliable && full == nil {
				full = pr.sub.node.queue.full(size)
			}
		}
		if full == nil {
			return
		}
		if timeout == nil {
			timer := time.NewTimer(n.options.MaxBlocking)
			defer timer.Stop()
			timeout = timer.C
		}
		n.mu.Unlock()
		expired := false
		select {
		case <-full:
		case <-timeout:
			expired = true
		}
		n.mu.Lock()
		if expired || p.closed {
			return
		}
	}
}

// Stats implements ros.Publisher.
func (p *publisher) Stats() ros.PublisherStats {
	n := p.node.net
	n.mu.Lock()
	defer n.mu.Unlock()
	st := ros.PublisherStats{Sent: p.seq, Matched: len(p.pairs), Dropped: p.dropped}
	for _, pr := range p.pairs {
		if pr.reliable {
			st.Reliable++
			st.Unacked = max(st.Unacked, int(pr.pending.Load()))
		}
	}
	if !p.closed {
		for _, s := range n.topic(p.topic.Name).subs {
			if reason, ok := mismatch(p, s); ok && p.node != s.node {
				st.Mismatches = append(st.Mismatches, ros.Mismatch{ID: s.id, Reason: reason})
			}
		}
	}
	return st
}

// Close implements ros.Publisher. What was published still arrives.
func (p *publisher) Close() error {
	n := p.node.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	for _, pr := range p.pairs {
		pr.sub.unmatch(pr)
	}
	p.pairs, p.history = nil, nil
	t := n.topic(p.topic.Name)
	t.pubs = slices.DeleteFunc(t.pubs, func(o *publisher) bool { return o == p })
	p.node.pubs = slices.DeleteFunc(p.node.pubs, func(o *publisher) bool { return o == p })
	n.notify()
	return nil
}

// subscription implements ros.Subscription.
type subscription struct {
	endpoint
	handler func(ros.Sample)
	offer   func(ros.Sample) bool // nil: nothing is refused

	mu     sync.Mutex // held during the handler's calls; taken after the network's lock
	closed bool
	held   []item  // refused and what came behind it
	pairs  []*pair // those of publishers that left too; changed under both locks
}

func (s *subscription) Topic() ros.Topic { return s.topic }

func (s *subscription) add(p *pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.stats = ros.WriterStats{ID: p.pub.id, Matched: true, Reliable: p.reliable}
	s.pairs = append(s.pairs, p)
}

func (s *subscription) unmatch(p *pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.stats.Matched = false
}

// Stats implements ros.Subscription.
func (s *subscription) Stats() ros.SubscriptionStats {
	n := s.node.net
	n.mu.Lock()
	defer n.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	var st ros.SubscriptionStats
	for _, p := range s.pairs {
		st.Received += p.stats.Received
		st.Lost += p.stats.Lost
		st.Writers = append(st.Writers, p.stats)
	}
	if !s.closed {
		for _, p := range n.topic(s.topic.Name).pubs {
			if reason, ok := mismatch(p, s); ok && p.node != s.node {
				st.Mismatches = append(st.Mismatches, ros.Mismatch{ID: p.id, Reason: reason})
			}
		}
	}
	return st
}

// Close implements ros.Subscription.
func (s *subscription) Close() error {
	n := s.node.net
	n.mu.Lock()
	t := n.topic(s.topic.Name)
	if slices.Contains(t.subs, s) {
		t.subs = slices.DeleteFunc(t.subs, func(o *subscription) bool { return o == s })
		s.node.subs = slices.DeleteFunc(s.node.subs, func(o *subscription) bool { return o == s })
		for _, p := range s.pairs {
			p.pub.pairs = slices.DeleteFunc(p.pub.pairs, func(o *pair) bool { return o == p })
		}
		n.notify()
	}
	n.mu.Unlock()

	s.mu.Lock() // waits for the handler
	defer s.mu.Unlock()
	s.closed = true
	s.dropHeld()
	for _, p := range s.pairs {
		p.stats.Matched = false
	}
	return nil
}
