// Package convert makes bags out of bags: it merges, filters, cuts by time, splits, compresses and changes the storage
// format, as "ros2 bag convert" does.
//
//   - [Run] reads the [Input]s, merged by receive stamp, and writes each [Output].
//   - [Filter] chooses topics; [ParseInputs] and [ParseOutputs] read rosbag2's YAML files.
//
// Payload bytes, stamps, send times, sources, sequence numbers, QoS, type hashes, definitions, custom_data and the order
// of equal stamps survive. Either an output holds all messages that it should, or nothing of any output is left.
package convert
