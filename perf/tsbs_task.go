package perf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gobag/gobag/plugin"
)

// TSBSTask is what one process of `perf tsbs-cpu` and `tsbs-iot` does: write the rows of a use case into a storage.
type TSBSTask struct {
	Use     string // UseCPU, UseIoT
	Target  string // a storage format, or "null", which makes rows and does nothing with them
	Preset  string
	Path    string // of the storage, which must not exist
	Devices int    // hosts or trucks
	Steps   int    // rows of one that is never silent
	Seed    uint64
	Pace    int           // rows per second; 0 = as fast as it goes
	Limit   time.Duration // of a paced run; 0 = all rows
}

// The use cases.
const (
	UseCPU = "cpu"
	UseIoT = "iot"
)

// TSBSSample is what a process had cost at a moment.
type TSBSSample struct {
	Seconds    float64 `json:"seconds"`
	Rows       int     `json:"rows"`
	CPUSeconds float64 `json:"cpu_s"`
	RSS        int64   `json:"rss_bytes"`
	Written    int64   `json:"written_bytes"` // that reached the block layer or dirtied the page cache; -1 unknown
}

// TSBSResult is what a task measured. Opening and closing are part of its time.
type TSBSResult struct {
	Rows       int          `json:"rows"`
	Seconds    float64      `json:"seconds"`
	CPUSeconds float64      `json:"cpu_s"`
	BaseRSS    int64        `json:"rss_base_bytes"`
	PeakRSS    int64        `json:"rss_peak_bytes"`
	DiskBytes  int64        `json:"disk_bytes"` // after closing
	Payload    int64        `json:"payload_bytes"`
	Late       float64      `json:"late_s,omitempty"` // of a paced run: how late it was at its end
	Samples    []TSBSSample `json:"samples"`          // about one a second
}

// Flags are the task as flags.
func (t TSBSTask) Flags() []string {
	return []string{"--use", t.Use, "--target", t.Target, "--preset", t.Preset, "--path", t.Path, "--devices", strconv.Itoa(t.Devices), "--steps", strconv.Itoa(t.Steps),
		"--seed", strconv.FormatUint(t.Seed, 10), "--pace", strconv.Itoa(t.Pace), "--limit-ms", strconv.FormatInt(t.Limit.Milliseconds(), 10)}
}

// source makes the rows.
func (t TSBSTask) source() (tsbsSource, error) {
	if t.Devices < 1 || t.Devices > 20_000_000 || t.Steps < 2 || t.Steps > 10_000_000 {
		return nil, fmt.Errorf("%d devices with %d rows: out of range", t.Devices, t.Steps)
	}
	switch t.Use {
	case UseCPU:
		return newCPUSource(t.Seed, t.Devices, t.Steps), nil
	case UseIoT:
		return newIoTSource(t.Seed, t.Devices, t.Steps), nil
	}
	return nil, fmt.Errorf("no use case %q", t.Use)
}

// tsbsBatch is how many bytes are handed over at once, as a recorder does.
const tsbsBatch = 256 << 10

// tsbsMemory is the soft limit of the heap, as the recorder sets one.
const tsbsMemory = 48 << 20

// RunTSBSTask runs a task in this process.
func RunTSBSTask(ctx context.Context, t TSBSTask) (res TSBSResult, err error) {
	src, err := t.source()
	if err != nil {
		return res, fmt.Errorf("tsbs task: %w", err)
	}
	debug.SetMemoryLimit(tsbsMemory)
	resetPeakRSS()
	res.BaseRSS = currentRSS()
	written, cpu, begin := writtenBytes(), processCPU(), time.Now()
	var w plugin.Writer
	if t.Target != targetNull {
		d, err := plugin.Lookup(t.Target)
		if err != nil {
			return res, err
		}
		o := plugin.WriteOptions{}
		if o.Preset, o.Config, err = splitPreset(t.Preset); err != nil {
			return res, err
		}
		if w, err = d.Create(ctx, t.Path, o); err != nil {
			return res, err
		}
		for _, topic := range src.topics() {
			if _, err := w.AddTopic(topic); err != nil {
				return res, errors.Join(err, w.Close(plugin.Metadata{}))
			}
		}
	}
	err = t.feed(ctx, src, w, &res, func() {
		s := TSBSSample{Seconds: time.Since(begin).Seconds(), Rows: res.Rows, CPUSeconds: processCPU() - cpu, RSS: currentRSS(), Written: -1}
		if written >= 0 {
			s.Written = writtenBytes() - written
		}
		res.Samples = append(res.Samples, s)
	})
	if w != nil {
		err = errors.Join(err, w.Close(plugin.Metadata{}))
	}
	if err != nil {
		return res, fmt.Errorf("%s: %w", t.Target, err)
	}
	res.Seconds, res.CPUSeconds, res.PeakRSS = time.Since(begin).Seconds(), processCPU()-cpu, peakRSS(os.Getpid())
	if w != nil {
		if res.DiskBytes, err = dataSize(t.Path); err != nil {
			return res, err
		}
	}
	return res, nil
}

// feed hands the rows over in batches, to nobody where w is nil. sample is called every second.
func (t TSBSTask) feed(ctx context.Context, src tsbsSource, w plugin.Writer, res *TSBSResult, sample func()) error {
	var arena []byte
	var batch []plugin.Message
	var seqs []uint64
	begin := time.Now()
	sampled := begin
	flush := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if w != nil {
			if err := w.Write(batch); err != nil {
				return err
			}
		}
		res.Rows += len(batch)
		res.Payload += int64(len(arena))
		batch, arena = batch[:0], arena[:0]
		if now := time.Now(); now.Sub(sampled) >= time.Second {
			sampled = now
			sample()
			if t.Pace > 0 && w != nil {
				return w.Sync() // as a recorder does
			}
		}
		return nil
	}
	order := uint64(0)
	arena = make([]byte, 0, tsbsBatch+64<<10)
	for {
		topic, more := src.next()
		if !more || t.Limit > 0 && t.Pace > 0 && float64(order) >= t.Limit.Seconds()*float64(t.Pace) {
			break
		}
		for topic >= len(seqs) {
			seqs = append(seqs, 0)
		}
		seqs[topic]++
		order++
		at := len(arena)
		arena = src.message(arena)
		stamp := src.stamp()
		batch = append(batch, plugin.Message{Topic: plugin.TopicID(topic + 1), RecvTime: stamp, SendTime: stamp, Source: 1, Seq: seqs[topic], Order: order,
			Data: arena[at:len(arena):len(arena)]})
		due := time.Duration(0)
		if t.Pace > 0 {
			due = time.Duration(float64(order) / float64(t.Pace) * 1e9)
		}
		if len(arena) < tsbsBatch && (t.Pace == 0 || order%uint64(max(1, t.Pace/100)) != 0) {
			continue
		}
		if t.Pace > 0 && !sleepUntil(ctx, begin.Add(due)) {
			return ctx.Err()
		}
		if err := flush(); err != nil {
			return err
		}
		if t.Pace > 0 {
			res.Late = max(0, (time.Since(begin) - due).Seconds())
		}
	}
	if err := flush(); err != nil {
		return err
	}
	sample()
	return nil
}
