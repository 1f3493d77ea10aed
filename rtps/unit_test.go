package rtps

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"
)

func TestTimers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	h := newTimers()
	var fired []mono
	ts := make([]*timer, 200)
	for i := range ts {
		x := &timer{}
		x.fire = func(now mono) { fired = append(fired, x.at) }
		ts[i] = x
	}
	for range 5000 {
		x := ts[rnd.IntN(len(ts))]
		at := mono(rnd.IntN(1000) + 1)
		switch rnd.IntN(4) {
		case 0:
			h.stop(x)
		case 1:
			was, on := x.at, x.pos > 0
			h.by(x, at)
			if on && was < at && x.at != was {
				t.Fatal("by made a timer later")
			}
		default:
			h.set(x, at)
		}
		if len(h.heap) > 0 {
			low := h.heap[0].at
			for i, y := range h.heap {
				if y.at < low || y.pos != i+1 {
					t.Fatal("heap is out of order")
				}
			}
		}
	}
	n := len(h.heap)
	if h.run(1000); len(fired) != n || !sort.SliceIsSorted(fired, func(i, j int) bool { return fired[i] < fired[j] }) || h.next() != never {
		t.Fatalf("%d of %d fired: %v", len(fired), n, fired)
	}
}

func TestClass(t *testing.T) {
	last := -1
	for n := 1; n < 1<<21; n += 1 + n/1000 {
		i, size := class(n)
		if size < n || size > max(8192, n+n/4+1) || i < last {
			t.Fatalf("class(%d) = %d, %d", n, i, size)
		}
		if j, again := class(size); j != i || again != size {
			t.Fatalf("class(%d) = %d, %d; class of that %d, %d", n, i, size, j, again)
		}
		last = i
	}
	if i, size := class(1 << 30); i != -1 || size != 1<<30 {
		t.Fatal(i, size)
	}
	if i, _ := class(1 << 27); i < 0 || i >= len(pool{}.free) {
		t.Fatal(i)
	}
}

func TestPoolBoundsWhatItKeeps(t *testing.T) {
	p := newPool(1 << 20)
	var list []*buffer
	for i := range 100 {
		list = append(list, p.get(50_000+i*1000))
	}
	f := filler{pool: p}
	for range 3000 {
		_, b, _ := f.copy(make([]byte, 1000))
		list = append(list, b)
	}
	f.close()
	for _, b := range list {
		b.release()
	}
	kept := len(p.slabs) * slabSize
	for _, l := range p.free {
		for _, b := range l {
			kept += len(b.b)
		}
	}
	if kept != p.kept || kept > 1<<20 || kept < 1<<19 {
		t.Fatalf("keeps %d bytes, counts %d", kept, p.kept)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second release went unnoticed")
		}
	}()
	list[0].release()
}

func TestSlabsShareMemory(t *testing.T) {
	f := filler{pool: newPool(1 << 20)}
	a, owner, cost := f.copy([]byte("abc"))
	b, owner2, _ := f.copy([]byte("defg"))
	if owner != owner2 || string(a) != "abc" || string(b) != "defg" || cost < 3 || cap(a) != 3 {
		t.Fatal("not cut from one slab")
	}
	_, large, _ := f.copy(make([]byte, 10_000))
	if large == owner {
		t.Fatal("large payload in a slab")
	}
	n := testing.AllocsPerRun(2000, func() {
		_, o, _ := f.copy(a)
		o.Release(nil)
		_, o, _ = f.copy(make([]byte, 0, 1)[:0])
		o.Release(nil)
	})
	if n > 0 {
		t.Errorf("%v allocations per sample", n)
	}
}

func TestHistory(t *testing.T) {
	p := newPool(1 << 20)
	h := history{first: 1}
	add := func() {
		b := p.get(10)
		h.push(wsample{seq: h.last() + 1, buf: b, data: b.b[:10]})
	}
	for range 10 {
		add()
	}
	h.remove(4)
	if h.at(4) != nil || h.at(5).seq != 5 || h.at(0) != nil || h.at(11) != nil || h.bytes != 90 {
		t.Fatalf("%+v", h)
	}
	for i := range 100_000 {
		h.pop()
		add()
		if want := int64(i + 2); h.first != want || h.last() != want+9 || h.at(h.last()).seq != h.last() {
			t.Fatalf("first %d, last %d after %d", h.first, h.last(), i)
		}
	}
	if cap(h.items) > 1000 || h.bytes != 100 {
		t.Fatalf("capacity %d, %d bytes", cap(h.items), h.bytes)
	}
}

// A source's gaps stay sorted, disjoint and few whatever comes.
func TestGapsModel(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := &source{p: &Participant{pool: newPool(0), timers: newTimers()}, reliable: true, next: 1, first: 1}
		s.r = &Reader{p: s.p}
		gone := map[int64]bool{}
		for range 60 {
			a := 1 + rnd.Int64N(100)
			b := a + rnd.Int64N(8)
			s.gap(a, b)
			for k := a; k < b; k++ {
				gone[k] = true
			}
			s.drain()
			next := int64(1)
			for gone[next] {
				next++
			}
			if s.next != next {
				t.Fatalf("seed %d: next is %d, want %d", seed, s.next, next)
			}
			for k := int64(1); k < 120; k++ {
				if got := k < s.next || s.isGap(k); got != gone[k] {
					t.Fatalf("seed %d: isGap(%d) = %v", seed, k, got)
				}
			}
			if !slices.IsSortedFunc(s.gaps, func(x, y span) int { return int(x.b - y.a) }) {
				t.Fatalf("seed %d: %v", seed, s.gaps)
			}
		}
	}
	s := &source{p: &Participant{pool: newPool(0), timers: newTimers()}, reliable: true, next: 1, first: 1}
	s.r = &Reader{p: s.p}
	for k := int64(10); k < 100_000; k += 2 {
		s.gap(k, k+1)
	}
	if len(s.gaps) > maxGaps {
		t.Fatalf("%d gaps kept", len(s.gaps))
	}
	s.gap(1, 1<<60)
	s.drain()
	if s.next != 1<<60 || len(s.gaps) != 0 || s.lost != 1<<60-1 {
		t.Fatalf("next %d, lost %d", s.next, s.lost)
	}
}

func TestPacer(t *testing.T) {
	c := newPacer(&peer{})
	var now mono = 1
	sent, waited := 0, time.Duration(0)
	for sent < 10_000_000 {
		d := c.take(60_000, now)
		now += mono(d)
		waited += d
		sent += 60_000
	}
	if rate := float64(sent) / waited.Seconds() / 1e9; rate < 0.9 || rate > 1.1 {
		t.Errorf("%.2f GB/s", rate)
	}
	before := c.rate
	c.lost(now)
	c.lost(now + 1)
	if c.rate < before*0.69 || c.rate > before*0.71 {
		t.Errorf("rate %v after %v", c.rate, before)
	}
	for range 1000 {
		c.lost(now)
		now += mono(time.Second)
	}
	if c.rate < minRate {
		t.Error("rate fell below the minimum")
	}
	for range 10_000 {
		c.got(1 << 20)
	}
	if c.rate != c.maxRate {
		t.Error("rate does not recover")
	}
}
