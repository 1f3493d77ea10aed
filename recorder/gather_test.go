package recorder

import (
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/ros/rostest"
)

// Small messages in quick succession are written together; large ones, many, and rare ones are not waited behind.
func TestGather(t *testing.T) {
	now := time.Now()
	few, large, many := make([]bag.Entry, 3), []bag.Entry{{Data: make([]byte, gatherBytes)}}, make([]bag.Entry, gatherCount)
	for _, c := range []struct {
		name    string
		entries []bag.Entry
		since   time.Duration
		want    bool
	}{
		{"few, soon", few, time.Millisecond, true}, {"few, rarely", few, gatherSoon, false},
		{"large", large, time.Millisecond, false}, {"many", many, time.Millisecond, false},
	} {
		w := writer{took: now.Add(-c.since)}
		if got := w.gathers(c.entries, now); got != c.want || w.took != now {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	inBubble(t, rostest.Options{}, func(g *rig) {
		p := g.advertise("/fast")
		g.start(Options{All: true})
		before := g.rec.busy.calls.Load()
		for range 2000 { // 10 kHz
			g.publish(p, 1, 100)
			time.Sleep(100 * time.Microsecond)
		}
		settled()
		calls := g.rec.busy.calls.Load() - before
		res, err := g.stop()
		if err != nil || res.Ledger.Topics["/fast"].Recorded != 2000 {
			t.Fatalf("%v, %+v", err, res.Ledger.Topics["/fast"])
		}
		if calls > 200 {
			t.Errorf("%d calls of the storage for 2000 messages in 0.2 s", calls)
		}
	})
}
