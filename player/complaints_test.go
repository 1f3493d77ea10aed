package player

import (
	"context"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

// What users of rosbag2 have asked for and suffered from, as far as it is the player's: one test for each, numbered as in
// docs/rosbag2-differences.md.

// A subscription gets nothing since quality of service does not match, and nothing says so.
func TestComplaint08QoSMismatch(t *testing.T) {
	inBubble(t, func(g *rig) {
		g.listen("/a", ros.DefaultQoS()) // reliable
		ts := topics("/a")
		ts[0].OfferedQoS = bag.EncodeQoS([]bag.QoSProfile{{History: 1, Depth: 5, Reliability: 2, Durability: 2}}, true)
		g.play(Options{Bag: makeBag(t, ts, every(3, 10, 1)), WaitAcked: -1})
		if g.countEvents(EventQoS, "'/a' receives nothing: reliability: offered best_effort, requested reliable; a QoS override of the topic") != 1 {
			t.Errorf("%v", g.events)
		}
	})
}

// Playback is too fast, stalls or drifts.
func TestComplaint20Timing(t *testing.T) {
	inBubble(t, func(g *rig) {
		g.listen("/a", ros.DefaultQoS())
		g.node.Graph()
		slow := &slowNode{Node: g.node, every: 10, by: 25 * time.Millisecond} // longer than the time to the next message
		msgs := every(200, 10, 1)
		res := g.play(Options{Bag: makeBag(t, topics("/a"), msgs), Node: slow, WaitAcked: -1})
		got := g.heard()
		if len(got) != 200 || got[199].after-got[0].after > 2020*time.Millisecond || got[199].after-got[0].after < 1980*time.Millisecond {
			t.Errorf("%d messages of 1.99 s took %v", len(got), got[len(got)-1].after-got[0].after)
		}
		if res.Lateness.Late == 0 || res.Lateness.Max < 10*time.Millisecond {
			t.Errorf("what was late is not told: %+v", res.Lateness)
		}
	})
}

// Messages with equal stamps change their order, and files that overlap are played one after the other.
func TestComplaint21Order(t *testing.T) {
	inBubble(t, func(g *rig) {
		g.listen("/a", ros.DefaultQoS())
		g.listen("/b", ros.DefaultQoS())
		msgs := []msg{{0, 0}, {0, 1}, {0, 0}, {5, 1}, {3, 0}, {5, 0}, {5, 1}}
		g.play(Options{Bag: makeBag(t, topics("/a", "/b"), msgs), WaitAcked: -1})
		g.wantData(msgs, 0, 1, 2, 4, 3, 5, 6)
	})
}

// Several bags cannot be played together.
func TestComplaint28SeveralBags(t *testing.T) {
	inBubble(t, func(g *rig) {
		g.listen("/a", ros.DefaultQoS())
		g.listen("/b", ros.DefaultQoS())
		first, second := []msg{{0, 0}, {20, 0}, {40, 0}}, []msg{{10, 0}, {20, 0}, {50, 0}}
		res := g.play(Options{Bag: makeBag(t, topics("/a"), first), More: []*bag.Reader{makeBag(t, topics("/b"), second)}, WaitAcked: -1})
		g.wantTimes(0, 10, 20, 20, 40, 50)
		var order string
		for _, h := range g.heard() {
			order += h.topic
		}
		if order != "/a/b/a/b/a/b" || res.Played != 6 {
			t.Errorf("%s, %d", order, res.Played)
		}
	})
}

func TestPublishOrder(t *testing.T) {
	inBubble(t, func(g *rig) {
		g.listen("/a", ros.DefaultQoS())
		sent := []int64{30, 10, 20, 0}
		msgs := every(4, 10, 1)
		r := makeBagOf(t, "memory", topics("/a"), 4, func(i int) (int, plugin.Message) {
			return 0, plugin.Message{RecvTime: start + msgs[i].at*ms, SendTime: start + sent[i]*ms, Data: msgs[i].data(i)}
		})
		g.play(Options{Bag: r, ByPublishTime: true, WaitAcked: -1})
		g.wantData(msgs, 3, 1, 2, 0)
		g.wantTimes(0, 10, 20, 30)
	})
}

func TestSeek(t *testing.T) {
	inBubble(t, func(g *rig) {
		g.listen("/a", ros.DefaultQoS())
		msgs := every(100, 10, 1)
		p := g.make(Options{Bag: makeBag(t, topics("/a"), msgs), WaitAcked: -1})
		done := make(chan Result)
		go func() {
			res, err := p.Run(context.Background())
			if err != nil {
				t.Error(err)
			}
			done <- res
		}()
		for len(g.heard()) < 5 {
			time.Sleep(time.Millisecond)
		}
		if !p.SeekTo(start + 900*ms) {
			t.Error("it does not seek")
		}
		if p.SeekTo(start + 10_000*ms) {
			t.Error("it seeks behind the end")
		}
		res := <-done
		if res.Played != 15 {
			t.Errorf("%d messages played", res.Played)
		}
		if p.SeekTo(start) {
			t.Error("it seeks after the end")
		}
	})
}

func TestSeekWhilePaused(t *testing.T) {
	inBubble(t, func(g *rig) {
		g.listen("/a", ros.DefaultQoS())
		msgs := every(100, 10, 1)
		p := g.make(Options{Bag: makeBag(t, topics("/a"), msgs), StartPaused: true, WaitAcked: -1})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() {
			_, err := p.Run(ctx)
			done <- err
		}()
		time.Sleep(time.Second)
		if n := p.Burst(ctx, 3); n != 3 {
			t.Errorf("a burst of %d", n)
		}
		p.SeekTo(start + 500*ms)
		if !p.PlayNext() {
			t.Error("no next message")
		}
		time.Sleep(time.Second)
		p.SeekTo(start + 100*ms) // and back
		if n := p.Burst(ctx, 2); n != 2 {
			t.Errorf("a burst of %d", n)
		}
		g.wantData(msgs, 0, 1, 2, 50, 10, 11)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := p.Burst(context.Background(), 1); n != 0 {
			t.Errorf("a burst of %d after the end", n)
		}
	})
}

func TestBurstOfAll(t *testing.T) {
	inBubble(t, func(g *rig) {
		g.listen("/a", ros.DefaultQoS())
		p := g.make(Options{Bag: makeBag(t, topics("/a"), every(50, 1000, 1)), StartPaused: true, WaitAcked: -1})
		burst := make(chan uint64)
		go func() { burst <- p.Burst(context.Background(), 0) }()
		res, err := p.Run(context.Background())
		if n := <-burst; err != nil || n != 50 || res.Played != 50 || res.Elapsed > 5*time.Second {
			t.Errorf("%d and %d messages in %v, %v", n, res.Played, res.Elapsed, err)
		}
	})
}

func TestUntil(t *testing.T) {
	for _, x := range []struct {
		o    Options
		want uint64
	}{
		{Options{PlaybackUntil: start + 45*ms}, 5},
		{Options{PlaybackDuration: 25 * time.Millisecond}, 3},
		{Options{PlaybackUntil: start + 45*ms, PlaybackDuration: 25 * time.Millisecond}, 5}, // the later one
		{Options{PlaybackUntil: start + 10_000*ms}, 10},
		{Options{PlaybackUntil: 5}, 0},
	} {
		inBubble(t, func(g *rig) {
			x.o.Bag, x.o.WaitAcked = makeBag(t, topics("/a"), every(10, 10, 1)), -1
			if res := g.play(x.o); res.Played != x.want {
				t.Errorf("%+v: %d messages", x.o.PlaybackUntil, res.Played)
			}
		})
	}
}

func TestClockTopic(t *testing.T) {
	hear := func(g *rig) *[]int64 {
		var stamps []int64
		_, err := g.listener.Subscribe(ros.Topic{Name: "/clock", Type: clockType}, ros.BestAvailableQoS(), func(s ros.Sample) {
			d := s.Data
			sec := int64(d[4]) | int64(d[5])<<8 | int64(d[6])<<16 | int64(d[7])<<24
			nsec := int64(d[8]) | int64(d[9])<<8 | int64(d[10])<<16 | int64(d[11])<<24
			g.mu.Lock()
			stamps = append(stamps, sec*1e9+nsec)
			g.mu.Unlock()
			s.Release()
		})
		if err != nil {
			t.Fatal(err)
		}
		return &stamps
	}
	msgs := every(11, 100, 2)
	ts := append(topics("/a", "/b"), plugin.Topic{Name: "/clock", Type: clockType, SerializationFormat: "cdr"})
	t.Run("by time", func(t *testing.T) {
		inBubble(t, func(g *rig) {
			stamps := hear(g)
			res := g.play(Options{Bag: makeBag(t, ts, append(msgs, msg{1000, 2})), ClockRate: 100, Rate: 2, WaitAcked: -1})
			g.heard() // all of it has come
			if n := len(*stamps); n < 45 || n > 55 || res.Played != 11 {
				t.Errorf("%d stamps in half a second at 100 Hz, %d messages", n, res.Played)
			}
			for i := 1; i < len(*stamps); i++ {
				if d := (*stamps)[i] - (*stamps)[i-1]; d < 0 || d > 40*ms {
					t.Errorf("steps of %d", d)
				}
			}
		})
	})
	t.Run("by topic", func(t *testing.T) {
		inBubble(t, func(g *rig) {
			stamps := hear(g)
			g.play(Options{Bag: makeBag(t, ts, msgs), ClockTopics: []string{"b"}, WaitAcked: -1})
			g.heard()
			if len(*stamps) != 5 || (*stamps)[0] != start+100*ms {
				t.Errorf("%v", *stamps)
			}
		})
	})
	t.Run("by every message", func(t *testing.T) {
		inBubble(t, func(g *rig) {
			stamps := hear(g)
			g.play(Options{Bag: makeBag(t, ts, msgs), ClockAll: true, WaitAcked: -1})
			g.heard() // all of it has come
			if len(*stamps) != 11 || (*stamps)[10] != start+1000*ms {
				t.Errorf("%v", *stamps)
			}
		})
	})
}

// Latched messages come first after a seek, too.
func TestLatchedAfterSeek(t *testing.T) {
	inBubble(t, func(g *rig) {
		q := ros.DefaultQoS()
		q.Durability = ros.TransientLocal
		g.listen("/map", q)
		g.listen("/a", ros.DefaultQoS())
		ts := topics("/map", "/a")
		ts[0].OfferedQoS = bag.EncodeQoS([]bag.QoSProfile{{History: 1, Depth: 1, Reliability: 1, Durability: 1}}, true)
		msgs := []msg{{0, 0}, {10, 1}, {500, 1}, {600, 1}}
		p := g.make(Options{Bag: makeBag(t, ts, msgs), StartPaused: true, WaitAcked: -1})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := p.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(time.Second)
		p.SeekTo(start + 550*ms)
		time.Sleep(time.Second)
		p.Burst(ctx, 1)
		g.wantData(msgs, 0, 3)
		cancel()
		<-done
	})
}
