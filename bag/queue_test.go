package bag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counter is an Owner that counts what comes back.
type counter struct {
	released atomic.Int64
	bytes    atomic.Int64
}

func (c *counter) Release(b []byte) {
	c.released.Add(1)
	c.bytes.Add(int64(len(b)))
}

func take(t testing.TB, q *Queue) []Entry {
	t.Helper()
	es, err := q.Take(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return es
}

func TestQueueOrderAndCost(t *testing.T) {
	q := NewQueue(QueueOptions{MaxBytes: 1 << 20})
	a, b := q.Topic("/a"), q.Topic("/b")
	if q.Topic("/a") != a {
		t.Fatal("topics are not interned")
	}
	own := &counter{}
	for i := range 10 {
		tp := a
		if i%3 == 0 {
			tp = b
		}
		if !q.Push(Entry{Topic: tp, RecvTime: int64(i), Data: make([]byte, 100), Cost: 300, Owner: own}) {
			t.Fatal("dropped")
		}
	}
	want := int64(10 * (300 + EntryCost))
	if s := q.Stats(); s.Len != 10 || s.Bytes != want || s.InFlight != 0 || s.Pushed != 10 {
		t.Fatalf("%+v", s)
	}
	es := take(t, q)
	for i, e := range es {
		if e.RecvTime != int64(i) || e.Order != uint64(i+1) {
			t.Fatalf("entry %d: %+v", i, e)
		}
	}
	if s := q.Stats(); s.Len != 0 || s.Bytes != want || s.InFlight != want {
		t.Fatalf("cost of taken entries is not counted: %+v", s)
	}
	q.Done(es[:4])
	if s := q.Stats(); s.Bytes != want*6/10 || own.released.Load() != 4 {
		t.Fatalf("%+v, %d released", s, own.released.Load())
	}
	q.Done(es)
	if s := q.Stats(); s.Bytes != 0 || own.released.Load() != 10 || s.HighWater != want {
		t.Fatalf("%+v, %d released", s, own.released.Load())
	}
}

func TestQueueCountsAtLeastThePayload(t *testing.T) {
	q := NewQueue(QueueOptions{MaxBytes: 1 << 20})
	q.Push(Entry{Topic: q.Topic("/a"), Data: make([]byte, 5000), Cost: 10})
	if got := q.Stats().Bytes; got != int64(5000+EntryCost) {
		t.Fatal(got)
	}
}

// A message bigger than the queue is taken when the queue is empty, as in rosbag2, and small ones still have their reserve.
func TestQueueOversized(t *testing.T) {
	q := NewQueue(QueueOptions{MaxBytes: 1 << 20})
	big, small := q.Topic("/big"), q.Topic("/small")
	if !q.Push(Entry{Topic: big, Data: make([]byte, 2<<20)}) {
		t.Fatal("a message bigger than the empty queue is dropped")
	}
	if !q.Push(Entry{Topic: small, Data: make([]byte, 100)}) {
		t.Fatal("the reserve is gone")
	}
	if q.Push(Entry{Topic: big, Data: make([]byte, 2<<20)}) {
		t.Fatal("a second one fits")
	}
	if p, d, b := big.Counts(); p != 2 || d != 1 || b != 2<<20 {
		t.Fatal(p, d, b)
	}
	// What takes more than the share of large messages is such a message too.
	es := take(t, q)
	if len(es) != 2 {
		t.Fatalf("%d entries", len(es))
	}
	if q.Push(Entry{Topic: big, Data: make([]byte, 1000_000)}) {
		t.Fatal("taken while the other is being written")
	}
	q.Done(es)
	if !q.Push(Entry{Topic: big, Data: make([]byte, 1000_000)}) {
		t.Fatal("dropped though the queue is empty")
	}
}

func TestQueueReserve(t *testing.T) {
	q := NewQueue(QueueOptions{MaxBytes: 10 << 20})
	image, imu := q.Topic("/image"), q.Topic("/imu")
	n := 0
	for q.Push(Entry{Topic: image, Data: make([]byte, 1<<20)}) {
		n++
	}
	if n != 8 { // 9 MiB are theirs, and each costs a little more than 1 MiB
		t.Fatalf("%d images fit", n)
	}
	es := take(t, q) // nothing can be evicted now
	got := 0
	for q.Push(Entry{Topic: imu, Data: make([]byte, 1000)}) {
		got++
	}
	if want := int((10<<20 - q.Stats().InFlight) / int64(1000+EntryCost)); got != want {
		t.Fatalf("%d small messages fit, want %d", got, want)
	}
	q.Done(es)
}

func TestQueueLargestTopicGivesWay(t *testing.T) {
	q := NewQueue(QueueOptions{MaxBytes: 4 << 20, Reserve: -1})
	cam, lidar := q.Topic("/cam"), q.Topic("/lidar")
	for range 20 { // cam has by far the higher bandwidth
		q.Push(Entry{Topic: cam, Data: make([]byte, 500_000)})
	}
	for i := range 20 {
		if !q.Push(Entry{Topic: lidar, Data: make([]byte, 150_000)}) {
			t.Fatalf("lidar message %d is dropped", i)
		}
	}
	if q.Push(Entry{Topic: cam, Data: make([]byte, 1_000_000)}) {
		t.Fatal("the largest topic drives out others")
	}
	_, camLost, _ := cam.Counts()
	if lidar.Dropped() != 0 || camLost < 18 {
		t.Fatalf("lidar lost %d, cam %d", lidar.Dropped(), camLost)
	}
	for i, e := range take(t, q) {
		if i > 0 && e.Topic == cam && e.Order > 10 {
			t.Fatalf("the oldest images should be left, not %d", e.Order)
		}
	}
}

func TestQueuePriority(t *testing.T) {
	q := NewQueue(QueueOptions{MaxBytes: 4 << 20, Reserve: -1, Priority: map[string]int{"/cam": 5, "/junk": -1}})
	cam, lidar, junk := q.Topic("/cam"), q.Topic("/lidar"), q.Topic("/junk")
	for range 10 {
		q.Push(Entry{Topic: lidar, Data: make([]byte, 200_000)})
		q.Push(Entry{Topic: junk, Data: make([]byte, 100_000)})
	}
	for i := range 7 { // pushes out junk first, then lidar, though its bandwidth is the largest
		if !q.Push(Entry{Topic: cam, Data: make([]byte, 500_000)}) {
			t.Fatalf("cam message %d is dropped", i)
		}
	}
	if junk.Dropped() != 10 || lidar.Dropped() == 0 || cam.Dropped() != 0 {
		t.Fatalf("junk lost %d, lidar %d, cam %d", junk.Dropped(), lidar.Dropped(), cam.Dropped())
	}
}

// Nothing is evicted for a message that does not fit even then.
func TestQueueEvictsNothingInVain(t *testing.T) {
	q := NewQueue(QueueOptions{MaxBytes: 4 << 20, Reserve: -1, Priority: map[string]int{"/vip": 1}})
	a, vip := q.Topic("/a"), q.Topic("/vip")
	for range 2 {
		q.Push(Entry{Topic: vip, Data: make([]byte, 1<<20)})
	}
	q.Push(Entry{Topic: a, Data: make([]byte, 1<<20)})
	if q.Push(Entry{Topic: vip, Data: make([]byte, 3<<20)}) {
		t.Fatal("fits")
	}
	if a.Dropped() != 0 {
		t.Fatal("evicted in vain")
	}
}

func TestQueueClose(t *testing.T) {
	q := NewQueue(QueueOptions{})
	own := &counter{}
	a := q.Topic("/a")
	q.Push(Entry{Topic: a, Data: make([]byte, 10), Owner: own})
	q.Close()
	q.Close()
	if q.Push(Entry{Topic: a, Data: make([]byte, 10), Owner: own}) {
		t.Fatal("a closed queue takes messages")
	}
	if own.released.Load() != 1 || a.Dropped() != 1 {
		t.Fatal(own.released.Load(), a.Dropped())
	}
	es, err := q.Take(context.Background(), nil)
	if len(es) != 1 || err != nil {
		t.Fatal(es, err)
	}
	q.Done(es)
	if _, err := q.Take(context.Background(), nil); err != io.EOF {
		t.Fatal(err)
	}
}

func TestQueueTakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueOptions{})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := q.Take(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Minute)
			q.Push(Entry{Topic: q.Topic("/a"), Data: []byte("x")})
		}()
		start := time.Now()
		if es := take(t, q); len(es) != 1 || time.Since(start) != time.Minute {
			t.Fatal(es, time.Since(start))
		}
		go func() {
			time.Sleep(time.Minute)
			q.Close()
		}()
		if _, err := q.Take(context.Background(), nil); err != io.EOF {
			t.Fatal(err)
		}
	})
}

// overload runs producers of the given sizes and rates against a consumer that writes bytes per second, in fake time.
type producer struct {
	topic string
	size  int
	hz    int
}

func overload(t *testing.T, o QueueOptions, ps []producer, drain int, freeze, runFor time.Duration) *Queue {
	q := NewQueue(o)
	own := &counter{}
	buf := make([]byte, 16<<20)
	end := time.Now().Add(runFor)
	var producers, consumer sync.WaitGroup
	for i, p := range ps {
		tp := q.Topic(p.topic)
		producers.Go(func() {
			time.Sleep(time.Duration(i) * 137 * time.Microsecond)
			tick := time.NewTicker(time.Second / time.Duration(p.hz))
			defer tick.Stop()
			for time.Now().Before(end) {
				<-tick.C
				q.Push(Entry{Topic: tp, Data: buf[:p.size], Owner: own})
			}
		})
	}
	taken := int64(0)
	consumer.Go(func() {
		time.Sleep(freeze)
		var es []Entry
		for {
			var err error
			es, err = q.Take(context.Background(), es[:0])
			if err != nil {
				return
			}
			taken += int64(len(es))
			for rest := es; len(rest) > 0; {
				n := min(64, len(rest))
				bytes := 0
				for _, e := range rest[:n] {
					bytes += len(e.Data)
				}
				time.Sleep(time.Duration(float64(bytes) / float64(drain) * 1e9))
				q.Done(rest[:n])
				rest = rest[n:]
			}
		}
	})
	producers.Wait()
	q.Close()
	consumer.Wait()
	s := q.Stats()
	if s.Bytes != 0 || s.Len != 0 || own.released.Load() != int64(s.Pushed) {
		t.Errorf("%+v, %d released", s, own.released.Load())
	}
	if uint64(taken)+s.Dropped != s.Pushed {
		t.Errorf("taken %d + dropped %d != pushed %d", taken, s.Dropped, s.Pushed)
	}
	if s.HighWater > s.MaxBytes {
		t.Errorf("high water %d of %d", s.HighWater, s.MaxBytes)
	}
	return q
}

var robot = []producer{{"/tf", 200, 100}, {"/imu", 324, 1000}, {"/scan", 20_000, 40}, {"/odom", 700, 50},
	{"/camera", 1_000_000, 30}, {"/camera2", 900_000, 15}}

// At twice what the disk takes, all loss is in the images.
func TestQueueOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := overload(t, QueueOptions{MaxBytes: 50 << 20}, robot, 22_000_000, 0, time.Minute)
		for _, p := range robot {
			pushed, dropped, _ := q.Topic(p.topic).Counts()
			t.Logf("%-9s %6d pushed %5.1f %% recorded", p.topic, pushed, 100-100*float64(dropped)/float64(pushed))
			if p.size < 64<<10 && dropped > 0 {
				t.Errorf("%s lost %d", p.topic, dropped)
			}
		}
		if _, d, _ := q.Topic("/camera").Counts(); d < 600 {
			t.Errorf("camera lost only %d: no overload", d)
		}
		if _, d, _ := q.Topic("/camera2").Counts(); d > 30 {
			t.Errorf("the smaller camera lost %d", d)
		}
	})
}

// With the disk frozen, small topics drive the images out of the queue and lose nothing.
func TestQueueFrozenConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := overload(t, QueueOptions{MaxBytes: 30 << 20}, robot, 100_000_000, 15*time.Second, 20*time.Second)
		for _, p := range robot {
			if _, dropped, _ := q.Topic(p.topic).Counts(); p.size < 64<<10 && dropped > 0 {
				t.Errorf("%s lost %d", p.topic, dropped)
			}
		}
	})
}

func TestQueueConcurrent(t *testing.T) {
	q := NewQueue(QueueOptions{MaxBytes: 1 << 20})
	own := &counter{}
	var producers, consumer sync.WaitGroup
	const each = 5000
	for p := range 8 {
		tp := q.Topic(fmt.Sprintf("/t%d", p%5))
		producers.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(p)))
			for range each {
				q.Push(Entry{Topic: tp, Data: make([]byte, rnd.IntN(100_000)>>rnd.IntN(12)), Owner: own})
				if rnd.IntN(100) == 0 {
					q.Stats()
					tp.Counts()
				}
			}
		})
	}
	taken := 0
	consumer.Go(func() {
		var es []Entry
		last := uint64(0)
		for {
			var err error
			es, err = q.Take(context.Background(), es[:0])
			if err != nil {
				return
			}
			for _, e := range es {
				if e.Order <= last {
					t.Errorf("order %d after %d", e.Order, last)
				}
				last = e.Order
			}
			taken += len(es)
			q.Done(es)
		}
	})
	producers.Wait()
	q.Close()
	consumer.Wait()
	s := q.Stats()
	if s.Pushed != 8*each || uint64(taken)+s.Dropped != s.Pushed || own.released.Load() != 8*each || s.Bytes != 0 {
		t.Fatalf("%+v, taken %d, released %d", s, taken, own.released.Load())
	}
}

func TestQueueAllocates(t *testing.T) {
	q := NewQueue(QueueOptions{})
	tp := q.Topic("/a")
	own := &counter{}
	data := make([]byte, 1000)
	var es []Entry
	round := func() {
		for range 100 {
			q.Push(Entry{Topic: tp, Data: data, Owner: own})
		}
		es, _ = q.Take(context.Background(), es[:0])
		q.Done(es)
	}
	round()
	if n := testing.AllocsPerRun(100, round); n > 0 {
		t.Fatalf("%v allocations for 100 messages", n)
	}
}

func BenchmarkQueue(b *testing.B) {
	for _, bench := range []struct {
		name   string
		topics int
		full   bool
	}{{"1 topic", 1, false}, {"100 topics", 100, false}, {"1000 topics full", 1000, true}} {
		b.Run(bench.name, func(b *testing.B) {
			q := NewQueue(QueueOptions{MaxBytes: 64 << 20})
			data := make([]byte, 1000)
			var topics []*QueueTopic
			for i := range bench.topics {
				topics = append(topics, q.Topic(fmt.Sprint(i)))
			}
			if bench.full {
				for q.Push(Entry{Topic: topics[0], Data: make([]byte, 60_000)}) {
				}
			}
			var es []Entry
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				q.Push(Entry{Topic: topics[i%len(topics)], Data: data})
				if !bench.full && i%1000 == 999 {
					es, _ = q.Take(context.Background(), es[:0])
					q.Done(es)
				}
			}
		})
	}
}

// TestQueueOffer: a message is refused rather than dropped, and what was taken never gives way.
func TestQueueOffer(t *testing.T) {
	const cost = 1 << 20
	q := NewQueue(QueueOptions{MaxBytes: 8 * (cost + int64(EntryCost)), Reserve: -1, SmallLimit: 1, Held: []string{"/a", "/b"}, Priority: map[string]int{"/top": 9}})
	held, other, camera, top := q.Topic("/a"), q.Topic("/b"), q.Topic("/camera"), q.Topic("/top")
	entry := func(t *QueueTopic) Entry { return Entry{Topic: t, Data: make([]byte, cost)} }
	for range 8 {
		if !q.Push(entry(camera)) {
			t.Fatal("dropped with room left")
		}
	}
	for i, topic := range []*QueueTopic{held, held, other, held} { // half of the queue; the camera gives way
		if !q.Offer(entry(topic)) {
			t.Fatalf("offer %d was refused", i)
		}
	}
	if q.Offer(entry(held)) || q.Offer(entry(other)) {
		t.Fatal("more than half of the queue is held")
	}
	for range 10 {
		q.Push(entry(top))
	}
	if held.Dropped()+other.Dropped() != 0 || camera.Dropped() != 8 || top.Dropped() != 6 || held.Pushed() != 3 || other.Pushed() != 1 {
		t.Fatalf("dropped %d and %d of those that are held, %d of the camera, %d of the first", held.Dropped(), other.Dropped(), camera.Dropped(), top.Dropped())
	}
	if st := q.Stats(); st.Held != 4*(cost+int64(EntryCost)) || st.Len != 8 {
		t.Fatalf("%+v", st)
	}
	entries, err := q.Take(t.Context(), nil)
	if err != nil || len(entries) != 8 {
		t.Fatal(len(entries), err)
	}
	if q.Offer(entry(held)) {
		t.Fatal("what is being written counts no more")
	}
	q.Done(entries)
	if st := q.Stats(); st.Held != 0 || st.Bytes != 0 {
		t.Fatalf("%+v", st)
	}
	big := Entry{Topic: held, Data: make([]byte, 20*cost)}
	if !q.Offer(big) || q.Offer(entry(held)) {
		t.Fatal("one message larger than the queue is taken, and none behind it")
	}
	q.Close()
	if q.Offer(entry(held)) {
		t.Fatal("taken by a closed queue")
	}
}
