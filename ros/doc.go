// Package ros is the transport-neutral view of a ROS graph: nodes, topics, endpoints with their QoS, subscriptions and
// publications of serialized messages. ros/ros2 speaks it over DDS-RTPS, ros/rostest in memory.
//
// This package imports the standard library only.
package ros
