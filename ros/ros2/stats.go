package ros2

import (
	"slices"
	"sync"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
)

// maxWriters is how many writers that left are told one by one; the oldest beyond it count in the totals only.
const maxWriters = 1024

// stats sums up the readers of a subscription.
type stats struct {
	received, lost uint64
	writers        []ros.WriterStats
}

func (s *stats) clone() stats {
	return stats{received: s.received, lost: s.lost, writers: slices.Clone(s.writers)}
}

// add counts a reader in. The same writer can come from several readers one after the other, or twice from one when it
// was out of reach for longer than its lease: what it sent in between is lost.
func (s *stats) add(r rtps.ReaderStats) {
	s.received += r.Received
	s.lost += r.Lost
	for _, w := range r.Writers {
		next := ros.WriterStats{ID: ros.EndpointID(w.GUID), Received: w.Received, Lost: w.Lost, First: uint64(w.First), Last: uint64(w.Last),
			Matched: w.Matched, Reliable: w.Reliable}
		i := slices.IndexFunc(s.writers, func(o ros.WriterStats) bool { return o.ID == next.ID })
		if i < 0 {
			s.writers = append(s.writers, next)
			continue
		}
		gap := join(&s.writers[i], next)
		s.lost += gap
	}
	if over := len(s.writers) - maxWriters; over > 0 {
		s.writers = slices.DeleteFunc(s.writers, func(w ros.WriterStats) bool {
			if over == 0 || w.Matched {
				return false
			}
			over--
			return true
		})
	}
}

// join adds what was counted of a writer elsewhere, and returns how many samples fell between the two.
func join(w *ros.WriterStats, o ros.WriterStats) (gap uint64) {
	if w.First != 0 && o.First != 0 {
		if o.First > w.Last+1 {
			gap = o.First - w.Last - 1
		} else if w.First > o.Last+1 {
			gap = w.First - o.Last - 1
		}
	}
	if w.First == 0 || o.First != 0 && o.First < w.First {
		w.First = o.First
	}
	w.Last = max(w.Last, o.Last)
	w.Received += o.Received
	w.Lost += o.Lost + gap
	w.Matched = w.Matched || o.Matched
	w.Reliable = w.Reliable || o.Reliable
	return gap
}

// result takes duplicates off, which the readers counted but the handler did not get.
func (s *stats) result(d *seen) ros.SubscriptionStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.received -= d.duplicates
	for i := range s.writers {
		if w := d.writers[rtps.GUID(s.writers[i].ID)]; w != nil {
			s.writers[i].Received -= w.duplicates
		}
	}
	return ros.SubscriptionStats{Received: s.received, Lost: s.lost, Writers: s.writers}
}

// maxSeen bounds the writers that seen remembers.
const maxSeen = 4096

// seen knows the last sample of every writer, so that one that comes again is not handed over again: a latched writer
// that was out of reach for longer than its lease sends its history anew. Samples of a writer come in order.
type seen struct {
	mu         sync.Mutex
	writers    map[rtps.GUID]*seenWriter
	lastID     rtps.GUID // the writer asked for last, most often the only one
	last       *seenWriter
	duplicates uint64
}

type seenWriter struct {
	seq        int64
	duplicates uint64
}

// first reports whether the sample is new.
func (s *seen) first(writer rtps.GUID, seq int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || s.lastID != writer {
		w := s.writers[writer]
		if w == nil {
			if s.writers == nil || len(s.writers) >= maxSeen {
				s.writers = map[rtps.GUID]*seenWriter{}
			}
			w = new(seenWriter)
			s.writers[writer] = w
		}
		s.last, s.lastID = w, writer
	}
	if seq <= s.last.seq {
		s.duplicates++
		s.last.duplicates++
		return false
	}
	s.last.seq = seq
	return true
}

// comesAgain takes back that a sample was seen.
func (s *seen) comesAgain(writer rtps.GUID, seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.writers[writer]; w != nil && w.seq == seq {
		w.seq = seq - 1
	}
}
