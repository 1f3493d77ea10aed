package leveldb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/syndtr/goleveldb/leveldb/storage"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// dirLock is LevelDB's lock of a directory: while it is held no other LevelDB opens it for writing.
type dirLock struct {
	dir string
	s   storage.Storage
}

func lockDir(dir string) (*dirLock, error) {
	s, err := storage.OpenFile(dir, false)
	if err != nil {
		return nil, err
	}
	return &dirLock{dir, s}, nil
}

func (l *dirLock) unlock() error {
	err := l.s.Close()
	_ = os.Remove(filepath.Join(l.dir, "LOG")) // of the library; it says only that it was opened
	return err
}

// create makes the directory with an empty database in it.
func create(ctx context.Context, dir string, o plugin.WriteOptions) (w *writer, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := lookupPreset(o.Preset)
	if err != nil {
		return nil, err
	}
	set, err := parseConfig(p, o.Config)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = plugin.ErrExists
		}
		return nil, err
	}
	w = &writer{dir: dir, set: set, mem: newMemtable(&set), nextFile: 1, definitions: map[plugin.Definition]uint32{},
		tables: counts{}, format: encodeFormat(o.ROSDistro), metadata: o.Metadata,
		tw: tableWriter{blockSize: set.block, snappy: set.snappy, unpushed: !set.syncTables}}
	w.changed = sync.NewCond(&w.mu)
	defer func() {
		if err != nil {
			err = errors.Join(err, w.closeFiles(), os.RemoveAll(dir))
		}
	}()
	if w.lock, err = lockDir(dir); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	manifest := w.newNumber()
	meta := w.newNumber()
	w.mem.num = w.newNumber()
	if w.meta, err = createJournal(w.path(journalName(meta)), nil); err != nil {
		return nil, err
	}
	es := []entry{{[]byte{kindFormat}, w.format}}
	if o.Metadata != (plugin.Metadata{}) {
		es = append(es, entry{[]byte{kindMetadata}, encodeMetadata(o.Metadata)})
	}
	if err := w.put(es...); err != nil {
		return nil, err
	}
	if err := w.meta.f.Sync(); err != nil {
		return nil, err
	}
	if w.manifest, err = createJournal(w.path(manifestName(manifest)), nil); err != nil {
		return nil, err
	}
	var e edit
	e.comparator(bytewiseComparator)
	e.number(tagLogNumber, w.mem.num)
	e.number(tagPrevLogNumber, meta)
	e.number(tagNextFile, w.nextFile)
	e.number(tagLastSequence, 0)
	if err := w.manifest.record(e.b); err != nil {
		return nil, err
	}
	if err := w.manifest.f.Sync(); err != nil {
		return nil, err
	}
	if err := fsx.Publish(w.path(currentFile), []byte(manifestName(manifest)+"\n")); err != nil { // syncs the directory
		return nil, err
	}
	w.meta.named.Store(true)
	w.manifest.named.Store(true)
	if err := fsx.SyncDir(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	w.measure()
	w.workers.Add(2)
	go w.flushLoop()
	go w.sealLoop()
	return w, nil
}
