package transcode

import "strings"

// renamed are the types that have another name in ROS 2 than the rule gives.
var renamed = map[string]string{
	"std_msgs/Time":     "builtin_interfaces/msg/Time",
	"std_msgs/Duration": "builtin_interfaces/msg/Duration",
	"tf/tfMessage":      "tf2_msgs/msg/TFMessage",
	logROS1:             logROS2,
}

const (
	logROS1    = "rosgraph_msgs/Log"
	logROS2    = "rcl_interfaces/msg/Log"
	headerROS1 = "std_msgs/Header"
	headerROS2 = "std_msgs/msg/Header"
	timeROS2   = "builtin_interfaces/msg/Time"
	spanROS2   = "builtin_interfaces/msg/Duration"
)

// NameROS2 is what a message type of ROS 1 is called in ROS 2: "sensor_msgs/msg/Imu" for "sensor_msgs/Imu".
func NameROS2(name string) string {
	if n, ok := renamed[name]; ok {
		return n
	}
	pkg, typ, _ := strings.Cut(name, "/")
	return pkg + "/msg/" + typ
}

// NameROS1 is what a message type of ROS 2 is called in ROS 1, "" for what is no message type.
func NameROS1(name string) string {
	switch name {
	case timeROS2:
		return "std_msgs/Time"
	case spanROS2:
		return "std_msgs/Duration"
	case logROS2:
		return logROS1
	}
	pkg, rest, _ := strings.Cut(name, "/")
	folder, typ, ok := strings.Cut(rest, "/")
	if !ok || folder != "msg" || pkg == "" || typ == "" || strings.Contains(typ, "/") {
		return ""
	}
	return pkg + "/" + typ
}
