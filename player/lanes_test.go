package player

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

// makeMixedBag writes a bag with a small message every ms on /imu and a large one every 30 ms on /image, for a second.
func makeMixedBag(t *testing.T) *bag.Reader {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bag")
	w, err := bag.Create(context.Background(), dir, bag.WriterOptions{StorageID: "memory", SyncInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	var ids []plugin.TopicID
	for _, topic := range topics("/imu", "/image") {
		id, err := w.AddTopic(topic)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for i := range 1000 {
		batch := []plugin.Message{{Topic: ids[0], RecvTime: start + int64(i)*ms, Data: msg{0, 0}.data(i)}}
		if i%30 == 0 {
			image := append(msg{0, 1}.data(i), make([]byte, largeMessage)...)
			batch = append(batch, plugin.Message{Topic: ids[1], RecvTime: batch[0].RecvTime, Data: image})
		}
		if err := w.Write(batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := bag.Open(context.Background(), dir, bag.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// slowImages is a node on which sending a large message takes a while.
type slowImages struct {
	ros.Node
	by  time.Duration
	err error
}

func (n *slowImages) Advertise(t ros.Topic, q ros.QoS) (ros.Publisher, error) {
	p, err := n.Node.Advertise(t, q)
	return &slowImagePublisher{p, n}, err
}

type slowImagePublisher struct {
	ros.Publisher
	n *slowImages
}

func (p *slowImagePublisher) Publish(data []byte, at int64) error {
	if len(data) >= largeMessage {
		time.Sleep(p.n.by)
		if p.n.err != nil {
			return p.n.err
		}
	}
	return p.Publisher.Publish(data, at)
}

// Large messages that take long to send do not make those of other topics late, and come in order.
func TestLargeMessagesDoNotDelayOthers(t *testing.T) {
	inBubble(t, func(g *rig) {
		r := makeMixedBag(t)
		g.listen("/imu", ros.DefaultQoS())
		g.listen("/image", ros.DefaultQoS())
		res := g.play(Options{Bag: r, Node: &slowImages{Node: g.node, by: 25 * time.Millisecond}})
		if res.Played != 1034 || res.Lateness.Max != 0 || res.Lateness.Count != 1034 {
			t.Fatalf("%+v", res)
		}
		n := map[string]int{}
		for _, h := range g.heard() {
			i := n[h.topic]
			if h.topic == "/image" {
				i *= 30
			}
			number := 0
			if h.topic == "/image" {
				number = 1
			}
			if want := string(msg{0, number}.data(i)); h.data[:len(want)] != want {
				t.Fatalf("%s: %.30q, want %q", h.topic, h.data, want)
			}
			n[h.topic]++
		}
		if n["/imu"] != 1000 || n["/image"] != 34 {
			t.Fatalf("heard %v", n)
		}
	})
}

// When sending is slower than the schedule, everything waits in the end, and nothing is skipped.
func TestLanesAreBounded(t *testing.T) {
	inBubble(t, func(g *rig) {
		r := makeMixedBag(t)
		g.listen("/imu", ros.DefaultQoS())
		g.listen("/image", ros.DefaultQoS())
		res := g.play(Options{Bag: r, Node: &slowImages{Node: g.node, by: 100 * time.Millisecond}})
		if res.Played != 1034 || res.Lateness.Max < time.Second {
			t.Fatalf("%+v", res)
		}
		images, imus := 0, 0
		for _, h := range g.heard() {
			if h.topic == "/image" {
				images++
			} else if imus++; imus/30-images > laneLength+2 {
				t.Fatalf("%d small messages after %d large ones", imus, images)
			}
		}
	})
}

func TestLaneFails(t *testing.T) {
	inBubble(t, func(g *rig) {
		r := makeMixedBag(t)
		failure := errors.New("node is gone")
		res, err := g.make(Options{Bag: r, Node: &slowImages{Node: g.node, by: 10 * time.Millisecond, err: failure}}).Run(context.Background())
		if !errors.Is(err, failure) || res.Played > 20 {
			t.Fatal(err, res.Played)
		}
	})
}

// The end asked for by the user does not wait for what a lane still holds.
func TestStopWithFullLane(t *testing.T) {
	inBubble(t, func(g *rig) {
		r := makeMixedBag(t)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		began := time.Now()
		_, err := g.make(Options{Bag: r, Node: &slowImages{Node: g.node, by: 2 * time.Second}}).Run(ctx)
		if d := time.Since(began); err != nil || d > 7*time.Second {
			t.Fatalf("%v after %v", err, d)
		}
	})
}
