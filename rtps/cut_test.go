package rtps

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

func patternOf(missing ...int64) (p pattern) {
	for _, n := range missing {
		p.add(n)
	}
	return p
}

func TestPattern(t *testing.T) {
	for _, tc := range []struct {
		name     string
		p        pattern
		alone    int
		overflow bool
	}{
		{"nothing", patternOf(), 0, false},
		{"one", patternOf(7), 1, false},
		{"three in a row", patternOf(7, 8, 9), 3, false},
		{"four in a row", patternOf(7, 8, 9, 10), 0, true},
		{"a row among others", patternOf(1, 50, 51, 52, 53, 54, 90), 2, true},
		{"every second one", patternOf(1, 3, 5, 7, 9, 11, 13, 15), 8, true},
		{"every second one, few", patternOf(1, 3, 5, 7), 4, false},
		{"one in ten", patternOf(1, 11, 21, 31, 41, 51, 61, 71, 81, 91), 10, false},
	} {
		if tc.p.alone != tc.alone || tc.p.overflow() != tc.overflow {
			t.Errorf("%s: %+v, overflow %v", tc.name, tc.p, tc.p.overflow())
		}
	}
	// What is lost at random looks like an overflow now and then only.
	r := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		share float64
		most  int
	}{{0.01, 0}, {0.05, 10}, {0.1, 60}} {
		full := 0
		for range 1000 {
			var p pattern
			for n := range int64(wire.SetBits) {
				if r.Float64() < tc.share {
					p.add(n)
				}
			}
			if p.overflow() {
				full++
			}
		}
		if full > tc.most {
			t.Errorf("%v lost at random: an overflow %d times of 1000", tc.share, full)
		}
	}
}

// cutting is a cut with the samples that have gone through it.
type cutting struct {
	cut
	seq int64
	now mono
}

// sample sends one of n bytes over a path that loses that share of the frames, or of the datagrams, and returns the bytes
// of its fragments.
func (c *cutting) sample(n int, frames, datagrams float64) int {
	c.seq++
	c.now = c.now.add(time.Second)
	size := c.size(c.seq, n)
	all := float64(n) / float64(size)
	missing := int(all * (datagrams + frames*float64(size/c.frame)))
	t := tally{seq: c.seq, rounds: missing, missing: missing, alone: missing}
	if most := int(all) / wire.SetBits; missing > 0 {
		t.rounds = min(missing, most+1)
	}
	c.judge(c.seq, n, &t, c.seq+1, c.now)
	return size
}

func TestCut(t *testing.T) {
	const frame, eight = remoteFragment, 8_000_000
	run := func(c *cutting, times, n int, frames, datagrams float64) (sizes []int) {
		for range times {
			sizes = append(sizes, c.sample(n, frames, datagrams)/frame)
		}
		return sizes
	}
	expect := func(what string, got []int, want ...int) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: %v frames, want %v", what, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%s: %v frames, want %v", what, got, want)
			}
		}
	}
	fresh := func() *cutting { return &cutting{cut: cut{frame: frame}} }
	expect("nothing is lost", run(fresh(), 4, eight, 0, 0), 1, 1, 1, 1)
	expect("datagrams are lost", run(fresh(), 6, eight, 0, 0.05), 1, 6, 24, 24, 24, 24)
	expect("few fragments", run(fresh(), 4, 1_300_000, 0, 0.05), 1, 1, 1, 1)
	expect("two frames gain nothing, more do", run(fresh(), 4, 2_000_000, 0, 0.05), 1, 1, 6, 6)
	expect("no larger than UDP takes", run(fresh(), 4, 60_000_000, 0, 0.05), 1, 44, 44, 44)
	fixed := fresh()
	fixed.fixed = true
	expect("as configured", run(fixed, 3, eight, 0, 0.05), 1, 1, 1)

	c := fresh()
	expect("frames are lost", run(c, 5, eight, 0.01, 0), 1, 6, 1, 1, 1)
	c.now = c.now.add(cutPatience)
	expect("tried again after a while", run(c, 4, eight, 0.01, 0), 1, 6, 1, 1)
	c.now = c.now.add(cutPatience)
	expect("then ever more rarely", run(c, 3, eight, 0.01, 0), 1, 1, 1)

	c = fresh()
	run(c, 3, eight, 0, 0.05)
	expect("then frames are lost", run(c, 4, eight, 0.02, 0), 24, 1, 1, 1)

	c = fresh()
	expect("samples of different sizes", append(run(c, 3, eight, 0, 0.05), run(c, 2, 3_000_000, 0, 0.05)...), 1, 6, 24, 9, 9)
}

// What is lost in long rows says nothing about frames, unless it does not end.
func TestCutFull(t *testing.T) {
	c := &cutting{cut: cut{frame: remoteFragment}}
	for i, want := range []int{1, 6, 24, 24, 24, 1} {
		c.seq++
		size := c.size(c.seq, 8_000_000)
		if size != want*remoteFragment {
			t.Fatalf("sample %d: %d frames, want %d", i, size/remoteFragment, want)
		}
		all := 8_000_000 / size
		burst := 0
		if c.level == 2 {
			burst = all / 2
		}
		c.judge(c.seq, 8_000_000, &tally{rounds: 10, missing: all/20 + burst, alone: all / 20}, c.seq+1, c.now)
	}
}

// Samples that were sent before a change are still repaired as they were cut.
func TestCutIsKept(t *testing.T) {
	c := cut{frame: remoteFragment}
	t1 := tally{rounds: 20, missing: 60, alone: 60}
	if !c.judge(1, 8_000_000, &t1, 4, 1) {
		t.Fatal("larger fragments are not tried")
	}
	for seq, want := range map[int64]int{2: 1, 3: 1, 4: 6, 5: 6} {
		if got := c.size(seq, 8_000_000) / remoteFragment; got != want {
			t.Errorf("sample %d: %d frames, want %d", seq, got, want)
		}
	}
	if c.judge(3, 8_000_000, &t1, 6, 1) {
		t.Error("changed by a sample from before the last change")
	}
	if c.judge(4, 8_000_000, &tally{rounds: 5, missing: 9, alone: 9}, 7, 1); c.size(6, 8_000_000) != 6*remoteFragment || c.size(7, 8_000_000) != 24*remoteFragment {
		t.Errorf("%+v", c)
	}
}

// A writer cuts the samples of a reader that needs many rounds into larger fragments, and repairs each in its own.
func TestWriterCuts(t *testing.T) {
	readerByHand(t, WriterConfig{QoS: reliable(Volatile, 0)}, func(h *handReader) {
		const size = 3_000_000
		h.announce(1, reliable(Volatile, 0))
		h.acknack(1, 1, true)
		for i, frames := range []uint32{1, 3, 9, 9} {
			seq := int64(i + 1)
			last := (size + frames*remoteFragment - 1) / (frames * remoteFragment)
			h.take()
			h.write(size)
			time.Sleep(time.Second)
			if n := uint32(strings.Count(h.take(), "frag ")); n != last {
				t.Fatalf("sample %d: %d fragments, want %d of %d frames", seq, n, last, frames)
			}
			for round := range uint32(manyRounds) {
				h.nackfrag(1, seq, last-round)
				if s, want := h.take(), fmt.Sprintf("frag %d.%d to 1; heartbeat %d-%d to 1", seq, last-round, seq, seq); !strings.Contains(s, want) {
					t.Fatalf("%.80q, want %q", s, want)
				}
				time.Sleep(3100 * time.Microsecond) // never at the same time as a HEARTBEAT of the timer
			}
			h.nackfrag(1, seq, last+1)
			if s := h.take(); strings.Contains(s, "frag") {
				t.Errorf("there is no such fragment: %.80q", s)
			}
			h.acknack(1, seq+1, true)
		}
	})
}
