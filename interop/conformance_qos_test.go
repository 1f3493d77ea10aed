//go:build linux

package interop_test

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/rtps/wire"
)

// afterMatch: a volatile subscriber that comes while a reliable publisher sends a thousand samples a second gets every
// sample from the match on, and none of those that the writer has let go before.
func afterMatch(c *cell) {
	n := c.net()
	p, s := c.roles()
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 1000}}
	calls := filepath.Join(c.TempDir(), "calls")
	// A subscriber that is there all the time keeps the history from being empty.
	first, firstLog := c.subscribe(n, c.peer, topics)
	pub := c.publish(n, p, topics, "--wait", "1", "--calls", calls, "--seconds", "3", "--linger", "5")
	_, err := pub.Await("start", 1, patience)
	c.must(err)
	time.Sleep(time.Second)
	began := lab.Mono()
	sub, log := c.subscribe(n, s, topics)
	matched, err := sub.Await("matched", 1, patience)
	c.must(err)
	c.must(pub.Wait(patience))
	time.Sleep(200 * time.Millisecond)
	sent := lab.SentBy(pub)["/imu"].Count
	c.complete(c.end(first, firstLog, topics), lab.SentBy(pub))
	numbers := c.end(sub, log, topics)["/imu"]
	seq := lab.Sequence(numbers)
	if len(numbers) == 0 || seq.Missing > 0 || seq.Disorder > 0 || seq.Last != sent-1 {
		c.Fatalf("%d sent, %d arrived: %+v", sent, len(numbers), seq)
	}
	written, err := lab.ReadCalls(calls)
	c.must(err)
	var atStart, afterMatched int64 // numbers written last before the subscriber began, and first once it was matched for 0.2 s
	for _, w := range written {
		if w.Mono < began {
			atStart = w.Number
		}
		if afterMatched == 0 && w.Mono > matched.Int("mono_ns")+int64(200*time.Millisecond) {
			afterMatched = w.Number
		}
	}
	// gobag takes what a writer still holds because others have not acknowledged it, rather than lose what is written while
	// they match: a fraction of a second at most here.
	held := int64(0)
	if !c.sending {
		held = 200
	}
	if seq.First <= atStart-held {
		c.Errorf("the first sample is %d, but %d was written before the subscriber was started", seq.First, atStart)
	}
	if afterMatched == 0 || seq.First > afterMatched {
		c.Errorf("the first sample is %d, but from %d on the subscriber had been matched", seq.First, afterMatched)
	}
}

// latched is a topic whose last 20 of 50 samples are kept for those who come late.
var latched = []lab.Topic{{Kind: lab.String, Name: "/latched", Count: 50, TransientLocal: true, Depth: 20, Early: true}}

// latchedIn: the last samples of a writer that began earlier arrive within 0.2 s of the match.
func latchedIn(c *cell) {
	n := c.net()
	pub := c.publish(n, c.peer, latched, "--seconds", "60")
	_, err := pub.Await("start", 1, patience)
	c.must(err)
	time.Sleep(500 * time.Millisecond)
	c.tries(3, func() error {
		sub, log := c.subscribe(n, lab.Own, latched, "--expect", "20", "--seconds", "5")
		matched, err := sub.Await("matched", 1, patience)
		if err != nil {
			return err
		}
		if err := sub.Wait(patience); err != nil {
			return err
		}
		if seq := lab.Sequence(numbersOf(c.T, log, latched)["/latched"]); seq != (lab.Run{First: 30, Last: 49}) {
			return fmt.Errorf("samples %+v, want 30 to 49", seq)
		}
		arrivals, err := lab.ReadArrivals(log)
		if err != nil {
			return err
		}
		if after := time.Duration(arrivals[19].Mono - matched.Int("mono_ns")); after > 200*time.Millisecond {
			return fmt.Errorf("the last one arrived %v after the match", after)
		}
		return nil
	})
}

// latchedOut: a subscriber of the peer that comes late gets the writer's depth, in order.
func latchedOut(c *cell) {
	n := c.net()
	pub := c.publish(n, lab.Own, latched, "--seconds", "60")
	_, err := pub.Await("start", 1, patience)
	c.must(err)
	time.Sleep(500 * time.Millisecond)
	sub, log := c.subscribe(n, c.peer, latched, "--expect", "20", "--seconds", "5")
	c.must(sub.Wait(patience))
	if seq := lab.Sequence(numbersOf(c.T, log, latched)["/latched"]); seq != (lab.Run{First: 30, Last: 49}) {
		c.Errorf("samples %+v, want 30 to 49", seq)
	}
}

// pairing is an offer, a request, and whether they fit.
type pairing struct {
	name           string
	offer, request lab.Topic
	fit            bool
}

// pairings are the cells of request against offer (DDS 1.4 §2.2.3).
var pairings = []pairing{
	{"rel_rr", lab.Topic{}, lab.Topic{}, true},
	{"rel_re", lab.Topic{}, lab.Topic{BestEffort: true}, true},
	{"rel_er", lab.Topic{BestEffort: true}, lab.Topic{}, false},
	{"rel_ee", lab.Topic{BestEffort: true}, lab.Topic{BestEffort: true}, true},
	{"dur_tt", lab.Topic{TransientLocal: true}, lab.Topic{TransientLocal: true}, true},
	{"dur_tv", lab.Topic{TransientLocal: true}, lab.Topic{}, true},
	{"dur_vt", lab.Topic{}, lab.Topic{TransientLocal: true}, false},
	{"deadline_shorter", lab.Topic{DeadlineMS: 500}, lab.Topic{DeadlineMS: 1000}, true},
	{"deadline_longer", lab.Topic{DeadlineMS: 1000}, lab.Topic{DeadlineMS: 500}, false},
	{"deadline_none", lab.Topic{}, lab.Topic{DeadlineMS: 500}, false},
	{"deadline_offered", lab.Topic{DeadlineMS: 500}, lab.Topic{}, true},
	{"live_stronger", lab.Topic{Liveliness: "manual_topic", LeaseMS: 1000}, lab.Topic{LeaseMS: 2000}, true},
	{"live_weaker", lab.Topic{LeaseMS: 1000}, lab.Topic{Liveliness: "manual_topic", LeaseMS: 2000}, false},
	{"lease_shorter", lab.Topic{LeaseMS: 1000}, lab.Topic{LeaseMS: 2000}, true},
	{"lease_longer", lab.Topic{LeaseMS: 2000}, lab.Topic{LeaseMS: 1000}, false},
	{"lease_none", lab.Topic{}, lab.Topic{LeaseMS: 1000}, false},
	{"own_both", lab.Topic{Exclusive: true}, lab.Topic{Exclusive: true}, true},
	{"own_offered", lab.Topic{Exclusive: true}, lab.Topic{}, false},
	{"own_requested", lab.Topic{}, lab.Topic{Exclusive: true}, false},
	{"order_offered", lab.Topic{SourceOrder: true}, lab.Topic{}, true},
	{"order_requested", lab.Topic{}, lab.Topic{SourceOrder: true}, false},
	{"latency_shorter", lab.Topic{LatencyMS: 10}, lab.Topic{LatencyMS: 20}, true},
	{"latency_longer", lab.Topic{LatencyMS: 20}, lab.Topic{LatencyMS: 10}, false},
	{"part_same", lab.Topic{Partition: "north"}, lab.Topic{Partition: "north"}, true},
	{"part_other", lab.Topic{Partition: "north"}, lab.Topic{Partition: "south"}, false},
	{"part_pattern", lab.Topic{Partition: "north"}, lab.Topic{Partition: "no*"}, true},
	{"part_default", lab.Topic{Partition: "north"}, lab.Topic{}, false},
}

// requested: data flows in exactly the cells in which the offer satisfies the request.
func requested(c *cell) {
	n := c.net()
	var offers, requests []lab.Topic
	cells := slices.Clone(pairings)
	if c.peer == lab.Fast {
		cells = slices.DeleteFunc(cells, func(x pairing) bool { return x.offer.SourceOrder || x.request.SourceOrder }) // not in Fast DDS 2.9
	}
	for _, x := range cells {
		o, r := x.offer, x.request
		o.Kind, o.Name, o.Hz, o.Depth = lab.String, "/"+x.name, 20, 10
		r.Kind, r.Name, r.Depth = lab.String, "/"+x.name, 10
		offers, requests = append(offers, o), append(requests, r)
	}
	p, s := c.roles()
	sub, log := c.subscribe(n, s, requests)
	pub := c.publish(n, p, offers)
	_, err := pub.Await("start", 1, patience)
	c.must(err)
	time.Sleep(2500 * time.Millisecond)
	pub.Kill()
	numbers := c.end(sub, log, requests)
	for _, x := range cells {
		if got := len(numbers["/"+x.name]); got > 0 != x.fit {
			c.Errorf("%s: %d samples arrived, fit is %v", x.name, got, x.fit)
		}
	}
	c.note("%d cells of offer and request", len(cells))
}

// xcdr2: a writer of XCDR2 is recorded; and a subscriber of XCDR2 reads one of gobag's.
func xcdr2(c *cell) {
	c.only(lab.Cyclone, "Fast DDS 2.9 writes XCDR1 only and does not check the representation")
	n := c.net()
	topics := []lab.Topic{{Kind: lab.String, Name: "/text", Hz: 100, Count: 100, XCDR2: true}}
	if c.sending {
		sub, log := c.subscribe(n, c.peer, topics)
		pub := c.publish(n, lab.Own, topics, "--wait", "1", "--linger", "5")
		c.must(pub.Wait(patience))
		time.Sleep(200 * time.Millisecond)
		c.complete(c.end(sub, log, topics), lab.SentBy(pub))
		return
	}
	rec := record(c.T, n, topics)
	pub := c.publish(n, c.peer, topics, "--wait", "1", "--linger", "5")
	c.must(pub.Wait(patience))
	c.must(rec.Stop(patience))
	whole(c.T, rec.Dir, topics, lab.SentBy(pub))
}

// keyed: topics with a key and topics of another type name do not pair with ours, whatever their name.
func keyed(c *cell) {
	n := c.net()
	const keyedType, ourType = "load_msgs::msg::dds_::Keyed_", "std_msgs::msg::dds_::String_"
	keyed, text := lab.Topic{Kind: lab.Keyed, Name: "/keyed", Hz: 50}, lab.Topic{Kind: lab.String, Name: "/type", Hz: 50}
	good := lab.Topic{Kind: lab.String, Name: "/good", Hz: 50}
	theirs := []lab.Topic{keyed, text, good}
	ours := []lab.Topic{{Kind: lab.String, Name: "/keyed", As: keyedType, Hz: 50}, {Kind: lab.String, Name: "/type", As: "foo::Bar", Hz: 50},
		{Kind: lab.String, Name: "/good", As: ourType, Hz: 50}}
	p, s := c.roles()
	offered, wanted := theirs, ours
	if c.sending {
		offered, wanted = ours, theirs
	}
	sub, _ := c.subscribe(n, s, wanted)
	pub := c.publish(n, p, offered)
	_, err := pub.Await("start", 1, patience)
	c.must(err)
	time.Sleep(1500 * time.Millisecond)
	pub.Kill()
	c.must(sub.Stop(patience))
	for _, e := range sub.Events("topic") {
		if got := e.Int("got"); got > 0 != (e.Text("topic") == "/good") {
			c.Errorf("%s: %d samples", e.Text("topic"), got)
		}
	}
}

// lively: writers with a liveliness lease that write more rarely than it are alive as long as they exist, and not when
// they stand still. Those of the peers are received whatever they offer.
func lively(c *cell) {
	n := c.net()
	p, s := c.roles()
	topics := []lab.Topic{{Kind: lab.String, Name: "/automatic", Hz: 0.7, LeaseMS: 600}, {Kind: lab.String, Name: "/manual", Hz: 0.7,
		LeaseMS: 600, Liveliness: "manual_topic"}}
	if !c.sending {
		for i := range topics {
			topics[i].Hz = 10
		}
		rec := record(c.T, n, topics)
		pub := c.publish(n, p, topics, "--wait", "1", "--seconds", "2", "--linger", "5")
		c.must(pub.Wait(patience))
		c.must(rec.Stop(patience))
		whole(c.T, rec.Dir, topics, lab.SentBy(pub))
		return
	}
	wanted := []lab.Topic{topics[0], topics[1]}
	sub, _ := c.subscribe(n, s, wanted)
	pub := c.publish(n, p, topics, "--wait", "1")
	_, err := pub.Await("start", 1, patience)
	c.must(err)
	time.Sleep(3 * time.Second)
	events := func(name string) map[string]int {
		count := map[string]int{}
		for _, e := range sub.Events(name) {
			count[e.Text("topic")]++
		}
		return count
	}
	alive, lost := events("alive"), events("not_alive")
	for _, t := range topics {
		if alive[t.Name] != 1 || lost[t.Name] != 0 {
			c.Errorf("%s: %d times alive, %d times not, want once alive", t.Name, alive[t.Name], lost[t.Name])
		}
	}
	c.must(pub.Signal(syscall.SIGSTOP))
	time.Sleep(2 * time.Second)
	c.must(pub.Signal(syscall.SIGCONT))
	lost = events("not_alive")
	for _, t := range topics {
		if lost[t.Name] == 0 {
			c.Errorf("%s: alive while the process stood still for 2 s", t.Name)
		}
	}
	time.Sleep(time.Second)
	alive = events("alive")
	for _, t := range topics {
		if alive[t.Name] < 2 {
			c.Errorf("%s: not alive again", t.Name)
		}
	}
}

// adaptive: a topic is recorded whole though its publishers differ and the weaker one comes later.
func adaptive(c *cell) {
	n := c.net()
	strong := lab.Topic{Kind: lab.Imu, Name: "/imu", Hz: 100, Count: 300, TransientLocal: true, Early: true}
	weak := lab.Topic{Kind: lab.Imu, Name: "/imu", Hz: 100, Count: 150, BestEffort: true}
	first := c.publish(n, c.peer, []lab.Topic{strong}, "--seconds", "5", "--linger", "5")
	_, err := first.Await("start", 1, patience)
	c.must(err)
	time.Sleep(500 * time.Millisecond)
	rec := record(c.T, n, []lab.Topic{strong})
	time.Sleep(time.Second)
	other := lab.Cyclone
	if c.peer == lab.Cyclone {
		other = lab.Fast
	}
	pubs := []*lab.Proc{first, c.publish(n, c.peer, []lab.Topic{weak}, "--wait", "1"), c.publish(n, other, []lab.Topic{weak}, "--wait", "1")}
	for _, p := range pubs {
		c.must(p.Wait(patience))
	}
	c.must(rec.Stop(patience))
	got, err := lab.Contents(rec.Dir, []lab.Topic{strong})
	c.must(err)
	times := map[int64]int{}
	for _, k := range got["/imu"].Numbers {
		times[k]++
	}
	for k := range int64(300) {
		want := 1
		if k < 150 {
			want = 3
		}
		if times[k] != want {
			c.Fatalf("sample %d is in the bag %d times, want %d: once from each publisher", k, times[k], want)
		}
	}
	for _, err := range got["/imu"].Errors {
		c.Error(err)
	}
}

// offered: the player offers what was recorded, so that a subscriber that asks for just that is served; where publishers
// differed it offers the default and says so.
func offered(c *cell) {
	n := c.net()
	topics := []lab.Topic{
		{Kind: lab.String, Name: "/reliable", Hz: 50},
		{Kind: lab.String, Name: "/effort", Hz: 50, BestEffort: true},
		{Kind: lab.String, Name: "/latched", Count: 5, TransientLocal: true, Depth: 5, Early: true},
		{Kind: lab.String, Name: "/deadline", Hz: 50, DeadlineMS: 500},
		{Kind: lab.String, Name: "/lively", Hz: 50, LeaseMS: 1000, Liveliness: "manual_topic"},
	}
	mixed := lab.Topic{Kind: lab.String, Name: "/mixed", Hz: 20}
	effort := mixed
	effort.BestEffort = true
	rec := record(c.T, n, append(topics, mixed))
	pubs := []*lab.Proc{c.publish(n, c.peer, append(topics, mixed), "--wait", "1", "--seconds", "2", "--linger", "5"),
		c.publish(n, c.peer, []lab.Topic{effort}, "--wait", "1", "--seconds", "2")}
	for _, p := range pubs {
		c.must(p.Wait(patience))
	}
	c.must(rec.Stop(patience))

	watch, _ := c.subscribe(n, lab.Own, []lab.Topic{{Kind: lab.String, Name: "/nothing"}}, "--graph")
	sub, log := c.subscribe(n, c.peer, append(topics, mixed))
	play, err := gobag.Play(n, rec.Dir, "-d", "1", "--wait-for-all-acked", "5000")
	c.must(err)
	c.Cleanup(play.Kill)
	c.must(play.Wait(patience))
	time.Sleep(200 * time.Millisecond)
	c.must(watch.Stop(patience))
	numbers := c.end(sub, log, append(topics, mixed))
	sent := lab.SentBy(pubs[0])
	for _, t := range topics {
		if seq := lab.Sequence(numbers[t.Name]); len(numbers[t.Name]) == 0 || !t.BestEffort && seq != (lab.Run{First: 0, Last: sent[t.Name].Count - 1}) {
			c.Errorf("%s: %d sent, the subscriber that asks for what was recorded got %d: %+v", t.Name, sent[t.Name].Count, len(numbers[t.Name]), seq)
		}
	}
	if len(numbers["/mixed"]) == 0 {
		c.Error("/mixed: nothing played to a reliable subscriber")
	}
	got := map[string]string{}
	for _, e := range watch.Events("endpoint") {
		if e["writer"] == true {
			got[e.Text("topic")] = fmt.Sprintf("%s, %s, deadline %d ms, %s, lease %d ms", e.Text("reliability"), e.Text("durability"),
				e.Int("deadline_ms"), e.Text("liveliness"), e.Int("lease_ms"))
		}
	}
	want := map[string]string{
		"rt/reliable": "reliable, volatile, deadline 0 ms, automatic, lease 0 ms",
		"rt/effort":   "best effort, volatile, deadline 0 ms, automatic, lease 0 ms",
		"rt/latched":  "reliable, transient local, deadline 0 ms, automatic, lease 0 ms",
		"rt/deadline": "reliable, volatile, deadline 500 ms, automatic, lease 0 ms",
		"rt/lively":   "reliable, volatile, deadline 0 ms, manual by topic, lease 1000 ms",
		"rt/mixed":    "reliable, volatile, deadline 0 ms, automatic, lease 0 ms",
	}
	for name, w := range want {
		if got[name] != w {
			c.Errorf("%s: offered %q, want %q", name, got[name], w)
		}
	}
	if text := play.Stderr() + play.Stdout(); !strings.Contains(text, "/mixed") {
		c.Errorf("no word about /mixed: %q", text)
	}
}

// sentNames: nodes of both generations see gobag's node with its reader, and never a sample that they cannot read.
func sentNames(c *cell) {
	n := c.net()
	watchers := []nodeWatcher{watch(c.T, n, c.peer, 24)}
	rec := record(c.T, n, []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 100}}, "--remote-control", "off")
	c.publish(n, c.peer, []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 100}}, "--node", "/robot/driver:16")
	watchers = append(watchers, watch(c.T, n, c.peer, 16))
	for _, w := range watchers {
		w.see(c.T, "/rosbag2_recorder", &lab.Node{Reads: []string{"rt/imu"}})
	}
	c.must(rec.Stop(patience))
	for _, w := range watchers {
		w.see(c.T, "/rosbag2_recorder", nil)
		w.misread(c.T, hex.EncodeToString(wire.VendorGobag[:])) // our ids begin with it
	}
}

// nodeNames: what the peer says of its nodes on ros_discovery_info is understood with ids of 16 bytes (Iron and later) and of
// 24 (Humble): the player that refuses to play into a live topic names the node.
func nodeNames(c *cell) {
	n := c.net()
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 100}}
	rec := record(c.T, n, topics)
	pub := c.publish(n, c.peer, topics, "--wait", "1", "--seconds", "1", "--linger", "5")
	c.must(pub.Wait(patience))
	c.must(rec.Stop(patience))
	for _, size := range []string{"16", "24"} {
		pub := c.publish(n, c.peer, topics, "--node", "/robot/driver"+size+":"+size)
		_, err := pub.Await("start", 1, patience)
		c.must(err)
		c.tries(3, func() error {
			play, err := gobag.Play(n, rec.Dir)
			if err != nil {
				return err
			}
			defer play.Kill()
			if err := play.Wait(patience); err == nil || !strings.Contains(play.Stderr(), "/robot/driver"+size) {
				return fmt.Errorf("ids of %s bytes: the player says %q, want /robot/driver%s named", size, play.Stderr(), size)
			}
			return nil
		})
		c.must(pub.Stop(patience))
	}
}
