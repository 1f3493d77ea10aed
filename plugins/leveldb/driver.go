package leveldb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gobag/gobag/plugin"
)

// Driver is the format. The zero value is ready for use.
type Driver struct{}

func init() { plugin.Register(Driver{}) }

// Name is the storage identifier that the C++ plugin has too.
func (Driver) Name() string { return "leveldb" }

// Extension is that of the directory. The directories of the C++ plugin have none.
func (Driver) Extension() string { return ".leveldb" }

// Features says what the format can do.
func (Driver) Features() plugin.Features {
	f := plugin.Features{
		SendTime: true, Source: true, Metadata: true, Definitions: true, Reverse: true, Directory: true,
		MinSplitSize:   64 << 10,
		MaxMessageSize: maxMessageSize,
		// Two write buffers, the places of their messages, and the buffers of journal and table. Measured: 12 to 16 MiB.
		Buffers: 2*defaultBuffer + 6<<20,
	}
	for _, p := range presets {
		f.Presets = append(f.Presets, plugin.PresetInfo{Name: p.name, Help: p.help})
	}
	return f
}

// Detect looks for a LevelDB directory with a bag in it, or for the directories of the C++ plugin. A database of which
// CURRENT, MANIFEST or the description is damaged is taken for a bag by its extension.
func (d Driver) Detect(path string) (bool, error) {
	fi, err := os.Stat(path)
	if err != nil || !fi.IsDir() {
		return false, err
	}
	if _, err := os.Stat(filepath.Join(path, currentFile)); errors.Is(err, fs.ErrNotExist) {
		pairs, err := findPairs(path)
		return len(pairs) > 0, err
	} else if err != nil {
		return false, err
	}
	r, err := openReader(context.Background(), path, plugin.ReadOptions{})
	if err == nil {
		return true, r.Close()
	}
	var corrupt *plugin.CorruptError
	switch {
	case errors.As(err, &corrupt):
		return filepath.Ext(path) == d.Extension(), nil
	case errors.Is(err, plugin.ErrFormat), errors.Is(err, plugin.ErrUnsupported):
		return false, nil
	}
	return false, err
}

// Create makes a new directory with a database and opens it for recording.
func (Driver) Create(ctx context.Context, path string, o plugin.WriteOptions) (plugin.Writer, error) {
	w, err := create(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("create storage %s: %w", path, err)
	}
	return w, nil
}

// OpenReader opens a database of ours, whatever state its writer left it in or has it in right now, or the databases of
// the C++ plugin.
func (Driver) OpenReader(ctx context.Context, path string, o plugin.ReadOptions) (plugin.Reader, error) {
	r, err := openReader(ctx, path, o)
	if err == nil {
		return r, nil
	}
	var corrupt *plugin.CorruptError
	if errors.As(err, &corrupt) { // names the path itself
		return nil, fmt.Errorf("open storage: %w", err)
	}
	return nil, fmt.Errorf("open storage %s: %w", path, err)
}
