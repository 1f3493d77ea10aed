package ros2

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

// Publisher is a ros.Publisher.
type Publisher struct {
	node           *Node
	topic          ros.Topic
	w              *rtps.Writer
	representation int16
	warned         atomic.Bool
}

// Advertise implements ros.Node. Payloads are announced as XCDR1, which is what ROS 2 sends; AdvertiseAs announces
// others.
func (n *Node) Advertise(t ros.Topic, q ros.QoS) (ros.Publisher, error) {
	return n.advertise(t, q, wire.XCDR1)
}

// AdvertiseAs is Advertise for payloads encoded like the given one, of which the 4-byte encapsulation header is looked
// at: a subscription that cannot read XCDR2 must not be sent it.
func (n *Node) AdvertiseAs(t ros.Topic, q ros.QoS, payload []byte) (ros.Publisher, error) {
	r, err := representation(payload)
	if err != nil {
		return nil, fmt.Errorf("advertise %s: %w", t.Name, err)
	}
	return n.advertise(t, q, r)
}

func (n *Node) advertise(t ros.Topic, q ros.QoS, representation int16) (ros.Publisher, error) {
	key, err := n.endpointNames("advertise", t, q)
	if err != nil {
		return nil, err
	}
	if q.Reliability == ros.ReliabilityBestAvailable || q.Durability == ros.DurabilityBestAvailable {
		return nil, fmt.Errorf("advertise %s: best_available is for subscriptions only", t.Name)
	}
	qos := writerQoS(q)
	qos.MaxBlocking = n.options.MaxBlocking
	qos.Representation = []int16{representation}
	w, err := n.p.NewWriter(rtps.WriterConfig{Topic: key.topic, Type: key.typ, QoS: qos, UserData: endpointUserData(t.TypeHash), Window: n.options.Window})
	if err != nil {
		return nil, fmt.Errorf("advertise %s: %w", t.Name, closedError(err))
	}
	return &Publisher{node: n, topic: t, w: w, representation: representation}, nil
}

// representation is the XTypes data representation of a payload (1.3, §7.6.3.1.2).
func representation(payload []byte) (int16, error) {
	kind, _, _, err := cdr.Split(payload)
	if err != nil {
		return 0, err
	}
	if kind.Version() == 2 {
		return wire.XCDR2, nil
	}
	return wire.XCDR1, nil
}

// Topic implements ros.Publisher.
func (p *Publisher) Topic() ros.Topic { return p.topic }

// Publish implements ros.Publisher. data begins with its 4-byte encapsulation header.
func (p *Publisher) Publish(data []byte, sourceTime int64) error {
	r, err := representation(data)
	if err != nil {
		return fmt.Errorf("publish %s: %w", p.topic.Name, err)
	}
	if r != p.representation && p.warned.CompareAndSwap(false, true) {
		p.node.log.Warn("payload is encoded otherwise than announced, subscriptions may not read it", "topic", p.topic.Name,
			"announced", p.representation, "encoded", r)
	}
	if _, err := p.w.Write(data, sourceTime); err != nil {
		return fmt.Errorf("publish %s: %w", p.topic.Name, closedError(err))
	}
	return nil
}

// WaitAcked waits until every reliable subscription has acknowledged everything, or ctx ends.
func (p *Publisher) WaitAcked(ctx context.Context) error {
	if err := p.w.WaitAcked(ctx); err != nil {
		return fmt.Errorf("wait for acknowledgements of %s: %w", p.topic.Name, closedError(err))
	}
	return nil
}

// Stats implements ros.Publisher.
func (p *Publisher) Stats() ros.PublisherStats {
	w := p.w.Stats()
	st := ros.PublisherStats{Sent: w.Sent, Matched: w.Matched, Reliable: w.Reliable, Unacked: w.Unacked, Dropped: w.Dropped}
	for _, m := range w.Mismatches {
		st.Mismatches = append(st.Mismatches, ros.Mismatch{ID: ros.EndpointID(m.GUID), Reason: m.Reason})
	}
	return st
}

// Close implements ros.Publisher.
func (p *Publisher) Close() error {
	if err := p.w.Close(); err != nil && !errors.Is(err, rtps.ErrClosed) {
		return fmt.Errorf("close publisher %s: %w", p.topic.Name, err)
	}
	return nil
}
