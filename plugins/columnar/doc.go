// Package columnar is the storage format "columnar": messages as typed columns in Parquet files that any analytics
// engine reads, from which every payload comes back byte for byte. plugin is the contract, plugins are the formats.
//
// A storage is a directory: a state file, a write-ahead log, and for each topic a directory of Parquet parts. Messages
// go into the log first. A goroutine takes them apart into columns (msg/shred), compresses them page group by page
// group, and writes a part when there is enough of a topic; the log is dropped when all that is in it stands in parts.
// What a type's columns cannot hold exactly is completed by a patch, and what they cannot hold at all, or has no
// definition, is stored as it is in a part with the payload as a column. See docs/formats/columnar.md for the layout, the
// presets and what a crash may cost.
package columnar
