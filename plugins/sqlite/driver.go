package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gobag/gobag/plugin"
)

// Driver is the format. The zero value is ready for use.
type Driver struct{}

func init() { plugin.Register(Driver{}) }

// Name is rosbag2's storage identifier.
func (Driver) Name() string { return "sqlite3" }

// Extension is rosbag2's.
func (Driver) Extension() string { return ".db3" }

// Features says what the format can do.
func (Driver) Features() plugin.Features {
	f := plugin.Features{
		SendTime: true, Source: true, Metadata: true, Definitions: true, Reverse: true,
		// The header, tables and indexes of one page each are there before the first message. Where pragmas make SQLite write
		// the pages itself they are larger, and so is the file that a small split becomes.
		MinSplitSize:   12 * pageSize,
		MaxMessageSize: maxMessageSize,
		Buffers:        8 << 20,
	}
	for _, p := range presets {
		f.Presets = append(f.Presets, plugin.PresetInfo{Name: p.name, Help: p.help})
	}
	return f
}

// Detect looks for the header of a SQLite database.
func (Driver) Detect(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return false, err
	}
	b := make([]byte, len(magic))
	if _, err := io.ReadFull(f, b); err != nil {
		return false, endOfLog(err)
	}
	return string(b) == magic, nil
}

// Create makes a new database at path and opens it for recording. A leftover journal under its name counts as
// something that is there already, since SQLite would play it back into the new file.
func (Driver) Create(ctx context.Context, path string, o plugin.WriteOptions) (plugin.Writer, error) {
	w, err := create(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("create storage %s: %w", path, err)
	}
	return w, nil
}

// OpenReader opens a database of schema 1 to 4, whatever state its writer left it in or has it in right now.
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
