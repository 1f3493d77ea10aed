package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
			Definition: func(typ, hash string) (plugin.Definition, error) {
				return plugin.Definition{Encoding: "ros2msg", Text: "# " + typ + hash}, nil
			}})
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
			if !ok || info.Type != str || info.TypeHash != a.Topic().TypeHash || info.Definition.Text != "# "+str+info.TypeHash {
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

// A write that fails stops the recording in order. What was written before is there, what came after is counted.

// A storage without space left makes the disk-full error, with the write error inside.

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

// An override that asks for more than is offered is reported with topic and reason.

// One look at the graph, after it has settled.

// The storage hangs and never comes back: the recorder gives up after StopTimeout, or at once when told to.

// A storage that hangs after it made some progress is given up too.

// Losses that the transport finds while the subscription is being closed are counted.

// countingNode is a node whose subscriptions have lost 5 messages, and 7 once they are closed.

// A storage that is slow but alive is waited for, however long it takes.

// A node that refuses a subscription at first is asked again.

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
