package ros2

import (
	"errors"
	"fmt"
	"sync"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
)

// Subscription is a ros.Subscription. One with BestAvailable policies has a reader for each class of quality of service
// that its publishers offer; each publisher is received by the reader of its class, so by the most it offers, and by
// that one only.
type Subscription struct {
	node    *Node
	key     offerKey
	qos     ros.QoS // as asked for, normalized
	follows bool    // it has BestAvailable policies
	handler func(ros.Sample)
	offer   func(ros.Sample) bool // nil: publishers are never held
	seen    seen

	mu      sync.Mutex // never held while the handler runs
	topic   ros.Topic
	readers [classes]*rtps.Reader // by class.index; nil where there is none
	retired stats                 // of readers that are closed
	closed  bool
}

// Subscribe implements ros.Node. A topic without TypeHash takes that of the publishers known by now. Deadline, lifespan
// and liveliness of the profile are not asked for: they change nothing of what is received. With
// AvoidROSNamespaceConventions the topic's name is that on the wire.
func (n *Node) Subscribe(t ros.Topic, q ros.QoS, h func(ros.Sample)) (ros.Subscription, error) {
	s, err := n.subscribe(t, q, nil, h)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// SubscribeHeld implements ros.Holder.
func (n *Node) SubscribeHeld(t ros.Topic, q ros.QoS, offer func(ros.Sample) bool, h func(ros.Sample)) (ros.HeldSubscription, error) {
	s, err := n.subscribe(t, q, offer, h)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (n *Node) subscribe(t ros.Topic, q ros.QoS, offer func(ros.Sample) bool, h func(ros.Sample)) (*Subscription, error) {
	if h == nil {
		return nil, fmt.Errorf("subscribe %s: no handler", t.Name)
	}
	key, err := n.endpointNames("subscribe", t, q)
	if err != nil {
		return nil, err
	}
	s := &Subscription{node: n, key: key, qos: q.Normalized(), handler: h, offer: offer, topic: t}
	s.follows = s.qos.Reliability == ros.ReliabilityBestAvailable || s.qos.Durability == ros.DurabilityBestAvailable
	// First it is registered, then it makes its first reader: that is a change of the graph, after which run looks again
	// in case the publishers seen here were not all.
	if s.follows && !n.follow(s) {
		return nil, fmt.Errorf("subscribe %s: node: %w", t.Name, ros.ErrClosed)
	}
	if err := s.start(n.graph.recent().offers[key]); err != nil {
		return nil, errors.Join(fmt.Errorf("subscribe %s: %w", t.Name, closedError(err)), s.Close())
	}
	return s, nil
}

// follow makes run adapt the subscription; false if the node is closed.
func (n *Node) follow(s *Subscription) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.subs[s] = true
	return true
}

// start makes the first readers, unless run was faster.
func (s *Subscription) start(offers []offer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open() > 0 {
		return nil
	}
	return s.adaptLocked(offers)
}

// adapt makes the readers that the publishers' offers ask for and closes those that have none any more. Without any
// publisher what there is stays; the first reader is then one for reliable and volatile, ROS's default.
func (s *Subscription) adapt(offers []offer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.adaptLocked(offers)
}

func (s *Subscription) adaptLocked(offers []offer) error {
	if s.closed {
		return nil
	}
	var needed [classes]bool
	for _, o := range offers {
		needed[classOf(s.qos, o.reliable, o.latched).index()] = true
		if s.topic.TypeHash == "" {
			s.topic.TypeHash = o.hash
		}
	}
	if len(offers) == 0 {
		if s.open() > 0 {
			return nil
		}
		needed[classOf(s.qos, true, false).index()] = true
	}
	for i, r := range s.readers {
		if r != nil || !needed[i] {
			continue
		}
		r, err := s.newReader(class{reliable: i&1 != 0, latched: i&2 != 0})
		if err != nil {
			return err
		}
		s.readers[i] = r
	}
	for i := range s.readers {
		if !needed[i] {
			if err := s.retire(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// open is the number of readers. s.mu is held.
func (s *Subscription) open() (n int) {
	for _, r := range s.readers {
		if r != nil {
			n++
		}
	}
	return n
}

// newReader makes the reader of a class. s.mu is held.
func (s *Subscription) newReader(c class) (*rtps.Reader, error) {
	config := rtps.ReaderConfig{Topic: s.key.topic, Type: s.key.typ, QoS: readerQoS(c.qos(s.qos)), UserData: endpointUserData(s.topic.TypeHash),
		Handler: s.deliver}
	if s.offer != nil {
		config.Offer = s.offered
	}
	if s.follows {
		config.Accept = func(e rtps.Endpoint) bool {
			return classOf(s.qos, e.QoS.Reliability == rtps.Reliable, e.QoS.Durability >= rtps.TransientLocal) == c
		}
	}
	return s.node.p.NewReader(config)
}

// retire closes a reader, if there is one, and keeps its statistics. s.mu is held.
func (s *Subscription) retire(i int) error {
	r := s.readers[i]
	if r == nil {
		return nil
	}
	s.readers[i] = nil
	err := r.Close()
	s.retired.add(r.Stats())
	return err
}

// deliver runs on a receive goroutine of the participant, never twice at once.
func (s *Subscription) deliver(x rtps.Sample) {
	if !s.seen.first(x.Writer, x.Seq) {
		x.Release()
		return
	}
	s.handler(rosSample(&x))
}

// offered is deliver for a sample that may be refused.
func (s *Subscription) offered(x rtps.Sample) bool {
	if !s.seen.first(x.Writer, x.Seq) {
		x.Release()
		return true
	}
	if !s.offer(rosSample(&x)) {
		s.seen.comesAgain(x.Writer, x.Seq)
		return false
	}
	return true
}

// Resume implements ros.HeldSubscription.
func (s *Subscription) Resume() {
	s.mu.Lock()
	readers := s.readers
	s.mu.Unlock()
	for _, r := range readers {
		if r != nil {
			r.Resume()
		}
	}
}

func rosSample(x *rtps.Sample) ros.Sample {
	return ros.Sample{
		Data:       x.Data,
		SourceTime: x.SourceTime,
		RecvTime:   x.RecvTime,
		Writer:     ros.EndpointID(x.Writer),
		Seq:        uint64(x.Seq),
		Cost:       x.Cost,
		Owner:      x.Owner,
	}
}

// Topic implements ros.Subscription. The type hash is the one that was given, or that of the publishers.
func (s *Subscription) Topic() ros.Topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.topic
}

// Stats implements ros.Subscription.
func (s *Subscription) Stats() ros.SubscriptionStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.retired.clone()
	var refused map[rtps.GUID]int
	var mismatches []rtps.Mismatch
	for _, r := range s.readers {
		if r == nil {
			continue
		}
		st := r.Stats()
		all.add(st)
		if refused == nil {
			mismatches, refused = st.Mismatches, map[rtps.GUID]int{}
		}
		for _, m := range st.Mismatches {
			refused[m.GUID]++
		}
	}
	out := all.result(&s.seen)
	for _, m := range mismatches {
		if refused[m.GUID] == s.open() { // another reader takes the others
			out.Mismatches = append(out.Mismatches, ros.Mismatch{ID: ros.EndpointID(m.GUID), Reason: m.Reason})
		}
	}
	return out
}

// Close implements ros.Subscription.
func (s *Subscription) Close() error {
	s.node.mu.Lock()
	delete(s.node.subs, s)
	s.node.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for i := range s.readers {
		errs = append(errs, s.retire(i))
	}
	return errors.Join(errs...)
}
