package mcap

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/gobag/gobag/plugin"
)

const (
	maxInflated = 1 << 30   // of a compressed chunk; what a damaged or hostile one may make of a few bytes
	maxWindow   = 64 << 20  // of a zstd frame
	maxRecords  = 1<<32 - 1 // of any chunk
	chunkFixed  = 9 + 40    // of a chunk record before its records, without the name of the compression
)

// block is a chunk, or a run of message records outside chunks.
type block struct {
	off, length int64 // the chunk record with its head, or all records of the run
	gap         int64 // our pack lies between here and off
	start, end  int64
	channels    []uint16 // that have messages in it; nil unknown
	raw         bool
	bad         error // why it cannot be read
}

// entry is a message of a block.
type entry struct {
	time   int64
	order  uint64
	off, n uint32 // content of the message record in the block's records
	topic  plugin.TopicID
	source uint32
	high   uint32 // upper half of the sequence number
	noSend bool
}

// blockIndex is what is known of a block whose records were checked. It does not change.
type blockIndex struct {
	entries []entry // by time and order
	base    int64   // file offset of the records; -1 if they are compressed
}

// buffers are what a block is read into.
type buffers struct {
	raw, out []byte
	zstd     *zstd.Decoder
	lz4      *lz4.Reader
}

func (b *buffers) close() {
	if b.zstd != nil {
		b.zstd.Close()
	}
}

// grow returns b with length n.
func grow(b []byte, n int64) []byte {
	if int64(cap(b)) < n {
		return make([]byte, n)
	}
	return b[:n]
}

func (r *reader) corrupt(off int64, err error) error {
	return &plugin.CorruptError{Path: r.path, Offset: off, Err: err}
}

// records reads the records of a block, checks them, and returns them with their file offset (-1 if compressed).
func (r *reader) records(k *block, buf *buffers) ([]byte, int64, uint32, error) {
	fail := func(err error) ([]byte, int64, uint32, error) { return nil, 0, 0, r.corrupt(k.off, err) }
	if k.bad != nil {
		return nil, 0, 0, k.bad
	}
	if k.length > r.size-k.off {
		return fail(errBeyond)
	}
	buf.raw = grow(buf.raw, k.length)
	if n, err := r.f.ReadAt(buf.raw, k.off); err != nil && int64(n) < k.length {
		if errors.Is(err, io.EOF) {
			return fail(fmt.Errorf("the file ends at byte %d: %w", k.off+int64(n), err))
		}
		return nil, 0, 0, fmt.Errorf("read storage %s: %w", r.path, err)
	}
	if k.raw {
		return buf.raw, k.off, 0, nil
	}
	c, err := parseChunk(buf.raw)
	if err != nil {
		return fail(err)
	}
	records, base := c.records, k.off+int64(len(buf.raw)-len(c.records))-c.pad
	if c.compression != "" {
		if records, err = buf.inflate(&c); err != nil {
			return fail(err)
		}
		base = -1
	}
	if uint64(len(records)) != c.size {
		return fail(fmt.Errorf("chunk has %d bytes of records, it should have %d", len(records), c.size))
	}
	if c.crc != 0 && crc32.ChecksumIEEE(records) != c.crc {
		return fail(errors.New("checksum of chunk is wrong"))
	}
	return records, base, c.crc, nil
}

// chunkHead is a chunk record.
type chunkHead struct {
	start, end  int64
	size        uint64
	crc         uint32
	compression string
	records     []byte
	pad         int64 // unknown bytes behind the records
}

// parseChunk takes a whole chunk record apart, head included.
func parseChunk(b []byte) (chunkHead, error) {
	if len(b) < chunkFixed || b[0] != opChunk || le.Uint64(b[1:]) != uint64(len(b)-recordHead) {
		return chunkHead{}, errors.New("no chunk where the index says there is one")
	}
	f := fields{b: b[recordHead:]}
	c := chunkHead{start: int64(f.u64()), end: int64(f.u64()), size: f.u64(), crc: f.u32(), compression: f.str()}
	c.records = f.bytes(f.u64())
	if f.bad {
		return c, errors.New("chunk is too short for what it holds")
	}
	c.pad = int64(len(f.b))
	if c.size > maxRecords {
		return c, fmt.Errorf("chunk of %d bytes of records is too large", c.size)
	}
	return c, nil
}

// inflate decompresses a chunk. It allocates only as the bytes come.
func (b *buffers) inflate(c *chunkHead) ([]byte, error) {
	if c.size > maxInflated {
		return nil, fmt.Errorf("compressed chunk of %d bytes, at most %d are read", c.size, maxInflated)
	}
	var src io.Reader
	switch c.compression {
	case "zstd":
		if b.zstd == nil {
			var err error
			if b.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow)); err != nil {
				return nil, fmt.Errorf("zstd: %w", err)
			}
		}
		if err := b.zstd.Reset(bytes.NewReader(c.records)); err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		src = b.zstd
	case "lz4":
		if b.lz4 == nil {
			b.lz4 = lz4.NewReader(nil)
			if err := b.lz4.Apply(lz4.ConcurrencyOption(1)); err != nil {
				return nil, fmt.Errorf("lz4: %w", err)
			}
		}
		b.lz4.Reset(bytes.NewReader(c.records))
		src = b.lz4
	default:
		return nil, fmt.Errorf("chunk is compressed with %q, known are zstd and lz4", c.compression)
	}
	out := b.out[:0]
	for {
		if len(out) == cap(out) {
			out = slices.Grow(out, int(min(max(uint64(cap(out)), 64<<10), c.size-min(c.size, uint64(len(out)))+1)))
		}
		n, err := src.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if uint64(len(out)) > c.size {
			return nil, fmt.Errorf("chunk has more than the %d bytes of records it should have", c.size)
		}
		if errors.Is(err, io.EOF) {
			b.out = out
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decompress chunk with %s: %w", c.compression, err)
		}
	}
}

// index finds the messages in the records of block number i.
func (r *reader) index(i int, records []byte, base int64, crc uint32) (*blockIndex, error) {
	k := &r.blocks[i]
	var p pack
	if r.own {
		var err error
		if p, err = r.packOf(k); err != nil {
			return nil, err
		}
		if p.size != int64(len(records)) || p.raw != k.raw || !k.raw && p.crc != crc {
			return nil, r.corrupt(k.off, errors.New("chunk and the gobag record before it do not belong together"))
		}
		if k.raw && p.crc != 0 && p.crc != crc32.ChecksumIEEE(records) {
			return nil, r.corrupt(k.off, errors.New("checksum of messages is wrong"))
		}
	}
	x := &blockIndex{base: base}
	order := uint64(i+1) << 32
	err := eachRecord(records, func(op byte, at int, content []byte) error {
		if op != opMessage {
			return nil
		}
		if len(content) < messageHead {
			return errors.New("message record is too short")
		}
		e := entry{time: int64(le.Uint64(content[6:])), order: order, off: uint32(at), n: uint32(len(content))}
		id := le.Uint16(content)
		if e.topic = r.byChannel[id]; e.topic == 0 {
			return fmt.Errorf("message of channel %d, which the file does not describe", id)
		}
		order++
		if r.own {
			p.next(&e, len(x.entries) == 0)
		}
		x.entries = append(x.entries, e)
		return nil
	})
	if err == nil && r.own && (p.perMessage.bad || len(p.perMessage.b) != 0 || p.messages != uint64(len(x.entries))) {
		err = errors.New("chunk and the gobag record before it do not belong together")
	}
	if err != nil {
		return nil, r.corrupt(k.off, err)
	}
	byTime := func(a, b entry) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.order, b.order)) }
	if !slices.IsSortedFunc(x.entries, byTime) {
		slices.SortFunc(x.entries, byTime)
	}
	return x, nil
}

// next completes e by what the pack says of its next message. p.order is the number of the message before.
func (p *pack) next(e *entry, first bool) {
	f := &p.perMessage
	bits := f.u8()
	e.source = uint32(f.uvarint())
	e.noSend = bits&packSend == 0
	if bits&packHigh != 0 {
		e.high = uint32(f.uvarint())
	}
	switch {
	case bits&packOrder != 0:
		p.order += f.uvarint()
	case !first:
		p.order++
	}
	e.order = p.order
}

// packOf finds the pack of a block of ours.
func (r *reader) packOf(k *block) (pack, error) {
	w := window{f: r.f, size: k.off}
	var p pack
	found := false
	for at := k.gap; at < k.off; {
		op, n, err := w.head(at)
		if err != nil {
			return pack{}, r.corrupt(at, fmt.Errorf("record before a chunk: %w", err))
		}
		if op == opPack {
			b, err := w.peek(at+recordHead, n)
			if err != nil {
				return pack{}, r.corrupt(at, err)
			}
			if p, found = parsePack(bytes.Clone(b)); !found {
				return pack{}, r.corrupt(at, errors.New("checksum of gobag's record for a chunk is wrong"))
			}
		}
		at += recordHead + n
	}
	if !found {
		return pack{}, r.corrupt(k.off, errors.New("gobag's record for a chunk is missing"))
	}
	return p, nil
}

// eachRecord calls f with every record in b: its opcode, where its content begins, and the content.
func eachRecord(b []byte, f func(op byte, at int, content []byte) error) error {
	for at := 0; at < len(b); {
		if len(b)-at < recordHead || le.Uint64(b[at+1:]) > uint64(len(b)-at-recordHead) {
			return fmt.Errorf("record at %d of the chunk is cut off", at)
		}
		n := int(le.Uint64(b[at+1:]))
		from := at + recordHead
		if err := f(b[at], from, b[from:from+n]); err != nil {
			return err
		}
		at = from + n
	}
	return nil
}
