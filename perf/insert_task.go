package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/plugin"
)

// InsertTask is what one process of `perf insert` does: insert objects one at a time. The peer sqlite_insert takes the
// same flags and prints the same result.
type InsertTask struct {
	Target      string
	Mode        string
	Count       int
	Limit       time.Duration // ends the inserts earlier; 0 = none
	Path        string        // of the storage, which must not exist
	Seed        uint64
	Acknowledge bool // the number of inserts that are safe stands in a file beside the storage, for who kills us
}

// Flags are the task as flags, but for Target: what the peer understands.
func (t InsertTask) Flags() []string {
	f := []string{"--mode", t.Mode, "--count", strconv.Itoa(t.Count), "--limit-ms", strconv.FormatInt(t.Limit.Milliseconds(), 10), "--path", t.Path,
		"--seed", strconv.FormatUint(t.Seed, 10)}
	if t.Acknowledge {
		f = append(f, "--acknowledge")
	}
	return f
}

// InsertPoint is the state of a run at one moment.
type InsertPoint struct {
	Inserts int     `json:"inserts"`
	Seconds float64 `json:"seconds"`
	RSS     int64   `json:"rss_bytes"` // 0 unknown
}

// InsertResult is what a run measured. Opening and closing are not part of its time.
type InsertResult struct {
	Inserts    int           `json:"inserts"`
	Seconds    float64       `json:"seconds"`
	CPUSeconds float64       `json:"cpu_s"`
	PeakRSS    int64         `json:"rss_peak_bytes"` // of the whole process, 0 unknown
	DiskBytes  int64         `json:"disk_bytes"`     // after closing
	Points     []InsertPoint `json:"points"`         // about 100 of them
}

// Rate is inserts per second.
func (r InsertResult) Rate() float64 { return float64(r.Inserts) / max(r.Seconds, 1e-9) }

// Tenth is the rate in the i-th tenth of the inserts, 0 to 9.
func (r InsertResult) Tenth(i int) float64 {
	at := func(k int) InsertPoint {
		if k == 0 {
			return InsertPoint{}
		}
		return r.Points[k*len(r.Points)/10-1]
	}
	a, b := at(i), at(i+1)
	return float64(b.Inserts-a.Inserts) / max(b.Seconds-a.Seconds, 1e-9)
}

// insertType is the type of the objects.
const (
	insertType       = "insert_msgs/msg/Object"
	insertDefinition = "int64 id\nstring name\nint32 value\n"
	insertTopic      = "/objects"
)

// object makes the objects of a run; number k is the same in every run with the same seed.
type object struct {
	seed uint64
	enc  cdr.Encoder
	buf  []byte
}

// encode is object k; valid until the next call.
func (o *object) encode(k int) []byte {
	const letters = "abcdefghijklmnopqrstuvwxyz012345"
	r := rand.NewPCG(o.seed, uint64(k)).Uint64()
	var name [12]byte
	for i := range name {
		name[i] = letters[r>>(5*i)&31]
	}
	o.enc.Reset(o.buf[:0], cdr.CDRLE)
	o.enc.Int64(int64(k) + 1)
	o.enc.Str(string(name[:]))
	o.enc.Int32(int32(r >> 33))
	o.buf = o.enc.Bytes()
	return o.buf
}

// inserter inserts one object so that it survives what the mode asks for.
type inserter interface {
	insert(stamp int64, k int, data []byte) error
	close() error
}

// storageInserter inserts into a format.
type storageInserter struct {
	w     plugin.Writer
	batch [1]plugin.Message
}

func (s *storageInserter) insert(stamp int64, k int, data []byte) error {
	s.batch[0] = plugin.Message{Topic: 1, RecvTime: stamp, SendTime: stamp, Source: 1, Seq: uint64(k) + 1, Order: uint64(k) + 1, Data: data}
	if err := s.w.Write(s.batch[:]); err != nil {
		return err
	}
	return s.w.Sync()
}

func (s *storageInserter) close() error { return s.w.Close(plugin.Metadata{}) }

// loopInserter appends to a file.
type loopInserter struct {
	f    *os.File
	sync bool
}

func (l loopInserter) insert(_ int64, _ int, data []byte) error {
	if _, err := l.f.Write(data); err != nil || !l.sync {
		return err
	}
	return fdatasync(l.f)
}

func (l loopInserter) close() error { return l.f.Close() }

func (t InsertTask) open(ctx context.Context) (inserter, error) {
	if t.Target == insertLoop {
		f, err := os.OpenFile(t.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		return loopInserter{f, t.Mode == InsertDurable}, err
	}
	d, err := plugin.Lookup(t.Target)
	if err != nil {
		return nil, err
	}
	preset := insertPresets[t.Mode]
	if preset == "" {
		return nil, fmt.Errorf("mode %q is unknown", t.Mode)
	}
	w, err := d.Create(ctx, t.Path, plugin.WriteOptions{Preset: preset})
	if err != nil {
		return nil, err
	}
	if _, err := w.AddTopic(plugin.Topic{Name: insertTopic, Type: insertType, SerializationFormat: "cdr", Sources: []string{"01.0f.00.00"},
		Definition: plugin.Definition{Encoding: "ros2msg", Text: insertDefinition}}); err != nil {
		return nil, errors.Join(err, w.Close(plugin.Metadata{}))
	}
	return &storageInserter{w: w}, nil
}

// ackSuffix is behind the storage's path in the name of the file with the number of inserts that are safe.
const ackSuffix = ".acknowledged"

// acknowledged is that number.
func acknowledged(path string) int {
	b, err := os.ReadFile(path + ackSuffix)
	if err != nil || len(b) != 8 {
		return 0
	}
	return int(binary.LittleEndian.Uint64(b))
}

// insertPoints is how many points a run of a known length has.
const insertPoints = 100

// insertMemory bounds the heap, as `record` does.
const insertMemory = 48 << 20

// RunInsertTask runs a task in this process, and looks for everything that was inserted.
func RunInsertTask(ctx context.Context, t InsertTask) (res InsertResult, err error) {
	debug.SetMemoryLimit(insertMemory)
	resetPeakRSS()
	in, err := t.open(ctx)
	if err != nil {
		return res, fmt.Errorf("insert into %s: %w", t.Target, err)
	}
	var ack *os.File
	if t.Acknowledge {
		if ack, err = os.Create(t.Path + ackSuffix); err != nil {
			return res, errors.Join(err, in.close())
		}
		defer ack.Close()
	}
	err = t.insertAll(ctx, in, ack, &res)
	if err = errors.Join(err, in.close()); err != nil {
		return res, fmt.Errorf("insert into %s: %w", t.Target, err)
	}
	res.PeakRSS = peakRSS(os.Getpid())
	if res.DiskBytes, err = allocated(t.Path); err != nil {
		return res, err
	}
	if _, err := t.check(ctx, res.Inserts); err != nil {
		return res, fmt.Errorf("what was inserted into %s: %w", t.Target, err)
	}
	return res, nil
}

func (t InsertTask) insertAll(ctx context.Context, in inserter, ack *os.File, res *InsertResult) error {
	o := object{seed: t.Seed}
	step := max(1, t.Count/insertPoints)
	var number [8]byte
	cpu, begin := processCPU(), time.Now()
	every := time.Duration(0) // with a limit points are made by the clock
	if t.Limit > 0 {
		every = t.Limit / insertPoints
	}
	due := every
	for k := 0; k < t.Count; k++ {
		if err := in.insert(begin.UnixNano()+int64(k), k, o.encode(k)); err != nil {
			return fmt.Errorf("insert %d: %w", k, err)
		}
		if ack != nil {
			binary.LittleEndian.PutUint64(number[:], uint64(k)+1)
			if _, err := ack.WriteAt(number[:], 0); err != nil {
				return err
			}
		}
		if every == 0 && (k+1)%step != 0 {
			continue
		}
		d := time.Since(begin)
		if every > 0 && d < due && (k+1)%step != 0 {
			continue
		}
		due = d + every
		res.Points = append(res.Points, InsertPoint{k + 1, d.Seconds(), currentRSS()})
		res.Inserts = k + 1
		if err := ctx.Err(); err != nil {
			return err
		}
		if t.Limit > 0 && d >= t.Limit {
			break
		}
	}
	if n := len(res.Points); n > 0 {
		res.Seconds = res.Points[n-1].Seconds
	}
	res.CPUSeconds = processCPU() - cpu
	return nil
}

// check reads the storage: object k must be the k-th, and there must be want of them; -1 leaves the number open. It
// returns the number.
func (t InsertTask) check(ctx context.Context, want int) (int, error) {
	if t.Target == insertLoop {
		return want, nil
	}
	d, err := plugin.Lookup(t.Target)
	if err != nil {
		return 0, err
	}
	r, err := d.OpenReader(ctx, t.Path, plugin.ReadOptions{})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		return 0, err
	}
	defer it.Close()
	o := object{seed: t.Seed}
	n := 0
	for ; ; n++ {
		var m plugin.Message
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return n, err
		}
		if data := o.encode(n); string(data) != string(m.Data) {
			return n, fmt.Errorf("object %d is not what was inserted", n)
		}
	}
	if want >= 0 && n != want {
		return n, fmt.Errorf("%d objects, %d were inserted", n, want)
	}
	return n, nil
}
