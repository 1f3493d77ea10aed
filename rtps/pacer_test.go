package rtps

import "testing"

// Small samples do not wait behind a large one that fills what may be on its way; they wait when they are many.
func TestPacerRoom(t *testing.T) {
	const max = 1 << 20
	c := &pacer{flightMax: max, flightCap: max, waiting: map[*Writer]bool{}}
	large, small := &sink{pacer: c}, &sink{pacer: c}
	check := func(when string, n int, want bool) {
		t.Helper()
		if got := c.room(n); got != want {
			t.Errorf("%s: room for %d bytes: %v, want %v", when, n, got, want)
		}
	}
	check("nothing on its way", max, true)
	check("nothing on its way", max+1, false)
	large.launched(3 * max) // the first sample of a writer always goes
	check("a large sample", 20_000, false)
	check("a large sample", 300, true)
	for c.room(10_000) {
		small.launched(10_000)
	}
	if small.flight < max/4-10_000 || small.flight > max/4 {
		t.Errorf("%d bytes of small samples beside a large one, want a quarter of %d", small.flight, max)
	}
	large.landed(3 * max)
	check("the large one landed", 300, true)
	check("the large one landed", 700_000, true)
	for c.room(10_000) {
		small.launched(10_000)
	}
	if small.flight > max+max/4 {
		t.Errorf("%d bytes of small samples, want at most %d", small.flight, max+max/4)
	}
	small.landed(small.flight)
	if c.flight != 0 || c.large != 0 {
		t.Errorf("everything landed: flight %d, large %d", c.flight, c.large)
	}
}
