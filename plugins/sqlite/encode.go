package sqlite

import (
	"encoding/binary"
	"math/bits"
)

// Records and cells as SQLite writes them (https://sqlite.org/fileformat2.html, sections 1.6 and 2.1).

// varintSize is the number of bytes of a varint.
func varintSize(v uint64) int {
	if v >= 1<<56 {
		return 9
	}
	return max(1, (bits.Len64(v)+6)/7)
}

// appendVarint appends v, big end first, seven bits a byte, eight in the ninth.
func appendVarint(b []byte, v uint64) []byte {
	n := varintSize(v)
	if n == 9 {
		for s := 57; s >= 8; s -= 7 {
			b = append(b, byte(v>>s)|0x80)
		}
		return append(b, byte(v))
	}
	for s := 7 * (n - 1); s > 0; s -= 7 {
		b = append(b, byte(v>>s)|0x80)
	}
	return append(b, byte(v)&0x7f)
}

// intSerial is the serial type of a whole number and how many bytes it takes: the least that hold it, none for 0 and 1.
func intSerial(v int64) (serial byte, size int) {
	if v == 0 || v == 1 {
		return byte(8 + v), 0
	}
	u := uint64(v ^ v>>63)
	switch {
	case u < 1<<7:
		return 1, 1
	case u < 1<<15:
		return 2, 2
	case u < 1<<23:
		return 3, 3
	case u < 1<<31:
		return 4, 4
	case u < 1<<47:
		return 5, 6
	}
	return 6, 8
}

// appendInt appends the size lowest bytes of v, big end first.
func appendInt(b []byte, v int64, size int) []byte {
	for s := 8 * (size - 1); s >= 0; s -= 8 {
		b = append(b, byte(v>>s))
	}
	return b
}

// appendMessageHead appends what stands before the payload in a row of messages: the head of the record, with NULL for
// the id, which is the row's number, then topic and stamp.
func appendMessageHead(b []byte, topic, stamp int64, payload int) []byte {
	ts, tn := intSerial(topic)
	ss, sn := intSerial(stamp)
	ds := uint64(12 + 2*payload)
	b = append(b, byte(4+varintSize(ds)), 0, ts, ss)
	b = appendVarint(b, ds)
	b = appendInt(b, topic, tn)
	return appendInt(b, stamp, sn)
}

// localSize is how many bytes of a record of a table lie on its leaf; the others lie on overflow pages.
func localSize(usable int, size int64) int {
	most := usable - 35
	if size <= int64(most) {
		return int(size)
	}
	least := (usable-12)*32/255 - 23
	local := least + int((size-int64(least))%int64(usable-4))
	if local > most {
		local = least
	}
	return local
}

// pageBuilder fills a page of a b-tree with cells, in order. Cells grow from the end of the page, their addresses from
// its beginning.
type pageBuilder struct {
	b     []byte // the page
	head  int    // 8 on leaves, 12 on interior pages
	cells int
	low   int // where the cells begin
}

func (p *pageBuilder) reset(kind byte) {
	p.head, p.cells, p.low = 8, 0, len(p.b)
	if kind == pageInterior || kind == pageIndexInterior {
		p.head = 12
	}
	p.b[0] = kind
}

// room says how large a cell may be.
func (p *pageBuilder) room() int { return p.low - p.head - 2*p.cells - 2 }

// add makes room for a cell of n bytes and returns where to write it.
func (p *pageBuilder) add(n int) []byte {
	p.low -= n
	binary.BigEndian.PutUint16(p.b[p.head+2*p.cells:], uint16(p.low))
	p.cells++
	return p.b[p.low : p.low+n]
}

// finish writes the head of the page; right is the right-most child of an interior page.
func (p *pageBuilder) finish(right uint32) []byte {
	clear(p.b[p.head+2*p.cells : p.low])
	p.b[1], p.b[2], p.b[7] = 0, 0, 0 // no free blocks, no fragments
	binary.BigEndian.PutUint16(p.b[3:], uint16(p.cells))
	binary.BigEndian.PutUint16(p.b[5:], uint16(p.low)) // 65536 is written as 0
	if p.head == 12 {
		binary.BigEndian.PutUint32(p.b[8:], right)
	}
	return p.b
}
