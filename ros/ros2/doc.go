// Package ros2 is [ros.Node] over DDS-RTPS: it maps ROS 2's names, types and quality of service to what the middlewares
// of ROS 2 put on the wire (rmw_cyclonedds, rmw_fastrtps), reads node names and type hashes from discovery, and follows
// the publishers of a topic with one reader for each kind of quality of service they offer.
//
// OptionsFromEnv reads the environment of a ROS machine, New joins the network:
//
//	o, warnings, err := ros2.OptionsFromEnv(os.Getenv)
//	node, err := ros2.New(o)
package ros2
