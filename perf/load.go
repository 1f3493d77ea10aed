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

// LoadTopicRoot is the prefix of the topics of a load: /perf/t0000, /perf/t0001, …
const LoadTopicRoot = "/perf/"

// loadType is the type of a load's messages, the one of rosbag2's own benchmark: `byte[] data`.
const loadType = "rosbag2_performance_benchmarking_msgs/msg/ByteArray"

// loadStamp is how much of each message's data is overwritten: topic and running number, so that no two are equal.
const loadStamp = 16

// Load is a number of equal publishers.
type Load struct {
	Instances int           // publishers, each on a topic of its own
	Frequency float64       // messages per second of each
	Size      int           // bytes of data in a message; the serialized message is 8 bytes longer
	Duration  time.Duration // how long they publish
	QoS       ros.QoS       // zero: reliable, keep all
	Seed      uint64        // of the payload's noise
}

// Validate returns all problems, joined.
func (l Load) Validate() error {
	var errs []error
	if l.Instances < 1 || l.Instances > 10000 {
		errs = append(errs, fmt.Errorf("instances %d: not in 1..10000", l.Instances))
	}
	if !(l.Frequency > 0) || l.Frequency > 1e6 {
		errs = append(errs, fmt.Errorf("frequency %g: not above 0 and at most 1000000", l.Frequency))
	}
	if l.Size < loadStamp || l.Size > 1<<30 {
		errs = append(errs, fmt.Errorf("size %d: not in %d..%d bytes", l.Size, loadStamp, 1<<30))
	}
	if l.Duration <= 0 {
		errs = append(errs, fmt.Errorf("duration %v: not above 0", l.Duration))
	}
	return errors.Join(errs...)
}

// Expected is the number of messages of the whole load: what is due within Duration.
func (l Load) Expected() uint64 { return uint64(l.Instances) * l.perTopic() }

func (l Load) perTopic() uint64 {
	return max(1, uint64(l.Duration.Seconds()*l.Frequency+0.5))
}

// Topics names the topics of the load.
func (l Load) Topics() []ros.Topic {
	ts := make([]ros.Topic, l.Instances)
	for i := range ts {
		ts[i] = ros.Topic{Name: fmt.Sprintf("%st%04d", LoadTopicRoot, i), Type: loadType, TypeHash: hashByteArray}
	}
	return ts
}

// LoadResult says what a load did.
type LoadResult struct {
	Expected uint64   `json:"expected"` // what was due
	Sent     uint64   `json:"sent"`
	PerTopic []uint64 `json:"per_topic"` // sent, by number of the topic
	Dropped  uint64   `json:"dropped"`   // given up by the publisher before a subscription had acknowledged it
	Acked    bool     `json:"acked"`     // everything else was acknowledged in the end
	Seconds  float64  `json:"seconds"`   // from the first message due to the last call's return
	// Lateness is the time from when a message was due until Publish had returned, in nanoseconds: a stall shows in
	// every message that was due meanwhile.
	LateP50 time.Duration `json:"late_p50_ns"`
	LateP99 time.Duration `json:"late_p99_ns"`
	LateMax time.Duration `json:"late_max_ns"`
	CallMax time.Duration `json:"call_max_ns"` // the longest single call of Publish
	Usage                 // of the publisher's process; filled in by who started it
}

// Publish advertises the topics of a load, waits until each has a subscription, and publishes on an absolute schedule
// with the topics spread evenly over a period. A message that is late is sent at once and none is left out; when the
// publishers are so far behind that twice Duration has passed, they stop. ctx ends it earlier; what was done is returned.
func Publish(ctx context.Context, node ros.Node, l Load) (LoadResult, error) {
	if err := l.Validate(); err != nil {
		return LoadResult{}, fmt.Errorf("load: %w", err)
	}
	if l.QoS == (ros.QoS{}) {
		l.QoS = ros.DefaultQoS()
		l.QoS.History, l.QoS.Depth = ros.KeepAll, 0
	}
	pubs := make([]ros.Publisher, 0, l.Instances)
	defer func() {
		for _, p := range pubs {
			_ = p.Close() // what was not acknowledged is in the result already
		}
	}()
	for _, t := range l.Topics() {
		p, err := node.Advertise(t, l.QoS)
		if err != nil {
			return LoadResult{}, fmt.Errorf("advertise %s: %w", t.Name, err)
		}
		pubs = append(pubs, p)
	}
	if err := waitMatched(ctx, pubs); err != nil {
		return LoadResult{}, err
	}

	workers := make([]loadWorker, min(l.Instances, 8))
	start := time.Now().Add(10 * time.Millisecond)
	var wg sync.WaitGroup
	for w := range workers {
		workers[w] = loadWorker{load: l, pubs: pubs, first: w, step: len(workers), start: start, sent: make([]uint64, l.Instances)}
		wg.Go(func() { workers[w].run(ctx) })
	}
	wg.Wait()

	res := LoadResult{Expected: l.Expected(), PerTopic: make([]uint64, l.Instances), Seconds: time.Since(start).Seconds()}
	var late Histogram
	var errs []error
	for i := range workers {
		w := &workers[i]
		late.Merge(&w.late)
		res.CallMax = max(res.CallMax, w.callMax)
		errs = append(errs, w.err)
		for t, n := range w.sent {
			res.PerTopic[t] += n
			res.Sent += n
		}
	}
	res.Acked = waitAcked(ctx, pubs, 10*time.Second)
	for _, p := range pubs {
		res.Dropped += p.Stats().Dropped
	}
	res.LateP50, res.LateP99, res.LateMax = late.Quantile(0.5), late.Quantile(0.99), late.Max()
	return res, errors.Join(errs...)
}

// loadWorker publishes on every step-th topic, beginning with first.
type loadWorker struct {
	load        Load
	pubs        []ros.Publisher
	first, step int
	start       time.Time

	sent    []uint64
	late    Histogram
	callMax time.Duration
	err     error
}

func (w *loadWorker) run(ctx context.Context) {
	l := w.load
	var e cdr.Encoder
	e.Reset(make([]byte, 0, cdr.HeaderSize+4+l.Size), cdr.CDRLE)
	e.ByteSeq(noise(l.Size, l.Seed+uint64(w.first)))
	payload := e.Bytes()
	stamp := payload[cdr.HeaderSize+4:]

	period := float64(time.Second) / l.Frequency
	giveUp := w.start.Add(2*l.Duration + time.Second)
	for k := range l.perTopic() {
		for t := w.first; t < l.Instances; t += w.step {
			due := w.start.Add(time.Duration(period * (float64(k) + float64(t)/float64(l.Instances))))
			if !sleepUntil(ctx, due) {
				return
			}
			called := time.Now()
			if called.After(giveUp) {
				return
			}
			binary.LittleEndian.PutUint64(stamp, uint64(t))
			binary.LittleEndian.PutUint64(stamp[8:], k)
			if err := w.pubs[t].Publish(payload, time.Now().UnixNano()); err != nil {
				w.err = fmt.Errorf("publish %s: %w", w.pubs[t].Topic().Name, err)
				return
			}
			now := time.Now()
			w.callMax = max(w.callMax, now.Sub(called))
			w.late.Add(now.Sub(due))
			w.sent[t]++
		}
	}
}
