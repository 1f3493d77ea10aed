package mcap

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/gobag/gobag/internal/fsx"
)

const (
	writebackStep  = 4 << 20 // bytes written before the system is asked to bring them to the disk
	writebackAlign = 64 << 10
)

// flush writes changed topics and the open chunk: topics, pack, chunk, message indexes.
func (w *writer) flush() error {
	if len(w.dirty) == 0 && w.messages == 0 {
		return nil
	}
	w.head = w.head[:0]
	if len(w.dirty) > 0 {
		b, at := beginOwn(w.head, opTopics)
		w.head = endOwn(appendTopics(appendText(b, w.distro), w.dirty), at)
		w.dirty = w.dirty[:0]
	}
	if w.messages == 0 {
		return w.emit(w.head)
	}
	crc := w.chunk.checksum()
	p := pack{raw: w.set.noChunking, synced: w.synced, size: int64(w.chunk.len()), messages: w.messages, order: w.first,
		start: w.start, end: w.end}
	if !w.set.noChunkCRC {
		p.crc = crc
	}
	for _, c := range w.touched {
		p.channels = append(p.channels, packChannel{c.id, c.n, c.bytes})
	}
	w.head = appendPack(w.head, &p, w.perMessage)

	var err error
	if w.set.noChunking {
		err = w.emitRecords(w.head, w.chunk.all(), p.size, crc, nil)
	} else {
		err = w.emitChunk(&p, crc)
	}
	w.closeChunk(&p)
	return err
}

// emitChunk writes the chunk itself and its message indexes.
func (w *writer) emitChunk(p *pack, crc uint32) error {
	records, stored, name := w.chunk.all(), p.size, ""
	if w.comp.name != "" && p.size <= maxInflated {
		z, err := w.comp.compress(records, p.size)
		if err != nil {
			return err
		}
		if int64(len(z)) < p.size || w.set.forceCompression {
			records, stored, name = [][]byte{z}, int64(len(z)), w.comp.name
			if !w.set.noDataCRC {
				crc = crc32.ChecksumIEEE(z)
			}
		}
	}
	b := append(w.head, opChunk)
	at := w.off + int64(len(w.head))
	b = le.AppendUint64(b, uint64(40+int64(len(name))+stored))
	b = le.AppendUint64(le.AppendUint64(b, uint64(p.start)), uint64(p.end))
	b = le.AppendUint32(le.AppendUint64(b, uint64(p.size)), p.crc)
	w.head = le.AppendUint64(appendString(b, name), uint64(stored))
	chunkLen := w.off + int64(len(w.head)) + stored - at
	w.tail = w.tail[:0]
	if !w.set.noMessageIndex {
		for _, c := range w.touched {
			b, at := begin(w.tail, opMessageIndex)
			b = le.AppendUint32(le.AppendUint16(b, c.id), uint32(len(c.entries)))
			w.tail = end(append(b, c.entries...), at)
		}
	}
	w.indexChunk(p, at, chunkLen, name, stored)
	return w.emitRecords(w.head, records, stored, crc, w.tail)
}

// closeChunk adds the chunk's sums and empties it.
func (w *writer) closeChunk(p *pack) {
	for _, c := range w.touched {
		c.topic.count += c.n
		c.topic.bytes += int64(c.bytes)
		c.count += c.n
		c.entries, c.n, c.bytes = c.entries[:0], 0, 0
	}
	if w.all == 0 {
		w.total = span{p.start, p.end}
	} else {
		w.total = span{min(w.total.lo, p.start), max(w.total.hi, p.end)}
	}
	w.all += w.messages
	w.touched, w.perMessage, w.messages = w.touched[:0], w.perMessage[:0], 0
	w.chunk.reset()
}

// indexChunk notes a chunk for the summary: stamps, place, sizes, compression, and for each channel its number of
// messages, from which the place of its message index follows.
func (w *writer) indexChunk(p *pack, at, length int64, name string, stored int64) {
	b := le.AppendUint64(le.AppendUint64(w.index, uint64(p.start)), uint64(p.end))
	for _, v := range []int64{at, length, stored, p.size} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	b = binary.AppendUvarint(appendText(b, name), uint64(len(p.channels)))
	for _, c := range p.channels {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(c.id)), c.count)
	}
	w.index = b
	w.nidx++
	w.extra += int64(80 + 10*len(p.channels))
}

// emit appends b to the file.
func (w *writer) emit(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	n, err := w.f.Write(b)
	w.off += int64(n)
	if err != nil {
		return err
	}
	if !w.set.noDataCRC {
		w.crc = crc32.Update(w.crc, crc32.IEEETable, b)
	}
	w.push()
	return nil
}

// emitRecords appends head, records whose length and checksum are known, and tail, without a copy and where the system
// can in one call.
func (w *writer) emitRecords(head []byte, records [][]byte, size int64, crc uint32, tail []byte) error {
	w.pieces = append(append(append(w.pieces[:0], head), records...), tail)
	n, err := fsx.WritePieces(w.f, w.pieces)
	clear(w.pieces)
	w.off += n
	if err != nil {
		return err
	}
	if !w.set.noDataCRC {
		w.crc = crcCombine(crc32.Update(w.crc, crc32.IEEETable, head), crc, size)
		w.crc = crc32.Update(w.crc, crc32.IEEETable, tail)
	}
	w.push()
	return nil
}

// push keeps dirty pages from piling up: the system is asked for writeback beside the writer, one request at a time. Its
// errors show again when the data is synced. What is still growing is left out: it would be written twice.
func (w *writer) push() {
	to := w.off &^ (writebackAlign - 1)
	if to-w.pushed < writebackStep || !w.pushing.CompareAndSwap(false, true) {
		return
	}
	from := w.pushed
	w.pushed = to
	w.pushers.Go(func() {
		_ = fsx.StartWriteback(w.f, from, to-from)
		w.pushing.Store(false)
	})
}
