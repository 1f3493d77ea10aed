package recorder

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/ros"
)

// Back-pressure, for topics that ask for it: while the queue has no room, their samples are not acknowledged, and a
// reliable publisher that keeps all waits instead of losing. Every other topic is drained, whatever happens.

// validateBackpressure says what is wrong with the topics of Options.Backpressure.
func (o Options) validateBackpressure() (errs []error) {
	names := absoluteNames(o.Backpressure)
	for _, name := range names {
		if err := ros.ValidName(name); err != nil {
			errs = append(errs, fmt.Errorf("back-pressure: %w", err))
		}
	}
	if len(names) > 0 && o.SnapshotMode {
		errs = append(errs, errors.New("back-pressure and snapshot mode: one of them, since the memory of snapshots is always full"))
	}
	for topic := range o.Throttle {
		if name := absoluteNames([]string{topic})[0]; slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("topic %s: throttled or held by back-pressure, not both", name))
		}
	}
	return errs
}

// subscribeHeld subscribes to a topic of Options.Backpressure, where the transport can hold publishers.
func (r *Recorder) subscribeHeld(t *topic, rt ros.Topic, qos ros.QoS) (ros.Subscription, error) {
	h, ok := r.o.Node.(ros.Holder)
	if !ok {
		r.emitOnce("held "+t.name, EventQoS, slog.LevelWarn, t.name, fmt.Sprintf("topic '%s': this transport cannot hold publishers back", t.name))
		return r.o.Node.Subscribe(rt, qos, t.handle)
	}
	sub, err := h.SubscribeHeld(rt, qos, t.offer, t.handle)
	if err != nil {
		return nil, err
	}
	return sub, nil
}

// offer is handle for a sample that may be refused.
func (t *topic) offer(s ros.Sample) bool {
	t.received.Add(1) // first: see counts
	if t.queue.Offer(t.entry(&s)) {
		return true
	}
	t.received.Add(^uint64(0))
	t.waits.Store(true)
	return false
}

// warnUnheld says which publishers of a topic of Options.Backpressure cannot be held. Called by discovery's goroutine.
func (d *discovery) warnUnheld(t *topic, p *ros.Endpoint) {
	if !t.held {
		return
	}
	switch q := p.QoS.Normalized(); {
	case q.Reliability == ros.BestEffort:
		d.warn("unheld "+t.name, EventQoS, t.name, fmt.Sprintf("topic '%s': a best-effort publisher cannot be held back", t.name))
	case q.History == ros.KeepLast:
		d.warn("unheld "+t.name, EventQoS, t.name, fmt.Sprintf("topic '%s': a publisher keeps its last %d messages only and overwrites them while it is held back", t.name, q.Depth))
	}
}

// resumeHeld lets publishers go on whose samples were refused, once half of what they may use of the queue is free.
func (w *writer) resumeHeld() {
	if len(w.r.o.Backpressure) == 0 {
		return
	}
	if s := w.r.queue.Stats(); s.Held > s.MaxBytes/4 {
		return
	}
	for _, t := range w.r.allTopics() {
		if !t.waits.Load() {
			continue
		}
		if sub, ok := t.subscription().(ros.HeldSubscription); ok && t.waits.Swap(false) {
			w.r.emitOnce("waits "+t.name, EventStorage, slog.LevelWarn, t.name, fmt.Sprintf("publishers of topic '%s' had to wait for the storage", t.name))
			sub.Resume()
		}
	}
}

// entry is a sample as it is queued.
func (t *topic) entry(s *ros.Sample) bag.Entry {
	cost := s.Cost
	if cost <= 0 {
		cost = len(s.Data) + entryOverhead
	}
	mark, stamp := t.gate.pass(s.RecvTime)
	return bag.Entry{
		Topic:    t.queued,
		Mark:     mark,
		RecvTime: stamp,
		SendTime: s.SourceTime,
		Source:   t.sources.number(s.Writer),
		Seq:      s.Seq,
		Data:     s.Data,
		Cost:     cost,
		Owner:    s.Owner,
	}
}
