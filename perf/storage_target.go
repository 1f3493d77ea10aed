package perf

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"

	"github.com/gobag/gobag/plugin"
)

// Ceilings: what a storage format is compared with.
const (
	targetNull     = "null"      // takes messages and does nothing
	targetFile     = "file"      // an append log: one file, a header with CRC-32C before each payload
	targetFiles    = "files"     // a file for each message: os.WriteFile, os.ReadFile
	targetFilesRaw = "files-raw" // the same, read by the bare system calls open, fstat, read, close
)

// Ceilings names the targets that are no storage format.
func Ceilings() []string { return []string{targetNull, targetFile, targetFiles, targetFilesRaw} }

// storageWriter is what is measured when writing. Sync may be called by another goroutine.
type storageWriter interface {
	Write(batch []plugin.Message) error
	Sync() error
	close() error
}

// storageReader is what is measured when reading. Data is valid until the next call.
type storageReader interface {
	scan(f func(data []byte)) error // everything, by ascending stamps
	get(k int) ([]byte, error)      // message with key k
	close() error
}

// create makes the storage of a task.
func (t StorageTask) create(ctx context.Context) (storageWriter, error) {
	switch t.Target {
	case targetNull:
		return nullWriter{}, nil
	case targetFile:
		return createLog(t.Path)
	case targetFiles, targetFilesRaw:
		return filesWriter{t.Path}, os.Mkdir(t.Path, 0o777)
	}
	d, err := plugin.Lookup(t.Target)
	if err != nil {
		return nil, err
	}
	var o plugin.WriteOptions
	if o.Preset, o.Config, err = splitPreset(t.Preset); err != nil {
		return nil, err
	}
	if t.Buffer > 0 {
		buffer, ok := BufferConfig(t.Target, t.Buffer)
		if !ok {
			return nil, fmt.Errorf("a buffer of %d bytes: the format has no such setting", t.Buffer)
		}
		if o.Config == nil {
			o.Config = map[string]any{}
		}
		maps.Copy(o.Config, buffer)
	}
	w, err := d.Create(ctx, t.Path, o)
	if err != nil {
		return nil, err
	}
	for i := range taskTopics {
		if _, err := w.AddTopic(plugin.Topic{Name: fmt.Sprintf("/perf/t%04d", i), Type: loadType, SerializationFormat: "cdr",
			Sources: []string{"01.0f.00.00"}}); err != nil {
			return nil, errors.Join(err, w.Close(plugin.Metadata{}))
		}
	}
	return driverWriter{w}, nil
}

// BufferConfig is the storage configuration that gives a format a buffer of n bytes; false where there is none.
func BufferConfig(format string, n int64) (map[string]any, bool) {
	switch format {
	case "leveldb":
		return map[string]any{"open_options": map[string]any{"write_buffer_size": int(n)}}, true
	case "sqlite3":
		return map[string]any{"pragmas": []string{fmt.Sprintf("cache_size = -%d", n/1024)}}, true
	case targetNull, targetFile, targetFiles, targetFilesRaw:
		return nil, false
	}
	return nil, false
}

// open opens the storage that a task with the same parameters has written in sequence.
func (t StorageTask) open(ctx context.Context) (storageReader, error) {
	switch t.Target {
	case targetNull:
		return nil, errors.New("there is nothing to read")
	case targetFile:
		return openLog(t.Path, t.Size)
	case targetFiles:
		return filesReader{t.Path, t.Count, os.ReadFile}, nil
	case targetFilesRaw:
		if rawReadFile == nil {
			return nil, errors.New("no bare system calls on this system")
		}
		return filesReader{t.Path, t.Count, rawReadFile}, nil
	}
	d, err := plugin.Lookup(t.Target)
	if err != nil {
		return nil, err
	}
	r, err := d.OpenReader(ctx, t.Path, plugin.ReadOptions{})
	if err != nil {
		return nil, err
	}
	return &driverReader{r: r}, nil
}

type driverWriter struct{ plugin.Writer }

func (w driverWriter) close() error { return w.Close(plugin.Metadata{}) }

type driverReader struct {
	r  plugin.Reader
	it plugin.Iterator // of the last get: its data is valid until then
}

func (d *driverReader) scan(f func([]byte)) error {
	it, err := d.r.Messages(plugin.Query{})
	if err != nil {
		return err
	}
	var m plugin.Message
	for {
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			return it.Close()
		} else if err != nil {
			return errors.Join(err, it.Close())
		}
		f(m.Data)
	}
}

func (d *driverReader) get(k int) ([]byte, error) {
	if d.it != nil {
		if err := d.it.Close(); err != nil {
			return nil, err
		}
		d.it = nil
	}
	at := int64(firstStamp + k*stampStep)
	it, err := d.r.Messages(plugin.Query{Range: &plugin.TimeRange{Start: at, End: at}})
	if err != nil {
		return nil, err
	}
	d.it = it
	var m plugin.Message
	if err := it.Next(&m); err != nil {
		return nil, err
	}
	if m.RecvTime != at {
		return nil, fmt.Errorf("stamp %d, asked for %d", m.RecvTime, at)
	}
	return m.Data, nil
}

func (d *driverReader) close() error {
	var err error
	if d.it != nil {
		err = d.it.Close()
	}
	return errors.Join(err, d.r.Close())
}

type nullWriter struct{}

func (nullWriter) Write([]plugin.Message) error { return nil }
func (nullWriter) Sync() error                  { return nil }
func (nullWriter) close() error                 { return nil }

// The append log: u32 length, u32 CRC-32C of stamp and payload, i64 stamp, payload; little endian.
const logHeader = 16

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type logWriter struct {
	f *os.File
	w *bufio.Writer
}

func createLog(path string) (storageWriter, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	return logWriter{f, bufio.NewWriterSize(f, 256<<10)}, nil
}

func (l logWriter) Write(batch []plugin.Message) error {
	var h [logHeader]byte
	for i := range batch {
		m := &batch[i]
		binary.LittleEndian.PutUint32(h[0:], uint32(len(m.Data)))
		binary.LittleEndian.PutUint64(h[8:], uint64(m.RecvTime))
		binary.LittleEndian.PutUint32(h[4:], crc32.Update(crc32.Checksum(h[8:], castagnoli), castagnoli, m.Data))
		_, _ = l.w.Write(h[:]) // its error is sticky
		if _, err := l.w.Write(m.Data); err != nil {
			return err
		}
	}
	return nil
}

// Sync syncs what has left the buffer, which at most lags a quarter of a megabyte behind.
func (l logWriter) Sync() error { return l.f.Sync() }

func (l logWriter) close() error { return errors.Join(l.w.Flush(), l.f.Close()) }

type logReader struct {
	f    *os.File
	size int
	buf  []byte
}

func openLog(path string, size int) (storageReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &logReader{f: f, size: size, buf: make([]byte, logHeader+size)}, nil
}

// checkRecord returns the payload of a record of the log.
func checkRecord(b []byte) ([]byte, error) {
	if n := binary.LittleEndian.Uint32(b); int64(n) != int64(len(b)-logHeader) {
		return nil, fmt.Errorf("a record of %d bytes, want %d", n, len(b)-logHeader)
	}
	if crc32.Checksum(b[8:], castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return nil, errors.New("checksum differs")
	}
	return b[logHeader:], nil
}

func (l *logReader) scan(f func([]byte)) error {
	in := bufio.NewReaderSize(io.NewSectionReader(l.f, 0, 1<<62), 256<<10)
	for {
		if _, err := io.ReadFull(in, l.buf); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		data, err := checkRecord(l.buf)
		if err != nil {
			return err
		}
		f(data)
	}
}

func (l *logReader) get(k int) ([]byte, error) {
	if _, err := l.f.ReadAt(l.buf, int64(k)*int64(len(l.buf))); err != nil {
		return nil, err
	}
	return checkRecord(l.buf)
}

func (l *logReader) close() error { return l.f.Close() }

// blobPath is the file of key k: a thousand in each directory.
func blobPath(dir string, k int) string {
	return filepath.Join(dir, fmt.Sprintf("%05d", k/1000), fmt.Sprintf("%03d", k%1000))
}

type filesWriter struct{ dir string }

func (w filesWriter) Write(batch []plugin.Message) error {
	for i := range batch {
		path := blobPath(w.dir, int((batch[i].RecvTime-firstStamp)/stampStep))
		err := os.WriteFile(path, batch[i].Data, 0o666)
		if errors.Is(err, os.ErrNotExist) {
			if err = os.Mkdir(filepath.Dir(path), 0o777); err == nil {
				err = os.WriteFile(path, batch[i].Data, 0o666)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (filesWriter) Sync() error  { return nil } // files are left to the system
func (filesWriter) close() error { return nil }

type filesReader struct {
	dir   string
	count int
	read  func(string) ([]byte, error)
}

func (r filesReader) get(k int) ([]byte, error) { return r.read(blobPath(r.dir, k)) }

func (r filesReader) scan(f func([]byte)) error {
	for k := range r.count {
		data, err := r.get(k)
		if err != nil {
			return err
		}
		f(data)
	}
	return nil
}

func (filesReader) close() error { return nil }
