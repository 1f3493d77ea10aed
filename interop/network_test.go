//go:build linux

package interop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// A publisher that loses 5 % of its datagrams on the way out: reliable topics are recorded whole, of best-effort ones the
// losses are counted exactly between the first and the last sample seen.
func TestLossyWire(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	plain := n.CycloneURI
	n.CycloneURI = strings.Replace(plain, "</General>", "</General><Internal><Test><XmitLossiness>50</XmitLossiness></Test></Internal>", 1)
	reliable := []lab.Topic{
		{Kind: lab.Imu, Name: "/imu", Hz: 200},
		{Kind: lab.Image, Name: "/image", Hz: 5, Size: 200_000},
		{Kind: lab.String, Name: "/latched", Count: 5, TransientLocal: true, Depth: 5, Early: true},
	}
	effort := lab.Topic{Kind: lab.Imu, Name: "/best_effort", Hz: 500, BestEffort: true}
	topics := append([]lab.Topic{effort}, reliable...)
	rec := record(t, n, topics)
	pub := publish(t, n, topics, "--seconds", "4", "--wait", "1", "--linger", "10")
	must(t, pub.Wait(patience))
	must(t, rec.Stop(patience))
	got, err := lab.Contents(rec.Dir, topics)
	must(t, err)
	sent := lab.SentBy(pub)
	for _, topic := range reliable {
		if seq := lab.Sequence(got[topic.Name].Numbers); seq != (lab.Run{First: 0, Last: sent[topic.Name].Count - 1}) {
			t.Errorf("%s: %d sent, the bag has %+v", topic.Name, sent[topic.Name].Count, seq)
		}
	}
	info, err := gobag.Info(rec.Dir)
	must(t, err)
	r, lost := got[effort.Name], info.Topic(effort.Name).Lost
	seq := lab.Sequence(r.Numbers)
	if seq.Missing == 0 {
		t.Errorf("nothing was lost of %d best-effort samples: the loss does not work", len(r.Numbers))
	}
	if lost != (lab.Lost{Wire: seq.Missing}) {
		t.Errorf("%s: %d samples are missing between %d and %d, info says %+v", effort.Name, seq.Missing, seq.First, seq.Last, lost)
	}
	for name, r := range got {
		for _, err := range r.Errors {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A network without multicast, as ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST makes it: found by unicast, both orders.
func TestWithoutMulticast(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	n.CycloneURI = `<CycloneDDS><Domain id="any"><General><Interfaces><NetworkInterface name="lo"/></Interfaces>` +
		`<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>` +
		`<MaxAutoParticipantIndex>32</MaxAutoParticipantIndex><Peers><Peer address="localhost"/></Peers></Discovery></Domain></CycloneDDS>`
	topics := []lab.Topic{{Kind: lab.String, Name: "/chatter", Hz: 100}}
	start := func(name string) *lab.Recording {
		rec, err := gobag.RecordEnv(n, []string{"ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST", "CYCLONEDDS_URI="}, t.TempDir()+"/"+name, topics)
		must(t, err)
		t.Cleanup(rec.Kill)
		return rec
	}
	first := start("first")
	time.Sleep(300 * time.Millisecond)
	pub := publish(t, n, topics, "--seconds", "4", "--wait", "1")
	_, err := pub.Await("start", 1, patience)
	must(t, err)
	late := start("late")
	must(t, pub.Wait(patience))
	must(t, first.Stop(patience))
	must(t, late.Stop(patience))
	whole(t, first.Dir, topics, lab.SentBy(pub))
	got, err := lab.Contents(late.Dir, topics)
	must(t, err)
	if seq := lab.Sequence(got["/chatter"].Numbers); len(got["/chatter"].Numbers) == 0 || seq.Missing > 0 ||
		seq.Last != lab.SentBy(pub)["/chatter"].Count-1 {
		t.Errorf("late recorder: %+v", seq)
	}
}

// record -a takes what is there and what comes, and the publisher's QoS goes into the bag.
func TestRecordAll(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	early := []lab.Topic{{Kind: lab.String, Name: "/early", Hz: 100}}
	late := []lab.Topic{{Kind: lab.Imu, Name: "/late", Hz: 100, Depth: 7}, {Kind: lab.String, Name: "/best_effort", Hz: 50, BestEffort: true, Depth: 5},
		{Kind: lab.String, Name: "/latched", Count: 3, TransientLocal: true, Depth: 3, Early: true},
		{Kind: lab.String, Name: "/_hidden", Hz: 10}}
	first := publish(t, n, early, "--seconds", "5")
	_, err := first.Await("start", 1, patience)
	must(t, err)
	rec, err := gobag.RecordAll(n, t.TempDir()+"/bag")
	must(t, err)
	t.Cleanup(rec.Kill)
	time.Sleep(time.Second)
	second := publish(t, n, late, "--seconds", "2")
	must(t, second.Wait(patience))
	must(t, first.Wait(patience))
	must(t, rec.Stop(patience))
	info, err := gobag.Info(rec.Dir)
	must(t, err)
	names := map[string]bool{}
	for _, topic := range info.Topics {
		names[topic.Name] = true
		if topic.Count == 0 {
			t.Errorf("%s: no message", topic.Name)
		}
	}
	if len(names) != 4 || !names["/early"] || !names["/late"] || !names["/best_effort"] || !names["/latched"] {
		t.Errorf("recorded %v", names)
	}
	want := map[string][3]string{"/early": {"reliable", "volatile", "keep_all"}, "/late": {"reliable", "volatile", "keep_last"},
		"/best_effort": {"best_effort", "volatile", "keep_last"}, "/latched": {"reliable", "transient_local", "keep_last"}}
	for name, w := range want {
		q := info.Topic(name).QoS
		if len(q) != 1 || q[0].Reliability != w[0] || q[0].Durability != w[1] || q[0].History != w[2] {
			t.Errorf("%s: offered QoS %+v, want %v", name, q, w)
		}
	}
}
