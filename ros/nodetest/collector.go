package nodetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"github.com/gobag/gobag/ros"
)

// payload is a message with a CDR header: a number, then n bytes that depend on it.
func payload(number uint32, n int) []byte {
	b := make([]byte, 8+n)
	b[1] = 1 // CDR, little endian
	binary.LittleEndian.PutUint32(b[4:], number)
	for i := range n {
		b[8+i] = byte(int(number)*31 + i*7 + i>>8)
	}
	return b
}

// samePayload is byte equality up to three padding bytes that the wire may have added.
func samePayload(got, sent []byte) bool {
	return len(got) >= len(sent) && len(got) <= len(sent)+3 && bytes.Equal(got[:len(sent)], sent) &&
		len(bytes.Trim(got[len(sent):], "\x00")) == 0
}

// arrival is a sample that a collector got.
type arrival struct {
	number  uint32
	writer  ros.EndpointID
	seq     uint64
	data    []byte
	source  int64
	receive int64
	cost    int
}

// collector is a handler that keeps everything.
type collector struct {
	mu       sync.Mutex
	arrivals []arrival
}

func (c *collector) handle(s ros.Sample) {
	a := arrival{writer: s.Writer, seq: s.Seq, data: bytes.Clone(s.Data), source: s.SourceTime, receive: s.RecvTime, cost: s.Cost}
	if len(s.Data) >= 8 {
		a.number = binary.LittleEndian.Uint32(s.Data[4:])
	}
	clear(s.Data) // the data is ours: nobody else may see this
	s.Release()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arrivals = append(c.arrivals, a)
}

func (c *collector) all() []arrival {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arrivals[:len(c.arrivals):len(c.arrivals)]
}

func (c *collector) len() int { return len(c.all()) }

// count waits for n arrivals.
func (s suite) count(t *testing.T, c *collector, n int) {
	t.Helper()
	s.eventually(t, "samples", func() string {
		if got := c.len(); got < n {
			return fmt.Sprintf("%d of %d arrived", got, n)
		}
		return ""
	})
}

// numbers checks that exactly these numbers arrived, in order.
func (c *collector) numbers(t *testing.T, first, last uint32) {
	t.Helper()
	all := c.all()
	if len(all) != int(last-first+1) {
		t.Errorf("%d samples arrived, want %d", len(all), last-first+1)
	}
	for i, a := range all {
		if want := first + uint32(i); a.number != want {
			t.Fatalf("sample %d is number %d, want %d", i, a.number, want)
		}
	}
}

// matched waits until the publisher has n subscriptions.
func (s suite) matched(t *testing.T, p ros.Publisher, n int) {
	t.Helper()
	s.eventually(t, "matching "+p.Topic().Name, func() string {
		if st := p.Stats(); st.Matched < n {
			return fmt.Sprintf("%d of %d subscriptions matched", st.Matched, n)
		}
		return ""
	})
}

// receiving waits until the subscription sees n publishers.
func (s suite) receiving(t *testing.T, sub ros.Subscription, n int) {
	t.Helper()
	s.eventually(t, "publishers of "+sub.Topic().Name, func() string {
		open := 0
		for _, w := range sub.Stats().Writers {
			if w.Matched {
				open++
			}
		}
		if open != n {
			return fmt.Sprintf("%d matched, want %d", open, n)
		}
		return ""
	})
}

func subscribe(t *testing.T, n ros.Node, topic ros.Topic, q ros.QoS) (ros.Subscription, *collector) {
	t.Helper()
	c := new(collector)
	sub, err := n.Subscribe(topic, q, c.handle)
	if err != nil {
		t.Fatal(err)
	}
	return sub, c
}

func advertise(t *testing.T, n ros.Node, topic ros.Topic, q ros.QoS) ros.Publisher {
	t.Helper()
	p, err := n.Advertise(topic, q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func publish(t *testing.T, p ros.Publisher, first, last uint32) {
	t.Helper()
	for number := first; number <= last; number++ {
		if err := p.Publish(payload(number, 16), int64(number)*1000); err != nil {
			t.Fatal(err)
		}
	}
}

// keepAll is a reliable profile that loses nothing.
func keepAll() ros.QoS {
	q := ros.DefaultQoS()
	q.History, q.Depth = ros.KeepAll, 0
	return q
}

func bestEffort() ros.QoS {
	q := ros.DefaultQoS()
	q.Reliability = ros.BestEffort
	return q
}

func latched(depth int) ros.QoS {
	q := ros.DefaultQoS()
	q.Durability, q.Depth = ros.TransientLocal, depth
	return q
}

const stringType = "std_msgs/msg/String"
