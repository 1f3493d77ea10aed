package leveldb

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// BenchmarkSettings shows what the write buffer and snappy each buy: 10 KB messages of which half is noise and half
// repeats it, in batches of 1 MB. The table in docs/formats/leveldb.md is its output.
func BenchmarkSettings(b *testing.B) {
	const size, batch = 10_000, 100
	rng := rand.New(rand.NewPCG(1, 2))
	pool := make([]byte, 4<<20)
	for i := range pool {
		pool[i] = byte(rng.Uint32())
	}
	for _, preset := range []string{plugin.PresetResilient, plugin.PresetFast} {
		for _, compression := range []string{"none", "snappy"} {
			for _, buffer := range []int{1 << 20, defaultBuffer, 32 << 20, 100 << 20} {
				b.Run(fmt.Sprintf("%s/%s/%dMiB", preset, compression, buffer>>20), func(b *testing.B) {
					w := mustCreate(b, filepath.Join(b.TempDir(), "s.leveldb"), plugin.WriteOptions{Preset: preset, Config: map[string]any{
						"compression": compression, "open_options": map[string]any{"write_buffer_size": buffer}}})
					id := mustTopic(b, w, plugin.Topic{Name: "/a", Type: "b"})
					ms := make([]plugin.Message, batch)
					data := make([]byte, batch*size)
					for i := range batch {
						d := data[i*size : (i+1)*size]
						copy(d, pool[i*size%(len(pool)-size):][:size/2])
						copy(d[size/2:], d[:size/2])
						ms[i] = plugin.Message{Topic: id, Data: d}
					}
					b.SetBytes(size)
					b.ResetTimer()
					for n := 0; n < b.N; n += batch {
						k := min(batch, b.N-n)
						for i := range k {
							ms[i].RecvTime = int64(n + i)
						}
						if err := w.Write(ms[:k]); err != nil {
							b.Fatal(err)
						}
					}
					if err := w.Close(plugin.Metadata{}); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(w.Size())/float64(b.N*size), "disk/payload")
				})
			}
		}
	}
}
