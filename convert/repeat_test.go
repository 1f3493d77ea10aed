package convert

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

// Latched messages that a later bag only repeats are left out of a merge; what it has and the earlier one has not is kept.
func TestMergeLeavesRepeatsOut(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, repeats []string, stamp int64, own ...string) string {
		path := filepath.Join(dir, name)
		w, err := bag.Create(context.Background(), path, bag.WriterOptions{StorageID: "mcap", SyncInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		m, err := w.AddTopic(plugin.Topic{Name: "/map", Type: "x/msg/Map"})
		if err != nil {
			t.Fatal(err)
		}
		a, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "x/msg/A"})
		if err != nil {
			t.Fatal(err)
		}
		var rs []plugin.Message
		for _, r := range repeats {
			rs = append(rs, plugin.Message{Topic: m, Data: []byte(r)})
		}
		if err := w.WriteRepeats(rs, stamp); err != nil {
			t.Fatal(err)
		}
		for i, x := range own {
			id := a
			if x[0] == 'm' {
				id = m
			}
			if err := w.Write([]plugin.Message{{Topic: id, RecvTime: stamp + int64(i), Data: []byte(x)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one := write("one", []string{"map1"}, 100, "a1", "map2")
	two := write("two", []string{"map2"}, 200, "a2")
	three := write("three", []string{"map3"}, 300, "a3") // published between the two
	out := filepath.Join(dir, "out")
	if _, err := Run(context.Background(), Options{Inputs: []Input{{Path: one}, {Path: two}, {Path: three}}, Outputs: []Output{{Dir: out}}}); err != nil {
		t.Fatal(err)
	}
	r, err := bag.Open(context.Background(), out, bag.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	got := ""
	for m := (plugin.Message{}); it.Next(&m) == nil; {
		got += string(m.Data) + " "
	}
	if got != "map1 a1 map2 a2 map3 a3 " {
		t.Error(got)
	}
	if info := r.Info(); len(info.Repeats) != 0 || len(info.Warnings) != 0 {
		t.Errorf("%+v", info)
	}
}
