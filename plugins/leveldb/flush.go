package leveldb

import (
	"encoding/binary"
	"errors"
	"os"
)

// sealedTables are tables that are written, of one write buffer, and what is known of them.
type sealedTables struct {
	tables   []tableRef
	last     *os.File // of the last table; those before are closed
	counts   counts
	messages uint64
	journal  *journalWriter // which they replace; nil if there is none
	num      uint64         // of the journal
	next     uint64         // of the journal that is the oldest without them
	raw      int64          // bytes before compression
}

// discard closes what is open, after an error.
func (s *sealedTables) discard() {
	if s.last != nil {
		_ = s.last.Close() // it does not count
	}
	if s.journal != nil {
		s.journal.discard()
	}
}

// flushLoop turns frozen write buffers into tables until the writer is closed or has failed. A buffer is free again when
// its table is written and the one before is safe; that this one is, sealLoop sees to while the next fills.
func (w *writer) flushLoop() {
	defer w.workers.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for w.err == nil && (w.frozen == nil && !w.closed || w.frozen != nil && w.frozen.pinned) {
			w.changed.Wait()
		}
		if w.err != nil || w.frozen == nil {
			return
		}
		if err := w.flush(w.frozen); err != nil {
			_ = w.fail("write", err)
			return
		}
	}
}

// flush makes a table of m and hands it to sealLoop. mu is held; it is given up meanwhile.
func (w *writer) flush(m *memtable) error {
	first := w.newNumber() // one table nearly always; further ones where max_file_size asks for them
	s := &sealedTables{messages: uint64(len(m.entries)), journal: m.journal, num: m.num, next: w.mem.num, counts: m.byTopic(), raw: w.frozenSize}
	w.mu.Unlock()
	err := w.writeTables(m, first, s)
	w.mu.Lock()
	for w.sealed != nil && w.err == nil {
		w.changed.Wait()
	}
	if err == nil {
		err = w.err
	}
	m.reset(w.set.writeBuf)
	if err != nil {
		s.discard()
		return err
	}
	w.spare, w.frozen, w.frozenSize, w.sealed = m, nil, 0, s
	for _, t := range s.tables {
		w.tableBytes += t.size
	}
	w.rawBytes += s.raw
	w.measure()
	w.changed.Broadcast()
	return nil
}

// sealLoop waits for tables to be safe and makes them count, until the writer is closed or has failed.
func (w *writer) sealLoop() {
	defer w.workers.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for w.sealed == nil && w.err == nil && !w.closed {
			w.changed.Wait()
		}
		if w.sealed == nil {
			return
		}
		if w.err == nil {
			if err := w.seal(w.sealed); err != nil {
				_ = w.fail("write", err)
			}
		}
		if w.err != nil {
			w.sealed.discard()
			return
		}
		w.sealed = nil
		w.changed.Broadcast()
	}
}

// seal makes tables count. mu is held; it is given up meanwhile.
func (w *writer) seal(s *sealedTables) error {
	w.mu.Unlock()
	err := sealFile(s.last, w.set.syncTables)
	if err == nil {
		err = w.syncDir()
	}
	w.mu.Lock()
	if err == nil {
		err = w.commit(s)
	}
	if err != nil {
		return err
	}
	w.flushed += s.messages
	w.measure()
	w.changed.Broadcast()
	if s.journal != nil {
		w.dropJournal(s.journal)
		s.journal = nil
		w.mu.Unlock()                             // to remove a file takes milliseconds
		_ = os.Remove(w.path(journalName(s.num))) // a leftover is not read again
		w.mu.Lock()
	}
	return nil
}

// writeTables writes what m holds. mu is not held.
func (w *writer) writeTables(m *memtable, first uint64, s *sealedTables) error {
	if m.sorted && !m.plain && int64(len(m.table.out)) <= int64(w.set.maxFileSize) {
		return w.writeWhole(m, first, s)
	}
	m.sort()
	var key [messageKeySize + trailerSize]byte
	for i := 0; i < len(m.entries); {
		num := first
		if s.last != nil {
			if err := sealFile(s.last, w.set.syncTables); err != nil {
				return err
			}
			w.mu.Lock()
			num = w.newNumber()
			w.mu.Unlock()
		}
		t := tableRef{num: num}
		f, err := w.createTable(num)
		if err != nil {
			return err
		}
		w.tw.reset(f)
		for ; i < len(m.entries) && (t.smallest == nil || w.tw.length() < int64(w.set.maxFileSize)); i++ {
			e := &m.entries[i]
			k := binary.LittleEndian.AppendUint64(appendMessageKey(key[:0], e.stamp), typeValue)
			if t.smallest == nil {
				t.smallest = append(t.smallest, k...)
			}
			if err := w.tw.add(k, m.value(e)); err != nil {
				return errors.Join(err, f.Close())
			}
		}
		if err := finishTable(&w.tw, &t, m.entries[i-1].stamp); err != nil {
			return errors.Join(err, f.Close())
		}
		s.tables, s.last = append(s.tables, t), f
	}
	return nil
}

// writeWhole writes the bytes that m has gathered.
func (w *writer) writeWhole(m *memtable, num uint64, s *sealedTables) error {
	f, err := w.createTable(num)
	if err != nil {
		return err
	}
	t := tableRef{num: num, smallest: tableKey(m.entries[0].stamp)}
	if err := m.table.toFile(f); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := finishTable(&m.table, &t, m.entries[len(m.entries)-1].stamp); err != nil {
		return errors.Join(err, f.Close())
	}
	s.tables, s.last = []tableRef{t}, f
	return nil
}

func (w *writer) createTable(num uint64) (*os.File, error) {
	return os.OpenFile(w.path(tableName(num)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// finishTable ends a table of messages.
func finishTable(tw *tableWriter, t *tableRef, last stamp) error {
	t.largest = tableKey(last)
	err := tw.finish()
	t.size = tw.size
	return err
}

// tableKey is the key of a message as it stands in tables.
func tableKey(s stamp) []byte {
	return binary.LittleEndian.AppendUint64(appendMessageKey(nil, s), typeValue)
}

// commit makes tables part of the database in place of a journal. mu is held; it is given up while waiting for the disk.
func (w *writer) commit(s *sealedTables) error {
	first, last := s.tables[0].num, s.tables[len(s.tables)-1].num
	if err := w.put(entry{countsKey(first, last), encodeCounts(s.counts)}); err != nil {
		return err
	}
	w.metaBytes -= countsRecordSize(s.counts) // Close sums them up
	var e edit
	e.number(tagLogNumber, s.next)
	e.number(tagNextFile, w.nextFile)
	for _, t := range s.tables {
		t.level = w.place(t)
		e.newFile(t)
	}
	w.tables.merge(s.counts)
	if err := w.writeEdit(e); err != nil || !w.set.syncTables {
		return err
	}
	if s.journal == nil && w.frozen != nil {
		return nil // the next table comes right away, and nothing is removed for this one
	}
	return w.syncManifest()
}

func countsRecordSize(cs counts) int64 {
	return int64(17 + len(encodeCounts(cs)) + trailerSize)
}

// writeEdit writes an edit after the topics that it may need, which are synced unless sync_tables is off.
func (w *writer) writeEdit(e edit) error {
	if w.metaGen != w.metaSafe && w.set.syncTables {
		if err := w.syncMeta(); err != nil {
			return err
		}
	}
	w.manifestGen++
	return w.manifest.record(e.b)
}

// syncManifest syncs the MANIFEST as far as it has come. mu is held; it is given up meanwhile.
func (w *writer) syncManifest() error {
	gen := w.manifestGen
	w.mu.Unlock()
	err := w.manifest.sync(w.dir)
	w.mu.Lock()
	if err == nil {
		w.manifestSafe = max(w.manifestSafe, gen)
	}
	return err
}

// place returns the level that a table goes to: the deepest one whose tables all end before it, where no LevelDB will
// ever compact it; 0, where tables may overlap, if there is none.
func (w *writer) place(t tableRef) int {
	first, _ := parseMessageKey(t.smallest[:messageKeySize]) // our own
	end, _ := parseMessageKey(t.largest[:messageKeySize])
	for level := maxLevel; level > 0; level-- {
		if l := &w.levels[level]; !l.used || l.end.less(first) {
			*l = levelEnd{true, end}
			return level
		}
	}
	return 0
}
