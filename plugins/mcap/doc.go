// Package mcap is the storage format "mcap": the .mcap file that ROS 2 records by default. plugin is the contract,
// plugins are the formats.
//
// It writes MCAP version 0 with the profile ros2 as rosbag2 does, plus records of its own in the range that MCAP leaves
// to applications, which other readers skip: order numbers, sources, full sequence numbers. It reads files of any
// writer, with and without a summary, indexes and checksums, and what is left of a file that was cut off. See
// docs/formats/mcap.md for the layout, the presets and what a crash may cost. Source of the format: the MCAP
// specification, https://mcap.dev/spec.
package mcap
