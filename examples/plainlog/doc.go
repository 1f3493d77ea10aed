// Package plainlog is a storage format for gobag made outside of it, in a module of its own: the example of
// docs/writing-a-plugin.md. Linking the package in registers the format under the name "plainlog":
//
//	import _ "example.com/plainlog"
//
// A storage is one file, a log that only ever grows:
//
//	header   magic, 20 bytes "plainlog storage 1\n\x00"
//	         synced, uint64: everything before this offset was on the disk when it was written
//	         uint32 CRC-32C of the 8 bytes before it
//	records  byte kind, uint32 length of the body, uint32 CRC-32C of those 5 bytes, uint32 CRC-32C of the body, body
//
// Integers are little-endian. Kinds are O (ROS distribution), D (metadata), T (a topic as it is from here on), M (a
// message) and E (end: the storage was closed in order). Strings in a body have a uvarint length before them.
//
// Opening reads the file once from end to end and keeps 40 bytes for each message: simple, and right for bags that fit
// an example. A format for large bags keeps an index at the end of the file instead.
package plainlog
