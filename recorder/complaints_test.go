package recorder

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

// What users of rosbag2 have asked for and suffered from, as far as it is the recorder's: one test for each, numbered as in
// docs/rosbag2-differences.md. Where a test of that behaviour is there already, it is run under this name.

// Messages of cameras are lost, and nothing says which and how many.
func TestComplaint01LossesAreNamed(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		camera, imu := g.advertise("/camera"), g.advertise("/imu")
		g.start(Options{All: true, MaxCacheSize: 1 << 20})
		g.publish(camera, 1, 100_000)
		g.publish(imu, 1, 50)
		settled()
		g.storage.freeze()
		for range 40 {
			g.publish(camera, 1, 100_000)
			g.publish(imu, 1, 50)
		}
		time.Sleep(3 * time.Second)
		g.storage.thaw()
		res, err := g.stop()
		if err != nil {
			t.Fatal(err)
		}
		c, i := res.Ledger.Topics["/camera"], res.Ledger.Topics["/imu"]
		if c.Lost.Queue == 0 || c.Recorded+c.Lost.Queue != 41 || i.Recorded+i.Lost.Queue != 41 || i.Lost.Queue >= c.Lost.Queue {
			t.Errorf("camera %+v, imu %+v", c, i)
		}
		g.wantEvent(EventLoss, "most on topic '/camera'")
		g.checkSums(res)
	})
}

// Messages are lost at each split.
func TestComplaint02SplitLosesNothing(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		var pubs []ros.Publisher
		for i := range 35 {
			pubs = append(pubs, g.advertise(fmt.Sprintf("/topic%02d", i)))
		}
		g.start(Options{All: true, MaxBagDuration: time.Second})
		for range 500 { // 100 Hz
			for _, p := range pubs {
				g.publish(p, 1, 100)
			}
			time.Sleep(10 * time.Millisecond)
		}
		res, err := g.stop()
		if err != nil || res.Files < 4 {
			t.Fatal(res.Files, err)
		}
		for name, l := range res.Ledger.Topics {
			if l.Recorded != 500 || l.Lost.Total() != 0 {
				t.Errorf("%s: %+v", name, l)
			}
		}
		g.checkSums(res)
	})
}

// Latched topics are missing after a split and after a start that was paused.
func TestComplaint07LatchedTopics(t *testing.T) {
	t.Run("split", TestRepeatsInEachFile)
	t.Run("paused", TestPause)
}

// Topics of unknown types stop discovery.
func TestComplaint11UnknownTypes(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		odd := g.advertise("/odd", func(topic *ros.Topic, _ *ros.QoS) { topic.Type = "nobody_has/msg/This" })
		plain := g.advertise("/plain")
		g.start(Options{All: true})
		g.publish(odd, 3, 50)
		g.publish(plain, 3, 50)
		settled()
		if res, err := g.stop(); err != nil || res.Messages != 6 {
			t.Errorf("%d messages, %v", res.Messages, err)
		}
	})
}

// Definitions are missing in the bag, and nobody says so.
func TestComplaint12MissingDefinitions(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		odd := g.advertise("/odd", func(topic *ros.Topic, _ *ros.QoS) { topic.Type = "nobody_has/msg/This" })
		g.start(Options{All: true})
		g.publish(odd, 1, 50)
		settled()
		res, err := g.stop()
		if err != nil || len(res.Undefined) != 1 || res.Undefined[0].Type != "nobody_has/msg/This" {
			t.Errorf("%+v, %v", res.Undefined, err)
		}
		g.wantEvent(EventDefinition, "nobody_has/msg/This (/odd)")
		if d := g.read().topics["/odd"].Definition; d.Text != "" || d.Encoding == "ros2msg" {
			t.Errorf("the bag has the definition %+v", d)
		}
	})
}

// A full disk ends badly.
func TestComplaint13DiskFull(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		var free atomic.Int64
		free.Store(1e9)
		a := g.advertise("/a")
		g.start(Options{All: true, MinFreeSpace: 5e8, FreeSpace: func(string) (int64, int64, error) { return free.Load(), 1e12, nil }})
		g.publish(a, 10, 50)
		settled()
		free.Store(1e8)
		res, err := g.wait()
		if !errors.Is(err, ErrDiskFull) || res.Reason != StopDisk {
			t.Errorf("%s, %v", res.Reason, err)
		}
		if s := g.read(); s.total != 10 || s.meta.MessageCount != 10 {
			t.Errorf("the bag holds %d messages", s.total)
		}
	})
}

// The recorder stops growing, silently.
func TestComplaint14Watchdog(t *testing.T) { TestWatchdog(t) }

// Memory grows far beyond the cache size.
func TestComplaint15Memory(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		const cache = 1 << 20
		a := g.advertise("/a")
		g.start(Options{All: true, MaxCacheSize: cache})
		g.publish(a, 1, 10)
		settled()
		g.storage.freeze()
		for range 20_000 { // tiny: it is the overhead that counts
			g.publish(a, 1, 10)
		}
		settled()
		s := g.rec.Snapshot()
		if s.Queue.Bytes > cache || s.Queue.Len > cache/entryOverhead {
			t.Errorf("%d messages, %d bytes of %d", s.Queue.Len, s.Queue.Bytes, cache)
		}
		g.storage.thaw()
		if res, err := g.stop(); err != nil || res.Messages+res.Ledger.Topics["/a"].Lost.Queue != 20_001 {
			t.Error(res.Messages, err)
		}
	})
}

// Files are larger than --max-bag-size.
func TestComplaint16FileSize(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		const limit, message = 100_000, 5_000
		a := g.advertise("/a")
		g.start(Options{All: true, MaxBagSize: limit})
		g.storage.freeze() // all of it waits in memory and comes as one batch
		g.publish(a, 200, message)
		settled()
		g.storage.thaw()
		res, err := g.stop()
		if err != nil || res.Files < 8 {
			t.Fatal(res.Files, err)
		}
		for i, f := range g.read().meta.Files {
			if f.MessageCount > limit/message+1 {
				t.Errorf("file %d has %d messages of %d bytes", i, f.MessageCount, message)
			}
		}
	})
}

// There is no ring of files and there are no stop conditions.
func TestComplaint17RingAndLimits(t *testing.T) {
	t.Run("ring", TestRingOfFiles)
	t.Run("limits", TestLimits)
}

// Snapshots leave empty files, are not bounded by time, and a second one blocks.
func TestComplaint18Snapshots(t *testing.T) {
	t.Run("never asked for", TestSnapshotNeverAskedFor)
	t.Run("by time, twice", TestSnapshotMode)
}

// With simulated time messages are recorded before the first /clock, and jumps go unnoticed.
func TestComplaint22SimTime(t *testing.T) { TestSimTime(t) }

// Many topics make discovery slow.
func TestComplaint32ManyTopics(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		g.start(Options{All: true})
		for i := range 1000 {
			g.advertise(fmt.Sprintf("/many/topic%04d", i))
		}
		time.Sleep(2 * time.Second)
		if n := len(g.rec.Snapshot().Topics); n != 1000 {
			t.Errorf("%d topics after 2 s", n)
		}
		if _, err := g.stop(); !errors.Is(err, ErrNothingRecorded) {
			t.Error(err)
		}
	})
}

// Which of several publishers a message came from is lost.
func TestComplaint34Publishers(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a, b := g.advertise("/tf"), g.advertise("/tf")
		g.start(Options{All: true})
		g.publish(a, 2, 50)
		g.publish(b, 3, 50)
		settled()
		if _, err := g.stop(); err != nil {
			t.Fatal(err)
		}
		s := g.read()
		by := map[uint32]int{}
		for _, m := range s.msgs["/tf"] {
			by[m.Source]++
		}
		if len(by) != 2 || by[1] != 2 || by[2] != 3 || len(s.topics["/tf"].Sources) != 2 {
			t.Errorf("%v of %v", by, s.topics["/tf"].Sources)
		}
	})
}

// One message that the storage cannot take ends the recording.
func TestComplaint35HugeMessage(t *testing.T) { TestTooLargeForStorage(t) }
