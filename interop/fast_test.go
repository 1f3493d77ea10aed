//go:build linux

package interop_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// fastRobot is one of every kind of topic, at the rates of the main job.
var fastRobot = []lab.Topic{
	{Kind: lab.String, Name: "/chatter", Hz: 50, Hash: stringHash},
	{Kind: lab.String, Name: "/best_effort", Hz: 50, BestEffort: true},
	{Kind: lab.Imu, Name: "/imu", Hz: 1000},
	{Kind: lab.Image, Name: "/camera/image", Hz: 30, Size: 1 << 20},
	{Kind: lab.String, Name: "/latched", Count: 10, TransientLocal: true, Depth: 10, Early: true},
}

// needPeers skips the test where the peers of both vendors are not built.
func needPeers(t *testing.T) {
	t.Helper()
	for _, peer := range []string{"cy_pub", "fa_pub"} {
		_, err := lab.Peer(peer)
		needs(t, err)
	}
}

// publishAs starts a publisher of a vendor.
func publishAs(t *testing.T, n *lab.Net, v lab.Vendor, topics []lab.Topic, options ...string) *lab.Proc {
	t.Helper()
	p, err := n.PublishAs(v, topics, options...)
	must(t, err)
	t.Cleanup(p.Kill)
	return p
}

// subscribeAs starts a subscriber of a vendor with a log of arrivals.
func subscribeAs(t *testing.T, n *lab.Net, v lab.Vendor, topics []lab.Topic, options ...string) (p *lab.Proc, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "arrivals")
	p, err := n.SubscribeAs(v, topics, append(options, "--log", log)...)
	must(t, err)
	t.Cleanup(p.Kill)
	return p, log
}

// fastTransports are the ways in which Fast DDS is set up.
var fastTransports = []lab.Vendor{lab.Fast, lab.FastSHM}

// eachTransport runs a test with Fast DDS over UDP only and over its default transports.
func eachTransport(t *testing.T, test func(t *testing.T, n *lab.Net, v lab.Vendor)) {
	t.Parallel()
	needPeers(t)
	for _, v := range fastTransports {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			test(t, newNet(t), v)
		})
	}
}

// numbersOf reads a subscriber's log: the running numbers of each topic in the order of arrival, every payload compared
// with what was published.
func numbersOf(t *testing.T, log string, topics []lab.Topic) map[string][]int64 {
	t.Helper()
	arrivals, err := lab.ReadArrivals(log)
	must(t, err)
	checkers := map[string]*lab.Checker{}
	for _, topic := range topics {
		for i, name := range topic.Names() {
			checkers[name] = &lab.Checker{Topic: topic, Instance: i}
		}
	}
	numbers := map[string][]int64{}
	for _, a := range arrivals {
		if err := checkers[a.Topic].CheckHash(a); err != nil {
			t.Error(err)
		}
		numbers[a.Topic] = append(numbers[a.Topic], a.Number)
	}
	return numbers
}

// The recorder is there first; a Fast DDS publisher comes, and everything it sends is in the bag.
func TestFastRecorderFirst(t *testing.T) {
	eachTransport(t, func(t *testing.T, n *lab.Net, v lab.Vendor) {
		rec := record(t, n, fastRobot)
		time.Sleep(500 * time.Millisecond)
		pub := publishAs(t, n, v, fastRobot, "--seconds", "3", "--wait", "1")
		must(t, pub.Wait(patience))
		must(t, rec.Stop(patience))
		whole(t, rec.Dir, fastRobot, lab.SentBy(pub))
	})
}

// A Fast DDS publisher streams already: from its first sample on nothing is missing, and latched samples are all there.
func TestFastPublisherFirst(t *testing.T) {
	eachTransport(t, func(t *testing.T, n *lab.Net, v lab.Vendor) {
		pub := publishAs(t, n, v, fastRobot, "--seconds", "4")
		_, err := pub.Await("start", 1, patience)
		must(t, err)
		time.Sleep(time.Second)
		rec := record(t, n, fastRobot)
		must(t, pub.Wait(patience))
		must(t, rec.Stop(patience))
		got, err := lab.Contents(rec.Dir, fastRobot)
		must(t, err)
		sent := lab.SentBy(pub)
		for _, topic := range fastRobot {
			r := got[topic.Name]
			for _, err := range r.Errors {
				t.Error(err)
			}
			seq := lab.Sequence(r.Numbers)
			if len(r.Numbers) == 0 || seq.Missing > 0 || seq.Disorder > 0 || seq.Last != sent[topic.Name].Count-1 {
				t.Errorf("%s: %d sent, the bag has %d: %+v", topic.Name, sent[topic.Name].Count, len(r.Numbers), seq)
			}
			if topic.TransientLocal && seq.First != 0 {
				t.Errorf("%s: latched samples begin with %d", topic.Name, seq.First)
			}
		}
	})
}

// What was recorded from a Fast DDS publisher reaches a Fast DDS subscriber whole, in order, with the same bytes. Its
// best-effort samples may be lost on the way to it, but never come twice or out of order.
func TestFastPlay(t *testing.T) {
	eachTransport(t, func(t *testing.T, n *lab.Net, v lab.Vendor) {
		rec := record(t, n, fastRobot)
		pub := publishAs(t, n, v, fastRobot, "--seconds", "3", "--wait", "1")
		must(t, pub.Wait(patience))
		must(t, rec.Stop(patience))
		bag, err := lab.Contents(rec.Dir, fastRobot)
		must(t, err)

		sub, log := subscribeAs(t, n, v, fastRobot)
		play, err := gobag.Play(n, rec.Dir, "-d", "1", "--wait-for-all-acked", "5000")
		must(t, err)
		t.Cleanup(play.Kill)
		must(t, play.Wait(patience))
		time.Sleep(300 * time.Millisecond)
		must(t, sub.Stop(patience))
		numbers := numbersOf(t, log, fastRobot)
		for _, topic := range fastRobot {
			have, want := numbers[topic.Name], bag[topic.Name].Numbers
			seq := lab.Sequence(have)
			if topic.BestEffort {
				if len(have) == 0 || seq.Disorder > 0 {
					t.Errorf("%s: %d of %d played, %+v", topic.Name, len(have), len(want), seq)
				}
			} else if len(want) == 0 || len(have) != len(want) || seq.Missing > 0 || seq.Disorder > 0 {
				t.Errorf("%s: the bag has %d messages, the subscriber got %d: %+v", topic.Name, len(want), len(have), seq)
			}
		}
	})
}

// Latched samples of a bag being played reach a Fast DDS subscriber that comes late.
func TestFastPlayLatched(t *testing.T) {
	eachTransport(t, func(t *testing.T, n *lab.Net, v lab.Vendor) {
		topics := []lab.Topic{{Kind: lab.String, Name: "/latched", Count: 5, TransientLocal: true, Depth: 5, Early: true},
			{Kind: lab.Imu, Name: "/imu", Hz: 100}}
		rec := record(t, n, topics)
		pub := publishAs(t, n, v, topics, "--seconds", "4", "--wait", "1")
		must(t, pub.Wait(patience))
		must(t, rec.Stop(patience))
		play, err := gobag.Play(n, rec.Dir)
		must(t, err)
		t.Cleanup(play.Kill)
		time.Sleep(1500 * time.Millisecond)
		sub, log := subscribeAs(t, n, v, topics[:1], "--expect", "5", "--seconds", "10")
		must(t, sub.Wait(patience))
		must(t, play.Wait(patience))
		if seq := lab.Sequence(numbersOf(t, log, topics)["/latched"]); seq != (lab.Run{First: 0, Last: 4}) {
			t.Errorf("latched samples: %+v, want 0 to 4", seq)
		}
	})
}

// A recorder needs nothing of the shared memory that Fast DDS peers on its host use among themselves.
func TestFastSharedMemoryIsNotOurs(t *testing.T) {
	t.Parallel()
	needPeers(t)
	n := newNet(t)
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 200}}
	sub, log := subscribeAs(t, n, lab.FastSHM, topics)
	rec := record(t, n, topics)
	pub := publishAs(t, n, lab.FastSHM, topics, "--seconds", "2", "--wait", "2")
	_, err := pub.Await("start", 1, patience)
	must(t, err)
	maps := func(pid int) string {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "maps"))
		must(t, err)
		return string(b)
	}
	if !strings.Contains(maps(pub.Pid()), "/dev/shm/fastrtps_") {
		t.Error("the publisher has no shared memory: this test shows nothing")
	}
	if strings.Contains(maps(rec.Pid()), "/dev/shm/") {
		t.Error("the recorder has mapped shared memory")
	}
	must(t, pub.Wait(patience))
	must(t, rec.Stop(patience))
	must(t, sub.Stop(patience))
	whole(t, rec.Dir, topics, lab.SentBy(pub))
	if seq := lab.Sequence(numbersOf(t, log, topics)["/imu"]); seq.Missing > 0 {
		t.Errorf("the subscriber beside the recorder: %+v", seq)
	}
}
