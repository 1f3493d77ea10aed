package recorder

// totals sums what is counted of all topics: with thousands of them, most of which are silent, the periodic looks must not
// make a ledger of each.
type totals struct {
	received, recorded, skipped uint64
	wire, queue, storage        uint64
	worst                       string // the topic that has lost most
}

// sum adds the topics' counts up.
func (r *Recorder) sum() totals {
	var s totals
	most := uint64(0)
	for _, t := range r.allTopics() {
		wire, queue := t.wire.known(), t.queued.Dropped()
		s.received += t.received.Load()
		s.recorded += t.recorded.Load()
		s.skipped += t.skipped.Load() + t.surplus.Load() + t.deleted.Load()
		s.storage += t.refused.Load()
		s.wire += wire
		s.queue += queue
		if wire+queue > most {
			s.worst, most = t.name, wire+queue
		}
	}
	return s
}

// Lost is the number of messages lost so far, for whatever reason. It is cheaper than Snapshot.
func (r *Recorder) Lost() uint64 {
	s := r.sum()
	return s.wire + s.queue + s.storage
}
