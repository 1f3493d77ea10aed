package rosbag1

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

var le = binary.LittleEndian

// The kinds of records.
const (
	opMessage    = 2
	opBagHeader  = 3
	opIndex      = 4
	opChunk      = 5
	opChunkInfo  = 6
	opConnection = 7
)

const (
	magic         = "#ROSBAG V2.0\n"
	magicPrefix   = "#ROSBAG V"
	maxHeader     = 1 << 20  // bytes of a record's header
	maxConnection = 16 << 20 // bytes of a connection record's data: the definition is in it
)

// errBeyond says that a record reaches beyond the end of what holds it.
var errBeyond = errors.New("reaches beyond the end")

// source is what records are parsed from: a part of the file, or an unpacked chunk.
type source interface {
	peek(off int64, n int64) ([]byte, error) // valid until the next call; errBeyond
	size() int64
}

// memory is an unpacked chunk.
type memory []byte

func (m memory) size() int64 { return int64(len(m)) }
func (m memory) peek(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > int64(len(m)) || n > int64(len(m))-off {
		return nil, errBeyond
	}
	return m[off : off+n], nil
}

// window reads a part of a file piece by piece.
type window struct {
	f      *os.File
	base   int64 // of the part in the file
	length int64
	b      []byte
	at     int64 // of b[0] in the part
}

const windowStep = 64 << 10

func (w *window) size() int64 { return w.length }
func (w *window) peek(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > w.length || n > w.length-off {
		return nil, errBeyond
	}
	if off < w.at || off+n > w.at+int64(len(w.b)) {
		step := min(max(windowStep, n), w.length-off)
		if int64(cap(w.b)) < step || int64(cap(w.b)) > 1<<20 && step <= windowStep {
			w.b = make([]byte, step)
		}
		w.b, w.at = w.b[:step], off
		if k, err := w.f.ReadAt(w.b, w.base+off); err != nil && int64(k) < n {
			w.b = w.b[:0]
			if errors.Is(err, io.EOF) {
				err = errBeyond
			}
			return nil, err
		} else if int64(k) < step {
			w.b = w.b[:k]
		}
	}
	return w.b[off-w.at:][:n], nil
}

// header is what the header of a record says. Fields of other kinds of records are left alone.
type header struct {
	op                                             int // -1 missing
	conn, count, version, chunkSize, chunks, conns uint32
	hasConn, hasTime, hasSize                      bool
	time, start, end                               int64 // ns since the Unix epoch
	indexPos, chunkPos                             uint64
	compression, topic, encryptor                  []byte // of the header's bytes
}

// parse reads the fields "name=value", each with its length in front.
func (h *header) parse(b []byte) error {
	*h = header{op: -1}
	for len(b) > 0 {
		if len(b) < 4 {
			return errors.New("header ends within the length of a field")
		}
		n := le.Uint32(b)
		if b = b[4:]; uint64(n) > uint64(len(b)) {
			return fmt.Errorf("header field of %d bytes reaches beyond the header", n)
		}
		field := b[:n]
		b = b[n:]
		eq := 0
		for eq < len(field) && field[eq] != '=' {
			eq++
		}
		if eq == len(field) || eq == 0 {
			return errors.New("header field without a name")
		}
		if err := h.set(field[:eq], field[eq+1:]); err != nil {
			return err
		}
	}
	if h.op < 0 {
		return errors.New("header does not say which kind of record it is")
	}
	return nil
}

func (h *header) set(name, v []byte) error {
	need := func(n int) error {
		if len(v) != n {
			return fmt.Errorf("header field %.20q has %d bytes, want %d", name, len(v), n)
		}
		return nil
	}
	u32 := func(to *uint32) error {
		if err := need(4); err != nil {
			return err
		}
		*to = le.Uint32(v)
		return nil
	}
	stamp := func(to *int64) error {
		if err := need(8); err != nil {
			return err
		}
		*to = rosTime(v)
		return nil
	}
	switch string(name) {
	case "op":
		if err := need(1); err != nil {
			return err
		}
		h.op = int(v[0])
	case "conn":
		h.hasConn = true
		return u32(&h.conn)
	case "time":
		h.hasTime = true
		return stamp(&h.time)
	case "count":
		return u32(&h.count)
	case "ver":
		return u32(&h.version)
	case "size":
		h.hasSize = true
		return u32(&h.chunkSize)
	case "chunk_count":
		return u32(&h.chunks)
	case "conn_count":
		return u32(&h.conns)
	case "start_time":
		return stamp(&h.start)
	case "end_time":
		return stamp(&h.end)
	case "index_pos":
		if err := need(8); err != nil {
			return err
		}
		h.indexPos = le.Uint64(v)
	case "chunk_pos":
		if err := need(8); err != nil {
			return err
		}
		h.chunkPos = le.Uint64(v)
	case "compression":
		h.compression = v
	case "topic":
		h.topic = v
	case "encryptor":
		h.encryptor = v
	}
	return nil
}

// rosTime is seconds and nanoseconds, 32 bits each. Any such pair fits.
func rosTime(b []byte) int64 { return int64(le.Uint32(b))*1_000_000_000 + int64(le.Uint32(b[4:])) }

// place is where a record's data lies in its source.
type place struct{ data, length, next int64 }

// readHead reads the header of the record at off. A record whose data reaches beyond the end of the source gives
// errBeyond with h and p filled in (p.length as the record says); so does one that is cut within its header, without.
func readHead(s source, off int64, h *header) (p place, err error) {
	b, err := s.peek(off, 4)
	if err != nil {
		return p, err
	}
	n := int64(le.Uint32(b))
	if n > maxHeader {
		return p, fmt.Errorf("record header of %d bytes", n)
	}
	if b, err = s.peek(off+4, n+4); err != nil {
		return p, err
	}
	if err := h.parse(b[:n]); err != nil {
		return p, err
	}
	p.data = off + 4 + n + 4
	p.length = int64(le.Uint32(b[n:]))
	p.next = p.data + p.length
	if p.next > s.size() {
		return p, errBeyond
	}
	return p, nil
}

// connection is what a connection record says.
type connection struct {
	topic, typ, md5, definition, caller string
	latching                            bool
}

// parseConnection reads the data of a connection record: a header again.
func parseConnection(topic, data []byte) (connection, error) {
	c := connection{topic: string(topic)}
	own := ""
	for b := data; len(b) > 0; {
		if len(b) < 4 || uint64(le.Uint32(b)) > uint64(len(b)-4) {
			return c, errors.New("connection record is damaged")
		}
		field := string(b[4 : 4+le.Uint32(b)])
		b = b[4+len(field):]
		eq := 0
		for eq < len(field) && field[eq] != '=' {
			eq++
		}
		if eq == len(field) {
			return c, errors.New("connection record has a field without a name")
		}
		switch v := field[eq+1:]; field[:eq] {
		case "type":
			c.typ = v
		case "md5sum":
			c.md5 = v
		case "message_definition":
			c.definition = v
		case "callerid":
			c.caller = v
		case "latching":
			c.latching = v == "1"
		case "topic":
			own = v
		}
	}
	if c.topic == "" {
		c.topic = own
	}
	if c.topic == "" || c.typ == "" {
		return c, errors.New("connection record without topic or type")
	}
	return c, nil
}
