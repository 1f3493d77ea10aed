package bag

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// numbered writes a bag of 12 files, so that their order by name is not that of their numbers.
func numbered(t *testing.T, dir string, o WriterOptions) {
	t.Helper()
	w := mustCreate(t, dir, o)
	a := mustTopic(t, w, "/a", "x/msg/A")
	mustTopic(t, w, "/silent", "x/msg/B")
	for i := range 12 {
		mustWrite(t, w, plugin.Message{Topic: a, RecvTime: int64(1000 + i), Data: []byte{0, 1, 0, 0, byte(i)}})
		if i < 11 {
			if err := w.Split(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustReindex(t *testing.T, dir string) ReindexResult {
	t.Helper()
	res, err := Reindex(context.Background(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// What is made without metadata.yaml is what was there.
func TestReindex(t *testing.T) {
	for name, o := range map[string]WriterOptions{
		"memory": memory(WriterOptions{CustomData: map[string]string{"k": "v"}}), "default": {ROSDistro: "jazzy"},
		"sqlite3": {StorageID: "sqlite3", ROSDistro: "jazzy"}, "humble": {Compat: plugin.CompatHumble},
		"file": {Compression: Compression{Mode: CompressionFile}}, "message": {StorageID: "sqlite3", Compression: Compression{Mode: CompressionMessage}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "yard")
			numbered(t, dir, o)
			yaml := filepath.Join(dir, MetadataFile)
			want := readFile(t, yaml)
			for _, damage := range []func() error{
				func() error { return os.Remove(yaml) },
				func() error { return os.WriteFile(yaml, nil, 0o600) },
				func() error { return os.WriteFile(yaml, []byte("rosbag2_bagfile_information: ["), 0o600) },
				func() error { return nil },
			} {
				if err := damage(); err != nil {
					t.Fatal(err)
				}
				res := mustReindex(t, dir)
				if got := readFile(t, yaml); got != want {
					t.Errorf("%+v\n got %s\nwant %s", res, got, want)
				}
			}
			if b := readFile(t, yaml+".bak"); b != "rosbag2_bagfile_information: [" {
				t.Errorf("kept: %q", b)
			}
		})
	}
}

// An empty file does not draw the start to 1970, and what only metadata.yaml knew is still known.
func TestReindexKeeps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "yard")
	w := mustCreate(t, dir, memory(WriterOptions{}))
	a := mustTopic(t, w, "/a", "x/msg/A")
	mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 5_000, Data: []byte{1}})
	if err := w.Split(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	yaml := filepath.Join(dir, MetadataFile)
	m, err := ParseMetadata([]byte(readFile(t, yaml)))
	if err != nil {
		t.Fatal(err)
	}
	m.Topics[0].OfferedQoS = []QoSProfile{DefaultQoSProfile()}
	m.CustomData["mine"] = "1"
	m.MessageCount, m.Start = 77, 1
	if err := os.WriteFile(yaml, m.Encode(0), 0o600); err != nil {
		t.Fatal(err)
	}
	res := mustReindex(t, dir)
	got := res.Metadata
	if got.Start != 5_000 || got.Duration != 0 || got.MessageCount != 1 || len(got.Files) != 2 || got.CustomData["mine"] != "1" ||
		!reflect.DeepEqual(got.Topics[0].OfferedQoS, m.Topics[0].OfferedQoS) || res.Backup == "" {
		t.Errorf("%+v", res)
	}
}

// A file that cannot be opened is named and left out; the storages stay as they are.
func TestReindexDamaged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "yard")
	numbered(t, dir, WriterOptions{StorageID: "sqlite3"})
	if err := os.WriteFile(filepath.Join(dir, "yard_3.db3"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, MetadataFile)); err != nil {
		t.Fatal(err)
	}
	before := treeSum(t, dir)
	res := mustReindex(t, dir)
	if len(res.Skipped) != 1 || res.Skipped[0].Path != "yard_3.db3" || res.Metadata.MessageCount != 11 {
		t.Errorf("%+v", res)
	}
	if err := os.Remove(filepath.Join(dir, MetadataFile)); err != nil {
		t.Fatal(err)
	}
	if treeSum(t, dir) != before {
		t.Error("a storage was changed")
	}
}

func TestReindexRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "yard")
	w := mustCreate(t, dir, WriterOptions{})
	for path, want := range map[string]string{dir: "recording", dir + "x": "no such file", filepath.Join(dir, "yard_0.mcap"): "not the directory", t.TempDir(): "neither"} {
		if _, err := Reindex(context.Background(), path, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// Bags of other makers: the fixtures without metadata.yaml, and with it taken away.
func TestReindexFixtures(t *testing.T) {
	for rel, want := range map[string]struct {
		messages uint64
		mode     string
	}{
		"fixtures/bags/08-galactic-split-no-metadata": {3177, ""}, "fixtures/bags/07-galactic-message-zstd": {1127, CompressionMessage},
		"fixtures/bags/06-galactic-file-zstd": {775, CompressionFile}, "fixtures/bags/04-foxy-v4-schema2": {7, ""},
	} {
		t.Run(filepath.Base(rel), func(t *testing.T) {
			dir := privateCopy(t, shared(t, rel))
			if err := os.Remove(filepath.Join(dir, MetadataFile)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			m := mustReindex(t, dir).Metadata
			if m.MessageCount != want.messages || m.CompressionMode != want.mode || m.StorageIdentifier != "sqlite3" {
				t.Errorf("%+v", m)
			}
			r := mustOpen(t, dir)
			if got := readAll(t, r, plugin.Query{}); uint64(len(got)) != want.messages {
				t.Errorf("%d messages", len(got))
			}
		})
	}
}
