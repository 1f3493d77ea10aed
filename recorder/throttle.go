package recorder

import (
	"fmt"
	"strings"
	"time"
)

// throttle lets through a number of messages a second, evenly, and on average not fewer than asked for where enough come.
// It belongs to the goroutine that delivers the topic. The zero value lets everything through.
type throttle struct {
	period int64 // ns; 0 = no limit
	next   int64 // stamp from which on the next message goes through
}

// newThrottle makes a throttle for a rate in Hz.
func newThrottle(hz float64) throttle {
	if hz <= 0 {
		return throttle{}
	}
	return throttle{period: max(1, int64(float64(time.Second)/hz))}
}

// pass says whether a message with a receive stamp (ns) goes through.
func (t *throttle) pass(stamp int64) bool {
	switch {
	case t.period == 0:
		return true
	case t.next == 0, stamp-t.next >= t.period, t.next-stamp > t.period: // the first one, after a silence, or the clock was set back
		t.next = stamp + t.period
		return true
	case stamp < t.next:
		return false
	}
	t.next += t.period // not stamp + period: a topic of 100 Hz throttled to 30 Hz has 30, not 25
	return true
}

// throttles turns topics into names with a slash, and checks the rates.
func throttles(rates map[string]float64) (map[string]float64, error) {
	out := make(map[string]float64, len(rates))
	for name, hz := range rates {
		if !(hz > 0) || hz > 1e6 {
			return nil, fmt.Errorf("throttle of topic %s: %g Hz; it must be above 0 and at most 1000000", name, hz)
		}
		if !strings.HasPrefix(name, "/") {
			name = "/" + name
		}
		out[name] = hz
	}
	return out, nil
}
