package bag

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// Of files that wait for a compressor beyond the queue's size the oldest stay as they are.
func TestCompressionQueue(t *testing.T) {
	var left []string
	p := &filePacker{c: Compression{Threads: 1, Queue: 2}, left: func(name string) { left = append(left, name) },
		running: 1, working: map[string]bool{"busy": true}} // its only compressor is at work
	for _, name := range []string{"a", "b", "c", "d"} {
		p.add(name)
	}
	if want := []string{"a", "b"}; !slices.Equal(left, want) || !slices.Equal(p.waiting, []string{"c", "d"}) {
		t.Errorf("left as they are: %q, want %q; waiting %q", left, want, p.waiting)
	}
	p = &filePacker{c: Compression{Threads: 1}, left: func(name string) { t.Errorf("%s is left as it is", name) },
		running: 1, working: map[string]bool{"busy": true}}
	for range 100 {
		p.add("a")
	}
	for _, c := range []Compression{{Mode: CompressionFile, Queue: -1}, {Mode: CompressionFile, Priority: 100}, {Priority: -100}} {
		if err := (WriterOptions{Compression: c}).Validate(); err == nil {
			t.Errorf("%+v is valid", c)
		}
	}
}

// Threads with a priority compress as others do, and a bag some of whose files were left plain reads whole.
func TestCompressionPriority(t *testing.T) {
	const n = 300
	priority := 7
	if runtime.GOOS == "windows" {
		priority = -1
	}
	for name, o := range map[string]WriterOptions{
		"file":    {Compression: Compression{Mode: CompressionFile, Threads: 1, Queue: 1, Priority: priority}},
		"message": {StorageID: "sqlite3", Compression: Compression{Mode: CompressionMessage, Threads: 2, Priority: priority}},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			dir := filepath.Join(t.TempDir(), "yard")
			w := mustCreate(t, dir, o)
			id := mustTopic(t, w, "/a", "x/msg/A")
			for i := range n {
				m := plugin.Message{Topic: id, RecvTime: int64(i), Data: bytes.Repeat([]byte{0, 1, byte(i), byte(i >> 8)}, 20_000)}
				if err := w.Write([]plugin.Message{m}); err != nil {
					t.Fatal(err)
				}
				if i%20 == 19 {
					if err := w.Split(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			r := mustOpen(t, dir)
			ms := readAll(t, r, plugin.Query{})
			if len(ms) != n {
				t.Fatalf("%d messages, want %d", len(ms), n)
			}
			for i, m := range ms {
				if m.RecvTime != int64(i) || len(m.Data) != 80_000 || m.Data[2] != byte(i) || m.Data[79_999] != byte(i>>8) {
					t.Fatalf("message %d: stamp %d, %d bytes", i, m.RecvTime, len(m.Data))
				}
			}
			plain, err := filepath.Glob(filepath.Join(dir, "*.mcap"))
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Count(log.String(), "stays uncompressed"); said != len(plain) {
				t.Errorf("%d files are plain, said of %d:\n%s", len(plain), said, &log)
			}
			if refused := strings.Contains(log.String(), "usual priority"); refused != (runtime.GOOS != "linux" && runtime.GOOS != "windows") {
				t.Errorf("refused: %v\n%s", refused, &log)
			}
		})
	}
}
