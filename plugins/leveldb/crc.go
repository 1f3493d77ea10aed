package leveldb

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is how LevelDB stores a CRC-32C: rotated and shifted, so that the checksum of bytes that hold checksums stays
// a good one (leveldb util/crc32c.h).
func masked(crc uint32) uint32 { return crc>>15 | crc<<17 + 0xa282ead8 }

func checksum(b []byte) uint32 { return masked(crc32.Checksum(b, castagnoli)) }

// cutUvarint takes an unsigned number off b; ok is false where there is none.
func cutUvarint(b []byte) (n uint64, rest []byte, ok bool) {
	n, k := binary.Uvarint(b)
	if k <= 0 {
		return 0, nil, false
	}
	return n, b[k:], true
}

// cutBytes takes a length and as many bytes off b.
func cutBytes(b []byte) (s, rest []byte, ok bool) {
	n, b, ok := cutUvarint(b)
	if !ok || n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

func appendBytes[T string | []byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}
