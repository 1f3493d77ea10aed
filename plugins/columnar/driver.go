package columnar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gobag/gobag/plugin"
)

// Driver is the format. The zero value is ready for use.
type Driver struct{}

func init() { plugin.Register(Driver{}) }

// Name is the storage identifier.
func (Driver) Name() string { return "columnar" }

// Extension is that of the directory.
func (Driver) Extension() string { return ".columnar" }

// Features says what the format can do.
func (Driver) Features() plugin.Features {
	f := plugin.Features{
		SendTime: true, Source: true, Metadata: true, Definitions: true, Reverse: true, Directory: true,
		MinSplitSize:   1 << 20,
		MaxMessageSize: maxMessage,
		Buffers:        maxInFlight + maxPending + maxEncoded,
	}
	for _, p := range presets {
		f.Presets = append(f.Presets, plugin.PresetInfo{Name: p.name, Help: p.help})
	}
	return f
}

// Detect looks for the state file and its first bytes.
func (Driver) Detect(path string) (bool, error) {
	fi, err := os.Stat(path)
	if err != nil || !fi.IsDir() {
		return false, err
	}
	f, err := os.Open(filepath.Join(path, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	b := make([]byte, len(stateMagic))
	if _, err := io.ReadFull(f, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		return false, err
	}
	return string(b) == stateMagic, nil
}

// Create makes a new directory and opens it for recording.
func (Driver) Create(ctx context.Context, path string, o plugin.WriteOptions) (plugin.Writer, error) {
	w, err := create(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("create storage %s: %w", path, err)
	}
	return w, nil
}

// OpenReader opens a directory of ours, whatever state its writer left it in or has it in right now.
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
