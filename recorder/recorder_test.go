package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

func TestRecord(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		early := g.advertise("/early", latched)
		g.publish(early, 5, 10) // the last three are kept for late joiners
		g.start(Options{All: true, ROSDistro: "jazzy", CustomData: map[string]string{"who": "me"},
			Definition: func(typ string) plugin.Definition { return plugin.Definition{Encoding: "ros2msg", Text: "# " + typ} }})
		if _, err := os.Stat(filepath.Join(g.dir, bag.MetadataFile)); err != nil {
			t.Error(err)
		}
		a, b := g.advertise("/a"), g.advertise("/b", bestEffort)
		g.advertise("/silent")
		settled()
		g.publish(a, 100, 1000)
		g.publish(b, 50, 10)
		time.Sleep(time.Second)

		snap := g.rec.Snapshot()
		if snap.State != StateRecording || snap.Messages != 153 || len(snap.Topics) != 4 || snap.File == "" || snap.DiskBytes < 100_000 {
			t.Errorf("snapshot: %+v", snap)
		}
		res, err := g.stop()
		if err != nil || res.Reason != StopAsked {
			t.Fatalf("%v, reason %q", err, res.Reason)
		}
		g.checkSums(res)
		if g.rec.Snapshot().State != StateClosed {
			t.Error("not closed")
		}
		s := g.read()
		for name, n := range map[string]int{"/early": 3, "/a": 100, "/b": 50, "/silent": 0} {
			if len(s.msgs[name]) != n {
				t.Errorf("%s: %d messages, want %d", name, len(s.msgs[name]), n)
			}
			info, ok := s.topics[name]
			if !ok || info.Type != str || info.TypeHash != a.Topic().TypeHash || info.Definition.Text != "# "+str {
				t.Errorf("%s: %+v", name, info.Topic)
			}
		}
		for i, m := range s.msgs["/a"] {
			if !strings.HasPrefix(string(m.Data), fmt.Sprintf("/a %d ", i)) || len(m.Data) != 1000 {
				t.Fatalf("message %d: %.20q", i, m.Data)
			}
			if m.Seq != uint64(i+1) || m.RecvTime == 0 || m.SendTime == 0 || m.Source != 1 {
				t.Fatalf("message %d: seq %d recv %d send %d source %d", i, m.Seq, m.RecvTime, m.SendTime, m.Source)
			}
		}
		if q, err := bag.DecodeQoS(s.topics["/b"].OfferedQoS); err != nil || len(q) != 1 || q[0].Reliability != int(ros.BestEffort) {
			t.Errorf("QoS of /b: %v %v", q, err)
		}
		if src := s.topics["/a"].Sources; len(src) != 1 || len(src[0]) != 32 {
			t.Errorf("sources of /a: %v", src)
		}
		if s.meta.CustomData["who"] != "me" || s.meta.CustomData[bag.KeyState] != bag.StateClosed || s.meta.ROSDistro != "jazzy" {
			t.Errorf("metadata: %+v", s.meta)
		}
		if l := res.Ledger.Topics["/b"]; l.UnknownWriters != 1 {
			t.Errorf("best-effort writers: %+v", l)
		}
		if l := res.Ledger.Topics["/a"]; l.UnknownWriters != 0 {
			t.Errorf("best-effort writers: %+v", l)
		}
		for kind, text := range map[EventKind]string{EventListening: "Listening for topics...", EventRecording: "Recording...",
			EventSubscribed: "Subscribed to topic '/a'", EventStopped: "Recording stopped"} {
			g.wantEvent(kind, text)
		}
		if _, err := g.rec.Run(context.Background()); !errors.Is(err, ErrRunning) {
			t.Errorf("second run: %v", err)
		}
	})
}

// What the network loses is counted, exactly: recorded + lost on the way = published.
func TestWireLossIsExact(t *testing.T) {
	for _, qos := range []struct {
		name   string
		change func(*ros.Topic, *ros.QoS)
	}{{"best effort", bestEffort}, {"reliable", func(*ros.Topic, *ros.QoS) {}}} {
		inBubble(t, rostest.Options{Seed: 7, Link: rostest.Link{Loss: 0.1, Spare: 1, Delay: time.Millisecond}}, func(g *rig) {
			g.start(Options{Topics: []string{"/a", "/b"}})
			pubs := []ros.Publisher{g.advertise("/a", qos.change), g.advertise("/a", qos.change), g.advertise("/b", qos.change)}
			settled()
			for range 20 {
				for _, p := range pubs {
					g.publish(p, 50, 20)
				}
				time.Sleep(100 * time.Millisecond)
			}
			for _, p := range pubs { // the last one arrives
				g.net.SetLink(p.Topic().Name, rostest.Link{})
				g.publish(p, 1, 20)
			}
			pubs[1].Close() // what a publisher that left lost stays counted
			time.Sleep(2 * time.Second)
			if !g.hasEvent(EventLoss, "lost on the way") {
				t.Error("losses were not reported")
			}
			res, err := g.stop()
			if err != nil {
				t.Fatal(err)
			}
			g.checkSums(res)
			for name, published := range map[string]uint64{"/a": 2002, "/b": 1001} {
				l, tr := res.Ledger.Topics[name], g.net.Traffic(name)
				if l.Recorded+l.Lost.Wire != published || l.Lost.Wire != tr.Dropped || tr.Dropped == 0 {
					t.Errorf("%s %s: %+v, network says %+v", qos.name, name, l, tr)
				}
			}
		})
	}
}

// With the storage frozen the publisher is not slowed down, the queue stays within its limit, and what is dropped is
// counted exactly.
func TestFrozenStorage(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		big, small := g.advertise("/big"), g.advertise("/small")
		const cache = 1 << 20
		g.start(Options{All: true, MaxCacheSize: cache})
		g.publish(big, 10, 100<<10)
		settled()
		g.storage.freeze()
		start := time.Now()
		for range 100 {
			g.publish(big, 1, 100<<10)
			g.publish(small, 10, 100)
			time.Sleep(100 * time.Millisecond)
			if b := g.rec.Snapshot().Queue.Bytes; b > cache {
				t.Fatalf("the queue holds %d bytes", b)
			}
		}
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("publishing took %v", d)
		}
		snap := g.rec.Snapshot()
		if snap.Stalled < 8*time.Second || snap.Lost.Queue == 0 {
			t.Errorf("snapshot while frozen: %+v", snap)
		}
		g.wantEvent(EventStorage, "has not answered")
		g.wantEvent(EventLoss, "dropped")
		g.storage.thaw()
		time.Sleep(2 * time.Second)
		g.wantEvent(EventStorage, "answers again")
		g.publish(big, 1, 100<<10)
		settled()
		res, err := g.stop()
		if err != nil {
			t.Fatal(err)
		}
		g.checkSums(res)
		b, s := res.Ledger.Topics["/big"], res.Ledger.Topics["/small"]
		if b.Received != 111 || b.Lost.Queue < 80 || b.Lost.Storage+b.Lost.Wire != 0 {
			t.Errorf("/big: %+v", b)
		}
		if s.Received != 1000 || s.Lost.Storage+s.Lost.Wire != 0 {
			t.Errorf("/small: %+v", s)
		}
	})
}

// A write that fails stops the recording in order. What was written before is there, what came after is counted.
func TestFailingStorage(t *testing.T) {
	failure := errors.New("I/O error")
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.storage.failAfter, g.storage.failure = 25, failure
		g.start(Options{Topics: []string{"/a"}})
		for range 10 {
			g.publish(a, 10, 100)
			time.Sleep(10 * time.Millisecond)
		}
		res, err := g.wait()
		if !errors.Is(err, failure) || res.Reason != StopFailure || errors.Is(err, ErrDiskFull) {
			t.Fatalf("%v, reason %q", err, res.Reason)
		}
		g.checkSums(res)
		if l := res.Ledger.Topics["/a"]; l.Recorded < 10 || l.Recorded > 25 || l.Lost.Storage == 0 {
			t.Errorf("%+v", l)
		}
		g.wantEvent(EventStorage, "writing failed")
		g.wantEvent(EventStopped, "")
	})
}

func TestFailingClose(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.storage.closeErr = errors.New("cannot close")
		g.start(Options{Topics: []string{"/a"}})
		g.publish(a, 3, 10)
		settled()
		if res, err := g.stop(); !errors.Is(err, g.storage.closeErr) || res.Messages != 3 {
			t.Fatalf("%v, %+v", err, res)
		}
	})
}

// A storage without space left makes the disk-full error, with the write error inside.
func TestDiskFullWhileWriting(t *testing.T) {
	for _, c := range []struct {
		failure error
		free    int64
	}{{fmt.Errorf("write: %w", syscall.ENOSPC), 1e9}, {errors.New("database or disk is full (13)"), 1000}} {
		inBubble(t, rostest.Options{}, func(g *rig) {
			a := g.advertise("/a")
			g.storage.failAfter, g.storage.failure = 0, c.failure
			g.start(Options{Topics: []string{"/a"}, MinFreeSpace: -1, FreeSpace: func(string) (int64, int64, error) { return c.free, 1e12, nil }})
			g.publish(a, 1, 10)
			_, err := g.wait()
			var full *DiskFullError
			if !errors.Is(err, ErrDiskFull) || !errors.Is(err, c.failure) || !errors.As(err, &full) || full.Free != c.free {
				t.Fatal(err)
			}
		})
	}
}

func TestDiskLow(t *testing.T) {
	free := make(chan int64, 1)
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		now := int64(600e6)
		g.start(Options{Topics: []string{"/a"}, FreeSpace: func(path string) (int64, int64, error) {
			select {
			case now = <-free:
			default:
			}
			return now, 1e9, nil
		}})
		g.publish(a, 10, 10)
		time.Sleep(5 * time.Second)
		free <- 499e6
		start := time.Now()
		res, err := g.wait()
		var full *DiskFullError
		if !errors.As(err, &full) || full.Free != 499e6 || full.Need != 500e6 || res.Reason != StopDisk {
			t.Fatalf("%v, reason %q", err, res.Reason)
		}
		if d := time.Since(start); d > 1500*time.Millisecond {
			t.Errorf("stopped after %v", d)
		}
		if !strings.Contains(err.Error(), "499.0 MB free, 500.0 MB needed") {
			t.Error(err)
		}
		g.checkSums(res)
		g.wantEvent(EventDiskLow, "recording stops")
	})
	// Two percent of a large disk; nothing is created.
	inBubble(t, rostest.Options{}, func(g *rig) {
		g.start(Options{Topics: []string{"/a"}, FreeSpace: func(path string) (int64, int64, error) {
			if path == g.dir {
				t.Errorf("asked for %s, which is not there yet", path)
			}
			return 30e9, 2e12, nil
		}})
		var full *DiskFullError
		if _, err := g.wait(); !errors.As(err, &full) || full.Need != 40e9 {
			t.Fatal(err)
		}
		if _, err := os.Stat(g.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("bag directory: %v", err)
		}
	})
}

func TestLimits(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a, b := g.advertise("/a"), g.advertise("/b")
		g.start(Options{All: true, MaxMessages: 1500})
		for range 20 {
			g.publish(a, 90, 10)
			g.publish(b, 10, 10)
		}
		res, err := g.wait()
		if err != nil || res.Messages != 1500 || res.Reason != StopMessages {
			t.Fatalf("%v, %d messages, reason %q", err, res.Messages, res.Reason)
		}
		g.checkSums(res)
		var received, lost uint64 // what came later than the last one asked for is neither
		for _, l := range res.Ledger.Topics {
			received += l.Received
			lost += l.Lost.Total()
		}
		if received != 1500 || lost != 0 {
			t.Errorf("%d received, %d lost", received, lost)
		}
	})
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		start := time.Now()
		g.start(Options{All: true, Duration: 10 * time.Second})
		g.publish(a, 1, 10)
		g.net.Clock().Step(-time.Hour)
		time.Sleep(9 * time.Second)
		g.net.Clock().Step(50 * 365 * 24 * time.Hour)
		g.publish(a, 1, 10)
		res, err := g.wait()
		if d := time.Since(start); err != nil || d < 10*time.Second || d > 10100*time.Millisecond || res.Reason != StopDuration {
			t.Fatalf("%v after %v, reason %q", err, d, res.Reason)
		}
		g.checkSums(res)
	})
}

// Steps of the wall clock lose nothing, make no empty files and are in the bag.
func TestClockStepsInBag(t *testing.T) {
	steps := []time.Duration{-time.Hour, 50 * 365 * 24 * time.Hour}
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.start(Options{All: true, MaxBagDuration: 4 * time.Second})
		for i := range 30 {
			if i%10 == 5 && i/10 < len(steps) {
				g.net.Clock().Step(steps[i/10])
			}
			g.publish(a, 1, 10)
			time.Sleep(500 * time.Millisecond)
		}
		res, err := g.stop()
		if err != nil {
			t.Fatal(err)
		}
		g.checkSums(res)
		s := g.read()
		if s.total != 30 || len(s.meta.Files) < 3 || len(s.meta.Files) > 5 {
			t.Errorf("%d messages in %d files", s.total, len(s.meta.Files))
		}
		for _, f := range s.meta.Files {
			if f.MessageCount == 0 {
				t.Errorf("empty file %s", f.Path)
			}
		}
		got, err := bag.ParseClockSteps(s.meta.CustomData[bag.KeyClockSteps])
		if err != nil || !slices.Equal(got, res.ClockSteps) || len(got) != len(steps) {
			t.Fatalf("%v %v", got, err)
		}
		for i, st := range got {
			if d := time.Duration(st.After - st.Before); d < steps[i]-time.Millisecond || d > steps[i]+time.Millisecond {
				t.Errorf("step %d: %v, want %v", i, d, steps[i])
			}
		}
		if d := got[0].Monotonic - 2800*time.Millisecond; d < 0 || d > 2*clockPeriod {
			t.Errorf("first step at %v", got[0].Monotonic)
		}
		if n := g.countEvents(EventClockStep, "wall clock was set"); n != len(steps) {
			t.Errorf("%d events", n)
		}
	})
}

func TestSplitCarriesLedger(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.start(Options{All: true, MaxBagSize: 100_000})
		for i := range 50 {
			g.publish(a, 10, 1000)
			time.Sleep(time.Second)
			if i == 12 { // the first file is closed
				s := g.read()
				if l := s.ledger(t); len(s.meta.Files) != 2 || l.Topics["/a"].Recorded < 70 {
					t.Errorf("ledger at the first split, %d files: %+v", len(s.meta.Files), l)
				}
			}
		}
		if n := g.countEvents(EventSplit, "split: closed"); n < 4 {
			t.Errorf("%d splits", n)
		}
		s := g.read()
		if l := s.ledger(t); l.Topics["/a"].Recorded == 0 {
			t.Errorf("ledger while recording: %+v", l)
		}
		if snap := g.rec.Snapshot(); snap.Files < 5 || !strings.Contains(snap.File, fmt.Sprintf("_%d.", snap.Files-1)) {
			t.Errorf("snapshot: %d files, %s", snap.Files, snap.File)
		}
		res, err := g.stop()
		if err != nil || res.Files < 5 {
			t.Fatal(err, res.Files)
		}
		g.checkSums(res)
	})
}

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
		if !errors.As(err, &missing) || !slices.Equal(missing.Topics, []string{"/b"}) || errors.Is(err, ErrNothingRecorded) {
			t.Fatal(err)
		}
		if !slices.Equal(res.Missing, []string{"/b"}) || res.Messages != 1 {
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

// An override that asks for more than is offered is reported with topic and reason.
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

// One look at the graph, after it has settled.
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

// The storage hangs and never comes back: the recorder gives up after StopTimeout, or at once when told to.
func TestGivingUp(t *testing.T) {
	for _, abort := range []bool{false, true} {
		inBubble(t, rostest.Options{}, func(g *rig) {
			a := g.advertise("/a")
			g.start(Options{All: true, StopTimeout: 20 * time.Second})
			g.publish(a, 10, 100)
			settled()
			g.storage.freeze()
			g.publish(a, 10, 100)
			settled()
			g.storage.abandoned.Store(1)
			g.cancel()
			if abort {
				time.AfterFunc(time.Second, g.rec.Abort)
			}
			start := time.Now()
			res, err := g.wait()
			d := time.Since(start)
			if !errors.Is(err, ErrGaveUp) || abort && d > 2*time.Second || !abort && (d < 20*time.Second || d > 41*time.Second) {
				t.Errorf("abort %v: %v after %v", abort, err, d)
			}
			if l := res.Ledger.Topics["/a"]; l.Received != 20 || l.Recorded != 10 || l.Lost.Storage != 10 {
				t.Errorf("%+v", l)
			}
			g.storage.thaw()
			synctest.Wait()
		})
	}
}

// A storage that hangs after it made some progress is given up too.
func TestGivingUpLater(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.start(Options{All: true, StopTimeout: 5 * time.Second})
		g.storage.freeze()
		g.publish(a, 3*chunkSize, 10)
		settled()
		g.storage.abandoned.Store(1)
		time.AfterFunc(3*time.Second, func() {
			g.storage.thaw()
			g.storage.freeze()
		})
		start := time.Now()
		if _, err := g.stop(); !errors.Is(err, ErrGaveUp) || time.Since(start) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		g.storage.thaw()
		synctest.Wait()
	})
}

// Losses that the transport finds while the subscription is being closed are counted.
func TestLastCounts(t *testing.T) {
	node := &countingNode{handNode: newHandNode("/a")}
	rec, err := New(Options{Node: node, All: true, Output: filepath.Join(t.TempDir(), "bag"), Storage: "discard", MinFreeSpace: -1,
		OnEvent: func(e Event) {
			if e.Kind == EventSubscribed {
				node.subscribed()
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	node.subscribed = cancel
	res, err := rec.Run(ctx)
	if l := res.Ledger.Topics["/a"]; l.Lost.Wire != 7 || !errors.Is(err, ErrNothingRecorded) {
		t.Fatalf("%v %+v", err, l)
	}
}

// countingNode is a node whose subscriptions have lost 5 messages, and 7 once they are closed.
type countingNode struct {
	*handNode
	subscribed func()
	closed     bool
}

func (n *countingNode) Subscribe(t ros.Topic, q ros.QoS, h func(ros.Sample)) (ros.Subscription, error) {
	return countingSubscription{handSubscription{t}, n}, nil
}

type countingSubscription struct {
	handSubscription
	n *countingNode
}

func (s countingSubscription) Stats() ros.SubscriptionStats {
	if s.n.closed {
		return ros.SubscriptionStats{Lost: 7}
	}
	return ros.SubscriptionStats{Lost: 5}
}

func (s countingSubscription) Close() error { s.n.closed = true; return nil }

// A storage that is slow but alive is waited for, however long it takes.
func TestSlowDrain(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.start(Options{All: true, StopTimeout: 5 * time.Second})
		g.storage.freeze()
		g.publish(a, 10*chunkSize, 10)
		settled()
		go func() {
			for range 12 { // one chunk every four seconds
				time.Sleep(4 * time.Second)
				g.storage.thaw()
				g.storage.freeze()
			}
			g.storage.thaw()
		}()
		res, err := g.stop()
		if err != nil || res.Messages != 10*chunkSize {
			t.Fatal(err, res.Messages)
		}
		g.checkSums(res)
	})
}

func TestTooLargeForStorage(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		g.storage.Driver = smallDriver{g.storage.Driver}
		a := g.advertise("/a")
		g.start(Options{All: true})
		g.publish(a, 2, 2000)
		g.publish(a, 2, 100)
		settled()
		res, err := g.stop()
		if err != nil || res.Messages != 2 || res.Ledger.Topics["/a"].Lost.Storage != 2 {
			t.Fatalf("%v %+v", err, res)
		}
		g.checkSums(res)
		if n := g.countEvents(EventStorage, "message of 2000 bytes on topic '/a' is larger"); n != 1 {
			t.Errorf("%d events", n)
		}
	})
}

type smallDriver struct{ plugin.Driver }

func (d smallDriver) Features() plugin.Features {
	f := d.Driver.Features()
	f.MaxMessageSize = 1000
	return f
}

func TestOutputExists(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		if err := os.Mkdir(g.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		g.start(Options{All: true})
		if _, err := g.wait(); !errors.Is(err, plugin.ErrExists) || !strings.Contains(err.Error(), g.dir) {
			t.Fatal(err)
		}
	})
}

// A node that refuses a subscription at first is asked again.
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

func TestSnapshotBeforeAndAfter(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		rec, err := New(Options{Node: g.node, All: true, Output: g.dir + "2"})
		if err != nil {
			t.Fatal(err)
		}
		if s := rec.Snapshot(); s.State != StateNew || s.Elapsed != 0 {
			t.Errorf("%+v", s)
		}
		if rec.Output() != g.dir+"2" {
			t.Error(rec.Output())
		}
		g.advertise("/a")
		g.start(Options{All: true})
		g.stop()
		elapsed := g.rec.Snapshot().Elapsed
		time.Sleep(time.Minute)
		if s := g.rec.Snapshot(); s.State != StateClosed || s.Elapsed != elapsed {
			t.Errorf("%+v", s)
		}
	})
}
