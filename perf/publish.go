package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/ros"
)

// Publish advertises the topics of a load, waits until each has a subscription, and publishes on an absolute schedule
// with the topics of a group spread evenly over a period. A message that is late is sent at once and none is left out;
// when the publishers are so far behind that twice the load's span has passed, they stop. ctx ends it earlier; what was
// done is returned.
func Publish(ctx context.Context, node ros.Node, l Load) (LoadResult, error) {
	if err := l.Validate(); err != nil {
		return LoadResult{}, fmt.Errorf("load: %w", err)
	}
	topics := l.Topics()
	pubs := make([]ros.Publisher, 0, len(topics))
	defer func() {
		for _, p := range pubs {
			_ = p.Close() // what was not acknowledged is in the result already
		}
	}()
	for _, g := range l.Groups {
		q, err := g.QoS()
		if err != nil {
			return LoadResult{}, err
		}
		for range g.Instances {
			t := topics[len(pubs)]
			p, err := node.Advertise(t, q)
			if err != nil {
				return LoadResult{}, fmt.Errorf("advertise %s: %w", t.Name, err)
			}
			pubs = append(pubs, p)
		}
	}
	if err := waitMatched(ctx, pubs); err != nil {
		return LoadResult{}, err
	}

	groups := make([][]byte, len(l.Groups))
	for i := range groups {
		groups[i] = l.groupData(i)
	}
	workers := make([]loadWorker, min(len(pubs), 8))
	start := time.Now().Add(10 * time.Millisecond)
	for w := range workers {
		workers[w] = newLoadWorker(l, groups, pubs, w, len(workers), start)
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { workers[w].run(ctx) })
	}
	wg.Wait()

	res := LoadResult{Expected: l.Expected(), PerTopic: make([]uint64, len(pubs)), Start: start.UnixNano(), Seconds: time.Since(start).Seconds()}
	var late Histogram
	var errs []error
	for i := range workers {
		w := &workers[i]
		late.Merge(&w.late)
		res.CallMax = max(res.CallMax, w.callMax)
		for k, d := range w.overTime {
			for len(res.LateOverTime) <= k {
				res.LateOverTime = append(res.LateOverTime, 0)
			}
			res.LateOverTime[k] = max(res.LateOverTime[k], d)
		}
		errs = append(errs, w.err)
		for _, t := range w.topics {
			res.PerTopic[t.number] += t.next
			res.Sent += t.next
		}
	}
	res.Acked = waitAcked(ctx, pubs, 10*time.Second)
	for _, p := range pubs {
		res.Dropped += p.Stats().Dropped
	}
	res.LateP50, res.LateP99, res.LateMax = late.Quantile(0.5), late.Quantile(0.99), late.Max()
	return res, errors.Join(errs...)
}

// loadTopic is one topic of a worker.
type loadTopic struct {
	number  int // in the load
	pub     ros.Publisher
	group   []byte  // data, shared by the topics of the same group
	payload []byte  // buffer, shared by the worker's topics of the same group
	period  float64 // ns
	offset  float64 // of the first message, ns
	count   uint64
	next    uint64 // number of the next message, and how many were sent
}

// due is when the next message is due, ns from the start.
func (t *loadTopic) due() time.Duration { return time.Duration(t.offset + t.period*float64(t.next)) }

// loadWorker publishes on some of the topics of a load.
type loadWorker struct {
	seed     uint64
	start    time.Time
	giveUp   time.Time
	interval time.Duration
	topics   []loadTopic
	order    []int // heap of the topics that have something left to publish: what is due first

	late     Histogram
	overTime []time.Duration
	callMax  time.Duration
	err      error
}

// newLoadWorker makes the worker of every step-th topic, beginning with first.
func newLoadWorker(l Load, groups [][]byte, pubs []ros.Publisher, first, step int, start time.Time) loadWorker {
	span := l.Span()
	w := loadWorker{seed: l.Seed, start: start, giveUp: start.Add(2*span + time.Second), interval: SeriesInterval(span)}
	number := 0
	for group, g := range l.Groups {
		var payload []byte
		for i := range g.Instances {
			if number%step == first {
				if payload == nil {
					var e cdr.Encoder
					e.Reset(make([]byte, 0, cdr.HeaderSize+4+g.Size), cdr.CDRLE)
					e.ByteSeq(groups[group])
					payload = e.Bytes()
				}
				period := float64(time.Second) / g.Frequency
				w.topics = append(w.topics, loadTopic{number: number, pub: pubs[number], group: groups[group], payload: payload, period: period,
					offset: period * float64(i) / float64(g.Instances), count: g.perTopic(l.Duration)})
			}
			number++
		}
	}
	for i := range w.topics {
		w.order = append(w.order, i)
	}
	for i := len(w.order)/2 - 1; i >= 0; i-- {
		w.sink(i)
	}
	return w
}

// sink restores the heap's order below i.
func (w *loadWorker) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(w.order); child++ {
			if w.topics[w.order[child]].due() < w.topics[w.order[least]].due() {
				least = child
			}
		}
		if least == i {
			return
		}
		w.order[i], w.order[least] = w.order[least], w.order[i]
		i = least
	}
}

func (w *loadWorker) run(ctx context.Context) {
	wallStart := w.start.UnixNano()
	for len(w.order) > 0 {
		t := &w.topics[w.order[0]]
		after := t.due()
		due := w.start.Add(after)
		if !sleepUntil(ctx, due) {
			return
		}
		if time.Now().After(w.giveUp) {
			return
		}
		stamp := t.payload[cdr.HeaderSize+4:]
		fillMessage(stamp, t.group, messageKey(w.seed, t.number, t.next))
		binary.LittleEndian.PutUint64(stamp, uint64(t.number))
		binary.LittleEndian.PutUint64(stamp[8:], t.next)
		binary.LittleEndian.PutUint64(stamp[16:], uint64(wallStart+int64(after)))
		called := time.Now()
		if err := t.pub.Publish(t.payload, time.Now().UnixNano()); err != nil {
			w.err = fmt.Errorf("publish %s: %w", t.pub.Topic().Name, err)
			return
		}
		now := time.Now()
		w.callMax = max(w.callMax, now.Sub(called))
		late := now.Sub(due)
		w.late.Add(late)
		k := int(after / w.interval)
		for len(w.overTime) <= k {
			w.overTime = append(w.overTime, 0)
		}
		w.overTime[k] = max(w.overTime[k], late)
		if t.next++; t.next == t.count {
			w.order[0] = w.order[len(w.order)-1]
			w.order = w.order[:len(w.order)-1]
		}
		w.sink(0)
	}
}
