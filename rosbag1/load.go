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
	"slices"

	"github.com/gobag/gobag/plugin"
)

// open reads the index of a bag, or all of the bag where there is none that can be trusted, or when whole is set.
func open(ctx context.Context, path string, whole bool) (*reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &reader{f: f, path: path}
	if err := r.load(ctx, whole); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

func (r *reader) load(ctx context.Context, whole bool) error {
	fi, err := r.f.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("%w: not a file", plugin.ErrFormat)
	}
	r.size = fi.Size()
	r.head = window{f: r.f, length: r.size}
	if err := r.checkMagic(); err != nil {
		return err
	}
	r.reset()
	var h header
	p, err := readHead(&r.head, int64(len(magic)), &h)
	good := err == nil && h.op == opBagHeader
	if good && len(h.encryptor) > 0 {
		return fmt.Errorf("%w: the bag is encrypted with %.60q; decrypt it with ROS 1 first", plugin.ErrFormat, h.encryptor)
	}
	first := int64(len(magic))
	if good {
		first = p.next
	}
	indexed := false
	switch {
	case !good:
		r.warn("the bag's header is damaged; all of the file was read")
		r.info.Unclean = true
	case h.indexPos == 0:
		r.warn("the bag has no index (its recording was cut off, or goes on); all of the file was read")
		r.info.Unclean = true
	case !whole:
		if err := r.fromIndex(&h, first); err != nil {
			r.reset()
			if h.indexPos > uint64(r.size) || errors.Is(err, errBeyond) {
				r.info.Unclean = true
			}
			r.warn("the bag's index cannot be used (%v); all of the file was read", err)
		} else {
			indexed = true
		}
	}
	if !indexed {
		s := scan{r: r, expected: h.chunks}
		if err := s.run(ctx, first, good); err != nil {
			return err
		}
	}
	r.describe()
	return nil
}

func (r *reader) checkMagic() error {
	b, err := r.head.peek(0, min(r.size, int64(len(magic))))
	if err != nil {
		return err
	}
	if string(b) == magic {
		return nil
	}
	if bytes.HasPrefix(b, []byte(magicPrefix)) {
		version, _, _ := bytes.Cut(b[len(magicPrefix):], []byte("\n"))
		return fmt.Errorf("%w: a ROS 1 bag of version %.10q, known is 2.0; rosbag fix of ROS 1 brings old bags up to it", plugin.ErrFormat, version)
	}
	return plugin.ErrFormat
}

// fromIndex reads the records behind the chunks: connections and what each chunk holds.
func (r *reader) fromIndex(bag *header, first int64) error {
	at := int64(min(bag.indexPos, math.MaxInt64))
	if at < first || at > r.size {
		return fmt.Errorf("it would begin at byte %d of %d: %w", bag.indexPos, r.size, errBeyond)
	}
	var conns, chunks uint32
	var h header
	for at < r.size {
		p, err := readHead(&r.head, at, &h)
		if err != nil {
			return fmt.Errorf("record at byte %d: %w", at, err)
		}
		switch h.op {
		case opConnection:
			conns++
			if err := r.takeConnection(&r.head, &h, p, true); err != nil {
				return fmt.Errorf("record at byte %d: %w", at, err)
			}
		case opChunkInfo:
			chunks++
			if err := r.takeChunkInfo(&h, p, first, int64(bag.indexPos)); err != nil {
				return fmt.Errorf("record at byte %d: %w", at, err)
			}
		default:
			return fmt.Errorf("record of kind %d at byte %d", h.op, at)
		}
		at = p.next
	}
	if conns != bag.conns || chunks != bag.chunks {
		return fmt.Errorf("%d connections and %d chunks are in it, the bag's header says %d and %d", conns, chunks, bag.conns, bag.chunks)
	}
	slices.SortFunc(r.blocks, func(a, b block) int { return cmp.Compare(a.off, b.off) })
	var order uint64
	for i := range r.blocks {
		b := &r.blocks[i]
		if i > 0 && b.off == r.blocks[i-1].off {
			return fmt.Errorf("two chunks at byte %d", b.off)
		}
		b.order = order
		order += b.count
	}
	for i := range r.blocks {
		for _, c := range r.blocks[i].counts {
			if r.conns[c.conn] == nil {
				return fmt.Errorf("the chunk at byte %d has messages of connection %d, whose record is missing", r.blocks[i].off, c.conn)
			}
		}
	}
	return r.verifyConnections()
}

// verifyConnections compares the index with the chunk in which each connection first has messages, since its record
// stands there too: a damaged name of a topic or a type shows. It reads a few chunks at most; what is wrong with a chunk
// itself shows when it is read.
func (r *reader) verifyConnections() error {
	const fewChunks, fewBytes = 4, 16 << 20
	seen := map[uint32]bool{}
	var buf []byte
	chunks, bytes := 0, int64(0)
	for i := range r.blocks {
		b := &r.blocks[i]
		if !slices.ContainsFunc(b.counts, func(c connCount) bool { return !seen[c.conn] }) {
			continue
		}
		for _, c := range b.counts {
			seen[c.conn] = true
		}
		if r.readChunkHead(b) != nil || b.size > wholeChunk {
			continue
		}
		if chunks++; chunks > fewChunks || bytes > fewBytes {
			return nil
		}
		src, unpacked, err := r.content(b, buf)
		buf = unpacked
		bytes += int64(len(buf))
		if err != nil {
			continue
		}
		var conflict *conflictError
		if _, err := r.parse(src, false); errors.As(err, &conflict) {
			return err
		}
	}
	return nil
}

func (r *reader) takeChunkInfo(h *header, p place, first, end int64) error {
	if h.version != 1 {
		return fmt.Errorf("chunk information of version %d, known is 1", h.version)
	}
	if p.length != 8*int64(h.count) {
		return errors.New("chunk information is damaged")
	}
	b := block{off: int64(min(h.chunkPos, math.MaxInt64)), start: h.start, end: h.end}
	if b.off < first || b.off >= end {
		return fmt.Errorf("a chunk at byte %d", h.chunkPos)
	}
	data, err := r.head.peek(p.data, p.length)
	if err != nil {
		return err
	}
	for ; len(data) >= 8; data = data[8:] {
		c := connCount{le.Uint32(data), le.Uint32(data[4:])}
		b.counts = append(b.counts, c)
		b.count += uint64(c.count)
	}
	if b.start > b.end && b.count > 0 {
		return errors.New("a chunk that ends before it begins")
	}
	r.blocks = append(r.blocks, b)
	return nil
}

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
