package bag

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// maxOpenFiles is how many storages of a bag stay open while nobody reads them.
const maxOpenFiles = 16

// readerFile is one storage of a Reader, opened when it is needed.
type readerFile struct {
	r         *Reader
	name      string // relative to the bag
	path      string
	storageID string // "" = by magic bytes
	size      int64
	unlisted  bool // not in metadata.yaml yet

	// Set while the bag is opened.
	known bool // span and count are what the storage holds, now and later
	span  span
	count uint64
	info  *plugin.Info // nil where the file was not looked into

	repeats *FileRepeats // messages that the files before hold too; nil none

	mu     sync.Mutex // guards what follows
	rd     plugin.Reader
	drv    plugin.Driver
	refs   int
	plain  string // undone compression
	toBag  map[plugin.TopicID]fileTopic
	toFile map[plugin.TopicID][]plugin.TopicID
}

// fileTopic says what a topic of a file is in the bag.
type fileTopic struct {
	id      plugin.TopicID
	sources []uint32 // by the file's Source - 1; nil where the numbers are the same
}

func (r *Reader) newFile(name, path, storageID string) (*readerFile, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return &readerFile{r: r, name: name, path: path, storageID: storageID, size: fsx.DiskSize(path)}, nil
}

// acquire opens the storage if it is not open and returns it; release must follow.
func (f *readerFile) acquire(ctx context.Context) (plugin.Reader, error) {
	f.r.closeIdle()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rd == nil {
		if err := f.openLocked(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	f.refs++
	return f.rd, nil
}

func (f *readerFile) release() {
	f.mu.Lock()
	f.refs--
	f.mu.Unlock()
	f.r.closeIdle()
}

func (f *readerFile) openLocked(ctx context.Context) (err error) {
	f.r.mu.Lock()
	closed := f.r.closed
	f.r.mu.Unlock()
	if closed {
		return plugin.ErrClosed
	}
	path := f.path
	if strings.HasSuffix(path, zstdExt) {
		if f.plain == "" {
			if f.plain, err = f.r.unpackFile(f); err != nil {
				return err
			}
		}
		path = f.plain
	}
	if f.drv, err = f.driver(path); err != nil {
		return err
	}
	rd, err := f.drv.OpenReader(ctx, path, plugin.ReadOptions{Config: f.r.config})
	if err != nil {
		if h := foreignFile(path); h != "" {
			return fmt.Errorf("the file %s: %w", h, err)
		}
		return err
	}
	f.rd = rd
	f.mapTopics(rd.Info())
	f.r.mu.Lock()
	f.r.open++
	f.r.mu.Unlock()
	return nil
}

// driver returns the format of the file: what metadata.yaml says if it is that, else what the magic bytes say.
func (f *readerFile) driver(path string) (plugin.Driver, error) {
	if f.storageID == "" {
		d, err := plugin.DetectDriver(path)
		if errors.Is(err, plugin.ErrNoDriver) {
			if h := foreignFile(path); h != "" {
				return nil, fmt.Errorf("the file %s: %w", h, plugin.ErrNoDriver)
			}
		}
		return d, err
	}
	return plugin.Lookup(f.storageID)
}

// mapTopics relates the ids of the file to those of the bag. f.mu is held.
func (f *readerFile) mapTopics(info plugin.Info) {
	f.toBag = make(map[plugin.TopicID]fileTopic, len(info.Topics))
	f.toFile = make(map[plugin.TopicID][]plugin.TopicID, len(info.Topics))
	for _, t := range info.Topics {
		id, sources := f.r.addTopic(t.Topic)
		f.toBag[t.ID] = fileTopic{id, sources}
		f.toFile[id] = append(f.toFile[id], t.ID)
	}
}

// closeLocked closes the storage. f.mu is held.
func (f *readerFile) closeLocked() error {
	if f.rd == nil {
		return nil
	}
	err := f.rd.Close()
	f.rd = nil
	f.r.mu.Lock()
	f.r.open--
	f.r.mu.Unlock()
	if f.plain != "" {
		err = errors.Join(err, os.Remove(f.plain))
		f.plain = ""
	}
	return err
}

func (f *readerFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closeLocked()
}

// closeIdle closes storages that nobody reads while too many are open.
func (r *Reader) closeIdle() {
	for _, f := range r.files {
		r.mu.Lock()
		enough := r.open <= maxOpenFiles
		r.mu.Unlock()
		if enough {
			return
		}
		f.mu.Lock()
		if f.refs == 0 {
			_ = f.closeLocked() // read only: nothing to lose
		}
		f.mu.Unlock()
	}
}

// bounds returns the smallest and largest stamp that the file may hold.
func (f *readerFile) bounds() (start, end int64) {
	if !f.known {
		return math.MinInt64, math.MaxInt64
	}
	return f.span.start, f.span.end
}

// foreignFile says what a file is that people take for a storage; "" where there is nothing to say.
func foreignFile(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if fi, err := file.Stat(); err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	b := make([]byte, 64)
	n, err := io.ReadFull(file, b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	b = b[:n]
	switch {
	case n == 0:
		return "is empty"
	case bytes.HasPrefix(b, []byte("#ROSBAG V")):
		return "is a ROS 1 bag, convert it first"
	case bytes.HasPrefix(b, []byte("version https://git-lfs.")):
		return "is a git-LFS pointer, run git lfs pull"
	case bytes.HasPrefix(b, []byte("\x89MCAP")):
		return "is an MCAP file"
	case bytes.HasPrefix(b, zstdMagic):
		return "is compressed with zstd; its name must end in " + zstdExt
	}
	return ""
}

// tempFile makes an empty file for undone compression.
func (r *Reader) tempFile(name string) (*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, plugin.ErrClosed
	}
	if r.temp == "" {
		dir, err := os.MkdirTemp(r.o.TempDir, "gobag-")
		if err != nil {
			return nil, err
		}
		r.temp = dir
	}
	return os.CreateTemp(r.temp, "*-"+filepath.Base(strings.TrimSuffix(name, zstdExt)))
}
