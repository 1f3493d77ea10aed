package plugintest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// benchSizes are the payloads that storages are compared by.
var benchSizes = []struct {
	name  string
	bytes int
}{{"100B", 100}, {"10KB", 10_000}, {"1MB", 1_000_000}}

// benchPool is the amount of random bytes that payloads are cut from, benchStep how far apart two payloads begin, as
// in the tables of docs/benchmarks.md.
const (
	benchSeed = 1
	benchPool = 24 << 20
	benchStep = 104_729
	benchRun  = 1 << 20 // bytes handed over in one batch, or one message
)

// Bench measures d beside two ceilings: "null" takes messages and does nothing, "file" appends payloads to one plain
// file. Payloads are incompressible. Beside MB/s each row has the CPU seconds per 10^9 payload bytes, which a busy
// machine disturbs least, and writing rows the bytes on disk per payload byte. Closing is part of writing.
func Bench(b *testing.B, d plugin.Driver) {
	pool := payload(benchSeed, benchPool)
	for _, size := range benchSizes {
		for _, preset := range d.Features().Presets {
			b.Run(fmt.Sprintf("write/%s/%s-%s", size.name, d.Name(), preset.Name), func(b *testing.B) {
				benchWrite(b, d, plugin.WriteOptions{Preset: preset.Name}, pool, size.bytes)
			})
		}
		b.Run(fmt.Sprintf("write/%s/file", size.name), func(b *testing.B) { benchFile(b, pool, size.bytes) })
		b.Run(fmt.Sprintf("write/%s/null", size.name), func(b *testing.B) {
			measure(b, size.bytes, func() { _ = feed(b.N, pool, size.bytes, func([]plugin.Message) error { return nil }) })
		})
	}
	for _, size := range benchSizes {
		b.Run(fmt.Sprintf("read/%s/%s", size.name, d.Name()), func(b *testing.B) { benchRead(b, d, pool, size.bytes) })
	}
	b.Run("seek/10KB/"+d.Name(), func(b *testing.B) { benchSeek(b, d, pool) })
}

// measure runs f, which handles b.N messages of the given size.
func measure(b *testing.B, size int, f func()) {
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuSeconds()
	f()
	used := cpuSeconds() - before
	b.StopTimer()
	if used > 0 {
		b.ReportMetric(used/(float64(size)*float64(b.N))*1e9, "cpu-s/GB")
	}
}

// feed hands n messages of ten topics over in batches.
func feed(n int, pool []byte, size int, write func([]plugin.Message) error) error {
	batch := make([]plugin.Message, 0, max(1, benchRun/size))
	off := 0
	for i := range n {
		off = (off + benchStep) % (len(pool) - size)
		batch = append(batch, plugin.Message{
			Topic: plugin.TopicID(i%10 + 1), RecvTime: 1_700_000_000_000_000_000 + int64(i)*100_000,
			SendTime: 1_700_000_000_000_000_000 + int64(i)*100_000 - 150_000, Source: 1, Seq: uint64(i/10 + 1), Order: uint64(i + 1),
			Data: pool[off : off+size],
		})
		if len(batch) == cap(batch) || i == n-1 {
			if err := write(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}

func benchStorage(b *testing.B, d plugin.Driver, path string, o plugin.WriteOptions, n int, pool []byte, size int) {
	w, err := d.Create(background, path, o)
	for i := 0; i < 10 && err == nil; i++ {
		_, err = w.AddTopic(plugin.Topic{Name: fmt.Sprint("/topic", i), Type: "a_msgs/msg/B", SerializationFormat: "cdr", Sources: []string{"w"}})
	}
	if err == nil {
		err = errors.Join(feed(n, pool, size, w.Write), w.Close(plugin.Metadata{}))
	}
	if err != nil {
		b.Fatal(err)
	}
}

func benchWrite(b *testing.B, d plugin.Driver, o plugin.WriteOptions, pool []byte, size int) {
	path := filepath.Join(b.TempDir(), "bench"+d.Extension())
	measure(b, size, func() { benchStorage(b, d, path, o, b.N, pool, size) })
	r, err := d.OpenReader(background, path, plugin.ReadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.ReportMetric(float64(r.Info().Size)/(float64(size)*float64(b.N)), "disk/payload")
	if r.Info().Messages != uint64(b.N) {
		b.Fatalf("%d messages, want %d", r.Info().Messages, b.N)
	}
}

func benchFile(b *testing.B, pool []byte, size int) {
	f, err := os.Create(filepath.Join(b.TempDir(), "bench"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var buf []byte
	measure(b, size, func() {
		err = feed(b.N, pool, size, func(batch []plugin.Message) error {
			if len(batch) == 1 {
				_, err := f.Write(batch[0].Data)
				return err
			}
			buf = buf[:0]
			for i := range batch {
				buf = append(buf, batch[i].Data...)
			}
			_, err := f.Write(buf)
			return err
		})
		err = errors.Join(err, f.Sync())
	})
	if err != nil {
		b.Fatal(err)
	}
}

func benchRead(b *testing.B, d plugin.Driver, pool []byte, size int) {
	path := filepath.Join(b.TempDir(), "bench"+d.Extension())
	n := min(b.N, 256<<20/size) // what is read again and again
	benchStorage(b, d, path, plugin.WriteOptions{}, n, pool, size)
	r, err := d.OpenReader(background, path, plugin.ReadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	var m plugin.Message
	measure(b, size, func() {
		for left := b.N; left > 0; {
			it, err := r.Messages(plugin.Query{})
			if err != nil {
				b.Fatal(err)
			}
			for ; left > 0; left-- {
				if err := it.Next(&m); errors.Is(err, io.EOF) {
					break
				} else if err != nil || len(m.Data) != size {
					b.Fatal(len(m.Data), err)
				}
			}
			if err := it.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// benchSeek opens an iterator at a time and reads one message.
func benchSeek(b *testing.B, d plugin.Driver, pool []byte) {
	const size, n = 10_000, 10_000
	path := filepath.Join(b.TempDir(), "bench"+d.Extension())
	benchStorage(b, d, path, plugin.WriteOptions{}, n, pool, size)
	r, err := d.OpenReader(background, path, plugin.ReadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	start := r.Info().Start
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := start + int64(i*7919%n)*100_000
		it, err := r.Messages(plugin.Query{Range: &plugin.TimeRange{Start: at, End: r.Info().End}})
		if err != nil {
			b.Fatal(err)
		}
		var m plugin.Message
		if err := it.Next(&m); err != nil || m.RecvTime != at {
			b.Fatal(m.RecvTime, at, err)
		}
		if err := it.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
