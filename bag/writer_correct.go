package bag

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/gobag/gobag/plugin"
)

// correct puts what storages really hold into m after a failure, as far as they can be read: the last one, and those that
// could not be closed in order.
func (w *Writer) correct(m *Metadata) {
	for i := range m.Files {
		if i == len(m.Files)-1 || slices.Contains(w.broken, m.Files[i].Path) {
			w.correctFile(m, i)
		}
	}
	var s span
	for _, f := range m.Files {
		if f.MessageCount > 0 {
			s.merge(span{true, f.Start, f.End()})
		}
	}
	m.Start, m.Duration = s.times()
}

// correctFile does so for one of them.
func (w *Writer) correctFile(m *Metadata, i int) {
	f := &m.Files[i]
	r, err := w.drv.OpenReader(context.Background(), filepath.Join(w.dir, f.Path), plugin.ReadOptions{})
	if err != nil {
		w.log.Warn("a storage cannot be read back; metadata.yaml counts what was written", "file", f.Path, "err", err)
		return
	}
	defer r.Close()
	info := r.Info()
	if info.Messages == f.MessageCount {
		return
	}
	m.MessageCount = m.MessageCount - f.MessageCount + info.Messages
	var s span
	if info.Messages > 0 {
		s = span{true, info.Start, info.End}
	}
	f.MessageCount = info.Messages
	f.Start, f.Duration = s.times()
	w.correctTopics(m, i, info)
}

// correctTopics sets the counts of topics right by what file i turned out to hold. What Write took and the file does not
// hold is lost, in the counts of the topics and in the loss ledger.
func (w *Writer) correctTopics(m *Metadata, i int, file plugin.Info) {
	held := map[topicKey]uint64{}
	for _, t := range file.Topics {
		held[topicKey{t.Name, t.Type}] += t.Count
	}
	ledger, err := ParseLedger(m.CustomData[KeyLedger])
	known := err == nil
	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	taken := w.countsInFile()
	if i < len(w.perFile) {
		taken = w.perFile[i]
	}
	for i := range min(len(m.Topics), len(taken)) {
		t, s := &m.Topics[i], &w.topics[i]
		there := held[topicKey{t.Name, t.Type}]
		t.MessageCount = t.MessageCount - taken[i] + there
		if there >= taken[i] {
			continue
		}
		gone := min(taken[i]-there, s.messages-s.repeated)
		s.messages -= gone
		s.lost += gone
		w.messages -= gone
		if e, ok := ledger.Topics[t.Name]; ok {
			n := min(gone, e.Recorded)
			e.Recorded -= n
			e.Lost.Storage += n
			ledger.Topics[t.Name] = e
		}
	}
	if known && len(ledger.Topics) > 0 {
		m.CustomData[KeyLedger] = ledger.Encode()
	}
}
