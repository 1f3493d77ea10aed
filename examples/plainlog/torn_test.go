package plainlog

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// damageless is the length of the one message that tornFile did not sync.
const damageless = recordBytes + messageBytes + 100

// tornFile holds three synced messages and one that was not, of a writer that is never closed.
func tornFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "torn.plainlog")
	w, err := Driver{}.Create(context.Background(), path, plugin.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "a/msg/B", SerializationFormat: "cdr"})
	if err != nil {
		t.Fatal(err)
	}
	m := plugin.Message{Topic: id, RecvTime: 1, Data: make([]byte, 100)}
	if err := errors.Join(w.Write([]plugin.Message{m, m, m}), w.Sync(), w.Write([]plugin.Message{m})); err != nil {
		t.Fatal(err)
	}
	if err := w.(*writer).f.Close(); err != nil { // as a killed process would
		t.Fatal(err)
	}
	return path
}

func checkTorn(t *testing.T, path string) {
	t.Helper()
	r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	info := r.Info()
	if info.Messages != 3 || !info.Unclean || len(info.Warnings) != 1 || !strings.Contains(info.Warnings[0], "cut off at byte ") {
		t.Errorf("%+v", info)
	}
	if n, err := readSome(t, path); n != 3 || err != nil {
		t.Errorf("%d messages, %v", n, err)
	}
}

// readSome opens and reads a file and returns how many messages came before the end.
func readSome(t *testing.T, path string) (n int, err error) {
	r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for {
		var m plugin.Message
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
	}
}
