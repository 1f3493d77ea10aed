package mcap

import (
	"encoding/binary"
	"hash/crc32"
)

// magic is at both ends of an MCAP file.
const magic = "\x89MCAP0\r\n"

// Opcodes of the records of MCAP, and ours from the range that is left to applications (0x80 and above).
const (
	opHeader          = 0x01
	opFooter          = 0x02
	opSchema          = 0x03
	opChannel         = 0x04
	opMessage         = 0x05
	opChunk           = 0x06
	opMessageIndex    = 0x07
	opChunkIndex      = 0x08
	opAttachment      = 0x09
	opAttachmentIndex = 0x0a
	opStatistics      = 0x0b
	opMetadata        = 0x0c
	opMetadataIndex   = 0x0d
	opSummaryOffset   = 0x0e
	opDataEnd         = 0x0f
	opPack            = 0x80 // what MCAP has no field for, of the messages of the chunk that follows
	opTopics          = 0x81 // topics that are new or have changed
	opFinal           = 0x82 // all topics with their sums, written at closing
)

const (
	recordHead  = 9  // opcode and length
	messageHead = 22 // channel, sequence, log time and publish time of a message record
	footerSize  = recordHead + 20
	maxMessage  = 1<<31 - 1<<20
)

var le = binary.LittleEndian

// begin appends the head of a record whose length end fills in.
func begin(b []byte, op byte) ([]byte, int) {
	b = append(b, op, 0, 0, 0, 0, 0, 0, 0, 0)
	return b, len(b)
}

// end sets the length of the record whose content begins at b[at].
func end(b []byte, at int) []byte {
	le.PutUint64(b[at-8:], uint64(len(b)-at))
	return b
}

func appendString(b []byte, s string) []byte {
	return append(le.AppendUint32(b, uint32(len(s))), s...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendMap appends a map of strings, given as pairs in their order.
func appendMap(b []byte, pairs ...string) []byte {
	at := len(b)
	b = le.AppendUint32(b, 0)
	for _, s := range pairs {
		b = appendString(b, s)
	}
	le.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// appendMetadata appends a metadata record with one key.
func appendMetadata(b []byte, name, key, value string) []byte {
	b, at := begin(b, opMetadata)
	return end(appendMap(appendString(b, name), key, value), at)
}

// fields takes a record's content apart. bad says that it was too short or a length in it too large; what is read
// from then on is zero.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) bytes(n uint64) []byte {
	if f.bad || n > uint64(len(f.b)) {
		f.bad, f.b = true, nil
		return nil
	}
	v := f.b[:n]
	f.b = f.b[n:]
	return v
}

func (f *fields) u8() byte {
	if v := f.bytes(1); v != nil {
		return v[0]
	}
	return 0
}

func (f *fields) u16() uint16 {
	if v := f.bytes(2); v != nil {
		return le.Uint16(v)
	}
	return 0
}

func (f *fields) u32() uint32 {
	if v := f.bytes(4); v != nil {
		return le.Uint32(v)
	}
	return 0
}

func (f *fields) u64() uint64 {
	if v := f.bytes(8); v != nil {
		return le.Uint64(v)
	}
	return 0
}

func (f *fields) str() string { return string(f.bytes(uint64(f.u32()))) }

// sub is a part with a length of four bytes before it: an array or map.
func (f *fields) sub() fields {
	s := fields{b: f.bytes(uint64(f.u32()))}
	s.bad = f.bad
	return s
}

func (f *fields) pairs() map[string]string {
	m := map[string]string{}
	s := f.sub()
	for len(s.b) > 0 {
		k := s.str()
		m[k] = s.str()
	}
	f.bad = f.bad || s.bad
	return m
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 {
		f.bad, f.b = true, nil
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) text() string { return string(f.bytes(f.uvarint())) }

// ownMagic begins the content of our records; the last four bytes are a CRC-32 of all before them.
const ownMagic = "GB\x01"

func beginOwn(b []byte, op byte) ([]byte, int) {
	b, at := begin(b, op)
	return append(b, ownMagic...), at
}

func endOwn(b []byte, at int) []byte {
	return end(le.AppendUint32(b, crc32.ChecksumIEEE(b[at:])), at)
}

// openOwn returns what is inside a record of ours; false if it is none, of another version, or damaged.
func openOwn(content []byte) (fields, bool) {
	n := len(content) - 4
	if n < len(ownMagic) || string(content[:len(ownMagic)]) != ownMagic || crc32.ChecksumIEEE(content[:n]) != le.Uint32(content[n:]) {
		return fields{}, false
	}
	return fields{b: content[len(ownMagic):n]}, true
}
