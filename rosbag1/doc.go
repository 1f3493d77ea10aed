// Package rosbag1 reads the bags of ROS 1 (format 2.0, the files named .bag) as a storage format that cannot be written.
//
//   - Chunks without compression, with lz4 and with bz2 are read; a bag is taken at the word of its index where that is
//     whole and agrees with the chunks, else all of it is read when it is opened: recordings that crashed (.bag.active),
//     files that were cut off, files with damage.
//   - Messages come in the order of their stamps, on equal stamps in the order of the file. Payloads are ROS 1's
//     serialization ("ros1"), types are named as there ("sensor_msgs/Image"), definitions are the text of the connection
//     records ("ros1msg"), the type hash is the md5sum, sources are the publishing nodes, and a latching publisher is one
//     with durability transient_local.
//   - What is damaged is passed over: everything else is read first, then the iterator ends with a *plugin.CorruptError
//     that says how much is missing.
//
// Lengths and counts of a file are checked before they are used: memory grows with what chunks really hold, and no more
// than loadedBytes of chunks, or one that is larger, is held at a time.
//
// Source: https://wiki.ros.org/Bags/Format/2.0.
package rosbag1
