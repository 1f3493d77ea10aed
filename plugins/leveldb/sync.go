package leveldb

// Sync implements plugin.Writer. It waits for the tables in work, and then journals what they have not, or makes a table
// of it where the preset has it so. Write is not held up meanwhile.
func (w *writer) Sync() error {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	if w.set.journal == journalWrites { // hand over what a buffer still holds
		if j := w.mem.journal; j != nil {
			if err := j.flush(); err != nil {
				return w.fail("sync", err)
			}
		}
		return nil
	}
	// What is journaled at the end must not survive without the tables before it, nor without its topics.
	target := w.messages
	for {
		for w.flushed < target && (w.frozen != nil || w.sealed != nil) && w.err == nil {
			w.changed.Wait()
		}
		switch {
		case w.err != nil:
			return w.err
		case w.metaGen != w.metaSafe:
			if err := w.syncMeta(); err != nil {
				return w.fail("sync", err)
			}
		case w.manifestGen != w.manifestSafe && w.set.syncTables:
			if err := w.syncManifest(); err != nil {
				return w.fail("sync", err)
			}
		case w.flushed >= target:
			return nil
		case w.set.journal == journalLittle && w.mem.pending() > littlePending:
			if err := w.freeze(); err != nil {
				return err
			}
		default:
			if err := w.syncMem(); err != nil {
				return w.fail("sync", err)
			}
			return nil
		}
	}
}

// syncMem journals mem and syncs its journal. mu is held; it is given up meanwhile.
func (w *writer) syncMem() error {
	m := w.mem
	j, u, scratch, buf := m.journal, m.unjournaled(), w.syncScratch, w.spareBuf
	w.spareBuf = nil
	m.pinned = true
	w.mu.Unlock()
	var err error
	if j == nil {
		j, err = createJournal(w.path(journalName(m.num)), buf)
	}
	if err == nil {
		if scratch, err = u.appendTo(j, scratch); err == nil {
			err = j.flush()
		}
	}
	w.mu.Lock()
	w.syncScratch = scratch
	m.pinned = false
	m.journal = j
	m.journaled += len(u.entries)
	w.changed.Broadcast()
	if err != nil {
		return err
	}
	j.refs++
	w.mu.Unlock()
	err = j.sync(w.dir)
	w.mu.Lock()
	j.release()
	return err
}

// syncMeta syncs the journal of the description as far as it has come. mu is held; it is given up meanwhile.
func (w *writer) syncMeta() error {
	gen := w.metaGen
	w.mu.Unlock()
	err := w.meta.sync(w.dir)
	w.mu.Lock()
	if err == nil {
		w.metaSafe = max(w.metaSafe, gen)
	}
	return err
}
