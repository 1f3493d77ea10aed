package mcap

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
func (Driver) Name() string { return "mcap" }

// Extension is rosbag2's.
func (Driver) Extension() string { return ".mcap" }

// Features says what the format can do.
func (Driver) Features() plugin.Features {
	f := plugin.Features{
		SendTime: true, Source: true, Metadata: true, Definitions: true, Reverse: true,
		MinSplitSize:   1024, // rosbag2's
		MaxMessageSize: maxMessage,
		Buffers:        8 << 20,
	}
	for _, p := range presets {
		f.Presets = append(f.Presets, plugin.PresetInfo{Name: p.name, Help: p.help})
	}
	return f
}

// Detect looks for the first eight bytes of an MCAP file.
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
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		return false, err
	}
	return string(b) == magic, nil
}

// Create makes a new file at path and opens it for recording.
func (Driver) Create(ctx context.Context, path string, o plugin.WriteOptions) (plugin.Writer, error) {
	w, err := create(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("create storage %s: %w", path, err)
	}
	return w, nil
}

// OpenReader opens an MCAP file, whatever state its writer left it in or has it in right now.
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
