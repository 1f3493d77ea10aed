package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

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

// What the storage took and turned out not to hold at the end is lost, not recorded.
func TestStorageHoldsLess(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.storage.closeErr = errors.New("cannot close")
		g.start(Options{Topics: []string{"/a"}})
		g.publish(a, 3, 10)
		settled()
		g.storage.mu.Lock()
		g.storage.swallow = true
		g.storage.mu.Unlock()
		g.publish(a, 4, 10)
		settled()
		res, err := g.stop()
		if l := res.Ledger.Topics["/a"]; !errors.Is(err, g.storage.closeErr) || l.Received != 7 || l.Recorded != 3 || l.Lost.Storage != 4 {
			t.Fatalf("%v, %+v", err, l)
		}
	})
}

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

// A file system that does not answer the question for free space does not keep the recorder from stopping.
func TestHangingFreeSpace(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		hang := make(chan struct{})
		calls := 0
		g.start(Options{All: true, StopTimeout: 5 * time.Second, FreeSpace: func(string) (int64, int64, error) {
			if calls++; calls > 2 {
				<-hang
			}
			return 1e12, 1e12, nil
		}})
		g.publish(a, 10, 10)
		time.Sleep(3 * time.Second)
		start := time.Now()
		res, err := g.stop()
		if err != nil || res.Messages != 10 || time.Since(start) > 6*time.Second {
			t.Errorf("%v after %v, %d messages", err, time.Since(start), res.Messages)
		}
		g.checkSums(res)
		close(hang)
		synctest.Wait()
	})
}

// A listener that hangs, as a terminal after Ctrl-S does, does not stop the recording.
func TestHangingListener(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		hang := make(chan struct{})
		rec, err := New(Options{Node: g.node, All: true, Output: g.dir, Storage: g.storage.Name(), MinFreeSpace: -1, MaxBagSize: 100_000,
			StopTimeout: 5 * time.Second, Now: g.net.Clock().Now, OnEvent: func(Event) { <-hang }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		g.rec, g.cancel, g.done = rec, cancel, make(chan struct{})
		go func() {
			g.result, g.err = rec.Run(ctx)
			close(g.done)
		}()
		a := g.advertise("/a")
		settled()
		for range maxEvents + 50 {
			g.publish(a, 1, 1000)
			g.net.Clock().Step(time.Hour)
			time.Sleep(100 * time.Millisecond)
		}
		start := time.Now()
		res, err := g.stop()
		if err != nil || res.Messages != maxEvents+50 || res.Files < 3 || time.Since(start) > 6*time.Second {
			t.Errorf("%v after %v, %d messages in %d files", err, time.Since(start), res.Messages, res.Files)
		}
		close(hang)
		synctest.Wait()
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
