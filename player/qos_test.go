package player

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/ros"
)

func TestLive(t *testing.T) {
	inBubble(t, func(g *rig) {
		if _, err := g.listener.Advertise(ros.Topic{Name: "/a", Type: str}, ros.DefaultQoS()); err != nil {
			t.Fatal(err)
		}
		if _, err := g.node.Advertise(ros.Topic{Name: "/b", Type: str}, ros.DefaultQoS()); err != nil { // our own does not count
			t.Fatal(err)
		}
		for _, n := range []string{"/rosout", "/empty"} { // what every node publishes, and what has no messages in the bag
			if _, err := g.listener.Advertise(ros.Topic{Name: n, Type: str}, ros.DefaultQoS()); err != nil {
				t.Fatal(err)
			}
		}
		r := makeBag(t, topics("/a", "/b", "/rosout", "/empty"), every(3, 10, 3))
		_, err := g.make(Options{Bag: r}).Run(context.Background())
		var live *LiveError
		if !errors.As(err, &live) || !errors.Is(err, ErrLive) || !slices.Equal(live.Topics, []string{"/a"}) || !slices.Equal(live.Nodes, []string{"/listener"}) {
			t.Fatal(err)
		}
		for _, info := range g.node.Graph().Topics() {
			if info.Name == "/a" && len(info.Publishers) != 1 {
				t.Error("advertised all the same")
			}
		}
		if res := g.play(Options{Bag: r, AllowLive: true}); res.Played != 3 {
			t.Errorf("%+v", res)
		}
		if res := g.play(Options{Bag: r, Remap: []string{"/a:=/replayed/a"}}); res.Played != 3 {
			t.Errorf("%+v", res)
		}
	})
}

func TestRecordedQoS(t *testing.T) {
	inBubble(t, func(g *rig) {
		ts := topics("/latched", "/best", "/mixed", "/unreadable")
		latched, best := bag.DefaultQoSProfile(), bag.DefaultQoSProfile()
		latched.Durability, best.Reliability = int(ros.TransientLocal), int(ros.BestEffort)
		ts[0].OfferedQoS = bag.EncodeQoS([]bag.QoSProfile{latched, latched}, true)
		ts[1].OfferedQoS = bag.EncodeQoS([]bag.QoSProfile{best}, false)
		ts[2].OfferedQoS = bag.EncodeQoS([]bag.QoSProfile{bag.DefaultQoSProfile(), best}, true)
		ts[3].OfferedQoS = "- depth: 3"
		msgs := append(every(4, 10, 4), msg{5000, 1})
		r := makeBag(t, ts, msgs)
		p := g.make(Options{Bag: r, QoSOverrides: map[string]ros.QoS{"/x": ros.DefaultQoS()}})
		done := make(chan error)
		go func() {
			_, err := p.Run(context.Background())
			done <- err
		}()
		time.Sleep(4 * time.Second)
		late := ros.DefaultQoS()
		late.Durability = ros.TransientLocal
		g.listen("/latched", late)
		time.Sleep(100 * time.Millisecond)
		g.wantData(msgs, 0)
		qos := map[string]ros.QoS{}
		for _, info := range g.listener.Graph().Topics() {
			for _, pub := range info.Publishers {
				qos[info.Name] = pub.QoS
				if pub.Topic.TypeHash != ts[0].TypeHash {
					t.Errorf("hash of %s: %q", info.Name, pub.Topic.TypeHash)
				}
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if q := qos["/latched"]; q.Durability != ros.TransientLocal || q.Reliability != ros.Reliable {
			t.Errorf("/latched: %v", q)
		}
		if q := qos["/best"]; q.Reliability != ros.BestEffort {
			t.Errorf("/best: %v", q)
		}
		if qos["/mixed"] != ros.DefaultQoS() || g.countEvents(EventQoS, "topic '/mixed': the 2 recorded publishers did not offer the same reliability") != 1 {
			t.Errorf("/mixed: %v, %v", qos["/mixed"], g.events)
		}
		if qos["/unreadable"] != ros.DefaultQoS() || g.countEvents(EventQoS, "topic '/unreadable' is published with the default QoS") != 1 {
			t.Errorf("/unreadable: %v, %v", qos["/unreadable"], g.events)
		}
	})
}

// What was offered is offered again, so that who asked for it receives the playback too.
func TestOffersAreKept(t *testing.T) {
	inBubble(t, func(g *rig) {
		ts := topics("/a")
		q := bag.DefaultQoSProfile()
		q.Deadline, q.Lifespan = 500*time.Millisecond, 3*time.Second
		q.Liveliness, q.LivelinessLeaseDuration = int(ros.ManualByTopic), time.Second
		same := q
		same.History, same.Depth, same.Lifespan = 2, 0, time.Second // these do not count
		ts[0].OfferedQoS = bag.EncodeQoS([]bag.QoSProfile{q, same}, true)
		msgs := every(3, 100, 1)
		r := makeBag(t, ts, msgs)
		asked := ros.DefaultQoS()
		asked.Deadline, asked.Liveliness, asked.LivelinessLeaseDuration = time.Second, ros.ManualByTopic, 2*time.Second
		g.listen("/a", asked)
		var offered ros.QoS
		time.AfterFunc(500*time.Millisecond, func() {
			for _, info := range g.listener.Graph().Topics() {
				for _, p := range info.Publishers {
					offered = p.QoS
				}
			}
		})
		g.play(Options{Bag: r})
		g.wantData(msgs, 0, 1, 2)
		want := ros.QoS{History: ros.KeepLast, Depth: 10, Reliability: ros.Reliable, Durability: ros.Volatile, Deadline: 500 * time.Millisecond,
			Lifespan: 3 * time.Second, Liveliness: ros.ManualByTopic, LivelinessLeaseDuration: time.Second}
		if offered != want {
			t.Errorf("offered %+v, want %+v", offered, want)
		}
		if g.countEvents(EventQoS, "") != 0 {
			t.Error(g.events)
		}
	})
}

func TestQoSOverride(t *testing.T) {
	inBubble(t, func(g *rig) {
		best := ros.BestAvailableQoS()
		best.Reliability = ros.BestEffort
		r := makeBag(t, topics("/a", "/b"), every(2, 10, 2))
		g.listen("/a", ros.DefaultQoS()) // reliable: cannot receive best effort
		g.play(Options{Bag: r, Remap: []string{"/b:=/c"}, QoSOverrides: map[string]ros.QoS{"/a": best, "/c": best}})
		if len(g.heard()) != 0 {
			t.Error("heard a best-effort message reliably")
		}
		if n := g.countEvents(EventQoS, "to topic '/a' receives nothing: reliability: offered best_effort, requested reliable"); n != 1 {
			t.Errorf("%d events: %v", n, g.events)
		}
	})
}

func TestLatchedBeforeStart(t *testing.T) {
	inBubble(t, func(g *rig) {
		ts := topics("/map", "/odom")
		q := bag.DefaultQoSProfile()
		q.Durability, q.Depth = int(ros.TransientLocal), 1
		ts[0].OfferedQoS = bag.EncodeQoS([]bag.QoSProfile{q}, true)
		msgs := []msg{{0, 0}, {10, 1}, {20, 0}, {500, 1}, {1000, 1}}
		r := makeBag(t, ts, msgs)
		late := ros.DefaultQoS()
		late.Durability = ros.TransientLocal
		g.listen("/map", late)
		g.listen("/odom", ros.DefaultQoS())
		res := g.play(Options{Bag: r, StartOffset: 100 * time.Millisecond})
		g.wantData(msgs, 0, 2, 3, 4) // the player keeps the last ten, whatever was recorded
		if res.Played != 4 || res.Lateness.Count != 2 {
			t.Errorf("%+v", res)
		}
		if g.countEvents(EventOther, "topic '/map' is latched: 2 messages") != 1 {
			t.Error(g.events)
		}
	})
	inBubble(t, func(g *rig) { // no more than the publisher keeps
		ts := topics("/map")
		q := bag.DefaultQoSProfile()
		q.Durability = int(ros.TransientLocal)
		ts[0].OfferedQoS = bag.EncodeQoS([]bag.QoSProfile{q}, true)
		msgs := every(30, 10, 1)
		r := makeBag(t, ts, msgs)
		g.listen("/map", ros.DefaultQoS())
		g.play(Options{Bag: r, StartOffset: 200 * time.Millisecond})
		g.wantData(msgs, upTo(10, 30)...)
	})
}

func TestFirstMessageIsNotLost(t *testing.T) {
	for _, after := range []time.Duration{0, 250 * time.Millisecond, 450 * time.Millisecond} {
		inBubble(t, func(g *rig) {
			msgs := every(3, 10, 1)
			r := makeBag(t, topics("/a"), msgs)
			time.AfterFunc(after, func() { g.listen("/a", ros.DefaultQoS()) })
			g.play(Options{Bag: r})
			g.wantData(msgs, 0, 1, 2)
		})
	}
	inBubble(t, func(g *rig) { // a graph that never settles does not keep us
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
				if p, err := g.listener.Advertise(ros.Topic{Name: "/noise", Type: str}, ros.DefaultQoS()); err == nil {
					p.Close()
				}
			}
		}()
		r := makeBag(t, topics("/a"), []msg{{0, 0}})
		began := time.Now()
		g.play(Options{Bag: r, WaitAcked: -1})
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

func TestWaitsForMatch(t *testing.T) {
	for _, wait := range []time.Duration{800 * time.Millisecond, time.Hour} {
		inBubble(t, func(g *rig) {
			r := makeBag(t, topics("/a"), []msg{{0, 0}})
			g.listen("/a", ros.DefaultQoS())
			g.play(Options{Bag: r, Node: &hesitantNode{g.node, time.Now().Add(wait)}, DiscoveryWait: time.Second})
			want := 900 * time.Millisecond
			if wait > time.Second {
				want = 1300 * time.Millisecond // settling and one second more
			}
			if at := g.heard()[0].after; at < want || at > want+50*time.Millisecond {
				t.Errorf("first message after %v", at)
			}
		})
	}
}
