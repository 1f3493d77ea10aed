package ros2

import (
	"strings"

	"github.com/gobag/gobag/ros"
)

// Kind says what a DDS topic carries, by its prefix (ROS 2 design, "Topic and Service name mapping to DDS").
type Kind uint8

// Kinds of topics.
const (
	KindTopic   Kind = iota // rt/NAME
	KindRequest             // rq/SERVICERequest
	KindReply               // rr/SERVICEReply
)

// MangleTopic returns the DDS topic of a fully qualified ROS topic: "/a/b" is "rt/a/b".
func MangleTopic(name string) string { return "rt" + name }

// MangleRequest returns the DDS topic that carries a service's requests: "/s" is "rq/sRequest".
func MangleRequest(service string) string { return "rq" + service + "Request" }

// MangleReply returns the DDS topic that carries a service's replies: "/s" is "rr/sReply".
func MangleReply(service string) string { return "rr" + service + "Reply" }

// DemangleTopic returns the ROS name of a DDS topic and what it carries; not ok if the topic is not ROS's or the name is
// not one that ROS allows.
func DemangleTopic(dds string) (kind Kind, name string, ok bool) {
	if len(dds) < 2 {
		return 0, "", false
	}
	name, ok = dds[2:], true
	switch dds[:2] {
	case "rt":
	case "rq":
		kind = KindRequest
		name, ok = strings.CutSuffix(name, "Request")
	case "rr":
		kind = KindReply
		name, ok = strings.CutSuffix(name, "Reply")
	default:
		return 0, "", false
	}
	if !ok || ros.ValidName(name) != nil {
		return 0, "", false
	}
	return kind, name, true
}

// MangleType returns the DDS type of a ROS type: "std_msgs/msg/String" is "std_msgs::msg::dds_::String_".
func MangleType(typ string) string {
	i := strings.LastIndexByte(typ, '/')
	return strings.ReplaceAll(typ[:i+1], "/", "::") + "dds_::" + typ[i+1:] + "_"
}

// DemangleType returns the ROS type of a DDS type: "example_interfaces::srv::dds_::AddTwoInts_Request_" is
// "example_interfaces/srv/AddTwoInts_Request". Not ok if the type is not of ROS's form.
func DemangleType(dds string) (typ string, ok bool) {
	namespace, name, ok := strings.Cut(dds, "::dds_::")
	if !ok || !strings.HasSuffix(name, "_") || strings.Contains(name, ":") {
		return "", false
	}
	typ = strings.ReplaceAll(namespace, "::", "/") + "/" + name[:len(name)-1]
	return typ, ros.ValidType(typ) == nil
}
