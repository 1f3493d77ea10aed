package bag

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// discard is a storage that keeps nothing: what remains is the cost of the bag.
type discard struct {
	*hooked
}

func (d discard) Create(context.Context, string, plugin.WriteOptions) (plugin.Writer, error) {
	return &discardWriter{}, nil
}

type discardWriter struct {
	topics plugin.TopicID
	size   int64
}

func (w *discardWriter) AddTopic(plugin.Topic) (plugin.TopicID, error) {
	w.topics++
	return w.topics, nil
}
func (w *discardWriter) Write(batch []plugin.Message) error {
	w.size += int64(len(batch))
	return nil
}
func (w *discardWriter) Sync() error                 { return nil }
func (w *discardWriter) Size() int64                 { return w.size }
func (w *discardWriter) Close(plugin.Metadata) error { return nil }

func BenchmarkWriter(b *testing.B) {
	null := discard{&hooked{Driver: testDriver(b, "memory"), name: fmt.Sprint("discard", hookedCount.Add(1))}}
	plugin.Register(null)
	for _, storage := range []string{null.name, "sqlite3"} {
		for _, n := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%.7s/batch %d", storage, n), func(b *testing.B) {
				w := mustCreate(b, bagDir(b), WriterOptions{StorageID: storage, MaxBagSize: 1 << 30})
				id := mustTopic(b, w, "/a", "x/msg/A")
				batch := make([]plugin.Message, n)
				for i := range batch {
					batch[i] = plugin.Message{Topic: id, RecvTime: int64(i), Data: make([]byte, 1000)}
				}
				b.ReportAllocs()
				done := 0
				for b.Loop() {
					if err := w.Write(batch); err != nil {
						b.Fatal(err)
					}
					done += n
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(done), "ns/message")
			})
		}
	}
}

func BenchmarkReader(b *testing.B) {
	for _, files := range []int{1, 10} {
		b.Run(fmt.Sprintf("%d files", files), func(b *testing.B) {
			dir := bagDir(b)
			makeBag(b, dir, files, 20_000/files)
			r := mustOpen(b, dir)
			b.ReportAllocs()
			done := 0
			for b.Loop() {
				it, err := r.Messages(plugin.Query{})
				if err != nil {
					b.Fatal(err)
				}
				var m plugin.Message
				for err = it.Next(&m); err == nil; err = it.Next(&m) {
					done++
				}
				if err != io.EOF {
					b.Fatal(err)
				}
				it.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(done), "ns/message")
		})
	}
}
