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
