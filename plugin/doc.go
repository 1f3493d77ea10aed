// Package plugin is the contract between a bag and a storage format; the formats themselves live below plugins/.
// Nothing is loaded at run time: a format registers itself when it is linked in (see plugins/all).
//
// A storage is one file or directory written by a [Driver]. A bag (package bag) is a directory of storages with a
// metadata.yaml. Messages travel in batches, topics as small integers, payloads as opaque bytes; nothing here knows
// what a payload means. Messages are ordered by (RecvTime, Order): equal stamps are legal, within a topic and across
// topics, and keep the order in which they were written.
//
// This package imports the standard library only.
package plugin
