package leveldb

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/plugin"
)

// A Sync beside Write covers everything written before it, whatever the flusher is at: who opens the storage right after it
// finds that much, and no hole.
func TestSyncBesideWrite(t *testing.T) {
	for _, p := range presets {
		t.Run(p.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "s.leveldb")
			w := mustCreate(t, dir, plugin.WriteOptions{Preset: p.name, Config: map[string]any{"open_options": map[string]any{"write_buffer_size": 128 << 10}}})
			id := mustTopic(t, w, plugin.Topic{Name: "/a", Type: "b"})
			var mu sync.Mutex
			written := 0
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				data := make([]byte, 900)
				for i := 1; i <= 5000; i++ { // 2 MB: sixteen write buffers
					select {
					case <-stop:
						return
					default:
					}
					if err := w.Write([]plugin.Message{{Topic: id, RecvTime: int64(i), Order: uint64(i), Data: data[:i%900]}}); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					written = i
					mu.Unlock()
					if i%100 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
			})
			for range 8 {
				mu.Lock()
				before := written
				mu.Unlock()
				if err := w.Sync(); err != nil {
					t.Fatal(err)
				}
				r := mustOpen(t, dir)
				got, err := readAll(t, r, plugin.Query{})
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				if len(got) < before {
					t.Fatalf("%d messages after a sync, %d were written before it", len(got), before)
				}
				for i := range got {
					if got[i].Order != uint64(i+1) {
						t.Fatalf("message %d is number %d: a hole", i+1, got[i].Order)
					}
				}
				_ = r.Close()
			}
			close(stop)
			wg.Wait()
			if err := w.Close(plugin.Metadata{}); err != nil {
				t.Fatal(err)
			}
			if got, _ := readAll(t, mustOpen(t, dir), plugin.Query{}); len(got) != written {
				t.Errorf("%d messages after closing, %d were written", len(got), written)
			}
		})
	}
}

// Where a power cut kept the messages of a topic and not its description, these are left out, said, and nothing else is
// lost.
func TestOrphans(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.leveldb")
	w := mustCreate(t, dir, plugin.WriteOptions{})
	mustTopic(t, w, plugin.Topic{Name: "/a", Type: "b"})
	fi, err := os.Stat(filepath.Join(dir, "000002.log"))
	if err != nil {
		t.Fatal(err)
	}
	mustTopic(t, w, plugin.Topic{Name: "/late", Type: "b"})
	if err := w.Write([]plugin.Message{{Topic: 1, RecvTime: 1, Data: []byte("x")}, {Topic: 2, RecvTime: 2, Data: []byte("y")}, {Topic: 1, RecvTime: 3, Data: []byte("z")}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	cutOff := copyDir(t, dir)
	if err := os.Truncate(filepath.Join(cutOff, "000002.log"), fi.Size()); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, cutOff)
	got, err := readAll(t, r, plugin.Query{})
	if !errors.Is(err, io.EOF) || len(got) != 2 || string(got[0].Data)+string(got[1].Data) != "xz" {
		t.Errorf("%d messages, %v; want x and z", len(got), err)
	}
	if i := r.Info(); i.Messages != 2 || !i.Unclean || !strings.Contains(strings.Join(i.Warnings, "\n"), "left out: 1 messages") {
		t.Errorf("info: %d messages, unclean %v, warnings %q", i.Messages, i.Unclean, i.Warnings)
	}
}

// An iterator that is closed stays closed, even when its memory serves another; and what that other returns is its own.
func TestIteratorReuse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.leveldb")
	w, ms := fill(t, dir, "", 3000, 600)
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, dir)
	first, err := r.Messages(plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	var m plugin.Message
	if err := errors.Join(first.Next(&m), first.Close()); err != nil {
		t.Fatal(err)
	}
	for k := range ms {
		i := k * 769 % len(ms) // and back and forth
		if k%3 == 0 {
			i = k
		}
		want := &ms[i]
		it, err := r.Messages(plugin.Query{Range: &plugin.TimeRange{Start: want.RecvTime, End: want.RecvTime}, Reverse: k%5 == 0})
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Next(&m); !errors.Is(err, plugin.ErrClosed) {
			t.Fatalf("next of a closed iterator: %v", err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		found := false
		for err = it.Next(&m); err == nil; err = it.Next(&m) {
			found = found || m.Order == want.Order && bytes.Equal(m.Data, want.Data)
		}
		if !errors.Is(err, io.EOF) || !found {
			t.Fatalf("message %d: found %v, %v", i, found, err)
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
