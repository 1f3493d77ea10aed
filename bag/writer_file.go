package bag

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// openFile makes storage number n. It holds no topics yet.
func (w *Writer) openFile(ctx context.Context, n int) (*writerFile, error) {
	name := fmt.Sprintf("%s_%d%s", w.base, n, w.drv.Extension())
	m := w.metadata(StateRecording)
	m.addFile(FileMetadata{Path: name, Start: plugin.NoStart})
	dw, err := w.drv.Create(ctx, filepath.Join(w.dir, name), plugin.WriteOptions{Preset: w.o.Preset, Config: w.config,
		Compat: w.o.Compat, ROSDistro: w.o.ROSDistro, Metadata: m.EncodeStorage(0)})
	if err != nil {
		return nil, err
	}
	return &writerFile{w: dw, name: name}, nil
}

// remove takes away a storage that was made by mistake, with what belongs to it. What stays is in the way of the next
// file of that name.
func (w *Writer) remove(name string) {
	es, err := os.ReadDir(w.dir)
	for _, e := range es {
		if e.Name() == name || strings.HasPrefix(e.Name(), name+"-") {
			err = errors.Join(err, os.RemoveAll(filepath.Join(w.dir, e.Name())))
		}
	}
	if err != nil {
		w.log.Warn("a storage that was given up could not be removed", "file", name, "err", err)
	}
}

// Split closes the current file and begins a new one with the same topics. Without messages in the current file it does
// nothing. When the new file cannot be opened, the error is returned and the old one goes on.
func (w *Writer) Split() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	if w.file.count == 0 {
		return nil
	}
	return w.split()
}

func (w *Writer) split() error {
	old := w.file
	next, ids, err := w.openNext()
	if err != nil {
		return fmt.Errorf("write bag %s: begin a new file: %w", w.dir, err)
	}

	w.syncMu.Lock() // no sync of a file that is being closed
	err = old.w.Close(w.metadata(StateRecording).EncodeStorage(0))
	if err == nil {
		size := next.w.Size()
		w.stateMu.Lock()
		w.size = size
		w.files = append(w.files, old.metadata())
		w.perFile = append(w.perFile, w.countsInFile())
		w.filesSize += fsx.DiskSize(filepath.Join(w.dir, old.name))
		w.file = next
		w.begun++
		for i, id := range ids {
			w.topics[i].id, w.topics[i].inFile = id, 0
		}
		w.written++
		w.stateMu.Unlock()
		w.atHead = true
	}
	w.syncMu.Unlock()
	if err != nil {
		_ = next.w.Close(plugin.Metadata{}) // it has no messages
		w.remove(next.name)
		return w.fail(fmt.Errorf("close %s: %w", old.name, err))
	}

	gone := w.forgetOldest()
	if w.shrinker != nil && !slices.ContainsFunc(gone, func(f FileMetadata) bool { return f.Path == old.name }) {
		w.shrinker.add(old.name)
	}
	if err := w.publish(); err != nil {
		w.log.Warn("metadata.yaml could not be brought up to date; recording goes on", "err", err)
	}
	if w.o.OnSplit != nil {
		w.o.OnSplit(old.name, next.name)
	}
	w.deleteFiles(gone)
	return nil
}

// openNext opens the file after the current one and adds all topics.
func (w *Writer) openNext() (*writerFile, []plugin.TopicID, error) {
	next, err := w.openFile(context.Background(), w.begun)
	if err != nil {
		return nil, nil, err
	}
	ids := make([]plugin.TopicID, len(w.topics))
	for i := range w.topics {
		if ids[i], err = next.w.AddTopic(w.topics[i].topic); err != nil {
			_ = next.w.Close(plugin.Metadata{}) // it has no messages
			w.remove(next.name)
			return nil, nil, fmt.Errorf("add topic %q: %w", w.topics[i].topic.Name, err)
		}
	}
	return next, ids, nil
}

// packed notes that a closed storage was replaced by its compressed form.
func (w *Writer) packed(name string, before, after int64) {
	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	if w.file.name == name { // the last one, while the bag is closed
		w.file.name += zstdExt
		return
	}
	for i := range w.files {
		if w.files[i].Path == name {
			w.files[i].Path += zstdExt
			w.filesSize += after - before
		}
	}
}

// refusedPriority says once that compressors do not get their priority.
func (w *Writer) refusedPriority() func(error) {
	var once sync.Once
	return func(err error) {
		once.Do(func() {
			w.log.Warn("compressors run at the usual priority", "asked for", w.o.Compression.Priority, "err", err)
		})
	}
}

// metadata describes the file as it is.
func (f *writerFile) metadata() FileMetadata {
	m := FileMetadata{Path: f.name, MessageCount: f.count}
	m.Start, m.Duration = f.span.times()
	return m
}

func (m *Metadata) addFile(f FileMetadata) {
	m.Files = append(m.Files, f)
	m.Paths = append(m.Paths, f.Path)
}

// metadata describes the bag as it is. It is called with w.mu held, or before the writer is handed out.
func (w *Writer) metadata(state string) *Metadata {
	w.customMu.Lock()
	custom := maps.Clone(w.custom)
	w.customMu.Unlock()
	custom[KeyState] = state
	custom[KeyVersion] = Version

	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	if len(w.repeats) > 0 {
		custom[KeyRepeats] = encodeJSON(w.repeats)
	}
	m := &Metadata{Version: w.version, StorageIdentifier: w.drv.Name(), MessageCount: w.messages - w.deleted, CustomData: custom,
		ROSDistro: w.o.ROSDistro}
	m.CompressionMode, m.CompressionFormat = w.o.Compression.Mode, w.o.Compression.Format
	m.Start, m.Duration = w.span.times()
	for i := range w.topics {
		t := &w.topics[i]
		m.Topics = append(m.Topics, TopicMetadata{Name: t.topic.Name, Type: t.topic.Type,
			SerializationFormat: t.topic.SerializationFormat, OfferedQoS: t.qos, TypeHash: t.topic.TypeHash, MessageCount: t.messages - t.deleted})
	}
	for _, f := range w.files {
		m.addFile(f)
	}
	if w.file != nil {
		m.addFile(w.file.metadata())
	}
	return m
}

// publish writes metadata.yaml while the recording goes on.
func (w *Writer) publish() error {
	return fsx.Publish(filepath.Join(w.dir, MetadataFile), w.metadata(StateRecording).Encode(0))
}

// syncLoop syncs so often that a message is durable within SyncInterval of its Write: one that comes right after a sync
// has begun waits for the begin of the next and for its end. So syncs begin well within an interval of each other, and
// closer while the disk is slow.
func (w *Writer) syncLoop() {
	t := time.NewTimer(syncPeriod(w.o.SyncInterval, 0))
	defer t.Stop()
	var slow time.Duration // how long syncs take at worst, forgotten by and by
	for {
		select {
		case <-w.stopSync:
			return
		case <-t.C:
		}
		begun := time.Now()
		if err := w.Sync(); err != nil && !errors.Is(err, plugin.ErrClosed) {
			return // every later call says so
		}
		took := time.Since(begun)
		slow = max(took, slow*9/10)
		t.Reset(max(syncPeriod(w.o.SyncInterval, slow)-took, 0))
	}
}

// syncPeriod is the time between the begins of two syncs, of which each may take so long.
func syncPeriod(interval, slow time.Duration) time.Duration {
	return min(max(interval-2*slow, interval/8), interval*2/5)
}

// Sync returns nil when everything that Write had returned for before the call survives SIGKILL and power loss (within
// what the preset promises). The writer calls it by itself every SyncInterval.
func (w *Writer) Sync() error {
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	w.stateMu.Lock()
	f, written, err := w.file, w.written, w.err
	if err == nil && (f == nil || written == w.synced) { // nothing new
		w.syncedAt = time.Now()
		f = nil
	}
	w.stateMu.Unlock()
	if err != nil || f == nil {
		return err
	}
	begun := time.Now()
	if err := f.w.Sync(); err != nil {
		return w.fail(fmt.Errorf("sync %s: %w", f.name, err))
	}
	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	w.synced, w.syncedAt = written, begun
	w.longSync = max(w.longSync, time.Since(begun))
	return nil
}

// Close finishes the storage, writes metadata.yaml and unlocks the directory. After a failure it closes what can be
// closed, puts what the storage really holds into metadata.yaml and leaves the state at recording, so that readers look
// closely; the error is the failure, with those of closing joined. Idempotent.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.closeErr
	}
	close(w.stopSync)
	w.syncer.Wait()
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	failed := w.usable()
	w.closed = true
	if w.packer != nil {
		w.packer.close()
	}

	state := StateClosed
	if failed != nil {
		state = StateRecording
	}
	err := w.file.w.Close(w.metadata(state).EncodeStorage(0))
	if err != nil {
		err = fmt.Errorf("close %s: %w", w.file.name, err)
		state = StateRecording
	}
	if w.shrinker != nil {
		if state == StateClosed {
			w.shrinker.add(w.file.name)
		}
		if serr := w.shrinker.wait(); serr != nil {
			err = errors.Join(err, serr)
		}
	}
	m := w.metadata(state)
	if state != StateClosed {
		w.correct(m)
	}
	if perr := fsx.Publish(filepath.Join(w.dir, MetadataFile), m.Encode(0)); perr != nil {
		err = errors.Join(err, perr)
	}
	w.stateMu.Lock()
	w.files = append(w.files, w.file.metadata())
	w.perFile = append(w.perFile, w.countsInFile())
	w.filesSize += fsx.DiskSize(filepath.Join(w.dir, w.file.name))
	w.file = nil
	w.synced, w.syncedAt = w.written, time.Now()
	w.stateMu.Unlock()
	if lerr := w.lock.Unlock(); lerr != nil {
		err = errors.Join(err, lerr)
	}
	if err != nil {
		err = fmt.Errorf("close bag %s: %w", w.dir, err)
	}
	w.closeErr = errors.Join(failed, err)
	return w.closeErr
}

// correct puts what the last storage really holds into m after a failure, as far as it can be read. The files before it
// were closed in order.
func (w *Writer) correct(m *Metadata) {
	r, err := w.drv.OpenReader(context.Background(), filepath.Join(w.dir, w.file.name), plugin.ReadOptions{})
	if err != nil {
		w.log.Warn("the last storage cannot be read back; metadata.yaml counts what was written", "file", w.file.name, "err", err)
		return
	}
	defer r.Close()
	info := r.Info()
	last := &m.Files[len(m.Files)-1]
	if info.Messages == last.MessageCount {
		return
	}
	m.MessageCount = m.MessageCount - last.MessageCount + info.Messages
	var s span
	if info.Messages > 0 {
		s = span{true, info.Start, info.End}
	}
	last.MessageCount = info.Messages
	last.Start, last.Duration = s.times()
	for _, f := range w.files {
		if f.MessageCount > 0 {
			s.merge(span{true, f.Start, f.End()})
		}
	}
	m.Start, m.Duration = s.times()
	w.correctTopics(m, info)
}

// correctTopics sets the counts of topics to those of the closed files plus those of the last one. What Write took and the
// last one does not hold is lost, in the counts of the topics and in the loss ledger.
func (w *Writer) correctTopics(m *Metadata, last plugin.Info) {
	held := map[topicKey]uint64{}
	for _, t := range last.Topics {
		held[topicKey{t.Name, t.Type}] += t.Count
	}
	ledger, err := ParseLedger(m.CustomData[KeyLedger])
	known := err == nil
	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	for i := range m.Topics {
		t, s := &m.Topics[i], &w.topics[i]
		there := held[topicKey{t.Name, t.Type}]
		t.MessageCount = t.MessageCount - s.inFile + there
		if there >= s.inFile {
			continue
		}
		gone := min(s.inFile-there, s.messages-s.repeated)
		s.messages -= gone
		s.lost += gone
		w.messages -= gone
		if e, ok := ledger.Topics[t.Name]; ok {
			n := min(gone, e.Recorded)
			e.Recorded -= n
			e.Lost.Storage += n
			ledger.Topics[t.Name] = e
		}
	}
	if known && len(ledger.Topics) > 0 {
		m.CustomData[KeyLedger] = ledger.Encode()
	}
}
