package bag

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/gobag/gobag/plugin"
)

func compress(t testing.TB, b []byte) []byte {
	t.Helper()
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	return e.EncodeAll(b, nil)
}

func TestUnpackMessage(t *testing.T) {
	for _, b := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte{0}, 5_000_000), []byte(strings.Repeat("abc", 1000))} {
		got, err := unpackMessage(nil, compress(t, b))
		if err != nil || !bytes.Equal(got, b) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
	}
	raw := []byte{0, 1, 0, 0, 5}
	if got, err := unpackMessage(nil, raw); err != nil || &got[0] != &raw[0] {
		t.Error(got, err)
	}
	packed := compress(t, []byte(strings.Repeat("hello world, this is a test. ", 50)))
	for n := 4; n < len(packed); n++ {
		if got, err := unpackMessage(nil, packed[:n]); err == nil {
			t.Errorf("cut to %d bytes: %d bytes", n, len(got))
		}
	}
	// A frame that claims a gigabyte in a few bytes: single segment, 8-byte content size.
	bomb := append(append([]byte{}, zstdMagic...), 0xe0, 0, 0, 0, 0x30, 0, 0, 0, 0, 1, 0, 0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := unpackMessage(nil, bomb); err == nil {
		t.Error("no error")
	}
	runtime.ReadMemStats(&after)
	allocs := after.TotalAlloc - before.TotalAlloc
	if allocs > 1<<20 {
		t.Errorf("%d bytes allocated for %d", allocs, len(bomb))
	}
}

// The data of a message stays valid until the next call, compressed or not.
func TestMessageCompression(t *testing.T) {
	dir := bagDir(t)
	w := mustCreate(t, dir, memory(WriterOptions{}))
	a := mustTopic(t, w, "/a", "x/msg/A")
	payload := func(i int) []byte { return append([]byte{0, 1, 0, 0}, bytes.Repeat([]byte{byte(i)}, i*10)...) }
	for i := range 50 {
		data := compress(t, payload(i))
		if i%10 == 3 {
			data = payload(i) // stored plain
		}
		mustWrite(t, w, plugin.Message{Topic: a, RecvTime: int64(i), Data: data})
	}
	w.Close()
	for _, mode := range []string{"message", "MESSAGE", "none"} {
		edit(t, dir, func(m *Metadata) { m.CompressionMode, m.CompressionFormat = mode, "zstd" })
		got := readAll(t, mustOpen(t, dir), plugin.Query{})
		for i, m := range got {
			if same := bytes.Equal(m.Data, payload(i)); same != (mode != "none" || i%10 == 3) {
				t.Errorf("%s: message %d: %x", mode, i, m.Data)
			}
		}
		if len(got) != 50 {
			t.Fatal(len(got))
		}
	}
	edit(t, dir, func(m *Metadata) { m.CompressionMode, m.CompressionFormat = "MESSAGE", "lz9" })
	if i := mustOpen(t, dir).Info(); !strings.Contains(strings.Join(i.Warnings, ""), `compression format "lz9" is not known`) {
		t.Errorf("%q", i.Warnings)
	}
}

func TestFileCompression(t *testing.T) {
	dir := bagDir(t)
	makeBag(t, dir, 3, 10)
	for _, name := range []string{"yard_0.mem", "yard_1.mem", "yard_2.mem"} {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p+zstdExt, compress(t, []byte(readFile(t, p))), 0o644); err != nil {
			t.Fatal(err)
		}
		if name != "yard_1.mem" { // left behind, as rosbag2 does after reading
			os.Remove(p)
		}
	}
	edit(t, dir, func(m *Metadata) {
		m.CompressionMode, m.CompressionFormat = CompressionFile, "zstd"
		for i := range m.Paths {
			m.Paths[i] += zstdExt
		}
	})
	before := treeSum(t, dir)
	temp := t.TempDir()
	r, err := Open(t.Context(), dir, ReaderOptions{TempDir: temp})
	if err != nil {
		t.Fatal(err)
	}
	i := r.Info()
	if i.Messages != 30 || i.Compression != "FILE zstd" || len(readAll(t, r, plugin.Query{})) != 30 || len(i.Warnings) > 0 {
		t.Fatalf("%+v", i)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, temp); got != "" {
		t.Errorf("left in the temporary directory: %s", got)
	}
	if treeSum(t, dir) != before {
		t.Error("the bag changed")
	}
	if i := mustOpen(t, filepath.Join(dir, "yard_2.mem.zstd")).Info(); i.Messages != 10 {
		t.Errorf("%+v", i)
	}
	if err := os.Remove(filepath.Join(dir, MetadataFile)); err != nil {
		t.Fatal(err)
	}
	if i := mustOpen(t, dir).Info(); i.Messages != 30 || len(i.Files) != 3 {
		t.Errorf("%+v", i)
	}

	p := filepath.Join(dir, "yard_2.mem.zstd")
	b := []byte(readFile(t, p))
	if err := os.WriteFile(p, b[:len(b)-5], 0o644); err != nil {
		t.Fatal(err)
	}
	r, err = Open(t.Context(), p, ReaderOptions{TempDir: temp})
	var c *plugin.CorruptError
	if !errors.As(err, &c) || !strings.Contains(err.Error(), "yard_2.mem.zstd") {
		if err == nil {
			r.Close()
		}
		t.Error(err)
	}
	if got := names(t, temp); got != "" {
		t.Errorf("left in the temporary directory: %s", got)
	}
}

func TestReadAllocates(t *testing.T) {
	dir := bagDir(t)
	makeBag(t, dir, 2, 2000)
	r := mustOpen(t, dir)
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var m plugin.Message
	n := testing.AllocsPerRun(3000, func() {
		if err := it.Next(&m); err != nil && err != io.EOF {
			t.Fatal(err)
		}
	})
	if n > 0.5 {
		t.Errorf("%v allocations a message", n)
	}
}
