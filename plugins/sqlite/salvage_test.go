package sqlite

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// Whatever is overwritten, salvage ends without a panic and hands over no message that was not there.
func TestSalvageSpoilt(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "a.db3")
	cfg := map[string]any{"pragmas": []any{"page_size = 512"}}
	w, err := Driver{}.Create(context.Background(), src, plugin.WriteOptions{Config: cfg})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "x/msg/A", SerializationFormat: "cdr"})
	if err != nil {
		t.Fatal(err)
	}
	const n = 300
	for i := range n {
		if err := w.Write([]plugin.Message{{Topic: id, RecvTime: int64(i), Data: make([]byte, i*7)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for k := range 150 {
		b := append([]byte(nil), whole...)
		for range r.IntN(20) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		if k%3 == 0 {
			at := r.IntN(len(b) - 2000)
			clear(b[at : at+2000])
		}
		if k%5 == 0 {
			b = b[:r.IntN(len(b))]
		}
		bad := filepath.Join(dir, "bad.db3")
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		sink := &sink{}
		rep, err := Driver{}.Salvage(context.Background(), bad, sink)
		if err == nil && rep.Messages != uint64(sink.n) || sink.n > n+5 {
			t.Errorf("round %d: %+v, %d messages, %v", k, rep, sink.n, err)
		}
	}
	sink := &sink{}
	if rep, err := (Driver{}).Salvage(context.Background(), src, sink); err != nil || rep.Messages != n || rep.Lost != 0 {
		t.Errorf("%+v, %v", rep, err)
	}
}

// sink counts what it is handed.
type sink struct{ n, topics int }

func (s *sink) AddTopic(plugin.Topic) (plugin.TopicID, error) {
	s.topics++
	return plugin.TopicID(s.topics), nil
}
func (s *sink) Write(b []plugin.Message) error { s.n += len(b); return nil }
func (s *sink) Sync() error                    { return nil }
func (s *sink) Size() int64                    { return 0 }
func (s *sink) Close(plugin.Metadata) error    { return nil }
