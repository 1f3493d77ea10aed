// Package bag reads and writes bags: directories of storages with a metadata.yaml, as rosbag2 makes them.
//
//   - [Create] opens a [Writer], which splits, syncs and keeps metadata.yaml up to date.
//   - [Open] opens a [Reader] for a bag directory (with or without metadata.yaml) or a single storage file.
//   - [Queue] is the bounded queue between what receives messages and what writes them.
//   - [Metadata], [QoSProfile] and [Ledger] are the texts that a bag carries beside its messages.
//
// Which storage formats there are is decided by what is registered with package plugin (see plugins/all).
package bag
