package rosbag1

import (
	"bufio"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"math"
)

// compression of a chunk.
type compression uint8

const (
	packNone compression = iota
	packLZ4
	packBZ2
)

const (
	wholeChunk = 4 << 20 // an uncompressed chunk up to this size is read as a whole
	firstAlloc = 1 << 20 // of an unpacked chunk; more when there is more
)

// block is a chunk of the file.
type block struct {
	off          int64 // of the chunk's record
	data, length int64 // its data in the file
	pack         compression
	size         int64 // unpacked, as its header says
	known        bool  // the three above are: its header was read
	start, end   int64 // stamps, both included
	order        uint64
	count        uint64
	counts       []connCount // as the index has them; nil unknown
	cut          bool        // the file ends within it
	bad          error       // a part of it, or all of it, cannot be read
	gone         bool        // all of it
}

type connCount struct{ conn, count uint32 }

// entry is a message of a chunk.
type entry struct {
	time int64
	off  uint32 // of the payload in the chunk
	n    uint32
	conn uint32
	seq  uint32 // among the chunk's messages
}

// readChunkHead fills what the header of the chunk record at b.off says.
func (r *reader) readChunkHead(b *block) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.known {
		return nil
	}
	var h header
	p, err := readHead(&r.head, b.off, &h)
	if err != nil && !(errors.Is(err, errBeyond) && p.data > 0) {
		return err
	}
	return b.takeHead(&h, p, r.size)
}

func (b *block) takeHead(h *header, p place, fileSize int64) error {
	if h.op != opChunk {
		return fmt.Errorf("a record of kind %d where the index has a chunk", h.op)
	}
	if !h.hasSize {
		return errors.New("chunk without a size")
	}
	b.data, b.length, b.size = p.data, p.length, int64(h.chunkSize)
	if p.next > fileSize {
		b.cut, b.length = true, fileSize-p.data
	}
	switch string(h.compression) {
	case "none":
		b.pack = packNone
		if !b.cut && b.size != b.length {
			return fmt.Errorf("chunk of %d bytes in a record of %d", b.size, b.length)
		}
	case "lz4":
		b.pack = packLZ4
	case "bz2":
		b.pack = packBZ2
	default:
		return fmt.Errorf("chunk compressed with %.20q, known are none, lz4 and bz2", h.compression)
	}
	b.known = true
	return nil
}

// content returns the chunk: in memory, in place of buf, or for a large one without compression the file.
func (r *reader) content(b *block, buf []byte) (source, []byte, error) {
	if err := r.readChunkHead(b); err != nil {
		return nil, buf, err
	}
	if b.pack == packNone {
		if b.length > wholeChunk {
			return &window{f: r.f, base: b.data, length: b.length}, buf, nil
		}
		buf = grow(buf, b.length)
		if _, err := r.f.ReadAt(buf, b.data); err != nil {
			return nil, buf, err
		}
		return memory(buf), buf, nil
	}
	in := bufio.NewReaderSize(io.NewSectionReader(r.f, b.data, b.length), 64<<10)
	buf = grow(buf, 0)
	if want := min(b.size, firstAlloc); int64(cap(buf)) < want {
		buf = make([]byte, 0, want)
	}
	var err error
	if b.pack == packLZ4 {
		buf, err = unpackLZ4(buf, in, b.size)
	} else {
		buf, err = unpackBZ2(buf, in, b.size)
	}
	if err == nil && int64(len(buf)) != b.size {
		err = fmt.Errorf("chunk unpacks to %d bytes, its header says %d", len(buf), b.size)
	}
	if err == nil {
		if _, more := in.ReadByte(); more == nil && b.pack == packLZ4 {
			err = errors.New("lz4: bytes behind the end of the frame")
		}
	}
	if err != nil && !b.cut {
		return nil, buf, err
	}
	return memory(buf), buf, nil
}

// grow returns buf with length n, newly made where it is too small.
func grow(buf []byte, n int64) []byte {
	if int64(cap(buf)) < n {
		return make([]byte, n)
	}
	return buf[:n]
}

// unpackBZ2 appends the content of a bzip2 stream to dst, at most limit bytes.
func unpackBZ2(dst []byte, in io.Reader, limit int64) ([]byte, error) {
	z := bzip2.NewReader(in)
	begin := len(dst)
	for {
		if len(dst) == cap(dst) {
			if int64(len(dst)-begin) >= limit {
				var one [1]byte
				if n, err := z.Read(one[:]); n > 0 {
					return dst, errors.New("bz2: the chunk unpacks to more than its header says")
				} else if err != nil && !errors.Is(err, io.EOF) {
					return dst, fmt.Errorf("bz2: %w", err)
				}
				return dst, nil
			}
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := z.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if int64(len(dst)-begin) > limit {
			return dst, errors.New("bz2: the chunk unpacks to more than its header says")
		}
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return dst, fmt.Errorf("bz2: %w", err)
		}
	}
}

// parse lists the messages of a chunk and registers its connections. After an error the entries before it are returned.
func (r *reader) parse(s source, learn bool) ([]entry, error) {
	var out []entry
	var h header
	for off := int64(0); off < s.size(); {
		p, err := readHead(s, off, &h)
		if err != nil {
			return out, fmt.Errorf("record at byte %d of the chunk: %w", off, err)
		}
		switch h.op {
		case opMessage:
			if !h.hasConn || !h.hasTime {
				return out, fmt.Errorf("message at byte %d of the chunk has no connection or no time", off)
			}
			if p.data > math.MaxUint32 || len(out) == math.MaxUint32 {
				return out, errors.New("the chunk is too large")
			}
			out = append(out, entry{time: h.time, off: uint32(p.data), n: uint32(p.length), conn: h.conn, seq: uint32(len(out))})
		case opConnection:
			if err := r.takeConnection(s, &h, p, learn); err != nil {
				return out, fmt.Errorf("byte %d of the chunk: %w", off, err)
			}
		default:
			return out, fmt.Errorf("record of kind %d at byte %d of a chunk", h.op, off)
		}
		off = p.next
	}
	return out, nil
}

// takeConnection registers the connection of a record. One that contradicts what is known of the number is an error.
func (r *reader) takeConnection(s source, h *header, p place, learn bool) error {
	if !h.hasConn {
		return errors.New("connection record without a number")
	}
	if p.length > maxConnection {
		return fmt.Errorf("connection record of %d bytes", p.length)
	}
	id := h.conn
	topic := string(h.topic) // peek may replace the bytes
	data, err := s.peek(p.data, p.length)
	if err != nil {
		return err
	}
	c, err := parseConnection([]byte(topic), data)
	if err != nil {
		return err
	}
	have, ok := r.conns[id]
	switch {
	case !ok && learn:
		r.conns[id] = &c
		r.connOrder = append(r.connOrder, id)
	case !ok:
		return fmt.Errorf("connection %d is not in the index", id)
	case have.topic != c.topic || have.typ != c.typ || have.md5 != c.md5:
		return &conflictError{id}
	}
	return nil
}

// conflictError says that two records of a connection differ.
type conflictError struct{ conn uint32 }

func (e *conflictError) Error() string {
	return fmt.Sprintf("connection %d stands in the file with two contents", e.conn)
}
