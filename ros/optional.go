package ros

import "context"

// EncodedAdvertiser is a Node that can announce how payloads are encoded, where a transport makes a difference: on DDS a
// subscription that cannot read XCDR2 must not be matched with a publisher of it.
type EncodedAdvertiser interface {
	// AdvertiseAs is Node.Advertise for payloads encoded like the given one, whose header is looked at.
	AdvertiseAs(t Topic, q QoS, payload []byte) (Publisher, error)
}

// AdvertiseAs announces a publisher for payloads encoded like the given one, on any node.
func AdvertiseAs(n Node, t Topic, q QoS, payload []byte) (Publisher, error) {
	if e, ok := n.(EncodedAdvertiser); ok {
		return e.AdvertiseAs(t, q, payload)
	}
	return n.Advertise(t, q)
}

// Acker is a Publisher that can wait until every reliable subscription has acknowledged everything published so far.
type Acker interface {
	WaitAcked(ctx context.Context) error // ctx.Err() wrapped if that did not happen in time
}

// TypeSource is one file of a type's definition as a node serves it (type_description_interfaces/msg/TypeSource).
type TypeSource struct {
	Type     string // "std_msgs/msg/String"
	Encoding string // "msg", "idl", "srv", "action", "dynamic" or "implicit"
	Text     string // the file as it is; empty for "dynamic" and "implicit"
	Fields   string // a .msg file of the fields in the node's description of the type; "" where there is none
}

// TypeDescriber is a Node that can ask the node behind a publisher how it defines a type.
type TypeDescriber interface {
	// DescribeType asks the node that owns the publisher, by its service <node>/get_type_description (ROS 2 from Iron on),
	// for the sources of typ, "pkg/msg/Name", whose hash is the given one ("RIHS01_…"; "" asks without). It returns the
	// files of the type and of everything in it, as the node sent them: that they give the hash is for the caller to
	// check. It keeps trying while the service does not answer, until ctx ends, and fails at once when the node refuses.
	// Safe for concurrent use.
	DescribeType(ctx context.Context, publisher EndpointID, typ, hash string) ([]TypeSource, error)
}

// Holder is a Node whose subscriptions can hold their publishers back.
type Holder interface {
	// SubscribeHeld is Node.Subscribe with offer, which is called before h where the publisher is acknowledged, by the rules
	// of h, and may refuse a sample: it is the handler's only where offer returns true. After a refusal nothing of that
	// publisher is taken or acknowledged until HeldSubscription.Resume, so that one that keeps all has to wait. h gets the
	// samples of best-effort publishers, and what a publisher that left or went on had sent before.
	SubscribeHeld(t Topic, q QoS, offer func(Sample) bool, h func(Sample)) (HeldSubscription, error)
}

// HeldSubscription is a Subscription that can hold its publishers back.
type HeldSubscription interface {
	Subscription

	// Resume has refused samples offered again. It must not be called by a handler; without any it does nothing.
	Resume()
}
