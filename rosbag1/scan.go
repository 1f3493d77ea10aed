package rosbag1

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// scan reads all chunks of a file.
type scan struct {
	r        *reader
	buf      []byte
	order    uint64
	found    uint32 // chunks
	expected uint32 // chunks, as the bag's header says; 0 unknown
}

func (s *scan) run(ctx context.Context, at int64, good bool) error {
	r := s.r
	if !good {
		next, err := s.resync(at, true)
		if err != nil {
			return err
		}
		at = next
	}
	var h header
	for at < r.size {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := readHead(&r.head, at, &h)
		if err == nil {
			err = s.record(at, &h, &p)
		} else if errors.Is(err, errBeyond) {
			err = s.tail(at, &h, &p, err)
		}
		if err == nil {
			at = p.next
			continue
		}
		if fatal(err) {
			return err
		}
		next, rerr := s.resync(at+1, true)
		if rerr != nil {
			return rerr
		}
		s.hole(at, next, err)
		at = next
	}
	s.finish()
	return nil
}

// fatal says that an error is not about what the file holds.
func fatal(err error) bool {
	var pe *os.PathError
	return errors.As(err, &pe)
}

// hole notes a part of the file in which nothing is known.
func (s *scan) hole(from, to int64, err error) {
	s.r.warn("bytes %d to %d of %d are damaged: %v", from, to, s.r.size, err)
	s.r.blocks = append(s.r.blocks, block{off: from, start: math.MinInt64, end: math.MaxInt64, bad: err, gone: true})
}

// record handles a whole record. p.next may be moved to where reading goes on.
func (s *scan) record(at int64, h *header, p *place) error {
	switch h.op {
	case opBagHeader:
		return nil
	case opIndex:
		if p.length != 12*int64(h.count) {
			return errors.New("index record is damaged")
		}
		return nil
	case opChunkInfo:
		if p.length != 8*int64(h.count) {
			return errors.New("chunk information is damaged")
		}
		return nil
	case opConnection:
		known := s.r.conns[h.conn] != nil
		err := s.r.takeConnection(&s.r.head, h, *p, true)
		if err != nil && known && !fatal(err) { // what the chunks say counts
			s.r.warn("record at byte %d: %v", at, err)
			err = nil
		}
		return err
	case opChunk:
		return s.chunk(at, h, p)
	}
	return fmt.Errorf("record of kind %d outside of a chunk", h.op)
}

// chunk reads a chunk through. One whose length leads nowhere is passed over by looking for what comes next.
func (s *scan) chunk(at int64, h *header, p *place) error {
	s.found++
	b := block{off: at}
	err := b.takeHead(h, *p, s.r.size)
	if err == nil {
		err = s.content(&b)
	}
	if err != nil && fatal(err) {
		return err
	}
	if err != nil {
		b.bad = err
		s.r.warn("chunk at byte %d: %v", at, err)
		var next header
		if _, nerr := readHead(&s.r.head, p.next, &next); nerr != nil && p.next != s.r.size {
			if p.next, nerr = s.resync(p.data, false); nerr != nil {
				return nerr
			}
		}
	}
	if b.count > 0 || b.bad != nil {
		s.r.blocks = append(s.r.blocks, b)
		s.order += b.count
	}
	return nil
}

// content lists the messages of a chunk. With an error b says what can be read of it all the same.
func (s *scan) content(b *block) error {
	b.start, b.end, b.gone = math.MinInt64, math.MaxInt64, true
	src, buf, err := s.r.content(b, s.buf)
	if s.buf = buf; cap(buf) > loadedBytes {
		s.buf = nil
	}
	if err != nil {
		return err
	}
	entries, err := s.r.parse(src, true)
	if err != nil && b.pack != packNone && !b.cut {
		return err
	}
	if b.cut && errors.Is(err, errBeyond) {
		err = nil // as is to be expected of its last record
	}
	b.gone = false
	b.take(entries)
	b.order = s.order
	return err
}

// take fills times and counts from the messages.
func (b *block) take(entries []entry) {
	b.count = uint64(len(entries))
	counts := map[uint32]uint32{}
	for i, e := range entries {
		if i == 0 {
			b.start, b.end = e.time, e.time
		}
		b.start, b.end = min(b.start, e.time), max(b.end, e.time)
		counts[e.conn]++
	}
	b.counts = nil
	for conn, n := range counts {
		b.counts = append(b.counts, connCount{conn, n})
	}
}

// tail handles a record that reaches beyond the end of the file: the file was cut off, or a length is damaged.
func (s *scan) tail(at int64, h *header, p *place, err error) error {
	from := at + 1
	if p.data > 0 {
		from = min(p.data, s.r.size)
	}
	next, rerr := s.resync(from, p.data == 0)
	if rerr != nil {
		return rerr
	}
	if next < s.r.size {
		return err // not the end: run looks for what follows
	}
	s.r.info.Unclean = true
	what := "record"
	if p.data > 0 && h.op == opChunk {
		what = "chunk"
		if err := s.cutChunk(at); err != nil {
			return err
		}
	}
	s.r.warn("the file ends within the %s at byte %d; what is whole before is read", what, at)
	p.next = s.r.size
	return nil
}

// cutChunk takes over what is whole of the chunk at the end of the file.
func (s *scan) cutChunk(at int64) error {
	var h header
	p, err := readHead(&s.r.head, at, &h)
	if err != nil && !errors.Is(err, errBeyond) {
		return err
	}
	s.found++
	b := block{off: at}
	if err = b.takeHead(&h, p, s.r.size); err == nil {
		err = s.content(&b)
	}
	if err != nil {
		if fatal(err) {
			return err
		}
		s.r.warn("chunk at byte %d: %v", at, err)
		b.bad = err
	}
	if b.count > 0 || b.bad != nil {
		s.r.blocks = append(s.r.blocks, b)
		s.order += b.count
	}
	return nil
}

// finish notes what the whole file tells: connections without a record, chunks that are missing.
func (s *scan) finish() {
	for i := range s.r.blocks {
		b := &s.r.blocks[i]
		for _, c := range b.counts {
			if s.r.conns[c.conn] == nil {
				err := fmt.Errorf("%d messages of connection %d, whose record is missing", c.count, c.conn)
				s.r.warn("chunk at byte %d: %v", b.off, err)
				b.bad = cmp.Or(b.bad, err)
			}
		}
	}
	if s.found < s.expected {
		s.r.info.Unclean = true
		s.r.warn("%d chunks were found, the bag's header says there are %d", s.found, s.expected)
	}
}

// resync returns where, from at on, the next record lies that can be told from chance; the size of the file if none.
// Within a chunk there are records of connections too, so that these are looked for outside only.
func (s *scan) resync(at int64, connections bool) (int64, error) {
	const step, back = 1 << 20, 1 << 10
	mark := []byte("\x04\x00\x00\x00op=")
	probe := window{f: s.r.f, length: s.r.size}
	buf := make([]byte, step+back)
	for from := at; from < s.r.size; from += step {
		b := buf[:min(step+back, s.r.size-from)]
		if n, err := s.r.f.ReadAt(b, from); n < len(b) && err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		for i := 0; ; {
			k := bytes.Index(b[i:], mark)
			if k < 0 {
				break
			}
			i += k
			if i+len(mark) < len(b) && b[i+len(mark)] >= opIndex && (b[i+len(mark)] < opConnection || connections && b[i+len(mark)] == opConnection) {
				if start, ok := s.begin(&probe, b, i, from, at); ok {
					return start, nil
				}
			}
			i++
		}
	}
	return s.r.size, nil
}

// begin looks for the beginning of the record whose header has the field at b[i]: at most 1 KiB before it.
func (s *scan) begin(probe *window, b []byte, i int, from, least int64) (int64, bool) {
	var h header
	for start := i - 4; start >= 0 && start >= i-1024; start-- {
		n := int64(le.Uint32(b[start:]))
		if n < int64(i-start) || n > 64<<10 || from+int64(start) < least {
			continue
		}
		p, err := readHead(probe, from+int64(start), &h)
		if err != nil && !(errors.Is(err, errBeyond) && p.data > 0 && h.op == opChunk) {
			continue
		}
		switch h.op {
		case opChunk:
			if h.hasSize && len(h.compression) > 0 {
				return from + int64(start), true
			}
		case opIndex:
			if p.length == 12*int64(h.count) && h.version == 1 {
				return from + int64(start), true
			}
		case opChunkInfo:
			if p.length == 8*int64(h.count) && h.version == 1 {
				return from + int64(start), true
			}
		case opConnection:
			if h.hasConn && len(h.topic) > 0 && p.length > 0 && p.length <= maxConnection {
				return from + int64(start), true
			}
		}
	}
	return 0, false
}
