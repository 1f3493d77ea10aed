package sqlite

import (
	"errors"
	"os"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// engine writes the file of a recording. There are two: pageEngine writes the pages of messages itself, and sqlEngine
// leaves all to SQLite, for the sake of pragmas that only SQLite can follow.
type engine interface {
	insert(id int64, m *plugin.Message) error
	insertPack(first int64, row []byte) error // row is copied
	// edit changes the other tables on the connection.
	edit(f func(c *conn) error) error
	// commit starts to make everything up to here durable. It is so when the flight has landed; nil: it is so already.
	commit() (*flight, error)
	// full says whether a commit is due because too much has gathered.
	full() bool
	bytes() (int64, error) // of the file if it were closed now
	counter() (uint32, error)
	stateSize() int // least size of the row of the state
	// finish commits with what f changes, and leaves the database alone in its directory.
	finish(f func(c *conn) error) error
	// close frees everything. After a failure what was committed stays.
	close() error
}

// sqlEngine is one connection of SQLite's to the file.
type sqlEngine struct {
	path   string
	file   *os.File // the database, for what SQLite does not do; closed after c, since closing it might drop SQLite's locks
	c      *conn
	rows   *stmt // messages
	packs  *stmt // gobag_data
	begin  *stmt
	end    *stmt
	pages  *stmt
	inTx   bool
	size   int64 // of a page
	most   int64 // bytes in a transaction
	weight int64 // bytes in the open one
	pushed int64 // bytes of the file whose way to the disk has been started
}

func openSQLEngine(path string, p preset, pragmas []pragma) (_ *sqlEngine, err error) {
	e := &sqlEngine{path: path, most: p.sqlBytes}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if e.file, err = os.Open(path); err != nil {
		return nil, err
	}
	if e.c, err = openConn(path, sqlite3.SQLITE_OPEN_READWRITE, ""); err != nil {
		return nil, err
	}
	if err := recordingPragmas(e.c, p, pragmas); err != nil {
		return nil, err
	}
	if err := e.showJournal(); err != nil {
		return nil, err
	}
	if e.size, _, err = e.c.queryInt("PRAGMA page_size"); err != nil {
		return nil, err
	}
	for _, p := range []struct {
		s   **stmt
		sql string
	}{
		{&e.rows, "INSERT INTO messages(id, topic_id, timestamp, data) VALUES (?, ?, ?, ?)"},
		{&e.packs, "INSERT INTO gobag_data(id, data) VALUES (?, ?)"},
		{&e.begin, "BEGIN EXCLUSIVE"},
		{&e.end, "COMMIT"},
		{&e.pages, "PRAGMA page_count"},
	} {
		if *p.s, err = e.c.prepare(p.sql); err != nil {
			return nil, err
		}
	}
	return e, takeLock(e.c)
}

// showJournal makes the empty file of the journal that the first transaction will use, if it will use one: by the file
// a reader knows that what it sees while this connection holds its lock can be trusted.
func (e *sqlEngine) showJournal() error {
	mode, err := e.c.queryText("PRAGMA journal_mode")
	if err != nil || mode != "persist" && mode != "delete" && mode != "truncate" {
		return err
	}
	f, err := os.OpenFile(e.path+"-journal", os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func (e *sqlEngine) ensureTx() error {
	if e.inTx {
		return nil
	}
	if err := e.begin.runBound(); err != nil {
		return err
	}
	e.inTx, e.weight = true, 0
	return nil
}

func (e *sqlEngine) insert(id int64, m *plugin.Message) error {
	if err := e.ensureTx(); err != nil {
		return err
	}
	s := e.rows
	s.keep = s.keep[:0]
	err := errors.Join(s.bindInt64(1, id), s.bindInt64(2, int64(m.Topic)), s.bindInt64(3, m.RecvTime), s.bindBlob(4, m.Data))
	if err == nil {
		err = s.runBound()
	}
	clear(s.keep)
	e.weight += int64(len(m.Data)) + rowOverhead
	return err
}

func (e *sqlEngine) insertPack(first int64, row []byte) error {
	if err := e.ensureTx(); err != nil {
		return err
	}
	return e.packs.run(first, row)
}

func (e *sqlEngine) edit(f func(c *conn) error) error {
	if err := e.ensureTx(); err != nil {
		return err
	}
	return f(e.c)
}

func (e *sqlEngine) full() bool { return e.inTx && e.weight >= e.most }

func (e *sqlEngine) commit() (*flight, error) {
	if !e.inTx {
		return nil, nil
	}
	if err := e.end.runBound(); err != nil {
		return nil, err
	}
	e.inTx = false
	e.pushed, _ = e.bytes() // only for hints
	return nil, nil
}

// bytes also starts writing what has left SQLite's cache, so that the commit finds little to wait for.
func (e *sqlEngine) bytes() (int64, error) {
	ok, err := e.pages.step()
	if err != nil || !ok {
		return 0, errors.Join(err, e.pages.reset())
	}
	n := e.pages.int64(0) * e.size
	if done := n - cacheKiB<<10; done-e.pushed >= pushEvery {
		_ = fsx.StartWriteback(e.file, e.pushed, done-e.pushed) // only a hint
		e.pushed = done
	}
	return n, e.pages.reset()
}

// counter reads the counter of transactions in the file's header (https://sqlite.org/fileformat2.html#file_change_counter).
func (e *sqlEngine) counter() (uint32, error) {
	var b [4]byte
	_, err := e.file.ReadAt(b[:], 24)
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]), err
}

func (e *sqlEngine) stateSize() int { return 0 }

func (e *sqlEngine) finish(f func(c *conn) error) error {
	if _, err := e.commit(); err != nil {
		return err
	}
	if mode, err := e.c.queryText("PRAGMA journal_mode"); err != nil {
		return err
	} else if mode == "wal" { // the user's wish; leaving it writes to the header, which the state must not miss
		if _, err := e.c.queryText("PRAGMA journal_mode = DELETE"); err != nil {
			return err
		}
	}
	if err := e.edit(f); err != nil {
		return err
	}
	if _, err := e.commit(); err != nil {
		return err
	}
	_, err := e.c.queryText("PRAGMA journal_mode = DELETE")
	return err
}

func (e *sqlEngine) close() error {
	var errs []error
	if e.c != nil {
		if e.inTx {
			_ = e.c.exec("ROLLBACK") // SQLite may have rolled back by itself
		}
		for _, s := range []*stmt{e.rows, e.packs, e.begin, e.end, e.pages} {
			if s != nil {
				s.finalize()
			}
		}
		errs = append(errs, e.c.close())
		e.c = nil
	}
	if e.file != nil {
		errs = append(errs, e.file.Close())
		e.file = nil
	}
	return errors.Join(errs...)
}
