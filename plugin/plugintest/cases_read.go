package plugintest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/gobag/gobag/plugin"
)

// sample is a closed storage with three topics and n messages, stamps i/2 out of order here and there, opened.
func sample(t T, d plugin.Driver, o Options, n int) (*storage, plugin.Reader) {
	t.Helper()
	s := newStorage(t, d, o.Create)
	fillSample(s, n)
	return s, s.reopen()
}

func fillSample(s *storage, n int) {
	s.t.Helper()
	ids := []plugin.TopicID{s.topic("/a"), s.topic("/b"), s.topic("/c")}
	for i := range n {
		stamp := int64(i / 2)
		if i%10 == 0 {
			stamp = int64(i / 4)
		}
		s.write(plugin.Message{Topic: ids[i*7%3], RecvTime: stamp, SendTime: stamp - 1, Source: uint32(i % 2), Seq: uint64(i), Data: payload(uint64(i), 50+i%100)})
	}
}

func queryTopics(t T, d plugin.Driver, o Options) {
	s, r := sample(t, d, o, 600)
	defer closeReader(t, r)
	for _, ids := range [][]plugin.TopicID{nil, {}, {1}, {3}, {2, 1}, {1, 2, 3}, {3, 3}, {99}, {0}, {99, 2}, {math.MaxUint32}} {
		s.check(r, plugin.Query{Topics: ids})
	}
	many := make([]plugin.TopicID, 40000)
	for i := range many {
		many[i] = plugin.TopicID(i + 3)
	}
	s.check(r, plugin.Query{Topics: many})
}

func queryRange(t T, d plugin.Driver, o Options) {
	s, r := sample(t, d, o, 600)
	defer closeReader(t, r)
	for _, q := range []plugin.TimeRange{
		{Start: 0, End: 0}, {Start: 10, End: 20}, {Start: 20, End: 10}, {Start: -5, End: 5}, {Start: 299, End: 299}, {Start: 300, End: 1000},
		{Start: math.MinInt64, End: math.MaxInt64}, {Start: math.MinInt64, End: -1}, {Start: math.MaxInt64, End: math.MaxInt64},
	} {
		s.check(r, plugin.Query{Range: &q})
		s.check(r, plugin.Query{Range: &q, Topics: []plugin.TopicID{2}})
	}
}

func queryReverse(t T, d plugin.Driver, o Options) {
	if !d.Features().Reverse {
		return
	}
	s, r := sample(t, d, o, 600)
	defer closeReader(t, r)
	s.check(r, plugin.Query{Reverse: true})
	s.check(r, plugin.Query{Reverse: true, Topics: []plugin.TopicID{3, 1}})
	s.check(r, plugin.Query{Reverse: true, Range: &plugin.TimeRange{Start: 50, End: 60}})
}

func endOfIteration(t T, d plugin.Driver, o Options) {
	s, r := sample(t, d, o, 10)
	defer closeReader(t, r)
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		t.Fatalf("messages: %v", err)
	}
	var m plugin.Message
	for range s.want {
		if err := it.Next(&m); err != nil {
			t.Fatalf("next: %v", err)
		}
	}
	for range 3 {
		if err := it.Next(&m); !errors.Is(err, io.EOF) {
			t.Errorf("next behind the last message: %v, want io.EOF", err)
		}
	}
	for range 2 {
		if err := it.Close(); err != nil {
			t.Errorf("close iterator: %v", err)
		}
	}
	if err := it.Next(&m); !errors.Is(err, plugin.ErrClosed) {
		t.Errorf("next of a closed iterator: %v, want ErrClosed", err)
	}
	// Closed half way, and again from the beginning.
	it, err = r.Messages(plugin.Query{})
	if err != nil {
		t.Fatalf("messages: %v", err)
	}
	if err := errors.Join(it.Next(&m), it.Next(&m), it.Close()); err != nil {
		t.Errorf("half an iteration: %v", err)
	}
	s.check(r, plugin.Query{})
}

func twoIterators(t T, d plugin.Driver, o Options) {
	s, r := sample(t, d, o, 400)
	defer closeReader(t, r)
	var its []plugin.Iterator
	queries := []plugin.Query{{}, {Topics: []plugin.TopicID{2}}, {}}
	for _, q := range queries {
		it, err := r.Messages(q)
		if err != nil {
			t.Fatalf("messages while another iterator is open: %v", err)
		}
		its = append(its, it)
	}
	for k, step := range []int{3, 1, 2} {
		want := s.expected(queries[k])
		for i := range min(step*40, len(want)) {
			// The others move between two steps of this one; what it lent before must not matter.
			var m plugin.Message
			if err := its[k].Next(&m); err != nil {
				t.Fatalf("next: %v", err)
			}
			if !SameMessage(&m, &want[i]) {
				t.Fatalf("iterator %d, message %d is\n%s\nwant\n%s", k, i, show(&m), show(&want[i]))
			}
		}
	}
	for k, q := range queries {
		want := s.expected(q)[min([]int{3, 1, 2}[k]*40, len(s.expected(q))):]
		for i := range want {
			var m plugin.Message
			if err := its[k].Next(&m); err != nil || !SameMessage(&m, &want[i]) {
				t.Fatalf("iterator %d, later message %d is\n%s\nwant\n%s (%v)", k, i, show(&m), show(&want[i]), err)
			}
		}
		if err := its[k].Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

func concurrentReaders(t T, d plugin.Driver, o Options) {
	s, r := sample(t, d, o, 2000)
	defer closeReader(t, r)
	errs := make(chan error, 4)
	var wg sync.WaitGroup
	for k := range cap(errs) {
		q := plugin.Query{Reverse: k%2 == 1 && s.f.Reverse}
		if k > 1 {
			q.Topics = []plugin.TopicID{1, 3}
		}
		wg.Go(func() {
			want := s.expected(q)
			for range 3 {
				got, err := ReadAll(r, q)
				if err == nil && len(got) != len(want) {
					err = fmt.Errorf("%d messages, want %d", len(got), len(want))
				}
				for i := 0; err == nil && i < len(got); i++ {
					if !SameMessage(&got[i], &want[i]) {
						err = fmt.Errorf("message %d is %s, want %s", i, show(&got[i]), show(&want[i]))
					}
				}
				if err == nil && r.Info().Messages != uint64(len(s.want)) {
					err = errors.New("info changed")
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Errorf("beside other readers: %v", err)
	}
}

// snapshot lists what is below dir: names, sizes, times of change and content.
func snapshot(t T, dir string) string {
	t.Helper()
	var out string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		out += fmt.Sprintf("%s %v %d %v", rel, fi.Mode(), fi.Size(), fi.ModTime())
		if fi.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out += fmt.Sprintf(" %x", sha256.Sum256(b))
		}
		out += "\n"
		return nil
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return out
}

// readingChangesNothing reads a closed storage and one whose writer vanished, both write-protected.
func readingChangesNothing(t T, d plugin.Driver, o Options) {
	closed := newStorage(t, d, o.Create)
	fillSample(closed, 300)
	closed.close()
	cut := newStorage(t, d, o.Create)
	fillSample(cut, 300)
	cut.sync()
	whole := len(cut.want)
	cut.write(plugin.Message{Topic: 1, RecvTime: 1, Data: payload(1, 100)})
	abandoned := copyStorage(t, cut)
	cut.close()
	for _, s := range []*storage{closed, abandoned} {
		dir := filepath.Dir(s.path)
		protect(t, dir, true)
		before := snapshot(t, dir)
		if ok, err := d.Detect(s.path); !ok || err != nil {
			t.Errorf("detect: %v %v", ok, err)
		}
		r := s.open()
		got, err := ReadAll(r, plugin.Query{})
		if err != nil || len(got) < whole {
			t.Errorf("read write-protected storage: %d messages, %v", len(got), err)
		}
		closeReader(t, r)
		if after := snapshot(t, dir); after != before {
			t.Errorf("reading changed the files:\nbefore\n%s\nafter\n%s", before, after)
		}
		protect(t, dir, false)
	}
}

func protect(t T, dir string, on bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := os.FileMode(0o444)
		if e.IsDir() {
			mode = 0o555
		}
		if !on {
			mode |= 0o200
		}
		return os.Chmod(path, mode)
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// copyStorage copies the directory of a storage as it is right now, as after a crash.
func copyStorage(t T, s *storage) *storage {
	t.Helper()
	c := *s
	c.w = nil
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(s.path))); err != nil {
		t.Fatalf("%v", err)
	}
	c.path = filepath.Join(dir, filepath.Base(s.path))
	return &c
}

// readingWhileWriting opens a storage again and again while it is written to: what was synced must be there, what
// comes must be whole and right, and Info must say that the storage is not closed.
func readingWhileWriting(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	id, b := s.topic("/a"), s.topic("/b")
	s.sync()
	for round := range 8 {
		for i := range 50 {
			n := round*50 + i
			s.write(plugin.Message{Topic: id, RecvTime: int64(n), Data: payload(uint64(n), 3000)}, plugin.Message{Topic: b, RecvTime: int64(n), Data: payload(uint64(n), 10)})
		}
		s.sync()
		synced := len(s.want)
		s.write(plugin.Message{Topic: id, RecvTime: int64(round*50 + 49), Data: payload(1, 3000)})

		r := s.open()
		info := r.Info()
		if !info.Unclean {
			t.Errorf("a storage that is being written is said to be closed in order")
		}
		it, err := r.Messages(plugin.Query{})
		if err != nil {
			t.Fatalf("messages: %v", err)
		}
		// The writer goes on while the iterator is read.
		var got []plugin.Message
		for {
			var m plugin.Message
			if err := it.Next(&m); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("read while writing, message %d: %v", len(got)+1, err)
			}
			m.Data = append([]byte(nil), m.Data...)
			got = append(got, m)
			if len(got)%100 == 7 {
				s.write(plugin.Message{Topic: id, RecvTime: int64(round*50 + 49), Data: payload(uint64(len(got)), 3000)})
				s.sync()
			}
		}
		if err := it.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		closeReader(t, r)
		if len(got) < synced || uint64(len(got)) < info.Messages {
			t.Fatalf("read while writing: %d messages, synced were %d, info says %d", len(got), synced, info.Messages)
		}
		want := s.expected(plugin.Query{})
		compare(t, "read while writing", got, want[:min(len(got), len(want))])
	}
	closeReader(t, s.reopen())
}

func detect(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	if ok, err := d.Detect(s.path); !ok || err != nil {
		t.Errorf("detect a new storage: %v %v", ok, err)
	}
	s.close()
	if ok, err := d.Detect(s.path); !ok || err != nil {
		t.Errorf("detect an empty, closed storage: %v %v", ok, err)
	}
	dir := t.TempDir()
	for name, content := range foreign {
		path := filepath.Join(dir, name+d.Extension())
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatalf("%v", err)
		}
		if ok, err := d.Detect(path); ok || err != nil {
			t.Errorf("detect %s: %v %v", name, ok, err)
		}
	}
	if ok, err := d.Detect(t.TempDir()); ok || err != nil {
		t.Errorf("detect an empty directory: %v %v", ok, err)
	}
	if ok, err := d.Detect(filepath.Join(dir, "absent")); ok || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("detect nothing: %v %v, want fs.ErrNotExist", ok, err)
	}
	if d.Name() == "" || d.Extension() == "" || d.Extension()[0] != '.' {
		t.Errorf("name %q, extension %q", d.Name(), d.Extension())
	}
}

// foreign is what no storage format takes for its own.
var foreign = map[string]string{
	"empty":   "",
	"text":    "not a storage\n",
	"zeros":   string(make([]byte, 4096)),
	"ros1":    "#ROSBAG V2.0\nE\x00\x00\x00",
	"pointer": "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
}

func notAStorage(t T, d plugin.Driver, o Options) {
	dir := t.TempDir()
	for name, content := range foreign {
		path := filepath.Join(dir, name+d.Extension())
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatalf("%v", err)
		}
		refused(t, d, path, name, plugin.ErrFormat)
	}
	refused(t, d, t.TempDir(), "an empty directory", plugin.ErrFormat)
	refused(t, d, filepath.Join(dir, "absent"), "nothing", fs.ErrNotExist)
}

func refused(t T, d plugin.Driver, path, what string, want error) {
	t.Helper()
	r, err := d.OpenReader(background, path, plugin.ReadOptions{})
	if err == nil {
		closeReader(t, r)
	}
	if !errors.Is(err, want) {
		t.Errorf("open %s: %v, want %v", what, err, want)
	}
}
