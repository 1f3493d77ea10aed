package ros1

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/ros"
)

// topicSub is what a node receives of a topic: one connection to each publisher, whose messages go to all subscriptions
// of ours.
type topicSub struct {
	n    *Node
	name string
	typ  string // of the first subscription

	regMu   sync.Mutex // one registration at a time, and none after the end
	ctx     context.Context
	cancel  context.CancelFunc
	workers sync.WaitGroup
	once    sync.Once

	mu      sync.Mutex       // guards what follows
	links   map[string]*link // by the publisher's address
	writers []*writer        // ever connected
	md5     string           // of the first publisher; others are refused
	over    bool

	subsMu sync.RWMutex // held for reading while handlers run
	subs   []*Subscription
}

// Subscription is a ros.Subscription.
type Subscription struct {
	ts       *topicSub
	topic    ros.Topic
	handler  func(ros.Sample)
	received atomic.Uint64

	mu    sync.Mutex
	final *ros.SubscriptionStats
	base  map[*writer]uint64 // what had been received when it began
}

// Subscribe implements ros.Node. The QoS makes no difference: ROS 1 has none to choose, and latched messages always come.
func (n *Node) Subscribe(t ros.Topic, _ ros.QoS, h func(ros.Sample)) (ros.Subscription, error) {
	if err := n.checkTopic("subscribe", t); err != nil {
		return nil, err
	}
	if h == nil {
		return nil, fmt.Errorf("subscribe %s: no handler", t.Name)
	}
	s := &Subscription{topic: t, handler: h, base: map[*writer]uint64{}}
	for {
		n.mu.Lock()
		if n.closed {
			n.mu.Unlock()
			return nil, fmt.Errorf("subscribe %s: %w", t.Name, ros.ErrClosed)
		}
		ts, have := n.subs[t.Name]
		if !have {
			ts = &topicSub{n: n, name: t.Name, typ: t.Type, links: map[string]*link{}}
			ts.ctx, ts.cancel = context.WithCancel(n.ctx)
			n.subs[t.Name] = ts
		}
		n.mu.Unlock()
		s.ts = ts
		if !ts.add(s) { // the last one was closed just now
			time.Sleep(time.Millisecond)
			continue
		}
		if !have {
			ts.register()
		}
		n.nudge()
		return s, nil
	}
}

// add puts a subscription in, unless the topic is closed.
func (ts *topicSub) add(s *Subscription) bool {
	ts.mu.Lock()
	for _, w := range ts.writers {
		s.base[w] = w.received.Load()
	}
	ts.mu.Unlock()
	ts.subsMu.Lock()
	defer ts.subsMu.Unlock()
	if ts.ctx.Err() != nil {
		return false
	}
	ts.subs = append(ts.subs, s)
	return true
}

// register tells the master, which names the publishers. Where it does not answer the node tries again when it does.
func (ts *topicSub) register() {
	ts.regMu.Lock()
	defer ts.regMu.Unlock()
	if ts.ctx.Err() != nil {
		return
	}
	uris, err := ts.n.master.RegisterSubscriber(ts.name, ts.typ, ts.n.uri)
	if err != nil {
		ts.n.o.Logger.Debug("registering a subscription failed, trying again", "topic", ts.name, "err", err)
		return
	}
	ts.update(uris)
}

// update opens connections to new publishers. Those to publishers that the master does not name any more end by
// themselves: it may have been restarted and know nobody.
func (ts *topicSub) update(uris []string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.over || ts.ctx.Err() != nil {
		return
	}
	for uri, l := range ts.links {
		l.named.Store(slices.Contains(uris, uri))
		select {
		case l.poke <- struct{}{}:
		default:
		}
	}
	for _, uri := range uris {
		if uri == ts.n.uri || ts.links[uri] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(ts.ctx)
		k := &link{ts: ts, uri: uri, cancel: cancel, poke: make(chan struct{}, 1)}
		k.named.Store(true)
		ts.links[uri] = k
		ts.workers.Go(func() { k.run(ctx) })
	}
}

// unregister tells the master that nothing is wanted any more, ends the connections and waits for them.
func (ts *topicSub) unregister() { ts.once.Do(ts.end) }

func (ts *topicSub) end() {
	ts.cancel()
	ts.regMu.Lock() // no registration comes after
	if !ts.n.down.Load() {
		ts.n.unregistered("subscription", ts.name, ts.n.master.UnregisterSubscriber(ts.name, ts.n.uri))
	}
	ts.regMu.Unlock()
	ts.mu.Lock()
	ts.over = true // no connection comes after
	ts.mu.Unlock()
	ts.workers.Wait()
	ts.subsMu.Lock()
	subs := ts.subs
	ts.subs = nil
	ts.subsMu.Unlock()
	for _, s := range subs {
		s.keep()
	}
}

// deliver hands a sample to all subscriptions; the first gets the data itself, others copies.
func (ts *topicSub) deliver(s ros.Sample) {
	ts.subsMu.RLock()
	defer ts.subsMu.RUnlock()
	if len(ts.subs) == 0 {
		s.Release()
		return
	}
	for _, sub := range ts.subs[1:] {
		c := s
		c.Data, c.Owner = append([]byte(nil), s.Data...), nil
		sub.received.Add(1)
		sub.handler(c)
	}
	ts.subs[0].received.Add(1)
	ts.subs[0].handler(s)
}

// Topic implements ros.Subscription. The hash is that of the publishers, once one is connected.
func (s *Subscription) Topic() ros.Topic {
	t := s.topic
	s.ts.mu.Lock()
	defer s.ts.mu.Unlock()
	if s.ts.md5 != "" {
		t.TypeHash = s.ts.md5
	}
	return t
}

// Stats implements ros.Subscription. What was lost on the way is not known in ROS 1, except for messages that were too
// large.
func (s *Subscription) Stats() ros.SubscriptionStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.final != nil {
		return *s.final
	}
	return s.stats(true)
}

func (s *Subscription) stats(open bool) ros.SubscriptionStats {
	ts := s.ts
	ts.mu.Lock()
	defer ts.mu.Unlock()
	st := ros.SubscriptionStats{Received: s.received.Load()}
	for _, w := range ts.writers {
		_, before := s.base[w]
		st.Lost += w.lost.Load()
		ws := ros.WriterStats{ID: w.id, Received: w.received.Load() - s.base[w], Lost: w.lost.Load(), Matched: open && w.open.Load(), Reliable: true}
		if ws.Received > 0 || ws.Matched || !before {
			st.Writers = append(st.Writers, ws)
		}
	}
	for _, l := range ts.links {
		if reason := l.refused.Load(); reason != nil && l.named.Load() {
			st.Mismatches = append(st.Mismatches, ros.Mismatch{ID: endpointID(kindPublisher, l.uri, ts.name, 0), Reason: *reason})
		}
	}
	return st
}

// keep remembers the last numbers.
func (s *Subscription) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.final == nil {
		st := s.stats(false)
		s.final = &st
	}
}

// Close implements ros.Subscription. The last one of a topic ends the connections.
func (s *Subscription) Close() error {
	ts, n := s.ts, s.ts.n
	ts.subsMu.Lock() // waits for handlers
	ts.subs = slices.DeleteFunc(slices.Clone(ts.subs), func(o *Subscription) bool { return o == s })
	last := len(ts.subs) == 0
	if last {
		ts.cancel() // nobody is added from here on
	}
	ts.subsMu.Unlock()
	s.keep()
	if !last {
		return nil
	}
	ts.unregister()
	n.mu.Lock()
	if n.subs[ts.name] == ts {
		delete(n.subs, ts.name)
	}
	n.mu.Unlock()
	n.nudge()
	return nil
}
