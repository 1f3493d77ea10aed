package bag

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

func bagDir(t testing.TB) string { return filepath.Join(t.TempDir(), "yard") }

func readMeta(t testing.TB, dir string) *Metadata {
	t.Helper()
	m, err := ParseMetadata([]byte(readFile(t, filepath.Join(dir, MetadataFile))))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func names(t testing.TB, dir string) string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func TestCreateWritesMetadata(t *testing.T) {
	dir := bagDir(t)
	w := mustCreate(t, dir, memory(WriterOptions{ROSDistro: "jazzy", CustomData: map[string]string{"who": "me", KeyState: "nonsense"}}))
	if got := names(t, dir); got != "metadata.yaml yard_0.mem" {
		t.Fatal(got)
	}
	m := readMeta(t, dir)
	want := &Metadata{Version: 9, StorageIdentifier: "memory", Start: plugin.NoStart, Paths: []string{"yard_0.mem"}, ROSDistro: "jazzy",
		Files:      []FileMetadata{{Path: "yard_0.mem", Start: plugin.NoStart}},
		CustomData: map[string]string{"who": "me", KeyState: StateRecording, KeyVersion: Version}}
	if !reflect.DeepEqual(m, want) {
		t.Fatalf("%+v", m)
	}
	r := mustOpen(t, filepath.Join(dir, "yard_0.mem"))
	if got := r.Info().CustomData[KeyState]; got != StateRecording {
		t.Fatalf("inside the storage: %q", got)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal("second Close:", err)
	}
	if got := readMeta(t, dir).CustomData[KeyState]; got != StateClosed {
		t.Fatal(got)
	}
	for _, err := range []error{w.Write([]plugin.Message{{Topic: 1}}), w.Split(), errOf(w.AddTopic(plugin.Topic{Name: "/a"}))} {
		if !errors.Is(err, plugin.ErrClosed) {
			t.Error(err)
		}
	}
}

func errOf(_ plugin.TopicID, err error) error { return err }

func TestCreateHumble(t *testing.T) {
	dir := bagDir(t)
	w := mustCreate(t, dir, memory(WriterOptions{Compat: plugin.CompatHumble}))
	q := EncodeQoS([]QoSProfile{DefaultQoSProfile()}, true)
	if _, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "x/msg/A", OfferedQoS: q}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text := readFile(t, filepath.Join(dir, MetadataFile))
	if !strings.Contains(text, "version: 5\n") || !strings.Contains(text, `offered_qos_profiles: "- history: 1\n`) {
		t.Fatal(text)
	}
	r := mustOpen(t, dir)
	if got := r.Info().Topics[0]; got.OfferedQoS != EncodeQoS([]QoSProfile{DefaultQoSProfile()}, false) || got.SerializationFormat != "cdr" {
		t.Fatalf("%+v", got)
	}
}

func TestCreateDamagesNothing(t *testing.T) {
	root := t.TempDir()
	full := filepath.Join(root, "full")
	if err := os.Mkdir(full, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "file")
	for _, p := range []string{filepath.Join(full, MetadataFile), file} {
		if err := os.WriteFile(p, []byte("precious"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := treeSum(t, root)
	for _, p := range []string{full, file, root} {
		if _, err := Create(context.Background(), p, memory(WriterOptions{})); !errors.Is(err, plugin.ErrExists) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if treeSum(t, root) != before {
		t.Error("something changed")
	}

	broken := newHooked()
	broken.create = func(string) error { return errHook }
	late := newHooked()
	late.features = func(f *plugin.Features) {}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		o    WriterOptions
		want string
	}{
		{nil, WriterOptions{StorageID: "nonsense"}, "no such storage format"},
		{nil, memory(WriterOptions{Preset: "nonsense"}), `unknown preset "nonsense"`},
		{nil, memory(WriterOptions{StorageConfig: map[string]any{"x": 1}}), `unknown storage configuration key "x"`},
		{nil, memory(WriterOptions{StorageConfig: map[string]any{"write": map[string]any{"y": 1}}}), `unknown storage configuration key "y"`},
		{nil, memory(WriterOptions{StorageConfig: map[string]any{"write": 3}}), "write is not a map"},
		{nil, memory(WriterOptions{MaxBagSize: 100}), "below the 4096 bytes"},
		{nil, memory(WriterOptions{MaxBagSize: -1, MaxBagDuration: -1}), "is negative\nmax bag duration"},
		{nil, memory(WriterOptions{Compat: "foxy"}), `compat "foxy" is not known`},
		{nil, WriterOptions{StorageID: broken.name}, "on fire"},
		{ctx, memory(WriterOptions{}), "context canceled"},
	} {
		if c.ctx == nil {
			c.ctx = context.Background()
		}
		p := filepath.Join(root, "new")
		w, err := Create(c.ctx, p, c.o)
		if err == nil {
			w.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
		if _, err := os.Lstat(p); err == nil {
			t.Errorf("%+v: %s is left: %s", c.o, p, names(t, p))
			os.RemoveAll(p)
		}
	}
	if treeSum(t, root) != before {
		t.Error("something changed")
	}
}

// A config file with a read part only says nothing about writing, and the parents of the bag are made.
func TestCreateConfigAndParents(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "yard")
	mustCreate(t, dir, memory(WriterOptions{StorageConfig: map[string]any{"read": map[string]any{"x": 1}}}))
	if got := names(t, dir); got != "metadata.yaml yard_0.mem" {
		t.Fatal(got)
	}
}

func TestWriterLocks(t *testing.T) {
	dir := bagDir(t)
	w := mustCreate(t, dir, memory(WriterOptions{}))
	if _, err := fsx.LockDir(dir); !errors.Is(err, fsx.ErrLocked) {
		t.Skipf("no locks here: %v", err)
	}
	if i := mustOpen(t, dir).Info(); !i.StillRecording || i.CutOff {
		t.Fatalf("%+v", i)
	}
	w.Close()
	if i := mustOpen(t, dir).Info(); i.StillRecording || i.CutOff || len(i.Warnings) > 0 {
		t.Fatalf("%+v", i)
	}
}

// Orders are given out over the whole bag, and given ones are kept.
func TestWriterOrder(t *testing.T) {
	dir := bagDir(t)
	w := mustCreate(t, dir, memory(WriterOptions{}))
	a := mustTopic(t, w, "/a", "x/msg/A")
	batch := []plugin.Message{{Topic: a, RecvTime: 1}, {Topic: a, RecvTime: 1}, {Topic: a, RecvTime: 1, Order: 10}, {Topic: a, RecvTime: 1}}
	mustWrite(t, w, batch...)
	if batch[0].Order != 0 {
		t.Error("the batch was changed")
	}
	if err := w.Split(); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 1})
	w.Close()
	var got []uint64
	for _, m := range readAll(t, mustOpen(t, dir), plugin.Query{}) {
		got = append(got, m.Order)
	}
	if !reflect.DeepEqual(got, []uint64{1, 2, 10, 11, 12}) {
		t.Fatal(got)
	}
}

func TestWriterUnknownTopic(t *testing.T) {
	w := mustCreate(t, bagDir(t), memory(WriterOptions{}))
	a := mustTopic(t, w, "/a", "x/msg/A")
	for _, id := range []plugin.TopicID{0, 2} {
		err := w.Write([]plugin.Message{{Topic: a}, {Topic: id}})
		if !errors.Is(err, plugin.ErrUnknownTopic) || !strings.Contains(err.Error(), "message 2 of 2") {
			t.Error(err)
		}
	}
	mustWrite(t, w, plugin.Message{Topic: a})
	if s := w.Stats(); s.Messages != 1 || s.Lost != 0 {
		t.Fatalf("%+v", s)
	}
}

// Ids stay the same for the caller whatever the storages call their topics; all files have all topics, the newest
// description of each.
func TestWriterTopicsOverFiles(t *testing.T) {
	d := newHooked()
	n := plugin.TopicID(0)
	d.idOffset = func() plugin.TopicID { n += 100; return n }
	dir := bagDir(t)
	w := mustCreate(t, dir, WriterOptions{StorageID: d.name})
	a, b := mustTopic(t, w, "/a", "x/msg/A"), mustTopic(t, w, "/b", "x/msg/A")
	c := mustTopic(t, w, "/a", "x/msg/B") // same name, other type
	for round := range 3 {
		for i, id := range []plugin.TopicID{a, b, c} {
			mustWrite(t, w, plugin.Message{Topic: id, RecvTime: int64(round*10 + i), Data: []byte(fmt.Sprint(round, id))})
		}
		again, err := w.AddTopic(plugin.Topic{Name: "/b", Type: "x/msg/A", TypeHash: fmt.Sprint("hash", round), Sources: []string{"p1", fmt.Sprint("p", round+2)}})
		if err != nil || again != b {
			t.Fatal(again, err)
		}
		if err := w.Split(); err != nil {
			t.Fatal(err)
		}
		if err := w.Split(); err != nil { // nothing in it: no new file
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, dir)
	i := r.Info()
	if len(i.Files) != 4 || len(i.Topics) != 3 || i.Messages != 9 {
		t.Fatalf("%+v", i)
	}
	for _, tp := range i.Topics {
		if tp.Count != 3 || tp.Name == "/b" && (tp.TypeHash != "hash2" || len(tp.Sources) != 2) {
			t.Errorf("%+v", tp)
		}
	}
	byName := map[string]plugin.TopicID{"/a x/msg/A": a, "/b x/msg/A": b, "/a x/msg/B": c}
	for _, m := range readAll(t, r, plugin.Query{}) {
		tp := i.Topics[m.Topic-1]
		if want := fmt.Sprint(m.RecvTime/10, byName[tp.Name+" "+tp.Type]); string(m.Data) != want {
			t.Errorf("message at %d of %s %s is %q, not %q", m.RecvTime, tp.Name, tp.Type, m.Data, want)
		}
	}
	for _, f := range i.Files {
		one, err := d.OpenReader(context.Background(), filepath.Join(dir, f.Path), plugin.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(one.Info().Topics); got != 3 {
			t.Errorf("%s has %d topics", f.Path, got)
		}
		one.Close()
	}
}

func TestWriterRefusesLargeMessages(t *testing.T) {
	d := newHooked()
	d.features = func(f *plugin.Features) { f.MaxMessageSize = 10 }
	dir := bagDir(t)
	w := mustCreate(t, dir, WriterOptions{StorageID: d.name})
	a, b := mustTopic(t, w, "/a", "x/msg/A"), mustTopic(t, w, "/b", "x/msg/A")
	mustWrite(t, w, plugin.Message{Topic: a, Data: make([]byte, 10)}, plugin.Message{Topic: a, Data: make([]byte, 11)},
		plugin.Message{Topic: b, Data: make([]byte, 12)}, plugin.Message{Topic: b, Data: make([]byte, 1)})
	mustWrite(t, w, plugin.Message{Topic: a, Data: make([]byte, 100)})
	if s := w.Stats(); s.Messages != 2 || s.Lost != 3 || s.Bytes != 11 {
		t.Fatalf("%+v", s)
	}
	want := []TopicStats{{ID: a, Name: "/a", Type: "x/msg/A", Messages: 1, Lost: 2, Bytes: 10, LostBytes: 111},
		{ID: b, Name: "/b", Type: "x/msg/A", Messages: 1, Lost: 1, Bytes: 1, LostBytes: 12}}
	if got := w.Topics(); !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v", got)
	}
	w.Close()
	if i := mustOpen(t, dir).Info(); i.Messages != 2 || len(i.Warnings) > 0 {
		t.Fatalf("%+v", i)
	}
}

// After a failed write all calls say so, Close finishes the file, and metadata.yaml counts what is really there.
func TestWriterFails(t *testing.T) {
	for _, where := range []string{"write", "sync", "close", "topic"} {
		t.Run(where, func(t *testing.T) {
			d := newHooked()
			dir := bagDir(t)
			w := mustCreate(t, dir, WriterOptions{StorageID: d.name, SyncInterval: -1})
			a := mustTopic(t, w, "/a", "x/msg/A")
			mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 5}, plugin.Message{Topic: a, RecvTime: 3})
			var err error
			switch where {
			case "write":
				d.write = func([]plugin.Message) error { return errHook }
				err = w.Write([]plugin.Message{{Topic: a, RecvTime: 9, Data: []byte("xyz")}, {Topic: a}})
				if s := w.Topics()[0]; s.Lost != 2 || s.LostBytes != 3 || s.Messages != 2 {
					t.Errorf("%+v", s)
				}
			case "sync":
				d.sync = func() error { return errHook }
				err = w.Sync()
			case "topic":
				d.addTopic = func(plugin.Topic) error { return errHook }
				_, err = w.AddTopic(plugin.Topic{Name: "/b"})
			case "close":
				d.close = func() error { return errHook }
				err = w.Split()
			}
			if !errors.Is(err, errHook) {
				t.Fatal(err)
			}
			d.write, d.sync, d.addTopic = nil, nil, nil
			for _, err := range []error{w.Write([]plugin.Message{{Topic: a}}), w.Sync(), w.Split(), errOf(w.AddTopic(plugin.Topic{Name: "/a"}))} {
				if !errors.Is(err, errHook) {
					t.Error(err)
				}
			}
			d.close = nil
			if err := w.Close(); !errors.Is(err, errHook) {
				t.Error(err)
			}
			if err := w.Close(); !errors.Is(err, errHook) {
				t.Error("second Close:", err)
			}
			m := readMeta(t, dir)
			files := 1
			if where == "close" { // the next one was begun before
				files = 2
			}
			if m.MessageCount != 2 || m.Start != 3 || m.Duration != 2 || m.Topics[0].MessageCount != 2 || m.CustomData[KeyState] != StateRecording || len(m.Paths) != files {
				t.Errorf("%+v", m)
			}
			if i := mustOpen(t, dir).Info(); i.Messages != 2 || !i.CutOff {
				t.Errorf("%+v", i)
			}
		})
	}
}

// What Write took and the storage does not hold after a failure is lost, for the topics and in the ledger.
func TestWriterFailsLater(t *testing.T) {
	d := newHooked()
	dir := bagDir(t)
	w := mustCreate(t, dir, WriterOptions{StorageID: d.name, SyncInterval: -1})
	a, b := mustTopic(t, w, "/a", "x/msg/A"), mustTopic(t, w, "/b", "x/msg/A")
	mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 5}, plugin.Message{Topic: b, RecvTime: 6})
	d.swallow = true
	mustWrite(t, w, plugin.Message{Topic: a, RecvTime: 7}, plugin.Message{Topic: a, RecvTime: 8})
	d.sync = func() error { return errHook }
	if err := w.Sync(); !errors.Is(err, errHook) {
		t.Fatal(err)
	}
	w.SetCustomData(KeyLedger, Ledger{Topics: map[string]TopicLedger{"/a": {Received: 4, Recorded: 3, Lost: Lost{Queue: 1}}, "/b": {Received: 1, Recorded: 1}}}.Encode())
	if err := w.Close(); !errors.Is(err, errHook) {
		t.Fatal(err)
	}
	s := w.Topics()
	if s[0].Messages != 1 || s[0].Lost != 2 || s[1].Messages != 1 || s[1].Lost != 0 || w.Stats().Messages != 2 {
		t.Errorf("%+v", s)
	}
	m := readMeta(t, dir)
	l, err := ParseLedger(m.CustomData[KeyLedger])
	if la, lb := l.Topics["/a"], l.Topics["/b"]; err != nil || m.MessageCount != 2 || la.Recorded != 1 || la.Lost != (Lost{Queue: 1, Storage: 2}) || lb.Recorded != 1 || lb.Lost.Total() != 0 {
		t.Errorf("%d messages, %+v, %v", m.MessageCount, l, err)
	}
}

// When the new file of a split cannot be opened, the old one goes on, and it is tried again later.
func TestSplitFails(t *testing.T) {
	for _, where := range []string{"create", "topic"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newHooked()
				dir := bagDir(t)
				w := mustCreate(t, dir, WriterOptions{StorageID: d.name, MaxBagDuration: time.Second})
				a := mustTopic(t, w, "/a", "x/msg/A")
				mustWrite(t, w, plugin.Message{Topic: a})
				if where == "create" {
					d.create = func(string) error { return errHook }
				} else {
					d.addTopic = func(plugin.Topic) error { return errHook }
				}
				if err := w.Split(); !errors.Is(err, errHook) {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				mustWrite(t, w, plugin.Message{Topic: a}) // tries, fails, goes on
				if s := w.Stats(); s.Files != 1 || s.Messages != 2 {
					t.Fatalf("%+v", s)
				}
				d.create, d.addTopic = nil, nil
				mustWrite(t, w, plugin.Message{Topic: a}) // too soon
				if s := w.Stats(); s.Files != 1 {
					t.Fatalf("%+v", s)
				}
				time.Sleep(splitRetry)
				mustWrite(t, w, plugin.Message{Topic: a})
				if s := w.Stats(); s.Files != 2 || s.Messages != 4 {
					t.Fatalf("%+v", s)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if got, want := names(t, dir), fmt.Sprintf("metadata.yaml yard_0.%s yard_1.%s", d.name, d.name); got != want {
					t.Fatal(got)
				}
				if i := mustOpen(t, dir).Info(); i.Messages != 4 || i.CutOff || len(i.Warnings) > 0 {
					t.Fatalf("%+v", i)
				}
			})
		})
	}
}

// Syncing happens beside writing, and Stats never waits for the storage.
func TestSyncIsOffTheHotPath(t *testing.T) {
	d := newHooked()
	hold, entered := make(chan struct{}), make(chan struct{}, 10)
	d.sync = func() error { entered <- struct{}{}; <-hold; return nil }
	w := mustCreate(t, bagDir(t), WriterOptions{StorageID: d.name, SyncInterval: time.Millisecond})
	a := mustTopic(t, w, "/a", "x/msg/A")
	mustWrite(t, w, plugin.Message{Topic: a})
	<-entered
	for range 10 {
		mustWrite(t, w, plugin.Message{Topic: a})
		w.SetCustomData("k", "v")
	}
	if s := w.Stats(); s.Messages != 11 {
		t.Fatalf("%+v", s)
	}
	close(hold)

	block, inWrite := make(chan struct{}), make(chan struct{}) // a storage that holds its lock and does not answer
	d.write = func([]plugin.Message) error { close(inWrite); <-block; return nil }
	var writing sync.WaitGroup
	writing.Go(func() { w.Write([]plugin.Message{{Topic: a}}) })
	<-inWrite
	w.Stats()
	w.Topics()
	w.SetCustomData("k", "w")
	close(block)
	writing.Wait()
	d.write = nil
}

func TestSyncInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHooked()
		var syncs atomic.Int64
		d.sync = func() error { syncs.Add(1); time.Sleep(10 * time.Millisecond); return nil }
		w := mustCreate(t, bagDir(t), WriterOptions{StorageID: d.name, SyncInterval: 100 * time.Millisecond})
		a := mustTopic(t, w, "/a", "x/msg/A")
		for range 10 {
			mustWrite(t, w, plugin.Message{Topic: a})
			time.Sleep(100 * time.Millisecond)
		}
		if n := syncs.Load(); n < 5 || n > 11 {
			t.Errorf("%d syncs in a second", n)
		}
		time.Sleep(time.Second)
		if n := syncs.Load(); n > 12 {
			t.Errorf("%d syncs, though nothing was written", n)
		}
		if s := w.Stats(); s.LastSync > 100*time.Millisecond || s.LongestSync != 10*time.Millisecond {
			t.Errorf("%+v", s)
		}
		w.Close()
	})
}

func TestOnSplitAndCustomData(t *testing.T) {
	dir := bagDir(t)
	var splits []string
	var w *Writer
	w = mustCreate(t, dir, memory(WriterOptions{OnSplit: func(closed, opened string) {
		splits = append(splits, closed+" "+opened)
		w.SetCustomData("splits", fmt.Sprint(len(splits)))
		if got := w.Stats().File; got != opened {
			t.Error(got)
		}
	}}))
	a := mustTopic(t, w, "/a", "x/msg/A")
	for range 3 {
		mustWrite(t, w, plugin.Message{Topic: a})
		w.SetCustomData(KeyState, "nonsense")
		if err := w.Split(); err != nil {
			t.Fatal(err)
		}
	}
	if got := readMeta(t, dir).CustomData; got["splits"] != "2" || got[KeyState] != StateRecording {
		t.Error(got)
	}
	w.Close()
	if !reflect.DeepEqual(splits, []string{"yard_0.mem yard_1.mem", "yard_1.mem yard_2.mem", "yard_2.mem yard_3.mem"}) {
		t.Error(splits)
	}
	if got := mustOpen(t, dir).Info().CustomData; got["splits"] != "3" || got[KeyState] != StateClosed {
		t.Error(got)
	}
	if got := mustOpen(t, filepath.Join(dir, "yard_3.mem")).Info().CustomData; got["splits"] != "3" || got[KeyState] != StateClosed {
		t.Error("inside the storage:", got)
	}
}

// The wall clock may do what it likes: files are split by the monotonic clock, none is empty, nothing is lost.
func TestWallClockJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := bagDir(t)
		w := mustCreate(t, dir, memory(WriterOptions{MaxBagDuration: 10 * time.Second}))
		a := mustTopic(t, w, "/a", "x/msg/A")
		var want []int64
		for i := range 600 { // 60 s
			time.Sleep(100 * time.Millisecond)
			wall := time.Now().UnixNano()
			switch {
			case i >= 400:
				wall += 50 * 365 * 24 * int64(time.Hour)
			case i >= 200:
				wall -= int64(time.Hour)
			}
			want = append(want, wall)
			mustWrite(t, w, plugin.Message{Topic: a, RecvTime: wall})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		i := mustOpen(t, dir).Info()
		if len(i.Files) != 6 || i.Messages != 600 || i.Start != want[200] || i.End != want[599] || len(i.Warnings) > 0 {
			t.Fatalf("%+v", i)
		}
		for _, f := range i.Files {
			if f.Messages < 90 || f.Messages > 110 {
				t.Errorf("%+v", f)
			}
		}
	})
}

func TestWriterConcurrency(t *testing.T) {
	dir := bagDir(t)
	w := mustCreate(t, dir, memory(WriterOptions{SyncInterval: time.Millisecond, MaxBagSize: 50_000}))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 100 {
				id, err := w.AddTopic(plugin.Topic{Name: fmt.Sprintf("/t%d", i%7), Type: "x/msg/A", TypeHash: fmt.Sprint(i)})
				if err != nil {
					t.Error(err)
					return
				}
				if err := w.Write([]plugin.Message{{Topic: id, RecvTime: int64(g), Data: make([]byte, 1000)}}); err != nil {
					t.Error(err)
				}
				w.SetCustomData("k", fmt.Sprint(i))
				w.Stats()
				w.Topics()
				if i%30 == 0 {
					w.Sync()
					w.Split()
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if i := mustOpen(t, dir).Info(); i.Messages != 400 || len(i.Topics) != 7 {
		t.Fatalf("%+v", i)
	}
}

// Writing allocates nothing per message in the bag itself.
func TestWriteAllocates(t *testing.T) {
	d := newHooked()
	w := mustCreate(t, bagDir(t), WriterOptions{StorageID: d.name, SyncInterval: -1, MaxBagSize: 1 << 40})
	a := mustTopic(t, w, "/a", "x/msg/A")
	batch := make([]plugin.Message, 200)
	for i := range batch {
		batch[i] = plugin.Message{Topic: a, Data: make([]byte, 100)}
	}
	mustWrite(t, w, batch...)
	if n := testing.AllocsPerRun(20, func() { w.Write(batch) }); n > 20 {
		t.Fatalf("%v allocations for %d messages", n, len(batch))
	}
}
