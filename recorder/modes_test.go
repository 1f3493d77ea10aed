package recorder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

// texts are the payloads of a topic in a bag up to their second blank: "/a 3".
func texts(ms []plugin.Message) (out []string) {
	for _, m := range ms {
		words := strings.SplitN(string(m.Data), " ", 3)
		out = append(out, strings.Join(words[:2], " "))
	}
	return out
}

func wantTexts(t *testing.T, what string, got []plugin.Message, want ...string) {
	t.Helper()
	if g := strings.Join(texts(got), ", "); g != strings.Join(want, ", ") {
		t.Errorf("%s: %s, want %s", what, g, strings.Join(want, ", "))
	}
}

func TestPause(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a, m := g.advertise("/a"), g.advertise("/map", latched)
		g.publish(m, 1, 50)
		g.start(Options{All: true, StartPaused: true})
		g.publish(a, 3, 50) // not recorded
		settled()
		if !g.rec.Paused() || g.rec.Snapshot().Messages != 0 {
			t.Error("it is not paused")
		}
		g.rec.Resume()
		g.publish(a, 2, 50)
		settled()
		g.rec.Pause()
		g.publish(a, 4, 50)
		settled()
		if g.rec.Toggle() {
			t.Error("it is paused still")
		}
		g.publish(a, 1, 50)
		settled()
		res, err := g.stop()
		if err != nil {
			t.Fatal(err)
		}
		s := g.read()
		wantTexts(t, "/a", s.msgs["/a"], "/a 0", "/a 1", "/a 0")
		wantTexts(t, "the latched topic that came while it paused", s.msgs["/map"], "/map 0")
		if l := res.Ledger.Topics["/a"]; l.Skipped != 7 || l.Received != 10 || l.Recorded != 3 || l.Lost.Total() != 0 {
			t.Errorf("ledger of /a: %+v", l)
		}
		if l := res.Ledger.Topics["/map"]; l.Skipped != 0 || l.Recorded != 1 {
			t.Errorf("ledger of /map: %+v", l)
		}
	})
}

func TestRepeatsInEachFile(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a, m := g.advertise("/a"), g.advertise("/map", latched)
		g.publish(m, 2, 50)
		g.start(Options{All: true})
		for range 3 {
			g.publish(a, 2, 50)
			settled()
			if err := g.rec.Split(); err != nil {
				t.Fatal(err)
			}
		}
		g.publish(a, 1, 50)
		settled()
		res, err := g.stop()
		if err != nil {
			t.Fatal(err)
		}
		if res.Messages != 9 || res.Files != 4 {
			t.Errorf("%d messages in %d files", res.Messages, res.Files)
		}
		s := g.read() // file by file: with the repeats
		if n := len(s.msgs["/map"]); n != 2+3 {
			t.Errorf("the files hold %d messages of /map, want 2 and 3 repeats: %v", n, texts(s.msgs["/map"]))
		}
		r, err := bag.Open(context.Background(), g.dir, bag.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if i := r.Info(); i.Messages != 9 || len(i.Repeats) != 3 || len(i.Warnings) > 0 {
			t.Errorf("the bag has %d messages, repeats %v, warnings %q", i.Messages, i.Repeats, i.Warnings)
		}
		it, err := r.Messages(plugin.Query{})
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		n := 0
		for m := (plugin.Message{}); it.Next(&m) == nil; n++ {
		}
		if n != 9 {
			t.Errorf("the bag reads as %d messages", n)
		}
	})
}

func TestRingOfFiles(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.start(Options{All: true, MaxBagFiles: 2, MaxBagDuration: time.Hour})
		for range 5 {
			g.publish(a, 2, 50)
			settled()
			if err := g.rec.Split(); err != nil {
				t.Fatal(err)
			}
		}
		g.publish(a, 1, 50)
		settled()
		res, err := g.stop()
		if err != nil {
			t.Fatal(err)
		}
		s := g.read()
		if len(s.meta.Paths) != 2 || s.total != 3 || s.meta.MessageCount != 3 {
			t.Errorf("files %v, %d messages, metadata says %d", s.meta.Paths, s.total, s.meta.MessageCount)
		}
		if l := res.Ledger.Topics["/a"]; l.Recorded != 11 || l.Deleted != 8 {
			t.Errorf("ledger: %+v", l)
		}
		g.wantEvent(EventDeleted, "bag_0")
		if span := time.Duration(s.msgs["/a"][2].RecvTime - s.msgs["/a"][0].RecvTime); s.meta.Duration != span || s.meta.Start != s.msgs["/a"][0].RecvTime {
			t.Errorf("metadata says start %d and %v, the files hold %d and %v", s.meta.Start, s.meta.Duration, s.msgs["/a"][0].RecvTime, span)
		}
	})
}

// snapshotDirs lists the bags in the output of a recorder in snapshot mode.
func (g *rig) snapshotDirs() []string {
	g.Helper()
	found, err := filepath.Glob(filepath.Join(g.dir, "*", bag.MetadataFile))
	if err != nil {
		g.Fatal(err)
	}
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found
}

// in reads another bag of the same storage.
func (g *rig) in(dir string) stored {
	own := g.dir
	defer func() { g.dir = own }()
	g.dir = dir
	return g.read()
}

func TestSnapshotMode(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a, m := g.advertise("/a"), g.advertise("/map", latched)
		g.publish(m, 1, 50)
		g.start(Options{All: true, SnapshotMode: true, MaxCacheDuration: 10 * time.Second, PostRoll: 5 * time.Second})
		time.Sleep(20 * time.Second)
		for range 30 { // one a second: the last ten are kept
			g.publish(a, 1, 50)
			time.Sleep(time.Second)
		}
		settled()
		if dirs := g.snapshotDirs(); len(dirs) != 0 {
			t.Errorf("before it was asked for there are %v", dirs)
		}
		if err := g.rec.TakeSnapshot("test", false); err != nil {
			t.Fatal(err)
		}
		for range 10 { // five of them in the post-roll
			time.Sleep(time.Second)
			g.publish(a, 1, 50)
		}
		settled()
		if err := g.rec.TakeSnapshot("again", true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		res, err := g.stop()
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Snapshots) != 2 || res.Snapshots[0].Reason != "test" || !res.Snapshots[1].Protected {
			t.Fatalf("snapshots: %+v", res.Snapshots)
		}
		s := g.in(res.Snapshots[0].Dir)
		if n := len(s.msgs["/a"]); n < 13 || n > 16 {
			t.Errorf("%d messages of /a, want ten and five", n)
		}
		wantTexts(t, "the map of half a minute before", s.msgs["/map"], "/map 0")
		if s.msgs["/map"][0].RecvTime >= s.msgs["/a"][0].RecvTime {
			t.Error("the map is not in front")
		}
		wantTexts(t, "the map in the second snapshot", g.in(res.Snapshots[1].Dir).msgs["/map"], "/map 0")
		l := res.Ledger.Topics["/a"]
		if l.Received != 40 || l.Recorded+l.Skipped != 40 || l.Lost.Total() != 0 {
			t.Errorf("ledger: %+v", l)
		}
		if len(s.meta.CustomData[bag.KeyTrigger]) == 0 {
			t.Error("the bag does not say why it was made")
		}
	})
}

func TestSnapshotNeverAskedFor(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.start(Options{All: true, SnapshotMode: true})
		g.publish(a, 100, 50)
		settled()
		res, err := g.stop()
		if err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(g.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("something was created: %v", err)
		}
		if l := res.Ledger.Topics["/a"]; l.Skipped != 100 {
			t.Errorf("ledger: %+v", l)
		}
	})
}

func TestSnapshotMemory(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.start(Options{All: true, SnapshotMode: true, MaxCacheSize: 1 << 20})
		for range 100 {
			g.publish(a, 20, 5000)
			settled()
			if s := g.rec.Snapshot(); s.Queue.Bytes > 1<<20 || s.Lost.Queue > 0 {
				t.Fatalf("%d bytes in memory, %d lost", s.Queue.Bytes, s.Lost.Queue)
			}
		}
		if err := g.rec.TakeSnapshot("x", false); err != nil {
			t.Fatal(err)
		}
		settled()
		res, err := g.stop()
		if err != nil {
			t.Fatal(err)
		}
		if n := res.Messages; n < 100 || n > 170 {
			t.Errorf("the snapshot has %d messages of 5 kB, 1 MiB was allowed", n)
		}
	})
}

func TestTriggerAndQuota(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.start(Options{All: true, SnapshotMode: true, MaxTotalSize: 40000, Triggers: []Trigger{{Topic: "/a", Text: "/a says so",
			Match: func(_ string, _ plugin.Definition, data []byte) bool { return strings.HasPrefix(string(data), "/a 9 ") }}}})
		for range 6 {
			g.publish(a, 10, 1000)
			settled()
			time.Sleep(1100 * time.Millisecond)
		}
		res, err := g.stop()
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Snapshots) != 6 || res.Snapshots[0].Reason != "/a says so" || res.Messages != 60 {
			t.Errorf("%d messages, snapshots %+v", res.Messages, res.Snapshots)
		}
		if g.countEvents(EventDeleted, "snapshot") == 0 {
			t.Error("the quota deleted nothing")
		}
		if dirs := g.snapshotDirs(); len(dirs) == 0 || len(dirs) == 6 || dirs[len(dirs)-1] != res.Snapshots[5].Dir {
			t.Errorf("left are %v", dirs)
		}
	})
}

func TestSimTime(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		clock, err := g.talker.Advertise(ros.Topic{Name: "/clock", Type: clockType}, ros.DefaultQoS())
		if err != nil {
			t.Fatal(err)
		}
		tick := func(sec int32) {
			var e cdr.Encoder
			e.Reset(nil, cdr.CDRLE)
			e.Int32(sec)
			e.Uint32(5)
			if err := clock.Publish(e.Bytes(), 1); err != nil {
				t.Fatal(err)
			}
			settled()
		}
		g.start(Options{Topics: []string{"/a"}, UseSimTime: true})
		g.publish(a, 3, 50)
		settled()
		for _, sec := range []int32{100, 101, 50} {
			tick(sec)
			g.publish(a, 1, 50)
			settled()
		}
		res, err := g.stop()
		if err != nil {
			t.Fatal(err)
		}
		s := g.read()
		var got []int64
		for _, m := range s.msgs["/a"] {
			got = append(got, m.RecvTime)
		}
		if len(got) != 3 { // the reference driver reads by stamp
			t.Fatalf("recorded at %v", got)
		}
		if got[0] != 50e9+5 || got[1] != 100e9+5 || got[2] != 101e9+5 {
			t.Errorf("recorded at %v", got)
		}
		if l := res.Ledger.Topics["/a"]; l.Skipped != 3 {
			t.Errorf("ledger: %+v", l)
		}
		g.wantEvent(EventClockStep, "backwards")
		if jumps, err := bag.ParseClockSteps(s.meta.CustomData[bag.KeySimJumps]); err != nil || len(jumps) != 1 || jumps[0].After != 50e9+5 {
			t.Errorf("jumps in the bag: %v, %v", jumps, err)
		}
	})
}

func TestStaticAndLeafTopics(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		g.start(Options{AllTopics: true, IgnoreLeaf: true, StaticTopics: []ros.Topic{{Name: "/static", Type: str}}})
		g.wantEvent(EventSubscribed, "/static")
		leaf, used, static := g.advertise("/leaf"), g.advertise("/used"), g.advertise("/static")
		other := g.net.Node("other")
		defer other.Close()
		if _, err := other.Subscribe(ros.Topic{Name: "/used", Type: str}, ros.DefaultQoS(), func(s ros.Sample) { s.Release() }); err != nil {
			t.Fatal(err)
		}
		settled()
		for _, p := range []ros.Publisher{leaf, used, static} {
			g.publish(p, 2, 50)
		}
		settled()
		if _, err := g.stop(); err != nil {
			t.Fatal(err)
		}
		s := g.read()
		if len(s.msgs["/leaf"]) != 0 || len(s.msgs["/used"]) != 2 || len(s.msgs["/static"]) != 2 {
			t.Errorf("recorded: %d of a leaf, %d of a used and %d of a static topic", len(s.msgs["/leaf"]), len(s.msgs["/used"]), len(s.msgs["/static"]))
		}
	})
}

func TestDiscoveryStopped(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		g.start(Options{All: true})
		g.rec.StopDiscovery()
		a := g.advertise("/a")
		settled()
		if g.rec.Discovering() || len(g.rec.Snapshot().Topics) != 0 {
			t.Error("a topic was found")
		}
		g.rec.StartDiscovery()
		time.Sleep(time.Second)
		synctest.Wait()
		g.publish(a, 1, 50)
		settled()
		if res, err := g.stop(); err != nil || res.Messages != 1 {
			t.Error(res.Messages, err)
		}
	})
}

func TestWatchdog(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.start(Options{All: true, Watchdog: 10 * time.Second})
		g.publish(a, 5, 50)
		settled()
		g.storage.freeze()
		for range 15 {
			g.publish(a, 1, 50)
			time.Sleep(time.Second)
		}
		g.wantEvent(EventStorage, "nothing has reached the storage")
		if g.rec.Snapshot().Healthy {
			t.Error("it calls itself healthy")
		}
		g.storage.thaw()
		time.Sleep(5 * time.Second)
		res, err := g.stop()
		if !errors.Is(err, ErrStalled) || res.Messages != 20 {
			t.Errorf("%d messages, %v", res.Messages, err)
		}
	})
}

func TestCommandsAfterTheEnd(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.start(Options{All: true})
		g.publish(a, 1, 50)
		settled()
		if err := g.rec.TakeSnapshot("x", false); !errors.Is(err, ErrNoSnapshotMode) {
			t.Errorf("snapshot without the mode: %v", err)
		}
		if _, err := g.stop(); err != nil {
			t.Fatal(err)
		}
		if err := g.rec.Split(); !errors.Is(err, ErrNotRecording) {
			t.Errorf("split after the end: %v", err)
		}
	})
}

func TestFlowInLedger(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.start(Options{All: true})
		for i := range 50 {
			g.publish(a, 1, 50)
			time.Sleep(20 * time.Millisecond)
			if i == 24 {
				time.Sleep(time.Second)
			}
		}
		res, err := g.stop()
		if err != nil {
			t.Fatal(err)
		}
		s := g.read()
		l := s.ledger(t).Topics["/a"]
		if l.Gap < int64(time.Second) || l.Gap > int64(1100*time.Millisecond) || l.Rate < 20 || l.Rate > 30 || l.Jitter < int64(50*time.Millisecond) || res.Messages != 50 {
			t.Errorf("ledger: %+v", l)
		}
	})
}
