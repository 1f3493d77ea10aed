package leveldb

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// Close implements plugin.Writer.
func (w *writer) Close(m plugin.Metadata) error {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	w.mu.Lock()
	if w.closed {
		defer w.mu.Unlock()
		return w.err
	}
	err := w.err
	if err == nil {
		err = w.flushNow()
	}
	w.closed = true
	w.changed.Broadcast()
	w.mu.Unlock()
	w.workers.Wait()

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		if m != (plugin.Metadata{}) {
			w.metadata = m
		}
		if ferr := w.finish(); ferr != nil {
			err = w.fail("close", ferr)
		}
	}
	if cerr := w.closeFiles(); cerr != nil && err == nil {
		err = w.fail("close", cerr)
	}
	return err
}

// finish puts the description into a table and ends all journals.
func (w *writer) finish() error {
	t, err := w.writeDescription()
	if err != nil {
		return err
	}
	var e edit
	e.number(tagLogNumber, w.nextFile)
	e.number(tagPrevLogNumber, 0)
	e.number(tagNextFile, w.nextFile+1)
	e.number(tagLastSequence, w.seq)
	e.newFile(t)
	if err := w.manifest.record(e.b); err != nil {
		return err
	}
	if err := w.manifest.f.Sync(); err != nil {
		return err
	}
	es, err := os.ReadDir(w.dir)
	if err != nil {
		return err
	}
	var size int64
	for _, d := range es {
		if num, ok := parseJournalName(d.Name()); ok && num < w.nextFile {
			if err := os.Remove(w.path(d.Name())); err != nil {
				return err
			}
			continue
		}
		if fi, err := d.Info(); err == nil && d.Name() != "LOG" {
			size += fi.Size()
		}
	}
	w.size.Store(size)
	return fsx.SyncDir(w.dir)
}

// writeDescription writes the table of everything but messages.
func (w *writer) writeDescription() (t tableRef, err error) {
	es := []entry{{[]byte{kindFormat}, w.format}}
	if w.metadata != (plugin.Metadata{}) {
		es = append(es, entry{[]byte{kindMetadata}, encodeMetadata(w.metadata)})
	}
	es = append(es, entry{[]byte{kindTotals}, encodeCounts(w.tables)})
	defs := make([]plugin.Definition, len(w.definitions))
	for d, n := range w.definitions {
		defs[n-1] = d
	}
	for i, d := range defs {
		es = append(es, entry{numberKey(kindDefinition, uint32(i+1)), encodeDefinition(d)})
	}
	for i := range w.topics {
		es = append(es, entry{numberKey(kindTopic, uint32(i+1)), encodeTopic(&w.topics[i].Topic, w.topics[i].def)})
	}
	slices.SortFunc(es, func(a, b entry) int { return slices.Compare(a.key, b.key) })

	t = tableRef{num: w.newNumber(), level: maxLevel}
	f, err := os.OpenFile(w.path(tableName(t.num)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return t, err
	}
	w.tw.reset(f)
	var k []byte
	for _, e := range es {
		w.seq++
		k = binary.LittleEndian.AppendUint64(append(k[:0], e.key...), w.seq<<8|typeValue)
		if t.smallest == nil {
			t.smallest = slices.Clone(k)
		}
		if err := w.tw.add(k, e.value); err != nil {
			return t, errors.Join(err, f.Close())
		}
	}
	t.largest = k
	if err := w.tw.finish(); err != nil {
		return t, errors.Join(err, f.Close())
	}
	t.size = w.tw.size
	if err := sealFile(f, true); err != nil {
		return t, err
	}
	return t, fsx.SyncDir(w.dir)
}

// closeFiles closes what is open.
func (w *writer) closeFiles() error {
	var errs []error
	for _, m := range []*memtable{w.mem, w.frozen} {
		if m != nil && m.journal != nil {
			m.journal.discard()
		}
	}
	for _, j := range []*journalWriter{w.meta, w.manifest} {
		if j != nil {
			j.discard()
		}
	}
	if w.lock != nil {
		errs = append(errs, w.lock.unlock())
	}
	return errors.Join(errs...)
}

// parseJournalName returns the number of a journal's file.
func parseJournalName(name string) (uint64, bool) {
	return parseNumbered(name, ".log")
}

func parseNumbered(name, ext string) (uint64, bool) {
	var n uint64
	if len(name) <= len(ext) || name[len(name)-len(ext):] != ext {
		return 0, false
	}
	for _, c := range name[:len(name)-len(ext)] {
		if c < '0' || c > '9' || n > 1<<59 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}
