package columnar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// reading is a type with a nested struct, a list and text.
var reading = plugin.Topic{Name: "/reading", Type: "x_msgs/msg/Reading", SerializationFormat: "cdr", Sources: []string{"w"},
	Definition: plugin.Definition{Encoding: "ros2msg", Text: "string name\nfloat64[] values\nPoint at\n\n================================================================================\nMSG: x_msgs/Point\nint32 x\nint32 y\n"}}

// readingData is a payload of that type, all zeros in the padding.
func readingData(i int) []byte {
	b := []byte{0, 1, 0, 0}
	align := func(n int) {
		for (len(b)-4)%n != 0 {
			b = append(b, 0)
		}
	}
	name := fmt.Sprint("sensor ", i%13)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(name)+1))
	b = append(append(b, name...), 0)
	align(4)
	b = binary.LittleEndian.AppendUint32(b, uint32(i%4))
	for k := range i % 4 {
		align(8)
		b = binary.LittleEndian.AppendUint64(b, uint64(i*k)<<40)
	}
	align(4)
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(i)), uint32(-i))
}

func readings(n int) []plugin.Message {
	var ms []plugin.Message
	for i := range n {
		ms = append(ms, plugin.Message{Topic: 1, RecvTime: 1_700_000_000_000_000_000 + int64(i/3)*1000, SendTime: 5, Source: 1, Seq: uint64(i), Order: uint64(i + 1), Data: readingData(i)})
	}
	return ms
}

func mustCreate(t testing.TB, dir string, o plugin.WriteOptions) *writer {
	t.Helper()
	w, err := create(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(plugin.Metadata{}) }) // those that a test leaves open
	return w
}

func mustTopic(t testing.TB, w *writer, topic plugin.Topic) plugin.TopicID {
	t.Helper()
	id, err := w.AddTopic(topic)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func mustWrite(t testing.TB, w *writer, ms ...plugin.Message) {
	t.Helper()
	if err := w.Write(ms); err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t testing.TB, dir string) *reader {
	t.Helper()
	r, err := openReader(t.Context(), dir, plugin.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // was read only
	return r
}

// readAll returns the answer to a query, and the error that ended it; io.EOF is nil.
func readAll(t testing.TB, r plugin.Reader, q plugin.Query) ([]plugin.Message, error) {
	t.Helper()
	it, err := r.Messages(q)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var ms []plugin.Message
	for {
		var m plugin.Message
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			return ms, nil
		} else if err != nil {
			return ms, err
		}
		m.Data = bytes.Clone(m.Data)
		ms = append(ms, m)
	}
}

func checkAll(t testing.TB, what string, got, want []plugin.Message) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d messages, want %d", what, len(got), len(want))
	}
	for i := range got {
		if a, b := fmt.Sprintf("%+v", got[i]), fmt.Sprintf("%+v", want[i]); a != b {
			t.Fatalf("%s: message %d is\n%s\nwant\n%s", what, i, a, b)
		}
	}
}

func copyDir(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(dir))
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// files lists the files of a storage by pattern.
func files(t testing.TB, dir string, pattern ...string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(append([]string{dir}, pattern...)...))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
