package sqlite

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// Whatever journal mode the user asks for, what is read beside the writer is right, or it is said that it cannot be.
func TestLiveJournalModes(t *testing.T) {
	for mode, readable := range map[string]bool{"PERSIST": true, "DELETE": true, "TRUNCATE": true, "WAL": true, "MEMORY": false, "OFF": false} {
		path := filepath.Join(t.TempDir(), "a.db3")
		w, err := Driver{}.Create(context.Background(), path, plugin.WriteOptions{Config: map[string]any{"pragmas": []any{"journal_mode = " + mode}}})
		if err != nil {
			t.Fatal(mode, err)
		}
		check := func(n int) {
			t.Helper()
			r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
			if !readable {
				if err == nil || !strings.Contains(err.Error(), "without a journal file") {
					t.Errorf("%s: %v", mode, err)
				}
				return
			}
			if err != nil {
				t.Errorf("%s: %v", mode, err)
				return
			}
			defer r.Close()
			if ms, err := plugintest.ReadAll(r, plugin.Query{}); err != nil || len(ms) != n {
				t.Errorf("%s: %d messages, want %d, %v", mode, len(ms), n, err)
			}
		}
		check(0)
		id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "std_msgs/msg/String"})
		if err != nil {
			t.Fatal(mode, err)
		}
		for i := range 3 {
			for range 10 {
				if err := w.Write([]plugin.Message{{Topic: id, RecvTime: 1, Data: make([]byte, 1000)}}); err != nil {
					t.Fatal(mode, err)
				}
			}
			check(10 * i)
			if err := w.Sync(); err != nil {
				t.Fatal(mode, err)
			}
			check(10*i + 10)
		}
		if err := w.Close(plugin.Metadata{}); err != nil {
			t.Fatal(mode, err)
		}
		readable = true
		check(30)
	}
}

// A recording of some other program, which locks for each transaction only, is read while it goes on: transactions
// come whole or not at all, and the writer is never held up.
func TestLiveForeign(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("locks of this process cannot be seen")
	}
	for _, mode := range []string{"DELETE", "TRUNCATE", "PERSIST", "MEMORY", "WAL"} {
		t.Run(mode, func(t *testing.T) {
			path := oddBag(t, "PRAGMA page_size = 1024", withIndex, topicA)
			stop, done := make(chan struct{}), make(chan error)
			go func() { done <- writeForeign(path, mode, stop) }()
			rounds := 0
			for start := time.Now(); time.Since(start) < 300*time.Millisecond || rounds < 3; rounds++ {
				r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
				if err != nil {
					t.Error(err)
					break
				}
				ms, err := plugintest.ReadAll(r, plugin.Query{})
				if err != nil || len(ms)%foreignBatch != 0 || r.Info().Messages != uint64(len(ms)) {
					t.Errorf("%d messages, info says %d, %v", len(ms), r.Info().Messages, err)
				}
				for i := 1; i < len(ms); i++ {
					if ms[i].RecvTime < ms[i-1].RecvTime {
						t.Errorf("message %d out of order", i)
					}
				}
				r.Close()
				if t.Failed() {
					break
				}
			}
			close(stop)
			if err := <-done; err != nil {
				t.Error("the writer was disturbed:", err)
			}
		})
	}
}

const foreignBatch = 30

// pause lies between two transactions: a reader must get a part of its work done between them, on a busy machine and
// with the race detector too.
var pause = map[bool]time.Duration{false: 20 * time.Millisecond, true: 150 * time.Millisecond}[copyBinds]

// writeForeign writes transactions of foreignBatch messages, stamps in disorder, with pauses.
func writeForeign(path, mode string, stop <-chan struct{}) error {
	c, err := openConn(path, sqlite3.SQLITE_OPEN_READWRITE, "")
	if err != nil {
		return err
	}
	defer c.close()
	for _, p := range []string{"journal_mode = " + mode, "synchronous = OFF", "cache_size = 10"} {
		if _, err := c.queryText("PRAGMA " + p); err != nil {
			return err
		}
	}
	for n := 0; ; {
		select {
		case <-stop:
			return nil
		case <-time.After(pause):
		}
		if err := c.exec("BEGIN"); err != nil {
			return err
		}
		for range foreignBatch {
			n++
			if err := c.exec("INSERT INTO messages VALUES (?, 1, ?, ?)", n, n*7919%100000, make([]byte, n%700)); err != nil {
				return err
			}
		}
		if err := c.exec("COMMIT"); err != nil {
			return err
		}
	}
}
