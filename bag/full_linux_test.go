package bag

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// A disk that fills up: the error says so, Close finishes, and the bag opens with what metadata.yaml or the storage counts.
func TestDiskFull(t *testing.T) {
	for _, storage := range []string{"sqlite3", "memory"} {
		t.Run(storage, func(t *testing.T) {
			root := t.TempDir()
			if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=8m"); err != nil {
				t.Skipf("no small disk: %v", err)
			}
			t.Cleanup(func() {
				if err := syscall.Unmount(root, 0); err != nil {
					t.Error(err)
				}
			})
			dir := filepath.Join(root, "yard")
			w := mustCreate(t, dir, WriterOptions{StorageID: storage, SyncInterval: -1, MaxBagSize: 3 << 20})
			a := mustTopic(t, w, "/a", "x/msg/A")
			var err error
			n, synced := uint64(0), uint64(0)
			for err == nil && n < 10_000 {
				if err = w.Write([]plugin.Message{{Topic: a, RecvTime: int64(n), Data: make([]byte, 10_000)}}); err == nil {
					n++
				}
				if n%20 == 0 && err == nil {
					if err = w.Sync(); err == nil {
						synced = n
					}
				}
			}
			if !errors.Is(err, syscall.ENOSPC) && !strings.Contains(err.Error(), "disk is full") {
				t.Errorf("after %d messages: %v", n, err)
			}
			if err := w.Close(); err == nil {
				t.Error("Close does not repeat the failure")
			}
			r := mustOpen(t, dir)
			i := r.Info()
			t.Logf("%d written, %d synced, %d found; %v", n, synced, i.Messages, err)
			got := readAll(t, r, plugin.Query{})
			if !i.CutOff || uint64(len(got)) != i.Messages || i.Messages < synced || synced < 400 {
				t.Errorf("%d written, %d synced, %d read: %+v", n, synced, len(got), i)
			}
			for k, m := range got {
				if m.RecvTime != int64(k) {
					t.Fatalf("message %d is at %d", k, m.RecvTime)
				}
			}
			r.Close()
		})
	}
}
