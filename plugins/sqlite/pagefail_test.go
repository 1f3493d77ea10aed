package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// newRecording starts a recording with one topic.
func newRecording(t *testing.T) (*writer, *pageEngine, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db3")
	w, err := create(context.Background(), path, plugin.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(plugin.Metadata{}) })
	if _, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "a/msg/B"}); err != nil {
		t.Fatal(err)
	}
	return w, w.e.(*pageEngine), path
}

func writeOne(w *writer, n, size int) error {
	return w.Write([]plugin.Message{{Topic: 1, RecvTime: int64(n), Data: make([]byte, size)}})
}

// A disk that fails in a commit ends the writing with one error for all that follows; what was committed before stays.
func TestCommitFails(t *testing.T) {
	for step := range 5 {
		w, e, path := newRecording(t)
		for n := range 10 {
			if err := writeOne(w, n, 1000); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
		broken := errors.New("the disk is gone")
		var mu sync.Mutex
		left := step
		e.st.sync = func(f *os.File) error {
			mu.Lock()
			defer mu.Unlock()
			if left--; left < 0 {
				return broken
			}
			return datasync(f)
		}
		if err := writeOne(w, 10, 1000); err != nil {
			t.Fatal(err)
		}
		w.log.committed = time.Time{} // a commit, not the log
		err := w.Sync()
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "sync storage "+path) {
			t.Fatalf("step %d: %v", step, err)
		}
		_, aerr := w.AddTopic(plugin.Topic{Name: "/b", Type: "a/msg/B"})
		for _, later := range []error{w.Write(nil), w.Sync(), aerr} {
			if later == nil || later.Error() != err.Error() {
				t.Errorf("step %d: later: %v, want %v", step, later, err)
			}
		}
		if cerr := w.Close(plugin.Metadata{}); !errors.Is(cerr, broken) {
			t.Errorf("step %d: close: %v", step, cerr)
		}
		for _, who := range []string{"as it is", "rolled back"} {
			r := open(t, path)
			ms, err := plugintest.ReadAll(r, plugin.Query{})
			if err != nil || len(ms) != 10 && (step < 4 || len(ms) != 11) || !r.Info().Unclean {
				t.Errorf("step %d, %s: %d messages, %v, %+v", step, who, len(ms), err, r.Info())
			}
			if who == "as it is" {
				if err := checkDatabase(path); err != nil {
					t.Errorf("step %d: %v", step, err)
				}
			}
		}
	}
}

// A write that fails leaves the file as the last commit made it, and nothing beside it.
func TestWriteFails(t *testing.T) {
	w, e, path := newRecording(t)
	if err := writeOne(w, 0, 1000); err != nil {
		t.Fatal(err)
	}
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	good := e.st.f
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	if err := writeOne(w, 1, 300_000); err != nil {
		t.Fatal(err)
	}
	e.st.f = readOnly
	err = writeOne(w, 2, 300_000)
	e.st.f = good
	if err == nil || !strings.Contains(err.Error(), "write storage "+path) {
		t.Fatal(err)
	}
	if cerr := w.Close(plugin.Metadata{}); !errors.Is(cerr, err) {
		t.Error(cerr)
	}
	if es, _ := os.ReadDir(filepath.Dir(path)); len(es) != 1 {
		t.Error("left:", es)
	}
	fi, err := os.Stat(path)
	if err != nil || fi.Size() > 20*pageSize {
		t.Error(fi.Size(), err)
	}
	if ms, err := plugintest.ReadAll(open(t, path), plugin.Query{}); err != nil || len(ms) != 1 {
		t.Errorf("%d messages, %v", len(ms), err)
	}
	if err := checkDatabase(path); err != nil {
		t.Error(err)
	}
}

// Write goes on while Sync waits for the disk; what was written before a Sync began is there when it ends.
func TestSyncBeside(t *testing.T) {
	w, _, path := newRecording(t)
	quit, done := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			select {
			case <-quit:
				done <- nil
				return
			default:
				err = w.Sync()
			}
		}
		done <- err
	}()
	n := 0
	for ; n < 3000; n++ {
		if err := writeOne(w, n*7919%1000, n%5000); err != nil {
			t.Fatal(err)
		}
	}
	close(quit)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	if ms, err := plugintest.ReadAll(open(t, path), plugin.Query{}); err != nil || len(ms) != n {
		t.Errorf("%d messages, %v", len(ms), err)
	}
	if err := checkDatabase(path); err != nil {
		t.Error(err)
	}
}

// A file that becomes shorter while it is read by its memory gives an error, not a crash.
func TestShortened(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are not mapped")
	}
	path := filepath.Join(t.TempDir(), "a.db3")
	writeSimple(t, path, plugin.WriteOptions{}, 3000)
	r := open(t, path)
	at := func(k int64) plugin.Query { return plugin.Query{Range: &plugin.TimeRange{Start: k, End: k}} }
	if ms, err := plugintest.ReadAll(r, at(2900)); err != nil || len(ms) != 1 {
		t.Fatal(len(ms), err)
	}
	if err := os.Truncate(path, pageSize); err != nil {
		t.Fatal(err)
	}
	var corrupt *plugin.CorruptError
	if _, err := plugintest.ReadAll(r, at(2900)); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "cannot be read any more") {
		t.Error(err)
	}
}

// The page on which SQLite locks bytes stays without content, and what crosses it is whole.
func TestLockPage(t *testing.T) {
	if os.Getenv("GOBAG_BIG") == "" {
		t.Skip("writes 1.1 GB; set GOBAG_BIG to run it")
	}
	for _, size := range []int{pageSize, 65536} {
		path := filepath.Join(t.TempDir(), "a.db3")
		w, err := create(context.Background(), path, plugin.WriteOptions{Config: map[string]any{"pragmas": []any{fmt.Sprintf("page_size = %d", size)}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "a/msg/B"}); err != nil {
			t.Fatal(err)
		}
		data := make([]byte, 3_000_000)
		for i := range data {
			data[i] = byte(i / 1000)
		}
		const n = 370
		for i := range n {
			if err := w.Write([]plugin.Message{{Topic: 1, RecvTime: int64(i), Data: data}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(plugin.Metadata{}); err != nil {
			t.Fatal(err)
		}
		if err := checkDatabase(path); err != nil {
			t.Error(err)
		}
		r := open(t, path)
		for i := range n {
			ms, err := plugintest.ReadAll(r, plugin.Query{Range: &plugin.TimeRange{Start: int64(i), End: int64(i)}})
			if err != nil || len(ms) != 1 || string(ms[0].Data) != string(data) {
				t.Fatalf("message %d: %d found, %v", i, len(ms), err)
			}
		}
		r.Close()
	}
}
