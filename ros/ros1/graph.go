package ros1

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/gobag/gobag/ros"
)

// graph is what the master says, and what publishers we are connected to say of themselves.
type graph struct {
	n *Node

	mu      sync.Mutex
	changed chan struct{}
	topics  []ros.TopicInfo
	state   state
	known   map[peer]offer // of publishers
}

// peer is a node's publisher of a topic.
type peer struct{ node, topic string }

// offer is what a publisher says when it is connected to.
type offer struct {
	typ, md5 string
	latching bool
}

// state is the answer of the master.
type state struct {
	publishers, subscribers map[string][]string // nodes by topic
	types                   map[string]string
	services                map[string][]string // nodes by service
}

func newGraph(n *Node) *graph {
	return &graph{n: n, changed: make(chan struct{}), known: map[peer]offer{}}
}

// Topics implements ros.Graph.
func (g *graph) Topics() []ros.TopicInfo {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.topics
}

// Changed implements ros.Graph.
func (g *graph) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// set takes over an answer of the master.
func (g *graph) set(s state) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state = s
	for p := range g.known {
		if !slices.Contains(s.publishers[p.topic], p.node) {
			delete(g.known, p)
		}
	}
	g.rebuild()
}

// learn takes over what a publisher says of itself.
func (g *graph) learn(node, topic string, o offer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) < maxDefs {
		g.known[peer{node, topic}] = o
	}
	g.rebuild()
}

// rebuild makes the list anew; g.mu is held.
func (g *graph) rebuild() {
	names := map[string]bool{}
	for name := range g.state.publishers {
		names[name] = true
	}
	for name := range g.state.subscribers {
		names[name] = true
	}
	topics := make([]ros.TopicInfo, 0, len(names))
	for name := range names {
		info := ros.TopicInfo{Name: name}
		typ := g.state.types[name]
		if typ == "*" {
			typ = "" // nobody has said yet
		}
		types := map[string]bool{}
		for _, node := range g.state.publishers[name] {
			o, met := g.known[peer{node, name}]
			t := ros.Topic{Name: name, Type: cmp.Or(o.typ, typ), TypeHash: o.md5}
			q := offered(o.latching)
			info.Publishers = append(info.Publishers, ros.Endpoint{ID: endpointID(kindPublisher, node, name, 0), Topic: t, QoS: q, Node: node,
				Vendor: "ROS 1", Local: node == g.n.name, Reliable: true, Unsettled: !met})
			types[t.Type] = true
		}
		for _, node := range g.state.subscribers[name] {
			t := ros.Topic{Name: name, Type: typ}
			info.Subscriptions = append(info.Subscriptions, ros.Endpoint{ID: endpointID(kindSubscription, node, name, 0), Topic: t, QoS: ros.DefaultQoS(),
				Node: node, Vendor: "ROS 1", Local: node == g.n.name, Reliable: true})
			types[t.Type] = true
		}
		delete(types, "")
		for t := range types {
			info.Types = append(info.Types, t)
		}
		slices.Sort(info.Types)
		topics = append(topics, info)
	}
	slices.SortFunc(topics, func(a, b ros.TopicInfo) int { return cmp.Compare(a.Name, b.Name) })
	if slices.EqualFunc(topics, g.topics, sameTopic) {
		return
	}
	g.topics = topics
	close(g.changed)
	g.changed = make(chan struct{})
}

func sameTopic(a, b ros.TopicInfo) bool {
	return a.Name == b.Name && slices.Equal(a.Types, b.Types) && slices.Equal(a.Publishers, b.Publishers) && slices.Equal(a.Subscriptions, b.Subscriptions)
}

// look asks the master for the graph.
func (n *Node) look() (state, error) {
	s := state{publishers: map[string][]string{}, subscribers: map[string][]string{}, types: map[string]string{}, services: map[string][]string{}}
	sys, err := n.master.GetSystemState()
	if err != nil {
		return s, err
	}
	types, err := n.master.GetTopicTypes()
	if err != nil {
		return s, err
	}
	for _, t := range types {
		s.types[t.Name] = t.Type
	}
	for _, e := range sys.PublishedTopics {
		if ros.ValidName(e.Name) == nil && len(e.Nodes) > 0 {
			s.publishers[e.Name] = sorted(e.Nodes)
		}
	}
	for _, e := range sys.SubscribedTopics {
		if ros.ValidName(e.Name) == nil && len(e.Nodes) > 0 {
			s.subscribers[e.Name] = sorted(e.Nodes)
		}
	}
	for _, e := range sys.ProvidedServices {
		s.services[e.Name] = e.Nodes
	}
	n.graph.set(s)
	return s, nil
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return names
}

// watch asks the master again and again, and registers what it has forgotten: that it was restarted.
func (n *Node) watch() {
	t := time.NewTicker(n.o.Poll)
	defer t.Stop()
	gone := false
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.wake:
		case <-t.C:
		}
		s, err := n.look()
		if n.ctx.Err() != nil {
			return
		}
		n.down.Store(err != nil)
		if err != nil {
			if !gone {
				n.o.Logger.Warn("the ROS 1 master does not answer; open connections stay open", "master", n.o.Master, "err", err)
			}
			gone = true
			continue
		}
		if gone {
			n.o.Logger.Info("the ROS 1 master answers again", "master", n.o.Master)
		}
		gone = false
		n.reregister(s)
	}
}

// reregister registers what the master does not list for us.
func (n *Node) reregister(s state) {
	n.mu.Lock()
	var subs []*topicSub
	var pubs []*topicPub
	var services []*service
	for name, v := range n.services {
		if len(s.services[name]) == 0 { // another node may have taken it over: the master knows one each
			services = append(services, v)
		}
	}
	for name, t := range n.subs {
		if !slices.Contains(s.subscribers[name], n.name) {
			subs = append(subs, t)
		}
	}
	for name, t := range n.pubs {
		if !slices.Contains(s.publishers[name], n.name) {
			pubs = append(pubs, t)
		}
	}
	n.mu.Unlock()
	for _, t := range pubs {
		t.register()
	}
	for _, t := range subs {
		t.register()
	}
	for _, v := range services {
		v.register()
	}
	if len(subs)+len(pubs)+len(services) > 0 {
		n.nudgeLater()
	}
}

// nudgeLater looks at the master once more, after a moment.
func (n *Node) nudgeLater() {
	t := time.NewTimer(min(n.o.Poll, 100*time.Millisecond))
	defer t.Stop()
	select {
	case <-n.ctx.Done():
	case <-t.C:
		n.nudge()
	}
}
