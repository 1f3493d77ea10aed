//go:build linux

package interop_test

import (
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// What was recorded from a Cyclone publisher reaches a Cyclone subscriber whole, in order, with the same bytes; the other
// order of start of subscriber and player serves latched samples.
func TestPlay(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	rec := record(t, n, robot)
	pub := publish(t, n, robot, "--seconds", "3", "--wait", "1")
	must(t, pub.Wait(patience))
	must(t, rec.Stop(patience))
	bag, err := lab.Contents(rec.Dir, robot)
	must(t, err)

	sub, log := subscribe(t, n, robot)
	play, err := gobag.Play(n, rec.Dir, "-d", "1", "--wait-for-all-acked", "5000")
	must(t, err)
	t.Cleanup(play.Kill)
	must(t, play.Wait(patience)) // exit 0
	time.Sleep(300 * time.Millisecond)
	must(t, sub.Stop(patience))
	arrivals, err := lab.ReadArrivals(log)
	must(t, err)
	numbers := map[string][]int64{}
	checkers := map[string]*lab.Checker{}
	for _, topic := range robot {
		for i, name := range topic.Names() {
			checkers[name] = &lab.Checker{Topic: topic, Instance: i}
		}
	}
	for _, a := range arrivals {
		if err := checkers[a.Topic].CheckHash(a); err != nil {
			t.Error(err)
		}
		numbers[a.Topic] = append(numbers[a.Topic], a.Number)
	}
	for name, r := range bag {
		if len(r.Numbers) == 0 {
			t.Errorf("%s: nothing recorded", name)
		}
		if checkers[name].Topic.BestEffort {
			if seq := lab.Sequence(numbers[name]); len(numbers[name]) == 0 || seq.Disorder > 0 {
				t.Errorf("%s: %d of %d played, %+v", name, len(numbers[name]), len(r.Numbers), seq)
			}
			continue
		}
		same := len(r.Numbers) == len(numbers[name])
		for i := 0; same && i < len(r.Numbers); i++ {
			same = r.Numbers[i] == numbers[name][i]
		}
		if !same {
			t.Errorf("%s: the bag has %d messages, the subscriber got %d, not the same in order", name, len(r.Numbers), len(numbers[name]))
		}
	}
}

// A subscriber that comes late gets the latched samples of a bag that is being played.
func TestPlayLatched(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	topics := []lab.Topic{{Kind: lab.String, Name: "/latched", Count: 5, TransientLocal: true, Depth: 5, Early: true},
		{Kind: lab.Imu, Name: "/imu", Hz: 100}}
	rec := record(t, n, topics)
	pub := publish(t, n, topics, "--seconds", "4", "--wait", "1")
	must(t, pub.Wait(patience))
	must(t, rec.Stop(patience))
	play, err := gobag.Play(n, rec.Dir)
	must(t, err)
	t.Cleanup(play.Kill)
	time.Sleep(1500 * time.Millisecond) // the latched samples, first in the bag, are long out
	sub, log := subscribe(t, n, topics[:1], "--expect", "5", "--seconds", "10")
	must(t, sub.Wait(patience))
	must(t, play.Wait(patience))
	arrivals, err := lab.ReadArrivals(log)
	must(t, err)
	if len(arrivals) != 5 {
		t.Fatalf("%d latched samples, want 5", len(arrivals))
	}
	for i, a := range arrivals {
		if a.Number != int64(i) {
			t.Errorf("latched sample %d has number %d", i, a.Number)
		}
	}
}
