package ros1

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/apimaster"
	"github.com/bluenviron/goroslib/v2/pkg/apislave"

	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/ros"
)

const (
	callTimeout  = 5 * time.Second // of a call to the master or a node
	perNode      = 4               // calls to, and connections begun with, one node at a time
	dialTimeout  = 5 * time.Second // of a connection, header included
	firstBackoff = 50 * time.Millisecond
	lastBackoff  = 5 * time.Second
)

// Node is a node of ROS 1. Make one with New. Safe for concurrent use.
type Node struct {
	o      Options
	name   string
	host   string // as others reach us
	uri    string // of our slave API
	port   int    // of our TCPROS server
	http   *http.Client
	master *apimaster.Client
	slave  *apislave.Server
	ln     net.Listener
	pools  *pools
	graph  *graph

	ctx      context.Context
	cancel   context.CancelFunc
	workers  sync.WaitGroup
	wake     chan struct{} // look at the master now
	down     atomic.Bool   // the master did not answer when it was last asked
	shutdown chan struct{} // the master or rosnode asked us to end
	downOnce sync.Once

	mu       sync.Mutex
	closed   bool
	subs     map[string]*topicSub // by topic
	pubs     map[string]*topicPub
	services map[string]*service
	defs     map[defKey]string
	gates    map[string]chan struct{} // by address of a node
}

type defKey struct{ typ, md5 string }

// maxDefs bounds the definitions kept: they come from the network.
const maxDefs = 1 << 14

var _ ros.Node = (*Node)(nil)

// New makes a node. The master must answer.
func New(o Options) (*Node, error) {
	n, err := newNode(o.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("join ROS 1: %w", err)
	}
	return n, nil
}

func newNode(o Options) (_ *Node, err error) {
	address, err := masterAddress(o.Master)
	if err != nil {
		return nil, fmt.Errorf("master %q: %w", o.Master, err)
	}
	n := &Node{o: o, name: uniqueName(o.Name, time.Now().UnixNano()), host: o.Host, pools: newPools(), wake: make(chan struct{}, 1),
		shutdown: make(chan struct{}), subs: map[string]*topicSub{}, pubs: map[string]*topicPub{}, services: map[string]*service{}, defs: map[defKey]string{}, gates: map[string]chan struct{}{}}
	if ros.ValidName(n.name) != nil {
		return nil, fmt.Errorf("node name %q: letters, digits and underscores expected", o.Name)
	}
	n.graph = newGraph(n)
	n.http = &http.Client{Timeout: callTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 2, MaxConnsPerHost: perNode, IdleConnTimeout: 30 * time.Second}}
	n.master = apimaster.NewClient(address, n.name, n.http)
	if _, err := n.master.GetURI(); err != nil {
		n.http.CloseIdleConnections()
		return nil, fmt.Errorf("the master %s does not answer (is roscore running?): %w", o.Master, err)
	}
	if n.host == "" {
		if n.host, err = ownHost(address); err != nil {
			return nil, err
		}
	}
	if n.ln, err = net.Listen("tcp", ":0"); err != nil {
		return nil, err
	}
	n.port = n.ln.Addr().(*net.TCPAddr).Port
	if n.slave, err = apislave.NewServer(":0", net.IPv4(127, 0, 0, 1), "", callTimeout); err != nil {
		return nil, errors.Join(err, n.ln.Close())
	}
	u, err := url.Parse(n.slave.URL())
	if err != nil {
		n.slave.Close()
		return nil, errors.Join(err, n.ln.Close())
	}
	n.uri = (&url.URL{Scheme: "http", Host: net.JoinHostPort(n.host, u.Port()), Path: "/"}).String()
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.slave.Serve(n.handle)
	n.workers.Go(n.accept)
	if _, err := n.look(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	n.workers.Go(n.watch)
	return n, nil
}

// Name is the node's name on the network, "/gobag_recorder_4711_…".
func (n *Node) Name() string { return n.name }

// Shutdown is closed when the node was asked to end, by rosnode kill or by the master.
func (n *Node) Shutdown() <-chan struct{} { return n.shutdown }

// Graph implements ros.Node.
func (n *Node) Graph() ros.Graph { return n.graph }

// Define tells the node the definition of a type that will be advertised, and returns its md5sum.
func (n *Node) Define(typ, text string) (md5 string, err error) {
	var d *msg.ROS1Definition
	if text == "" {
		d, err = msg.BuiltinROS1(typ)
	} else {
		d, err = msg.ParseROS1(typ, text)
	}
	if err != nil {
		return "", err
	}
	if text == "" {
		text = d.Text()
	}
	n.learn(typ, d.MD5(), text)
	return d.MD5(), nil
}

// Definition returns the definition text of a type with that md5sum, as a publisher gave it or Define did; ok is false
// where it is not known, or not yet.
func (n *Node) Definition(typ, md5 string) (text string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	text, ok = n.defs[defKey{typ, md5}]
	return text, ok
}

func (n *Node) learn(typ, md5, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := defKey{typ, md5}
	if _, have := n.defs[k]; !have && len(n.defs) < maxDefs {
		n.defs[k] = text
	}
}

// checkTopic says what is wrong with a topic, and whether the node is closed.
func (n *Node) checkTopic(what string, t ros.Topic) error {
	err := ros.ValidName(t.Name)
	if err == nil {
		err = ros.ValidType(t.Type)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && n.closed {
		err = ros.ErrClosed
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, t.Name, err)
	}
	return nil
}

// gate lets a few connections to a node be made at a time.
func (n *Node) gate(uri string) chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	g := n.gates[uri]
	if g == nil {
		if len(n.gates) >= maxDefs {
			clear(n.gates)
		}
		g = make(chan struct{}, perNode)
		n.gates[uri] = g
	}
	return g
}

// unregistered notes what came of telling the master that something is over. A master that does not answer is not told
// the rest: it would cost a time limit each.
func (n *Node) unregistered(what, topic string, err error) {
	if err != nil {
		if e := new(url.Error); errors.As(err, &e) {
			n.down.Store(true)
		}
		n.o.Logger.Debug("unregistering failed", "what", what, "topic", topic, "err", err)
	}
}

// nudge makes the node look at the master soon.
func (n *Node) nudge() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// handle answers calls of the slave API.
func (n *Node) handle(req apislave.Request) apislave.Response {
	switch r := req.(type) {
	case *apislave.RequestGetPid:
		return apislave.ResponseGetPid{Code: 1, Pid: os.Getpid()}
	case *apislave.RequestGetBusInfo:
		return apislave.ResponseGetBusInfo{Code: 1, BusInfo: [][]any{}}
	case *apislave.RequestGetPublications:
		list := [][]string{}
		n.mu.Lock()
		for name, p := range n.pubs {
			list = append(list, []string{name, p.typ})
		}
		n.mu.Unlock()
		return apislave.ResponseGetPublications{Code: 1, TopicList: list}
	case *apislave.RequestPublisherUpdate:
		n.mu.Lock()
		s := n.subs[r.Topic]
		n.mu.Unlock()
		if s != nil {
			s.update(r.PublisherURLs)
		}
		n.nudge()
		return apislave.ResponsePublisherUpdate{Code: 1}
	case *apislave.RequestRequestTopic:
		n.mu.Lock()
		_, ok := n.pubs[r.Topic]
		n.mu.Unlock()
		if !ok {
			return apislave.ResponseRequestTopic{Code: 0, StatusMessage: "topic is not published by this node", Protocol: []any{}}
		}
		for _, p := range r.Protocols {
			if len(p) > 0 && p[0] == "TCPROS" {
				return apislave.ResponseRequestTopic{Code: 1, Protocol: []any{"TCPROS", n.host, n.port}}
			}
		}
		return apislave.ResponseRequestTopic{Code: 0, StatusMessage: "TCPROS only", Protocol: []any{}}
	case *apislave.RequestShutdown:
		n.o.Logger.Warn("this node was told to shut down", "by", r.CallerID, "reason", r.Reason)
		n.downOnce.Do(func() { close(n.shutdown) })
		return apislave.ResponseShutdown{Code: 1}
	}
	return apislave.ErrorRes{}
}

// Close implements ros.Node: everything is unregistered.
func (n *Node) Close() error {
	n.mu.Lock()
	again := n.closed
	n.closed = true
	subs, pubs, services := n.subs, n.pubs, slices.Collect(maps.Values(n.services))
	n.subs, n.pubs = map[string]*topicSub{}, map[string]*topicPub{}
	n.mu.Unlock()
	if again {
		n.workers.Wait()
		return nil
	}
	var group sync.WaitGroup
	for _, s := range subs {
		group.Go(s.unregister)
	}
	for _, p := range pubs {
		group.Go(p.unregister)
	}
	for _, s := range services {
		group.Go(func() { _ = s.Close() })
	}
	group.Wait()
	n.cancel()
	err := n.ln.Close()
	n.workers.Wait()
	n.http.CloseIdleConnections() // before our own server waits for connections to be idle
	n.slave.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}

// slaveClient returns a client of another node's API, and the host it is on.
func (n *Node) slaveClient(uri string) (*apislave.Client, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("node address %.100q is no URL", uri)
	}
	return apislave.NewClient(u.Host, n.name, n.http), nil
}

// publisherAddress asks a node where its TCPROS server for a topic is.
func (n *Node) publisherAddress(uri, topic string) (string, error) {
	c, err := n.slaveClient(uri)
	if err != nil {
		return "", err
	}
	p, err := c.RequestTopic(topic, [][]any{{"TCPROS"}})
	if err != nil {
		return "", err
	}
	if len(p) < 3 || p[0] != "TCPROS" {
		return "", fmt.Errorf("the node offers %.100q, want TCPROS", fmt.Sprint(p...))
	}
	host, _ := p[1].(string)
	port, _ := p[2].(int)
	if host == "" || port <= 0 || port > 65535 {
		return "", fmt.Errorf("the node's answer %.100q is no address", fmt.Sprint(p...))
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}
