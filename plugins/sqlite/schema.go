package sqlite

import (
	"bytes"
	"fmt"

	"github.com/gobag/gobag/plugin"
)

// The tables as rosbag2_storage_sqlite3 creates them (sqlite_storage.cpp, schema versions 3 and 4), and ours.
var (
	tablesBoth = []string{
		"CREATE TABLE schema(schema_version INTEGER PRIMARY KEY,ros_distro TEXT NOT NULL)",
		"CREATE TABLE metadata(id INTEGER PRIMARY KEY,metadata_version INTEGER NOT NULL,metadata TEXT NOT NULL)",
	}
	tables3 = []string{
		"CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,serialization_format TEXT NOT NULL,offered_qos_profiles TEXT NOT NULL)",
	}
	tables4 = []string{
		"CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,serialization_format TEXT NOT NULL,offered_qos_profiles TEXT NOT NULL,type_description_hash TEXT NOT NULL)",
		"CREATE TABLE message_definitions(id INTEGER PRIMARY KEY,topic_type TEXT NOT NULL,encoding TEXT NOT NULL,encoded_message_definition TEXT NOT NULL,type_description_hash TEXT NOT NULL)",
	}
	tablesLast = []string{
		"CREATE TABLE messages(id INTEGER PRIMARY KEY,topic_id INTEGER NOT NULL,timestamp INTEGER NOT NULL, data BLOB NOT NULL)",
		"CREATE INDEX timestamp_idx ON messages (timestamp ASC)",
		"CREATE TABLE gobag_data(id INTEGER PRIMARY KEY,data BLOB NOT NULL)",
	}
)

// createTables fills an empty database: everything that is there before the first topic. The row of the state has at
// least stateSize bytes.
func createTables(c *conn, o plugin.WriteOptions, stateSize int) error {
	version, tables := 4, tables4
	switch o.Compat {
	case "", plugin.CompatJazzy:
	case plugin.CompatHumble:
		version, tables = 3, tables3
	default:
		return fmt.Errorf("unknown compatibility %q (there is: %s, %s)", o.Compat, plugin.CompatJazzy, plugin.CompatHumble)
	}
	for _, list := range [][]string{tablesBoth, tables, tablesLast} {
		for _, sql := range list {
			if err := c.exec(sql); err != nil {
				return err
			}
		}
	}
	if err := c.exec("INSERT INTO schema(schema_version, ros_distro) VALUES (?, ?)", version, o.ROSDistro); err != nil {
		return err
	}
	if err := insertMetadata(c, o.Metadata); err != nil {
		return err
	}
	return c.exec("INSERT INTO gobag_data(id, data) VALUES (?, ?)", stateRow, padState([]byte(`{"format":1}`), stateSize))
}

func insertMetadata(c *conn, m plugin.Metadata) error {
	if m.Version == 0 {
		return nil
	}
	return c.exec("INSERT INTO metadata(metadata_version, metadata) VALUES (?, ?)", m.Version, m.Text)
}

// stateRoom is what the row of the state leaves free on its page: less than any other row takes. So the table needs a
// second page when the next row comes, near the beginning of the file, and the state stays on the first one, where a
// file that was cut off still has it.
const stateRoom = 200

// padState makes the state longer; JSON may end with spaces.
func padState(b []byte, size int) []byte {
	return append(b, bytes.Repeat([]byte{' '}, max(0, size-len(b)))...)
}

// Rows of gobag_data: the state at stateRow, the row of topic t at −t, packs from 1 on.
const stateRow = 0

// state is the JSON of the state row. What it counts holds for a storage that was closed in order and not changed
// since: changeCounter and pages are compared with the file header.
type state struct {
	Format        int          `json:"format"`
	Closed        bool         `json:"closed"`
	Messages      uint64       `json:"messages,omitempty"`
	LastID        int64        `json:"last_id,omitempty"`
	Start         int64        `json:"start,omitempty"` // first and last stamp, if there are messages
	End           int64        `json:"end,omitempty"`
	Topics        []topicCount `json:"topics,omitempty"`
	Pages         int64        `json:"pages,omitempty"`
	ChangeCounter uint32       `json:"change_counter,omitempty"`
}

type topicCount struct {
	ID    plugin.TopicID `json:"id"`
	Count uint64         `json:"count"`
	Bytes int64          `json:"bytes"`
}
