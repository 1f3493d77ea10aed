package columnar

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugins/columnar/parquet"
)

// create makes the directory with a state file and an empty log.
func create(ctx context.Context, dir string, o plugin.WriteOptions) (w *writer, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	set, err := lookupPreset(o.Preset)
	if err == nil {
		err = set.configure(o.Config)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = plugin.ErrExists
		}
		return nil, err
	}
	w = &writer{dir: dir, set: set, byKey: map[topicKey]plugin.TopicID{}, wake: make(chan struct{}, 1), sealed: make(chan struct{}), finished: make(chan struct{})}
	w.room = sync.NewCond(&w.mu)
	s := &sealer{w: w, state: state{distro: o.ROSDistro, metadata: o.Metadata, firstLog: 1}}
	w.sealer = s
	defer func() {
		if err != nil {
			if w.f != nil {
				err = errors.Join(err, w.f.Close())
			}
			err = errors.Join(err, os.RemoveAll(dir))
			w = nil
		}
	}()
	if s.comp, err = parquet.NewCompressor(set.level); err != nil {
		return w, err
	}
	if err := os.Mkdir(filepath.Join(dir, logDir), 0o755); err != nil {
		return w, err
	}
	if err := w.nextSegment(); err != nil {
		return w, err
	}
	if err := fsx.SyncDir(filepath.Join(dir, logDir)); err != nil {
		return w, err
	}
	w.named = true
	if err := s.state.save(dir); err != nil { // syncs the directory
		return w, err
	}
	if err := fsx.SyncDir(filepath.Dir(dir)); err != nil {
		return w, err
	}
	w.updateSize()
	go s.run()
	return w, nil
}
