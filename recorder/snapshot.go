package recorder

import (
	"sort"
	"time"

	"github.com/gobag/gobag/bag"
)

// State says what a recorder is doing.
type State int32

// The states of a recorder, in order.
const (
	StateNew State = iota
	StateRecording
	StateStopping // subscriptions are closed, what is queued is being written
	StateClosed
)

// String names the state.
func (s State) String() string {
	return [...]string{"new", "recording", "stopping", "closed"}[s]
}

// Snapshot is the state of a recording at one moment, for a status line.
type Snapshot struct {
	State   State
	Paused  bool
	Elapsed time.Duration // since the bag was opened
	File    string        // being written, relative to the bag
	Files   int           // begun so far

	Messages uint64 // recorded
	Bytes    uint64 // payload bytes recorded
	Received uint64
	Lost     struct{ Wire, Queue, Storage uint64 }
	Rate     float64 // messages received per second, over the last second
	ByteRate float64 // payload bytes recorded per second, over the last second

	Queue     bag.QueueStats
	DiskBytes int64         // size of the bag on disk, what is pending included
	FreeBytes int64         // left on the disk at the last look; 0 unknown
	Stalled   time.Duration // how long the storage has not answered; 0 when it does
	Flushes   Flushes       // of messages to the storage

	ClockSteps int
	Taken      int             // snapshots finished
	Healthy    bool            // the storage takes what comes (see Options.Watchdog)
	Topics     []TopicSnapshot // by name
	Missing    []Wanted        // what was named and has not appeared
}

// Flushes are the calls that hand messages to the storage.
type Flushes struct {
	Count uint64
	Time  time.Duration // in all of them
	Max   time.Duration // the longest
}

// TopicSnapshot is the state of one topic.
type TopicSnapshot struct {
	Name, Type string
	bag.TopicLedger
	Bytes    uint64  // payload bytes recorded
	Rate     float64 // messages received per second, over the last second
	ByteRate float64 // payload bytes recorded per second, over the last second
	Writers  int     // publishers at the last look
}

// Snapshot describes the recording as it stands. It is cheap, never waits for the storage and may be called at any time,
// also after Run has returned.
func (r *Recorder) Snapshot() Snapshot {
	s := Snapshot{State: State(r.state.Load())}
	if s.State == StateNew {
		return s
	}
	s.Elapsed = time.Since(r.start)
	if end := r.ended.Load(); end != 0 {
		s.Elapsed = time.Duration(end)
	}
	s.Queue = r.queue.Stats()
	s.FreeBytes = r.free.Load()
	if d := r.busy.time(); d > time.Second {
		s.Stalled = d
	}
	s.Flushes = Flushes{r.busy.calls.Load(), time.Duration(r.busy.spent.Load()), time.Duration(r.busy.longest.Load())}
	if w := r.bag.Load(); w != nil {
		st := w.Stats()
		s.File, s.Files, s.DiskBytes = st.File, st.Files, st.Size
	}
	s.ClockSteps = r.clock.total()
	s.Paused, s.Taken, s.Healthy = r.Paused(), len(r.taken.all()), !r.stalled.Load()
	for _, t := range r.allTopics() {
		ts := TopicSnapshot{Name: t.name, Type: t.typ, TopicLedger: t.counts(), Bytes: t.bytes.Load(), Writers: t.wire.matched()}
		ts.Rate, ts.ByteRate = t.rates.load()
		s.Topics = append(s.Topics, ts)
		s.Messages += ts.Recorded
		s.Bytes += ts.Bytes
		s.Received += ts.Received
		s.Lost.Wire += ts.Lost.Wire
		s.Lost.Queue += ts.Lost.Queue
		s.Lost.Storage += ts.Lost.Storage
		s.Rate += ts.Rate
		s.ByteRate += ts.ByteRate
	}
	sort.Slice(s.Topics, func(i, j int) bool { return s.Topics[i].Name < s.Topics[j].Name })
	s.Missing = r.missing()
	return s
}
