//go:build linux

package interop_test

import (
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// A Cyclone publisher, a Fast DDS publisher and gobag's player write to the same topics at the same time; a Cyclone
// subscriber, a Fast DDS subscriber and gobag's recorder read them. All six see each other, and every reader has every
// sample of every writer.
func TestTriangle(t *testing.T) {
	t.Parallel()
	needPeers(t)
	n := newNet(t)
	topics := []lab.Topic{
		{Kind: lab.String, Name: "/chatter", Hz: 100, Count: 200, Hash: stringHash},
		{Kind: lab.Imu, Name: "/imu", Hz: 200, Count: 400},
		{Kind: lab.Image, Name: "/image", Hz: 5, Count: 10, Size: 300_000},
		{Kind: lab.String, Name: "/latched", Count: 3, TransientLocal: true, Depth: 3, Early: true},
	}
	first := record(t, n, topics)
	pub := publish(t, n, topics, "--wait", "1", "--linger", "10")
	must(t, pub.Wait(patience))
	must(t, first.Stop(patience))
	whole(t, first.Dir, topics, lab.SentBy(pub))

	cySub, cyLog := subscribeAs(t, n, lab.Cyclone, topics)
	faSub, faLog := subscribeAs(t, n, lab.FastSHM, topics)
	rec := record(t, n, topics)
	// The publishers are there when the player begins, and have not begun when it does.
	play, err := gobag.Play(n, first.Dir, "--allow-live", "-d", "3", "--wait-for-all-acked", "10000")
	must(t, err)
	t.Cleanup(play.Kill)
	options := []string{"--wait", "3", "--settle", "2500", "--linger", "10"}
	cyPub := publishAs(t, n, lab.Cyclone, topics, options...)
	faPub := publishAs(t, n, lab.FastSHM, topics, options...)
	must(t, cyPub.Wait(patience))
	must(t, faPub.Wait(patience))
	must(t, play.Wait(patience))
	time.Sleep(300 * time.Millisecond)
	must(t, rec.Stop(patience))
	must(t, cySub.Stop(patience))
	must(t, faSub.Stop(patience))

	for reader, log := range map[string]string{"cyclone": cyLog, "fast": faLog} {
		numbers := numbersOf(t, log, topics)
		for _, topic := range topics {
			ofThree(t, reader, topic, numbers[topic.Name])
		}
	}
	got, err := lab.Contents(rec.Dir, topics)
	must(t, err)
	info, err := gobag.Info(rec.Dir)
	must(t, err)
	for _, topic := range topics {
		for _, err := range got[topic.Name].Errors {
			t.Error(err)
		}
		ofThree(t, "gobag", topic, got[topic.Name].Numbers)
		if e := info.Topic(topic.Name); e.Lost != (lab.Lost{}) || e.Count != int64(3*topic.Count) {
			t.Errorf("info says of %s: %+v", topic.Name, e)
		}
	}
}

// ofThree checks that a reader got every number of a topic once from each of three writers.
func ofThree(t *testing.T, reader string, topic lab.Topic, numbers []int64) {
	t.Helper()
	times := map[int64]int{}
	for _, k := range numbers {
		times[k]++
	}
	for k := range int64(topic.Count) {
		// Cyclone 0.10 may throw away the first fragmented sample of a Fast DDS writer: no business of ours.
		least := 3
		if reader == "cyclone" && topic.Kind == lab.Image && k == 0 {
			least = 2
		}
		if times[k] < least || times[k] > 3 {
			t.Errorf("%s: %s has sample %d %d times, want once from each of 3 writers", topic.Name, reader, k, times[k])
		}
	}
	if len(times) != topic.Count {
		t.Errorf("%s: %s has %d different samples, want %d", topic.Name, reader, len(times), topic.Count)
	}
}
