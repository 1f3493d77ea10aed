package columnar

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugins/columnar/parquet"
)

// sealer takes the blocks of the log apart, in their order, and makes parts of them. All but the sums is its
// goroutine's own.
type sealer struct {
	w        *writer
	state    state // as of the blocks that were taken apart
	topics   []*topicRows
	comp     *parquet.Compressor
	pending  int64 // payload bytes in columns
	held     int64 // of compressed pages
	kept     int64 // about what empty columns of all topics have room for
	segments []*segment

	// sums for Size: bytes of parts and pages, payload in columns, and what pages and their payload came to so far.
	written, encoded, columns, pages, paged atomic.Int64
}

// topicRows are the messages of a topic that are in no part yet.
type topicRows struct {
	t     *topicState
	def   plugin.Definition // that prog was made of
	prog  *shred.Program
	typed *rows // nil until needed
	raw   *rows
	last  uint64    // order of the last message taken apart
	since time.Time // of the first message that is in no part
	bytes int64     // payload bytes that are in no part
}

// segment is a file of the log, with the last message of each topic in it.
type segment struct {
	number uint64
	size   int64
	last   []uint64 // by topic's id; 0: no message
}

// note says that there is a message of a topic.
func (g *segment) note(id plugin.TopicID, order uint64) {
	for int(id) >= len(g.last) {
		g.last = append(g.last, 0)
	}
	g.last[id] = max(g.last[id], order)
}

// estimate is the size of the storage if it was closed now, with payload bytes of the log to come.
func (s *sealer) estimate(log int64) int64 {
	raw := log + s.columns.Load()
	if pages, paged := s.pages.Load(), s.paged.Load(); paged > 0 && pages < paged {
		raw = int64(float64(raw) * float64(pages) / float64(paged))
	}
	return s.written.Load() + s.encoded.Load() + raw + 4096
}

// run is the goroutine. It ends when the writer was closed or has failed.
func (s *sealer) run() {
	defer close(s.w.sealed)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		s.w.mu.Lock()
		queue, closed, err := s.w.queue, s.w.closed, s.w.err
		s.w.queue = nil
		s.w.mu.Unlock()
		if err != nil {
			return
		}
		for i := range queue {
			if err := s.piece(&queue[i]); err != nil {
				s.w.fail(err)
				return
			}
		}
		if len(queue) > 0 {
			continue
		}
		if closed {
			return
		}
		select {
		case <-s.w.wake:
		case <-tick.C:
			if err := s.aged(); err != nil {
				s.w.fail(err)
				return
			}
		}
	}
}

// piece takes frames apart.
func (s *sealer) piece(p *piece) error {
	g := s.segmentOf(p.segment)
	g.size += int64(len(p.b))
	payload := int64(0)
	var err error
	for b := p.b; len(b) > 0 && err == nil; {
		f, ok := parseFrame(b)
		if !ok {
			err = errDamaged
			break
		}
		err = s.frame(b[frameHead:frameHead+f.length], g, &payload)
		b = b[frameHead+f.length:]
	}
	s.columns.Store(s.pending)
	if p.last {
		s.w.mu.Lock()
		s.w.inFlight -= cap(p.k.b)
		s.w.room.Broadcast()
		s.w.mu.Unlock()
		p.k.free()
	}
	s.w.taken.Add(-payload)
	if err != nil {
		return err
	}
	s.w.updateSize()
	return s.clearLog()
}

// frame takes the records of a frame apart, which is in g, and adds to payload what they have of it.
func (s *sealer) frame(b []byte, g *segment, payload *int64) error {
	return records(b, func(kind byte, m *plugin.Message, _ int) error {
		if m.Topic == 0 || int(m.Topic) > len(s.topics) {
			return errUnknownTopic
		}
		g.note(m.Topic, m.Order)
		if kind == recordCarried {
			return nil // it is here already
		}
		*payload += int64(len(m.Data))
		return s.message(m)
	}, func(kind byte, content []byte) error {
		if kind == recordPublication {
			return nil // our own
		}
		if err := s.state.apply(kind, content); err != nil {
			return err
		}
		return s.topicChanged()
	})
}

func (s *sealer) segmentOf(number uint64) *segment {
	for _, g := range s.segments {
		if g.number == number {
			return g
		}
	}
	next := number
	if n := len(s.segments); n > 0 {
		next = s.segments[n-1].number + 1
	}
	for ; next <= number; next++ {
		s.segments = append(s.segments, &segment{number: next})
	}
	return s.segments[len(s.segments)-1]
}

// topicChanged adds new topics, and seals a topic whose definition has changed.
func (s *sealer) topicChanged() error {
	for _, t := range s.state.topics[len(s.topics):] {
		s.topics = append(s.topics, &topicRows{t: t, def: t.Definition, prog: program(t.Type, t.SerializationFormat, t.Definition)})
	}
	for _, r := range s.topics {
		if r.def != r.t.Definition {
			if err := s.seal(r); err != nil {
				return err
			}
			r.def, r.typed = r.t.Definition, nil
			r.prog = program(r.t.Type, r.t.SerializationFormat, r.def)
		}
	}
	return nil
}

func (s *sealer) message(m *plugin.Message) error {
	t := s.topics[m.Topic-1]
	if t.bytes == 0 && t.typed.empty() && t.raw.empty() {
		t.since = time.Now()
	}
	into, err := s.add(t, m)
	if err != nil {
		return err
	}
	t.last = m.Order
	t.bytes += int64(len(m.Data))
	s.pending += int64(len(m.Data))
	flushed := into.full()
	if flushed {
		if err := s.flush(into); err != nil {
			return err
		}
	}
	for s.pending > maxPending {
		flushed = true
		if err := s.flush(s.largest()); err != nil {
			return err
		}
	}
	if !flushed && t.bytes < s.w.set.partPayload {
		return nil // no pages have been added
	}
	if t.held() >= s.w.set.partSize || t.bytes >= s.w.set.partPayload {
		return s.seal(t)
	}
	for s.held > maxEncoded {
		big := t
		for _, o := range s.topics {
			if o.held() > big.held() {
				big = o
			}
		}
		if err := s.seal(big); err != nil {
			return err
		}
	}
	return nil
}

// add puts a message into columns, or stores its payload where that is not possible.
func (s *sealer) add(t *topicRows, m *plugin.Message) (*rows, error) {
	if t.prog != nil && t.typed == nil {
		s.newTyped(t)
	}
	if t.prog != nil {
		if ok, err := t.typed.add(m, &t.t.Topic); ok || err != nil {
			return t.typed, err
		}
	}
	if t.raw == nil {
		var err error
		if t.raw, err = newRows(partRaw, nil, 0, s.comp, s.w.set.store, s.creator(t)); err != nil {
			return nil, err
		}
	}
	_, err := t.raw.add(m, &t.t.Topic)
	return t.raw, err
}

// newTyped makes the columns of a topic; t.prog is nil after that where columns cannot hold its type.
func (s *sealer) newTyped(t *topicRows) {
	var err error
	if t.typed, err = newRows(partTyped, t.prog, s.state.definition(t.def), s.comp, s.w.set.store, s.creator(t)); err != nil {
		t.prog = nil
	}
}

func (s *sealer) creator(t *topicRows) func() (*os.File, error) {
	return func() (*os.File, error) { return s.createPart(t.t.dir) }
}

// held is what the pages of a topic take in memory.
func (t *topicRows) held() int64 {
	n := int64(0)
	for _, r := range []*rows{t.typed, t.raw} {
		if !r.empty() {
			n += int64(r.w.Held())
		}
	}
	return n
}

// largest are the rows with most payload in columns.
func (s *sealer) largest() *rows {
	var big *rows
	for _, t := range s.topics {
		for _, r := range []*rows{t.typed, t.raw} {
			if !r.empty() && (big == nil || r.bytes > big.bytes) {
				big = r
			}
		}
	}
	return big
}

// flush compresses what rows have in columns.
func (s *sealer) flush(r *rows) error {
	if r.empty() || r.count == 0 {
		return nil
	}
	before, held, bytes := r.w.Size(), r.w.Held(), r.bytes
	if err := r.flush(); err != nil {
		return err
	}
	s.pending -= bytes
	s.columns.Store(s.pending)
	s.pages.Add(int64(r.w.Size() - before))
	s.paged.Add(bytes)
	s.encoded.Add(int64(r.w.Size() - before))
	s.held += int64(r.w.Held() - held)
	if r.file != nil && s.w.set.syncEvery == 0 {
		r.pushed = pushBack(r.file, r.pushed, int64(r.w.Size()))
	}
	if s.kept += max(0, bytes-r.kept); s.kept > maxPending {
		s.kept -= max(r.kept, bytes)
		r.release()
	} else {
		r.kept = max(r.kept, bytes)
	}
	return nil
}

// aged seals the topics that are old enough.
func (s *sealer) aged() error {
	for _, t := range s.topics {
		if t.bytes >= agedPart && time.Since(t.since) >= s.w.set.partAge {
			if err := s.seal(t); err != nil {
				return err
			}
		}
	}
	return s.clearLog()
}

// seal writes the parts of a topic and says so in the log.
func (s *sealer) seal(t *topicRows) error {
	p, err := s.parts(t)
	if err != nil || len(p.parts) == 0 {
		return err
	}
	return s.announce(&p)
}

// parts writes the parts of a topic.
func (s *sealer) parts(t *topicRows) (publication, error) {
	var p publication
	count, bytes := t.t.count, t.t.bytes
	for _, r := range []*rows{t.typed, t.raw} {
		if r.empty() {
			continue
		}
		count, bytes = count+r.total, bytes+r.payload
		ref, err := s.write(r, t.t)
		if err != nil {
			return p, err
		}
		p.parts = append(p.parts, ref)
	}
	if len(p.parts) > 0 {
		p.topics = []topicSums{{t.t.ID, t.last, count, bytes}}
		t.bytes = 0
	}
	return p, nil
}

// announce makes a publication known: from now on the parts count and the messages in the log do not.
func (s *sealer) announce(p *publication) error {
	if err := s.state.publish(p); err != nil {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.w.err != nil {
		return s.w.err
	}
	return s.w.record(recordPublication, appendPublication(nil, p))
}

// write writes rows as a part; t is nil for a mixed one.
func (s *sealer) write(r *rows, t *topicState) (partRef, error) {
	if err := s.flush(r); err != nil {
		return partRef{}, err
	}
	ref := partRef{number: s.state.nextPart, kind: r.kind, def: r.def, rows: r.total, bytes: r.payload, start: r.start, end: r.end}
	s.state.nextPart++
	dir := mixedDir
	var topic *plugin.Topic
	if t != nil {
		dir, ref.topic, topic = t.dir, t.ID, &t.Topic
	}
	ref.name = partName(r.kind, dir, ref.number)
	held, size := int64(r.w.Held()), int64(r.w.Size())
	var err error
	if ref.size, err = s.finishPart(filepath.Join(s.w.dir, filepath.FromSlash(ref.name)), dir, r, r.describe(ref.number, topic)); err != nil {
		return ref, err
	}
	s.held -= held
	s.encoded.Add(-size)
	s.written.Add(ref.size)
	r.reset()
	if held > 1<<20 {
		r.w.Release()
	}
	return ref, nil
}

// mixedDir is the directory of mixed parts.
const mixedDir = "small"

// createPart makes a file for a part, which gets its name when it is whole.
func (s *sealer) createPart(dir string) (*os.File, error) {
	if err := s.makeDir(dir); err != nil {
		return nil, err
	}
	tmp := fsx.TempName(filepath.Join(s.w.dir, filepath.FromSlash(dir), "part"))
	return os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// finishPart completes the file of a part and gives it its name.
func (s *sealer) finishPart(path, dir string, r *rows, kv []parquet.KeyValue) (int64, error) {
	var err error
	if r.file == nil {
		if r.file, err = s.createPart(dir); err != nil {
			return 0, err
		}
	}
	tmp := r.file.Name()
	size, err := r.w.Finish(r.file, kv)
	if err == nil {
		err = datasync(r.file)
	}
	if cerr := r.file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fsx.PublishNew(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp) // a crash would leave it too
		r.file = nil
	}
	return size, err
}

// abandon removes the files of parts that will not be finished.
func (s *sealer) abandon() {
	for _, t := range s.topics {
		for _, r := range []*rows{t.typed, t.raw} {
			if r != nil && r.file != nil {
				_ = r.file.Close()
				_ = os.Remove(r.file.Name()) // a crash would leave it too
				r.file = nil
			}
		}
	}
}

// makeDir makes a directory below the storage, durably.
func (s *sealer) makeDir(dir string) error {
	path := filepath.Join(s.w.dir, filepath.FromSlash(dir))
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	for path != s.w.dir {
		path = filepath.Dir(path)
		if err := fsx.SyncDir(path); err != nil {
			return err
		}
	}
	return nil
}
