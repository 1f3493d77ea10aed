package recorder

import (
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

func keepAll(_ *ros.Topic, q *ros.QoS) { q.History, q.Depth = ros.KeepAll, 0 }

// TestBackpressure: while the storage hangs, the publisher of the topic that asks for it waits and loses nothing; the
// others are drained and lose.
func TestBackpressure(t *testing.T) {
	inBubble(t, rostest.Options{QueueBytes: 256 << 10, MaxBlocking: time.Hour}, func(g *rig) {
		held, free := g.advertise("/held", keepAll), g.advertise("/free", keepAll)
		g.start(Options{All: true, Backpressure: []string{"held"}, MaxCacheSize: 1 << 20, Watchdog: -1})
		g.publish(held, 1, 100)
		g.publish(free, 1, 100)
		settled()
		g.storage.freeze()
		freed := make(chan struct{})
		go func() {
			defer close(freed)
			for range 40 { // its publisher is never held
				g.publish(free, 1, 64<<10)
				time.Sleep(100 * time.Millisecond)
			}
		}()
		<-freed
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			g.publish(held, 60, 32<<10)
		}()
		time.Sleep(10 * time.Second)
		select {
		case <-sent:
			t.Fatal("the publisher of /held did not wait")
		default:
		}
		g.storage.thaw()
		<-sent
		settled()
		res, err := g.stop()
		if err != nil {
			t.Fatal(err)
		}
		if l := res.Ledger.Topics["/held"]; l.Received != 61 || l.Recorded != 61 || l.Lost.Total() != 0 {
			t.Errorf("/held: %+v", l)
		}
		if l := res.Ledger.Topics["/free"]; l.Received != 41 || l.Lost.Queue == 0 || l.Recorded+l.Lost.Queue != 41 {
			t.Errorf("/free: %+v", l)
		}
		g.wantEvent(EventStorage, "publishers of topic '/held' had to wait")
	})
}

// TestBackpressureStop: a recording that is stopped while a publisher is held lets it go.
func TestBackpressureStop(t *testing.T) {
	inBubble(t, rostest.Options{QueueBytes: 256 << 10, MaxBlocking: time.Hour}, func(g *rig) {
		held := g.advertise("/held", keepAll)
		g.start(Options{All: true, Backpressure: []string{"/held"}, MaxCacheSize: 1 << 20, Watchdog: -1})
		g.storage.freeze()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			g.publish(held, 60, 32<<10)
		}()
		time.Sleep(time.Second)
		g.cancel()
		<-sent
		g.storage.thaw()
		res, err := g.wait()
		if err != nil {
			t.Fatal(err)
		}
		if l := res.Ledger.Topics["/held"]; l.Recorded != l.Received || l.Recorded == 0 || l.Recorded > 40 || l.Lost.Total() != 0 {
			t.Errorf("%+v", l)
		}
	})
}

func TestBackpressureWarns(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		g.advertise("/loose", bestEffort)
		g.advertise("/short")
		g.start(Options{All: true, Backpressure: []string{"/loose", "/short"}})
		g.wantEvent(EventQoS, "topic '/loose': a best-effort publisher cannot be held back")
		g.wantEvent(EventQoS, "topic '/short': a publisher keeps its last 10 messages only")
	})
	for _, o := range []Options{
		{Backpressure: []string{"/a"}, SnapshotMode: true},
		{Backpressure: []string{"a"}, Throttle: map[string]float64{"/a": 1}},
		{Backpressure: []string{"/a b"}},
	} {
		if len(o.validateBackpressure()) == 0 {
			t.Errorf("%+v is accepted", o.Backpressure)
		}
	}
}
