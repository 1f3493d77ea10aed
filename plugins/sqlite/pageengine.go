package sqlite

import (
	"errors"
	"os"
	"path/filepath"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// pageEngine writes the pages of messages and of the index on their stamps itself, since their rows only ever come
// behind those that are there: new pages go to the end of the file, and few others change. The small tables it leaves to
// SQLite, on a connection to the same store.
type pageEngine struct {
	path     string
	lock     *conn    // of the file itself: it does nothing but keep others away
	file     *os.File // closed after lock, since closing it might drop SQLite's locks
	journal  *os.File
	st       *store
	es       *editStore
	c        *conn // on the store
	messages *tableTree
	stamps   *indexTree
	weight   int64 // payload bytes since the last commit
	most     int64
	finished bool

	packs    []packRow
	packData []byte // of packs, one behind the other
	packed   bool   // there are packs in the table
	packStmt *stmt
}

type packRow struct {
	first int64
	size  int
}

const (
	packsBytes = 8 << 10  // of packs, before they are given to SQLite: they lie near their messages then
	dirtyBytes = 16 << 20 // of changed pages of the last commit, before the next is due
)

func openPageEngine(path string, p preset, pragmas []pragma) (_ *pageEngine, err error) {
	e := &pageEngine{path: path, most: p.commitBytes}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if e.file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if e.lock, err = openConn(path, sqlite3.SQLITE_OPEN_READWRITE, ""); err != nil {
		return nil, err
	}
	if err := recordingPragmas(e.lock, p, nil); err != nil {
		return nil, err
	}
	if err := takeLock(e.lock); err != nil {
		return nil, err
	}
	size, _, err := e.lock.queryInt("PRAGMA page_size")
	if err != nil {
		return nil, err
	}
	// By the file of the journal a reader knows that what it sees beside the lock can be trusted.
	if e.journal, err = os.OpenFile(path+"-journal", os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	}
	if err := fsx.SyncDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if e.st, err = openStore(e.file, path, int(size)); err != nil {
		return nil, err
	}
	if e.c, e.es, err = openEdit(e.st); err != nil {
		return nil, err
	}
	for _, p := range pragmas { // cache_size: others were for the tables, or are for sqlEngine
		if !p.beforeTables() {
			if err := applyPragmas(e.c, []pragma{p}); err != nil {
				return nil, err
			}
		}
	}
	roots := map[string]uint32{}
	if err := e.c.query("SELECT name, rootpage FROM sqlite_master", func(s *stmt) error {
		roots[s.text(0)] = uint32(s.int64(1))
		return nil
	}); err != nil {
		return nil, err
	}
	if e.packStmt, err = e.c.prepare("INSERT INTO gobag_data(id, data) VALUES (?, ?)"); err != nil {
		return nil, err
	}
	e.messages, e.stamps = newTableTree(e.st, roots["messages"]), newIndexTree(e.st, roots["timestamp_idx"])
	return e, nil
}

func (e *pageEngine) insert(id int64, m *plugin.Message) error {
	if err := e.messages.add(id, int64(m.Topic), m.RecvTime, m.Data); err != nil {
		return err
	}
	e.weight += int64(len(m.Data)) + rowOverhead
	return e.stamps.add(key{m.RecvTime, id})
}

func (e *pageEngine) insertPack(first int64, row []byte) error {
	e.packs = append(e.packs, packRow{first, len(row)})
	e.packData = append(e.packData, row...)
	e.st.changed = true
	if len(e.packData) < packsBytes && e.packed {
		return nil
	}
	e.packed = true // the first one goes at once, see stateRoom
	return e.es.edit(e.writePacks)
}

// writePacks gives the packs that are waiting to SQLite.
func (e *pageEngine) writePacks() error {
	data := e.packData
	for _, p := range e.packs {
		s := e.packStmt
		s.keep = s.keep[:0]
		if err := errors.Join(s.bindInt64(1, p.first), s.bindBlob(2, data[:p.size])); err != nil {
			return err
		}
		if err := s.runBound(); err != nil {
			return err
		}
		data = data[p.size:]
	}
	e.packs, e.packData = e.packs[:0], e.packData[:0]
	return nil
}

// edit also writes the packs that are waiting.
func (e *pageEngine) edit(f func(c *conn) error) error {
	return e.es.edit(func() error {
		if err := e.writePacks(); err != nil {
			return err
		}
		return f(e.c)
	})
}

func (e *pageEngine) full() bool {
	return e.weight >= e.most || len(e.st.dirty)*e.st.pageSize >= dirtyBytes
}

func (e *pageEngine) commit() (*flight, error) {
	if !e.st.changed {
		return e.st.flight, nil
	}
	return e.start(func(*conn) error { return nil }, false)
}

func (e *pageEngine) start(f func(c *conn) error, last bool) (*flight, error) {
	if err := e.messages.seal(); err != nil {
		return nil, err
	}
	if err := e.stamps.seal(); err != nil {
		return nil, err
	}
	if len(e.packs) > 0 || last {
		if err := e.edit(f); err != nil {
			return nil, err
		}
	}
	if err := e.st.land(); err != nil {
		return nil, err
	}
	e.weight = 0
	return e.st.begin(e.journal, last)
}

func (e *pageEngine) bytes() (int64, error) {
	n := e.st.bytes() + int64(len(e.packData))
	if e.messages.page == 0 && len(e.messages.levels) > 0 {
		n += int64(e.st.pageSize) // the leaf that grows
	}
	return n, nil
}

func (e *pageEngine) counter() (uint32, error) { return e.st.counter(), nil }

func (e *pageEngine) stateSize() int { return e.st.pageSize - stateRoom }

func (e *pageEngine) finish(f func(c *conn) error) error {
	fl, err := e.start(f, true)
	if err != nil {
		return err
	}
	<-fl.done
	if err := e.st.land(); err != nil {
		return err
	}
	e.finished = true
	if err := e.journal.Close(); err != nil {
		return err
	}
	e.journal = nil
	return os.Remove(e.path + "-journal") // by which the last commit counts
}

func (e *pageEngine) close() error {
	var errs []error
	if e.st != nil && !e.finished {
		// Nothing of what was not committed is left behind, unless a journal is needed to undo it.
		if err := e.st.land(); err == nil {
			errs = append(errs, e.file.Truncate(int64(e.st.committed)*int64(e.st.pageSize)), e.journal.Close(), os.Remove(e.path+"-journal"))
			e.journal = nil
		}
	}
	if e.c != nil {
		if e.packStmt != nil {
			e.packStmt.finalize()
		}
		e.es.finalize()
		errs = append(errs, e.c.close())
		e.c = nil
	}
	if e.lock != nil {
		errs = append(errs, e.lock.close())
		e.lock = nil
	}
	for _, f := range []**os.File{&e.journal, &e.file} {
		if *f != nil {
			errs = append(errs, (*f).Close())
			*f = nil
		}
	}
	return errors.Join(errs...)
}
