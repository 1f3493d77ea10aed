package recorder

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

func TestMissing(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.start(Options{Topics: []string{"a", "/b", "/c"}})
		g.publish(a, 1, 10)
		time.Sleep(6 * time.Second)
		g.wantEvent(EventMissing, "topics '/b', '/c' have not appeared yet")
		g.advertise("/c")
		settled()
		res, err := g.stop()
		var missing *MissingTopicsError
		if !errors.As(err, &missing) || !slices.Equal(missing.Missing, []Wanted{{"topic", "/b"}}) || errors.Is(err, ErrNothingRecorded) {
			t.Fatal(err)
		}
		if !slices.Equal(res.Missing, []Wanted{{"topic", "/b"}}) || res.Messages != 1 {
			t.Errorf("%+v", res)
		}
		g.checkSums(res)
	})
	inBubble(t, rostest.Options{}, func(g *rig) {
		g.start(Options{Topics: []string{"/b"}})
		time.Sleep(6 * time.Second)
		g.wantEvent(EventMissing, "no publisher is visible at all")
		if _, err := g.stop(); !errors.Is(err, ErrNothingRecorded) || !errors.Is(err, ErrMissingTopics) {
			t.Fatal(err)
		}
	})
	inBubble(t, rostest.Options{}, func(g *rig) {
		g.advertise("/a")
		g.start(Options{All: true})
		time.Sleep(6 * time.Second)
		g.wantEvent(EventMissing, "no message has come yet")
		if _, err := g.stop(); !errors.Is(err, ErrNothingRecorded) || errors.Is(err, ErrMissingTopics) {
			t.Fatal(err)
		}
	})
}

func TestAllNamedTopicsEndDiscovery(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.start(Options{Topics: []string{"/a", "/b"}})
		if g.hasEvent(EventAllSubscribed, "") {
			t.Error("/b is not there yet")
		}
		b := g.advertise("/b")
		settled()
		g.wantEvent(EventAllSubscribed, "All requested topics are subscribed. Stopping discovery...")
		a2 := g.advertise("/a", bestEffort) // its profile and its messages are recorded all the same
		settled()
		g.publish(a, 1, 10)
		g.publish(a2, 1, 10)
		g.publish(b, 1, 10)
		settled()
		res, err := g.stop()
		if err != nil || res.Messages != 3 {
			t.Fatal(err, res.Messages)
		}
		s := g.read()
		if q, err := bag.DecodeQoS(s.topics["/a"].OfferedQoS); err != nil || len(q) != 2 {
			t.Errorf("profiles of /a: %v %v", q, err)
		}
		if src := s.topics["/a"].Sources; len(src) != 2 || s.msgs["/a"][0].Source == s.msgs["/a"][1].Source {
			t.Errorf("sources of /a: %v", src)
		}
	})
}

func TestWhatIsNotRecorded(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		g.publish(g.advertise("/_hidden", latched), 1, 10)
		g.publish(g.advertise("/skip", latched), 1, 10)
		g.publish(g.advertise("/keep", latched), 1, 10)
		own, err := g.node.Advertise(ros.Topic{Name: "/own", Type: str}, ros.DefaultQoS())
		if err != nil {
			t.Fatal(err)
		}
		sub, err := g.talker.Subscribe(ros.Topic{Name: "/unpublished", Type: str}, ros.DefaultQoS(), func(s ros.Sample) { s.Release() })
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		g.start(Options{All: true, ExcludeTopics: []string{"/skip"}})
		g.publish(own, 1, 10)
		settled()
		if _, err := g.stop(); err != nil {
			t.Fatal(err)
		}
		if s := g.read(); len(s.topics) != 1 || len(s.msgs["/keep"]) != 1 {
			t.Errorf("%v", s.topics)
		}
	})
	inBubble(t, rostest.Options{}, func(g *rig) {
		sub, err := g.talker.Subscribe(ros.Topic{Name: "/unpublished", Type: str}, ros.DefaultQoS(), func(s ros.Sample) { s.Release() })
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		g.start(Options{All: true, IncludeUnpublished: true})
		settled()
		g.stop()
		if s := g.read(); s.topics["/unpublished"].Type != str {
			t.Errorf("%v", s.topics)
		}
	})
}

func TestSeveralTypes(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		other := func(topic *ros.Topic, _ *ros.QoS) { topic.Type = "a/msg/First" }
		g.advertise("/x", other)
		p1, p2 := g.advertise("/x"), g.advertise("/x")
		g.start(Options{All: true})
		g.publish(p1, 1, 10)
		g.publish(p2, 1, 10)
		time.Sleep(3 * time.Second)
		res, err := g.stop()
		if err != nil || res.Messages != 2 {
			t.Fatal(err, res.Messages)
		}
		s := g.read()
		if q, err := bag.DecodeQoS(s.topics["/x"].OfferedQoS); s.topics["/x"].Type != str || err != nil || len(q) != 2 {
			t.Errorf("recorded as %+v with profiles %v", s.topics["/x"].Topic, q)
		}
		if n := g.countEvents(EventTypeConflict, "not recorded is a/msg/First"); n != 1 {
			t.Errorf("%d warnings", n)
		}
	})
}

func TestDifferentHashes(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		none := func(topic *ros.Topic, _ *ros.QoS) { topic.TypeHash = "" }
		g.advertise("/x", none)
		g.start(Options{All: true})
		first := g.advertise("/x")
		settled()
		g.advertise("/x", func(topic *ros.Topic, _ *ros.QoS) { topic.TypeHash = "RIHS01_" + strings.Repeat("00", 32) })
		settled()
		g.publish(first, 1, 10)
		settled()
		if _, err := g.stop(); err != nil {
			t.Fatal(err)
		}
		if s := g.read(); s.topics["/x"].TypeHash != first.Topic().TypeHash {
			t.Errorf("hash %q", s.topics["/x"].TypeHash)
		}
		if n := g.countEvents(EventTypeConflict, "different definitions"); n != 1 {
			t.Errorf("%d warnings", n)
		}
	})
}

func TestQoSOverride(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a, b := g.advertise("/a", bestEffort), g.advertise("/b")
		g.start(Options{All: true, QoSOverrides: map[string]ros.QoS{"/a": ros.DefaultQoS()}})
		g.publish(a, 5, 10)
		g.publish(b, 5, 10)
		time.Sleep(5 * time.Second)
		if n := g.countEvents(EventQoS, "topic '/a' cannot be received: reliability: offered best_effort, requested reliable"); n != 1 {
			t.Errorf("%d warnings: %v", n, g.events)
		}
		res, err := g.stop()
		if err != nil || res.Messages != 5 {
			t.Fatal(err, res.Messages)
		}
	})
}

func TestNoDiscovery(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		g.start(Options{All: true, NoDiscovery: true})
		time.Sleep(100 * time.Millisecond)
		g.advertise("/a")
		time.Sleep(400 * time.Millisecond)
		b := g.advertise("/b") // still settling
		time.Sleep(600 * time.Millisecond)
		g.advertise("/late")
		time.Sleep(time.Second)
		g.publish(b, 1, 10)
		settled()
		if _, err := g.stop(); err != nil {
			t.Fatal(err)
		}
		if s := g.read(); len(s.topics) != 2 {
			t.Errorf("%v", s.topics)
		}
	})
}

func TestSubscribeFails(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a, b := g.advertise("/a"), g.advertise("/b")
		node := &stubbornNode{Node: g.node, refuse: 3}
		g.start(Options{All: true, Node: node})
		time.Sleep(5 * time.Second)
		g.publish(a, 1, 10)
		g.publish(b, 1, 10)
		settled()
		res, err := g.stop()
		if err != nil || res.Messages != 2 {
			t.Fatal(err, res.Messages)
		}
		if n := g.countEvents(EventOther, "cannot subscribe to topic '/a', trying again: refused"); n != 1 {
			t.Errorf("%d warnings", n)
		}
		if len(res.Topics) != 2 {
			t.Errorf("%+v", res.Topics)
		}
	})
}

type stubbornNode struct {
	ros.Node
	refuse int
}

func (n *stubbornNode) Subscribe(t ros.Topic, q ros.QoS, h func(ros.Sample)) (ros.Subscription, error) {
	if t.Name == "/a" && n.refuse > 0 {
		n.refuse--
		return nil, errors.New("refused")
	}
	return n.Node.Subscribe(t, q, h)
}

// slowNode takes its time to subscribe, as one does that tells hundreds of participants of it.
type slowNode struct {
	ros.Node
	pause time.Duration
}

func (n slowNode) Subscribe(t ros.Topic, q ros.QoS, h func(ros.Sample)) (ros.Subscription, error) {
	time.Sleep(n.pause)
	return n.Node.Subscribe(t, q, h)
}

// A look at the graph that took seconds, since a fleet came at once, makes no newcomer wait for a multiple of that.
func TestNewcomerAfterFleet(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		const fleet = 100
		for i := range fleet {
			g.advertise(fmt.Sprint("/fleet_", i))
		}
		g.start(Options{All: true, Node: slowNode{g.node, 50 * time.Millisecond}})
		time.Sleep(fleet * 50 * time.Millisecond)
		if n := g.countEvents(EventSubscribed, "/fleet_"); n < fleet-1 {
			t.Fatalf("%d of %d topics are subscribed", n, fleet)
		}
		g.advertise("/newcomer")
		time.Sleep(time.Second)
		g.wantEvent(EventSubscribed, "/newcomer")
		_, _ = g.stop() // nothing was published
	})
}
