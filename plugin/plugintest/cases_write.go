package plugintest

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gobag/gobag/plugin"
)

func emptyStorage(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	closeReader(t, s.reopen())
}

func roundTrip(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	a, b := s.topic("/a"), s.topic("/b")
	for i := range 500 {
		topic := a
		if i%3 == 0 {
			topic = b
		}
		s.write(plugin.Message{Topic: topic, RecvTime: 1_700_000_000_000_000_000 + int64(i)*1000, Data: payload(uint64(i), i)})
	}
	closeReader(t, s.reopen())
}

func countsAndBounds(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	id := s.topic("/a")
	s.write(plugin.Message{Topic: id, RecvTime: 20, Data: []byte("x")}, plugin.Message{Topic: id, RecvTime: 10, Data: []byte("yz")})
	s.write(plugin.Message{Topic: id, RecvTime: 15, Data: []byte("z")})
	closeReader(t, s.reopen())
}

func stampsOutOfOrder(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	a, b := s.topic("/a"), s.topic("/b")
	for i := range int64(300) {
		s.write(plugin.Message{Topic: a, RecvTime: i * 7919 % 311, Data: payload(uint64(i), 20)},
			plugin.Message{Topic: b, RecvTime: 311 - i, Data: payload(uint64(i), 30)})
	}
	closeReader(t, s.reopen())
}

func extremeStamps(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	id := s.topic("/a")
	for i, stamp := range []int64{0, math.MaxInt64, -1, math.MinInt64, 1, math.MaxInt64 - 1, math.MinInt64 + 1} {
		s.write(plugin.Message{Topic: id, RecvTime: stamp, SendTime: -stamp, Data: []byte{byte(i)}})
	}
	r := s.reopen()
	defer closeReader(t, r)
	for _, q := range []plugin.TimeRange{{Start: math.MinInt64, End: -1}, {Start: 0, End: math.MaxInt64}, {Start: math.MaxInt64, End: math.MaxInt64}} {
		s.check(r, plugin.Query{Range: &q})
	}
}

func equalStampsInTopic(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	id := s.topic("/a")
	for i := range 100 {
		s.write(plugin.Message{Topic: id, RecvTime: 5, Data: []byte{byte(i)}})
	}
	closeReader(t, s.reopen())
}

func equalStampsAcrossTopics(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	ids := []plugin.TopicID{s.topic("/c"), s.topic("/a"), s.topic("/b")}
	for i := range 100 {
		s.write(plugin.Message{Topic: ids[i*i%3], RecvTime: int64(i / 10), Data: []byte{byte(i)}})
	}
	closeReader(t, s.reopen())
}

func orderNumbers(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	id := s.topic("/a")
	for i, n := range []uint64{0, 0, 10, 11, 5, 0, 11, 1000, math.MaxUint64, 1 << 63, 1 << 40} {
		s.write(plugin.Message{Topic: id, RecvTime: int64(i % 2), Order: n, Data: []byte{byte(i)}})
	}
	closeReader(t, s.reopen())
}

// batchIsNotKept relies on storage.write, which scribbles over every batch.
func batchIsNotKept(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	id := s.topic("/a")
	for i := range 20 {
		batch := make([]plugin.Message, 10)
		for k := range batch {
			batch[k] = plugin.Message{Topic: id, RecvTime: int64(i), Data: payload(uint64(i*10+k), 5000)}
		}
		s.write(batch...)
	}
	s.write()
	closeReader(t, s.reopen())
}

func emptyPayload(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	id := s.topic("/a")
	s.write(plugin.Message{Topic: id, RecvTime: 1}, plugin.Message{Topic: id, RecvTime: 2, Data: []byte{}}, plugin.Message{Topic: id, RecvTime: 3, Data: []byte{0}})
	closeReader(t, s.reopen())
}

func bigPayload(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	id := s.topic("/a")
	for i, n := range []int{16<<20 - 1, 1, 17<<20 + 3, 1 << 20, 100} {
		s.write(plugin.Message{Topic: id, RecvTime: int64(i), Data: payload(uint64(i), n)})
	}
	closeReader(t, s.reopen())
}

func messageTooLarge(t T, d plugin.Driver, o Options) {
	limit := d.Features().MaxMessageSize
	if limit == 0 || limit > 1<<30 || raceDetector && limit > 64<<20 {
		return // no limit, or one that only a test with much memory can reach
	}
	s := newStorage(t, d, o.Create)
	id := s.topic("/a")
	huge := make([]byte, limit+1) // never touched, so never really there
	err := s.w.Write([]plugin.Message{{Topic: id, RecvTime: 1, Data: []byte("x")}, {Topic: id, RecvTime: 2, Data: huge}})
	if !errors.Is(err, plugin.ErrUnsupported) {
		t.Errorf("message larger than Features.MaxMessageSize: %v, want ErrUnsupported", err)
	}
	s.write(plugin.Message{Topic: id, RecvTime: 3, Data: []byte("y")})
	closeReader(t, s.reopen())
}

func unknownTopic(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	id := s.topic("/a")
	s.write(plugin.Message{Topic: id, RecvTime: 1, Data: []byte("a")})
	for _, bad := range []plugin.TopicID{0, id + 1, math.MaxUint32} {
		err := s.w.Write([]plugin.Message{{Topic: id, RecvTime: 2, Data: []byte("b")}, {Topic: bad, RecvTime: 3}, {Topic: id, RecvTime: 4}})
		if !errors.Is(err, plugin.ErrUnknownTopic) {
			t.Errorf("write to topic %d: %v, want ErrUnknownTopic", bad, err)
		}
	}
	s.write(plugin.Message{Topic: id, RecvTime: 5, Data: []byte("c")})
	closeReader(t, s.reopen())
}

// size allows what a format adds at closing, but not pending bytes that were left out.
func size(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	id := s.topic("/a")
	var last int64
	for i := range 300 {
		s.write(plugin.Message{Topic: id, RecvTime: int64(i), Data: payload(uint64(i), 10000)})
		n := s.w.Size()
		if n < last {
			t.Errorf("size fell from %d to %d while messages were written", last, n)
		}
		last = n
	}
	if o.Create.Preset != plugin.PresetSmall && last < 300*10000/2 {
		t.Errorf("size %d after 3 MB of random bytes were written", last)
	}
	s.close()
	r := s.open()
	defer closeReader(t, r)
	if got := r.Info().Size; abs(got-last) > 512<<10+got/20 {
		t.Errorf("size before closing: %d, after: %d", last, got)
	}
}

func abs(n int64) int64 { return max(n, -n) }

func syncAndSizeWhileWriting(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	id := s.topic("/a")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var syncErr error
	wg.Go(func() {
		for last := int64(0); ; {
			select {
			case <-stop:
				return
			default:
			}
			if err := s.w.Sync(); err != nil {
				syncErr = err
				return
			}
			n := s.w.Size()
			if n < last {
				syncErr = errors.New("size fell while messages were written")
				return
			}
			last = n
			time.Sleep(time.Millisecond)
		}
	})
	for i := range 2000 {
		s.write(plugin.Message{Topic: id, RecvTime: int64(i), Data: payload(uint64(i), 2000)})
		if i%500 == 0 {
			s.topic("/t" + strings.Repeat("x", i/500))
		}
	}
	close(stop)
	wg.Wait()
	if syncErr != nil {
		t.Errorf("sync beside write: %v", syncErr)
	}
	closeReader(t, s.reopen())
}

func closing(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	id := s.topic("/a")
	s.write(plugin.Message{Topic: id, RecvTime: 1, Data: []byte("a")})
	s.close()
	for range 2 {
		if err := s.w.Close(plugin.Metadata{Version: 9, Text: "too late"}); err != nil {
			t.Errorf("close again: %v", err)
		}
	}
	if err := s.w.Write([]plugin.Message{{Topic: id, RecvTime: 2}}); !errors.Is(err, plugin.ErrClosed) {
		t.Errorf("write after close: %v, want ErrClosed", err)
	}
	if _, err := s.w.AddTopic(plugin.Topic{Name: "/late", Type: "x/msg/Y"}); !errors.Is(err, plugin.ErrClosed) {
		t.Errorf("add topic after close: %v, want ErrClosed", err)
	}
	if err := s.w.Sync(); !errors.Is(err, plugin.ErrClosed) {
		t.Errorf("sync after close: %v, want ErrClosed", err)
	}
	if s.w.Size() <= 0 {
		t.Errorf("size after close: %d", s.w.Size())
	}
	r := s.open()
	s.checkInfo(r)
	s.check(r, plugin.Query{})
	closeReader(t, r)
	if err := r.Close(); err != nil {
		t.Errorf("close the reader again: %v", err)
	}
	if _, err := r.Messages(plugin.Query{}); !errors.Is(err, plugin.ErrClosed) {
		t.Errorf("messages of a closed reader: %v, want ErrClosed", err)
	}
}

func metadata(t T, d plugin.Driver, o Options) {
	if !d.Features().Metadata {
		return
	}
	first := plugin.Metadata{Version: 9, Text: "version: 9\nmessage_count: 0\n"}
	o.Create.Metadata = first
	o.Create.ROSDistro = "jazzy"
	s := newStorage(t, d, o.Create)
	id := s.topic("/a")
	s.sync()
	r := s.open()
	if got := r.Info().Metadata; got != first {
		t.Errorf("metadata given to Create: %+v, want %+v", got, first)
	}
	closeReader(t, r)
	s.write(plugin.Message{Topic: id, RecvTime: 1})
	last := plugin.Metadata{Version: 8, Text: "version: 8\ncustom_data:\n  \"ключ\": \"it's\"\n"}
	if err := s.w.Close(last); err != nil {
		t.Fatalf("close: %v", err)
	}
	r = s.open()
	defer closeReader(t, r)
	if got := r.Info(); got.Metadata != last || got.ROSDistro != "jazzy" && got.ROSDistro != "" {
		t.Errorf("after close: %+v of %q, want %+v", got.Metadata, got.ROSDistro, last)
	}
}

func presets(t T, d plugin.Driver, o Options) {
	names := []string{"", plugin.PresetResilient, plugin.PresetFast, plugin.PresetSmall, plugin.PresetNone}
	for _, p := range d.Features().Presets {
		names = append(names, p.Name)
		if p.Help == "" {
			t.Errorf("preset %q says nothing of itself", p.Name)
		}
	}
	for _, name := range names {
		c := o.Create
		c.Preset = name
		s := newStorage(t, d, c)
		id := s.topic("/a")
		for i := range 100 {
			s.write(plugin.Message{Topic: id, RecvTime: int64(i), Data: payload(uint64(i), 1000)})
		}
		closeReader(t, s.reopen())
	}
	c := o.Create
	c.Preset = "no such preset"
	path := newPath(t, d)
	w, err := d.Create(background, path, c)
	if err == nil {
		_ = w.Close(plugin.Metadata{}) // it should not be there at all
		t.Fatalf("preset %q is accepted", c.Preset)
	}
	for _, want := range []string{c.Preset, plugin.PresetResilient, plugin.PresetFast, plugin.PresetSmall, plugin.PresetNone} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error for an unknown preset does not name %q: %v", want, err)
		}
	}
	nothingAt(t, path)
}

func configuration(t T, d plugin.Driver, o Options) {
	c := o.Create
	c.Config = map[string]any{"no such key": 1}
	path := newPath(t, d)
	w, err := d.Create(background, path, c)
	if err == nil {
		_ = w.Close(plugin.Metadata{}) // it should not be there at all
		t.Fatalf("an unknown configuration key is accepted for writing")
	}
	if !strings.Contains(err.Error(), "no such key") {
		t.Errorf("the error for an unknown configuration key does not name it: %v", err)
	}
	nothingAt(t, path)
	s := newStorage(t, d, o.Create)
	s.close()
	r, err := d.OpenReader(background, s.path, plugin.ReadOptions{Config: c.Config})
	if err == nil {
		closeReader(t, r)
		t.Fatalf("an unknown configuration key is accepted for reading")
	}
	if !strings.Contains(err.Error(), "no such key") {
		t.Errorf("the error for an unknown configuration key does not name it: %v", err)
	}
}

func nothingAt(t T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a failed Create left %s (%v)", path, err)
	}
}

func generations(t T, d plugin.Driver, o Options) {
	for _, g := range []plugin.Compat{"", plugin.CompatJazzy, plugin.CompatHumble} {
		c := o.Create
		c.Compat, c.ROSDistro = g, string(g)
		s := newStorage(t, d, c)
		id := s.addTopic(plugin.Topic{Name: "/a", Type: "a/msg/B", SerializationFormat: "cdr", OfferedQoS: "- history: 3\n",
			Definition: plugin.Definition{Encoding: "ros2msg", Text: "int32 x"}, TypeHash: "RIHS01_00", Sources: []string{"w"}})
		s.write(plugin.Message{Topic: id, RecvTime: 3, SendTime: 2, Source: 1, Seq: 9, Data: []byte("a")})
		closeReader(t, s.reopen())
	}
}

func contextDone(t T, d plugin.Driver, o Options) {
	ctx, cancel := context.WithCancel(background)
	cancel()
	path := newPath(t, d)
	if w, err := d.Create(ctx, path, o.Create); !errors.Is(err, context.Canceled) {
		t.Errorf("create with a cancelled context: %v", err)
		if w != nil {
			_ = w.Close(plugin.Metadata{}) // it should not be there at all
		}
	} else {
		nothingAt(t, path)
	}
	s := newStorage(t, d, o.Create)
	s.close()
	if r, err := d.OpenReader(ctx, s.path, plugin.ReadOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("open with a cancelled context: %v", err)
		if r != nil {
			closeReader(t, r)
		}
	}
}

func exists(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	id := s.topic("/a")
	s.write(plugin.Message{Topic: id, RecvTime: 1, Data: []byte("precious")})
	s.close()
	other := newPath(t, d)
	if err := os.WriteFile(other, []byte("something else"), 0o644); err != nil {
		t.Fatalf("%v", err)
	}
	for _, path := range []string{s.path, other} {
		w, err := d.Create(background, path, o.Create)
		if !errors.Is(err, plugin.ErrExists) {
			t.Errorf("create over something: %v, want ErrExists", err)
		}
		if w != nil {
			_ = w.Close(plugin.Metadata{}) // it should not be there at all
		}
	}
	r := s.open()
	s.check(r, plugin.Query{})
	closeReader(t, r)
	if b, err := os.ReadFile(other); string(b) != "something else" {
		t.Errorf("a refused Create changed the file in its place to %q (%v)", b, err)
	}
}
