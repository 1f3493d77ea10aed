package bag

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// modelQueue is what a Queue should hold, kept the slow way.
type modelQueue struct {
	q      *Queue
	queued []*modelEntry
	flying []*modelEntry
}

type modelEntry struct {
	topic    *QueueTopic
	data     []byte
	cost     int64
	released int
}

func (e *modelEntry) Release([]byte) { e.released++ }

func (m *modelQueue) bytes(small, big, queued, flying bool) (n int64) {
	for i, list := range [][]*modelEntry{m.queued, m.flying} {
		if i == 0 && !queued || i == 1 && !flying {
			continue
		}
		for _, e := range list {
			if s := len(e.data) < m.q.o.SmallLimit; s && small || !s && big {
				n += e.cost
			}
		}
	}
	return n
}

// room says whether e fits when nothing queued of the topics before rank is left.
func (m *modelQueue) room(e *modelEntry, rank int) bool {
	small := len(e.data) < m.q.o.SmallLimit
	var total, totalBig, totalSmall int64
	for _, x := range append(slices.Clone(m.flying), m.queued...) {
		if x.topic.rank < rank && slices.Contains(m.queued, x) {
			continue
		}
		total += x.cost
		if len(x.data) < m.q.o.SmallLimit {
			totalSmall += x.cost
		} else {
			totalBig += x.cost
		}
	}
	if small {
		return total+e.cost <= m.q.o.MaxBytes || totalSmall+e.cost <= m.q.reserve
	}
	return total+e.cost <= m.q.o.MaxBytes && totalBig+e.cost <= m.q.bigLimit
}

func (m *modelQueue) push(t *testing.T, e *modelEntry) {
	q := m.q
	wasEmpty := len(m.queued)+len(m.flying) == 0
	fitted := m.room(e, 0) || wasEmpty
	before := make([]int, len(m.queued))
	for i, x := range m.queued {
		before[i] = x.released
	}
	ok := q.Push(Entry{Topic: e.topic, Data: e.data, Owner: e})
	rank := e.topic.rank // as it was for the decision, if one was taken
	var left []*modelEntry
	var gone []*modelEntry
	for i, x := range m.queued {
		if x.released > before[i] {
			gone = append(gone, x)
		} else {
			left = append(left, x)
		}
	}
	switch {
	case fitted && (!ok || len(gone) > 0):
		t.Fatalf("it fits, but ok=%v and %d were evicted", ok, len(gone))
	case !ok && len(gone) > 0:
		t.Fatalf("dropped, but %d were evicted", len(gone))
	case !ok && e.released != 1 || ok && e.released != 0:
		t.Fatalf("ok=%v, released %d times", ok, e.released)
	case !fitted && !ok && e.cost <= q.bigLimit && m.room(e, rank):
		t.Fatalf("dropped, though topics that give way first hold enough")
	}
	for _, x := range gone {
		if x.topic.rank >= rank {
			t.Fatalf("%s (rank %d) was evicted for %s (rank %d)", x.topic.name, x.topic.rank, e.topic.name, rank)
		}
		for _, y := range left { // newest first, of its size
			if y.topic == x.topic && (len(y.data) < q.o.SmallLimit) == (len(x.data) < q.o.SmallLimit) &&
				slices.Index(m.queued, y) > slices.Index(m.queued, x) {
				t.Fatal("an older message was evicted before a newer one")
			}
		}
	}
	m.queued = left
	if ok {
		m.queued = append(m.queued, e)
	}
}

func TestQueueModel(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runQueueModel(t, seed) })
		})
	}
}

func runQueueModel(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	prio := map[string]int{"/t1": 1, "/t3": -1}
	q := NewQueue(QueueOptions{MaxBytes: 100_000 + rnd.Int64N(1_000_000), SmallLimit: 5000, Priority: prio, Reserve: rnd.Float64() / 3})
	m := &modelQueue{q: q}
	for range 2000 {
		switch op := rnd.IntN(100); {
		case op < 80:
			size := rnd.IntN(200) + 1
			if rnd.IntN(3) == 0 {
				size = rnd.IntN(60_000)
			}
			if rnd.IntN(300) == 0 {
				size = 1_500_000
			}
			e := &modelEntry{topic: q.Topic(fmt.Sprintf("/t%d", rnd.IntN(6))), data: make([]byte, size), cost: int64(size + EntryCost)}
			m.push(t, e)
		case op < 88:
			if len(m.queued) == 0 {
				continue
			}
			es, err := q.Take(context.Background(), nil)
			if err != nil || len(es) != len(m.queued) {
				t.Fatalf("%d entries, want %d: %v", len(es), len(m.queued), err)
			}
			for i, e := range es {
				if e.Owner != m.queued[i] {
					t.Fatalf("entry %d is not the one expected", i)
				}
			}
			m.flying = append(m.flying, m.queued...)
			m.queued = nil
		case op < 95:
			n := rnd.IntN(len(m.flying) + 1)
			es := make([]Entry, n)
			for i, e := range m.flying[:n] {
				es[i] = Entry{Topic: e.topic, Data: e.data, Cost: int(e.cost), Owner: e}
			}
			q.Done(es)
			for _, e := range m.flying[:n] {
				if e.released != 1 {
					t.Fatalf("released %d times", e.released)
				}
			}
			m.flying = m.flying[n:]
		default:
			time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
		}
		s := q.Stats()
		if s.Len != len(m.queued) || s.Bytes != m.bytes(true, true, true, true) || s.InFlight != m.bytes(true, true, false, true) ||
			q.small != m.bytes(true, false, true, true) {
			t.Fatalf("%+v, want %d queued, %d bytes, %d flying", s, len(m.queued), m.bytes(true, true, true, true), m.bytes(true, true, false, true))
		}
	}
}
