//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/rtps"
)

// input is one topic being read.
type input struct {
	topic  lab.Topic
	name   string
	reader *rtps.Reader

	matched    int
	mismatches int

	got, bytes          uint64
	first, last         int64
	gaps, disorder, odd uint64
}

// arrival is a sample with the moment it came.
type arrival struct {
	in     *input
	sample rtps.Sample
	mono   int64
}

// intake hands samples from the receive goroutines to the one that looks at them.
type intake struct {
	mu    sync.Mutex
	queue []arrival
	wake  chan struct{}
}

func (q *intake) put(a arrival) {
	q.mu.Lock()
	q.queue = append(q.queue, a)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *intake) take(into []arrival) []arrival {
	q.mu.Lock()
	defer q.mu.Unlock()
	into, q.queue = q.queue, into[:0]
	return into
}

func subscribe(ctx context.Context, p *rtps.Participant, o *options) (err error) {
	var log *bufio.Writer
	if o.log != "" {
		f, cannot := os.Create(o.log)
		if cannot != nil {
			return cannot
		}
		log = bufio.NewWriterSize(f, 1<<20)
		defer func() { err = errors.Join(err, log.Flush(), f.Close()) }() // a short log would look like lost samples
	}
	q := &intake{wake: make(chan struct{}, 1)}
	var inputs []*input
	for _, t := range o.topics {
		for _, name := range t.Names() {
			in := &input{topic: t, name: name, first: -1, last: -1}
			topic, typ := names(t, name)
			want := qos(t)
			if !t.XCDR2 {
				want.Representation = nil // both
			}
			r, err := p.NewReader(rtps.ReaderConfig{Topic: topic, Type: typ, QoS: want, UserData: userData(t),
				Handler: func(s rtps.Sample) { q.put(arrival{in, s, lab.Mono()}) }})
			if err != nil {
				return err
			}
			in.reader = r
			inputs = append(inputs, in)
		}
	}
	fmt.Printf("{\"event\":\"ready\",\"mono_ns\":%d}\n", lab.Mono())

	var end <-chan time.Time
	if o.seconds > 0 {
		end = time.After(time.Duration(o.seconds * 1e9))
	}
	tick := time.NewTicker(20 * time.Millisecond) // of looking at every reader, which is not what is measured
	defer tick.Stop()
	known := map[string]bool{}
	var batch []arrival
	total, lastMono, look := uint64(0), int64(0), true
	for ctx.Err() == nil && (o.expect == 0 || total < o.expect) {
		changed := p.Changed()
		if look {
			for _, in := range inputs {
				in.noteChanges()
			}
		}
		look = false
		if o.graph {
			printGraph(p, known)
		}
		batch = q.take(batch)
		for i := range batch {
			a := &batch[i]
			total++
			lastMono = a.mono
			a.in.take(a, log)
			a.sample.Release()
			if o.slow > 0 {
				time.Sleep(o.slow)
			}
		}
		clear(batch)
		if o.idle > 0 && total > 0 && lab.Mono()-lastMono > int64(o.idle*1e9) {
			break
		}
		select {
		case <-ctx.Done():
		case <-end:
			ctx, end = doneContext(), nil
		case <-q.wake:
		case <-changed:
			look = true
		case <-tick.C:
			look = true
		}
	}
	for _, in := range inputs {
		in.report()
	}
	st := p.Stats()
	fmt.Printf("{\"event\":\"done\",\"total\":%d,\"malformed\":%d,\"kernel_drops\":%d,\"recv_buffer\":%d}\n", total, st.Malformed,
		st.KernelDrops, st.RecvBuffer)
	return nil
}

// doneContext is a context that has ended.
func doneContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// take counts a sample and logs it.
func (in *input) take(a *arrival, log *bufio.Writer) {
	data := a.sample.Data
	number := int64(-1)
	if n, err := in.topic.Number(data); err == nil {
		number = int64(n)
	}
	switch {
	case number < 0:
		in.odd++
	case in.last >= 0 && number <= in.last:
		in.disorder++
	default:
		if in.last >= 0 {
			in.gaps += uint64(number - in.last - 1)
		} else {
			in.first = number
		}
		in.last = number
	}
	in.got++
	in.bytes += uint64(len(data))
	if log != nil && len(data) >= 4 {
		fmt.Fprintf(log, "%s %d %d %d %d %x %d %016x\n", in.name, number, a.sample.RecvTime, a.mono, a.sample.SourceTime, data[:4],
			len(data), lab.FNV1a(data[4:]))
	}
}

// noteChanges tells of writers that came, went or do not fit.
func (in *input) noteChanges() {
	st := in.reader.Stats()
	matched := 0
	for _, w := range st.Writers {
		if w.Matched {
			matched++
		}
	}
	if matched != in.matched {
		event := "matched"
		if matched < in.matched {
			event = "unmatched"
		}
		fmt.Printf("{\"event\":%q,\"topic\":%q,\"writers\":%d,\"mono_ns\":%d}\n", event, in.name, matched, lab.Mono())
		in.matched = matched
	}
	if len(st.Mismatches) > in.mismatches {
		fmt.Printf("{\"event\":\"incompatible\",\"topic\":%q,\"reason\":%q}\n", in.name, st.Mismatches[0].Reason)
	}
	in.mismatches = len(st.Mismatches)
}

func (in *input) report() {
	st := in.reader.Stats()
	fmt.Printf("{\"event\":\"topic\",\"topic\":%q,\"got\":%d,\"first\":%d,\"last\":%d,\"gaps\":%d,\"disorder\":%d,\"odd\":%d,\"bytes\":%d,"+
		"\"lost\":%d}\n", in.name, in.got, in.first, in.last, in.gaps, in.disorder, in.odd, in.bytes, st.Lost)
}

// printGraph prints the remote endpoints and participants that were not printed before.
func printGraph(p *rtps.Participant, known map[string]bool) {
	for _, q := range p.Peers() {
		key := fmt.Sprintf("peer %x", q.Prefix)
		if !known[key] {
			known[key] = true
			fmt.Printf("{\"event\":\"peer\",\"prefix\":\"%x\",\"vendor\":\"%x\",\"reachable\":%v,\"reason\":%q,\"locators\":\"%v\",\"mono_ns\":%d}\n",
				q.Prefix, q.Vendor, q.Reachable, q.Reason, q.Locators, lab.Mono())
		}
	}
	for _, e := range p.Endpoints() {
		key := fmt.Sprintf("endpoint %x %v", e.GUID, e.QoS)
		if e.Local || known[key] {
			continue
		}
		known[key] = true
		fmt.Printf("{\"event\":\"endpoint\",\"guid\":\"%x\",\"writer\":%v,\"topic\":%q,\"type\":%q,\"keyed\":%v,\"reliability\":\"%v\",\"durability\":\"%v\","+
			"\"deadline_ms\":%d,\"liveliness\":\"%v\",\"lease_ms\":%d,\"user_data\":%q}\n", e.GUID, e.Writer, e.Topic, e.Type, e.Keyed,
			e.QoS.Reliability, e.QoS.Durability, e.QoS.Deadline.Milliseconds(), e.QoS.Liveliness, e.QoS.LeaseDuration.Milliseconds(), e.UserData)
	}
}
