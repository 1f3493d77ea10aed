package rostest

import (
	"context"
	"fmt"

	"github.com/gobag/gobag/ros"
)

// TypeServer answers for a node how it defines a type. What it returns is handed to the one who asked as it is. ctx ends
// when that one gives up.
type TypeServer func(ctx context.Context, typ, hash string) ([]ros.TypeSource, error)

var _ ros.TypeDescriber = (*Node)(nil)

// ServeTypes makes the node answer those who ask for the definition of a type, as the service get_type_description of a
// ROS 2 node does; nil ends that. Without it those who ask wait.
func (n *Node) ServeTypes(f TypeServer) {
	n.net.mu.Lock()
	defer n.net.mu.Unlock()
	n.types = f
	n.net.notify()
}

// DescribeType implements ros.TypeDescriber: it asks the node that has the publisher.
func (n *Node) DescribeType(ctx context.Context, publisher ros.EndpointID, typ, hash string) ([]ros.TypeSource, error) {
	for {
		n.net.mu.Lock()
		changed, closed, owner := n.net.changed, n.closed, n.net.owner(publisher)
		state := "the publisher is not there"
		var server TypeServer
		if owner != nil {
			server, state = owner.types, "node "+owner.name+" does not answer"
		}
		n.net.mu.Unlock()
		if closed {
			return nil, fmt.Errorf("describe %s: node: %w", typ, ros.ErrClosed)
		}
		if server != nil {
			return server(ctx, typ, hash)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("describe %s: %s: %w", typ, state, ctx.Err())
		}
	}
}

// owner returns the node that has the publisher; nil if none has. n.mu is held.
func (n *Network) owner(publisher ros.EndpointID) *Node {
	for _, t := range n.topics {
		for _, p := range t.pubs {
			if p.id == publisher {
				return p.node
			}
		}
	}
	return nil
}
