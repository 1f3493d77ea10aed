// Package sqlite is the storage format "sqlite3": the .db3 file that every ROS 2 distribution opens. plugin is the
// contract, plugins are the formats.
//
// It writes rosbag2's schema 4 (schema 3 for Humble) plus one table of its own, gobag_data, that other readers ignore:
// send times, sources and sequence numbers, packed. It reads schemas 1 to 4.
//
// Recording writes the pages of messages and of the index on their stamps itself (tabletree.go, indextree.go) into a
// store of pages (store.go) and commits them as SQLite does with a rollback journal (flight.go); the small tables are
// left to SQLite, which works on the same store (editvfs.go). Where the user's pragmas ask for what only SQLite can do,
// it writes everything (engine.go). Reading takes no locks and changes nothing on disk, whatever state the file was left
// in: see docs/formats/sqlite.md for the layout, the presets and what a crash may cost.
package sqlite
