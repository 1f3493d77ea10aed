package player

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/ros"
)

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(2, false)
		c.jump(1000)
		start := time.Now()
		at, paused, changed := c.due(1000 + int64(time.Second))
		if want := start.Add(time.Second / 2); !at.Equal(want) || paused {
			t.Fatalf("due %v, want %v", at.Sub(start), want.Sub(start))
		}
		time.Sleep(time.Second)
		if now := c.now(); now != 1000+2*int64(time.Second) {
			t.Fatalf("bag time %d", now)
		}
		if !c.setPaused(true) || c.setPaused(true) {
			t.Fatal("pause is no change, or twice")
		}
		<-changed // closed
		time.Sleep(time.Hour)
		if now := c.now(); now != 1000+2*int64(time.Second) {
			t.Fatalf("bag time %d while paused", now)
		}
		c.setPaused(false)
		c.setRate(0.5)
		time.Sleep(time.Second)
		if now := c.now(); now != 1000+int64(2500*time.Millisecond) {
			t.Fatalf("bag time %d at half rate", now)
		}
		c.jump(0)
		if at, _, _ := c.due(int64(time.Second)); time.Until(at) != 2*time.Second {
			t.Fatalf("due in %v after a jump", time.Until(at))
		}
	})
}

// Stamps may be anything; a wait is bounded and has the right sign.
func TestClockExtremes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{1e-300, 1, 1e300} {
			c := newClock(rate, false)
			for _, ref := range []int64{math.MinInt64, 0, math.MaxInt64} {
				c.jump(ref)
				for _, stamp := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
					at, _, _ := c.due(stamp)
					wait := time.Until(at)
					if stamp > ref && wait < 0 || stamp < ref && wait > 0 || wait > time.Duration(farAway) {
						t.Errorf("rate %g, at %d: %d is due in %v", rate, ref, stamp, wait)
					}
				}
			}
			time.Sleep(time.Second)
			c.now()
		}
	})
}

func TestSaturation(t *testing.T) {
	const lo, hi = math.MinInt64, math.MaxInt64
	for _, c := range []struct{ got, want int64 }{
		{sub(hi, lo), hi}, {sub(lo, hi), lo}, {sub(-1, lo), hi}, {sub(0, lo), hi}, {sub(5, 3), 2}, {sub(lo, lo), 0},
		{add(hi, 1), hi}, {add(lo, -1), lo}, {add(5, -3), 2},
	} {
		if c.got != c.want {
			t.Errorf("%d, want %d", c.got, c.want)
		}
	}
}

func TestHistogram(t *testing.T) {
	for i := range len((&histogram{}).buckets) {
		if b := bucket(upper(i)); b != i {
			t.Fatalf("upper end %d of bucket %d is in bucket %d", upper(i), i, b)
		}
		if b := bucket(upper(i) + 1); b != i+1 {
			t.Fatalf("%d is in bucket %d, want %d", upper(i)+1, b, i+1)
		}
		if upper(i) >= math.MaxInt64 {
			break
		}
	}
	var h histogram
	h.add(-time.Second)
	h.add(math.MaxInt64)
	if s := h.summary(); s.Max != math.MaxInt64 || s.P50 > s.Max || s.Late != 1 || s.Count != 2 {
		t.Fatalf("%+v", s)
	}

	h = histogram{}
	rnd := rand.New(rand.NewPCG(1, 2))
	var all []time.Duration
	for range 10000 {
		d := time.Duration(rnd.ExpFloat64() * float64(200*time.Microsecond))
		all = append(all, d)
		h.add(d)
	}
	slices.Sort(all)
	s := h.summary()
	within := func(got, want time.Duration) bool { return got >= want && float64(got) <= 1.04*float64(want) }
	if !within(s.P50, all[5000]) || !within(s.P99, all[9900]) || s.Max != all[9999] {
		t.Fatalf("%+v, want about %v %v %v", s, all[5000], all[9900], all[9999])
	}
	if (&histogram{}).summary() != (Lateness{}) {
		t.Fatal("empty histogram")
	}
}

func TestBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := newBuffers(10 << 10)
		big, err := b.get(ctx, 1<<20) // larger than everything
		if err != nil || len(big) != 1<<20 {
			t.Fatal(len(big), err)
		}
		got := make(chan []byte)
		go func() {
			buf, _ := b.get(ctx, 5<<10)
			got <- buf
		}()
		synctest.Wait()
		select {
		case <-got:
			t.Fatal("lent beyond the limit")
		default:
		}
		b.put(big)
		buf := <-got
		if len(buf) != 5<<10 {
			t.Fatal(len(buf))
		}
		b.put(buf)
		if b.lent != 0 || b.kept > b.limit {
			t.Fatalf("lent %d, kept %d", b.lent, b.kept)
		}
		if again, _ := b.get(ctx, 6<<10); &again[0] != &buf[0] {
			t.Fatal("memory of the same class was not used again")
		}
		cancel()
		if _, err := b.get(ctx, 10<<10); err == nil {
			t.Fatal("no error after the end")
		}
	})
}

func TestBuffersStayBounded(t *testing.T) {
	small := newBuffers(10 << 10)
	buf, _ := small.get(context.Background(), 1<<20)
	small.put(buf)
	if small.kept != 0 {
		t.Fatalf("%d bytes kept of a message larger than the limit", small.kept)
	}
	b := newBuffers(1 << 20)
	rnd := rand.New(rand.NewPCG(3, 4))
	var lent [][]byte
	for range 20000 {
		if len(lent) > 0 && (rnd.IntN(2) == 0 || b.lent > 1<<19) {
			i := rnd.IntN(len(lent))
			b.put(lent[i])
			lent = slices.Delete(lent, i, i+1)
			continue
		}
		buf, err := b.get(context.Background(), rnd.IntN(1<<rnd.IntN(18)))
		if err != nil {
			t.Fatal(err)
		}
		lent = append(lent, buf)
		if b.lent+b.kept > b.limit {
			t.Fatalf("lent %d, kept %d", b.lent, b.kept)
		}
	}
}

func TestBuffersSteadyStateAllocatesNothing(t *testing.T) {
	b := newBuffers(1 << 20)
	ctx := context.Background()
	allocs := testing.AllocsPerRun(1000, func() {
		x, _ := b.get(ctx, 1000)
		y, _ := b.get(ctx, 100_000)
		b.put(x)
		b.put(y)
	})
	if allocs != 0 {
		t.Fatalf("%v allocations", allocs)
	}
}

func TestRemap(t *testing.T) {
	rules, err := parseRemaps([]string{"/a:=/b", "c:=d/e", "/a:=/never"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"/a": "/b", "/c": "/d/e", "c": "/d/e", "/x": "/x", "x": "/x", "/a/b": "/a/b"} {
		if got := publishedName(name, rules); got != want {
			t.Errorf("%s is published as %s, want %s", name, got, want)
		}
	}
	for rule, want := range map[string]string{
		"/a": "form", ":=/b": "form", "/a:=": "form", "__ns:=/x": "only topic names", "node:/a:=/b": "only topic names", "/a:=/b//c": "between slashes",
	} {
		if _, err := parseRemaps([]string{"/ok:=/fine", rule}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", rule, err, want)
		}
	}
}

func TestFilter(t *testing.T) {
	const add, status, sendGoal = "/add/_service_event", "/fib/_action/status", "/fib/_action/send_goal/_service_event"
	cases := []struct {
		o         Options
		yes, none []string
	}{
		{Options{}, []string{"/a", "b", "/_h"}, nil},
		{Options{Topics: []string{"a", "/b"}}, []string{"/a", "a", "/b"}, []string{"/c", "/a/b"}},
		{Options{Regex: "/cam.*"}, []string{"/camera"}, []string{"/front/camera"}},
		{Options{Regex: "/a|/ab", Topics: []string{"/x"}}, []string{"/a", "/ab", "/x"}, []string{"/abc"}},
		{Options{ExcludeTopics: []string{"/a"}, ExcludeRegex: "/b."}, []string{"/b", "/bcd"}, []string{"/a", "a", "/bc"}},
		{Options{Topics: []string{"/a", "/b"}, ExcludeRegex: ".*b"}, []string{"/a"}, []string{"/b"}},
		// Classes are independent; one of which nothing is named is played whole.
		{Options{Topics: []string{"/a"}}, []string{"/a", add, status, sendGoal}, []string{"/b", "/add", "/fib"}},
		{Options{Services: []string{"add"}}, []string{"/a", add, "add/_service_event", status, sendGoal}, []string{"/sub/_service_event"}},
		{Options{Actions: []string{"/fib"}}, []string{"/a", add, status, sendGoal}, []string{"/fib2/_action/status"}},
		{Options{Actions: []string{"/none"}, Services: []string{"/none"}}, []string{"/a", "/none"}, []string{add, status, sendGoal}},
		{Options{Topics: []string{add}}, []string{add}, []string{"/a"}}, // a topic that is named in full
		// With a regular expression it is what is named or matched.
		{Options{Regex: "/a.*"}, []string{"/a", "/abc", add}, []string{"/b", status}},
		{Options{Regex: "/(add|fib)"}, []string{add, status, sendGoal, "/add", "/fib"}, []string{"/a", "/addx/_service_event"}},
		{Options{Regex: "/x", Services: []string{"/add"}, Topics: []string{"/a"}}, []string{"/x", "/a", add}, []string{"/b", "/sub/_service_event", status}},
		// Exclusions win.
		{Options{ExcludeServices: []string{"/add"}, ExcludeActions: []string{"fib"}}, []string{"/a", "/add", "/fib", "/sub/_service_event"}, []string{add, status, sendGoal}},
		{Options{ExcludeTopics: []string{"/add", status}}, []string{add, sendGoal, "/fib"}, []string{"/add", status}},
		{Options{Services: []string{"/add"}, ExcludeServices: []string{"/add"}}, []string{"/a"}, []string{add}},
		{Options{ExcludeRegex: "/fib"}, []string{"/a", add}, []string{"/fib", status, sendGoal}},
	}
	for _, c := range cases {
		f, err := newFilter(c.o)
		if err != nil {
			t.Fatal(err)
		}
		for want, names := range map[bool][]string{true: c.yes, false: c.none} {
			for _, n := range names {
				if got, err := f.takes(n); got != want || err != nil {
					t.Errorf("%+v: %s: %v %v, want %v", c.o, n, got, err, want)
				}
			}
		}
	}
}

func TestValidate(t *testing.T) {
	node := struct{ ros.Node }{}
	cases := []struct {
		o    Options
		want string
	}{
		{Options{Node: node, Bag: &bag.Reader{}}, ""},
		{Options{Node: node}, "no bag"},
		{Options{Bag: &bag.Reader{}}, "no node"},
		{Options{Node: node, Bag: &bag.Reader{}, Rate: -1}, "more than 0"},
		{Options{Node: node, Bag: &bag.Reader{}, Rate: math.NaN()}, "more than 0"},
		{Options{Node: node, Bag: &bag.Reader{}, Rate: math.Inf(1)}, "more than 0"},
		{Options{Node: node, Bag: &bag.Reader{}, StartOffset: -1}, "start offset"},
		{Options{Node: node, Bag: &bag.Reader{}, Delay: -1}, "delay"},
		{Options{Node: node, Bag: &bag.Reader{}, ReadAhead: -1}, "read-ahead"},
		{Options{Node: node, Bag: &bag.Reader{}, Regex: "("}, "regular expression"},
		{Options{Node: node, Bag: &bag.Reader{}, Remap: []string{"x"}}, "form"},
	}
	for _, c := range cases {
		err := c.o.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

// The last part of a wait ends after its time and not long after, whatever the runtime's timers do.
func TestSleepFine(t *testing.T) {
	defer preciseSleeper.lock()()
	for _, d := range []time.Duration{-time.Millisecond, 0, time.Microsecond, 300 * time.Microsecond, 2 * time.Millisecond} {
		at := time.Now().Add(d)
		preciseSleeper.until(at)
		if time.Now().Before(at) {
			t.Errorf("a sleep of %v ended early", d)
		}
	}
}
