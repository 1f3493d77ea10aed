package ros2

import (
	"strings"
	"testing"
)

func TestTopicNames(t *testing.T) {
	for _, c := range []struct {
		dds, name string
		kind      Kind
		ok        bool
	}{
		{"rt/chatter", "/chatter", KindTopic, true},
		{"rt/a/b/_c", "/a/b/_c", KindTopic, true},
		{"rt/s/_service_event", "/s/_service_event", KindTopic, true},
		{"rq/add_two_intsRequest", "/add_two_ints", KindRequest, true},
		{"rr/add_two_intsReply", "/add_two_ints", KindReply, true},
		{"rq/x/_action/send_goalRequest", "/x/_action/send_goal", KindRequest, true},
		{"ros_discovery_info", "", 0, false},
		{"rt", "", 0, false},
		{"rt/", "", 0, false},
		{"rtchatter", "", 0, false},
		{"rq/add_two_ints", "", 0, false},
		{"rr/Request", "", 0, false},
		{"rq/Request", "", 0, false},
		{"rs/x", "", 0, false},
		{"Square", "", 0, false},
		{"", "", 0, false},
		{"rt/a b", "", 0, false},
		{"rt/" + strings.Repeat("a", 300), "", 0, false},
	} {
		kind, name, ok := DemangleTopic(c.dds)
		if kind != c.kind || name != c.name || ok != c.ok {
			t.Errorf("DemangleTopic(%.30q) = %v %q %v", c.dds, kind, name, ok)
		}
		if !c.ok {
			continue
		}
		back := []string{MangleTopic(name), MangleRequest(name), MangleReply(name)}[kind]
		if back != c.dds {
			t.Errorf("%q goes back to %q, not %q", name, back, c.dds)
		}
	}
}

func TestTypeNames(t *testing.T) {
	for dds, typ := range map[string]string{
		"std_msgs::msg::dds_::String_":                                  "std_msgs/msg/String",
		"example_interfaces::srv::dds_::AddTwoInts_Request_":            "example_interfaces/srv/AddTwoInts_Request",
		"example_interfaces::srv::dds_::AddTwoInts_Event_":              "example_interfaces/srv/AddTwoInts_Event",
		"example_interfaces::action::dds_::Fibonacci_SendGoal_Request_": "example_interfaces/action/Fibonacci_SendGoal_Request",
		"example_interfaces::action::dds_::Fibonacci_FeedbackMessage_":  "example_interfaces/action/Fibonacci_FeedbackMessage",
		"rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_":           "rmw_dds_common/msg/ParticipantEntitiesInfo",
		"a::b::c::dds_::D_": "a/b/c/D",
		"pkg::dds_::T_":     "pkg/T",
	} {
		if got, ok := DemangleType(dds); got != typ || !ok {
			t.Errorf("DemangleType(%q) = %q %v", dds, got, ok)
		}
		if got := MangleType(typ); got != dds {
			t.Errorf("MangleType(%q) = %q", typ, got)
		}
	}
	for _, dds := range []string{"", "ShapeType", "std_msgs::msg::String_", "std_msgs::msg::dds_::String", "::dds_::T_", "a::dds_::_", "a::dds_::b::T_",
		"a b::dds_::T_", "dds_::T_", "a:b::dds_::T_", "a::dds_::dds_::T_", strings.Repeat("a", 300) + "::dds_::T_"} {
		if typ, ok := DemangleType(dds); ok {
			t.Errorf("DemangleType(%q) = %q", dds, typ)
		}
	}
}

func TestUserData(t *testing.T) {
	const hash = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
	for data, want := range map[string]string{
		"typehash=" + hash + ";":                                   hash,
		"typehash=" + hash + ";\x00":                               hash,
		"typehash=" + hash:                                         hash,
		"serviceid=01.10.ab;typehash=" + hash + ";":                hash,
		"clientid=x;y;;=;typehash=" + hash + ";enclave=/;\x00\x00": hash,
		"":                        "",
		"\x00":                    "",
		"typehash=;":              "",
		"typehash=RIHS02_00;":     "",
		"typehash=" + hash[:70]:   "",
		"typehash=" + hash + "0;": "",
		"typehash=RIHS01_" + strings.Repeat("g", 64) + ";": "",
		"xtypehash=" + hash + ";":                          "",
	} {
		if got := string(userTypeHash([]byte(data))); got != want {
			t.Errorf("hash of %q is %q", data, got)
		}
	}
	if got := string(endpointUserData(hash)); got != "typehash="+hash+";" {
		t.Errorf("user data is %q", got)
	}
	if got := endpointUserData(""); got != nil {
		t.Errorf("user data without a hash is %q", got)
	}
	if got := string(userValue([]byte("enclave=/a/b;\x00"), "enclave")); got != "/a/b" {
		t.Errorf("enclave is %q", got)
	}
}
