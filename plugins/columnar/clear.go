package columnar

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gobag/gobag/plugin"
)

// clearLog drops the oldest files of the log of which every message is in a part. Where the log is too large it sees to
// it that this is so for the oldest one: large topics get their parts, and what there is of small ones is written into
// the log again.
func (s *sealer) clearLog() error {
	size := int64(0)
	for _, g := range s.segments {
		size += g.size
	}
	n := 0
	for len(s.segments)-n > 1 {
		g := s.segments[n]
		if size > s.w.set.maxLog {
			if err := s.empty(g); err != nil {
				return err
			}
		}
		if s.inParts(g) != nil {
			break
		}
		size -= g.size
		n++
	}
	if n == 0 {
		return nil
	}
	return s.drop(n)
}

// inParts returns the topics with messages in g that are in no part.
func (s *sealer) inParts(g *segment) []*topicRows {
	var ts []*topicRows
	for id, last := range g.last {
		if last > 0 && s.topics[id-1].t.sealed < last {
			ts = append(ts, s.topics[id-1])
		}
	}
	return ts
}

// empty sees to it that g is not needed any more.
func (s *sealer) empty(g *segment) error {
	carry := map[plugin.TopicID]uint64{} // and up to which order number the topic's messages are in parts
	for _, t := range s.inParts(g) {
		if t.bytes < minPart {
			carry[t.t.ID] = t.t.sealed
		} else if err := s.seal(t); err != nil {
			return err
		}
	}
	if len(carry) == 0 {
		return nil
	}
	s.w.mu.Lock()
	first := s.w.segment
	s.w.mu.Unlock()
	last := map[plugin.TopicID]uint64{}
	err := scanSegment(filepath.Join(s.w.dir, logDir, segmentName(g.number)), func(b []byte) error {
		return records(b, func(_ byte, m *plugin.Message, _ int) error {
			if sealed, ok := carry[m.Topic]; !ok || m.Order <= sealed {
				return nil
			}
			last[m.Topic] = max(last[m.Topic], m.Order)
			return s.w.carry(m)
		}, func(byte, []byte) error { return nil })
	})
	if err != nil {
		return err
	}
	if err := s.w.sync(true); err != nil {
		return err
	}
	s.w.mu.Lock()
	now := s.w.segment
	s.w.mu.Unlock()
	for number := first; number <= now; number++ {
		to := s.segmentOf(number)
		for id, order := range last {
			to.note(id, order)
		}
	}
	for id := range last {
		g.last[id] = 0
	}
	return nil
}

// carry writes a message into the log again.
func (w *writer) carry(m *plugin.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if err := w.reserve(messageHead + len(m.Data)); err != nil {
		return err
	}
	w.block.message(recordCarried, m, m.Order)
	return nil
}

// drop removes the first n files of the log.
func (s *sealer) drop(n int) error {
	s.state.firstLog = s.segments[n].number
	if err := s.state.save(s.w.dir); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	for _, g := range s.segments[:n] {
		s.w.forget(g.number)
		err := os.Remove(filepath.Join(s.w.dir, logDir, segmentName(g.number)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) { // a reader may hold it open on Windows
			return err
		}
	}
	s.segments = append(s.segments[:0], s.segments[n:]...)
	return nil
}

// forget closes an older file of the log that is not wanted any more, if it waits for a sync. One that a sync is busy with
// stays for the next.
func (w *writer) forget(number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, f := range w.older {
		if filepath.Base(f.Name()) == segmentName(number) {
			if f == w.syncing {
				return
			}
			_ = f.Close() // what it holds is in parts
			w.older = append(w.older[:i], w.older[i+1:]...)
			return
		}
	}
}
