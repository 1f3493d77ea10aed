package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/ros"
)

// LoadTopicRoot is the prefix of the topics of a load: /perf/t0000, /perf/t0001, …
const LoadTopicRoot = "/perf/"

// loadType is the type of a load's messages, the one of rosbag2's own benchmark: `byte[] data`.
const loadType = "rosbag2_performance_benchmarking_msgs/msg/ByteArray"

// loadStamp is how much of each message's data is overwritten: topic, running number and the time it was due (wall clock,
// ns), each as a little-endian uint64.
const loadStamp = 24

// maxTopics bounds the topics of a load.
const maxTopics = 10000

// Group is a number of equal publishers, each on a topic of its own.
type Group struct {
	Name      string  `json:"name"`            // of the topics /perf/NAME0000 …: letters, digits and underscores, a letter last
	Instances int     `json:"instances"`       // publishers
	Frequency float64 `json:"frequency_hz"`    // messages per second of each
	Size      int     `json:"size_bytes"`      // data in a message; the serialized message is 8 bytes longer
	Count     int     `json:"count,omitempty"` // messages of each publisher; 0: what is due within the load's Duration

	Reliability  string  `json:"reliability,omitempty"`  // "reliable" (default) or "best_effort"
	Durability   string  `json:"durability,omitempty"`   // "volatile" (default) or "transient_local"
	Depth        int     `json:"depth,omitempty"`        // of the history; 0 keep all
	Compressible float64 `json:"compressible,omitempty"` // share of the data that compresses to next to nothing, 0..1
}

// QoS is the profile of the group's publishers.
func (g Group) QoS() (q ros.QoS, err error) {
	q = ros.DefaultQoS()
	if q.Depth = g.Depth; g.Depth == 0 {
		q.History = ros.KeepAll
	}
	q.Reliability = ros.Reliable
	if g.Reliability != "" {
		if q.Reliability, err = ros.ParseReliability(g.Reliability); err != nil {
			return q, err
		}
	}
	q.Durability = ros.Volatile
	if g.Durability != "" {
		q.Durability, err = ros.ParseDurability(g.Durability)
	}
	return q, err
}

// validate returns all problems, joined.
func (g Group) validate() error {
	var errs []error
	if ros.ValidName(LoadTopicRoot+g.Name+"0") != nil || strings.TrimRight(g.Name, "0123456789_") != g.Name || g.Name == "" {
		errs = append(errs, fmt.Errorf("name %q: not letters, digits and underscores with a letter last", g.Name))
	}
	if g.Instances < 1 || g.Instances > maxTopics {
		errs = append(errs, fmt.Errorf("instances %d: not in 1..%d", g.Instances, maxTopics))
	}
	if !(g.Frequency > 0) || g.Frequency > 1e6 {
		errs = append(errs, fmt.Errorf("frequency %g: not above 0 and at most 1000000", g.Frequency))
	}
	if g.Size < loadStamp || g.Size > 1<<30 {
		errs = append(errs, fmt.Errorf("size %d: not in %d..%d bytes", g.Size, loadStamp, 1<<30))
	}
	if g.Count < 0 || g.Depth < 0 {
		errs = append(errs, errors.New("count and depth must not be negative"))
	}
	if !(g.Compressible >= 0 && g.Compressible <= 1) {
		errs = append(errs, fmt.Errorf("compressible %g: not in 0..1", g.Compressible))
	}
	q, err := g.QoS()
	switch {
	case err != nil:
		errs = append(errs, err)
	case q.Reliability != ros.Reliable && q.Reliability != ros.BestEffort:
		errs = append(errs, errors.New("reliability: neither reliable nor best_effort"))
	case q.Durability != ros.Volatile && q.Durability != ros.TransientLocal:
		errs = append(errs, errors.New("durability: neither volatile nor transient_local"))
	}
	return errors.Join(errs...)
}

// perTopic is the number of messages of each publisher of the group in a load of this duration.
func (g Group) perTopic(d time.Duration) uint64 {
	if g.Count > 0 {
		return uint64(g.Count)
	}
	return max(1, uint64(d.Seconds()*g.Frequency+0.5))
}

// Expected is the number of messages of all publishers of the group in a load of this duration.
func (g Group) Expected(d time.Duration) uint64 { return uint64(g.Instances) * g.perTopic(d) }

// Load is what publishers do together.
type Load struct {
	Groups   []Group       `json:"groups"`
	Duration time.Duration `json:"duration_ns"` // how long groups without a Count publish
	Seed     uint64        `json:"seed"`        // of the payloads' noise
}

// Validate returns all problems, joined.
func (l Load) Validate() error {
	var errs []error
	if len(l.Groups) == 0 {
		errs = append(errs, errors.New("no group of publishers"))
	}
	names := map[string]bool{}
	topics := 0
	for _, g := range l.Groups {
		if err := g.validate(); err != nil {
			errs = append(errs, err)
		}
		if names[g.Name] {
			errs = append(errs, fmt.Errorf("two groups have the name %q", g.Name))
		}
		names[g.Name] = true
		topics += max(0, min(g.Instances, maxTopics))
	}
	if topics > maxTopics {
		errs = append(errs, fmt.Errorf("%d topics: more than %d", topics, maxTopics))
	}
	if l.Duration <= 0 {
		errs = append(errs, fmt.Errorf("duration %v: not above 0", l.Duration))
	}
	return errors.Join(errs...)
}

// Expected is the number of messages of the whole load.
func (l Load) Expected() (n uint64) {
	for _, g := range l.Groups {
		n += g.Expected(l.Duration)
	}
	return n
}

// Bytes is the data of the whole load.
func (l Load) Bytes() (n float64) {
	for _, g := range l.Groups {
		n += float64(g.Expected(l.Duration)) * float64(g.Size)
	}
	return n
}

// Span is how long the load publishes when nothing holds it up: the longest of its groups.
func (l Load) Span() (d time.Duration) {
	for _, g := range l.Groups {
		d = max(d, time.Duration(float64(g.perTopic(l.Duration))/g.Frequency*float64(time.Second)))
	}
	return d
}

// Topics names the topics of the load, those of each group together.
func (l Load) Topics() []ros.Topic {
	var ts []ros.Topic
	for _, g := range l.Groups {
		for i := range g.Instances {
			ts = append(ts, ros.Topic{Name: fmt.Sprintf("%s%s%04d", LoadTopicRoot, g.Name, i), Type: loadType, TypeHash: hashByteArray})
		}
	}
	return ts
}

// groupData is the data of a group's messages before the stamp is put in: noise, but for the share that compresses,
// which lies in every 1,024 bytes.
func (l Load) groupData(group int) []byte {
	g := l.Groups[group]
	data := noise(g.Size, l.Seed+uint64(group))
	const block = 1024
	plain := int(g.Compressible * block)
	for at := 0; at < len(data); at += block {
		part := data[at:min(at+block, len(data))]
		clear(part[len(part)-min(plain, len(part)):])
	}
	return data
}

// LoadResult says what a load did.
type LoadResult struct {
	Expected uint64   `json:"expected"` // what was due
	Sent     uint64   `json:"sent"`
	PerTopic []uint64 `json:"per_topic,omitempty"` // sent, by number of the topic
	Dropped  uint64   `json:"dropped"`             // given up by the publisher before a subscription had acknowledged it
	Acked    bool     `json:"acked"`               // everything else was acknowledged in the end
	Start    int64    `json:"start_ns"`            // wall clock when the first message was due
	Seconds  float64  `json:"seconds"`             // from the first message due to the last call's return
	// Lateness is the time from when a message was due until Publish had returned, in nanoseconds: a stall shows in
	// every message that was due meanwhile.
	LateP50 time.Duration `json:"late_p50_ns"`
	LateP99 time.Duration `json:"late_p99_ns"`
	LateMax time.Duration `json:"late_max_ns"`
	CallMax time.Duration `json:"call_max_ns"` // the longest single call of Publish
	// LateOverTime is the largest lateness of the messages due in each interval of SeriesInterval, from Start on.
	LateOverTime []time.Duration `json:"late_over_time_ns,omitempty"`
	Usage                        // of the publishers' process; filled in by who started it
}

// SeriesInterval is the width of the intervals that a load of this span is looked at in: at least 250 ms, and at most
// 240 of them.
func SeriesInterval(span time.Duration) time.Duration {
	return max(250*time.Millisecond, (span / 240).Round(time.Millisecond))
}

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

	workers := make([]loadWorker, min(len(pubs), 8))
	start := time.Now().Add(10 * time.Millisecond)
	for w := range workers {
		workers[w] = newLoadWorker(l, pubs, w, len(workers), start)
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
	payload []byte  // shared by the worker's topics of the same group
	period  float64 // ns
	offset  float64 // of the first message, ns
	count   uint64
	next    uint64 // number of the next message, and how many were sent
}

// due is when the next message is due, ns from the start.
func (t *loadTopic) due() time.Duration { return time.Duration(t.offset + t.period*float64(t.next)) }

// loadWorker publishes on some of the topics of a load.
type loadWorker struct {
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
func newLoadWorker(l Load, pubs []ros.Publisher, first, step int, start time.Time) loadWorker {
	span := l.Span()
	w := loadWorker{start: start, giveUp: start.Add(2*span + time.Second), interval: SeriesInterval(span)}
	number := 0
	for group, g := range l.Groups {
		var payload []byte
		for i := range g.Instances {
			if number%step == first {
				if payload == nil {
					var e cdr.Encoder
					e.Reset(make([]byte, 0, cdr.HeaderSize+4+g.Size), cdr.CDRLE)
					e.ByteSeq(l.groupData(group))
					payload = e.Bytes()
				}
				period := float64(time.Second) / g.Frequency
				w.topics = append(w.topics, loadTopic{number: number, pub: pubs[number], payload: payload, period: period,
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
		called := time.Now()
		if called.After(w.giveUp) {
			return
		}
		stamp := t.payload[cdr.HeaderSize+4:]
		binary.LittleEndian.PutUint64(stamp, uint64(t.number))
		binary.LittleEndian.PutUint64(stamp[8:], t.next)
		binary.LittleEndian.PutUint64(stamp[16:], uint64(wallStart+int64(after)))
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
