package ros2

import (
	"reflect"
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

func writerID(n byte) rtps.GUID {
	return wire.MakeGUID(wire.Prefix{n}, wire.EntityID{0, 0, n, wire.KindWriterKeyless})
}

func readerID(n byte) rtps.GUID {
	return wire.MakeGUID(wire.Prefix{n}, wire.EntityID{0, 0, n, wire.KindReaderKeyless})
}

func TestGraphBuild(t *testing.T) {
	const str, i32 = "std_msgs::msg::dds_::String_", "std_msgs::msg::dds_::Int32_"
	const hash = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
	reliable := rtps.QoS{Reliability: rtps.Reliable, Durability: rtps.TransientLocal, Depth: 3, Deadline: time.Second}
	endpoints := []rtps.Endpoint{
		{GUID: writerID(5), Writer: true, Topic: "rt/b", Type: str, QoS: reliable, UserData: []byte("typehash=" + hash + ";"), Vendor: wire.VendorCyclone},
		{GUID: readerID(4), Topic: "rt/b", Type: str, Local: true, Vendor: wire.VendorGobag},
		{GUID: writerID(3), Writer: true, Topic: "rt/b", Type: i32, Vendor: wire.VendorFast},
		{GUID: writerID(2), Writer: true, Local: true, Topic: "rt/b", Type: str, QoS: reliable},
		{GUID: writerID(6), Writer: true, Topic: "rt/a/_x", Type: str, Vendor: wire.VendorCyclone},
		// None of these is a topic of ROS.
		{GUID: writerID(7), Writer: true, Keyed: true, Topic: "rt/keyed", Type: str},
		{GUID: writerID(8), Writer: true, Topic: "Square", Type: "ShapeType"},
		{GUID: writerID(9), Writer: true, Topic: "rt/no_ros_type", Type: "ShapeType"},
		{GUID: writerID(10), Writer: true, Topic: "rq/serviceRequest", Type: "a::srv::dds_::S_Request_"},
		{GUID: writerID(11), Writer: true, Topic: infoTopic, Type: infoType},
		{GUID: writerID(12), Writer: true, Topic: "rt/bad name", Type: str},
	}
	g := &graph{}
	names := map[rtps.GUID]string{writerID(5): "/robot/talker"}
	infinite := ros.QoS{History: ros.KeepLast, Depth: 1, Reliability: ros.BestEffort, Durability: ros.Volatile, Deadline: ros.Infinite, Lifespan: ros.Infinite,
		Liveliness: ros.Automatic, LivelinessLeaseDuration: ros.Infinite}
	fromReliable, unknown := infinite, infinite
	fromReliable.Depth, fromReliable.Reliability, fromReliable.Durability, fromReliable.Deadline = 3, ros.Reliable, ros.TransientLocal, time.Second
	unknown.History, unknown.Depth = ros.HistoryUnknown, 0
	topic := func(typ string) ros.Topic { return ros.Topic{Name: "/b", Type: typ} }
	hashed := topic("std_msgs/msg/String")
	hashed.TypeHash = hash
	want := []ros.TopicInfo{
		{Name: "/a/_x", Types: []string{"std_msgs/msg/String"}, Publishers: []ros.Endpoint{
			{ID: ros.EndpointID(writerID(6)), Topic: ros.Topic{Name: "/a/_x", Type: "std_msgs/msg/String"}, QoS: infinite, Vendor: "Cyclone DDS"}}},
		{Name: "/b", Types: []string{"std_msgs/msg/Int32", "std_msgs/msg/String"},
			Publishers: []ros.Endpoint{
				{ID: ros.EndpointID(writerID(2)), Topic: topic("std_msgs/msg/String"), QoS: fromReliable, Local: true, Reliable: true},
				{ID: ros.EndpointID(writerID(3)), Topic: topic("std_msgs/msg/Int32"), QoS: unknown, Vendor: "Fast DDS"},
				{ID: ros.EndpointID(writerID(5)), Topic: hashed, QoS: fromReliable, Node: "/robot/talker", Vendor: "Cyclone DDS", Reliable: true},
			},
			Subscriptions: []ros.Endpoint{{ID: ros.EndpointID(readerID(4)), Topic: topic("std_msgs/msg/String"), QoS: unknown, Vendor: "gobag", Local: true}}},
	}
	for range 2 { // the second time from remembered names
		snap := g.build(endpoints, names)
		if !reflect.DeepEqual(snap.infos, want) {
			t.Errorf("topics are\n%+v, want\n%+v", snap.infos, want)
		}
		if got, want := snap.offers[offerKey{"rt/b", str}], []offer{{true, true, hash}}; !reflect.DeepEqual(got, want) {
			t.Errorf("offers are %+v, want %+v", got, want)
		}
		if got := snap.offers[offerKey{"Square", "ShapeType"}]; len(got) != 1 {
			t.Errorf("offers of a foreign topic are %+v", got)
		}
	}
	g.build(nil, nil)
	if len(g.topics)+len(g.types)+len(g.hashes) != 0 {
		t.Error("names of endpoints that are gone are remembered")
	}
}

func TestClasses(t *testing.T) {
	best := ros.BestAvailableQoS()
	latched := best
	latched.Reliability, latched.Durability = ros.BestEffort, ros.TransientLocal
	reliableOnly := best
	reliableOnly.Reliability = ros.Reliable
	for _, c := range []struct {
		name              string
		q                 ros.QoS
		reliable, latched bool
		want              class
	}{
		{"reliable and latched", best, true, true, class{true, true}},
		{"reliable", best, true, false, class{true, false}},
		{"best effort", best, false, false, class{false, false}},
		{"best effort and latched", best, false, true, class{false, false}},
		{"fixed", latched, true, false, class{false, true}},
		{"fixed reliability", reliableOnly, false, true, class{true, true}},
	} {
		got := classOf(c.q, c.reliable, c.latched)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		q := readerQoS(got.qos(c.q))
		if (q.Reliability == rtps.Reliable) != c.want.reliable || (q.Durability == rtps.TransientLocal) != c.want.latched {
			t.Errorf("%s: the reader asks for %+v", c.name, q)
		}
	}
}

func TestQoSThereAndBack(t *testing.T) {
	full := ros.QoS{History: ros.KeepLast, Depth: 7, Reliability: ros.Reliable, Durability: ros.TransientLocal, Deadline: time.Second, Lifespan: 2 * time.Second,
		Liveliness: ros.ManualByTopic, LivelinessLeaseDuration: 3 * time.Second}
	byNode := ros.DefaultQoS()
	byNode.Liveliness, byNode.History, byNode.Depth = ros.ManualByNode, ros.KeepAll, 0
	for _, q := range []ros.QoS{ros.DefaultQoS(), full, byNode} {
		w := writerQoS(q)
		if got := fromRTPS(&w, wire.VendorGobag); got != q {
			t.Errorf("%+v comes back as %+v", q, got)
		}
		// What a reader asks for is satisfied by every writer as reliable and durable as it.
		if reason, ok := rtps.Compatible(w, readerQoS(q)); !ok {
			t.Errorf("%+v does not match its own offer: %s", q, reason)
		}
	}
	strong := rtps.QoS{Durability: rtps.Persistent}
	if got := fromRTPS(&strong, wire.VendorRTI); got.Durability != ros.TransientLocal {
		t.Errorf("persistent is seen as %v", got.Durability)
	}
}

func TestNodeNames(t *testing.T) {
	n := newNodeNames()
	prefix := wire.Prefix{1, 2, 3}
	own := wire.MakeGUID(prefix, wire.EntityID{0, 0, 1, wire.KindWriterKeyless})
	other := wire.MakeGUID(wire.Prefix{9}, wire.EntityID{0, 0, 1, wire.KindWriterKeyless})
	info := func(name string) []byte {
		return appendInfo(le, 16, wire.MakeGUID(prefix, wire.EntityParticipant), []nodeEntities{{namespace: "/", name: name, writers: []rtps.GUID{own, other}}})
	}
	n.take(prefix, info("talker"))
	names, version := n.snapshot()
	if want := map[rtps.GUID]string{own: "/talker"}; !reflect.DeepEqual(names, want) {
		t.Errorf("names are %v, want %v: nobody speaks for others' endpoints", names, want)
	}
	select {
	case <-n.changed:
	default:
		t.Error("no news was told")
	}
	n.take(prefix, []byte{0, 1, 0, 0, 1}) // broken
	if n.version() != version {
		t.Error("a broken sample changed something")
	}
	n.take(prefix, info("renamed"))
	if got := n.of(prefix); !reflect.DeepEqual(got, []string{"/renamed"}) {
		t.Errorf("nodes are %q", got)
	}
	n.prune(func() []rtps.Peer { return []rtps.Peer{{Prefix: prefix}} })
	if got := n.of(prefix); len(got) != 1 {
		t.Error("a participant that is there was forgotten")
	}
	n.prune(func() []rtps.Peer { return nil })
	if names, _ := n.snapshot(); len(names) != 0 || n.of(prefix) != nil {
		t.Errorf("a participant that left is remembered: %v", names)
	}
}

func TestReasonNamesTheCause(t *testing.T) {
	if got := reason(rtps.Peer{Vendor: wire.VendorFast, Reason: "no UDP unicast locator"}); got != "no UDP unicast locator; with Fast DDS this comes of FASTDDS_BUILTIN_TRANSPORTS=SHM or LARGE_DATA, use DEFAULT or UDPv4 there" {
		t.Errorf("reason is %q", got)
	}
	if got := reason(rtps.Peer{Vendor: wire.VendorCyclone}); got != "no address" {
		t.Errorf("reason is %q", got)
	}
}
