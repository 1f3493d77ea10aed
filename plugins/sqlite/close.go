package sqlite

import (
	"encoding/json"

	"github.com/gobag/gobag/plugin"
)

// finish writes what only a closed storage has, and removes the journal.
func (w *writer) finish(m plugin.Metadata) error {
	if err := w.writePack(); err != nil {
		return err
	}
	return w.e.finish(func(c *conn) error {
		if err := insertMetadata(c, m); err != nil {
			return err
		}
		return w.writeState(c)
	})
}

// writeState stores the counts, in the last transaction.
func (w *writer) writeState(c *conn) error {
	st := state{Format: 1, Closed: true, LastID: w.lastID, Start: w.start, End: w.end}
	for _, t := range w.topics {
		st.Messages += t.count
		st.Topics = append(st.Topics, topicCount{ID: t.ID, Count: t.count, Bytes: t.bytes})
	}
	// A transaction that changes the first page, as this pragma does, increments the counter once.
	if err := c.exec("PRAGMA user_version = 0"); err != nil {
		return err
	}
	var err error
	if st.ChangeCounter, err = w.e.counter(); err != nil {
		return err
	}
	st.ChangeCounter++
	// The row itself may add pages, so it is written again until the number in it is right.
	for range 4 {
		n, _, err := c.queryInt("PRAGMA page_count")
		if err != nil {
			return err
		}
		if n == st.Pages {
			return nil
		}
		st.Pages = n
		b, err := json.Marshal(st)
		if err != nil {
			return err
		}
		if err := c.exec("UPDATE gobag_data SET data = ? WHERE id = ?", padState(b, w.e.stateSize()), stateRow); err != nil {
			return err
		}
	}
	return nil
}
