package plugintest

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/plugin"
)

func TestReferenceRoundTrip(t *testing.T) {
	d := NewMemory()
	path := filepath.Join(t.TempDir(), "a.mem")
	w, err := d.Create(context.Background(), path, plugin.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddTopic(plugin.Topic{Name: "/\xff", Type: "std_msgs/msg/String"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write([]plugin.Message{{Topic: id, RecvTime: 2, Data: []byte("b")}, {Topic: id, RecvTime: 1, Data: []byte("a")}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(plugin.Metadata{Version: 9, Text: "version: 9\n"}); err != nil {
		t.Fatal(err)
	}
	r, err := d.OpenReader(context.Background(), path, plugin.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if i := r.Info(); i.Messages != 2 || i.Start != 1 || i.End != 2 || i.Unclean || i.Topics[0].Name != "/\xff" || i.Metadata.Version != 9 {
		t.Fatalf("%+v", i)
	}
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for {
		var m plugin.Message
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got += string(m.Data)
	}
	if got != "ab" {
		t.Fatal(got)
	}
}
