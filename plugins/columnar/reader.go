package columnar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugin"
)

// reader reads a storage as it was when it was opened.
type reader struct {
	dir    string
	state  *state
	info   plugin.Info
	log    []*os.File
	loose  []entry // messages in no part, by time and order
	logErr error   // what keeps the rest of the log from being read; stands for the end of an iteration

	mu       sync.Mutex
	programs map[programKey]*shred.Program
	closed   bool
}

// entry is a message in the log.
type entry struct {
	time  int64
	order uint64
	off   int64 // of the payload
	n     uint32
	topic plugin.TopicID
	file  uint32 // index in reader.log
}

type programKey struct {
	typ string
	def int
}

// maxEntries bounds what is read of the log; a writer's log stays far below.
const maxEntries = 1 << 26

func openReader(ctx context.Context, dir string, o plugin.ReadOptions) (*reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkReadConfig(o.Config); err != nil {
		return nil, err
	}
	fi, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, fmt.Errorf("%w: not a directory", plugin.ErrFormat)
	}
	// A writer may drop the beginning of the log between the reading of its state and the opening of the log.
	for range 20 {
		r := &reader{dir: dir, programs: map[programKey]*shred.Program{}}
		if r.state, err = readState(dir); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w: no %s in it", plugin.ErrFormat, stateName)
			}
			return nil, err
		}
		err = r.open(ctx)
		if err == nil {
			r.describe()
			return r, nil
		}
		r.closeFiles()
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, &plugin.CorruptError{Path: filepath.Join(dir, logDir, segmentName(1)), Offset: 0, Err: err}
}

// open reads the log.
func (r *reader) open(ctx context.Context) error {
	if r.state.closed {
		return nil
	}
	for number := r.state.firstLog; ; number++ {
		f, err := os.Open(filepath.Join(r.dir, logDir, segmentName(number)))
		if errors.Is(err, fs.ErrNotExist) && number > r.state.firstLog {
			break
		}
		if err != nil {
			return err
		}
		r.log = append(r.log, f)
	}
	for i, f := range r.log {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.readLog(uint32(i), f); err != nil || r.logErr != nil {
			return err
		}
	}
	r.dropSealed()
	return nil
}

// readLog brings the state forward by a file of the log and notes its messages.
func (r *reader) readLog(i uint32, f *os.File) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	l := logFile{f: f, size: fi.Size()}
	for {
		b, at, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return r.logEnds(&l, i, err)
		}
		err = records(b, func(_ byte, m *plugin.Message, off int) error {
			if m.Topic == 0 || int(m.Topic) > len(r.state.topics) {
				return errUnknownTopic
			}
			if len(r.loose) >= maxEntries {
				return fmt.Errorf("more than %d messages", maxEntries)
			}
			r.loose = append(r.loose, entry{m.RecvTime, m.Order, at + int64(off), uint32(len(m.Data)), m.Topic, i})
			return nil
		}, r.state.apply)
		if err != nil {
			return &plugin.CorruptError{Path: f.Name(), Offset: at, Err: err}
		}
	}
}

// logEnds decides whether a frame that is not whole is the end of the log, cut off or still being written, or damage.
func (r *reader) logEnds(l *logFile, i uint32, cause error) error {
	if !errors.Is(cause, errEnd) && !errors.Is(cause, errTorn) && !errors.Is(cause, errHead) {
		return cause
	}
	synced, err := l.syncedLater()
	if err != nil {
		return err
	}
	if synced > l.off {
		r.logErr = &plugin.CorruptError{Path: l.f.Name(), Offset: l.off, Err: cause}
		r.dropSealed()
		return nil
	}
	if n := l.size - l.off; n > 0 && !errors.Is(cause, errEnd) {
		r.warn("the log %s ends at byte %d of %d: %v", l.f.Name(), l.off, l.size, cause)
	}
	if int(i) < len(r.log)-1 {
		r.warn("the log goes on behind %s, which was cut off: messages between them are lost", l.f.Name())
	}
	return nil
}

// dropSealed leaves the messages that are in no part, each once, and sorts them.
func (r *reader) dropSealed() {
	r.loose = slices.DeleteFunc(r.loose, func(e entry) bool { return e.order <= r.state.topics[e.topic-1].sealed })
	slices.SortFunc(r.loose, func(a, b entry) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.order, b.order)) })
	r.loose = slices.CompactFunc(r.loose, func(a, b entry) bool { return a.order == b.order })
}

func (r *reader) describe() {
	s := r.state
	r.info.Start, r.info.Metadata, r.info.ROSDistro, r.info.Unclean, r.info.Format = plugin.NoStart, s.metadata, s.distro, !s.closed, "columnar 1"
	for _, t := range s.topics {
		r.info.Topics = append(r.info.Topics, plugin.TopicInfo{Topic: t.Topic, Count: t.count, Bytes: t.bytes})
		r.info.Messages += t.count
	}
	first := true
	span := func(start, end int64) {
		if first {
			first, r.info.Start, r.info.End = false, start, end
		}
		r.info.Start, r.info.End = min(r.info.Start, start), max(r.info.End, end)
	}
	for i := range s.parts {
		span(s.parts[i].start, s.parts[i].end)
		r.info.Size += s.parts[i].size
	}
	for i := range r.loose {
		e := &r.loose[i]
		span(e.time, e.time)
		t := &r.info.Topics[e.topic-1]
		t.Count++
		t.Bytes += int64(e.n)
		r.info.Messages++
	}
	for _, f := range r.log {
		if fi, err := f.Stat(); err == nil {
			r.info.Size += fi.Size()
		}
	}
	if fi, err := os.Stat(filepath.Join(r.dir, stateName)); err == nil {
		r.info.Size += fi.Size()
	}
	if r.logErr != nil {
		r.warn("%v", r.logErr)
	}
}

func (r *reader) warn(format string, args ...any) {
	if len(r.info.Warnings) < 100 {
		r.info.Warnings = append(r.info.Warnings, fmt.Sprintf(format, args...))
	}
}

// program returns what puts payloads of a part together.
func (r *reader) program(p *partRef) (*shred.Program, error) {
	t := r.state.topics[p.topic-1]
	key := programKey{t.Type, p.def}
	r.mu.Lock()
	defer r.mu.Unlock()
	prog, ok := r.programs[key]
	if !ok {
		prog = program(t.Type, t.SerializationFormat, r.state.defs[p.def-1])
		r.programs[key] = prog
	}
	if prog == nil {
		return nil, fmt.Errorf("the definition of %s that it was written with is not understood", t.Type)
	}
	return prog, nil
}

// Info describes the storage.
func (r *reader) Info() plugin.Info {
	i := r.info
	i.Topics, i.Warnings = slices.Clone(i.Topics), slices.Clone(i.Warnings)
	return i
}

func (r *reader) closeFiles() {
	for _, f := range r.log {
		_ = f.Close() // was read only
	}
}

// Close closes the log; iterators must not be used any more.
func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		r.closeFiles()
	}
	return nil
}
