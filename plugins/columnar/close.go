package columnar

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// Close makes parts of everything, saves the state with m and removes the log.
func (w *writer) Close(m plugin.Metadata) error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		<-w.finished
		return w.done
	}
	if w.err == nil {
		if err := w.flush(true); err != nil {
			_ = w.poison(err) // kept in w.err
		}
	}
	w.closed = true
	select {
	case w.wake <- struct{}{}:
	default:
	}
	w.mu.Unlock()
	<-w.sealed
	w.syncMu.Lock() // a Sync that had begun is over
	defer w.syncMu.Unlock()
	defer close(w.finished)
	err := w.err
	if err == nil {
		if err = w.sealer.finish(m); err != nil {
			err = fmt.Errorf("close storage %s: %w", w.dir, err)
		}
	}
	if err != nil {
		w.sealer.abandon()
	}
	if w.f != nil {
		w.older = append(w.older, w.f)
	}
	for _, f := range w.older {
		if cerr := f.Close(); cerr != nil && !errors.Is(cerr, os.ErrClosed) {
			err = errors.Join(err, cerr)
		}
	}
	if err == nil {
		if err = w.sealer.dropLog(); err != nil {
			err = fmt.Errorf("close storage %s: %w", w.dir, err)
		}
	}
	w.done = err
	if err == nil {
		w.size.Store(max(w.sealer.written.Load(), 1))
	}
	w.block, w.queue = nil, nil
	w.sealer = &sealer{} // its memory
	return w.done
}

// finish makes parts of all that is in none, and saves the state. The log is not needed after that.
func (s *sealer) finish(m plugin.Metadata) error {
	var small []*topicRows
	for _, t := range s.topics {
		switch {
		case t.typed.empty() && t.raw.empty():
		case t.bytes < minPart:
			small = append(small, t)
		default:
			if err := s.sealLast(t); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(small, func(a, b *topicRows) int { return cmp.Compare(b.bytes, a.bytes) })
	files := 0
	for len(small) > 0 && files < smallTopics {
		t := small[0]
		for _, r := range []*rows{t.typed, t.raw} {
			if !r.empty() {
				files++
			}
		}
		if err := s.sealLast(t); err != nil {
			return err
		}
		small = small[1:]
	}
	if len(small) > 0 {
		if err := s.mix(small); err != nil {
			return err
		}
	}
	s.state.closed = true
	if m != (plugin.Metadata{}) {
		s.state.metadata = m
	}
	if err := s.state.save(s.w.dir); err != nil {
		return err
	}
	if fi, err := os.Stat(filepath.Join(s.w.dir, stateName)); err == nil {
		s.written.Add(fi.Size())
	}
	return nil
}

// sealLast is seal without a word in the log: the state that is saved at the end says it.
func (s *sealer) sealLast(t *topicRows) error {
	p, err := s.parts(t)
	if err != nil {
		return err
	}
	return s.state.publish(&p)
}

// mix puts the messages of small topics that are in no part into one part of payloads, from the log.
func (s *sealer) mix(ts []*topicRows) error {
	byTopic := map[plugin.TopicID]*topicRows{}
	sums := map[plugin.TopicID]*topicSums{}
	for _, t := range ts {
		byTopic[t.t.ID] = t
		sums[t.t.ID] = &topicSums{t.t.ID, t.last, t.t.count, t.t.bytes}
	}
	r, err := newRows(partMixed, nil, 0, s.comp, s.w.set.store, func() (*os.File, error) { return s.createPart(mixedDir) })
	if err != nil {
		return err
	}
	seen := map[uint64]bool{} // a message may be in the log twice

	for _, g := range s.segments {
		err := scanSegment(filepath.Join(s.w.dir, logDir, segmentName(g.number)), func(b []byte) error {
			return records(b, func(_ byte, m *plugin.Message, _ int) error {
				t := byTopic[m.Topic]
				if t == nil || m.Order <= t.t.sealed || seen[m.Order] {
					return nil
				}
				seen[m.Order] = true
				sum := sums[m.Topic]
				sum.count, sum.bytes = sum.count+1, sum.bytes+int64(len(m.Data))
				if _, err := r.add(m, &t.t.Topic); err != nil {
					return err
				}
				s.pending += int64(len(m.Data)) // as for all rows
				if r.full() {
					return s.flush(r)
				}
				return nil
			}, func(byte, []byte) error { return nil })
		})
		if err != nil {
			return err
		}
	}
	p := publication{}
	for _, t := range ts {
		p.topics = append(p.topics, *sums[t.t.ID])
	}
	if !r.empty() {
		ref, err := s.write(r, nil)
		if err != nil {
			return err
		}
		p.parts = append(p.parts, ref)
	}
	return s.state.publish(&p)
}

// dropLog removes the log after closing. Its files must be closed.
func (s *sealer) dropLog() error {
	dir := filepath.Join(s.w.dir, logDir)
	es, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range es {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil //nolint:nilerr // a file that a reader holds open stays; it does not count any more
	}
	return fsx.SyncDir(s.w.dir)
}
