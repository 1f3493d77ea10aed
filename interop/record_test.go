//go:build linux

package interop_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// robot is one of every kind of topic.
var robot = []lab.Topic{
	{Kind: lab.String, Name: "/chatter", Hz: 50, Hash: stringHash},
	{Kind: lab.String, Name: "/best_effort", Hz: 50, BestEffort: true},
	{Kind: lab.Imu, Name: "/imu", Hz: 500},
	{Kind: lab.Image, Name: "/camera/image", Hz: 10, Size: 1 << 20},
	{Kind: lab.Blob, Name: "/load", Instances: 5, Hz: 20, Size: 5000},
	{Kind: lab.String, Name: "/latched", Count: 10, TransientLocal: true, Depth: 10, Early: true},
}

// The recorder is there first; the publisher comes, and everything it sends is in the bag.
func TestRecorderFirst(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	rec := record(t, n, robot)
	time.Sleep(500 * time.Millisecond)
	pub := publish(t, n, robot, "--seconds", "3", "--wait", "1")
	must(t, pub.Wait(patience))
	must(t, rec.Stop(patience))
	whole(t, rec.Dir, robot, lab.SentBy(pub))
	if text := rec.Stdout() + rec.Stderr(); strings.Contains(text, "\x1b") {
		t.Errorf("escape codes without a terminal: %q", text)
	}
}

// The publisher streams already: from its first sample on nothing is missing, and latched samples are all there.
func TestPublisherFirst(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	pub := publish(t, n, robot, "--seconds", "4")
	_, err := pub.Await("start", 1, patience)
	must(t, err)
	time.Sleep(time.Second)
	rec := record(t, n, robot)
	must(t, pub.Wait(patience))
	must(t, rec.Stop(patience))
	got, err := lab.Contents(rec.Dir, robot)
	must(t, err)
	sent := lab.SentBy(pub)
	for _, topic := range robot {
		for _, name := range topic.Names() {
			r := got[name]
			for _, err := range r.Errors {
				t.Error(err)
			}
			seq := lab.Sequence(r.Numbers)
			if len(r.Numbers) == 0 || seq.Missing > 0 || seq.Disorder > 0 || seq.Last != sent[name].Count-1 {
				t.Errorf("%s: %d sent, the bag has %d: %+v", name, sent[name].Count, len(r.Numbers), seq)
			}
			if topic.TransientLocal && seq.First != 0 {
				t.Errorf("%s: latched samples begin with %d", name, seq.First)
			}
		}
	}
}

// Samples of a best-effort publisher that a reliable one shares a topic with are received too.
func TestMixedReliability(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	reliable := lab.Topic{Kind: lab.Imu, Name: "/imu", Hz: 100, Count: 200}
	effort := reliable
	effort.BestEffort = true
	rec := record(t, n, []lab.Topic{reliable})
	first := publish(t, n, []lab.Topic{reliable}, "--wait", "1")
	_, err := first.Await("start", 1, patience)
	must(t, err)
	second := publish(t, n, []lab.Topic{effort}, "--wait", "1")
	must(t, first.Wait(patience))
	must(t, second.Wait(patience))
	must(t, rec.Stop(patience))
	got, err := lab.Contents(rec.Dir, []lab.Topic{reliable})
	must(t, err)
	times := map[int64]int{}
	for _, k := range got["/imu"].Numbers {
		times[k]++
	}
	for k := range int64(200) {
		if times[k] != 2 {
			t.Fatalf("sample %d is in the bag %d times, want once from each of two publishers", k, times[k])
		}
	}
}

// Both signals end a recording in order, with exit code 0 and a bag that is closed.
func TestStopSignals(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	topics := []lab.Topic{{Kind: lab.String, Name: "/chatter", Hz: 100}}
	publish(t, n, topics)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		rec := record(t, n, topics)
		_, err := lab.FirstOnDisk(rec.Dir, patience)
		must(t, err)
		must(t, rec.Signal(s))
		must(t, rec.Wait(patience)) // exit 0
		info, err := gobag.Info(rec.Dir)
		must(t, err)
		if info.CutOff || info.MessageCount == 0 {
			t.Errorf("after %v: %d messages, warnings %q", s, info.MessageCount, info.Warnings)
		}
	}
}

// A bag that is being recorded opens and grows; after SIGKILL it opens and info says that it was cut off.
func TestKilledBagOpens(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	topics := []lab.Topic{{Kind: lab.String, Name: "/chatter", Hz: 200}, {Kind: lab.Imu, Name: "/imu", Hz: 500}}
	sub, log := subscribe(t, n, topics)
	rec := record(t, n, topics)
	pub := publish(t, n, topics, "--wait", "2")
	_, err := lab.FirstOnDisk(rec.Dir, patience)
	must(t, err)
	time.Sleep(2500 * time.Millisecond)
	killed := lab.Mono()
	rec.Kill()
	must(t, pub.Stop(patience))
	must(t, sub.Stop(patience))
	if _, err := os.Stat(filepath.Join(rec.Dir, "metadata.yaml")); err != nil {
		t.Error(err)
	}
	info, err := gobag.Info(rec.Dir)
	must(t, err)
	if !info.CutOff {
		t.Errorf("info does not say that the bag was cut off: %q", info.Warnings)
	}
	got, err := lab.Contents(rec.Dir, topics)
	must(t, err)
	arrivals, err := lab.ReadArrivals(log)
	must(t, err)
	have := map[string]map[int64]bool{}
	for name, r := range got {
		have[name] = map[int64]bool{}
		for _, k := range r.Numbers {
			have[name][k] = true
		}
		for _, err := range r.Errors {
			t.Error(err)
		}
	}
	for _, a := range arrivals {
		if a.Mono < killed-int64(time.Second) && !have[a.Topic][a.Number] {
			t.Fatalf("%s %d arrived %.3f s before the kill and is not in the bag", a.Topic, a.Number, float64(killed-a.Mono)/1e9)
		}
	}
}

// A topic that never appears: said, exit code 3.
func TestMissingTopic(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	rec := record(t, n, []lab.Topic{{Kind: lab.String, Name: "/never"}}, "--duration", "1")
	if err := rec.Wait(patience); err == nil || rec.ExitCode() != 3 {
		t.Errorf("exit code %d, want 3: %v", rec.ExitCode(), err)
	}
	if text := rec.Stdout() + rec.Stderr(); !strings.Contains(text, "/never") {
		t.Errorf("nothing said of /never: %q", text)
	}
}

// Splits by time: files of the right number, none empty, nothing lost at the seams.
func TestSplit(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 1000},
		{Kind: lab.String, Name: "/latched", Count: 3, TransientLocal: true, Depth: 10, Early: true}}
	rec := record(t, n, topics, "-d", "1")
	pub := publish(t, n, topics, "--seconds", "4", "--wait", "1")
	must(t, pub.Wait(patience))
	must(t, rec.Stop(patience))
	whole(t, rec.Dir, topics, lab.SentBy(pub))
	info, err := gobag.Info(rec.Dir)
	must(t, err)
	if len(info.Files) < 4 || len(info.Files) > 8 {
		t.Errorf("%d files for 4 to 7 s in splits of 1 s", len(info.Files))
	}
}
