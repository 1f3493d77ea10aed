package bag

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/plugin"
)

// The next file is opened before it is needed, beside the writing, with all topics; a slow disk holds up neither.
func TestSplitOpensAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHooked()
		var created atomic.Int64
		d.create = func(string) error { created.Add(1); time.Sleep(300 * time.Millisecond); return nil }
		d.close = func() error { time.Sleep(300 * time.Millisecond); return nil }
		dir := bagDir(t)
		var splits atomic.Int64
		w := mustCreate(t, dir, WriterOptions{StorageID: d.name, MaxBagDuration: time.Second, SyncInterval: -1, OnSplit: func(closed, opened string) {
			if n := splits.Add(1); closed != fmt.Sprintf("yard_%d.%s", n-1, d.name) || opened != fmt.Sprintf("yard_%d.%s", n, d.name) {
				t.Error(closed, opened)
			}
		}})
		a := mustTopic(t, w, "/a", "x/msg/A")
		late := plugin.TopicID(0)
		for i := range 500 { // 5 s
			begun := time.Now()
			mustWrite(t, w, plugin.Message{Topic: a, RecvTime: int64(i)})
			if i == 80 { // while the next file is open already
				if n := created.Load(); n != 2 {
					t.Errorf("%d files begun after 0.8 s", n)
				}
				late = mustTopic(t, w, "/late", "x/msg/A")
				if _, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "x/msg/A", TypeHash: "new"}); err != nil {
					t.Fatal(err)
				}
			}
			if late > 0 {
				mustWrite(t, w, plugin.Message{Topic: late, RecvTime: int64(i)})
			}
			if took := time.Since(begun); took > 0 {
				t.Errorf("message %d had to wait %v", i, took)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if s := w.Stats(); s.Files != 5 || s.LongestWrite > 0 {
			t.Errorf("%+v", s)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if n := splits.Load(); n != 4 {
			t.Errorf("%d splits told", n)
		}
		r := mustOpen(t, dir)
		i := r.Info()
		if i.Messages != 920 || len(i.Files) != 5 || len(i.Warnings) > 0 || i.CutOff {
			t.Fatalf("%+v", i)
		}
		for k, f := range i.Files[1:] {
			one := mustOpen(t, filepath.Join(dir, f.Path)).Info()
			if len(one.Topics) != 2 || one.Topics[0].TypeHash != "new" {
				t.Errorf("file %d: %+v", k+1, one.Topics)
			}
		}
	})
}

// A file that was opened ahead and not needed is gone after Close; after a crash it is there, empty, and readers pass over it.
func TestAheadIsNotNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, crashed := bagDir(t), bagDir(t)
		w := mustCreate(t, dir, memory(WriterOptions{MaxBagDuration: time.Second, SyncInterval: -1}))
		a := mustTopic(t, w, "/a", "x/msg/A")
		mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 1})
		time.Sleep(900 * time.Millisecond)
		mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 2})
		synctest.Wait()
		if got := names(t, dir); got != "metadata.yaml yard_0.mem yard_1.mem" {
			t.Fatal(got)
		}
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := names(t, dir); got != "metadata.yaml yard_0.mem" {
			t.Error(got)
		}
		i := mustOpen(t, crashed).Info()
		if !i.CutOff || i.Messages != 2 || len(i.Files) != 1 {
			t.Errorf("%+v", i)
		}
		if len(i.Warnings) != 1 || !strings.Contains(i.Warnings[0], "the recording was cut off") {
			t.Error(i.Warnings)
		}
	})
}

// The old file is closed beside the writing, and Sync covers it.
func TestSplitClosesBehind(t *testing.T) {
	d := newHooked()
	hold, entered := make(chan struct{}), make(chan struct{})
	var once sync.Once
	d.close = func() error {
		once.Do(func() { close(entered); <-hold })
		return nil
	}
	w := mustCreate(t, bagDir(t), WriterOptions{StorageID: d.name, MaxBagSize: 50_000, SyncInterval: -1})
	a := mustTopic(t, w, "/a", "x/msg/A")
	write := func() { mustWrite(t, w, plugin.Message{Topic: a, Data: make([]byte, 10_000)}) }
	for w.Stats().Files < 2 {
		write()
	}
	<-entered
	write()
	if s := w.Stats(); s.File != "yard_1."+d.name || s.Size < 60_000 {
		t.Errorf("%+v", s)
	}
	synced := make(chan error)
	go func() { synced <- w.Sync() }()
	select {
	case <-synced:
		t.Error("what was written into the old file counts as synced before it is closed")
	case <-time.After(20 * time.Millisecond):
	}
	close(hold)
	if err := <-synced; err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// When the old file cannot be closed, later calls say so, and what it does not hold is lost.
func TestSplitCannotClose(t *testing.T) {
	d := newHooked()
	dir := bagDir(t)
	w := mustCreate(t, dir, WriterOptions{StorageID: d.name, MaxBagDuration: 10 * time.Millisecond, SyncInterval: -1})
	a := mustTopic(t, w, "/a", "x/msg/A")
	mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 1})
	d.swallow = true
	mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 2})
	d.swallow = false
	d.close = func() error { return errHook }
	time.Sleep(20 * time.Millisecond)
	mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 3}) // into the next file
	if err := w.Sync(); !errors.Is(err, errHook) {
		t.Fatal(err)
	}
	if err := w.Write([]plugin.Message{{Topic: a}}); !errors.Is(err, errHook) {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, errHook) {
		t.Fatal(err)
	}
	if s := w.Topics()[0]; s.Messages != 2 || s.Lost != 1 {
		t.Errorf("%+v", s)
	}
	if m := readMeta(t, dir); m.MessageCount != 2 || len(m.Files) != 2 || m.Files[0].MessageCount != 1 || m.Topics[0].MessageCount != 2 {
		t.Errorf("%+v", m)
	}
	r, err := Open(context.Background(), dir, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if i := r.Info(); i.Messages != 2 || !i.CutOff {
		t.Errorf("%+v", i)
	}
}
