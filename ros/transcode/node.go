package transcode

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/ros"
)

// Source is a node of ROS 1 that tells the definitions that its publishers give.
type Source interface {
	ros.Node

	// Definition returns the definition text of a type with that md5sum, once a publisher has given it.
	Definition(typ, md5 string) (text string, ok bool)
}

// Node shows a network of ROS 1 as one of ROS 2: topics have ROS 2's types, and samples are turned on their way. It is
// for receiving only. A topic whose type cannot be turned is received and counted as lost, with the reason as a mismatch;
// so is a message that cannot. Safe for concurrent use.
type Node struct {
	src Source
	c   *Compiler
	log *slog.Logger

	mu    sync.Mutex
	types map[string]string      // of topics in ROS 1
	defs  map[[2]string]*Program // by type and hash in ROS 2
	said  map[string]bool        // refusals that were logged
}

var _ ros.Node = (*Node)(nil)

// NewNode returns a Node over src, which Close closes. log may be nil.
func NewNode(src Source, c *Compiler, log *slog.Logger) *Node {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Node{src: src, c: c, log: log, types: map[string]string{}, defs: map[[2]string]*Program{}, said: map[string]bool{}}
}

// Graph implements ros.Node.
func (n *Node) Graph() ros.Graph { return (*turnedGraph)(n) }

// Close implements ros.Node.
func (n *Node) Close() error { return n.src.Close() }

// Advertise implements ros.Node: it is refused.
func (n *Node) Advertise(t ros.Topic, _ ros.QoS) (ros.Publisher, error) {
	return nil, fmt.Errorf("advertise %s: a node that turns ROS 1 into ROS 2 receives only", t.Name)
}

// Define returns the definition of a type of ROS 2 that the graph has shown with that hash.
func (n *Node) Define(typ, hash string) (encoding, text string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.defs[[2]string{typ, hash}]
	if p == nil {
		return "", "", false
	}
	return p.Encoding, p.Definition, true
}

// program returns the program for a type with that md5sum; nil, nil while its definition is not known.
func (n *Node) program(typ, md5 string) (*Program, error) {
	if md5 == "" {
		return nil, nil
	}
	text, ok := n.src.Definition(typ, md5)
	if !ok {
		return nil, nil
	}
	if text == "" {
		if d, err := msg.BuiltinROS1(typ); err == nil && d.MD5() != md5 {
			return nil, errors.New("its publisher gives no definition")
		}
	}
	p, err := n.c.ToROS2(typ, text)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.defs) < maxPrograms {
		n.defs[[2]string{p.Type, p.Hash}] = p
	}
	return p, nil
}

// turnedGraph is the graph of a Node.
type turnedGraph Node

// Changed implements ros.Graph.
func (g *turnedGraph) Changed() <-chan struct{} { return g.src.Graph().Changed() }

// Topics implements ros.Graph.
func (g *turnedGraph) Topics() []ros.TopicInfo {
	n := (*Node)(g)
	topics := slices.Clone(g.src.Graph().Topics())
	for i := range topics {
		t := &topics[i]
		if len(t.Types) > 0 {
			n.mu.Lock()
			if len(n.types) < 1<<16 {
				n.types[t.Name] = t.Types[0]
			}
			n.mu.Unlock()
		}
		t.Types = slices.Clone(t.Types)
		for k := range t.Types {
			t.Types[k] = NameROS2(t.Types[k])
		}
		t.Publishers, t.Subscriptions = slices.Clone(t.Publishers), slices.Clone(t.Subscriptions)
		for _, list := range [][]ros.Endpoint{t.Publishers, t.Subscriptions} {
			for k := range list {
				e := &list[k].Topic
				if e.Type == "" {
					continue
				}
				hash := ""
				if p, err := n.program(e.Type, e.TypeHash); err == nil && p != nil {
					hash = p.Hash
				}
				e.Type, e.TypeHash = NameROS2(e.Type), hash
			}
		}
	}
	return topics
}

// Subscribe implements ros.Node.
func (n *Node) Subscribe(t ros.Topic, q ros.QoS, h func(ros.Sample)) (ros.Subscription, error) {
	if h == nil {
		return nil, fmt.Errorf("subscribe %s: no handler", t.Name)
	}
	n.mu.Lock()
	typ := n.types[t.Name]
	n.mu.Unlock()
	if typ == "" || NameROS2(typ) != t.Type {
		typ = NameROS1(t.Type)
	}
	if typ == "" {
		return nil, fmt.Errorf("subscribe %s: %w: %s is no message type of ROS 1", t.Name, ros.ErrName, t.Type)
	}
	s := &subscription{n: n, typ: typ, topic: t, h: h}
	s.mu.Lock() // samples may come before it is known
	defer s.mu.Unlock()
	var err error
	s.Subscription, err = n.src.Subscribe(ros.Topic{Name: t.Name, Type: typ}, q, s.turn)
	return s, err
}

// subscription turns samples.
type subscription struct {
	ros.Subscription
	n     *Node
	typ   string
	topic ros.Topic
	h     func(ros.Sample)
	pool  sync.Pool
	lost  atomic.Uint64
	mu    sync.Mutex
	p     atomic.Pointer[Program]
	why   atomic.Pointer[string] // the last refusal
}

// buffer holds a turned payload until it is released.
type buffer struct {
	pool *sync.Pool
	b    []byte
}

// Release implements ros.Owner.
func (b *buffer) Release([]byte) { b.pool.Put(b) }

const bufferOverhead = 192

func (s *subscription) turn(x ros.Sample) {
	p := s.p.Load()
	if p == nil {
		s.mu.Lock()
		sub := s.Subscription
		s.mu.Unlock()
		var err error
		if p, err = s.n.program(s.typ, sub.Topic().TypeHash); p == nil {
			if err == nil {
				err = errors.New("its publisher gives no definition")
			}
			s.refuse(x, err)
			return
		}
		s.p.Store(p)
	}
	b, ok := s.pool.Get().(*buffer)
	if !ok {
		b = &buffer{pool: &s.pool}
	}
	data, err := p.Append(b.b[:0], x.Data, 0)
	if err != nil {
		s.pool.Put(b)
		s.refuse(x, err)
		return
	}
	b.b = data
	x.Release()
	x.Data, x.Owner, x.Cost = data, b, cap(data)+bufferOverhead
	s.h(x)
}

// refuse counts a sample that cannot be turned, and says why once.
func (s *subscription) refuse(x ros.Sample, err error) {
	x.Release()
	s.lost.Add(1)
	text := "it cannot be turned into ROS 2: " + err.Error()
	s.why.Store(&text)
	s.n.mu.Lock()
	said := s.n.said[s.topic.Name]
	s.n.said[s.topic.Name] = true
	s.n.mu.Unlock()
	if !said {
		s.n.log.Warn(fmt.Sprintf("topic '%s': a message is lost and counted: %s", s.topic.Name, text))
	}
}

// Topic implements ros.Subscription.
func (s *subscription) Topic() ros.Topic {
	t := s.topic
	if p := s.p.Load(); p != nil {
		t.TypeHash = p.Hash
	}
	return t
}

// Stats implements ros.Subscription: what could not be turned counts as lost.
func (s *subscription) Stats() ros.SubscriptionStats {
	s.mu.Lock()
	sub := s.Subscription
	s.mu.Unlock()
	st := sub.Stats()
	lost := s.lost.Load()
	st.Received -= min(lost, st.Received)
	st.Lost += lost
	if why := s.why.Load(); why != nil {
		st.Mismatches = append(slices.Clone(st.Mismatches), ros.Mismatch{Reason: *why})
	}
	return st
}
