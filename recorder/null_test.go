package recorder

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/ros/rostest"
)

// TestNull: everything is counted as ever, and nothing is on the disk.
func TestNull(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a, b := g.advertise("/a"), g.advertise("/b", latched)
		var res Result
		var err error
		rec, cerr := New(Options{Node: g.node, Output: g.dir, Storage: StorageNull, All: true, MaxMessages: 150, Compression: bag.Compression{}})
		if cerr != nil {
			t.Fatal(cerr)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			res, err = rec.Run(context.Background())
		}()
		settled()
		for range 100 {
			g.publish(a, 1, 100)
			g.publish(b, 1, 50)
			time.Sleep(10 * time.Millisecond)
			if err := rec.Split(); err != nil && rec.Snapshot().State == StateRecording {
				t.Fatal(err)
			}
		}
		<-done
		if err != nil || res.Reason != StopMessages || res.Messages != 150 || res.Files != 0 || len(res.Topics) != 2 || res.Storage != StorageNull {
			t.Errorf("%v, %+v", err, res)
		}
		if l := res.Ledger.Topics["/a"]; l.Recorded != 75 || l.Lost.Total() != 0 {
			t.Errorf("/a: %+v", l)
		}
		if _, err := os.Stat(g.dir); !os.IsNotExist(err) {
			t.Errorf("%s: %v", g.dir, err)
		}
	})
}
