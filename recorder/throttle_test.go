package recorder

import (
	"testing"
	"time"

	"github.com/gobag/gobag/ros/rostest"
)

func TestThrottlePass(t *testing.T) {
	for _, c := range []struct {
		name    string
		limit   float64
		offered float64
		want    int // of 10 s
	}{
		{"a third", 10, 30, 100}, {"not a whole part", 30, 100, 300}, {"more than comes", 50, 20, 200}, {"slow", 0.5, 100, 5}, {"no limit", 0, 100, 1000},
	} {
		th := newThrottle(c.limit)
		got := 0
		stamp := time.Now().UnixNano()
		for range int(10 * c.offered) {
			if th.pass(stamp) {
				got++
			}
			stamp += int64(1e9 / c.offered)
		}
		if got < c.want-1 || got > c.want+1 {
			t.Errorf("%s: %g of %g Hz for 10 s: %d messages, want %d", c.name, c.limit, c.offered, got, c.want)
		}
	}
	th := newThrottle(1)
	now := time.Now().UnixNano()
	if !th.pass(now) || th.pass(now+1) || !th.pass(now-int64(time.Hour)) || th.pass(now-int64(time.Hour)+1) {
		t.Error("after the clock was set back an hour the topic must go on")
	}
	if !th.pass(now + int64(time.Hour)) {
		t.Error("nor may a silence stop it")
	}
}

// A throttled topic has what was asked for; the rest is counted as skipped, and no buffer is lost.
func TestThrottle(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a, b := g.advertise("/a"), g.advertise("/b")
		g.start(Options{All: true, Throttle: map[string]float64{"a": 10}})
		for range 100 {
			g.publish(a, 1, 10)
			g.publish(b, 1, 10)
			time.Sleep(20 * time.Millisecond)
		}
		res, err := g.stop()
		if err != nil {
			t.Fatal(err)
		}
		l := res.Ledger.Topics["/a"]
		if l.Received != 100 || l.Recorded < 20 || l.Recorded > 21 || l.Skipped != 100-l.Recorded || l.Lost.Total() != 0 {
			t.Errorf("/a: %+v", l)
		}
		if l := res.Ledger.Topics["/b"]; l.Recorded != 100 || l.Skipped != 0 {
			t.Errorf("/b: %+v", l)
		}
	})
	if err := (Options{Throttle: map[string]float64{"/a": -1}}).Validate(); err == nil {
		t.Error("a negative rate is accepted")
	}
}
