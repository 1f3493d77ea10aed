//go:build linux

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// checkPlay plays the recorded robot to a Cyclone subscriber while a bare sleep loop follows the same schedule.
func checkPlay(b *bench) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	if b.played == "" {
		if b.played, err = recorderFirst(b, n); err != nil {
			return err
		}
	}
	want, err := lab.Contents(b.played, robot)
	if err != nil {
		return err
	}
	log, err := b.peerLog("play")
	if err != nil {
		return err
	}
	sub, err := n.Subscribe(robot, "--log", log)
	if err != nil {
		return err
	}
	defer sub.Kill()
	bare, err := startBareSleep(n, want)
	if err != nil {
		return err
	}
	defer bare.Kill()
	play, err := b.gobag.Play(n, b.played, "-d", "1", "--wait-for-all-acked", "5000")
	if err != nil {
		return err
	}
	defer play.Kill()
	if err := errors.Join(play.Wait(90*time.Second), bare.Wait(30*time.Second)); err != nil {
		return err
	}
	if err := errors.Join(b.sleep(500*time.Millisecond), sub.Stop(10*time.Second)); err != nil {
		return err
	}
	arrivals, err := lab.ReadArrivals(log)
	if err != nil {
		return err
	}
	late, err := comparePlayed(b, want, arrivals)
	if err != nil {
		return err
	}
	return judgeLateness(b, late, bare.Stdout())
}

// startBareSleep starts a sleep loop with the schedule of the bag.
func startBareSleep(n *lab.Net, bag map[string]*lab.Recorded) (*lab.Proc, error) {
	program, err := lab.Peer("bare_sleep")
	if err != nil {
		return nil, err
	}
	var stamps []int64
	for _, r := range bag {
		stamps = append(stamps, r.Stamps...)
	}
	first := lab.Quantile(stamps, 0)
	var in strings.Builder
	for _, t := range lab.Sorted(stamps) {
		fmt.Fprintf(&in, "%d\n", t-first)
	}
	return n.StartInput(strings.NewReader(in.String()), nil, program)
}

// comparePlayed compares what arrived with the bag and returns how late each sample of a topic was, against the sample of
// the topic that took the least time from its stamp in the bag.
func comparePlayed(b *bench, want map[string]*lab.Recorded, arrivals []lab.Arrival) (map[string][]time.Duration, error) {
	late := map[string][]time.Duration{}
	byTopic := map[string][]lab.Arrival{}
	for _, a := range arrivals {
		byTopic[a.Topic] = append(byTopic[a.Topic], a)
	}
	for _, t := range robot {
		got, rec := byTopic[t.Name], want[t.Name]
		checker := &lab.Checker{Topic: t}
		wrong, bad := 0, 0
		for i, a := range got {
			if i < len(rec.Numbers) && a.Number != rec.Numbers[i] {
				wrong++
			}
			if err := checker.CheckHash(a); err != nil {
				if bad++; bad == 1 {
					b.note("%v", err)
				}
			}
		}
		complete := len(got) == len(rec.Numbers) && wrong == 0
		if t.BestEffort { // may be lost by contract; what arrives is in order
			numbers := make([]int64, len(got))
			for i, a := range got {
				numbers[i] = a.Number
			}
			b.figure(len(got) > 0 && bad == 0 && lab.Sequence(numbers).Disorder == 0, "played, "+t.Name+" (best effort)",
				"in order, bytes equal", "%d of %d", len(got), len(rec.Numbers))
		} else {
			b.figure(complete && bad == 0, "played, "+t.Name, "complete, in order, bytes equal", "%d of %d, %d out of place, %d differ",
				len(got), len(rec.Numbers), wrong, bad)
		}
		if complete && !t.TransientLocal {
			late[t.Name] = lateness(got, rec.Stamps)
		}
	}
	if len(late) == 0 {
		return nil, errors.New("no topic arrived whole: no lateness to measure")
	}
	return late, nil
}

func lateness(got []lab.Arrival, stamps []int64) []time.Duration {
	offsets := make([]int64, len(got))
	for i, a := range got {
		offsets[i] = a.Mono - stamps[i]
	}
	least := lab.Quantile(offsets, 0)
	late := make([]time.Duration, len(got))
	for i := range offsets {
		late[i] = time.Duration(offsets[i] - least)
	}
	return late
}

// judgeLateness compares the samples' lateness with that of the bare sleep loop.
func judgeLateness(b *bench, late map[string][]time.Duration, bareOutput string) error {
	var bare []time.Duration
	for _, line := range strings.Fields(bareOutput) {
		if v, err := strconv.ParseInt(line, 10, 64); err == nil {
			bare = append(bare, time.Duration(v))
		}
	}
	if len(bare) == 0 {
		return errors.New("bare sleep loop printed nothing")
	}
	base := lab.Quantile(bare, 0.99)
	b.note("bare sleep loop on the same schedule: p50 %s, p99 %s, max %s", ms(lab.Quantile(bare, 0.5)), ms(base), ms(lab.Quantile(bare, 1)))
	for _, t := range robot {
		l, ok := late[t.Name]
		if !ok {
			continue
		}
		p99 := lab.Quantile(l, 0.99)
		b.note("%s: lateness p50 %s, p99 %s, max %s", t.Name, ms(lab.Quantile(l, 0.5)), ms(p99), ms(lab.Quantile(l, 1)))
		b.figure(p99-base <= 500*time.Microsecond, "lateness at the subscriber, "+t.Name, "p99 ≤ 0.5 ms above a bare sleep loop",
			"%s above %s", ms(p99-base), ms(base))
	}
	return nil
}
