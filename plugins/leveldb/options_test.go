package leveldb

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
)

func TestConfig(t *testing.T) {
	s, err := parseConfig(presets[0], map[string]any{"compression": "snappy", "sync_tables": false, "open_options": map[string]any{
		"write_buffer_size": 1 << 20, "max_open_files": int64(100), "block_size": float64(8192), "max_file_size": uint64(4 << 20)}})
	if err != nil || !s.snappy || s.syncTables || s.writeBuf != 1<<20 || s.maxOpenFiles != 100 || s.block != 8192 || s.maxFileSize != 4<<20 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := parseConfig(presets[2], map[string]any{"compression": "none"}); err != nil || s.snappy {
		t.Errorf("small without compression: %+v, %v", s, err)
	}
	for _, c := range []struct {
		config map[string]any
		want   []string
	}{
		{map[string]any{"pragmas": 1}, []string{"pragmas", "open_options", "compression", "sync_tables"}},
		{map[string]any{"compression": "zstd"}, []string{"compression", "zstd", "snappy"}},
		{map[string]any{"compression": nil}, []string{"compression"}},
		{map[string]any{"sync_tables": "yes"}, []string{"sync_tables", "yes"}},
		{map[string]any{"open_options": 3}, []string{"open_options", "map"}},
		{map[string]any{"open_options": map[string]any{"cache": 1}}, []string{"cache", "write_buffer_size", "block_size"}},
		{map[string]any{"open_options": map[string]any{"block_size": 1, "max_open_files": "many"}}, []string{"block_size", "1024", "max_open_files", "many"}},
		{map[string]any{"open_options": map[string]any{"block_size": 8192.5}}, []string{"block_size", "8192.5"}},
		{map[string]any{"open_options": map[string]any{"write_buffer_size": -1}}, []string{"write_buffer_size", "-1"}},
	} {
		_, err := parseConfig(presets[0], c.config)
		if err == nil {
			t.Errorf("%v is accepted", c.config)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: the error does not name %q: %v", c.config, want, err)
			}
		}
	}
}

// The options have the effect they promise on the files.
func TestOptionsOnDisk(t *testing.T) {
	tables := func(config map[string]any, text string) (n int, size int64) {
		dir := filepath.Join(t.TempDir(), "s.leveldb")
		w := mustCreate(t, dir, plugin.WriteOptions{Config: config})
		id := mustTopic(t, w, plugin.Topic{Name: "/a", Type: "b"})
		for i := range 6000 {
			if err := w.Write([]plugin.Message{{Topic: id, RecvTime: int64(i), Data: []byte(strings.Repeat(text, 1000/len(text)))}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(plugin.Metadata{}); err != nil {
			t.Fatal(err)
		}
		ms, err := readAll(t, mustOpen(t, dir), plugin.Query{})
		if len(ms) != 6000 {
			t.Fatalf("%v: %d messages, %v", config, len(ms), err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.ldb"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files) - 1, w.Size()
	}
	open := func(key string, n int) map[string]any { return map[string]any{"open_options": map[string]any{key: n}} }
	if n, _ := tables(nil, "abcdefghij"); n != 1 && n != 2 {
		t.Errorf("by default: %d tables", n)
	}
	if n, _ := tables(open("write_buffer_size", 1<<20), "abcdefghij"); n != 6 && n != 7 {
		t.Errorf("write_buffer_size 1 MiB: %d tables", n)
	}
	if n, _ := tables(open("max_file_size", 1<<20), "abcdefghij"); n < 6 || n > 8 {
		t.Errorf("max_file_size 1 MiB: %d tables", n)
	}
	_, plain := tables(nil, "abcdefghij")
	_, small := tables(map[string]any{"compression": "snappy"}, "abcdefghij")
	if small > plain/5 {
		t.Errorf("snappy: %d bytes, without %d", small, plain)
	}
}
