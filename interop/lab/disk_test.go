//go:build linux

package lab

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// skipWithoutDisk skips where no disk can be made: not root, or no nbdkit and interop tests are not required.
func newTestDisk(t *testing.T, o DiskOptions) *Disk {
	t.Helper()
	d, err := NewDisk(o)
	if err != nil {
		if os.Geteuid() == 0 && os.Getenv("GOBAG_INTEROP") == "required" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// appendRecords appends numbered 4 KiB records to a file and syncs after each where durable, until stop. last is the
// number that is known to be on the disk.
func appendRecords(t *testing.T, path string, durable bool, last *atomic.Uint64, stop <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	f, err := os.Create(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	record := make([]byte, 4096)
	for n := uint64(1); ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		binary.LittleEndian.PutUint64(record, n)
		if _, err := f.Write(record); err != nil {
			t.Error(err)
			return
		}
		if durable {
			if err := f.Sync(); err != nil {
				t.Error(err)
				return
			}
		} else {
			time.Sleep(time.Millisecond)
		}
		last.Store(n)
	}
}

// recordsIn counts the whole records of a file in order.
func recordsIn(t *testing.T, path string) uint64 {
	t.Helper()
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for len(b) >= 4096 && binary.LittleEndian.Uint64(b) == n+1 {
		n++
		b = b[4096:]
	}
	return n
}

// A writer that syncs keeps everything it synced before a power cut; one that does not, loses: the cut is a real one.
func TestPowerCut(t *testing.T) {
	for _, tc := range []struct {
		name           string
		cache, durable bool
	}{
		{"synced", false, true},
		{"synced, write cache", true, true},
		{"not synced, write cache", true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newTestDisk(t, DiskOptions{Size: 96 << 20, WriteCache: tc.cache})
			var last atomic.Uint64
			stop, done := make(chan struct{}), make(chan struct{})
			go appendRecords(t, filepath.Join(d.Dir, "log"), tc.durable, &last, stop, done)
			defer func() { close(stop); <-done }()
			for i := range 3 {
				time.Sleep(time.Duration(100+rand.IntN(200)) * time.Millisecond)
				image := filepath.Join(t.TempDir(), "cut.img")
				known := last.Load()
				if _, err := d.Snapshot(image); err != nil {
					t.Fatal(err)
				}
				dir, unmount, err := MountImage(image)
				if err != nil {
					t.Fatal(err)
				}
				kept := recordsIn(t, filepath.Join(dir, "log"))
				if err := unmount(); err != nil {
					t.Fatal(err)
				}
				if known == 0 {
					t.Fatalf("cut %d: nothing was written before it", i)
				}
				if tc.durable && kept < known {
					t.Errorf("cut %d: %d records kept, %d were synced before it", i, kept, known)
				}
				if !tc.durable && kept >= known {
					t.Errorf("cut %d: all of %d records kept although none was synced", i, known)
				}
			}
		})
	}
}

// A frozen disk blocks a writer until it thaws.
func TestFreeze(t *testing.T) {
	d := newTestDisk(t, DiskOptions{Size: 32 << 20})
	if err := d.Freeze(); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(filepath.Join(d.Dir, "f"), []byte("x"), 0o644) }()
	select {
	case err := <-wrote:
		t.Fatalf("write on a frozen disk returned: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := d.Thaw(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-wrote:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("write still blocked after thaw")
	}
}
