package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// copyStorage copies a storage that is being written, with the files beside it.
func copyStorage(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.db3")
	for _, side := range append([]string{""}, sides...) {
		b, err := os.ReadFile(path + side)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(to+side, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// Every Sync is found by a reader, whether a commit or the log holds it, and closing leaves one file with all of it.
func TestSyncLog(t *testing.T) {
	for _, preset := range []string{plugin.PresetResilient, plugin.PresetNone} {
		path := filepath.Join(t.TempDir(), "a.db3")
		w, err := create(context.Background(), path, plugin.WriteOptions{Preset: preset})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "a/msg/B", Sources: []string{"x", "y"}}); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		var want []plugin.Message
		logged := 0
		for round := range effort(60, 24) {
			for range r.IntN(4) {
				m := plugin.Message{Topic: 1, RecvTime: int64(r.IntN(1000)), Source: uint32(r.IntN(3)), Seq: r.Uint64(), Data: make([]byte, r.IntN(30_000))}
				if r.IntN(2) == 0 {
					m.SendTime = m.RecvTime - 7
				}
				m.Order = uint64(len(want) + 1)
				want = append(want, m)
				if err := w.Write([]plugin.Message{m}); err != nil {
					t.Fatal(err)
				}
			}
			switch {
			case round == 30:
				if _, err := w.AddTopic(plugin.Topic{Name: "/later", Type: "a/msg/B"}); err != nil {
					t.Fatal(err)
				}
			case round%7 != 0 && !w.log.committed.IsZero():
				w.log.committed = time.Now()
			case round%7 == 0:
				w.log.committed = time.Time{}
			}
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
			logged = max(logged, int(w.log.next))
			for what, p := range map[string]string{"being written": path, "as a crash leaves it": copyStorage(t, path)} {
				if err := sameMessages(p, want); err != nil {
					t.Fatalf("%s, round %d, %s: %v", preset, round, what, err)
				}
			}
		}
		if logged < 2 {
			t.Errorf("%s: at most %d records on top of a commit", preset, logged)
		}
		if err := w.Close(plugin.Metadata{}); err != nil {
			t.Fatal(err)
		}
		for _, side := range sides {
			if _, err := os.Stat(path + side); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %s stays: %v", preset, side, err)
			}
		}
		if err := errors.Join(sameMessages(path, want), checkDatabase(path)); err != nil {
			t.Errorf("%s, closed: %v", preset, err)
		}
	}
}

// sameMessages compares a storage with the messages that were written, by their order.
func sameMessages(path string, want []plugin.Message) error {
	r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	got, err := plugintest.ReadAll(r, plugin.Query{})
	if err != nil {
		return err
	}
	if len(got) != len(want) || r.Info().Messages != uint64(len(want)) {
		return fmt.Errorf("%d messages, info says %d, want %d", len(got), r.Info().Messages, len(want))
	}
	for _, g := range got {
		w := want[g.Order-1]
		if g.RecvTime != w.RecvTime || g.SendTime != w.SendTime || g.Source != w.Source || g.Seq != w.Seq || !bytes.Equal(g.Data, w.Data) {
			return fmt.Errorf("message %d is not what was written", g.Order)
		}
	}
	return nil
}

// A log of another commit, one that is cut off or damaged, counts up to there.
func TestSyncLogEnd(t *testing.T) {
	l := syncLog{base: 7}
	var whole []byte
	var ends []int
	for i := range 5 {
		l.add(int64(i+1), &plugin.Message{Topic: 1, RecvTime: int64(i), Data: []byte("payload")})
		whole = append(whole, l.take()...)
		ends = append(ends, len(whole))
	}
	read := func(b []byte, base uint32) int {
		t.Helper()
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		ms, err := logMessages(f, base)
		if err != nil {
			t.Fatal(err)
		}
		return len(ms)
	}
	for n := range len(whole) + 1 {
		want := 0
		for want < len(ends) && ends[want] <= n {
			want++
		}
		if got := read(whole[:n], 7); got != want {
			t.Errorf("%d bytes: %d messages, want %d", n, got, want)
		}
		if n == len(whole) {
			break
		}
		broken := bytes.Clone(whole)
		broken[n] ^= 0x41
		within := 0
		for ends[within] <= n {
			within++
		}
		if got := read(broken, 7); got != within {
			t.Errorf("byte %d changed: %d messages, want %d", n, got, within)
		}
	}
	if got := read(append(bytes.Clone(whole), make([]byte, 100)...), 7); got != 5 {
		t.Errorf("zeros behind: %d", got)
	}
	if got := read(whole, 8); got != 0 {
		t.Errorf("of another commit: %d", got)
	}
}

// FuzzSyncLog reads bodies of records that no writer of ours made.
func FuzzSyncLog(f *testing.F) {
	l := syncLog{}
	l.add(1, &plugin.Message{Topic: 1, RecvTime: 5, SendTime: -3, Source: 2, Seq: 9, Data: []byte("payload")})
	f.Add(l.take()[logHeader:])
	f.Add([]byte{0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		if ms, whole := appendLogged(nil, b); !whole && len(ms) > 0 {
			t.Error("half a record")
		}
	})
}
