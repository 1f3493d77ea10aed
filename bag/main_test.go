package bag

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
	_ "github.com/gobag/gobag/plugins/leveldb"
	_ "github.com/gobag/gobag/plugins/sqlite"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		runChild(dir)
		return
	}
	plugin.Register(plugintest.NewMemory())
	goleak.VerifyTestMain(m)
}

// memory is the options that most tests use.
func memory(o WriterOptions) WriterOptions {
	o.StorageID = "memory"
	return o
}

func mustCreate(t testing.TB, dir string, o WriterOptions) *Writer {
	t.Helper()
	w, err := Create(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func mustTopic(t testing.TB, w *Writer, name, typ string) plugin.TopicID {
	t.Helper()
	id, err := w.AddTopic(plugin.Topic{Name: name, Type: typ, SerializationFormat: "cdr"})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func mustWrite(t testing.TB, w *Writer, ms ...plugin.Message) {
	t.Helper()
	if err := w.Write(ms); err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t testing.TB, path string) *Reader {
	t.Helper()
	r, err := Open(context.Background(), path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// readAll returns copies of all messages that match q.
func readAll(t testing.TB, r *Reader, q plugin.Query) []plugin.Message {
	t.Helper()
	it, err := r.Messages(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := it.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out []plugin.Message
	for {
		var m plugin.Message
		err := it.Next(&m)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		m.Data = append([]byte(nil), m.Data...)
		out = append(out, m)
	}
}

// treeSum is a fingerprint of all files below dir.
func treeSum(t testing.TB, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		fmt.Fprintf(h, "%s %d\n", p, len(b))
		h.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
