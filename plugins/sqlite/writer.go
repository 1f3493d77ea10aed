package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

const maxMessageSize = maxLength - rowOverhead

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
