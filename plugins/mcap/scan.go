package mcap

import (
	"context"
	"errors"
	"fmt"
	"math"
)

const (
	runSize    = 1 << 20 // of message records outside chunks that are read together
	maxWaiting = 512     // chunks of ours of which it is not known yet whether they reached the disk
)

// scanner goes through the file record by record.
type scanner struct {
	r       *reader
	w       window
	buf     buffers
	gap     int64   // where the records before the next chunk begin
	pack    *pack   // for the next chunk
	waiting []*pack // of the last blocks: not yet taken as whole
	sums    map[uint16]*packChannel
	footer  bool
	final   bool // gobag's closing record was met: the writer had reached the end
}

// scan describes the file by reading it. Of files of ours it reads the packs, and the chunks only where a power cut may
// have left holes; of others all of it. It stops where the file ends in the middle of something.
func (r *reader) scan(ctx context.Context) error {
	s := &scanner{r: r, w: window{f: r.f, size: r.size}, gap: int64(len(magic)), sums: map[uint16]*packChannel{}}
	defer s.buf.close()
	at, whole := int64(len(magic)), false
	for n := 0; at < r.size; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if r.size-at == int64(len(magic)) {
			if b, err := s.w.peek(at, r.size-at); err == nil && string(b) == magic && s.footer {
				whole = true
				break
			}
		}
		next, err := s.step(at)
		if err != nil {
			if !errors.Is(err, errBeyond) && !errors.Is(err, errZero) {
				return fmt.Errorf("read: %w", err)
			}
			r.warn("unfinished file: the record at byte %d of %d is not whole (%v), %d bytes are not read", at, r.size, err, r.size-at)
			break
		}
		at = next
	}
	if !whole {
		r.info.Unclean = true
		if at == r.size {
			r.warn("unfinished file: it ends at byte %d without a summary, all records before are whole", at)
		}
	}
	s.settle()
	if r.own {
		for i := range r.topics {
			t := &r.topics[i]
			t.count, t.bytes = 0, 0
			for _, c := range t.channels {
				if p := s.sums[c]; p != nil {
					t.count, t.bytes = t.count+p.count, t.bytes+int64(p.bytes)
				}
			}
		}
	} else {
		for id, p := range s.sums {
			if c := r.channels[id]; c != nil {
				c.count, c.bytes = p.count, int64(p.bytes)
			}
		}
	}
	return nil
}

var errZero = errors.New("zeros")

// step handles the record at at and returns where the next begins.
func (s *scanner) step(at int64) (int64, error) {
	op, n, err := s.w.head(at)
	if err != nil {
		return 0, err
	}
	next := at + recordHead + n
	switch op {
	case 0:
		return 0, errZero
	case opFooter:
		s.footer = true
	case opSchema, opChannel, opMetadata, opTopics, opFinal:
		content, err := s.w.peek(at+recordHead, n)
		if err != nil {
			return 0, err
		}
		if err := s.take(op, content); err != nil {
			s.r.warn("byte %d: %v", at, err)
		}
	case opPack:
		return s.takePack(at, n)
	case opMessage:
		return next, s.message(at, n)
	case opChunk:
		s.chunk(block{off: at, length: recordHead + n, gap: s.gap, start: math.MinInt64, end: math.MaxInt64})
		s.gap, s.pack = next, nil
	}
	return next, nil
}

func (s *scanner) take(op byte, content []byte) error {
	switch op {
	case opTopics:
		f, ok := openOwn(content)
		if !ok {
			return errors.New("gobag's record of topics is damaged")
		}
		s.r.own, s.r.info.ROSDistro = true, f.text()
		ts := f.topics()
		if f.bad {
			return errors.New("gobag's record of topics is damaged")
		}
		return s.r.ownTopics(ts)
	case opFinal:
		final, ok := parseFinal(content)
		if !ok {
			return errors.New("gobag's closing record is damaged")
		}
		s.final, s.r.own, s.r.info.ROSDistro = true, true, final.distro
		return s.r.ownTopics(final.topics)
	}
	return s.r.record(op, content)
}

// takePack keeps a pack for the chunk that follows, or takes the messages that follow without a chunk.
func (s *scanner) takePack(at, n int64) (int64, error) {
	content, err := s.w.peek(at+recordHead, n)
	if err != nil {
		return 0, err
	}
	next := at + recordHead + n
	p, ok := parsePack(content)
	if !ok {
		return next, nil // the chunk will have none
	}
	p.perMessage = fields{}
	s.r.own = true
	s.durable(p.synced)
	if !p.raw {
		s.pack = &p
		return next, nil
	}
	if p.size < 0 || p.size > s.w.size-next {
		return 0, errBeyond
	}
	s.add(block{off: next, length: p.size, gap: s.gap, raw: true}, &p)
	s.gap = next + p.size
	return s.gap, nil
}

// add appends a block of ours.
func (s *scanner) add(k block, p *pack) {
	k.start, k.end, k.channels = p.start, p.end, make([]uint16, len(p.channels))
	for i, c := range p.channels {
		k.channels[i] = c.id
	}
	s.r.blocks = append(s.r.blocks, k)
	s.waiting = append(s.waiting, p)
	if len(s.waiting) > maxWaiting {
		s.check(len(s.r.blocks) - len(s.waiting))
		s.accept()
	}
}

// durable takes the waiting blocks that end before off as whole.
func (s *scanner) durable(off int64) {
	for len(s.waiting) > 0 {
		k := &s.r.blocks[len(s.r.blocks)-len(s.waiting)]
		if k.off+k.length > off {
			return
		}
		s.accept()
	}
}

// accept adds the sums of the first waiting block.
func (s *scanner) accept() {
	p := s.waiting[0]
	s.waiting = s.waiting[1:]
	for _, c := range p.channels {
		s.sum(c.id, c.count, c.bytes)
	}
	s.r.span(p.start, p.end)
}

func (s *scanner) sum(id uint16, count, bytes uint64) {
	p := s.sums[id]
	if p == nil {
		p = &packChannel{id: id}
		s.sums[id] = p
	}
	p.count += count
	p.bytes += bytes
}

// check reads block number i of ours and notes what is wrong with it.
func (s *scanner) check(i int) bool {
	k := &s.r.blocks[i]
	records, base, crc, err := s.r.records(k, &s.buf)
	if err == nil {
		_, err = s.r.index(i, records, base, crc)
	}
	k.bad = err
	return err == nil
}

// settle checks the blocks that are still waiting. In a file that was not closed the first that is not whole is its end,
// since nothing says that it had ever reached the disk.
func (s *scanner) settle() {
	for len(s.waiting) > 0 {
		i := len(s.r.blocks) - len(s.waiting)
		if s.r.info.Unclean && !s.final && !s.check(i) {
			k := &s.r.blocks[i]
			s.r.warn("unfinished file: the chunk at byte %d had not reached the disk (%v), %d bytes are not read", k.off, k.bad, s.r.size-k.off)
			s.r.blocks, s.waiting = s.r.blocks[:i], nil
			return
		}
		s.accept()
	}
}

// chunk takes a chunk: one of ours by its pack, others by reading them.
func (s *scanner) chunk(k block) {
	r := s.r
	if r.own {
		if s.pack != nil {
			s.add(k, s.pack)
			return
		}
		k.bad = r.corrupt(k.off, errors.New("gobag's record for the chunk is missing or damaged"))
	}
	i := len(r.blocks)
	records, _, _, err := r.records(&k, &s.buf)
	if err == nil {
		err = s.contents(&k, records)
	}
	if err != nil {
		if h, herr := s.chunkBounds(k.off); herr == nil && h.start <= h.end {
			k.start, k.end = h.start, h.end
		}
		k.bad, k.channels = err, nil
		r.warn("%v", err)
	} else if k.start > k.end {
		return // no messages
	}
	r.blocks = append(r.blocks[:i], k)
}

func (s *scanner) chunkBounds(off int64) (chunkHead, error) {
	b, err := s.w.peek(off+recordHead, 16)
	if err != nil {
		return chunkHead{}, err
	}
	return chunkHead{start: int64(le.Uint64(b)), end: int64(le.Uint64(b[8:]))}, nil
}

// contents counts the messages of a chunk of another program.
func (s *scanner) contents(k *block, records []byte) error {
	r := s.r
	k.start, k.end = math.MaxInt64, math.MinInt64
	sums := map[uint16]*packChannel{}
	err := eachRecord(records, func(op byte, _ int, content []byte) error {
		switch op {
		case opSchema, opChannel:
			return r.record(op, content)
		case opMessage:
			if len(content) < messageHead {
				return errors.New("message record is too short")
			}
			id, stamp := le.Uint16(content), int64(le.Uint64(content[6:]))
			if r.channels[id] == nil {
				return fmt.Errorf("message of channel %d, which no record before describes", id)
			}
			p := sums[id]
			if p == nil {
				p = &packChannel{id: id}
				sums[id] = p
				k.channels = append(k.channels, id)
			}
			p.count++
			p.bytes += uint64(len(content) - messageHead)
			k.start, k.end = min(k.start, stamp), max(k.end, stamp)
		}
		return nil
	})
	if err != nil {
		return r.corrupt(k.off, err)
	}
	for _, p := range sums {
		s.sum(p.id, p.count, p.bytes)
	}
	if len(sums) > 0 {
		r.span(k.start, k.end)
	}
	return nil
}

// message takes a message record outside chunks: into the run of those before it, if it follows at once.
func (s *scanner) message(at, n int64) error {
	r := s.r
	bad := func(err error) error {
		r.blocks = append(r.blocks, block{off: at, length: recordHead + n, raw: true, start: math.MinInt64, end: math.MaxInt64, bad: r.corrupt(at, err)})
		r.warn("byte %d: %v", at, err)
		return nil
	}
	if n < messageHead {
		return bad(errors.New("message record is too short"))
	}
	b, err := s.w.peek(at+recordHead, messageHead)
	if err != nil {
		return err
	}
	id, stamp := le.Uint16(b), int64(le.Uint64(b[6:]))
	if r.channels[id] == nil || r.own {
		return bad(fmt.Errorf("message of channel %d, which no record before describes", id))
	}
	s.sum(id, 1, uint64(n-messageHead))
	r.span(stamp, stamp)
	var k *block
	if len(r.blocks) > 0 {
		k = &r.blocks[len(r.blocks)-1]
	}
	if k == nil || !k.raw || k.bad != nil || k.off+k.length != at || k.length+recordHead+n > runSize {
		r.blocks = append(r.blocks, block{off: at, raw: true, start: stamp, end: stamp})
		k = &r.blocks[len(r.blocks)-1]
	}
	k.length += recordHead + n
	k.start, k.end = min(k.start, stamp), max(k.end, stamp)
	return nil
}
