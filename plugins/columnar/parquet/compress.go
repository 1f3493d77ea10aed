package parquet

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Compressor compresses pages. It belongs to one goroutine and may serve many writers one after the other.
type Compressor struct {
	enc       *zstd.Encoder
	out, rest []byte
	spare     [][]byte // see rope
}

// NewCompressor returns a compressor; the zero level is zstd.SpeedFastest.
func NewCompressor(level zstd.EncoderLevel) (*Compressor, error) {
	if level == 0 {
		level = zstd.SpeedFastest
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(1<<20), zstd.WithAllLitEntropyCompression(true), zstd.WithLowerEncoderMem(true),
		zstd.WithSingleSegment(true)) // so that every frame says its size
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return &Compressor{enc: enc}, nil
}

// zstd returns b as a frame. The result is valid until the next call.
func (c *Compressor) zstd(b []byte) []byte {
	c.out = c.enc.EncodeAll(b, c.out[:0])
	return c.out
}

// streams is zstd for a page that ends with byte streams of n bytes each, beginning at from: the lowest bytes of numbers
// first. Those that are noise are not tried.
func (c *Compressor) streams(b []byte, from, n int) []byte {
	at := from
	for n >= 512 && len(b)-at >= n && noise(b[at:at+n]) {
		at += n
	}
	if at == from || from > len(b)/32 { // much of it are levels, which want compression
		return c.zstd(b)
	}
	if at == len(b) {
		return b
	}
	c.rest = c.enc.EncodeAll(b[at:], c.rest[:0])
	var h zstd.Header
	if err := h.Decode(c.rest); err != nil {
		return c.zstd(b)
	}
	c.out = appendRawBlocks(appendFrameHead(c.out[:0], len(b)), b[:at], false)
	c.out = append(c.out, c.rest[h.HeaderSize:]...)
	return c.out
}

// noise says whether bytes look evenly spread in a sample.
func noise(b []byte) bool {
	var counts [256]uint32
	step := max(1, len(b)/1024) | 1
	n := uint32(0)
	for i := 0; i < len(b); i += step {
		counts[b[i]]++
		n++
	}
	var sum uint64
	for _, c := range counts {
		sum += uint64(c) * uint64(c)
	}
	// Even bytes give n + n²/256; a Huffman code saves a twentieth from about n²/150 on.
	return sum < uint64(n)+uint64(n)*uint64(n)/190
}

// tinyPage is the size below which compressing is not tried.
const tinyPage = 40

// appendStored appends b as a zstd frame of raw blocks (RFC 8878, 3.1.1): for pages that compression makes no smaller.
func appendStored(dst, b []byte) []byte {
	return appendRawBlocks(appendFrameHead(dst, len(b)), b, true)
}

func appendFrameHead(dst []byte, n int) []byte {
	const single = 1 << 5
	dst = append(dst, 0x28, 0xb5, 0x2f, 0xfd)
	switch {
	case n < 256:
		return append(dst, single, byte(n))
	case n < 256+1<<16:
		return le.AppendUint16(append(dst, single|1<<6), uint16(n-256))
	}
	return le.AppendUint32(append(dst, single|2<<6), uint32(n))
}

// appendRawBlocks appends b as blocks; the last one ends the frame if last is set.
func appendRawBlocks(dst, b []byte, last bool) []byte {
	const maxBlock = 128 << 10
	for {
		n := min(len(b), maxBlock)
		h := uint32(n << 3)
		if last && n == len(b) {
			h |= 1
		}
		dst = append(append(dst, byte(h), byte(h>>8), byte(h>>16)), b[:n]...)
		if b = b[n:]; len(b) == 0 {
			return dst
		}
	}
}

// storedSize is about what appendStored adds.
const storedSize = 9

// Decompressor is the counterpart of Compressor.
type Decompressor struct {
	dec *zstd.Decoder
	out []byte
}

// maxPage is the largest page that is read, uncompressed.
const maxPage = 1<<31 - 1

// NewDecompressor returns a decompressor. Close gives its memory back.
func NewDecompressor() (*Decompressor, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxPage))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return &Decompressor{dec: dec}, nil
}

// Close ends the use of d.
func (d *Decompressor) Close() { d.dec.Close() }

// zstd returns the content of a frame that must have size bytes. The result is valid until the next call.
func (d *Decompressor) zstd(b []byte, size int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	if !h.HasFCS || h.FrameContentSize != uint64(size) {
		return nil, fmt.Errorf("page: frame of %d bytes, there should be %d", h.FrameContentSize, size)
	}
	d.out = grown(d.out, size)
	out, err := d.dec.DecodeAll(b, d.out[:0])
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	if len(out) != size {
		return nil, fmt.Errorf("page: %d bytes, there should be %d", len(out), size)
	}
	d.out = out
	return out, nil
}
