package parquet

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Compressor compresses pages. It belongs to one goroutine and may serve many writers one after the other.
type Compressor struct {
	enc *zstd.Encoder
	out []byte
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

// tinyPage is the size below which compressing is not tried.
const tinyPage = 40

// appendStored appends b as a zstd frame of raw blocks (RFC 8878, 3.1.1): for pages that compression makes no smaller.
func appendStored(dst, b []byte) []byte {
	const single, maxBlock = 1 << 5, 128 << 10
	dst = append(dst, 0x28, 0xb5, 0x2f, 0xfd)
	switch n := len(b); {
	case n < 256:
		dst = append(dst, single, byte(n))
	case n < 256+1<<16:
		dst = le.AppendUint16(append(dst, single|1<<6), uint16(n-256))
	default:
		dst = le.AppendUint32(append(dst, single|2<<6), uint32(n))
	}
	for {
		n := min(len(b), maxBlock)
		last := 0
		if n == len(b) {
			last = 1
		}
		h := uint32(n<<3 | last)
		dst = append(append(dst, byte(h), byte(h>>8), byte(h>>16)), b[:n]...)
		if b = b[n:]; last == 1 {
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
