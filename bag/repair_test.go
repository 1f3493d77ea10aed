package bag

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// damaged writes a bag of sqlite files with n messages each.
func damaged(t *testing.T, dir string, o WriterOptions, files, n int) {
	t.Helper()
	o.StorageID, o.StorageConfig = "sqlite3", map[string]any{"write": map[string]any{"pragmas": []any{"page_size = 4096"}}}
	o.CustomData = map[string]string{"k": "v"}
	w := mustCreate(t, dir, o)
	id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "x/msg/A", TypeHash: "RIHS01_77", Sources: []string{"g1", "g2"},
		Definition: plugin.Definition{Encoding: "ros2msg", Text: "int32 a"}})
	if err != nil {
		t.Fatal(err)
	}
	b := mustTopic(t, w, "/b", "x/msg/B")
	for f := range files {
		if f > 0 {
			if err := w.Split(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n {
			m := plugin.Message{Topic: id, RecvTime: int64(f*n + i), SendTime: int64(i + 1), Source: uint32(i%2 + 1), Seq: uint64(i + 1), Data: make([]byte, 100)}
			binary.BigEndian.PutUint64(m.Data[4:], uint64(f*n+i))
			if i%10 == 0 {
				m.Topic, m.Source, m.Data = b, 0, append(m.Data, make([]byte, 20_000)...) // overflow pages
			}
			mustWrite(t, w, m)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// spoil overwrites part of a file.
func spoil(t *testing.T, path string, off, n int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	junk := make([]byte, n)
	for i := range junk {
		junk[i] = 0xa5
	}
	if _, err := f.WriteAt(junk, off); err != nil {
		t.Fatal(err)
	}
}

// Damage in the middle of a file costs what lies there and nothing else.
func TestRepairSQLite(t *testing.T) {
	const n = 2000
	for name, x := range map[string]struct {
		o     WriterOptions
		spoil func(path string, size int64)
		least uint64
	}{
		"whole":  {least: 2 * n, spoil: func(string, int64) {}},
		"middle": {least: 2*n - 200, spoil: func(p string, size int64) { spoil(t, p, size/2/4096*4096, 3*4096) }},
		"humble": {o: WriterOptions{Compat: plugin.CompatHumble}, least: 2*n - 200, spoil: func(p string, size int64) { spoil(t, p, size/2/4096*4096, 4096) }},
		"head":   {least: 2*n - 200, spoil: func(p string, _ int64) { spoil(t, p, 0, 4096) }},
		"truncated": {least: n + n/2, spoil: func(p string, size int64) {
			if err := os.Truncate(p, size*2/3); err != nil {
				t.Fatal(err)
			}
		}},
		"packed": {o: WriterOptions{Compression: Compression{Mode: CompressionMessage}}, least: 2*n - 700, spoil: func(p string, size int64) { spoil(t, p, size/2/4096*4096, 4096) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "yard"), filepath.Join(dir, "out")
			damaged(t, in, x.o, 2, n)
			bad := filepath.Join(in, "yard_1.db3")
			fi, err := os.Stat(bad)
			if err != nil {
				t.Fatal(err)
			}
			x.spoil(bad, fi.Size())
			before := treeSum(t, in)
			rep, err := Repair(context.Background(), in, out, RepairOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("kept %d, lost %d: %+v", rep.Kept, rep.Lost, rep.Files[1])
			if treeSum(t, in) != before {
				t.Error("the original has changed")
			}
			if rep.Kept < x.least || rep.Kept+rep.Lost != 2*n || rep.Complete() != (rep.Kept == 2*n) || len(rep.Files) != 2 || rep.Files[0].How != "whole" {
				t.Errorf("%+v", rep)
			}
			r := mustOpen(t, out)
			info := r.Info()
			if info.CustomData["k"] != "v" || len(info.Topics) != 2 || info.Topics[0].TypeHash != "RIHS01_77" || info.Topics[0].Definition.Text != "int32 a" || len(info.Topics[0].Sources) != 2 {
				t.Errorf("%+v", info)
			}
			last := int64(-1)
			for _, m := range readAll(t, r, plugin.Query{}) {
				i := m.RecvTime % n
				if m.RecvTime <= last || binary.BigEndian.Uint64(m.Data[4:]) != uint64(m.RecvTime) || m.SendTime != i+1 && m.SendTime != 0 || m.Seq != 0 && m.Seq != uint64(i+1) {
					t.Fatalf("message at %d after %d: %+v", m.RecvTime, last, m)
				}
				last = m.RecvTime
			}
		})
	}
}

// Files that are gone, and files that are nothing, are reported; what is there is kept.
func TestRepairMissing(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "yard"), filepath.Join(dir, "out")
	damaged(t, in, WriterOptions{}, 3, 100)
	if err := os.Remove(filepath.Join(in, "yard_1.db3")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(in, "yard_2.db3"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	rep, err := Repair(context.Background(), in, out, RepairOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Kept != 100 || rep.Lost != 200 || rep.Complete() || len(rep.Files) != 3 {
		t.Errorf("%+v", rep)
	}
	lost := uint64(0)
	for _, topic := range rep.Topics {
		lost += topic.Lost
	}
	if lost != 200 {
		t.Errorf("topics: %+v", rep.Topics)
	}
}

// A metadata.yaml that cannot be read is no reason to give up; a format without salvage gives what comes before the damage.
func TestRepairOthers(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "yard"), filepath.Join(dir, "out")
	w := mustCreate(t, in, memory(WriterOptions{}))
	a := mustTopic(t, w, "/a", "x/msg/A")
	for i := range 100 {
		mustWrite(t, w, plugin.Message{Topic: a, RecvTime: int64(i), Data: make([]byte, 50)})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(in, MetadataFile), []byte("x: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	rep, err := Repair(context.Background(), in, out, RepairOptions{})
	if err != nil || rep.Kept != 100 || rep.Lost != 0 || len(rep.Notes) == 0 {
		t.Errorf("%+v, %v", rep, err)
	}
	if _, err := Repair(context.Background(), in, out, RepairOptions{}); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("error %v", err)
	}
	nothing := filepath.Join(dir, "nothing.db3")
	if err := os.WriteFile(nothing, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Repair(context.Background(), nothing, out+"2", RepairOptions{}); err == nil {
		t.Error("nothing was repaired")
	}
	if _, err := os.Stat(out + "2"); err == nil {
		t.Error("an empty bag is left")
	}
}
