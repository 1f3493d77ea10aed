package perf

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/ros"
)

// Topic and type of a transport measurement: those of the peers' programs.
const (
	transportTopic = "/load"
	transportType  = "load_msgs/msg/Blob"
)

// TransportTask is gobag's publisher or subscriber of a transport measurement. It prints the events of the peers' programs.
type TransportTask struct {
	Load     TransportLoad
	Duration time.Duration // of publishing
	Depth    int           // 0 keep all
}

func (t *TransportTask) topics() []ros.Topic {
	topics := make([]ros.Topic, t.Load.Instances)
	for i := range topics {
		topics[i] = ros.Topic{Name: fmt.Sprintf("%s_%d", transportTopic, i), Type: transportType}
	}
	return topics
}

func (t *TransportTask) qos() ros.QoS {
	q := ros.DefaultQoS()
	if q.Depth = t.Depth; t.Depth == 0 {
		q.History = ros.KeepAll
	}
	return q
}

// topicEvent is what is said of a topic at the end.
type topicEvent struct {
	Event string `json:"event"`
	Topic string `json:"topic"`
	Sent  uint64 `json:"sent,omitempty"`
	Got   uint64 `json:"got,omitempty"`
	Lag   int64  `json:"lag_ns,omitempty"`
	P99   int64  `json:"p99_ns,omitempty"`
}

// Subscribe takes the load until ctx ends.
func (t *TransportTask) Subscribe(ctx context.Context, node ros.Node, out io.Writer) error {
	topics := t.topics()
	got := make([]atomic.Uint64, len(topics))
	subs := make([]ros.Subscription, 0, len(topics))
	defer func() {
		for _, s := range subs {
			_ = s.Close() // the node goes too
		}
	}()
	for i, topic := range topics {
		s, err := node.Subscribe(topic, ros.BestAvailableQoS(), func(s ros.Sample) {
			got[i].Add(1)
			s.Release()
		})
		if err != nil {
			return err
		}
		subs = append(subs, s)
	}
	fmt.Fprintln(out, `{"event":"ready"}`)
	<-ctx.Done()
	e := json.NewEncoder(out)
	for i, topic := range topics {
		if err := e.Encode(topicEvent{Event: "topic", Topic: topic.Name, Got: got[i].Load()}); err != nil {
			return err
		}
	}
	return nil
}

// Publish sends the load when every topic has a subscription, on an absolute schedule, or without any as fast as the
// subscriptions acknowledge.
func (t *TransportTask) Publish(ctx context.Context, node ros.Node, out io.Writer) error {
	began := time.Now()
	topics := t.topics()
	pubs := make([]ros.Publisher, 0, len(topics))
	defer func() {
		for _, p := range pubs {
			_ = p.Close() // what is not acknowledged by now is a loss that the subscriber shows
		}
	}()
	for _, topic := range topics {
		p, err := node.Advertise(topic, t.qos())
		if err != nil {
			return err
		}
		pubs = append(pubs, p)
	}
	if err := waitMatched(ctx, pubs); err != nil {
		return err
	}
	time.Sleep(200 * time.Millisecond) // the subscriber may still be matching us
	start := time.Now()
	fmt.Fprintf(out, "{\"event\":\"start\",\"mono_ns\":%d}\n", start.Sub(began))
	workers := make([]transportWorker, min(len(pubs), 2))
	var wg sync.WaitGroup
	for w := range workers {
		workers[w] = transportWorker{task: t, pubs: pubs, first: w, step: len(workers), start: start}
		wg.Go(func() { workers[w].run(ctx) })
	}
	wg.Wait()
	var calls Histogram
	lag := time.Duration(0)
	for i := range workers {
		w := &workers[i]
		if w.err != nil {
			return w.err
		}
		calls.Merge(&w.calls)
		lag = max(lag, w.lag)
	}
	waitAcked(ctx, pubs, 5*time.Second)
	e := json.NewEncoder(out)
	for i, topic := range topics {
		ev := topicEvent{Event: "topic", Topic: topic.Name, Sent: workers[i%len(workers)].sent, Lag: int64(lag), P99: int64(calls.Quantile(0.99))}
		if err := e.Encode(ev); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "{\"event\":\"done\",\"mono_ns\":%d}\n", time.Since(began))
	return nil
}

// transportWorker publishes on every step-th topic, beginning with first.
type transportWorker struct {
	task        *TransportTask
	pubs        []ros.Publisher
	first, step int
	start       time.Time

	sent  uint64 // on each topic
	calls Histogram
	lag   time.Duration
	err   error
}

func (w *transportWorker) run(ctx context.Context) {
	l := w.task.Load
	var e cdr.Encoder
	e.Reset(make([]byte, 0, cdr.HeaderSize+24+l.Size), cdr.CDRLE)
	e.Uint32(0) // instance
	e.Uint32(0) // number
	e.Uint64(0) // when it was due, ns after the start
	e.ByteSeq(noise(l.Size, 1))
	payload := e.Bytes()
	body := payload[cdr.HeaderSize:]
	period := time.Duration(0)
	if l.Frequency > 0 {
		period = time.Duration(float64(time.Second) / l.Frequency)
	}
	end := w.start.Add(w.task.Duration)
	for k := uint64(0); ; k++ {
		due := w.start.Add(time.Duration(k) * period)
		now := time.Now()
		if now.After(end) || due.After(end) {
			return
		}
		if period > 0 {
			if !sleepUntil(ctx, due) {
				return
			}
			w.lag = max(w.lag, now.Sub(due))
		} else if ctx.Err() != nil {
			return
		}
		for i := w.first; i < len(w.pubs); i += w.step {
			binary.LittleEndian.PutUint32(body, uint32(i))
			binary.LittleEndian.PutUint32(body[4:], uint32(k))
			binary.LittleEndian.PutUint64(body[8:], uint64(due.Sub(w.start)))
			called := time.Now()
			if w.err = w.pubs[i].Publish(payload, called.UnixNano()); w.err != nil {
				return
			}
			w.calls.Add(time.Since(called))
		}
		w.sent++
	}
}
