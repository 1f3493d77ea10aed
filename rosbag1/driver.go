package rosbag1

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

// Name is the storage identifier. No rosbag2 knows it.
func (Driver) Name() string { return "rosbag1" }

// Extension is that of ROS 1.
func (Driver) Extension() string { return ".bag" }

// Features says what the format can do.
func (Driver) Features() plugin.Features {
	return plugin.Features{Definitions: true, Reverse: true, ReadOnly: true, Buffers: loadedBytes}
}

// Detect looks for the first line of a ROS 1 bag, of any version.
func (Driver) Detect(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return false, err
	}
	b := make([]byte, len(magicPrefix))
	if _, err := io.ReadFull(f, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		return false, err
	}
	return string(b) == magicPrefix, nil
}

// Create refuses: bags of ROS 1 are read only.
func (Driver) Create(_ context.Context, path string, _ plugin.WriteOptions) (plugin.Writer, error) {
	return nil, fmt.Errorf("create storage %s: %w: bags of ROS 1 are read, not written; choose another format", path, plugin.ErrUnsupported)
}

// OpenReader opens a bag, whatever state its writer left it in.
func (Driver) OpenReader(ctx context.Context, path string, o plugin.ReadOptions) (plugin.Reader, error) {
	for k := range o.Config {
		return nil, fmt.Errorf("open storage %s: unknown storage configuration key %q (rosbag1 has none)", path, k)
	}
	r, err := open(ctx, path, false)
	if err == nil {
		return r, nil
	}
	var corrupt *plugin.CorruptError
	if errors.As(err, &corrupt) { // names the path itself
		return nil, fmt.Errorf("open storage: %w", err)
	}
	return nil, fmt.Errorf("open storage %s: %w", path, err)
}
