package bag

import (
	"testing"
	"time"
)

// A message that comes right after the begin of a sync must be durable within the interval, as long as syncs do not take
// much longer than half of it.
func TestSyncPeriod(t *testing.T) {
	const interval = time.Second
	for took := time.Duration(0); took <= 2*interval; took += 10 * time.Millisecond {
		p := syncPeriod(interval, took)
		if took <= interval/2-interval/16 && p+took > interval {
			t.Errorf("syncs of %v: durable after %v", took, p+took)
		}
		if p < interval/8 || p > interval*2/5 {
			t.Errorf("syncs of %v: every %v", took, p)
		}
	}
}
