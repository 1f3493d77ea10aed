//go:build unix

package leveldb

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gobag/gobag/plugin"
)

// envTable makes TestSettingsTable measure and write its table into docs/formats/leveldb.md.
const envTable = "GOBAG_LEVELDB_TABLE"

// settingsRun is one measurement of what the write buffer and snappy buy.
type settingsRun struct {
	preset, compression string
	buffer              int
	half                bool // payload that compresses to half, otherwise noise
	speed, cpu, disk    []float64
}

// TestSettingsTable measures what the write buffer and snappy buy: 30,000 messages of 10 KB in batches of 1 MB, with a Sync
// every second and Close included; medians of five runs in turns.
func TestSettingsTable(t *testing.T) {
	if os.Getenv(envTable) == "" {
		t.Skip(envTable + " is not set: it takes minutes and a quiet machine")
	}
	var runs []*settingsRun
	for _, buffer := range []int{1, 5, 16, 32, 100} {
		for _, preset := range []string{plugin.PresetResilient, plugin.PresetFast} {
			runs = append(runs, &settingsRun{preset: preset, compression: "none", buffer: buffer << 20})
		}
		for _, half := range []bool{true, false} {
			runs = append(runs, &settingsRun{preset: plugin.PresetResilient, compression: "snappy", buffer: buffer << 20, half: half})
		}
	}
	for i := range 5 {
		order := slices.Clone(runs)
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, r := range order {
			r.measure(t)
		}
	}
	load, _ := os.ReadFile("/proc/loadavg") // Linux; elsewhere it is left out
	var b strings.Builder
	fmt.Fprintf(&b, "| write buffer | `resilient` MB/s (CPU s/GB) | `fast` | snappy, halves | snappy, noise | disk ÷ payload: none, snappy halves |\n|---|---|---|---|---|---|\n")
	for i := 0; i < len(runs); i += 4 {
		r := runs[i : i+4]
		fmt.Fprintf(&b, "| %d MiB |", r[0].buffer>>20)
		for _, c := range r {
			fmt.Fprintf(&b, " %.0f (%.2f) |", median(c.speed), median(c.cpu))
		}
		fmt.Fprintf(&b, " %.2f, %.2f |\n", median(r[0].disk), median(r[2].disk))
	}
	fmt.Fprintf(&b, "\n%d processors, load average %s\n", runtime.NumCPU(), strings.Join(strings.Fields(string(load))[:min(1, len(load))], ""))
	const path, begin, end = "../../docs/formats/leveldb.md", "<!-- settings: written by TestSettingsTable -->\n", "<!-- end of settings -->\n"
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := bytes.Cut(doc, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	if err := os.WriteFile(path, slices.Concat(before, []byte(begin+b.String()+end), after), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + b.String())
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func (r *settingsRun) measure(t *testing.T) {
	const size, batch, count = 10_000, 100, 30_000
	rng := rand.New(rand.NewPCG(1, 2))
	pool := make([]byte, 24<<20)
	for i := 0; i < len(pool); i += 100 {
		for k := i; k < min(i+100, len(pool)); k++ {
			pool[k] = byte(rng.Uint32())
			if r.half && k >= i+50 {
				pool[k] = pool[k-50]
			}
		}
	}
	dir := filepath.Join(t.TempDir(), "s.leveldb")
	begin, cpu := time.Now(), cpuNow(t)
	w := mustCreate(t, dir, plugin.WriteOptions{Preset: r.preset, Config: map[string]any{
		"compression": r.compression, "open_options": map[string]any{"write_buffer_size": r.buffer}}})
	id := mustTopic(t, w, plugin.Topic{Name: "/a", Type: "b"})
	ms := make([]plugin.Message, batch)
	synced := begin
	for n := 0; n < count; n += batch {
		for i := range ms {
			off := (n + i) * 104_729 % (len(pool) - size)
			ms[i] = plugin.Message{Topic: id, RecvTime: int64(n + i), Data: pool[off : off+size]}
		}
		if err := w.Write(ms); err != nil {
			t.Fatal(err)
		}
		if time.Since(synced) > time.Second {
			synced = time.Now()
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	const payload = float64(size) * count
	r.speed = append(r.speed, payload/1e6/time.Since(begin).Seconds())
	r.cpu = append(r.cpu, (cpuNow(t)-cpu)/payload*1e9)
	r.disk = append(r.disk, float64(w.Size())/payload)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}

// cpuNow is the processor time this process has used, seconds.
func cpuNow(t *testing.T) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
