package rtps

import (
	"math"
	"time"
)

// mono is monotonic time in nanoseconds since the participant began; never 0.
type mono int64

const never = mono(math.MaxInt64)

func (t mono) add(d time.Duration) mono {
	if d >= time.Duration(never-t) {
		return never
	}
	return t + mono(d)
}

func (t mono) sub(u mono) time.Duration { return time.Duration(t - u) }

// timer calls fire, under the participant's mutex, at or after its time. Users set it early rather than exactly and
// compute in fire what is due, so that the hot path rarely touches the heap.
type timer struct {
	fire func(now mono)
	at   mono
	pos  int // in the heap, from 1; 0 not scheduled
}

// timers is a heap of scheduled timers, the earliest first.
type timers struct {
	heap []*timer
	wake chan struct{} // signalled when the earliest became earlier
}

func newTimers() timers { return timers{wake: make(chan struct{}, 1)} }

// next is when the earliest timer is due.
func (h *timers) next() mono {
	if len(h.heap) == 0 {
		return never
	}
	return h.heap[0].at
}

// by makes t fire no later than at.
func (h *timers) by(t *timer, at mono) {
	if t.pos > 0 && t.at <= at {
		return
	}
	h.set(t, at)
}

// set makes t fire at the given time, forgetting any other. never stops it.
func (h *timers) set(t *timer, at mono) {
	if at == never {
		h.stop(t)
		return
	}
	before := h.next()
	t.at = at
	if t.pos == 0 {
		h.heap = append(h.heap, t)
		t.pos = len(h.heap)
		h.up(t.pos - 1)
	} else {
		h.fix(t.pos - 1)
	}
	if at < before {
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}
}

// stop unschedules t.
func (h *timers) stop(t *timer) {
	if t.pos == 0 {
		return
	}
	i, last := t.pos-1, len(h.heap)-1
	h.swap(i, last)
	h.heap[last] = nil
	h.heap = h.heap[:last]
	t.pos = 0
	if i < last {
		h.fix(i)
	}
}

// run fires what is due and returns when the next timer is.
func (h *timers) run(now mono) mono {
	for len(h.heap) > 0 && h.heap[0].at <= now {
		t := h.heap[0]
		h.stop(t)
		t.fire(now)
	}
	return h.next()
}

func (h *timers) swap(i, j int) {
	h.heap[i], h.heap[j] = h.heap[j], h.heap[i]
	h.heap[i].pos, h.heap[j].pos = i+1, j+1
}

func (h *timers) fix(i int) { h.down(h.up(i)) }

func (h *timers) up(i int) int {
	for i > 0 {
		parent := (i - 1) / 2
		if h.heap[parent].at <= h.heap[i].at {
			break
		}
		h.swap(i, parent)
		i = parent
	}
	return i
}

func (h *timers) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h.heap) {
			return
		}
		if c+1 < len(h.heap) && h.heap[c+1].at < h.heap[c].at {
			c++
		}
		if h.heap[i].at <= h.heap[c].at {
			return
		}
		h.swap(i, c)
		i = c
	}
}
