package bag

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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

// metadata describes the bag as it is.
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

// publish writes metadata.yaml while the recording goes on. What comes last is what stands there last.
func (w *Writer) publish() error {
	w.publishMu.Lock()
	defer w.publishMu.Unlock()
	return fsx.Publish(filepath.Join(w.dir, MetadataFile), w.metadata(StateRecording).Encode(0))
}

// republish does so where recording goes on without it.
func (w *Writer) republish() {
	if err := w.publish(); err != nil {
		w.log.Warn("metadata.yaml could not be brought up to date; recording goes on", "err", err)
	}
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
	if err := w.closeOld(); err != nil {
		return err
	}
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
	w.background.Wait()
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	failed := w.usable()
	w.closed = true
	if w.packer != nil {
		w.packer.close()
	}

	w.dropAhead()

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
