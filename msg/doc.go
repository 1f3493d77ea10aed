// Package msg knows the interface definitions of ROS 2: it parses .msg, .srv, .action and .idl files, computes RIHS01
// type hashes, builds the definition text that rosbag2 keeps in bags, and finds the definition of a type by its name
// and hash in the installations of a machine or in a built-in table of the common packages.
//
// A Finder is what a recorder wants; the steps below it are usable one by one:
//
//	Parse     one interface file       ─► File (messages, derived service and action types)
//	Describe  a type and a Source      ─► Description (the type and all it refers to), whose Hash is RIHS01
//	BuildText a type and a Source      ─► the concatenated text, as rosbag2 writes it
//	Define    a type, a hash, a Source ─► Definition, trusted only if the hash agrees
//
// DescribeText and Finder.Describe go the other way, from the text of a bag to the Description that package msg/shred
// decodes payloads with.
//
// Everything parsed is foreign: errors name file and line, sizes and counts are limited, nothing panics. Type names
// come from the network; only names made of identifiers are looked up, so no name leads out of a package's directory.
//
// Sources: rosidl (the grammar of .msg and .idl, the type description generator), REP 2011 and REP 2016 (type
// description and hash), rosbag2's local message definition source (the text).
package msg
