package ros2_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros2"
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

const str = "std_msgs/msg/String"

// newPeer makes a participant that knows nothing of ROS.
func newPeer(t *testing.T, domain int) *rtps.Participant {
	t.Helper()
	p, err := rtps.NewParticipant(rtps.Config{Domain: domain, Range: rtps.RangeLocalhost, Interfaces: []string{"127.0.0.1"}, Name: "peer",
		UserData: []byte("enclave=/secret;")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

func newWriter(t *testing.T, p *rtps.Participant, topic, typ string, q rtps.QoS) *rtps.Writer {
	t.Helper()
	w, err := p.NewWriter(rtps.WriterConfig{Topic: topic, Type: typ, QoS: q})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// eventually waits until ok returns "".
func eventually(t *testing.T, ok func() string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		problem := ok()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(problem)
		}
	}
}

func topicOf(n ros.Node, name string) (info ros.TopicInfo) {
	for _, i := range n.Graph().Topics() {
		if i.Name == name {
			info = i
		}
	}
	return info
}

// What others see of a subscription that follows its publishers: one reader for each kind of publisher there is, none
// more.
func TestReadersFollowPublishers(t *testing.T) {
	node, other := newNode(t, local(225)), newNode(t, local(225))
	best, latched := ros.DefaultQoS(), ros.DefaultQoS()
	best.Reliability, latched.Durability = ros.BestEffort, ros.TransientLocal
	topic := ros.Topic{Name: "/follow", Type: str}
	sub, err := node.Subscribe(topic, ros.BestAvailableQoS(), func(s ros.Sample) { s.Release() })
	if err != nil {
		t.Fatal(err)
	}
	readers := func(want ...string) {
		t.Helper()
		eventually(t, func() string {
			var got []string
			for _, e := range topicOf(other, topic.Name).Subscriptions {
				got = append(got, fmt.Sprintf("%v %v", e.QoS.Reliability, e.QoS.Durability))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				return fmt.Sprintf("readers are %q, want %q", got, want)
			}
			return ""
		})
	}
	const reliable, latchedReader, bestEffort = "reliable volatile", "reliable transient_local", "best_effort volatile"
	advertise := func(q ros.QoS) ros.Publisher {
		p, err := other.Advertise(topic, q)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	readers(reliable)
	l := advertise(latched)
	readers(latchedReader)
	b := advertise(best)
	readers(bestEffort, latchedReader)
	r := advertise(ros.DefaultQoS())
	readers(bestEffort, latchedReader, reliable)
	l.Close()
	readers(bestEffort, reliable)
	r.Close()
	readers(bestEffort)
	b.Close()
	eventually(t, func() string {
		if n := len(topicOf(node, topic.Name).Publishers); n != 0 {
			return fmt.Sprintf("%d publishers left", n)
		}
		return ""
	})
	time.Sleep(50 * time.Millisecond)
	readers(bestEffort) // nothing is known that would need another
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	readers()
}

// A reader that is added later carries the hash of the publisher it is for.
func TestHashOfLaterReaders(t *testing.T) {
	const hash = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
	node, other := newNode(t, local(226)), newNode(t, local(226))
	sub, err := node.Subscribe(ros.Topic{Name: "/hash", Type: str}, ros.BestAvailableQoS(), func(s ros.Sample) { s.Release() })
	if err != nil {
		t.Fatal(err)
	}
	latched := ros.DefaultQoS()
	latched.Durability = ros.TransientLocal
	if _, err := other.Advertise(ros.Topic{Name: "/hash", Type: str, TypeHash: hash}, latched); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		for _, e := range topicOf(other, "/hash").Subscriptions {
			if e.Topic.TypeHash == hash {
				return ""
			}
		}
		return "no subscription carries the hash"
	})
	if got := sub.Topic().TypeHash; got != hash {
		t.Errorf("the subscription's hash is %q", got)
	}
}

// Endpoints that are not ROS's are not topics; node names come from ros_discovery_info in both of its forms.
func TestForeignEndpointsAndNodeNames(t *testing.T) {
	node, peer := newNode(t, local(227)), newPeer(t, 227)
	newWriter(t, peer, "Square", "ShapeType", rtps.QoS{})
	newWriter(t, peer, "rt/no_ros_type", "ShapeType", rtps.QoS{})
	newWriter(t, peer, "rq/serviceRequest", "a::srv::dds_::S_Request_", rtps.QoS{})
	talker := newWriter(t, peer, "rt/chatter", "std_msgs::msg::dds_::String_", rtps.QoS{})
	info := newWriter(t, peer, "ros_discovery_info", "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_",
		rtps.QoS{Reliability: rtps.Reliable, Durability: rtps.TransientLocal, Depth: 1})
	eventually(t, func() string {
		if topics := node.Graph().Topics(); len(topics) != 1 || topics[0].Name != "/chatter" {
			return fmt.Sprintf("topics are %+v", topics)
		}
		return ""
	})
	for name, size := range map[string]int{"talker_iron": 16, "talker_humble": 24} {
		changed := node.Graph().Changed()
		if _, err := info.Write(discoveryInfo(size, peer.GUID(), "/robot", name, talker.GUID()), 1); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() string {
			if got := topicOf(node, "/chatter").Publishers[0].Node; got != "/robot/"+name {
				return fmt.Sprintf("the publisher's node is %q", got)
			}
			return ""
		})
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
			t.Error("a node's name is no change of the graph")
		}
		if peers := node.Peers(); len(peers) != 1 || !slices.Equal(peers[0].Nodes, []string{"/robot/" + name}) {
			t.Errorf("peers are %+v", peers)
		}
	}
	p := node.Peers()[0]
	if p.Vendor != "gobag" || p.Name != "peer" || p.Enclave != "/secret" || !p.Reachable || p.Reason != "" || len(p.Addresses) == 0 {
		t.Errorf("the peer is %+v", p)
	}
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if peers, topics := node.Peers(), node.Graph().Topics(); len(peers)+len(topics) != 0 {
			return fmt.Sprintf("still there: %+v %+v", peers, topics)
		}
		return ""
	})
}

// discoveryInfo encodes a ParticipantEntitiesInfo with one node that has one writer.
func discoveryInfo(idSize int, participant rtps.GUID, namespace, name string, writer rtps.GUID) []byte {
	b := []byte{0, 1, 0, 0}
	u32 := func(n int) {
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	id := func(g rtps.GUID) { b = append(append(b, g[:]...), make([]byte, idSize-16)...) }
	text := func(s string) {
		u32(len(s) + 1)
		b = append(append(b, s...), 0)
	}
	id(participant)
	u32(1)
	text(namespace)
	text(name)
	u32(0)
	u32(1)
	id(writer)
	return b
}

// A publisher says how its payloads are encoded; who cannot read that does not match.
func TestRepresentation(t *testing.T) {
	node, peer := newNode(t, local(228)), newPeer(t, 228)
	xcdr1, xcdr2 := []byte{0, 1, 0, 0, 1, 0, 0, 0, 0}, []byte{0, 7, 0, 0, 1, 0, 0, 0, 0}
	topic := ros.Topic{Name: "/encoded", Type: str}
	pub, err := ros.AdvertiseAs(node, topic, ros.DefaultQoS(), xcdr2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.AdvertiseAs(topic, ros.DefaultQoS(), []byte{0, 1}); err == nil {
		t.Error("a payload without header was accepted")
	}
	reader := func(representation ...int16) *rtps.Reader {
		r, err := peer.NewReader(rtps.ReaderConfig{Topic: "rt/encoded", Type: "std_msgs::msg::dds_::String_", QoS: rtps.QoS{Representation: representation},
			Handler: func(s rtps.Sample) { s.Release() }})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	old := reader(wire.XCDR1)
	reader(wire.XCDR1, wire.XCDR2)
	eventually(t, func() string {
		st := pub.Stats()
		if st.Matched != 1 || len(st.Mismatches) != 1 || st.Mismatches[0].ID != ros.EndpointID(old.GUID()) || !strings.HasPrefix(st.Mismatches[0].Reason, "data representation") {
			return fmt.Sprintf("stats are %+v", st)
		}
		return ""
	})
	for _, payload := range [][]byte{xcdr2, xcdr1} { // the other encoding is sent too, with a warning
		if err := pub.Publish(payload, 1); err != nil {
			t.Error(err)
		}
	}
	if err := pub.Publish([]byte{0, 1, 0}, 1); err == nil || !strings.Contains(err.Error(), "publish /encoded") {
		t.Errorf("publishing without a header: %v", err)
	}
}

// The wall clock that is given stamps the reception; its steps change nothing else.
func TestClock(t *testing.T) {
	var now atomic.Int64
	o := local(229)
	o.Now = now.Load
	node, other := newNode(t, o), newNode(t, local(229))
	got := make(chan ros.Sample, 10)
	topic := ros.Topic{Name: "/clock_test", Type: str}
	if _, err := node.Subscribe(topic, ros.DefaultQoS(), func(s ros.Sample) { got <- s }); err != nil {
		t.Fatal(err)
	}
	pub, err := other.Advertise(topic, ros.DefaultQoS())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if pub.Stats().Matched == 0 {
			return "not matched"
		}
		return ""
	})
	for _, at := range []int64{1_700_000_000_000_000_000, 1_700_000_000_000_000_000 - 3600e9, 1_700_000_000_000_000_000 + 50*365*86400e9, -5} {
		now.Store(at)
		if err := pub.Publish([]byte{0, 1, 0, 0, 1, 0, 0, 0, 0}, 1_600_000_000_000_000_000); err != nil {
			t.Fatal(err)
		}
		select {
		case s := <-got:
			if s.RecvTime != at || s.SourceTime != 1_600_000_000_000_000_000 {
				t.Errorf("received at %d, sent at %d, want %d", s.RecvTime, s.SourceTime, at)
			}
			s.Release()
		case <-time.After(20 * time.Second):
			t.Fatal("nothing arrived")
		}
	}
}

func TestWaitAcked(t *testing.T) {
	node, other := newNode(t, local(230)), newNode(t, local(230))
	topic := ros.Topic{Name: "/acked", Type: str}
	if _, err := other.Subscribe(topic, ros.DefaultQoS(), func(s ros.Sample) { s.Release() }); err != nil {
		t.Fatal(err)
	}
	p, err := node.Advertise(topic, ros.DefaultQoS())
	if err != nil {
		t.Fatal(err)
	}
	pub := p.(*ros2.Publisher)
	eventually(t, func() string {
		if pub.Stats().Matched == 0 {
			return "not matched"
		}
		return ""
	})
	for range 100 {
		if err := pub.Publish(make([]byte, 2000), 1); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := pub.WaitAcked(ctx); err != nil {
		t.Fatal(err)
	}
	if st := pub.Stats(); st.Unacked != 0 {
		t.Errorf("stats are %+v", st)
	}
}

func TestNewRefusesBadOptions(t *testing.T) {
	for _, o := range []ros2.Options{{Domain: 233}, {Domain: -1}, {Interfaces: []string{"surely_not_there0"}}} {
		n, err := ros2.New(o)
		if err == nil {
			n.Close()
			t.Errorf("%+v was accepted", o)
		} else if !strings.HasPrefix(err.Error(), "new node: ") {
			t.Errorf("error is %q", err)
		}
	}
}

// Outside of ROS's naming, topics are reached by their names on the wire.
func TestAvoidROSNamespaceConventions(t *testing.T) {
	node, peer := newNode(t, local(231)), newPeer(t, 231)
	w := newWriter(t, peer, "/bare", "std_msgs::msg::dds_::String_", rtps.QoS{})
	q := ros.BestAvailableQoS()
	q.AvoidROSNamespaceConventions = true
	got := make(chan ros.Sample, 100)
	if _, err := node.Subscribe(ros.Topic{Name: "/bare", Type: str}, q, func(s ros.Sample) { got <- s }); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		if _, err := w.Write([]byte{0, 1, 0, 0, 1, 0, 0, 0, 0}, 1); err != nil {
			t.Fatal(err)
		}
		select {
		case s := <-got:
			s.Release()
			return
		case <-time.After(5 * time.Millisecond):
			if time.Now().After(deadline) {
				t.Fatal("nothing arrived")
			}
		}
	}
}

func TestRangeOffIsAlone(t *testing.T) {
	o := local(232)
	o.Range = ros2.RangeOff
	node := newNode(t, o)
	newNode(t, local(232))
	time.Sleep(300 * time.Millisecond)
	if peers := node.Peers(); len(peers) != 0 {
		t.Errorf("peers are %+v", peers)
	}
	if err := node.Close(); err != nil {
		t.Error(err)
	}
	if _, err := node.Advertise(ros.Topic{Name: "/a", Type: str}, ros.DefaultQoS()); !errors.Is(err, ros.ErrClosed) {
		t.Errorf("advertise after close: %v", err)
	}
}
