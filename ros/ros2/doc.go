// Package ros2 is [ros.Node] over DDS-RTPS: it maps ROS 2's names, types and quality of service to what the middlewares
// of ROS 2 put on the wire (rmw_cyclonedds, rmw_fastrtps), reads node names and type hashes from discovery, and follows
// the publishers of a topic with one reader for each kind of quality of service they offer.
//
// # Node names
//
// Every participant of a ROS 2 system lists its nodes with their endpoints on the topic ros_discovery_info. Ids in that
// list have 16 bytes from Iron on and 24 bytes before, under the same name and type; a node of Humble that gets the
// shorter form crashes. With Options.NodeName, two writers serve the two generations, each matched by readers of its own
// form only: those with the type hash of the form with 16 bytes, which endpoints announce from Iron on, and those
// without a hash whose participant has an enclave, as every node since Foxy has. Others get nothing. The decision is
// made where a reader is matched (rtps.WriterConfig.Accept), so before anything is sent to it, and each datagram names the
// one reader that it is for; no order of discovery can go wrong. A writer is there only while somebody reads its form:
// nodes of Iron and later warn about writers without a hash.
//
// # Type descriptions
//
// DescribeType asks the node of a publisher for the definition of a type, over the service that nodes have from Iron on.
// The two middlewares tie a reply to its request in different ways, which do not understand each other (rmw_cyclonedds
// issue 184); the form is chosen by the vendor of the service's endpoint, and servers of another vendor on the same
// topic are not sent anything.
//
// # Use
//
// OptionsFromEnv reads the environment of a ROS machine, New joins the network:
//
//	o, warnings, err := ros2.OptionsFromEnv(os.Getenv)
//	node, err := ros2.New(o)
package ros2
