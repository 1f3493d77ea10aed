//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/rtps"
)

// job is what one goroutine publishes: all instances of a topic.
type job struct {
	topic   lab.Topic
	names   []string
	writers []*rtps.Writer
	sent    int64
	failed  int64
	first   int64
	last    int64
	lag     int64
	calls   []int64
}

// callLog is the --calls file.
type callLog struct {
	sync.Mutex
	w *bufio.Writer
}

func (l *callLog) add(name string, number, at, took int64) {
	if l.w == nil {
		return
	}
	l.Lock()
	defer l.Unlock()
	fmt.Fprintf(l.w, "%s %d %d %d 0\n", name, number, at, took)
}

func publish(ctx context.Context, p *rtps.Participant, o *options) (err error) {
	var calls callLog
	if o.calls != "" {
		f, cannot := os.Create(o.calls)
		if cannot != nil {
			return cannot
		}
		calls.w = bufio.NewWriter(f)
		defer func() { err = errors.Join(err, calls.w.Flush(), f.Close()) }()
	}
	var jobs []*job
	for _, t := range o.topics {
		j := &job{topic: t, names: t.Names()}
		for _, name := range j.names {
			topic, typ := names(t, name)
			w, err := p.NewWriter(rtps.WriterConfig{Topic: topic, Type: typ, QoS: qos(t), UserData: userData(t), FragmentSize: o.fragment,
				Window: window(o, t)})
			if err != nil {
				return err
			}
			j.writers = append(j.writers, w)
		}
		jobs = append(jobs, j)
	}
	fmt.Println(`{"event":"ready"}`)
	run, stop := context.WithCancel(ctx)
	defer stop()
	var watch sync.WaitGroup
	defer watch.Wait()
	watching, unwatch := context.WithCancel(context.Background())
	defer unwatch()
	watch.Go(func() { watchReaders(watching, p, jobs) })
	var wg sync.WaitGroup
	failures := make(chan error, len(jobs))
	begin := func(j *job) {
		start := lab.Mono()
		wg.Go(func() { failures <- j.run(run, &calls, start) })
	}
	for _, j := range jobs {
		if j.topic.Early {
			begin(j)
		}
	}
	matched := o.wait == 0 || awaitReaders(ctx, jobs, o)
	fmt.Printf("{\"event\":\"start\",\"mono_ns\":%d,\"wall_ns\":%d}\n", lab.Mono(), time.Now().UnixNano())
	var end <-chan time.Time
	if o.seconds > 0 {
		end = time.After(time.Duration(o.seconds * 1e9))
		time.AfterFunc(time.Duration(o.seconds*1e9), stop)
	}
	for _, j := range jobs {
		if !j.topic.Early {
			begin(j)
		}
	}
	wg.Wait()
	if end != nil && ctx.Err() == nil {
		<-end // latched topics stay for the whole run
	}
	for range jobs {
		if err := <-failures; err != nil {
			return err
		}
	}
	late, cancel := context.WithTimeout(context.Background(), time.Duration(o.linger*1e9))
	defer cancel()
	for _, j := range jobs {
		for i, w := range j.writers {
			if err := w.WaitAcked(late); err != nil && !j.topic.BestEffort {
				fmt.Fprintln(os.Stderr, "probe:", err)
			}
			j.report(j.names[i], w)
		}
	}
	fmt.Printf("{\"event\":\"done\",\"mono_ns\":%d}\n", lab.Mono())
	if !matched {
		return errUnmatched
	}
	return nil
}

func window(o *options, t lab.Topic) int {
	if o.window > 0 {
		return o.window
	}
	return max(8<<20, 2*(t.Size+t.Grow*t.Count))
}

// watchReaders prints when readers come and go, until ctx ends.
func watchReaders(ctx context.Context, p *rtps.Participant, jobs []*job) {
	had := map[*rtps.Writer]int{}
	for {
		changed := p.Changed()
		for _, j := range jobs {
			for i, w := range j.writers {
				n := w.Stats().Matched
				event := "matched"
				if n < had[w] {
					event = "unmatched"
				}
				if n != had[w] {
					fmt.Printf("{\"event\":%q,\"topic\":%q,\"readers\":%d,\"mono_ns\":%d}\n", event, j.names[i], n, lab.Mono())
				}
				had[w] = n
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// awaitReaders waits until every writer has its readers.
func awaitReaders(ctx context.Context, jobs []*job, o *options) bool {
	deadline := time.Now().Add(time.Duration(o.waitTimeout * 1e9))
	for _, j := range jobs {
		for _, w := range j.writers {
			for w.Stats().Matched < o.wait {
				if ctx.Err() != nil {
					return true
				}
				if time.Now().After(deadline) {
					return false
				}
				time.Sleep(2 * time.Millisecond)
			}
		}
	}
	time.Sleep(time.Duration(o.settle) * time.Millisecond) // the readers may still be matching us
	return true
}

// run writes until the count is reached or ctx ends.
func (j *job) run(ctx context.Context, calls *callLog, start int64) error {
	period := int64(0)
	if j.topic.Hz > 0 {
		period = int64(1e9 / j.topic.Hz)
	}
	var b []byte
	header := []byte{0, 1, 0, 0}
	if j.topic.XCDR2 {
		header[1] = 7
	}
	for tick := int64(0); ctx.Err() == nil && (j.topic.Count == 0 || j.sent < int64(j.topic.Count)); tick++ {
		due := start + tick*period
		if wait := due - lab.Mono(); wait > 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Duration(wait)):
			}
		} else if period > 0 {
			j.lag = max(j.lag, -wait)
		}
		for i, w := range j.writers {
			b = j.topic.Body(append(b[:0], header...), uint32(j.sent), i)
			at := lab.Mono()
			if _, err := w.Write(b, time.Now().UnixNano()); err != nil {
				return err
			}
			took := lab.Mono() - at
			j.calls = append(j.calls, took)
			calls.add(j.names[i], j.sent, at, took)
		}
		if j.last = lab.Mono(); j.sent == 0 {
			j.first = j.last
		}
		j.sent++
	}
	return nil
}

func (j *job) report(name string, w *rtps.Writer) {
	slices.Sort(j.calls)
	quantile := func(q float64) int64 {
		if len(j.calls) == 0 {
			return 0
		}
		return j.calls[int(q*float64(len(j.calls)-1)+0.5)]
	}
	st := w.Stats()
	fmt.Printf("{\"event\":\"topic\",\"topic\":%q,\"sent\":%d,\"failed\":%d,\"first_ns\":%d,\"last_ns\":%d,\"lag_ns\":%d,\"p50_ns\":%d,"+
		"\"p99_ns\":%d,\"max_ns\":%d,\"dropped\":%d,\"resent\":%d,\"unacked\":%d}\n", name, j.sent, j.failed, j.first, j.last, j.lag,
		quantile(0.5), quantile(0.99), quantile(1), st.Dropped, st.Resent, st.Unacked)
}
