// Package leveldb is the storage format "leveldb": one LevelDB database per storage, a directory. plugin is the
// contract, plugins are the formats.
//
// What is on disk is LevelDB's format with its default comparator (https://github.com/google/leveldb, doc/table_format.md
// and doc/log_format.md), so that every LevelDB library opens a closed recording. The files are written and read here and
// not through a general database: a recording never overwrites or deletes and comes nearly in order, so it needs neither
// compaction nor a skip list, and a reader needs no lock and changes nothing on disk. Messages are gathered in a write
// buffer and become one sorted table at a time; the preset decides whether a journal covers the buffer. The layout of
// keys and values, the presets and what a crash may cost stand in docs/formats/leveldb.md.
//
// The layout of the C++ plugin of the same name (two databases for each topic) is read too.
package leveldb
