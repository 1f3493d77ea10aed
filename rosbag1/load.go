package rosbag1

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
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
