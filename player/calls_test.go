package player

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

// serviceNode is a node whose clients note the requests.
type serviceNode struct {
	ros.Node
	mu       sync.Mutex
	requests map[string][][]byte // by service
}

func (n *serviceNode) Serve(ros.Service, func([]byte) []byte) (ros.Server, error) {
	return nil, ros.ErrClosed
}

func (n *serviceNode) Client(s ros.Service) (ros.Client, error) { return &noteClient{n, s}, nil }

type noteClient struct {
	n *serviceNode
	s ros.Service
}

func (c *noteClient) Ready() bool { return true }
func (c *noteClient) Call(_ context.Context, request []byte) ([]byte, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	name := c.s.Name + " " + c.s.Type
	c.n.requests[name] = append(c.n.requests[name], slices.Clone(request))
	return []byte{0, 1, 0, 0, 0}, nil
}
func (c *noteClient) Close() error { return nil }

// event is a service event of AddTwoInts with a request; the two numbers are aligned otherwise in it than alone.
func event(kind uint8, a, b uint64) []byte {
	e := cdr.NewEncoder(nil, cdr.CDRLE)
	e.Uint8(kind)
	e.Int32(1)
	e.Uint32(2)
	e.Raw(make([]byte, 16))
	e.Int64(77)
	if kind > requestReceived { // a response
		e.SeqLen(0)
		e.SeqLen(1)
		e.Uint64(a + b)
		return e.Bytes()
	}
	e.SeqLen(1)
	e.Uint64(a)
	e.Uint64(b)
	e.SeqLen(0)
	return e.Bytes()
}

func TestServiceRequests(t *testing.T) {
	ts := []plugin.Topic{{Name: "/add/_service_event", Type: "example_interfaces/srv/AddTwoInts_Event", SerializationFormat: "cdr"}}
	data := [][]byte{event(requestSent, 1, 2), event(requestReceived, 3, 4), event(2, 3, 4), {0, 1, 0, 0, 1}}
	for fromClient, want := range map[bool][2]uint64{false: {3, 4}, true: {1, 2}} {
		inBubble(t, func(g *rig) {
			r := makeBagOf(t, "memory", ts, len(data), func(i int) (int, plugin.Message) {
				return 0, plugin.Message{RecvTime: start + int64(i)*100*ms, Data: data[i]}
			})
			n := &serviceNode{Node: g.node, requests: map[string][][]byte{}}
			g.play(Options{Bag: r, Node: n, CallServices: true, FromClient: fromClient, WaitAcked: 0})
			e := cdr.NewEncoder(nil, cdr.CDRLE)
			e.Uint64(want[0])
			e.Uint64(want[1])
			got := n.requests["/add example_interfaces/srv/AddTwoInts"]
			if len(got) != 1 || !bytes.Equal(got[0], e.Bytes()) {
				t.Errorf("from the client %v: called with %x, want %x", fromClient, got, e.Bytes())
			}
			if g.countEvents(EventOther, "an event cannot be read") != 1 {
				t.Errorf("%v", g.events)
			}
		})
	}
}
