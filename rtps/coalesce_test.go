package rtps

import (
	"testing"
	"time"
)

// read simulates a socket: datagrams come at times, reading takes what is there, and waits as lulls says. It returns how
// many reads there were and the longest time that a datagram lay there.
func read(times []time.Duration, batch int) (reads int, longest time.Duration) {
	const cost = 20 * time.Microsecond // of a wake-up with its work
	var l lulls
	now := time.Duration(0)
	for i := 0; i < len(times); {
		now = max(now, times[i]) + cost
		n := 0
		for i < len(times) && times[i] <= now && n < batch {
			longest = max(longest, now-times[i])
			i++
			n++
		}
		reads++
		now += l.after(n, 100*n, now)
	}
	return reads, longest
}

// every makes n datagrams at a steady interval from a moment on.
func every(from, interval time.Duration, n int) (times []time.Duration) {
	for i := range n {
		times = append(times, from+time.Duration(i)*interval)
	}
	return times
}

func TestLulls(t *testing.T) {
	for _, c := range []struct {
		name     string
		interval time.Duration
		n        int
		most     int // reads
		longest  time.Duration
	}{
		{"10 kHz", 100 * time.Microsecond, 20_000, 1700, 2300 * time.Microsecond},
		{"5 kHz", 200 * time.Microsecond, 10_000, 1700, 2400 * time.Microsecond},
		{"1 kHz: not worth it", time.Millisecond, 2000, 2000, 100 * time.Microsecond},
		{"100 Hz", 10 * time.Millisecond, 200, 200, 100 * time.Microsecond},
	} {
		reads, longest := read(every(time.Second, c.interval, c.n), 32)
		if reads > c.most || longest > c.longest {
			t.Errorf("%s: %d reads, at most %d expected; a datagram lay there for %v, at most %v expected", c.name, reads, c.most, longest, c.longest)
		}
	}
}

// A sender that waits for an answer to each datagram is not slowed down by much: 100 µs there and back, for two seconds.
func TestLullsForPingPong(t *testing.T) {
	var l lulls
	now, waited := time.Second, time.Duration(0)
	for n := 0; now < 3*time.Second; n++ {
		now += 100 * time.Microsecond
		d := l.after(1, 100, now)
		now += d
		waited += d
	}
	if waited > 50*time.Millisecond {
		t.Errorf("%v of 2 s were spent waiting", waited)
	}
}

// Full batches and large datagrams are taken without a pause.
func TestLullsForBursts(t *testing.T) {
	for _, c := range [][2]int{{32, 3200}, {2, 28_000}, {1, 1600}} {
		var l lulls
		for now := time.Second; now < 2*time.Second; now += 200 * time.Microsecond {
			if d := l.after(c[0], c[1], now); d != 0 {
				t.Fatalf("wait of %v after %d datagrams of %d bytes together", d, c[0], c[1])
			}
		}
	}
}
