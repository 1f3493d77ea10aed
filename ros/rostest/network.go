package rostest

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/ros"
)

// Options configure a network. The zero value loses nothing and delays nothing.
type Options struct {
	Seed        uint64        // of the losses: the same seed and traffic lose the same samples
	Link        Link          // of every topic that SetLink says nothing about
	QueueBytes  int           // payload bytes on the way to one node; 0 = 64 MiB
	MaxBlocking time.Duration // how long Publish waits for a reliable receiver whose queue is full; 0 = 100 ms
	Clock       *Clock        // stamps reception; nil = one of its own
}

// Link says what happens to the samples of a topic on their way to one subscription.
type Link struct {
	Loss  float64       // probability that a sample is lost, 0..1; reliable ones too, as if the publisher's history was too short
	Spare int           // so many first samples from a publisher to a subscription are not lost by Loss
	Delay time.Duration // between Publish and the handler

	// Drop, if set, is asked about every sample on top of Loss; true loses it. It is called with locks held.
	Drop func(writer ros.EndpointID, seq uint64) bool
}

// Traffic counts what a topic's publishers sent to its subscriptions.
type Traffic struct {
	Published uint64 // calls of Publish
	Offered   uint64 // samples times subscriptions they were sent to, repetitions for late joiners included
	Dropped   uint64 // of Offered: lost by the link or a full queue
}

// Network connects nodes. Safe for concurrent use.
type Network struct {
	options Options
	clock   *Clock
	pool    sync.Pool // *buffer
	live    atomic.Int64

	mu      sync.Mutex // guards what follows and the endpoints' graph state; taken before a node's or subscription's lock
	nodes   uint64     // created so far
	topics  map[string]*topic
	changed chan struct{}
}

// topic is what the network knows under one name.
type topic struct {
	name    string
	link    Link
	traffic Traffic
	pubs    []*publisher
	subs    []*subscription
}

// NewNetwork returns an empty network.
func NewNetwork(o Options) *Network {
	if o.QueueBytes == 0 {
		o.QueueBytes = 64 << 20
	}
	if o.MaxBlocking == 0 {
		o.MaxBlocking = 100 * time.Millisecond
	}
	n := &Network{options: o, clock: o.Clock, topics: map[string]*topic{}, changed: make(chan struct{})}
	if n.clock == nil {
		n.clock = &Clock{}
	}
	n.pool.New = func() any { return new(buffer) }
	return n
}

// Clock is the wall clock that stamps reception.
func (n *Network) Clock() *Clock { return n.clock }

// SetLink changes what happens to samples of a topic that are published from now on.
func (n *Network) SetLink(name string, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.topic(name).link = l
}

// Traffic returns what was sent on a topic.
func (n *Network) Traffic(name string) Traffic {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.topic(name).traffic
}

// Outstanding is the number of samples that handlers were given and have not released.
func (n *Network) Outstanding() int { return int(n.live.Load()) }

// topic returns the entry of a name. n.mu is held.
func (n *Network) topic(name string) *topic {
	t := n.topics[name]
	if t == nil {
		t = &topic{name: name, link: n.options.Link}
		n.topics[name] = t
	}
	return t
}

// notify wakes those who wait for a change of the graph. n.mu is held.
func (n *Network) notify() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// snapshot is the graph as the node sees it.
func (n *Network) snapshot(self *Node) []ros.TopicInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	var infos []ros.TopicInfo
	for _, t := range n.topics {
		if len(t.pubs) == 0 && len(t.subs) == 0 {
			continue
		}
		info := ros.TopicInfo{Name: t.name}
		add := func(list *[]ros.Endpoint, e *endpoint) {
			*list = append(*list, ros.Endpoint{ID: e.id, Topic: e.topic, QoS: e.qos, Node: e.node.name, Vendor: "rostest",
				Local: e.node == self, Reliable: e.qos.Reliability == ros.Reliable})
			if !slices.Contains(info.Types, e.topic.Type) {
				info.Types = append(info.Types, e.topic.Type)
			}
		}
		for _, p := range t.pubs {
			add(&info.Publishers, &p.endpoint)
		}
		for _, s := range t.subs {
			add(&info.Subscriptions, &s.endpoint)
		}
		slices.Sort(info.Types)
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b ros.TopicInfo) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return infos
}

// random returns the source of the losses between two endpoints: it depends on the seed and on who they are, not on
// what other topics do.
func (n *Network) random(pub, sub ros.EndpointID, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	h.Write(pub[:])
	h.Write(sub[:])
	return rand.New(rand.NewPCG(n.options.Seed, h.Sum64()))
}

// endpoint is what publishers and subscriptions have in common.
type endpoint struct {
	id    ros.EndpointID
	topic ros.Topic
	qos   ros.QoS
	node  *Node
}

// endpointID is unique in the network: the node's number and the endpoint's within it.
func endpointID(node, endpoint uint64) (id ros.EndpointID) {
	copy(id[:], "test")
	binary.BigEndian.PutUint64(id[4:], node)
	binary.BigEndian.PutUint32(id[12:], uint32(endpoint))
	return id
}
