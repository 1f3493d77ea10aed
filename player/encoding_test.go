package player

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

// encodedNode notes which topics are announced, and as what.
type encodedNode struct {
	ros.Node
	mu    sync.Mutex
	calls []string
}

func (n *encodedNode) Advertise(t ros.Topic, q ros.QoS) (ros.Publisher, error) {
	n.note(t.Name + " XCDR1")
	return n.Node.Advertise(t, q)
}

func (n *encodedNode) AdvertiseAs(t ros.Topic, q ros.QoS, payload []byte) (ros.Publisher, error) {
	if !xcdr2(payload) {
		n.note("as XCDR1")
	}
	n.note(t.Name + " XCDR2")
	return n.Node.Advertise(t, q)
}

func (n *encodedNode) note(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, s)
}

// raw is a message with an encapsulation header.
type raw struct {
	at    int64 // ms
	topic int
	kind  byte
}

const (
	kind1 = 0x01 // CDR_LE
	kind2 = 0x09 // D_CDR2_LE
)

func makeRawBag(t *testing.T, ts []plugin.Topic, msgs []raw) *bag.Reader {
	t.Helper()
	return makeBagOf(t, "memory", ts, len(msgs), func(i int) (int, plugin.Message) {
		m := msgs[i]
		return m.topic, plugin.Message{RecvTime: start + m.at*ms, Data: fmt.Appendf([]byte{0, m.kind, 0, 0}, "%d", i)}
	})
}

func TestAnnouncedEncoding(t *testing.T) {
	many := func(n int, kind byte) (out []raw) {
		for i := range n {
			out = append(out, raw{int64(i) * 10, 0, kind})
		}
		return out
	}
	for _, c := range []struct {
		name string
		msgs []raw
		want []string // announced, in order
		o    Options
	}{
		{"what comes first decides", []raw{{0, 0, kind1}, {10, 1, kind2}, {20, 0, kind1}}, []string{"/a XCDR1", "/b XCDR2"}, Options{}},
		{"no message", []raw{{0, 0, kind2}}, []string{"/a XCDR2", "/b XCDR2"}, Options{}},
		{"big endian and no CDR", []raw{{0, 0, 6}, {1, 1, 77}}, []string{"/a XCDR2", "/b XCDR1"}, Options{}},
		{"like the others", append(many(50, kind2), raw{600, 1, kind2}), []string{"/a XCDR2", "/b XCDR2"}, Options{ReadAhead: 10}},
		{"unlike the others", append(many(50, kind1), raw{600, 1, kind2}), []string{"/a XCDR1", "/b XCDR1", "/b XCDR2"}, Options{ReadAhead: 10}},
		{"unlike the others, the old way", append(many(50, kind2), raw{600, 1, kind1}), []string{"/a XCDR2", "/b XCDR2", "/b XCDR1"}, Options{ReadAhead: 10}},
		{"bounded by bytes", append(many(50, kind1), raw{600, 1, kind2}), []string{"/a XCDR1", "/b XCDR1", "/b XCDR2"}, Options{ReadAheadBytes: 20}},
		{"only what is played", []raw{{0, 0, kind1}, {300, 0, kind1}, {310, 1, kind2}}, []string{"/a XCDR1", "/b XCDR2"}, Options{StartOffset: 200 * time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(g *rig) {
				node := &encodedNode{Node: g.node}
				c.o.Bag, c.o.Node = makeRawBag(t, topics("/a", "/b"), c.msgs), node
				g.listen("/a", ros.DefaultQoS())
				g.listen("/b", ros.DefaultQoS())
				res := g.play(c.o)
				if !slices.Equal(node.calls, c.want) {
					t.Errorf("announced %q, want %q", node.calls, c.want)
				}
				if n := len(g.heard()); n != int(res.Played) || c.o.StartOffset == 0 && n != len(c.msgs) {
					t.Errorf("%d messages heard, %d played of %d", n, res.Played, len(c.msgs))
				}
			})
		})
	}
}

// A latched message from before the start is published before the first message that is read ahead.
func TestLatchedEncoding(t *testing.T) {
	inBubble(t, func(g *rig) {
		ts := topics("/a", "/map")
		q := bag.DefaultQoSProfile()
		q.Durability = int(ros.TransientLocal)
		ts[1].OfferedQoS = bag.EncodeQoS([]bag.QoSProfile{q}, true)
		node := &encodedNode{Node: g.node}
		r := makeRawBag(t, ts, []raw{{0, 1, kind2}, {500, 0, kind1}, {600, 0, kind1}})
		g.listen("/map", ros.DefaultQoS())
		g.play(Options{Bag: r, Node: node, StartOffset: 100 * time.Millisecond})
		if want := []string{"/a XCDR1", "/map XCDR1", "/map XCDR2"}; !slices.Equal(node.calls, want) {
			t.Errorf("announced %q, want %q", node.calls, want)
		}
		if len(g.heard()) != 1 {
			t.Errorf("%v", g.heard())
		}
	})
}
