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

// checkPlay plays the recorded robot to a subscriber while a bare sleep loop follows the same schedule.
func checkPlay(b *bench) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	if b.played == "" {
		if b.played, err = recorderFirst(b, n, b.peer); err != nil {
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
	sub, err := n.SubscribeAs(b.peer, robot, "--log", log)
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
	if err := comparePlayed(b, want, arrivals); err != nil {
		return err
	}
	peer, err := peerOnSchedule(b, n)
	if err != nil {
		return err
	}
	return judgeLateness(b, want, arrivals, peer, bare.Stdout())
}

// peerOnSchedule has the vendor's own publisher send the same traffic and returns the arrivals: how late samples are by the
// wire and the subscriber alone, a megabyte image every 33 ms among them.
func peerOnSchedule(b *bench, n *lab.Net) ([]lab.Arrival, error) {
	log, err := b.peerLog("schedule")
	if err != nil {
		return nil, err
	}
	sub, err := n.SubscribeAs(b.peer, robot, "--log", log)
	if err != nil {
		return nil, err
	}
	defer sub.Kill()
	pub, err := n.PublishAs(b.peer, robot, "--seconds", pick(b, "20", "4"), "--wait", "1")
	if err != nil {
		return nil, err
	}
	defer pub.Kill()
	if err := errors.Join(pub.Wait(60*time.Second), sub.Stop(20*time.Second)); err != nil {
		return nil, err
	}
	return lab.ReadArrivals(log)
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

// comparePlayed compares what arrived with the bag.
func comparePlayed(b *bench, want map[string]*lab.Recorded, arrivals []lab.Arrival) error {
	if len(arrivals) == 0 {
		return errors.New("nothing arrived")
	}
	byTopic := group(arrivals)
	for _, t := range robot {
		got, rec := byTopic[t.Name], want[t.Name]
		checker := &lab.Checker{Topic: t}
		wrong, bad := 0, 0
		numbers := make([]int64, len(got))
		for i, a := range got {
			numbers[i] = a.Number
			if i < len(rec.Numbers) && a.Number != rec.Numbers[i] {
				wrong++
			}
			if err := checker.CheckHash(a); err != nil {
				if bad++; bad == 1 {
					b.note("%v", err)
				}
			}
		}
		if t.BestEffort { // may be lost by contract; what arrives is in order
			b.figure(len(got) > 0 && bad == 0 && lab.Sequence(numbers).Disorder == 0, "played, "+t.Name+" (best effort)",
				"in order, bytes equal", "%d of %d", len(got), len(rec.Numbers))
		} else {
			b.figure(len(got) == len(rec.Numbers) && wrong == 0 && bad == 0, "played, "+t.Name, "complete, in order, bytes equal",
				"%d of %d, %d out of place, %d differ", len(got), len(rec.Numbers), wrong, bad)
		}
	}
	return nil
}

func group(arrivals []lab.Arrival) map[string][]lab.Arrival {
	byTopic := map[string][]lab.Arrival{}
	for _, a := range arrivals {
		byTopic[a.Topic] = append(byTopic[a.Topic], a)
	}
	return byTopic
}

// lateness is how far each time lies behind its schedule, the earliest one being on time.
func lateness(times, schedule []int64) []time.Duration {
	offsets := make([]int64, len(times))
	for i := range times {
		offsets[i] = times[i] - schedule[i]
	}
	least := lab.Quantile(offsets, 0)
	late := make([]time.Duration, len(times))
	for i := range offsets {
		late[i] = time.Duration(offsets[i] - least)
	}
	return late
}

// judgeLateness compares when the player sent each sample (its source stamp) with a bare sleep loop on the same schedule,
// and when each arrived with the arrivals from the vendor's own publisher.
func judgeLateness(b *bench, want map[string]*lab.Recorded, played, peer []lab.Arrival, bareOutput string) error {
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

	ours, theirs := group(played), group(peer)
	var sent, due []int64
	var all, peerAll []time.Duration
	for _, t := range robot {
		if t.TransientLocal { // sent at once in the original, too
			continue
		}
		stamp := map[int64]int64{}
		for i, n := range want[t.Name].Numbers {
			stamp[n] = want[t.Name].Stamps[i]
		}
		var arrived, schedule []int64
		for _, a := range ours[t.Name] {
			sent, due = append(sent, a.Source), append(due, stamp[a.Number])
			arrived, schedule = append(arrived, a.Mono), append(schedule, stamp[a.Number])
		}
		var peerArrived, peerSchedule []int64
		for _, a := range theirs[t.Name] {
			peerArrived = append(peerArrived, a.Mono)
			peerSchedule = append(peerSchedule, int64(float64(a.Number)*1e9/t.Hz))
		}
		l, p := lateness(arrived, schedule), lateness(peerArrived, peerSchedule)
		b.note("%s at the subscriber: p50 %s, p99 %s; from a %s publisher p50 %s, p99 %s", t.Name, ms(lab.Quantile(l, 0.5)),
			ms(lab.Quantile(l, 0.99)), vendor(b.peer), ms(lab.Quantile(p, 0.5)), ms(lab.Quantile(p, 0.99)))
		all, peerAll = append(all, l...), append(peerAll, p...)
	}
	late, peerLate := lab.Quantile(all, 0.99), lab.Quantile(peerAll, 0.99)
	b.figure(len(all) > 0 && len(peerAll) > 0 && late <= peerLate+500*time.Microsecond, "lateness at the subscriber, all topics",
		"p99 ≤ 0.5 ms above the same traffic from a "+vendor(b.peer)+" publisher", "%s beside %s", ms(late), ms(peerLate))
	l := lateness(sent, due)
	excess := lab.Quantile(l, 0.99) - base
	b.note("sent by the player: p50 %s, p99 %s, max %s", ms(lab.Quantile(l, 0.5)), ms(lab.Quantile(l, 0.99)), ms(lab.Quantile(l, 1)))
	b.figure(excess <= 500*time.Microsecond, "lateness of the player (source stamps)", "p99 ≤ 0.5 ms above a bare sleep loop", "%s above %s",
		ms(excess), ms(base))
	return nil
}
