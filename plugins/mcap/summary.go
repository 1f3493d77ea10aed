package mcap

import (
	"errors"
	"hash/crc32"
	"strings"
)

// smallFile is the size up to which a file of another program is read as a whole when it is opened: only that shows
// channels that its summary leaves out.
const smallFile = 32 << 20

// summaryState is what a summary holds beside schemas and channels.
type summaryState struct {
	blocks   []block
	next     []int64 // where the record behind each chunk and its message indexes begins
	metadata []int64
	stats    *statistics
}

type statistics struct {
	messages   uint64
	chunks     uint32
	start, end int64
	counts     map[uint16]uint64
}

// fromSummary describes the file by its summary section. False: there is none, or not enough in it, or it is damaged.
func (r *reader) fromSummary() (bool, error) {
	w := window{f: r.f, size: r.size}
	foot := r.size - int64(len(magic)) - footerSize
	if foot < int64(len(magic)) {
		return false, nil
	}
	b, err := w.peek(foot, r.size-foot)
	if err != nil {
		return false, ignoreDamage(err)
	}
	if string(b[footerSize:]) != magic || b[0] != opFooter || le.Uint64(b[1:]) != footerSize-recordHead {
		return false, nil
	}
	start, crc := int64(le.Uint64(b[recordHead:])), le.Uint32(b[recordHead+16:])
	if start < int64(len(magic)) || start >= foot {
		return false, nil
	}
	own := strings.HasPrefix(r.library(&w), library)
	if !own && r.size <= smallFile {
		return false, nil
	}
	if crc != 0 {
		if ok, err := r.checkCRC(start, foot+footerSize-4, crc); !ok {
			return false, err
		}
	}
	var s summaryState
	for at := start; at < foot; {
		op, n, err := w.head(at)
		if err == nil && at+recordHead+n > foot {
			err = errBeyond
		}
		var content []byte
		if err == nil {
			content, err = w.peek(at+recordHead, n)
		}
		if err != nil {
			return false, ignoreDamage(err)
		}
		if !r.summaryRecord(&s, op, content) {
			return false, nil
		}
		at += recordHead + n
	}
	return r.useSummary(&w, &s, start, own)
}

// ignoreDamage lets errors of the disk pass only.
func ignoreDamage(err error) error {
	if errors.Is(err, errBeyond) {
		return nil
	}
	return err
}

// library is the name of the program that wrote the file.
func (r *reader) library(w *window) string {
	op, n, err := w.head(int64(len(magic)))
	if err != nil || op != opHeader || n > 1<<16 {
		return ""
	}
	b, err := w.peek(int64(len(magic))+recordHead, n)
	if err != nil {
		return ""
	}
	f := fields{b: b}
	f.str()
	return f.str()
}

func (r *reader) checkCRC(from, to int64, want uint32) (bool, error) {
	buf := make([]byte, min(to-from, 64<<10))
	crc := uint32(0)
	for from < to {
		b := buf[:min(int64(len(buf)), to-from)]
		if n, err := r.f.ReadAt(b, from); n < len(b) {
			return false, err
		}
		crc = crc32.Update(crc, crc32.IEEETable, b)
		from += int64(len(b))
	}
	return crc == want, nil
}

func (r *reader) summaryRecord(s *summaryState, op byte, content []byte) bool {
	f := fields{b: content}
	switch op {
	case opSchema, opChannel:
		return r.record(op, content) == nil
	case opChunkIndex:
		k := block{start: int64(f.u64()), end: int64(f.u64()), off: int64(f.u64()), length: int64(f.u64()), channels: []uint16{}}
		if m := f.sub(); len(m.b)%10 == 0 {
			for len(m.b) > 0 {
				k.channels = append(k.channels, m.u16())
				m.u64()
			}
		} else {
			return false
		}
		indexes := int64(f.u64())
		if f.bad || k.off < 0 || k.length < chunkFixed || indexes < 0 || k.length > r.size-k.off || indexes > r.size-k.off-k.length {
			return false
		}
		if len(k.channels) == 0 {
			k.channels = nil // no message indexes
		}
		s.blocks = append(s.blocks, k)
		s.next = append(s.next, k.off+k.length+indexes)
	case opStatistics:
		t := statistics{messages: f.u64(), counts: map[uint16]uint64{}}
		f.bytes(2 + 4 + 4 + 4)
		t.chunks, t.start, t.end = f.u32(), int64(f.u64()), int64(f.u64())
		m := f.sub()
		sum := uint64(0)
		for len(m.b) >= 10 {
			id, n := m.u16(), m.u64()
			t.counts[id] = n
			sum += n
		}
		if f.bad || sum != t.messages {
			return true // some writers get it wrong: as if it were not there
		}
		s.stats = &t
	case opMetadataIndex:
		s.metadata = append(s.metadata, int64(f.u64()))
		return !f.bad
	}
	return true
}

// useSummary checks that the summary describes all of the file, and takes it over.
func (r *reader) useSummary(w *window, s *summaryState, start int64, own bool) (bool, error) {
	prev := int64(len(magic))
	for i := range s.blocks {
		k := &s.blocks[i]
		if k.off < prev || s.next[i] > start {
			return false, nil
		}
		k.gap, prev = prev, s.next[i]
	}
	for _, at := range s.metadata {
		if ok, err := r.metadataAt(w, at); !ok {
			return false, err
		}
	}
	var final *finalState
	for at := prev; at < start; {
		op, n, err := w.head(at)
		if err != nil {
			return false, ignoreDamage(err)
		}
		if op == opMessage || op == opChunk {
			return false, nil // more messages than the summary knows of
		}
		if op == opFinal || op == opMetadata {
			content, err := w.peek(at+recordHead, n)
			if err != nil {
				return false, ignoreDamage(err)
			}
			if op == opMetadata {
				if !r.takes(op, content) {
					return false, nil
				}
			} else if fs, ok := parseFinal(content); ok {
				final = &fs
			}
		}
		at += recordHead + n
	}
	r.blocks = s.blocks
	if own || final != nil {
		return r.useFinal(final, s), nil
	}
	return r.useStatistics(s), nil
}

// takes is record for callers that give up on the summary where it is damaged.
func (r *reader) takes(op byte, content []byte) bool { return r.record(op, content) == nil }

func (r *reader) metadataAt(w *window, at int64) (bool, error) {
	op, n, err := w.head(at)
	if err != nil || op != opMetadata {
		return false, ignoreDamage(err)
	}
	content, err := w.peek(at+recordHead, n)
	if err != nil {
		return false, ignoreDamage(err)
	}
	return r.record(op, content) == nil, nil
}

func (r *reader) useFinal(final *finalState, s *summaryState) bool {
	if final == nil || r.ownTopics(final.topics) != nil {
		return false
	}
	var sum uint64
	for i := range r.topics {
		sum += r.topics[i].count
	}
	if s.stats != nil && (s.stats.messages != sum || int(s.stats.chunks) != len(r.blocks)) || sum > 0 && len(r.blocks) == 0 {
		return false
	}
	r.own = true
	r.info.ROSDistro, r.info.Start, r.info.End = final.distro, final.start, final.end
	return true
}

func (r *reader) useStatistics(s *summaryState) bool {
	if s.stats == nil || int(s.stats.chunks) != len(s.blocks) || s.stats.messages > 0 && len(s.blocks) == 0 || s.stats.start > s.stats.end {
		return false
	}
	for i := range s.blocks {
		k := &s.blocks[i]
		if k.start > k.end {
			return false
		}
		for _, id := range k.channels {
			if _, ok := r.channels[id]; !ok {
				return false
			}
		}
	}
	for id, n := range s.stats.counts {
		c, ok := r.channels[id]
		if !ok {
			return false
		}
		if c.count = n; n > 0 {
			c.bytes = -1
		}
	}
	r.info.Start, r.info.End = s.stats.start, s.stats.end
	return true
}
