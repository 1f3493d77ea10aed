package bag

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// DefaultStorage is the storage format of WriterOptions.StorageID "": that of the generation's own tools, sqlite3 for
// Humble and mcap since.
func DefaultStorage(c plugin.Compat) string {
	if c == plugin.CompatHumble {
		return "sqlite3"
	}
	return "mcap"
}

// WriterOptions configure Create. The zero value works.
type WriterOptions struct {
	StorageID      string         // "" = DefaultStorage of Compat
	Preset         string         // "" = plugin.PresetResilient
	StorageConfig  map[string]any // decoded storage config file; of one with "read" and "write" parts the latter is used
	MaxBagSize     int64          // bytes at which a new file is begun; a file exceeds it by one message at most; 0 = never
	MaxBagDuration time.Duration  // monotonic time from a file's first message after which a new file is begun; 0 = never
	SplitByStamp   bool           // MaxBagDuration counts the messages' stamps instead, as for messages that were recorded before
	MaxBagFiles    int            // after a split the oldest files are deleted until there are so many, the new one included; 0 = keep all
	MaxTotalSize   int64          // after a split the oldest files are deleted until the bag has so many bytes, or one file; 0 = keep all
	SyncInterval   time.Duration  // what a crash may cost: a message is durable this long after its Write; 0 = 1 s, negative = no syncs in the background
	Compat         plugin.Compat  // plugin.CompatHumble writes metadata version 5 and QoS with numbers
	ROSDistro      string
	CustomData     map[string]string // KeyState and KeyVersion are set by the writer
	Compression    Compression       // message mode compresses within Write; file mode compresses closed files in the background, until Close returns
	Logger         *slog.Logger      // nil = silent

	// OnSplit is called when a file was closed after a split, with file names relative to the bag, by a goroutine of the
	// Writer, while messages go into the new file. It may call SetCustomData, Stats and Topics.
	OnSplit func(closed, opened string)

	// OnDelete is called, as OnSplit is, when a file was deleted for MaxBagFiles or MaxTotalSize, with the messages it held.
	OnDelete func(file string, messages uint64)
}

func (o WriterOptions) withDefaults() WriterOptions {
	if o.StorageID == "" {
		o.StorageID = DefaultStorage(o.Compat)
	}
	if o.SyncInterval == 0 {
		o.SyncInterval = time.Second
	}
	if o.Compat == "" {
		o.Compat = plugin.CompatJazzy
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Compression = o.Compression.withDefaults()
	return o
}

// Validate returns all problems joined.
func (o WriterOptions) Validate() error {
	var errs []error
	if o.MaxBagSize < 0 {
		errs = append(errs, fmt.Errorf("max bag size %d is negative", o.MaxBagSize))
	}
	if o.MaxBagDuration < 0 {
		errs = append(errs, fmt.Errorf("max bag duration %v is negative", o.MaxBagDuration))
	}
	if o.MaxBagFiles < 0 {
		errs = append(errs, fmt.Errorf("max bag files %d is negative", o.MaxBagFiles))
	}
	if o.MaxTotalSize < 0 {
		errs = append(errs, fmt.Errorf("max total size %d is negative", o.MaxTotalSize))
	}
	switch o.Compat {
	case "", plugin.CompatJazzy, plugin.CompatHumble:
	default:
		errs = append(errs, fmt.Errorf("compat %q is not known (there is: %s, %s)", o.Compat, plugin.CompatJazzy, plugin.CompatHumble))
	}
	if err := o.Compression.validate(); err != nil {
		errs = append(errs, err)
	}
	id := o.withDefaults().StorageID
	drv, err := plugin.Lookup(id)
	if err == nil && drv.Features().ReadOnly {
		err = fmt.Errorf("storage %s is read, not written: %w", id, plugin.ErrUnsupported)
	}
	if err != nil {
		errs = append(errs, err)
	} else if o.Compression.Mode == CompressionMessage && id == "mcap" {
		errs = append(errs, errors.New("compression mode message: mcap compresses its own chunks, as its preset small does; sqlite3 takes it"))
	} else if o.Compression.Mode == CompressionFile && drv.Features().Directory {
		errs = append(errs, fmt.Errorf("compression mode file: a storage of %s is a directory; its preset small compresses", id))
	} else if least := drv.Features().MinSplitSize; o.MaxBagSize > 0 && o.MaxBagSize < least {
		errs = append(errs, fmt.Errorf("max bag size %d is below the %d bytes that %s needs", o.MaxBagSize, least, id))
	}
	if _, err := o.writeConfig(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// writeConfig returns the part of StorageConfig that concerns writing.
func (o WriterOptions) writeConfig() (map[string]any, error) {
	return configPart(o.StorageConfig, "write")
}

// configPart returns the "read" or "write" part of a storage config file, or all of a file that has no such parts.
func configPart(c map[string]any, part string) (map[string]any, error) {
	_, r := c["read"]
	_, w := c["write"]
	if !r && !w {
		return c, nil
	}
	switch p := c[part].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return p, nil
	default:
		return nil, fmt.Errorf("storage config: %s is not a map", part)
	}
}

// Writer writes a bag. Its methods may be called from any goroutine; AddTopic, Write, Split and Close wait for each
// other, the rest does not wait for the storage. After a failed Write, Sync or Split every later call returns that
// error; Close finishes what can be finished all the same.
type Writer struct {
	dir      string
	base     string // first part of file names
	o        WriterOptions
	config   map[string]any
	drv      plugin.Driver
	version  int // of metadata
	lock     *fsx.Lock
	log      *slog.Logger
	packer   *messagePacker // nil unless payloads are compressed
	shrinker *filePacker    // nil unless files are compressed

	stopSync   chan struct{}
	background sync.WaitGroup // syncs, opens ahead, closes what is full

	mu        sync.Mutex // serialises AddTopic, Write, Split and Close
	topics    []topicState
	byKey     map[topicKey]plugin.TopicID
	order     uint64
	scratch   []plugin.Message
	closed    bool
	closeErr  error
	noSplit   time.Time // a split that failed is not tried again before this
	ahead     *aheadFile
	atHead    bool  // the file being written was begun by a split and holds nothing yet
	kept      int64 // bytes that Retain keeps
	maxLen    int64
	syncMu    sync.Mutex // held while a storage is synced, or closed after a split
	publishMu sync.Mutex // held while metadata.yaml is written
	customMu  sync.Mutex
	custom    map[string]string
	stateMu   sync.Mutex // guards all below; held for moments only
	err       error      // of the first failure
	file      *writerFile
	old       *oldFile       // the one before, while it is closed
	broken    []string       // files that could not be closed
	size      int64          // of file, as of the last call that changed it
	files     []FileMetadata // closed ones
	perFile   [][]uint64     // of those, messages by topic
	filesSize int64          // of closed ones
	begun     int            // files so far, deleted ones included
	repeats   []FileRepeats  // of the files that are there
	repeated  uint64         // messages that are repeats
	deleted   uint64         // messages that were deleted with their files
	span      span
	messages  uint64
	bytes     int64
	written   uint64 // counts changes to the storage
	synced    uint64 // value of written that the last sync covers
	syncedAt  time.Time
	longWrite time.Duration
	longSync  time.Duration
}

// writerFile is the storage being written.
type writerFile struct {
	w     plugin.Writer
	name  string    // relative to the bag
	begun time.Time // monotonic; of the first message
	span  span
	count uint64
}

type topicKey struct{ name, typ string }

// topicState is a topic of the bag. Its TopicID is its index + 1.
type topicState struct {
	topic plugin.Topic
	qos   []QoSProfile
	id    plugin.TopicID // in the storage being written; guarded by Writer.mu

	version int // grows with each change of topic

	// Guarded by Writer.stateMu.
	messages, lost   uint64
	inFile           uint64 // part of messages that is in the storage being written
	repeated         uint64 // part of messages that are repeats
	deleted          uint64 // part of messages that were deleted with their files
	bytes, lostBytes int64

	keep retained // guarded by Writer.mu
}

// WriterStats describe a Writer at one moment.
type WriterStats struct {
	Messages     uint64        // written, repeats excepted
	Bytes        int64         // their payload
	Lost         uint64        // refused by the storage as too large, or in a failed write
	Files        int           // begun so far, those that were deleted included
	Deleted      uint64        // messages that were deleted with their files
	File         string        // being written, relative to the bag
	Size         int64         // of all storages on disk, pending bytes included
	LastSync     time.Duration // time since all that was written then became durable
	LongestWrite time.Duration
	LongestSync  time.Duration
	Compressed   int64 // bytes of closed files read so far to compress them; grows while Close does so
}

// TopicStats describe one topic of a Writer.
type TopicStats struct {
	ID               plugin.TopicID
	Name, Type       string
	Messages, Lost   uint64 // as in WriterStats
	Deleted          uint64
	Bytes, LostBytes int64
}

// Create makes the directory dir with a first storage and metadata.yaml inside, and locks it until Close.
// plugin.ErrExists if anything is at dir already; what is there stays as it is. On any other error nothing is left.
// ctx bounds Create itself, not the writer's life.
func Create(ctx context.Context, dir string, o WriterOptions) (*Writer, error) {
	w, err := create(ctx, dir, o)
	if err != nil {
		return nil, fmt.Errorf("create bag %s: %w", dir, err)
	}
	return w, nil
}

func create(ctx context.Context, dir string, o WriterOptions) (_ *Writer, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, base: filepath.Base(abs), o: o, version: MetadataVersion, log: o.Logger, stopSync: make(chan struct{}),
		byKey: map[topicKey]plugin.TopicID{}, custom: maps.Clone(o.CustomData), syncedAt: time.Now()}
	if o.Compat == plugin.CompatHumble {
		w.version = MetadataVersionHumble
	}
	if w.custom == nil {
		w.custom = map[string]string{}
	}
	if w.config, err = o.writeConfig(); err != nil {
		return nil, err
	}
	if w.drv, err = plugin.Lookup(o.StorageID); err != nil {
		return nil, err
	}
	w.maxLen = w.drv.Features().MaxMessageSize
	switch o.Compression.Mode {
	case CompressionMessage:
		if w.maxLen == 0 || w.maxLen > maxMessage {
			w.maxLen = maxMessage // what readers unpack
		}
		if w.packer, err = newMessagePacker(o.Compression, w.refusedPriority()); err != nil {
			return nil, err
		}
	case CompressionFile:
		w.shrinker = &filePacker{dir: dir, c: o.Compression, done: w.packed, refused: w.refusedPriority(), left: func(name string) {
			w.log.Warn("stays uncompressed: more files wait for a compressor than the queue takes", "file", name, "queue", o.Compression.Queue)
		}}
	}
	defer func() {
		if err != nil && w.packer != nil {
			w.packer.close()
		}
	}()

	if err := makeDir(dir, abs); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil { // only what was made here; a foreign file would keep the directory
			if w.file != nil {
				err = errors.Join(err, w.file.w.Close(plugin.Metadata{}))
				w.remove(w.file.name)
			}
			_ = os.Remove(filepath.Join(dir, MetadataFile))
			_ = os.Remove(dir)
			if w.lock != nil {
				err = errors.Join(err, w.lock.Unlock())
			}
		}
	}()
	if w.lock, err = lockDir(ctx, dir); err != nil {
		return nil, err
	}
	if w.file, err = w.openFile(ctx, 0); err != nil {
		return nil, err
	}
	w.size, w.begun = w.file.w.Size(), 1
	if err := w.publish(); err != nil {
		return nil, err
	}
	if o.SyncInterval > 0 {
		w.background.Go(w.syncLoop)
	}
	return w, nil
}

// makeDir makes a directory that must not be there, and those above it.
func makeDir(dir, abs string) error {
	parent := filepath.Dir(abs)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o777)
	if errors.Is(err, fs.ErrExist) {
		return plugin.ErrExists
	}
	if err != nil {
		return err
	}
	if err := fsx.SyncDir(parent); err != nil {
		return errors.Join(err, os.Remove(dir))
	}
	return nil
}

// lockDir takes the lock of a new directory. A reader that looks whether somebody records here may have it for a moment.
func lockDir(ctx context.Context, dir string) (*fsx.Lock, error) {
	for deadline := time.Now().Add(time.Second); ; {
		l, err := fsx.LockDir(dir)
		if !errors.Is(err, fsx.ErrLocked) || time.Now().After(deadline) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// AddTopic adds a topic, or, for a name and type that are there already, updates its QoS, hash, definition and sources
// (a zero field leaves what is there) and returns the same id. Ids stay the same when a new file is begun. OfferedQoS is
// stored in the spelling of the bag's generation; an empty serialization format means "cdr".
func (w *Writer) AddTopic(t plugin.Topic) (plugin.TopicID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return 0, err
	}
	if t.Name == "" {
		return 0, fmt.Errorf("add topic: the name is empty")
	}
	key := topicKey{t.Name, t.Type}
	var s topicState
	bagID, known := w.byKey[key]
	if known {
		w.stateMu.Lock() // closeOld counts in them
		s = w.topics[bagID-1]
		w.stateMu.Unlock()
	} else {
		s.topic = plugin.Topic{Name: t.Name, Type: t.Type, SerializationFormat: t.SerializationFormat}
		if s.topic.SerializationFormat == "" {
			s.topic.SerializationFormat = "cdr"
		}
	}
	s.update(t, w)
	s.version++
	id, err := w.file.w.AddTopic(s.topic)
	if err != nil {
		return 0, w.fail(fmt.Errorf("add topic %q: %w", t.Name, err))
	}
	s.id = id
	size := w.file.w.Size()
	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	w.written++
	w.size = size
	if known {
		t := &w.topics[bagID-1]
		t.topic, t.qos, t.id, t.version = s.topic, s.qos, s.id, s.version // the counts may have grown
		return bagID, nil
	}
	w.topics = append(w.topics, s)
	bagID = plugin.TopicID(len(w.topics))
	w.byKey[key] = bagID
	return bagID, nil
}

// update takes over what t has.
func (s *topicState) update(t plugin.Topic, w *Writer) {
	if t.OfferedQoS != "" {
		ps, err := DecodeQoS(t.OfferedQoS)
		if err != nil {
			w.log.Warn("offered QoS of a topic cannot be read; it is stored as it is", "topic", t.Name, "err", err)
			s.topic.OfferedQoS, s.qos = t.OfferedQoS, nil
		} else {
			s.topic.OfferedQoS, s.qos = EncodeQoS(ps, w.version >= 9), ps
		}
	}
	if t.TypeHash != "" {
		s.topic.TypeHash = t.TypeHash
	}
	if t.Definition.Text != "" {
		s.topic.Definition = t.Definition
	}
	if t.Sources != nil {
		s.topic.Sources = append([]string(nil), t.Sources...)
	}
}

// SetCustomData sets a value of custom_data, which the next metadata.yaml and the storage take over. It never waits for
// the storage. KeyState and KeyVersion belong to the writer and are left alone.
func (w *Writer) SetCustomData(key, value string) {
	w.customMu.Lock()
	defer w.customMu.Unlock()
	w.custom[key] = value
}

// Stats describes the writer. It never waits for the storage.
func (w *Writer) Stats() WriterStats {
	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	s := WriterStats{Messages: w.messages - w.repeated, Bytes: w.bytes, Files: w.begun, Deleted: w.deleted, Size: w.filesSize, LastSync: time.Since(w.syncedAt),
		LongestWrite: w.longWrite, LongestSync: w.longSync}
	if w.file != nil {
		s.File = w.file.name
		s.Size += w.size
	}
	for i := range w.topics {
		s.Lost += w.topics[i].lost
	}
	if w.shrinker != nil {
		s.Compressed = w.shrinker.moved.Load()
	}
	return s
}

// Topics describes the topics by id.
func (w *Writer) Topics() []TopicStats {
	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	out := make([]TopicStats, len(w.topics))
	for i := range w.topics {
		t := &w.topics[i]
		out[i] = TopicStats{ID: plugin.TopicID(i + 1), Name: t.topic.Name, Type: t.topic.Type,
			Messages: t.messages - t.repeated, Lost: t.lost, Deleted: t.deleted, Bytes: t.bytes, LostBytes: t.lostBytes}
	}
	return out
}

// StorageID returns the name of the storage format.
func (w *Writer) StorageID() string { return w.drv.Name() }

// Dir returns the bag's directory as it was given to Create.
func (w *Writer) Dir() string { return w.dir }

// usable returns the error that all later calls get.
func (w *Writer) usable() error {
	if w.closed {
		return plugin.ErrClosed
	}
	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	return w.err
}

// fail makes err the answer to all later calls and returns it, or the one that came first.
func (w *Writer) fail(err error) error {
	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	if w.err == nil {
		w.err = fmt.Errorf("write bag %s: %w", w.dir, err)
	}
	return w.err
}
