package perf

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/plugin"
)

// ColumnarOptions configure Columnar. The zero value measures all samples once.
type ColumnarOptions struct {
	Samples  []string // names of ColumnarSamples; nil all
	Targets  []StorageTarget
	Scale    float64 // of the samples' counts; 0 = 1
	Repeat   int     // runs of everything, in turns; 0 = 1
	Seed     uint64
	Dir      string // to measure in; "" = the system's for temporary files
	Peers    string // where the peers' programs are; "" = without them
	Progress func(ColumnarCell)
}

// ColumnarTargets are what is measured when nothing is named: this format in its two ways with blobs, and the others.
var ColumnarTargets = []StorageTarget{{"columnar", plugin.PresetNone}, {"columnar", plugin.PresetSmall}, {"mcap", "zstd_fast"}, {"sqlite3", plugin.PresetNone}}

// peerSQLite is the base: C SQLite with rosbag2's schema, journal in memory, synchronous off, 1,000 messages a transaction.
var peerSQLite = StorageTarget{"c-sqlite", "rosbag2"}

// ColumnarCell is one sample stored once by one target, and read again.
type ColumnarCell struct {
	Sample   string  `json:"sample"`
	Target   string  `json:"target"`
	Preset   string  `json:"preset"`
	Run      int     `json:"run"`
	Messages int     `json:"messages"`
	Payload  int64   `json:"payload_bytes"`
	WriteCPU float64 `json:"write_cpu_s"`
	Write    float64 `json:"write_s"`
	ReadCPU  float64 `json:"read_cpu_s,omitempty"` // with a comparison of every byte
	Read     float64 `json:"read_s,omitempty"`
	Disk     int64   `json:"disk_bytes"`
	Error    string  `json:"error,omitempty"`
}

// messages are the messages of a sample.
type messages struct {
	topic plugin.Topic
	all   []plugin.Message
	bytes int64
}

// Columnar stores samples of typed traffic in storage formats and measures what that costs. Nothing is synced: the base
// does not either.
func Columnar(ctx context.Context, o ColumnarOptions) ([]ColumnarCell, error) {
	if o.Scale == 0 {
		o.Scale = 1
	}
	if o.Targets == nil {
		o.Targets = ColumnarTargets
		if o.Peers != "" {
			o.Targets = append(o.Targets[:len(o.Targets):len(o.Targets)], peerSQLite)
		}
	}
	known := map[string]bool{}
	for _, s := range ColumnarSamples {
		known[s.Name] = true
	}
	for _, s := range o.Samples {
		if !known[s] {
			return nil, fmt.Errorf("no sample %q", s)
		}
	}
	dir, err := os.MkdirTemp(o.Dir, "gobag-columnar-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var cells []ColumnarCell
	for i := range ColumnarSamples {
		s := &ColumnarSamples[i]
		if len(o.Samples) > 0 && !contains(o.Samples, s.Name) {
			continue
		}
		m, err := s.make(o.Seed, max(1, int(float64(s.Count)*o.Scale)))
		if err != nil {
			return cells, err
		}
		for run := range max(1, o.Repeat) {
			for _, t := range o.Targets {
				if err := ctx.Err(); err != nil {
					return cells, err
				}
				c := ColumnarCell{Sample: s.Name, Target: t.Name, Preset: t.Preset, Run: run, Messages: len(m.all), Payload: m.bytes}
				path := filepath.Join(dir, "storage")
				if err := m.measure(ctx, t, path, o.Peers, &c); err != nil {
					c.Error = err.Error()
				}
				if err := os.RemoveAll(path); err != nil {
					return cells, err
				}
				cells = append(cells, c)
				if o.Progress != nil {
					o.Progress(c)
				}
			}
		}
	}
	return cells, nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// make makes the messages of a sample.
func (s *ColumnarSample) make(seed uint64, n int) (*messages, error) {
	def := plugin.Definition{Encoding: "ros2msg", Text: s.Definition}
	if s.Definition == "" {
		d, err := msg.NewFinder(msg.Options{}).Find(s.Type, "")
		if err != nil {
			return nil, err
		}
		def = plugin.Definition{Encoding: d.Encoding, Text: d.Text}
	}
	m := &messages{topic: plugin.Topic{Name: "/perf/" + s.Name, Type: s.Type, SerializationFormat: "cdr", Definition: def, Sources: []string{"01.0f.00.00"}}}
	m.all = make([]plugin.Message, 0, n)
	var arena []byte
	s.messages(rand.New(rand.NewPCG(seed, 7)), n, func(stamp int64, e *cdr.Encoder) {
		b := e.Bytes()
		if len(arena)+len(b) > cap(arena) {
			arena = make([]byte, 0, max(16<<20, len(b)))
		}
		at := len(arena)
		arena = append(arena, b...)
		m.all = append(m.all, plugin.Message{Topic: 1, RecvTime: stamp, SendTime: stamp - 150_000, Source: 1, Seq: uint64(len(m.all) + 1),
			Order: uint64(len(m.all) + 1), Data: arena[at:len(arena):len(arena)]})
		m.bytes += int64(len(b))
	})
	return m, nil
}

// Messages returns messages of the sample and the topic they are on, whose id is 1.
func (s *ColumnarSample) Messages(seed uint64, n int) (plugin.Topic, []plugin.Message, error) {
	m, err := s.make(seed, n)
	if err != nil {
		return plugin.Topic{}, nil, err
	}
	return m.topic, m.all, nil
}

// columnarBatch is how many bytes are handed over at once, as a recorder does.
const columnarBatch = 256 << 10

func (m *messages) measure(ctx context.Context, t StorageTarget, path, peers string, c *ColumnarCell) error {
	if t == peerSQLite {
		return m.peer(ctx, path, peers, c)
	}
	if err := m.write(ctx, t, path, c); err != nil {
		return err
	}
	d, err := plugin.Lookup(t.Name)
	if err != nil {
		return err
	}
	cpu, start := processCPU(), time.Now()
	if err := m.read(ctx, d, path); err != nil {
		return err
	}
	c.Read, c.ReadCPU = time.Since(start).Seconds(), processCPU()-cpu
	return nil
}

// write stores the messages.
func (m *messages) write(ctx context.Context, t StorageTarget, path string, c *ColumnarCell) error {
	d, err := plugin.Lookup(t.Name)
	if err != nil {
		return err
	}
	o := plugin.WriteOptions{}
	if o.Preset, o.Config, err = splitPreset(t.Preset); err != nil {
		return err
	}
	runtime.GC()
	cpu, start := processCPU(), time.Now()
	w, err := d.Create(ctx, path, o)
	if err != nil {
		return err
	}
	_, err = w.AddTopic(m.topic)
	for i := 0; i < len(m.all) && err == nil; {
		n, size := i, 0
		for ; n < len(m.all) && size < columnarBatch; n++ {
			size += len(m.all[n].Data)
		}
		err = w.Write(m.all[i:n])
		i = n
	}
	if err = errors.Join(err, w.Close(plugin.Metadata{})); err != nil {
		return err
	}
	c.Write, c.WriteCPU = time.Since(start).Seconds(), processCPU()-cpu
	c.Disk, err = dataSize(path)
	return err
}

// dataSize is the length of all files at path.
func dataSize(path string) (int64, error) {
	var total int64
	err := filepath.WalkDir(path, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		fi, err := e.Info()
		if err == nil {
			total += fi.Size()
		}
		return err
	})
	return total, err
}

// read compares everything.
func (m *messages) read(ctx context.Context, d plugin.Driver, path string) error {
	r, err := d.OpenReader(ctx, path, plugin.ReadOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		return err
	}
	defer it.Close()
	seen := 0
	for {
		var got plugin.Message
		err := it.Next(&got)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		// Messages with equal or falling stamps come in another order than they were written in.
		if got.Order == 0 || got.Order > uint64(len(m.all)) {
			return fmt.Errorf("message %d has the order number %d", seen, got.Order)
		}
		want := &m.all[got.Order-1]
		if got.RecvTime != want.RecvTime || !bytes.Equal(got.Data, want.Data) {
			return fmt.Errorf("message %d is not what was written", seen)
		}
		seen++
	}
	if seen != len(m.all) {
		return fmt.Errorf("%d messages came back of %d", seen, len(m.all))
	}
	return nil
}

// peer runs the C program on a file of the messages.
func (m *messages) peer(ctx context.Context, path, peers string, c *ColumnarCell) error {
	in := path + ".in"
	defer func() { _ = os.Remove(in) }() // goes with its directory otherwise
	f, err := os.Create(in)
	if err != nil {
		return err
	}
	var b []byte
	for i := range m.all {
		b = binary.LittleEndian.AppendUint64(b[:0], uint64(m.all[i].RecvTime))
		b = binary.LittleEndian.AppendUint64(b, uint64(len(m.all[i].Data)))
		b = append(b, m.all[i].Data...)
		if _, err := f.Write(append(b, make([]byte, -len(b)&7)...)); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(peers, "sqlite_rows"), in, path)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("sqlite_rows: %w: %s", err, stderr.String())
	}
	var r struct{ CPU, Seconds float64 }
	if err := json.Unmarshal(out, &r); err != nil {
		return fmt.Errorf("sqlite_rows: %w", err)
	}
	c.WriteCPU, c.Write = r.CPU, r.Seconds
	c.Disk, err = dataSize(path)
	return err
}
