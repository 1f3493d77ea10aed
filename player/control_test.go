package player

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

func TestRates(t *testing.T) {
	msgs := []msg{{0, 0}, {100, 0}, {1000, 0}}
	for rate, want := range map[float64][]int64{0.5: {0, 200, 2000}, 2: {0, 50, 500}, 1e12: {0, 0, 0}} {
		inBubble(t, func(g *rig) {
			r := makeBag(t, topics("/a"), msgs)
			g.listen("/a", ros.DefaultQoS())
			g.play(Options{Bag: r, Rate: rate})
			g.wantTimes(want...)
		})
	}
}

func TestLoop(t *testing.T) {
	inBubble(t, func(g *rig) {
		msgs := []msg{{0, 0}, {100, 0}, {300, 0}}
		r := makeBag(t, topics("/a"), msgs)
		g.listen("/a", ros.DefaultQoS())
		ctx, cancel := context.WithCancel(context.Background())
		p := g.make(Options{Bag: r, Loop: true})
		p.o.OnEvent = func(e Event) {
			if e.Kind == EventLoop && p.loops.Load() == 3 {
				cancel()
			}
		}
		res, err := p.Run(ctx)
		if err != nil || res.Loops != 3 || res.Played < 9 {
			t.Fatal(err, res)
		}
		g.got = g.heard()[:9]
		g.wantData(msgs, 0, 1, 2, 0, 1, 2, 0, 1, 2)
		g.wantTimes(0, 100, 300, 300, 400, 600, 600, 700, 900)
	})
	inBubble(t, func(g *rig) { // nothing to repeat: no endless loop
		r := makeBag(t, topics("/a"), nil)
		if res := g.play(Options{Bag: r, Loop: true}); res.Loops != 0 {
			t.Errorf("%+v", res)
		}
	})
}

func TestPauseResume(t *testing.T) {
	inBubble(t, func(g *rig) {
		msgs := every(10, 100, 1)
		r := makeBag(t, topics("/a"), msgs)
		g.listen("/a", ros.DefaultQoS())
		p := g.make(Options{Bag: r, StartPaused: true})
		done := make(chan Result)
		go func() {
			res, err := p.Run(context.Background())
			if err != nil {
				t.Error(err)
			}
			done <- res
		}()
		time.Sleep(5 * time.Second)
		if n := len(g.heard()); n != 0 || !p.Paused() || p.Snapshot().State != StatePaused {
			t.Fatalf("%d messages while paused", n)
		}
		if p.Toggle() {
			t.Fatal("still paused")
		}
		time.Sleep(250 * time.Millisecond) // 0, 100, 200
		p.Pause()
		p.Pause()
		time.Sleep(time.Hour)
		if n := len(g.heard()); n != 3 {
			t.Fatalf("%d messages", n)
		}
		if s := p.Snapshot(); s.State != StatePaused || s.Position != start+250*ms {
			t.Errorf("%+v", s)
		}
		if !p.PlayNext() {
			t.Fatal("no step while paused")
		}
		time.Sleep(10 * time.Millisecond)
		if n := len(g.heard()); n != 4 {
			t.Fatalf("%d messages after a step", n)
		}
		p.Resume() // from 300
		p.Resume()
		if p.PlayNext() {
			t.Fatal("a step while playing")
		}
		time.Sleep(99 * time.Millisecond)
		if n := len(g.heard()); n != 4 {
			t.Fatalf("%d messages 99 ms after the step", n)
		}
		time.Sleep(2 * time.Millisecond) // 400
		if n := len(g.heard()); n != 5 {
			t.Fatalf("%d messages 101 ms after the step", n)
		}
		time.Sleep(49 * time.Millisecond)
		if err := p.SetRate(0); err == nil {
			t.Fatal("rate 0")
		}
		if err := p.SetRate(10); err != nil || p.Rate() != 10 { // 500 is due in 5 ms
			t.Fatal(err, p.Rate())
		}
		at := time.Now()
		res := <-done
		if d := time.Since(at); d < 45*time.Millisecond || d > 60*time.Millisecond {
			t.Errorf("the rest took %v", d)
		}
		g.wantData(msgs, upTo(0, 10)...)
		if res.Lateness.Late != 0 || res.Lateness.Count != 9 {
			t.Errorf("%+v", res.Lateness)
		}
		for kind, n := range map[EventKind]int{EventPaused: 1, EventResumed: 2, EventRate: 1} {
			if got := g.countEvents(kind, ""); got != n {
				t.Errorf("event %d: %d times, want %d", kind, got, n)
			}
		}
	})
}

func TestStopWhilePaused(t *testing.T) {
	for _, paused := range []bool{true, false} {
		inBubble(t, func(g *rig) {
			r := makeBag(t, topics("/a"), []msg{{0, 0}, {3600_000, 0}})
			g.listen("/a", ros.DefaultQoS())
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(10*time.Second, cancel)
			began := time.Now()
			res, err := g.make(Options{Bag: r, StartPaused: paused}).Run(ctx)
			if err != nil || time.Since(began) != 10*time.Second || res.Played > 1 {
				t.Fatalf("%v after %v, %+v", err, time.Since(began), res)
			}
			if !paused && g.countEvents(EventGap, "the next message comes in 1h0m0s") != 1 {
				t.Error(g.events)
			}
		})
	}
}

func TestDelay(t *testing.T) {
	inBubble(t, func(g *rig) {
		r := makeBag(t, topics("/a"), []msg{{0, 0}})
		g.listen("/a", ros.DefaultQoS())
		g.play(Options{Bag: r, Delay: time.Minute})
		if at := g.heard()[0].after; at < time.Minute || at > time.Minute+3*time.Second {
			t.Errorf("first message after %v", at)
		}
	})
}

func TestWaitAcked(t *testing.T) {
	cases := []struct {
		wait, took time.Duration
		unacked    bool
	}{{0, 5 * time.Second, false}, {time.Minute, 5 * time.Second, false}, {2 * time.Second, 2 * time.Second, true}, {-1, 0, true}}
	for _, c := range cases {
		inBubble(t, func(g *rig) {
			g.net.SetLink("/a", rostest.Link{Delay: 5 * time.Second})
			r := makeBag(t, topics("/a"), []msg{{0, 0}})
			g.listen("/a", ros.DefaultQoS())
			p := g.make(Options{Bag: r, WaitAcked: c.wait})
			var began time.Time
			p.o.OnEvent = func(e Event) {
				if e.Kind == EventStarted {
					began = time.Now()
				}
			}
			res, err := p.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if d := time.Since(began) - c.took; d < 0 || d > 2*matchPolling || (res.Unacked > 0) != c.unacked {
				t.Errorf("wait %v: ended after %v, %d unacknowledged", c.wait, time.Since(began), res.Unacked)
			}
		})
	}
}

// A listener that hangs, as a terminal after Ctrl-S does, does not hold the playback up.
func TestHangingListener(t *testing.T) {
	inBubble(t, func(g *rig) {
		r := makeBag(t, topics("/a"), every(10, 100, 1))
		g.listen("/a", ros.DefaultQoS())
		p := g.make(Options{Bag: r})
		hang := make(chan struct{})
		p.o.OnEvent = func(Event) { <-hang }
		res, err := p.Run(context.Background())
		if err != nil || res.Played != 10 || res.Lateness.Max != 0 {
			t.Fatal(err, res)
		}
		close(hang)
		synctest.Wait()
	})
}
