//go:build linux

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// slowRate is what the disk of the check takes, in bytes per second.
const slowRate = 30_000_000

// tooMuch is twice that: two cameras beside the small topics of a robot, with histories of two seconds.
var tooMuch = []lab.Topic{
	{Kind: lab.Blob, Name: "/tf", Hz: 200, Size: 600, Depth: 400, BlockMS: 100},
	{Kind: lab.Imu, Name: "/imu", Hz: 500, Depth: 1000, BlockMS: 100},
	{Kind: lab.Blob, Name: "/joint_states", Hz: 100, Size: 400, Depth: 200, BlockMS: 100},
	{Kind: lab.Image, Name: "/camera", Instances: 2, Hz: 30, Size: 1_000_000, Depth: 60, BlockMS: 100},
}

// camera reports whether a topic of tooMuch may lose.
func camera(name string) bool { return strings.HasPrefix(name, "/camera") }

// checkSlowDisk records twice what the disk takes, and has a Cyclone C subscriber write to the same disk for comparison of
// what the publisher feels.
func checkSlowDisk(b *bench) error {
	var ours, theirs [][]time.Duration
	for run := range pick(b, 2, 1) {
		calls, err := slowRun(b, fmt.Sprintf("run %d", run+1), true)
		if err != nil {
			return err
		}
		ours = append(ours, calls)
		if calls, err = slowRun(b, "", false); err != nil {
			return err
		}
		theirs = append(theirs, calls)
		b.note("run %d: gobag %s; Cyclone C subscriber %s", run+1, describe("all topics", ours[run]), describe("all topics", theirs[run]))
	}
	judgeCalls(b, "twice the disk's speed", ours, theirs)
	return nil
}

// slowRun is one receiver on a new slow disk; it returns the publisher's write calls.
func slowRun(b *bench, name string, recorded bool) (_ []time.Duration, err error) {
	n, err := lab.NewNet()
	if err != nil {
		return nil, err
	}
	defer n.Close()
	disk, err := lab.NewDisk(lab.DiskOptions{Size: 6 << 30, Rate: slowRate})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	dir := filepath.Join(disk.Dir, "bag")
	var p *lab.Proc
	if recorded {
		rec, err := b.gobag.Record(n, dir, tooMuch, "--min-free-space", "0")
		if err != nil {
			return nil, err
		}
		p = rec.Proc
	} else if p, err = n.SubscribeAs(lab.Cyclone, tooMuch, "--data", dir); err != nil {
		return nil, err
	}
	defer p.Kill()
	rss := p.WatchRSS()
	log, err := b.peerLog("calls")
	if err != nil {
		return nil, err
	}
	pub, err := n.Publish(tooMuch, "--seconds", pick(b, "60", "15"), "--wait", "1", "--calls", log, "--linger", "5")
	if err != nil {
		return nil, err
	}
	defer pub.Kill()
	if err := errors.Join(pub.Wait(3*time.Minute), b.sleep(500*time.Millisecond)); err != nil {
		return nil, err
	}
	if err := p.Stop(2 * time.Minute); err != nil {
		return nil, err
	}
	if recorded {
		if err := judgeSlow(b, name, dir, lab.SentBy(pub), rss()); err != nil {
			return nil, err
		}
	}
	calls, err := lab.ReadCalls(log)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for _, c := range calls {
		took = append(took, c.Took)
	}
	return took, nil
}

// judgeSlow compares the bag with what was sent.
func judgeSlow(b *bench, name, dir string, sent map[string]lab.Sent, rss int64) error {
	info, err := b.gobag.Info(dir)
	if err != nil {
		return err
	}
	var small, smallSent, images, imagesSent, lost int64
	exact := true
	for _, topic := range lab.Names(tooMuch) {
		t, s := info.Topic(topic), sent[topic].Count
		exact = exact && t.Count+t.Lost.Sum() == s
		if camera(topic) {
			images, imagesSent, lost = images+t.Count, imagesSent+s, lost+t.Lost.Sum()
			continue
		}
		small, smallSent = small+t.Count, smallSent+s
		if t.Count != s {
			b.note("%s: %d of %d, lost by wire %d, queue %d, storage %d", topic, t.Count, s, t.Lost.Wire, t.Lost.Queue, t.Lost.Storage)
		}
	}
	b.figure(small == smallSent && smallSent > 0, name+", small topics", "100 %", "%d of %d", small, smallSent)
	b.figure(lost > 0 && exact, name+", images", "all of the loss; recorded + lost by reason = sent", "%d + %d of %d", images, lost, imagesSent)
	b.figure(rss <= recorderMemory+100<<20, name+", memory", fmt.Sprintf("≤ %d MiB (cache of 100 MiB, the format's buffers, 32 MiB)", recorderMemory>>20+100),
		"%.0f MiB", float64(rss)/(1<<20))
	return nil
}
