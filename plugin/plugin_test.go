package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// named is the reference driver under another name.
type named struct {
	plugin.Driver
	name   string
	detect error
}

func (n named) Name() string { return n.name }
func (n named) Detect(path string) (bool, error) {
	if n.detect != nil {
		return false, n.detect
	}
	return n.Driver.Detect(path)
}

var broken = &named{Driver: plugintest.NewMemory(), name: "b-broken"}

func init() {
	plugin.Register(named{Driver: plugintest.NewMemory(), name: "c-format"})
	plugin.Register(broken)
}

func TestRegistry(t *testing.T) {
	ds := plugin.Drivers()
	if len(ds) != 2 || ds[0].Name() != "b-broken" || ds[1].Name() != "c-format" {
		t.Fatal(ds)
	}
	if d, err := plugin.Lookup("c-format"); err != nil || d.Name() != "c-format" {
		t.Error(d, err)
	}
	_, err := plugin.Lookup("d")
	if !errors.Is(err, plugin.ErrNoDriver) || !strings.Contains(err.Error(), `"d"`) || !strings.Contains(err.Error(), "b-broken, c-format") {
		t.Error(err)
	}
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "c-format") {
			t.Error("two drivers of one name:", r)
		}
	}()
	plugin.Register(named{Driver: plugintest.NewMemory(), name: "c-format"})
}

func TestDetectDriver(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.mem")
	w, err := plugintest.NewMemory().Create(context.Background(), path, plugin.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	if d, err := plugin.DetectDriver(path); err != nil || d.Name() != "b-broken" {
		t.Error(d, err)
	}
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := plugin.DetectDriver(other); !errors.Is(err, plugin.ErrNoDriver) || !strings.Contains(err.Error(), other) {
		t.Error(err)
	}
	if _, err := plugin.DetectDriver(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	broken.detect = fs.ErrPermission
	defer func() { broken.detect = nil }()
	if _, err := plugin.DetectDriver(path); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}

func TestCorruptError(t *testing.T) {
	cause := errors.New("bad page")
	for _, c := range []struct {
		offset int64
		want   string
	}{{-1, "corrupt storage x.db3: bad page"}, {0, "corrupt storage x.db3 at byte 0: bad page"}, {1 << 40, "corrupt storage x.db3 at byte 1099511627776: bad page"}} {
		err := error(&plugin.CorruptError{Path: "x.db3", Offset: c.offset, Err: cause})
		var corrupt *plugin.CorruptError
		if err.Error() != c.want || !errors.Is(err, cause) || !errors.As(fmt.Errorf("open: %w", err), &corrupt) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
