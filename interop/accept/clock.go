//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros/ros2"
)

// The steps of the wall clock in the clock check.
const (
	stepBack    = -time.Hour
	stepForward = 50 * 365 * 24 * time.Hour
)

// timed is the traffic of the clock check.
var timed = []lab.Topic{
	{Kind: lab.String, Name: "/chatter", Hz: 100},
	{Kind: lab.Imu, Name: "/imu", Hz: 1000},
}

// checkClock records with a clock of its own, which jumps, into a bag that splits by time and size.
func checkClock(b *bench) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	scratch, err := b.dir("clock")
	if err != nil {
		return err
	}
	dir := filepath.Join(scratch, "bag")
	const seconds = 12
	rec, err := startChild(n, "clock-child", "-dir", dir, "-domain", strconv.Itoa(n.Domain), "-seconds", strconv.Itoa(seconds+3))
	if err != nil {
		return err
	}
	defer rec.Kill()
	pub, err := n.PublishAs(b.peer, timed, "--seconds", strconv.Itoa(seconds), "--wait", "1")
	if err != nil {
		return err
	}
	defer pub.Kill()
	if err := errors.Join(pub.Wait(60*time.Second), rec.Wait(60*time.Second)); err != nil {
		return err
	}
	got, err := lab.Contents(dir, timed)
	if err != nil {
		return err
	}
	var sent, recorded, bad int64
	whole := true
	for name, s := range lab.SentBy(pub) {
		r := got[name]
		sent, recorded, bad = sent+s.Count, recorded+int64(len(r.Numbers)), bad+int64(r.Bad)
		// The bag is ordered by stamp, and an hour comes twice: the set counts, not the order.
		seen := map[int64]bool{}
		for _, n := range r.Numbers {
			seen[n] = true
		}
		whole = whole && int64(len(seen)) == s.Count && len(r.Numbers) == len(seen)
	}
	b.figure(whole && bad == 0, "clock stepped, messages", "none lost", "%d of %d, %d differ", recorded, sent, bad)
	return clockBag(b, dir)
}

// clockBag looks at the files and the steps in the bag.
func clockBag(b *bench, dir string) error {
	info, err := b.gobag.Info(dir)
	if err != nil {
		return err
	}
	empty := 0
	for _, f := range info.Files {
		if f.Messages == 0 {
			empty++
		}
	}
	// The recording lasts 15 s and splits every 2 s of real time; no split is owed to a step.
	b.figure(empty == 0 && len(info.Files) >= 6 && len(info.Files) <= 9, "clock stepped, splits",
		"none empty, one every 2 s of real time", "%d files, %d empty", len(info.Files), empty)
	near := func(s lab.ClockStep, want time.Duration) bool {
		d := time.Duration(s.After-s.Before) - want
		return d > -200*time.Millisecond && d < 200*time.Millisecond
	}
	ok := len(info.ClockSteps) == 2 && near(info.ClockSteps[0], stepBack) && near(info.ClockSteps[1], stepForward)
	text := ""
	for _, s := range info.ClockSteps {
		text += fmt.Sprintf(" %+.1f h at %.1f s", time.Duration(s.After-s.Before).Hours(), time.Duration(s.Monotonic).Seconds())
	}
	b.figure(ok, "clock stepped, steps in the bag", "−1 h and + 50 years", "%d:%s", len(info.ClockSteps), text)
	return nil
}

// clockChild records for some seconds; at a third of them the clock goes back, at two thirds forward.
func clockChild(args []string) (err error) {
	flags := flag.NewFlagSet("clock-child", flag.ContinueOnError)
	dir := flags.String("dir", "", "bag to write")
	domain := flags.Int("domain", 0, "domain")
	seconds := flags.Int("seconds", 15, "length")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var shift atomic.Int64
	now := func() int64 { return time.Now().UnixNano() + shift.Load() }
	node, err := ros2.New(ros2.Options{Domain: *domain, Now: now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	rec, err := recorder.New(recorder.Options{Node: node, Output: *dir, Topics: lab.Names(timed), MaxBagDuration: 2 * time.Second,
		MaxBagSize: 200 << 20, Duration: time.Duration(*seconds) * time.Second, Now: now})
	if err != nil {
		return err
	}
	third := time.Duration(*seconds) * time.Second / 3
	time.AfterFunc(third, func() { shift.Store(int64(stepBack)) })
	time.AfterFunc(2*third, func() { shift.Store(int64(stepBack + stepForward)) })
	_, err = rec.Run(context.Background())
	return err
}
