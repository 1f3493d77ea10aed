package recorder

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/ros"
)

// wireStats keeps what the transport knows to be lost. The counts of a subscription only grow, so the largest that was
// seen is the newest; it survives the end of the subscription.
type wireStats struct {
	mu         sync.Mutex
	count      uint64
	writers    int // matched at the last look
	bestEffort map[ros.EndpointID]bool
	mismatches map[ros.EndpointID]bool // warned about
}

// update takes over the numbers of a subscription and returns the mismatches not reported before.
func (w *wireStats) update(st ros.SubscriptionStats) (fresh []ros.Mismatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count = max(w.count, st.Lost)
	w.writers = 0
	for i := range st.Writers {
		ws := &st.Writers[i]
		if ws.Matched {
			w.writers++
		}
		if !ws.Reliable && ws.First != 0 && !w.bestEffort[ws.ID] && len(w.bestEffort) < maxSources {
			if w.bestEffort == nil {
				w.bestEffort = map[ros.EndpointID]bool{}
			}
			w.bestEffort[ws.ID] = true
		}
	}
	for _, m := range st.Mismatches {
		if w.mismatches[m.ID] || len(w.mismatches) >= maxSources {
			continue
		}
		if w.mismatches == nil {
			w.mismatches = map[ros.EndpointID]bool{}
		}
		w.mismatches[m.ID] = true
		fresh = append(fresh, m)
	}
	return fresh
}

// lost returns the messages known to be lost on the way, and how many best-effort writers there were: what those lost
// before their first and after their last message seen is unknown.
func (w *wireStats) lost() (count uint64, unknownWriters int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count, len(w.bestEffort)
}

// known is the first result of lost.
func (w *wireStats) known() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

func (w *wireStats) matched() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writers
}

// rates measures messages and bytes per second between two calls of update.
type rates struct {
	lastMessages, lastBytes uint64
	messages, bytes         atomic.Uint64 // math.Float64bits
}

// update is called by one goroutine, elapsed after the previous call.
func (r *rates) update(messages, bytes uint64, elapsed time.Duration) {
	if elapsed <= 0 {
		return
	}
	r.messages.Store(math.Float64bits(float64(messages-r.lastMessages) / elapsed.Seconds()))
	r.bytes.Store(math.Float64bits(float64(bytes-r.lastBytes) / elapsed.Seconds()))
	r.lastMessages, r.lastBytes = messages, bytes
}

func (r *rates) load() (messages, bytes float64) {
	return math.Float64frombits(r.messages.Load()), math.Float64frombits(r.bytes.Load())
}

// ledger returns the ledger of all topics as it stands. Messages that are on their way are in Received only.
func (r *Recorder) ledger() bag.Ledger {
	l := bag.Ledger{Topics: map[string]bag.TopicLedger{}}
	for _, t := range r.allTopics() {
		l.Topics[t.name] = t.counts()
	}
	return l
}

// finalLedger is the ledger at the end: what is still on its way then never reached the storage.
func (r *Recorder) finalLedger() bag.Ledger {
	l := r.ledger()
	for name, t := range l.Topics {
		if done := t.Recorded + t.Skipped + t.Lost.Queue + t.Lost.Storage; t.Received > done {
			t.Lost.Storage += t.Received - done
			l.Topics[name] = t
		}
	}
	return l
}
