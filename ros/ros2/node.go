package ros2

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
)

// coalesce is the least time between two looks at a graph that keeps changing: discovery of a thousand topics is a
// thousand changes. Where a look takes long, it is made for a quarter of the time, or more often where a newcomer would
// have to wait for more than maxCoalesce.
const (
	coalesce    = 10 * time.Millisecond
	maxCoalesce = 200 * time.Millisecond
)

// Node is a ros.Node over RTPS. Safe for concurrent use. It does not receive its own publishers.
type Node struct {
	options Options
	log     *slog.Logger
	p       *rtps.Participant
	graph   *graph
	names   *nodeNames
	asks    describer
	stop    chan struct{}
	done    sync.WaitGroup
	closing sync.Once
	err     error // of Close

	mu     sync.Mutex
	closed bool
	subs   map[*Subscription]bool // those that follow the publishers
}

var (
	_ ros.Node              = (*Node)(nil)
	_ ros.EncodedAdvertiser = (*Node)(nil)
	_ ros.TypeDescriber     = (*Node)(nil)
	_ ros.Holder            = (*Node)(nil)
	_ ros.Acker             = (*Publisher)(nil)
)

// New joins the network. The caller closes the node.
func New(o Options) (*Node, error) {
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p, err := rtps.NewParticipant(o.config())
	if err != nil {
		return nil, fmt.Errorf("new node: %w", err)
	}
	n := &Node{options: o, log: log, p: p, names: newNodeNames(), stop: make(chan struct{}), subs: map[*Subscription]bool{}}
	n.graph = newGraph(p, n.names)
	if !o.NoNodeNames {
		if err := n.names.listen(p); err != nil {
			return nil, errors.Join(fmt.Errorf("new node: %w", err), p.Close())
		}
	}
	if o.NodeName != "" && o.NodeInfo != InfoOff {
		now := o.Now
		if now == nil {
			now = func() int64 { return time.Now().UnixNano() }
		}
		a, err := newAnnouncer(p, o.NodeName, o.NodeInfo, now)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("new node: %w", err), p.Close())
		}
		n.done.Go(func() { a.run(n) })
	}
	n.done.Go(n.run)
	return n, nil
}

// Graph implements ros.Node. Topics are those with ROS's names and types; what else is on the wire is not shown. The
// endpoints' QoS is what they announced: a subscription of ours that follows its publishers can appear several times.
func (n *Node) Graph() ros.Graph { return n.graph }

// Stats counts what the sockets and the parser did: datagrams, kernel drops, the receive buffer in effect.
func (n *Node) Stats() rtps.Stats { return n.p.Stats() }

// run follows the changes of the network until Close: it adapts the subscriptions to the publishers and then tells those
// who wait for Graph.Changed.
func (n *Node) run() {
	for {
		changed := n.p.Changed()
		began := time.Now()
		n.update()
		took := time.Since(began)
		select {
		case <-changed:
		case <-n.names.changed:
		case <-n.stop:
			return
		}
		if rest := min(max(coalesce, 4*took), max(maxCoalesce, 2*took)) - time.Since(began); rest > 0 {
			select {
			case <-time.After(rest):
			case <-n.stop:
				return
			}
		}
	}
}

func (n *Node) update() {
	n.mu.Lock()
	subs := make([]*Subscription, 0, len(n.subs))
	for s := range n.subs {
		subs = append(subs, s)
	}
	n.mu.Unlock()
	if len(subs) > 0 {
		snap := n.graph.current()
		for _, s := range subs {
			if err := s.adapt(snap.offers[s.key]); err != nil && !errors.Is(err, rtps.ErrClosed) {
				n.log.Error("subscription cannot follow its publishers", "topic", s.topic.Name, "err", err)
			}
		}
	}
	n.names.prune(n.p.Peers)
	n.graph.notify()
}

// endpointNames checks a topic and returns its names on the wire.
func (n *Node) endpointNames(verb string, t ros.Topic, q ros.QoS) (key offerKey, err error) {
	if err := ros.ValidName(t.Name); err != nil {
		return key, fmt.Errorf("%s: %w", verb, err)
	}
	if err := ros.ValidType(t.Type); err != nil {
		return key, fmt.Errorf("%s %s: %w", verb, t.Name, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return key, fmt.Errorf("%s %s: node: %w", verb, t.Name, ros.ErrClosed)
	}
	key = offerKey{topic: MangleTopic(t.Name), typ: MangleType(t.Type)}
	if q.AvoidROSNamespaceConventions {
		key.topic = t.Name
	}
	return key, nil
}

// closedError makes package rtps's error for what was closed that of package ros.
func closedError(err error) error {
	if errors.Is(err, rtps.ErrClosed) && !errors.Is(err, ros.ErrClosed) {
		return ros.ErrClosed
	}
	return err
}

// Close implements ros.Node. It waits up to a second for acknowledgements of what was published.
func (n *Node) Close() error {
	n.closing.Do(func() {
		n.mu.Lock()
		n.closed = true
		subs := n.subs
		n.subs = nil
		n.mu.Unlock()
		close(n.stop)
		n.done.Wait()
		n.asks.close()
		n.err = n.p.Close()
		for s := range subs {
			n.err = errors.Join(n.err, s.Close())
		}
		n.graph.notify()
	})
	return n.err
}

// Peer is a participant seen on the network: usually one process.
type Peer struct {
	ID        string   // as `ros2 topic info -v` prints it, without the entity
	Vendor    string   // "Cyclone DDS", "Fast DDS", …
	Name      string   // what it calls itself on the wire; "" unknown
	Enclave   string   // of a ROS node; "" if it announces none
	Nodes     []string // its ROS nodes, sorted; empty if they are not known
	Addresses []string // where it receives user data
	Reachable bool     // data can be exchanged with it
	Reason    string   // why not
	Refused   uint64   // its announcements and samples that were turned away because it reached a limit
}

// Peers returns the other participants, sorted by ID. Those that cannot be reached, say because they use shared memory
// only, are among them with a reason.
func (n *Node) Peers() []Peer {
	peers := n.p.Peers()
	out := make([]Peer, 0, len(peers))
	for _, p := range peers {
		peer := Peer{ID: p.Prefix.String(), Vendor: vendorName(p.Vendor), Name: p.Name, Enclave: string(userValue([]byte(p.UserData), "enclave")),
			Nodes: n.names.of(p.Prefix), Addresses: p.Locators, Reachable: p.Reachable, Reason: p.Reason,
			Refused: p.Refused}
		if !p.Reachable {
			peer.Reason = reason(p)
		}
		out = append(out, peer)
	}
	slices.SortFunc(out, func(a, b Peer) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}
