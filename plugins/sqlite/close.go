package sqlite

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"

	"github.com/gobag/gobag/plugin"
)

// finish writes what only a closed storage has, and removes the journal.
func (w *writer) finish(m plugin.Metadata) error {
	if err := w.commitTx(); err != nil {
		return err
	}
	if mode, err := w.c.queryText("PRAGMA journal_mode"); err != nil {
		return err
	} else if mode == "wal" { // the user's wish; leaving it writes to the header, which the state below must not miss
		if _, err := w.c.queryText("PRAGMA journal_mode = DELETE"); err != nil {
			return err
		}
	}
	if err := w.ensureTx(); err != nil {
		return err
	}
	if err := insertMetadata(w.c, m); err != nil {
		return err
	}
	if err := w.writeState(); err != nil {
		return err
	}
	if err := w.commitTx(); err != nil {
		return err
	}
	_, err := w.c.queryText("PRAGMA journal_mode = DELETE")
	return err
}

// writeState stores the counts, in a transaction of its own that is small enough to be written at once.
func (w *writer) writeState() error {
	st := state{Format: 1, Closed: true, LastID: w.lastID, Start: w.start, End: w.end}
	for _, t := range w.topics {
		st.Messages += t.count
		st.Topics = append(st.Topics, topicCount{ID: t.ID, Count: t.count, Bytes: t.bytes})
	}
	// A transaction that changes the first page, as this pragma does, increments the counter once.
	if err := w.c.exec("PRAGMA user_version = 0"); err != nil {
		return err
	}
	var err error
	if st.ChangeCounter, err = changeCounter(w.file); err != nil {
		return err
	}
	st.ChangeCounter++
	// The row itself may add pages, so it is written again until the number in it is right.
	for range 4 {
		n, _, err := w.c.queryInt("PRAGMA page_count")
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
		if err := w.c.exec("UPDATE gobag_data SET data = ? WHERE id = ?", b, stateRow); err != nil {
			return err
		}
	}
	return nil
}

// changeCounter reads the counter of transactions in the file's header (https://sqlite.org/fileformat2.html#file_change_counter).
func changeCounter(f *os.File) (uint32, error) {
	var b [4]byte
	_, err := f.ReadAt(b[:], 24)
	return binary.BigEndian.Uint32(b[:]), err
}

func (w *writer) closeConn() error {
	for _, s := range []*stmt{w.insert, w.pack, w.begin, w.commit, w.pages} {
		if s != nil {
			s.finalize()
		}
	}
	var errs []error
	if w.c != nil {
		errs = append(errs, w.c.close())
		w.c = nil
	}
	if w.file != nil {
		errs = append(errs, w.file.Close())
		w.file = nil
	}
	return errors.Join(errs...)
}
