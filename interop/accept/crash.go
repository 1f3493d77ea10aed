//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
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

// outside starts a publisher of steady traffic and a subscriber that logs every arrival. stop ends both and reads the log.
func outside(b *bench, n *lab.Net, readers string) (stop func() ([]lab.Arrival, error), kill func(), err error) {
	log, err := b.peerLog("outside")
	if err != nil {
		return nil, nil, err
	}
	sub, err := n.SubscribeAs(b.peer, steady, "--log", log)
	if err != nil {
		return nil, nil, err
	}
	pub, err := n.PublishAs(b.peer, steady, "--wait", readers)
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

// checkKill kills recordings in the default format at random moments.
func checkKill(b *bench) error { return killRecordings(b, "SIGKILL", pick(b, 30, 4)) }

// killRecordings kills as many recordings at random moments, two at a time. flags are of gobag record.
func killRecordings(b *bench, name string, kills int, flags ...string) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	stop, kill, err := outside(b, n, "1")
	if err != nil {
		return err
	}
	defer kill()
	scratch, err := b.dir("kill")
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var crashes []crash
	var failed []error
	var lanes sync.WaitGroup
	left := kills
	for range 2 {
		lanes.Go(func() {
			for {
				mu.Lock()
				k := left
				left--
				mu.Unlock()
				if k <= 0 || b.ctx.Err() != nil {
					return
				}
				c, err := killOne(b, n, filepath.Join(scratch, fmt.Sprint(k)), flags)
				mu.Lock()
				crashes, failed = append(crashes, c), append(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	lanes.Wait()
	arrivals, err := stop()
	if err := errors.Join(append(failed, err)...); err != nil {
		return err
	}
	var v verdicts
	for _, c := range crashes {
		v.examine(b, c, arrivals)
	}
	v.report(b, name)
	return os.RemoveAll(scratch)
}

// killOne records and kills the recorder between 1 and 6 s after its start.
func killOne(b *bench, n *lab.Net, dir string, flags []string) (crash, error) {
	rec, err := b.gobag.Record(n, dir, steady, flags...)
	if err != nil {
		return crash{}, err
	}
	defer rec.Kill()
	if err := b.sleep(time.Duration(1000+rand.IntN(5000)) * time.Millisecond); err != nil {
		return crash{}, err
	}
	if !rec.Running() {
		return crash{}, fmt.Errorf("recorder ended by itself: %w", rec.Wait(0))
	}
	at := lab.Mono()
	rec.Kill()
	return crash{dir: dir, started: rec.Started, at: at}, nil
}

// checkPowerCut cuts the power of recordings in the default format.
func checkPowerCut(b *bench) error { return cutRecordings(b, "power cut", pick(b, 15, 3)) }

// cutRecordings records to a disk whose image is copied at random moments, once to a disk without a cache of its own and
// once, in files of five seconds, to one that forgets what was not flushed; as many cuts of each. more are flags of gobag
// record.
func cutRecordings(b *bench, name string, cuts int, more ...string) error {
	var all verdicts
	for _, cache := range []bool{false, true} {
		if err := powerCuts(b, cache, cuts, &all, more); err != nil {
			return err
		}
	}
	all.report(b, name)
	return nil
}

func powerCuts(b *bench, cache bool, cuts int, v *verdicts, more []string) error {
	disk, err := lab.NewDisk(lab.DiskOptions{Size: 512 << 20, WriteCache: cache})
	if err != nil {
		return err
	}
	defer disk.Close()
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	images, err := b.dir("images")
	if err != nil {
		return err
	}
	flags := append([]string{"--min-free-space", "0"}, more...) // the disk is small
	if cache {
		flags = append(flags, "-d", "5")
	}
	rec, err := b.gobag.Record(n, filepath.Join(disk.Dir, "bag"), steady, flags...)
	if err != nil {
		return err
	}
	defer rec.Kill()
	stop, kill, err := outside(b, n, "2") // the recorder and the log: both have everything from the first message on
	if err != nil {
		return err
	}
	defer kill()
	var crashes []crash
	var longest int64
	for i := range cuts {
		// The copy holds the device up for a moment: the next cut comes when a sync interval has passed without that.
		if err := b.sleep(time.Duration(1500+rand.IntN(2000)) * time.Millisecond); err != nil {
			return err
		}
		image := filepath.Join(images, fmt.Sprint(i))
		at, err := disk.Snapshot(image)
		if err != nil {
			return err
		}
		longest = max(longest, lab.Mono()-at)
		crashes = append(crashes, crash{dir: image, at: at})
	}
	b.note("write cache %t: a copy of the image took at most %.0f ms", cache, float64(longest)/1e6)
	arrivals, err := stop()
	if err := errors.Join(err, rec.Stop(30*time.Second)); err != nil {
		return err
	}
	for _, c := range crashes {
		dir, unmount, err := lab.MountImage(c.dir)
		if err != nil {
			return err
		}
		v.examine(b, crash{dir: filepath.Join(dir, "bag"), at: c.at}, arrivals)
		if err := unmount(); err != nil {
			return err
		}
	}
	return os.RemoveAll(images)
}
