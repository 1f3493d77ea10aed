package player

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

const (
	str   = "std_msgs/msg/String"
	ms    = int64(time.Millisecond)
	start = int64(1_000_000_000_000)
)

// msg is a message of a test bag: at so many ms after the start, of topic number so, counted from 0.

// topics makes topics of strings.

// makeBag writes a bag and opens it.

// makeBagIn is makeBag for a storage with faults.

// heard is a message that a subscription got.

// rig is a network with a player and a listener.

// play plays to the end.

// wantTimes checks when messages came, relative to the first, in ms.

// wantData checks which messages of the bag came, in order.

// Everything arrives, byte for byte, in order and in its time, at a subscription that was there before.

func TestPlay(t *testing.T) {
	inBubble(t, func(g *rig) {
		msgs := []msg{{0, 0}, {10, 1}, {10, 0}, {10, 1}, {500, 0}, {2000, 1}}
		r := makeBag(t, topics("/a", "/b"), msgs)
		g.listen("/a", ros.DefaultQoS())
		g.listen("/b", ros.BestAvailableQoS())
		res := g.play(Options{Bag: r})
		g.wantData(msgs, upTo(0, len(msgs))...)
		g.wantTimes(0, 10, 10, 10, 500, 2000)
		if res.Played != 6 || res.Lateness.Count != 6 || res.Lateness.Max != 0 || res.Lateness.Late != 0 || res.Unacked != 0 {
			t.Errorf("%+v", res)
		}
		if len(res.Topics) != 2 || res.Topics[0].Played != 3 || res.Topics[0].Matched != 1 {
			t.Errorf("%+v", res.Topics)
		}
		if s := g.p.Snapshot(); s.State != StateStopped || s.Played != 6 || s.Total != 2*time.Second || s.Elapsed != 2*time.Second {
			t.Errorf("%+v", s)
		}
		if _, err := g.p.Run(context.Background()); !errors.Is(err, ErrRunning) {
			t.Errorf("second run: %v", err)
		}
	})
}

// The schedule is absolute: a publisher that blocks now and then makes messages late, and they catch up.

func TestLatenessDoesNotAddUp(t *testing.T) {
	inBubble(t, func(g *rig) {
		msgs := every(100, 10, 1)
		r := makeBag(t, topics("/a"), msgs)
		g.listen("/a", ros.DefaultQoS())
		slow := &slowNode{Node: g.node, every: 25, by: 45 * time.Millisecond}
		res := g.play(Options{Bag: r, Node: slow})
		g.wantData(msgs, upTo(0, 100)...)
		all := g.heard()
		if d := all[98].after - all[0].after; d != 980*time.Millisecond { // the last one is slow itself
			t.Errorf("message 98 after %v", d)
		}
		// After each slow call four messages are late, by 35, 25, 15 and 5 ms; nothing follows the last call.
		if res.Starved != 0 {
			t.Errorf("%d messages were late because of reading", res.Starved)
		}
		if l := res.Lateness; l.Late != 12 || l.Max != 35*time.Millisecond || l.P50 != 0 || l.P99 < 25*time.Millisecond {
			t.Errorf("%+v", l)
		}
	})
}

// slowNode makes publishers of which each so many-th call takes a while.

func TestSelection(t *testing.T) {
	msgs := every(6, 100, 3)
	cases := []struct {
		name string
		o    Options
		want []int
	}{
		{"topics", Options{Topics: []string{"a", "/c"}}, []int{0, 2, 3, 5}},
		{"exclude", Options{ExcludeTopics: []string{"/a"}}, []int{1, 2, 4, 5}},
		{"offset", Options{StartOffset: 200 * time.Millisecond}, []int{2, 3, 4, 5}},
		{"duration", Options{PlaybackDuration: 200 * time.Millisecond}, []int{0, 1, 2}},
		{"offset and duration", Options{StartOffset: 100 * time.Millisecond, PlaybackDuration: 150 * time.Millisecond}, []int{1, 2}},
		{"offset beyond the end", Options{StartOffset: time.Hour}, nil},
		{"small read-ahead", Options{ReadAhead: 1, ReadAheadBytes: 1}, upTo(0, 6)},
		{"no waiting", Options{DiscoveryWait: -1, WaitAcked: -1}, upTo(0, 6)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(g *rig) {
				c.o.Bag = makeBag(t, topics("/a", "/b", "/c"), msgs)
				for _, n := range []string{"/a", "/b", "/c"} {
					g.listen(n, ros.DefaultQoS())
				}
				g.play(c.o)
				g.wantData(msgs, c.want...)
			})
		})
	}
}

// With a start offset the bag's time begins there, not at the first message.

func TestStartOffsetKeepsTime(t *testing.T) {
	inBubble(t, func(g *rig) {
		r := makeBag(t, topics("/a"), []msg{{0, 0}, {1000, 0}, {1500, 0}})
		g.listen("/a", ros.DefaultQoS())
		p := g.make(Options{Bag: r, StartOffset: 400 * time.Millisecond})
		var began time.Time
		p.o.OnEvent = func(e Event) {
			if e.Kind == EventStarted {
				began = time.Now()
			}
		}
		if _, err := p.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		g.wantTimes(0, 500)
		if d := g.heard()[0].after - began.Sub(g.began); d != 600*time.Millisecond {
			t.Errorf("first message %v after the start", d)
		}
	})
}

func TestSelectionErrors(t *testing.T) {
	inBubble(t, func(g *rig) {
		r := makeBag(t, topics("/a"), []msg{{0, 0}})
		_, err := g.make(Options{Bag: r, Topics: []string{"/x"}}).Run(context.Background())
		if !errors.Is(err, ErrNoTopics) || g.countEvents(EventSkipped, "topic '/x' is not in the bag") != 1 {
			t.Fatal(err, g.events)
		}
	})
	inBubble(t, func(g *rig) { // an empty bag plays at once and is no error
		r := makeBag(t, topics("/a"), nil)
		if res := g.play(Options{Bag: r}); res.Played != 0 {
			t.Errorf("%+v", res)
		}
		r = makeBag(t, nil, nil)
		g.play(Options{Bag: r})
	})
}

func TestRemapping(t *testing.T) {
	inBubble(t, func(g *rig) {
		msgs := every(4, 10, 2)
		r := makeBag(t, topics("/a", "/b"), msgs)
		g.listen("/all", ros.DefaultQoS())
		res := g.play(Options{Bag: r, Remap: []string{"/a:=/all", "b:=all"}})
		g.wantData(msgs, 0, 1, 2, 3)
		if len(res.Topics) != 1 || res.Topics[0].Topic != "/all" || res.Topics[0].From != "/a" || res.Topics[0].Played != 4 {
			t.Errorf("%+v", res.Topics)
		}
	})
	inBubble(t, func(g *rig) { // two types cannot share a name
		ts := topics("/a", "/b")
		ts[1].Type = "std_msgs/msg/Int32"
		r := makeBag(t, ts, every(2, 10, 2))
		res := g.play(Options{Bag: r, Remap: []string{"/b:=/a"}})
		if res.Played != 1 || len(res.Skipped) != 1 || res.Skipped[0].Topic != "/b" {
			t.Errorf("%+v", res)
		}
	})
}

func TestWhatCannotBePlayed(t *testing.T) {
	inBubble(t, func(g *rig) {
		ts := topics("/json", "/bad type", "/ok", "noslash", "/bad/type")
		ts[0].SerializationFormat = "json"
		ts[4].Type = "nonsense"
		msgs := every(5, 10, 5)
		r := makeBag(t, ts, msgs)
		g.listen("/ok", ros.DefaultQoS())
		g.listen("/noslash", ros.DefaultQoS())
		res := g.play(Options{Bag: r})
		g.wantData(msgs, 2, 3)
		if len(res.Skipped) != 3 {
			t.Errorf("%+v", res.Skipped)
		}
		for _, part := range []string{"'/json' is not played: its serialization format is \"json\"", "'/bad type' is not played", "'/bad/type' is not played"} {
			if g.countEvents(EventSkipped, part) != 1 {
				t.Errorf("no event with %q in %v", part, g.events)
			}
		}
	})
	inBubble(t, func(g *rig) {
		ts := topics("/a")
		ts[0].SerializationFormat = "json"
		r := makeBag(t, ts, every(1, 10, 1))
		if _, err := g.make(Options{Bag: r}).Run(context.Background()); !errors.Is(err, ErrNoTopics) {
			t.Fatal(err)
		}
	})
}

// The recorded profile is offered, also to those who come late.

// A playback from the middle begins with what latched topics still hold there.

// The end waits for acknowledgements as long as it is told to.

// A subscription that appears while the graph settles gets the first message.

// A subscription that is in the graph and not matched yet is waited for.

// hesitantNode is a node whose publishers are not matched before some time.

func TestPublishFails(t *testing.T) {
	inBubble(t, func(g *rig) {
		failure := errors.New("node is gone")
		r := makeBag(t, topics("/a"), every(10, 10, 1))
		res, err := g.make(Options{Bag: r, Node: &slowNode{Node: g.node, every: 3, err: failure}}).Run(context.Background())
		if !errors.Is(err, failure) || !strings.Contains(err.Error(), "/a") || res.Played != 2 {
			t.Fatal(err, res)
		}
	})
}

// When reading is slower than playing, messages are late, none is lost, and it is said.

func TestStarved(t *testing.T) {
	inBubble(t, func(g *rig) {
		msgs := every(50, 1, 1)
		r := makeBagIn(t, &faultyReads{before: func(n int) error {
			if n > 10 {
				time.Sleep(5 * time.Millisecond)
			}
			return nil
		}}, topics("/a"), msgs)
		g.listen("/a", ros.DefaultQoS())
		res := g.play(Options{Bag: r})
		g.wantData(msgs, upTo(0, 50)...)
		if res.Starved < 30 || g.countEvents(EventStarved, "Message queue starved") != 1 {
			t.Errorf("%+v %v", res, g.events)
		}
	})
}

// A damaged storage plays up to the damage, which is the error in the end.

func TestDamagedBag(t *testing.T) {
	for _, damage := range []error{&plugin.CorruptError{Path: "x", Offset: 7, Err: errors.New("bad page")}, errors.New("I/O error")} {
		inBubble(t, func(g *rig) {
			msgs := every(10, 10, 1)
			r := makeBagIn(t, &faultyReads{before: func(n int) error {
				if n == 6 {
					return damage
				}
				return nil
			}}, topics("/a"), msgs)
			g.listen("/a", ros.DefaultQoS())
			res, err := g.make(Options{Bag: r}).Run(context.Background())
			if !errors.Is(err, damage) || res.Played != 6 {
				t.Fatal(err, res)
			}
			g.wantData(msgs, upTo(0, 6)...)
		})
	}
}

// faultyReads is the reference format whose iterators can be slow or break.

// Messages read ahead are copies; what the storage does with its memory afterwards does not matter.

func TestPayloadsAreOwned(t *testing.T) {
	inBubble(t, func(g *rig) {
		var msgs []msg
		for i := range 3000 {
			msgs = append(msgs, msg{int64(i / 10), i % 3})
		}
		r := makeBag(t, topics("/a", "/b", "/c"), msgs)
		for _, n := range []string{"/a", "/b", "/c"} {
			g.listen(n, ros.DefaultQoS())
		}
		g.play(Options{Bag: r, ReadAhead: 100, ReadAheadBytes: 8 << 10})
		all := g.heard()
		if len(all) != len(msgs) {
			t.Fatalf("%d messages", len(all))
		}
		for i, h := range all {
			if !bytes.Equal([]byte(h.data), msgs[i].data(i)) {
				t.Fatalf("message %d: %q", i, h.data)
			}
		}
	})
}
