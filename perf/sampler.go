package perf

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/gobag/gobag/internal/fsx"
)

// sampler looks at the processes of a cell and at the bag in intervals.
type sampler struct {
	rec, pub *child
	bag      string
	interval time.Duration
	tell     func(part time.Duration, what string)

	end, done chan struct{}
	once      sync.Once
	samples   []sample
}

// sample is what was seen at one moment.
type sample struct {
	at             time.Time
	recCPU, pubCPU float64 // seconds so far
	recRSS, pubRSS int64
	bag            int64
}

// startSampler samples until stop. tell hears of every look.
func startSampler(rec, pub *child, bag string, interval time.Duration, tell func(time.Duration, string)) *sampler {
	s := &sampler{rec: rec, pub: pub, bag: bag, interval: interval, tell: tell, end: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *sampler) run() {
	defer close(s.done)
	began := time.Now()
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	for {
		x := sample{at: time.Now(), bag: fsx.DiskSize(s.bag)}
		x.recCPU, x.recRSS = processUsage(s.rec.cmd.Process.Pid)
		if s.pub != s.rec {
			x.pubCPU, x.pubRSS = processUsage(s.pub.cmd.Process.Pid)
		}
		s.samples = append(s.samples, x)
		s.tell(time.Since(began), fmt.Sprintf("bag %s", shortMB(float64(x.bag))))
		select {
		case <-s.end:
			return
		case <-tick.C:
		}
	}
}

// stop ends the sampling. Idempotent.
func (s *sampler) stop() {
	s.once.Do(func() { close(s.end) })
	<-s.done
}

// points are the samples, by the time since start (wall clock, ns).
func (s *sampler) points(start int64) []Point {
	var ps []Point
	for i, x := range s.samples {
		p := Point{Seconds: thousandths(float64(x.at.UnixNano()-start) / 1e9), RecorderRSS: x.recRSS, PublisherRSS: x.pubRSS, BagBytes: x.bag}
		if i > 0 {
			before := s.samples[i-1]
			if d := x.at.Sub(before.at).Seconds(); d > 0 { // a process that has ended has no time any more
				p.RecorderCPU, p.PublisherCPU = thousandths(max(0, x.recCPU-before.recCPU)/d), thousandths(max(0, x.pubCPU-before.pubCPU)/d)
			}
		}
		ps = append(ps, p)
	}
	return ps
}

// thousandths rounds to three decimals: more is not known, and would fill the files.
func thousandths(v float64) float64 { return math.Round(v*1000) / 1000 }
