//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// recordingOf is a kind of recording that is crashed: its name in figures and flags of gobag record.
type recordingOf struct {
	name  string
	flags []string
}

// defaultForm makes recordings of peers that announce no type hash what those of present-day ROS are by default.
var defaultForm = []string{"--compat", "jazzy"}

// checkKill kills recordings in the default format at random moments.
func checkKill(b *bench) error {
	return killRecordings(b, pick(b, 30, 4), recordingOf{"SIGKILL", defaultForm})
}

// killRecordings kills as many recordings of each kind at random moments, the kinds in turn, a few at the same time: they
// mostly sleep.
func killRecordings(b *bench, kills int, kinds ...recordingOf) error {
	if len(kinds) == 0 {
		return nil
	}
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	stop, kill, err := outside(b, n, 1)
	if err != nil {
		return err
	}
	defer kill()
	scratch, err := b.dir("kill")
	if err != nil {
		return err
	}
	var mu sync.Mutex
	crashes := make([][]crash, len(kinds))
	var failed []error
	var lanes sync.WaitGroup
	next := 0
	for range min(2*len(kinds), killLanes) {
		lanes.Go(func() {
			for {
				mu.Lock()
				k := next
				next++
				mu.Unlock()
				if k >= kills*len(kinds) || b.ctx.Err() != nil {
					return
				}
				kind := k % len(kinds)
				c, err := killOne(b, n, filepath.Join(scratch, fmt.Sprint(k)), kinds[kind].flags)
				mu.Lock()
				if err != nil {
					err = fmt.Errorf("%s: %w", kinds[kind].name, err)
				}
				crashes[kind], failed = append(crashes[kind], c), append(failed, err)
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
	examineAll(b, kinds, crashes, arrivals)
	return os.RemoveAll(scratch)
}

const killLanes = 4 // recordings at the same time

// examineAll examines the crashes of each kind, the kinds at the same time, and reports them.
func examineAll(b *bench, kinds []recordingOf, crashes [][]crash, arrivals []lab.Arrival) {
	found := make([]verdicts, len(kinds))
	var wg sync.WaitGroup
	for i := range kinds {
		wg.Go(func() {
			for _, c := range crashes[i] {
				found[i].examine(b, c, arrivals)
			}
		})
	}
	wg.Wait()
	for i := range kinds {
		found[i].report(b, kinds[i].name)
	}
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
func checkPowerCut(b *bench) error {
	return cutRecordings(b, pick(b, 15, 3), recordingOf{"power cut", defaultForm})
}

// cutRecordings records each kind to a disk of its own whose image is copied at random moments, all kinds at the same
// time: once to disks without a cache of their own and once, in files of five seconds, to ones that forget what was not
// flushed; as many cuts of each.
func cutRecordings(b *bench, cuts int, kinds ...recordingOf) error {
	if len(kinds) == 0 {
		return nil
	}
	found := make([]verdicts, len(kinds))
	for _, cache := range []bool{false, true} {
		if err := powerCuts(b, cache, cuts, kinds, found); err != nil {
			return err
		}
	}
	for i := range kinds {
		found[i].report(b, kinds[i].name)
	}
	return nil
}

// powerCuts makes the cuts of all kinds with or without a cache, and examines what is left.
func powerCuts(b *bench, cache bool, cuts int, kinds []recordingOf, found []verdicts) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	images, err := b.dir("images")
	if err != nil {
		return err
	}
	var disks []*lab.Disk
	var recs []*lab.Recording
	for _, kind := range kinds {
		disk, err := lab.NewDisk(lab.DiskOptions{Size: 512 << 20, WriteCache: cache})
		if err != nil {
			return err
		}
		defer disk.Close()
		flags := append([]string{"--min-free-space", "0"}, kind.flags...) // the disk is small
		if cache {
			flags = append(flags, "-d", "5")
		}
		rec, err := b.gobag.Record(n, filepath.Join(disk.Dir, "bag"), steady, flags...)
		if err != nil {
			return err
		}
		defer rec.Kill()
		disks, recs = append(disks, disk), append(recs, rec)
	}
	stop, kill, err := outside(b, n, 1+len(kinds)) // the recorders and the log: all have everything from the first message on
	if err != nil {
		return err
	}
	defer kill()
	crashes := make([][]crash, len(kinds))
	longest := make([]int64, len(kinds))
	failed := make([]error, len(kinds))
	var wg sync.WaitGroup
	for i := range kinds {
		wg.Go(func() {
			crashes[i], longest[i], failed[i] = cutOften(b, disks[i], filepath.Join(images, fmt.Sprint(i)), cuts)
		})
	}
	wg.Wait()
	b.note("write cache %t: a copy of an image took at most %.0f ms", cache, float64(slices.Max(longest))/1e6)
	arrivals, err := stop()
	failed = append(failed, err)
	for _, rec := range recs {
		failed = append(failed, rec.Stop(30*time.Second))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	for i := range kinds {
		for _, c := range crashes[i] {
			dir, unmount, err := lab.MountImage(c.dir)
			if err != nil {
				return err
			}
			found[i].examine(b, crash{dir: filepath.Join(dir, "bag"), at: c.at}, arrivals)
			if err := unmount(); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(images)
}

// cutOften copies a disk's image at random moments to prefix-0, prefix-1 and so on. longest is how long a copy took, ns.
func cutOften(b *bench, disk *lab.Disk, prefix string, cuts int) (crashes []crash, longest int64, err error) {
	for i := range cuts {
		// The copy holds the device up for a moment: the next cut comes when a sync interval has passed without that.
		if err := b.sleep(time.Duration(1500+rand.IntN(2000)) * time.Millisecond); err != nil {
			return nil, 0, err
		}
		image := fmt.Sprintf("%s-%d", prefix, i)
		at, err := disk.Snapshot(image)
		if err != nil {
			return nil, 0, err
		}
		longest = max(longest, lab.Mono()-at)
		crashes = append(crashes, crash{dir: image, at: at})
	}
	return crashes, longest, nil
}
