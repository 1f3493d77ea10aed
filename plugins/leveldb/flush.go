package leveldb

import (
	"encoding/binary"
	"errors"
	"os"
)

// flushLoop turns frozen write buffers into tables until the writer is closed or has failed.
func (w *writer) flushLoop() {
	defer w.flushers.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for w.frozen == nil && !w.closed && w.err == nil {
			w.changed.Wait()
		}
		if w.err != nil || w.frozen == nil {
			return
		}
		m := w.frozen
		first := w.newNumber() // one table nearly always; further ones where max_file_size asks for them
		w.mu.Unlock()
		tables, err := w.writeTables(m, first)
		w.mu.Lock()
		if err == nil {
			err = w.commit(m, tables)
		}
		if err != nil {
			_ = w.fail("write", err)
			return
		}
		m.reset(w.set.writeBuf)
		w.spare, w.frozen = m, nil
		w.changed.Broadcast()
		w.measure()
		old := w.oldLogs
		w.oldLogs = nil
		w.mu.Unlock() // to remove a file takes milliseconds
		w.removeOld(old)
		w.mu.Lock()
	}
}

// writeTables writes what m holds. mu is not held.
func (w *writer) writeTables(m *memtable, first uint64) (tables []tableRef, err error) {
	m.sort()
	var key [messageKeySize + trailerSize]byte
	for i := 0; i < len(m.entries); {
		num := first
		if len(tables) > 0 {
			w.mu.Lock()
			num = w.newNumber()
			w.mu.Unlock()
		}
		t := tableRef{num: num}
		f, err := os.OpenFile(w.path(tableName(num)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return nil, err
		}
		w.tw.reset(f)
		for ; i < len(m.entries) && (t.smallest == nil || w.tw.length() < int64(w.set.maxFileSize)); i++ {
			e := &m.entries[i]
			k := binary.LittleEndian.AppendUint64(appendMessageKey(key[:0], e.stamp), typeValue)
			if t.smallest == nil {
				t.smallest = append(t.smallest, k...)
			}
			if err := w.tw.add(k, m.value(e)); err != nil {
				return nil, errors.Join(err, f.Close())
			}
		}
		t.largest = append(t.largest, w.tw.last...)
		if len(t.largest) == 0 { // the last block is closed already
			t.largest = w.tw.lastIndexKey()
		}
		if err := w.tw.finish(); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		t.size = w.tw.size
		if err := sealFile(f, w.set.syncTables); err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	return tables, w.syncDir()
}

// commit makes the tables part of the database in place of m's journal. mu is held; it is given up while waiting for the
// disk.
func (w *writer) commit(m *memtable, tables []tableRef) error {
	last := tables[len(tables)-1]
	cs := m.byTopic()
	if err := w.put(entry{countsKey(tables[0].num, last.num), encodeCounts(cs)}); err != nil {
		return err
	}
	w.metaBytes -= countsRecordSize(cs) // Close sums them up
	var e edit
	e.number(tagLogNumber, w.mem.num)
	e.number(tagNextFile, w.nextFile)
	for _, t := range tables {
		t.level = w.place(t)
		e.newFile(t)
		w.tableBytes += t.size
	}
	w.rawBytes += int64(len(m.data) + 24*len(m.entries))
	w.tables.merge(cs)
	if err := w.commitEdit(e); err != nil {
		return err
	}
	if m.journal != nil {
		m.journal.discard()
		w.oldLogs = append(w.oldLogs, m.num)
	}
	return nil
}

func countsRecordSize(cs counts) int64 {
	return int64(17 + len(encodeCounts(cs)) + trailerSize)
}

// commitEdit writes an edit after the topics that it may need, each synced unless sync_tables is off.
func (w *writer) commitEdit(e edit) error {
	if gen := w.metaGen; gen != w.metaSafe && w.set.syncTables {
		w.mu.Unlock()
		err := w.meta.sync(w.dir)
		w.mu.Lock()
		if err != nil {
			return err
		}
		w.metaSafe = max(w.metaSafe, gen)
	}
	if err := w.manifest.record(e.b); err != nil {
		return err
	}
	if !w.set.syncTables {
		return nil
	}
	w.mu.Unlock()
	err := w.manifest.sync(w.dir)
	w.mu.Lock()
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

// removeOld removes journals that tables have replaced. mu is not held.
func (w *writer) removeOld(old []uint64) {
	for _, num := range old {
		_ = os.Remove(w.path(journalName(num))) // a leftover is not read again
	}
}
