package rosbag1

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// The LZ4 frame format, as far as bags use it (roslz4): blocks of at most 4 MiB, independent or linked, with optional
// checksums. Source: lz4_Frame_format.md 1.6.3 and lz4_Block_format.md of the LZ4 project.

const (
	lz4Magic    = 0x184D2204
	lz4MaxBlock = 4 << 20
)

var errLZ4 = errors.New("lz4: data is damaged")

// unpackLZ4 appends the content of one frame to dst, at most limit bytes of it. What it has appended before an error is
// returned with it.
func unpackLZ4(dst []byte, in *bufio.Reader, limit int64) ([]byte, error) {
	head := make([]byte, 7, 19)
	if _, err := io.ReadFull(in, head); err != nil {
		return dst, lz4Cut(err)
	}
	flags, bd := head[4], head[5]
	if le.Uint32(head) != lz4Magic || flags>>6 != 1 || flags&0x02 != 0 || bd&0x8f != 0 || bd>>4 < 4 {
		return dst, errors.New("lz4: not a frame that is known")
	}
	if flags&0x01 != 0 {
		return dst, errors.New("lz4: the frame needs a dictionary")
	}
	if flags&0x08 != 0 { // content size in front of the header's checksum
		head = head[:15]
		if _, err := io.ReadFull(in, head[7:]); err != nil {
			return dst, lz4Cut(err)
		}
	}
	if sum := xxh32(head[4 : len(head)-1]); byte(sum>>8) != head[len(head)-1] {
		return dst, errors.New("lz4: wrong checksum of the frame's header")
	}
	maxBlock := int64(1) << (8 + 2*uint(bd>>4))
	blockSum, contentSum, linked := flags&0x10 != 0, flags&0x04 != 0, flags&0x20 == 0
	begin := len(dst)
	var block []byte
	word := head[:4]
	for {
		if _, err := io.ReadFull(in, word); err != nil {
			return dst, lz4Cut(err)
		}
		n := le.Uint32(word)
		if n == 0 {
			break
		}
		plain := n>>31 != 0
		n &^= 1 << 31
		if int64(n) > maxBlock {
			return dst, fmt.Errorf("lz4: block of %d bytes, more than the frame's %d", n, maxBlock)
		}
		if cap(block) < int(n) {
			block = make([]byte, n)
		}
		block = block[:n]
		if _, err := io.ReadFull(in, block); err != nil {
			return dst, lz4Cut(err)
		}
		if blockSum {
			if _, err := io.ReadFull(in, word); err != nil {
				return dst, lz4Cut(err)
			}
			if le.Uint32(word) != xxh32(block) {
				return dst, errors.New("lz4: wrong checksum of a block")
			}
		}
		history := len(dst)
		if linked {
			history = max(begin, len(dst)-64<<10)
		}
		most := min(maxBlock, limit-int64(len(dst)-begin))
		var out []byte
		var err error
		if plain {
			if int64(len(block)) > most {
				return dst, errLZ4
			}
			out = append(dst, block...)
		} else if out, err = unpackBlock(dst, block, history, most); err != nil {
			return dst, err
		}
		dst = out
	}
	if contentSum {
		if _, err := io.ReadFull(in, word); err != nil {
			return dst, lz4Cut(err)
		}
		if le.Uint32(word) != xxh32(dst[begin:]) {
			return dst[:begin], errors.New("lz4: wrong checksum of the content")
		}
	}
	return dst, nil
}

func lz4Cut(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("lz4: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// unpackBlock appends the content of a block to dst, at most most bytes. Matches may reach back to dst[history:].
func unpackBlock(dst, b []byte, history int, most int64) ([]byte, error) {
	end := len(dst) + int(most)
	count := func(n int) (int, bool) { // a length that goes on in further bytes
		for len(b) > 0 {
			c := b[0]
			b = b[1:]
			if n += int(c); c != 255 {
				return n, true
			}
		}
		return 0, false
	}
	for len(b) > 0 {
		token := b[0]
		b = b[1:]
		literals := int(token >> 4)
		if literals == 15 {
			var ok bool
			if literals, ok = count(15); !ok {
				return dst, errLZ4
			}
		}
		if literals > len(b) || literals > end-len(dst) {
			return dst, errLZ4
		}
		dst = append(dst, b[:literals]...)
		if b = b[literals:]; len(b) == 0 {
			return dst, nil // the last sequence has literals only
		}
		if len(b) < 2 {
			return dst, errLZ4
		}
		offset := int(le.Uint16(b))
		b = b[2:]
		n := int(token & 15)
		if n == 15 {
			var ok bool
			if n, ok = count(15); !ok {
				return dst, errLZ4
			}
		}
		n += 4
		if offset == 0 || offset > len(dst)-history || n > end-len(dst) {
			return dst, errLZ4
		}
		for n > 0 { // the match may overlap what it makes
			from := len(dst) - offset
			k := min(n, offset)
			dst = append(dst, dst[from:from+k]...)
			n -= k
		}
	}
	return dst, errLZ4 // a block ends with literals
}

// xxh32 is xxHash32 with seed 0.
func xxh32(b []byte) uint32 {
	const (
		p1 = 2654435761
		p2 = 2246822519
		p3 = 3266489917
		p4 = 668265263
		p5 = 374761393
	)
	n := uint32(len(b))
	var h uint32
	if len(b) >= 16 {
		var seed uint32
		v := [4]uint32{seed + p1, seed, seed, seed}
		v[0] += p2
		v[1] += p2
		v[3] -= p1
		for ; len(b) >= 16; b = b[16:] {
			for i := range v {
				v[i] = bits.RotateLeft32(v[i]+le.Uint32(b[4*i:])*p2, 13) * p1
			}
		}
		h = bits.RotateLeft32(v[0], 1) + bits.RotateLeft32(v[1], 7) + bits.RotateLeft32(v[2], 12) + bits.RotateLeft32(v[3], 18)
	} else {
		h = p5
	}
	h += n
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+le.Uint32(b)*p3, 17) * p4
	}
	for _, c := range b {
		h = bits.RotateLeft32(h+uint32(c)*p5, 11) * p1
	}
	h ^= h >> 15
	h *= p2
	h ^= h >> 13
	h *= p3
	return h ^ h>>16
}
