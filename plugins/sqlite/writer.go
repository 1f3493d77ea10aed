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

// writer records into one database. mu is held by every call but Size, and not while a commit goes to the disk.
type writer struct {
	path   string
	preset preset
	humble bool
	size   atomic.Int64

	syncing sync.Mutex // of Sync and Close; comes before mu
	log     *syncLog   // nil where every Sync is a commit

	mu     sync.Mutex
	e      engine
	topics []writerTopic // by topic id − 1
	lastID int64
	start  int64 // first and last stamp, if there are messages
	end    int64
	packer packer
	flight *flight // the last commit that was started
	err    error   // of a failed write or sync; stays
	closed bool
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
	return w.landed()
}

// landed takes in the error of the last commit, if that has ended.
func (w *writer) landed() error {
	if w.flight == nil {
		return nil
	}
	select {
	case <-w.flight.done:
		if err := w.flight.err; err != nil {
			return w.fail("sync", err)
		}
		w.flight = nil
	default:
	}
	return nil
}

// fail keeps the error for all later calls.
func (w *writer) fail(op string, err error) error {
	w.err = fmt.Errorf("%s storage %s: %w", op, w.path, err)
	return w.err
}

// commit starts a commit of everything up to here.
func (w *writer) commit() error {
	if err := w.writePack(); err != nil {
		return err
	}
	fl, err := w.e.commit()
	if err != nil {
		return err
	}
	w.flight = fl
	if w.log != nil {
		base, err := w.e.counter()
		if err != nil {
			return err
		}
		w.log.restart(base)
	}
	return nil
}

func (w *writer) writePack() error {
	if w.packer.n == 0 {
		return nil
	}
	return w.e.insertPack(w.packer.take())
}

// measure brings size up to date. It never falls, though the pack in memory takes up more than it will in its page.
func (w *writer) measure() error {
	n, err := w.e.bytes()
	if err == nil {
		w.size.Store(max(w.size.Load(), n+w.packer.size()))
	}
	return err
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
	if err := w.e.insert(id, m); err != nil {
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
	if w.log != nil {
		w.log.add(id, m)
	}
	if w.packer.n >= packMessages {
		if err := w.writePack(); err != nil {
			return err
		}
	}
	if w.e.full() {
		return w.commit()
	}
	return nil
}

// Sync waits for the disk without keeping Write from going on.
func (w *writer) Sync() error {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	if done, err := w.logSync(); done || err != nil {
		return err
	}
	fl, err := w.startSync()
	if err != nil || fl == nil {
		return err
	}
	<-fl.done
	if fl.err == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		_ = w.fail("sync", fl.err) // the next line
	}
	return w.err
}

// logSync makes what was written since the last commit safe by a record of the log; done is false where a commit is to do
// that. The commit must have landed on top of which the record counts.
func (w *writer) logSync() (done bool, err error) {
	if w.log == nil {
		return false, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.flight != nil {
		fl := w.flight
		w.mu.Unlock()
		<-fl.done
		w.mu.Lock()
		if err := w.usable(); err != nil {
			return false, err
		}
	}
	if err := w.usable(); err != nil || w.log.due() {
		return false, err
	}
	if len(w.log.pending) == 0 {
		return true, nil
	}
	at, rec := w.log.off, w.log.take()
	w.log.off += int64(len(rec))
	w.mu.Unlock()
	err = w.log.write(rec, at)
	w.mu.Lock()
	if err != nil {
		return false, w.fail("sync", err)
	}
	return true, nil
}

func (w *writer) startSync() (*flight, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return nil, err
	}
	if err := w.commit(); err != nil {
		return nil, w.fail("sync", err)
	}
	return w.flight, nil
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
	if w.log != nil {
		w.log.over = true // it has only messages
	}
	err := w.e.edit(func(c *conn) error {
		if i >= 0 {
			return w.updateTopic(c, &w.topics[i].Topic, &t)
		}
		i = len(w.topics)
		t.ID = plugin.TopicID(i + 1)
		err := w.insertTopic(c, &t)
		t.Sources = slices.Clone(t.Sources)
		w.topics = append(w.topics, writerTopic{Topic: t})
		return err
	})
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
	w.syncing.Lock()
	defer w.syncing.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if w.err == nil && w.flight != nil {
		<-w.flight.done
		_ = w.landed() // it is in w.err
	}
	err := w.err
	if err == nil {
		err = w.finish(m)
	}
	err = errors.Join(err, w.e.close(), w.log.close(err != nil), fsx.SyncDir(filepath.Dir(w.path)))
	if fi, serr := os.Stat(w.path); serr == nil {
		w.size.Store(fi.Size())
	}
	if err != nil {
		return fmt.Errorf("close storage %s: %w", w.path, err)
	}
	return nil
}
