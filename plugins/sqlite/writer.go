package sqlite

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

const maxMessageSize = maxLength - rowOverhead

// sides are the files that SQLite may keep beside a database.
var sides = []string{"-journal", "-wal", "-shm"}

// writer records into one database. mu is held by every call but Size.
type writer struct {
	path   string
	preset preset
	humble bool
	size   atomic.Int64

	mu       sync.Mutex
	file     *os.File // the database, for what SQLite does not do; closed after c, since closing it might drop SQLite's locks
	c        *conn
	insert   *stmt // messages
	pack     *stmt // gobag_data
	begin    *stmt
	commit   *stmt
	pages    *stmt
	pageSize int64
	pushed   int64 // bytes of the file whose way to the disk has been started

	topics  []writerTopic // by topic id − 1
	lastID  int64
	start   int64 // first and last stamp, if there are messages
	end     int64
	packer  packer
	inTx    bool
	txBytes int64 // payload bytes in the open transaction
	err     error // of a failed write or sync; stays
	closed  bool
}

type writerTopic struct {
	plugin.Topic
	count uint64
	bytes int64
}

// create makes the database under a temporary name and publishes it whole, so that whatever the moment of a crash the
// file at path is a database with all its tables; then it opens it for recording.
func create(ctx context.Context, path string, o plugin.WriteOptions) (*writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	pr, err := lookupPreset(o.Preset)
	if err != nil {
		return nil, err
	}
	pragmas, err := parseConfig(o.Config)
	if err != nil {
		return nil, err
	}
	for _, side := range append([]string{""}, sides...) {
		if _, err := os.Lstat(path + side); err == nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(path+side), plugin.ErrExists)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	tmp := fsx.TempName(path)
	if err := buildEmpty(tmp, o, pragmas); err != nil {
		return nil, errors.Join(err, os.Remove(tmp))
	}
	if err := fsx.PublishNew(tmp, path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = plugin.ErrExists
		}
		return nil, errors.Join(err, os.Remove(tmp))
	}
	w := &writer{path: path, preset: pr, humble: o.Compat == plugin.CompatHumble}
	if err := w.open(pragmas); err != nil {
		err = errors.Join(err, w.closeConn(), os.Remove(path))
		for _, side := range sides {
			if rerr := os.Remove(path + side); !errors.Is(rerr, fs.ErrNotExist) {
				err = errors.Join(err, rerr)
			}
		}
		return nil, err
	}
	return w, nil
}

// buildEmpty makes and syncs a database at path, which must not exist, with all tables and no messages.
func buildEmpty(path string, o plugin.WriteOptions, pragmas []pragma) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := openConn(path, sqlite3.SQLITE_OPEN_READWRITE, "")
	if err != nil {
		return err
	}
	defer c.close()
	for _, p := range []string{"page_size = " + fmt.Sprint(pageSize), "locking_mode = EXCLUSIVE", "journal_mode = OFF", "synchronous = OFF"} {
		if _, _, err := c.queryText("PRAGMA " + p); err != nil {
			return err
		}
	}
	if err := checkPragmas(c, pragmas); err != nil {
		return err
	}
	early := slices.DeleteFunc(slices.Clone(pragmas), func(p pragma) bool { return !p.beforeTables() })
	if err := applyPragmas(c, early); err != nil {
		return err
	}
	if err := c.exec("BEGIN"); err != nil {
		return err
	}
	if err := createTables(c, o); err != nil {
		return err
	}
	if err := c.exec("COMMIT"); err != nil {
		return err
	}
	if err := c.close(); err != nil {
		return err
	}
	return f.Sync()
}

// open opens the finished empty database for recording.
func (w *writer) open(pragmas []pragma) (err error) {
	if w.file, err = os.Open(w.path); err != nil {
		return err
	}
	if w.c, err = openConn(w.path, sqlite3.SQLITE_OPEN_READWRITE, ""); err != nil {
		return err
	}
	for _, p := range []string{
		// Nobody who looks at the file may hold up the recording; see docs/formats/sqlite.md on reading it meanwhile.
		"locking_mode = EXCLUSIVE",
		"journal_mode = PERSIST",
		"synchronous = " + w.preset.synchronous,
		"cache_size = " + fmt.Sprint(-cacheKiB),
		"temp_store = MEMORY",
	} {
		if _, _, err := w.c.queryText("PRAGMA " + p); err != nil {
			return fmt.Errorf("pragma %s: %w", p, err)
		}
	}
	if err := applyPragmas(w.c, pragmas); err != nil {
		return err
	}
	if w.pageSize, _, err = w.c.queryInt("PRAGMA page_size"); err != nil {
		return err
	}
	for _, p := range []struct {
		s   **stmt
		sql string
	}{
		{&w.insert, "INSERT INTO messages(id, topic_id, timestamp, data) VALUES (?, ?, ?, ?)"},
		{&w.pack, "INSERT INTO gobag_data(id, data) VALUES (?, ?)"},
		{&w.begin, "BEGIN EXCLUSIVE"},
		{&w.commit, "COMMIT"},
		{&w.pages, "PRAGMA page_count"},
	} {
		if *p.s, err = w.c.prepare(p.sql); err != nil {
			return err
		}
	}
	// The first transaction takes the lock on the file and keeps it.
	if err := w.begin.run(); err != nil {
		return err
	}
	if err := w.commit.run(); err != nil {
		return err
	}
	return w.measure()
}

func (w *writer) usable() error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return plugin.ErrClosed
	}
	return nil
}

// fail keeps the error for all later calls.
func (w *writer) fail(op string, err error) error {
	w.err = fmt.Errorf("%s storage %s: %w", op, w.path, err)
	return w.err
}

func (w *writer) ensureTx() error {
	if w.inTx {
		return nil
	}
	if err := w.begin.runBound(); err != nil {
		return err
	}
	w.inTx, w.txBytes = true, 0
	return nil
}

// commitTx ends the open transaction: what it holds survives a crash when this returns.
func (w *writer) commitTx() error {
	if !w.inTx {
		return nil
	}
	if err := w.writePack(); err != nil {
		return err
	}
	if err := w.commit.runBound(); err != nil {
		return err
	}
	w.inTx = false
	w.pushed = w.size.Load()
	return nil
}

// pushEvery is how many bytes SQLite may have handed to the system before their way to the disk is started.
const pushEvery = 4 << 20

// push starts writing what has left SQLite's cache, so that the commit finds little to wait for.
func (w *writer) push() {
	if done := w.size.Load() - cacheKiB<<10; done-w.pushed >= pushEvery {
		_ = fsx.StartWriteback(w.file, w.pushed, done-w.pushed) // only a hint
		w.pushed = done
	}
}

func (w *writer) writePack() error {
	if w.packer.n == 0 {
		return nil
	}
	first, row := w.packer.take()
	return w.pack.run(first, row)
}

// measure brings size up to date. It never falls, though the pack in memory takes up more than it will in its page.
func (w *writer) measure() error {
	ok, err := w.pages.step()
	if err != nil || !ok {
		return errors.Join(err, w.pages.reset())
	}
	w.size.Store(max(w.size.Load(), w.pages.int64(0)*w.pageSize+w.packer.size()))
	return w.pages.reset()
}

func (w *writer) Size() int64 { return w.size.Load() }

func (w *writer) Write(batch []plugin.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	for i := range batch {
		m := &batch[i]
		if m.Topic == 0 || int64(m.Topic) > int64(len(w.topics)) {
			return fmt.Errorf("write storage %s: message %d of %d: topic %d: %w", w.path, i+1, len(batch), m.Topic, plugin.ErrUnknownTopic)
		}
		if len(m.Data) > maxMessageSize {
			return fmt.Errorf("write storage %s: message %d of %d: %d bytes, the limit is %d: %w",
				w.path, i+1, len(batch), len(m.Data), maxMessageSize, plugin.ErrUnsupported)
		}
	}
	for i := range batch {
		if err := w.message(&batch[i]); err != nil {
			return w.fail("write", err)
		}
	}
	if err := w.measure(); err != nil {
		return w.fail("write", err)
	}
	w.push()
	return nil
}

func (w *writer) message(m *plugin.Message) error {
	id := w.lastID + 1
	if m.Order > uint64(w.lastID) && m.Order < 1<<63 {
		id = int64(m.Order)
	}
	if id <= w.lastID {
		return errors.New("message numbers are used up")
	}
	if err := w.ensureTx(); err != nil {
		return err
	}
	s := w.insert
	s.keep = s.keep[:0]
	err := errors.Join(s.bindInt64(1, id), s.bindInt64(2, int64(m.Topic)), s.bindInt64(3, m.RecvTime), s.bindBlob(4, m.Data))
	if err == nil {
		err = s.runBound()
	}
	clear(s.keep)
	if err != nil {
		return err
	}
	if w.lastID == 0 {
		w.start, w.end = m.RecvTime, m.RecvTime
	}
	w.start, w.end = min(w.start, m.RecvTime), max(w.end, m.RecvTime)
	w.lastID = id
	t := &w.topics[m.Topic-1]
	t.count++
	t.bytes += int64(len(m.Data))
	w.packer.add(id, m)
	if w.packer.n >= packMessages {
		if err := w.writePack(); err != nil {
			return err
		}
	}
	w.txBytes += int64(len(m.Data)) + rowOverhead
	if w.txBytes >= w.preset.commitBytes {
		return w.commitTx()
	}
	return nil
}

func (w *writer) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	if err := w.commitTx(); err != nil {
		return w.fail("sync", err)
	}
	return nil
}

func (w *writer) AddTopic(t plugin.Topic) (plugin.TopicID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return 0, err
	}
	if t.Definition.Text == "" {
		t.Definition = plugin.Definition{}
	}
	i := slices.IndexFunc(w.topics, func(o writerTopic) bool { return o.Name == t.Name && o.Type == t.Type })
	err := w.ensureTx()
	if err == nil && i < 0 {
		i = len(w.topics)
		t.ID = plugin.TopicID(i + 1)
		err = w.insertTopic(&t)
		t.Sources = slices.Clone(t.Sources)
		w.topics = append(w.topics, writerTopic{Topic: t})
	} else if err == nil {
		err = w.updateTopic(&w.topics[i].Topic, &t)
	}
	if err == nil {
		err = w.measure()
	}
	if err != nil {
		return 0, w.fail("add topic to", err)
	}
	return w.topics[i].ID, nil
}

// Close finishes the storage. After a failed write it only closes the file: what was committed stays.
func (w *writer) Close(m plugin.Metadata) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	err := w.err
	if err == nil {
		err = w.finish(m)
	} else if w.inTx {
		_ = w.c.exec("ROLLBACK") // SQLite may have rolled back by itself
	}
	err = errors.Join(err, w.closeConn(), fsx.SyncDir(filepath.Dir(w.path)))
	if fi, serr := os.Stat(w.path); serr == nil {
		w.size.Store(fi.Size())
	}
	if err != nil {
		return fmt.Errorf("close storage %s: %w", w.path, err)
	}
	return nil
}

// finish writes what only a closed storage has, and removes the journal.
func (w *writer) finish(m plugin.Metadata) error {
	if err := w.commitTx(); err != nil {
		return err
	}
	if mode, _, err := w.c.queryText("PRAGMA journal_mode"); err != nil {
		return err
	} else if mode == "wal" { // the user's wish; leaving it writes to the header, which the state below must not miss
		if _, _, err := w.c.queryText("PRAGMA journal_mode = DELETE"); err != nil {
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
	_, _, err := w.c.queryText("PRAGMA journal_mode = DELETE")
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
