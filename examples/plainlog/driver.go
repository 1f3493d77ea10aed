package plainlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/gobag/gobag/plugin"
)

func init() { plugin.Register(Driver{}) }

// Driver is the format. It has no state, so it is safe for concurrent use.
type Driver struct{}

var presets = []plugin.PresetInfo{
	{Name: plugin.PresetResilient, Help: "SIGKILL loses nothing that was written, a power cut what came after the last sync"},
	{Name: plugin.PresetFast, Help: "the same as resilient"},
	{Name: plugin.PresetSmall, Help: "the same as resilient: this format does not compress"},
	{Name: plugin.PresetNone, Help: "the same as resilient"},
}

// Name is what metadata.yaml and -s call the format.
func (Driver) Name() string { return "plainlog" }

// Extension ends the names of its files.
func (Driver) Extension() string { return ".plainlog" }

// Features promises what the format keeps.
func (Driver) Features() plugin.Features {
	return plugin.Features{
		SendTime: true, Source: true, Metadata: true, Definitions: true, Reverse: true,
		MinSplitSize: 4 << 10, MaxMessageSize: maxPayload, Buffers: keptBuffer, Presets: presets,
	}
}

// Detect looks at the magic only.
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

// checkConfig refuses all keys: the format has none.
func checkConfig(c map[string]any) error {
	for key := range c {
		return fmt.Errorf("unknown storage configuration key %q (plainlog has none)", key)
	}
	return nil
}

func checkPreset(name string) error {
	if name == "" || slices.ContainsFunc(presets, func(p plugin.PresetInfo) bool { return p.Name == name }) {
		return nil
	}
	var names []string
	for _, p := range presets {
		names = append(names, p.Name)
	}
	return fmt.Errorf("unknown preset %q (there is: %s)", name, strings.Join(names, ", "))
}

// Create makes a file with a header, the options and, if there is some, the metadata. All checks come before the file.
func (Driver) Create(ctx context.Context, path string, o plugin.WriteOptions) (plugin.Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := errors.Join(checkPreset(o.Preset), checkConfig(o.Config)); err != nil {
		return nil, fmt.Errorf("create storage %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create storage %s: %w", path, plugin.ErrExists)
	}
	if err != nil {
		return nil, fmt.Errorf("create storage: %w", err)
	}
	w := newWriter(f)
	if err := errors.Join(w.begin(o), f.Sync(), syncDir(filepath.Dir(path))); err != nil {
		return nil, errors.Join(fmt.Errorf("create storage %s: %w", path, err), f.Close(), os.Remove(path))
	}
	return w, nil
}

// syncDir makes a new name durable. Windows has no such call and needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
