package mcap

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/gobag/gobag/plugin"
)

// Close writes the rest, the metadata and the summary.
func (w *writer) Close(m plugin.Metadata) error {
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.done
	}
	w.closed = true
	err := w.err
	if err == nil {
		err = w.finish(m)
		if err == nil {
			err = w.f.Sync()
		}
		if err != nil {
			err = fmt.Errorf("close storage %s: %w", w.path, err)
		}
	}
	w.pushers.Wait()
	cerr := w.f.Close() // its name is durable since it was created
	w.done = errors.Join(err, cerr)
	w.size.Store(w.off)
	w.chunk, w.head, w.tail, w.index, w.comp = records{}, nil, nil, nil, nil
	return w.done
}

// finish writes what stands behind the last chunk.
func (w *writer) finish(m plugin.Metadata) error {
	if err := w.flush(); err != nil {
		return err
	}
	// Topics without messages have no channel yet.
	for _, t := range w.topics {
		if len(t.channels) == 0 && len(w.channels) < 1<<16-1 {
			if _, err := w.channelOf(t); err != nil {
				return err
			}
		}
	}
	b := w.chunk.buf
	if m != (plugin.Metadata{}) {
		at := len(b)
		b = appendMetadata(b, metadataName, metadataKey, m.Text)
		w.metadata = append(w.metadata, place{w.off + int64(at), int64(len(b) - at)})
	}
	b, at := beginOwn(b, opFinal)
	b = endOwn(appendFinal(b, w.topics, w.distro, w.total.lo, w.total.hi), at)
	if err := w.emit(b); err != nil {
		return err
	}
	if err := w.writeProfile(); err != nil {
		return err
	}
	b, at = begin(b[:0], opDataEnd)
	b = end(le.AppendUint32(b, w.crc), at)
	if err := w.emit(b); err != nil {
		return err
	}
	return w.summary()
}

// group is a part of the summary: the records of one kind.
type group struct {
	op    byte
	place place
}

// summary writes the summary section and the footer in pieces, so that a large index needs no second copy.
func (w *writer) summary() error {
	start := w.off
	s := &summaryWriter{w: w}
	if !w.set.noSummary {
		s.group(opSchema, !w.set.noRepeatedSchemas, func() {
			for i := range w.schemaAt {
				s.b = w.appendSchema(s.b, uint16(i+1))
				s.spill()
			}
		})
		s.group(opChannel, !w.set.noRepeatedChannels, func() {
			for _, c := range w.channels {
				s.b = appendChannel(s.b, c)
				s.spill()
			}
		})
		s.group(opStatistics, !w.set.noStatistics, func() { s.b = w.appendStatistics(s.b) })
		s.group(opChunkIndex, !w.set.noChunkIndex, s.chunkIndexes)
		s.group(opMetadataIndex, !w.set.noMetadataIndex, func() {
			for _, p := range w.metadata {
				b, at := begin(s.b, opMetadataIndex)
				s.b = end(appendString(le.AppendUint64(le.AppendUint64(b, uint64(p.off)), uint64(p.n)), metadataName), at)
			}
		})
	}
	groups, offsets := s.groups, s.pos()
	if w.set.noOffsets {
		groups = nil
	}
	for _, g := range groups {
		b, at := begin(s.b, opSummaryOffset)
		s.b = end(le.AppendUint64(le.AppendUint64(append(b, g.op), uint64(g.place.off)), uint64(g.place.n)), at)
	}
	if len(groups) == 0 {
		offsets = 0
	}
	if s.pos() == start {
		start = 0
	}
	b, at := begin(s.b, opFooter)
	b = le.AppendUint64(le.AppendUint64(b, uint64(start)), uint64(offsets))
	s.b = b
	if w.set.noSummaryCRC || start == 0 {
		s.b = le.AppendUint32(s.b, 0)
	} else {
		// The footer's length counts too, so it is set before.
		le.PutUint64(s.b[at-8:], footerSize-recordHead)
		s.b = le.AppendUint32(s.b, crc32.Update(s.crc, crc32.IEEETable, s.b))
	}
	s.b = append(end(s.b, at), magic...)
	s.flush()
	return s.err
}

func (w *writer) appendStatistics(b []byte) []byte {
	b, at := begin(b, opStatistics)
	b = le.AppendUint32(le.AppendUint16(le.AppendUint64(b, w.all), uint16(len(w.schemaAt))), uint32(len(w.channels)))
	b = le.AppendUint32(le.AppendUint32(b, 0), uint32(len(w.metadata)))
	b = le.AppendUint32(b, uint32(w.nidx))
	lo, hi := w.total.lo, w.total.hi
	if w.all == 0 {
		lo = 0
	}
	b = le.AppendUint64(le.AppendUint64(b, uint64(lo)), uint64(hi))
	n := 0
	for _, c := range w.channels {
		if c.count > 0 {
			n++
		}
	}
	b = le.AppendUint32(b, uint32(10*n))
	for _, c := range w.channels {
		if c.count > 0 {
			b = le.AppendUint64(le.AppendUint16(b, c.id), c.count)
		}
	}
	return end(b, at)
}

// summaryWriter collects the summary and writes it out piece by piece.
type summaryWriter struct {
	w      *writer
	b      []byte
	crc    uint32
	groups []group
	err    error
}

func (s *summaryWriter) pos() int64 { return s.w.off + int64(len(s.b)) }

func (s *summaryWriter) group(op byte, wanted bool, f func()) {
	if !wanted {
		return
	}
	from := s.pos()
	if f(); s.pos() > from {
		s.groups = append(s.groups, group{op, place{from, s.pos() - from}})
	}
}

func (s *summaryWriter) spill() {
	if len(s.b) >= 1<<20 {
		s.flush()
	}
}

func (s *summaryWriter) flush() {
	s.crc = crc32.Update(s.crc, crc32.IEEETable, s.b)
	if s.err == nil {
		s.err = s.w.emit(s.b)
	}
	s.b = s.b[:0]
}

func (s *summaryWriter) chunkIndexes() {
	f := fields{b: s.w.index}
	for len(f.b) > 0 && !f.bad {
		start, last := f.u64(), f.u64()
		at, length, stored, size := f.uvarint(), f.uvarint(), f.uvarint(), f.uvarint()
		name := f.text()
		b, from := begin(s.b, opChunkIndex)
		b = le.AppendUint64(le.AppendUint64(b, start), last)
		b = le.AppendUint64(le.AppendUint64(b, at), length)
		mapAt := len(b)
		b = le.AppendUint32(b, 0)
		pos := at + length
		for n := f.uvarint(); n > 0; n-- {
			id, count := f.uvarint(), f.uvarint()
			if !s.w.set.noMessageIndex {
				b = le.AppendUint64(le.AppendUint16(b, uint16(id)), pos)
				pos += recordHead + 6 + 16*count
			}
		}
		le.PutUint32(b[mapAt:], uint32(len(b)-mapAt-4))
		b = le.AppendUint64(b, pos-at-length)
		b = le.AppendUint64(le.AppendUint64(appendString(b, name), stored), size)
		s.b = end(b, from)
		s.spill()
	}
}
