package bag

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/plugin"
)

func TestWriteAndRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "b")
	w := mustCreate(t, dir, memory(WriterOptions{}))
	a := mustTopic(t, w, "/a", "std_msgs/msg/String")
	b := mustTopic(t, w, "/b", "std_msgs/msg/String")
	mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 10, Data: []byte("one")}, plugin.Message{Topic: b, RecvTime: 5, Data: []byte("two")})
	if err := w.Split(); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, w, plugin.Message{Topic: b, RecvTime: 7, Data: []byte("three")})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(filepath.Join(dir, MetadataFile))
	t.Logf("%s", text)
	r := mustOpen(t, dir)
	got := readAll(t, r, plugin.Query{})
	if len(got) != 3 || string(got[0].Data) != "two" || string(got[1].Data) != "three" || string(got[2].Data) != "one" {
		t.Fatalf("%+v", got)
	}
	t.Logf("%+v", r.Info())
}
