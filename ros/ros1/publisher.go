package ros1

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/ros"
)

// topicPub is what a node sends of a topic: the publishers of ours share its connections.
type topicPub struct {
	n                          *Node
	name, typ, md5, definition string

	regMu  sync.Mutex // one registration at a time, and none after the end
	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once

	mu       sync.Mutex // guards what follows
	latching bool
	last     *block // of a latching topic
	conns    []*subscriber
	pubs     []*Publisher
	workers  sync.WaitGroup

	sendMu sync.Mutex // one message after the other
}

// Publisher is a ros.Publisher.
type Publisher struct {
	tp       *topicPub
	topic    ros.Topic
	reliable bool
	sent     atomic.Uint64
	dropped  atomic.Uint64

	mu    sync.Mutex
	final *ros.PublisherStats // set: closed
}

// drainTime is how long Close waits for what is queued.
const drainTime = time.Second

// Advertise implements ros.Node. The definition is that of Define, else that of the built-in table; a type that neither
// knows is advertised with the md5sum "*" and no definition, and a QoS that is transient local makes the topic latch.
func (n *Node) Advertise(t ros.Topic, q ros.QoS) (ros.Publisher, error) {
	if err := n.checkTopic("advertise", t); err != nil {
		return nil, err
	}
	if q.Reliability == ros.ReliabilityBestAvailable || q.Durability == ros.DurabilityBestAvailable {
		return nil, fmt.Errorf("advertise %s: best_available is for subscriptions only", t.Name)
	}
	md5, definition := n.definitionOf(t)
	p := &Publisher{topic: t, reliable: q.Reliability != ros.BestEffort}
	for {
		n.mu.Lock()
		if n.closed {
			n.mu.Unlock()
			return nil, fmt.Errorf("advertise %s: %w", t.Name, ros.ErrClosed)
		}
		tp, have := n.pubs[t.Name]
		if !have {
			tp = &topicPub{n: n, name: t.Name, typ: t.Type, md5: md5, definition: definition}
			tp.ctx, tp.cancel = context.WithCancel(n.ctx)
			n.pubs[t.Name] = tp
		}
		n.mu.Unlock()
		if tp.typ != t.Type || tp.md5 != md5 {
			return nil, fmt.Errorf("advertise %s: this node publishes it as %s (md5sum %s) already, a topic has one type in ROS 1", t.Name, tp.typ, tp.md5)
		}
		p.tp = tp
		if !tp.add(p, q.Durability == ros.TransientLocal) {
			time.Sleep(time.Millisecond)
			continue
		}
		if !have {
			tp.register()
		}
		n.nudge()
		return p, nil
	}
}

// definitionOf returns what to say of a type.
func (n *Node) definitionOf(t ros.Topic) (md5, definition string) {
	if text, ok := n.Definition(t.Type, t.TypeHash); ok {
		return t.TypeHash, text
	}
	if d, err := msg.BuiltinROS1(t.Type); err == nil && (t.TypeHash == "" || t.TypeHash == d.MD5()) {
		return d.MD5(), d.Text()
	}
	if t.TypeHash != "" {
		return t.TypeHash, ""
	}
	return "*", ""
}

func (tp *topicPub) add(p *Publisher, latching bool) bool {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	if tp.ctx.Err() != nil {
		return false
	}
	tp.pubs = append(tp.pubs, p)
	tp.latching = tp.latching || latching
	return true
}

// register tells the master, which tells the subscribers.
func (tp *topicPub) register() {
	tp.regMu.Lock()
	defer tp.regMu.Unlock()
	if tp.ctx.Err() != nil {
		return
	}
	if _, err := tp.n.master.RegisterPublisher(tp.name, tp.typ, tp.n.uri); err != nil {
		tp.n.o.Logger.Debug("registering a publisher failed, trying again", "topic", tp.name, "err", err)
	}
}

// unregister tells the master and ends the connections once what is queued was sent.
func (tp *topicPub) unregister() { tp.once.Do(tp.end) }

func (tp *topicPub) end() {
	tp.drain()
	tp.cancel()
	tp.regMu.Lock()
	if !tp.n.down.Load() {
		tp.n.unregistered("publisher", tp.name, tp.n.master.UnregisterPublisher(tp.name, tp.n.uri))
	}
	tp.regMu.Unlock()
	tp.mu.Lock() // nobody is added from here on
	conns, pubs := tp.conns, tp.pubs
	tp.mu.Unlock()
	for _, c := range conns {
		_ = c.conn.Close()
	}
	tp.workers.Wait()
	for _, p := range pubs {
		p.finish()
	}
	tp.mu.Lock()
	last := tp.last
	tp.last = nil
	tp.mu.Unlock()
	if last != nil {
		last.Release(nil)
	}
}

// drain waits a moment for what is queued.
func (tp *topicPub) drain() {
	for end := time.Now().Add(drainTime); tp.queued() > 0 && time.Now().Before(end); {
		time.Sleep(2 * time.Millisecond)
	}
}

func (tp *topicPub) queued() (n int) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	for _, c := range tp.conns {
		n += c.queued()
	}
	return n
}

// Topic implements ros.Publisher.
func (p *Publisher) Topic() ros.Topic { return p.topic }

// Publish implements ros.Publisher. ROS 1 carries no source stamp. A message that a subscriber has no room for within
// Options.MaxBlocking is dropped for it and counted.
func (p *Publisher) Publish(data []byte, _ int64) error {
	tp := p.tp
	tp.sendMu.Lock()
	defer tp.sendMu.Unlock()
	p.mu.Lock()
	closed := p.final != nil
	p.mu.Unlock()
	if closed || tp.ctx.Err() != nil {
		return fmt.Errorf("publish %s: %w", p.topic.Name, ros.ErrClosed)
	}
	p.sent.Add(1)
	tp.mu.Lock()
	conns := tp.conns // never changed in place
	if len(conns) == 0 && !tp.latching {
		tp.mu.Unlock()
		return nil
	}
	frame := tp.n.frame(data)
	if tp.latching { // under the same lock as a new subscriber is given the last message
		if tp.last != nil {
			tp.last.Release(nil)
		}
		frame.refs.Add(1)
		tp.last = frame
	}
	tp.mu.Unlock()
	n := len(data) + 4
	wait := tp.n.o.MaxBlocking
	if !p.reliable {
		wait = 0
	}
	for _, c := range conns {
		frame.refs.Add(1)
		if !c.push(queuedFrame{frame, n}, wait) {
			frame.Release(nil)
			p.dropped.Add(1)
		}
	}
	frame.Release(nil)
	return nil
}

// Stats implements ros.Publisher. A message is unacknowledged as long as it waits to be sent.
func (p *Publisher) Stats() ros.PublisherStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.final != nil {
		return *p.final
	}
	tp := p.tp
	st := ros.PublisherStats{Sent: p.sent.Load(), Dropped: p.dropped.Load()}
	tp.mu.Lock()
	st.Matched, st.Reliable = len(tp.conns), len(tp.conns)
	tp.mu.Unlock()
	st.Unacked = tp.queued()
	return st
}

// finish remembers the last numbers.
func (p *Publisher) finish() {
	st := p.Stats()
	st.Matched, st.Reliable, st.Unacked = 0, 0, 0
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.final == nil {
		p.final = &st
	}
}

// Close implements ros.Publisher. The last one of a topic ends the connections.
func (p *Publisher) Close() error {
	tp, n := p.tp, p.tp.n
	tp.sendMu.Lock()
	p.finish()
	tp.mu.Lock()
	before := len(tp.pubs)
	tp.pubs = slices.DeleteFunc(slices.Clone(tp.pubs), func(o *Publisher) bool { return o == p })
	last := before > 0 && len(tp.pubs) == 0
	tp.mu.Unlock()
	if last {
		tp.drain()
		tp.cancel() // nobody is added from here on
	}
	tp.sendMu.Unlock()
	if !last {
		return nil
	}
	tp.unregister()
	n.mu.Lock()
	if n.pubs[tp.name] == tp {
		delete(n.pubs, tp.name)
	}
	n.mu.Unlock()
	n.nudge()
	return nil
}
