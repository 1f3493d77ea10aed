package rostest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/gobag/gobag/ros"
)

// Node is a node of a Network.
type Node struct {
	net    *Network
	name   string
	number uint64
	queue  queue
	done   sync.WaitGroup

	// Under net.mu.
	endpoints uint64 // created so far
	closed    bool
	types     TypeServer // nil: nobody answers
	pubs      []*publisher
	subs      []*subscription
}

var (
	_ ros.Node   = (*Node)(nil)
	_ ros.Holder = (*Node)(nil)
)

// Node adds a node. The name may be anything; it shows up in the graph as "/name". The caller closes the node.
func (n *Network) Node(name string) *Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes++
	node := &Node{net: n, name: "/" + name, number: n.nodes}
	node.queue.init(n.options.QueueBytes)
	node.done.Go(node.queue.run)
	return node
}

// Graph is the network as this node sees it: everything, at once.
func (n *Node) Graph() ros.Graph { return graph{n} }

type graph struct{ node *Node }

func (g graph) Topics() []ros.TopicInfo { return g.node.net.snapshot(g.node) }

func (g graph) Changed() <-chan struct{} {
	g.node.net.mu.Lock()
	defer g.node.net.mu.Unlock()
	return g.node.net.changed
}

// check says what is wrong with a request, nil if nothing. n.net.mu is held.
func (n *Node) check(verb string, t ros.Topic) error {
	if n.closed {
		return fmt.Errorf("%s %s: node: %w", verb, t.Name, ros.ErrClosed)
	}
	if err := ros.ValidName(t.Name); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err := ros.ValidType(t.Type); err != nil {
		return fmt.Errorf("%s %s: %w", verb, t.Name, err)
	}
	return nil
}

func (n *Node) newEndpoint(t ros.Topic, q ros.QoS) endpoint {
	n.endpoints++
	return endpoint{id: endpointID(n.number, n.endpoints), topic: t, qos: q.Normalized(), node: n}
}

// Subscribe implements ros.Node.
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

func (n *Node) subscribe(t ros.Topic, q ros.QoS, offer func(ros.Sample) bool, h func(ros.Sample)) (*subscription, error) {
	if h == nil {
		return nil, fmt.Errorf("subscribe %s: no handler", t.Name)
	}
	n.net.mu.Lock()
	defer n.net.mu.Unlock()
	if err := n.check("subscribe", t); err != nil {
		return nil, err
	}
	entry := n.net.topic(t.Name)
	for _, p := range entry.pubs { // as package ros2 does: the hash of the publishers is repeated
		if t.TypeHash == "" && p.topic.Type == t.Type {
			t.TypeHash = p.topic.TypeHash
		}
	}
	s := &subscription{endpoint: n.newEndpoint(t, q), handler: h, offer: offer}
	entry.subs = append(entry.subs, s)
	n.subs = append(n.subs, s)
	for _, p := range entry.pubs {
		n.net.match(entry, p, s)
	}
	n.net.notify()
	return s, nil
}

// Advertise implements ros.Node.
func (n *Node) Advertise(t ros.Topic, q ros.QoS) (ros.Publisher, error) {
	n.net.mu.Lock()
	defer n.net.mu.Unlock()
	if err := n.check("advertise", t); err != nil {
		return nil, err
	}
	if q.Reliability == ros.ReliabilityBestAvailable || q.Durability == ros.DurabilityBestAvailable {
		return nil, fmt.Errorf("advertise %s: best_available is for subscriptions only", t.Name)
	}
	p := &publisher{endpoint: n.newEndpoint(t, q)}
	entry := n.net.topic(t.Name)
	entry.pubs = append(entry.pubs, p)
	n.pubs = append(n.pubs, p)
	for _, s := range entry.subs {
		n.net.match(entry, p, s)
	}
	n.net.notify()
	return p, nil
}

// Close implements ros.Node. Samples still on their way to this node are given up.
func (n *Node) Close() error {
	n.net.mu.Lock()
	n.closed = true
	pubs, subs := slices.Clone(n.pubs), slices.Clone(n.subs)
	n.net.mu.Unlock()
	for _, p := range pubs {
		_ = p.Close() // never fails
	}
	for _, s := range subs {
		_ = s.Close() // never fails
	}
	n.queue.close()
	n.done.Wait()
	return nil
}
