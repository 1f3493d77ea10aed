//go:build linux

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// syncInterval is gobag record's default: what a crash may cost.
const syncInterval = int64(time.Second)

// steady is the traffic of the crash checks.
var steady = []lab.Topic{
	{Kind: lab.String, Name: "/chatter", Hz: 100},
	{Kind: lab.Imu, Name: "/imu", Hz: 1000},
	{Kind: lab.Image, Name: "/camera/image", Hz: 10, Size: 64 << 10},
	{Kind: lab.String, Name: "/latched", Count: 5, TransientLocal: true, Depth: 10, Early: true},
}

// latched names the topics whose samples reach a late joiner.
var latched = func() map[string]bool {
	names := map[string]bool{}
	for _, t := range steady {
		names[t.Name] = t.TransientLocal
	}
	return names
}()

// crash is a recording that ended badly.
type crash struct {
	dir     string
	started int64 // monotonic ns, when gobag was started; 0 = before the first message was sent
	at      int64 // monotonic ns of the end
}

// verdicts sums up what crashes left behind.
type verdicts struct {
	n, opened, complete, said, bad int
	worst                          time.Duration // age of the oldest message that is missing
	notes                          []string
}

// examine opens what a crash left in dir and compares it with the outside log of arrivals.
func (v *verdicts) examine(b *bench, c crash, arrivals []lab.Arrival) {
	v.n++
	note := func(format string, args ...any) {
		if len(v.notes) < 20 {
			v.notes = append(v.notes, fmt.Sprintf("crash %d: ", v.n)+fmt.Sprintf(format, args...))
		}
	}
	info, err := b.gobag.Info(c.dir)
	if err != nil {
		note("%v", err)
		return
	}
	got, err := lab.Contents(c.dir, steady)
	if err != nil {
		note("%v", err)
		return
	}
	v.opened++
	if info.CutOff {
		v.said++
	} else {
		note("info says nothing of a cut: %q", info.Warnings)
	}
	oldest := int64(0)
	missing := 0
	have := map[string]map[int64]bool{}
	from := map[string]int64{}
	for name, r := range got {
		v.bad += r.Bad
		have[name] = map[int64]bool{}
		from[name] = -1
		for _, n := range r.Numbers {
			have[name][n] = true
			if from[name] < 0 || n < from[name] {
				from[name] = n
			}
		}
	}
	for _, a := range arrivals {
		arrived := a.Mono
		// A recorder that joined a running stream is held to what came after its first sample, to having one a second
		// after its start, and latched samples then too.
		if joined := c.started + int64(time.Second); c.started > 0 {
			if latched[a.Topic] {
				arrived = max(arrived, joined)
			} else if from[a.Topic] < 0 && arrived < joined || a.Number < from[a.Topic] {
				continue
			}
		}
		if arrived >= c.at || have[a.Topic][a.Number] {
			continue
		}
		oldest = max(oldest, c.at-arrived)
		if c.at-arrived > syncInterval {
			missing++
		}
	}
	v.worst = max(v.worst, time.Duration(oldest))
	if missing == 0 {
		v.complete++
	} else {
		note("%d messages older than %v are missing, the oldest %.3f s before the end", missing, time.Duration(syncInterval), float64(oldest)/1e9)
	}
}

func (v *verdicts) report(b *bench, name string) {
	for _, n := range v.notes {
		b.note("%s", n)
	}
	b.figure(v.opened == v.n, name+", the bag opens", "every time", "%d of %d", v.opened, v.n)
	b.figure(v.complete == v.n, name+", older than one sync interval", "all there, by the outside log", "%d of %d; oldest missing %.3f s before the end",
		v.complete, v.n, v.worst.Seconds())
	b.figure(v.said == v.n, name+", info says it was cut off", "every time", "%d of %d", v.said, v.n)
	b.figure(v.bad == 0, name+", payloads", "every byte as published", "%d differ", v.bad)
}

// outside starts a publisher of steady traffic, which waits for so many readers, and a subscriber that logs every arrival. stop ends both and reads the log.
func outside(b *bench, n *lab.Net, readers int) (stop func() ([]lab.Arrival, error), kill func(), err error) {
	log, err := b.peerLog("outside")
	if err != nil {
		return nil, nil, err
	}
	sub, err := n.SubscribeAs(b.peer, steady, "--log", log)
	if err != nil {
		return nil, nil, err
	}
	pub, err := n.PublishAs(b.peer, steady, "--wait", fmt.Sprint(readers))
	if err != nil {
		sub.Kill()
		return nil, nil, err
	}
	kill = func() { pub.Kill(); sub.Kill() }
	if _, err := pub.Await("start", 1, 20*time.Second); err != nil {
		kill()
		return nil, nil, err
	}
	return func() ([]lab.Arrival, error) {
		if err := errors.Join(pub.Stop(20*time.Second), sub.Stop(20*time.Second)); err != nil {
			return nil, err
		}
		return lab.ReadArrivals(log)
	}, kill, nil
}
