// Package transcode turns payloads of ROS 1 into payloads of ROS 2 and back, for types of which both sides have a
// definition, and of others by the rules below. A [Program] is compiled once per type; it copies runs of numbers as a
// whole and allocates nothing but the result.
//
//   - Names: a/B and a/msg/B; std_msgs/Time and Duration are builtin_interfaces/msg/Time and Duration, tf/tfMessage is
//     tf2_msgs/msg/TFMessage, rosgraph_msgs/Log is rcl_interfaces/msg/Log. Field names are compared in lower case.
//   - Header.seq exists in ROS 1 only: it is dropped, and counted per publisher on the way back.
//   - Where ROS 2's definition has more fields than ROS 1's (Range.variance, Marker.texture, SolidPrimitive.polygon, …) they
//     get their defaults; on the way back they must have them. A field that only ROS 1 has, another order or another type
//     of a field: the type is refused, with the reason.
//   - Types that no definition of ROS 2 is known of get one made of ROS 1's: lower-case field names, the same types.
//   - A value that the other side cannot hold makes the message fail: a time after 2038 or before 1970, a NUL within a
//     string, a level of a log message that has no counterpart.
//
// What is turned is exact, or refused: no value is guessed, rounded or cut off. Sources: ROS 1's serialization
// (wiki.ros.org/msg), OMG CDR as ROS 2 uses it, ros1_bridge's rules for names, the definitions of both.
package transcode
