package bag

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// ReaderOptions configure Open. The zero value works.
type ReaderOptions struct {
	StorageID string         // "" = as metadata.yaml says, else by the files' magic bytes
	Config    map[string]any // decoded storage config file; of one with "read" and "write" parts the former is used
	TempDir   string         // where whole-file compression is undone; "" = os.TempDir

	// Rebuild reads all storages of the directory whatever metadata.yaml lists, takes counts and times from them, and
	// leaves out storages that cannot be opened (Info.Skipped). Of a metadata.yaml that can be read only what storages
	// cannot know is taken over.
	Rebuild bool

	// AllowMissing reads what is there of a bag that has lost some of the files that metadata.yaml lists: a warning of
	// Info names each. Else a file that is missing is an error.
	AllowMissing bool

	// Transcode turns payloads while they are read: Info tells the topics as they come out, and iterators give them so.
	// Topics that it refuses stay as they are (TopicInfo.Refused); Metadata tells what the bag holds.
	Transcode Transcoder

	// OnTurnError is told about messages that Transcode cannot turn, which are left out then; nil = they are an error of
	// the iterator. Called by the goroutine of the iterator.
	OnTurnError func(*TurnError)
}

// Reader reads a bag. Safe for concurrent use; iterators are not.
type Reader struct {
	path   string // as given to Open
	dir    string // the bag directory; that of the file for a single storage
	o      ReaderOptions
	config map[string]any
	ctx    context.Context // for files opened later; never cancelled

	files    []*readerFile
	meta     *Metadata
	unpack   unpackMode
	lastLost bool // the last file could not be read and is left out
	info     Info

	mu     sync.Mutex // guards what follows
	topics []TopicInfo
	byKey  map[topicKey]plugin.TopicID
	open   int    // files that are open
	temp   string // directory of undone compression; "" = none
	closed bool
	loaded bool // Open is done: topics change by copying only

	turnedTopics []TopicInfo // with ReaderOptions.Transcode
}

// Info describes a bag.
type Info struct {
	StorageID      string
	ROSDistro      string
	Messages       uint64 // without those that repeat what an earlier file holds
	Start          int64  // smallest RecvTime; plugin.NoStart where there is no message
	End            int64  // largest RecvTime; 0 where there is no message
	Duration       time.Duration
	Size           int64 // of the storages on disk, bytes
	Topics         []TopicInfo
	Files          []FileInfo
	Compression    string // "", "FILE zstd" or "MESSAGE zstd"
	CustomData     map[string]string
	Ledger         *Ledger       // nil where the bag has none
	ClockSteps     []ClockStep   // jumps of the wall clock while recording
	SimJumps       []ClockStep   // /clock went backwards while recording with simulated time
	Overloads      []Overload    // times in which messages were dropped since the queue was full
	Repeats        []FileRepeats // latched messages repeated at the head of files; of the bag's first file they are among its messages
	CutOff         bool          // the recording was not closed in order
	StillRecording bool          // somebody is recording into the bag
	Skipped        []SkippedFile // with ReaderOptions.Rebuild
	Warnings       []string      // one line each
}

// SkippedFile is a storage that could not be opened.
type SkippedFile struct {
	Path string // relative to the bag
	Err  error
}

// TopicInfo is a topic of a bag. Its ID is valid for Query and in messages of this Reader.
type TopicInfo struct {
	plugin.TopicInfo
	QoS    []QoSProfile // decoded OfferedQoS; nil unknown
	Ledger *TopicLedger // nil where the bag has none

	Refused string // why ReaderOptions.Transcode left the topic as it is
}

// FileInfo is one storage of a bag.
type FileInfo struct {
	Path     string // relative to the bag
	Size     int64
	Messages uint64
	Start    int64 // as in Info
	End      int64
	Duration time.Duration
	Format   string // format version in words; "" where the file was not looked into
	CutOff   bool   // this storage was not closed in order
}

// Open opens a bag: a directory with metadata.yaml, a directory of storages without one, or a single storage. It changes
// nothing on disk. Files that metadata.yaml lists must be inside the bag, and there (see ReaderOptions.AllowMissing). Counts and times are those of the
// storages; where metadata.yaml says something else, Info has a warning. Only a bag of several files that gobag closed in
// order is taken at its metadata's word, and its files are opened when they are read.
//
// Errors: fs.ErrNotExist, plugin.ErrNoDriver, plugin.ErrFormat, *plugin.CorruptError, *YAMLError.
func Open(ctx context.Context, path string, o ReaderOptions) (*Reader, error) {
	r := &Reader{path: path, o: o, ctx: context.WithoutCancel(ctx), byKey: map[topicKey]plugin.TopicID{}}
	if err := r.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open bag %s: %w", path, err), r.Close())
	}
	return r, nil
}

func (r *Reader) load(ctx context.Context) (err error) {
	if r.config, err = configPart(r.o.Config, "read"); err != nil {
		return err
	}
	fi, err := os.Stat(r.path)
	if err != nil {
		return err
	}
	single := !fi.IsDir() || isStorageDir(r.path)
	if single {
		r.dir = filepath.Dir(r.path)
		f, err := r.newFile(filepath.Base(r.path), r.path, r.o.StorageID)
		if err != nil {
			return err
		}
		r.files = []*readerFile{f}
	} else {
		r.dir = r.path
		if err := r.findFiles(); err != nil {
			return err
		}
	}
	if locked, err := fsx.Locked(r.dir); err == nil { // a file system without locks cannot say
		r.info.StillRecording = locked
	}
	if err := r.inspect(ctx); err != nil {
		return err
	}
	r.merge(single)
	return nil
}

// isStorageDir says whether path is a storage that is a directory.
func isStorageDir(path string) bool {
	if _, err := os.Stat(filepath.Join(path, MetadataFile)); err == nil {
		return false
	}
	for _, d := range plugin.Drivers() {
		if d.Features().Directory {
			if ok, err := d.Detect(path); ok && err == nil {
				return true
			}
		}
	}
	return false
}

func (r *Reader) warnf(format string, args ...any) {
	r.info.Warnings = append(r.info.Warnings, fmt.Sprintf(format, args...))
}

// readMetadata reads metadata.yaml; nil if there is none. An empty file, which a power cut can leave of rosbag2's, counts
// as none.
func (r *Reader) readMetadata() (*Metadata, error) {
	path := filepath.Join(r.dir, MetadataFile)
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if fi.Size() == 0 {
		r.warnf("%s is empty; the storages are read without it", MetadataFile)
		return nil, nil
	}
	if fi.Size() > maxYAMLBytes {
		return nil, fmt.Errorf("%s of %d bytes is larger than %d; move it away to read the storages without it", MetadataFile, fi.Size(), maxYAMLBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := ParseMetadata(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; correct it, or move it away to read the storages without it", MetadataFile, err)
	}
	return m, nil
}

// Metadata returns metadata.yaml corrected by what the storages say. The caller may change it.
func (r *Reader) Metadata() *Metadata {
	m := *r.meta
	m.Topics = append([]TopicMetadata(nil), m.Topics...)
	m.Files = append([]FileMetadata(nil), m.Files...)
	m.Paths = append([]string(nil), m.Paths...)
	return &m
}

// Info describes the bag. The slices are the reader's.
func (r *Reader) Info() Info {
	r.mu.Lock()
	defer r.mu.Unlock()
	info := r.info
	info.Topics = r.turned()
	return info
}

// Close closes all files. Iterators must be closed before. Idempotent.
func (r *Reader) Close() error {
	r.mu.Lock()
	r.closed = true
	temp := r.temp
	r.temp = ""
	r.mu.Unlock()
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.close())
	}
	if temp != "" {
		errs = append(errs, os.RemoveAll(temp))
	}
	return errors.Join(errs...)
}
