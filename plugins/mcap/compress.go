package mcap

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// compressor compresses chunks of one writer.
type compressor struct {
	name string
	zstd *zstd.Encoder
	lz4  *lz4.Writer
	out  bytes.Buffer
}

func newCompressor(s settings) (*compressor, error) {
	c := &compressor{name: s.compression}
	switch s.compression {
	case "zstd":
		window := 1 << 20
		for int64(window) < s.chunkSize && window < 8<<20 {
			window <<= 1
		}
		var err error
		c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(s.level), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window),
			zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
	case "lz4":
		level := map[zstd.EncoderLevel]lz4.CompressionLevel{zstd.SpeedBetterCompression: lz4.Level5, zstd.SpeedBestCompression: lz4.Level9}[s.level]
		c.lz4 = lz4.NewWriter(nil)
		if err := c.lz4.Apply(lz4.ConcurrencyOption(1), lz4.BlockSizeOption(lz4Block(s.chunkSize)), lz4.ChecksumOption(false), lz4.CompressionLevelOption(level)); err != nil {
			return nil, fmt.Errorf("lz4: %w", err)
		}
	}
	return c, nil
}

// compress returns a frame of pieces of size bytes in all, valid until the next call.
func (c *compressor) compress(pieces [][]byte, size int64) ([]byte, error) {
	c.out.Reset()
	var w interface {
		Write([]byte) (int, error)
		Close() error
	} = c.lz4
	if c.zstd != nil {
		c.zstd.ResetContentSize(&c.out, size)
		w = c.zstd
	} else {
		c.lz4.Reset(&c.out)
	}
	var err error
	for _, p := range pieces {
		if err == nil {
			_, err = w.Write(p)
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compress chunk with %s: %w", c.name, err)
	}
	return c.out.Bytes(), nil
}

// lz4Block is the smallest block of lz4 that takes a chunk whole.
func lz4Block(chunk int64) lz4.BlockSize {
	for _, b := range []lz4.BlockSize{lz4.Block64Kb, lz4.Block256Kb, lz4.Block1Mb} {
		if int64(b) >= chunk {
			return b
		}
	}
	return lz4.Block4Mb
}
