package rtps

import (
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// Liveliness of our writers (DDS 1.4 §2.2.3.11, RTPS 2.5 §8.4.13). All kinds are asserted as long as the writer exists.

// assertPeriod is how often a lease is renewed: Cyclone DDS's rule.
func assertPeriod(lease time.Duration) time.Duration {
	if lease < 10*time.Second {
		return max(lease*8/10, time.Millisecond)
	}
	return lease - 2*time.Second
}

// startLiveliness begins to assert a writer with a finite lease. The participant's mutex is held.
func (w *Writer) startLiveliness() {
	lease := w.cfg.QoS.LeaseDuration
	if limit(lease) == limit(0) {
		return
	}
	p := w.p
	if w.cfg.QoS.Liveliness != ManualByTopic {
		p.timers.by(&p.liveTimer, p.now)
		return
	}
	w.lively.fire = func(now mono) {
		for _, k := range w.sinks {
			if k.reliable {
				w.heartbeat(k, k.ready && k.acked >= w.sent, true)
			}
		}
		p.timers.set(&w.lively, now.add(assertPeriod(lease)))
	}
	p.timers.set(&w.lively, p.now.add(assertPeriod(lease)))
}

// assertLiveliness sends a participant message for each kind of liveliness that our writers use.
func (p *Participant) assertLiveliness(now mono) {
	var kinds [2]bool
	period := time.Duration(0)
	for _, w := range p.writers {
		q := &w.cfg.QoS
		if w.builtin() || q.Liveliness == ManualByTopic || limit(q.LeaseDuration) == limit(0) {
			continue
		}
		kinds[q.Liveliness] = true
		if a := assertPeriod(q.LeaseDuration); period == 0 || a < period {
			period = a
		}
	}
	for i, kind := range []uint32{wire.LivelinessAutomatic, wire.LivelinessManual} {
		if kinds[i] {
			m := wire.LivelinessMessage{Prefix: p.prefix, Kind: kind}
			p.liveWriter.put(m.Key(), m.Append(nil), wire.InlineQoS{}, false)
		}
	}
	if period > 0 {
		p.timers.set(&p.liveTimer, now.add(period))
	}
}
