package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Pages of a table b-tree (https://sqlite.org/fileformat2.html, sections 1.6 and 2.1), read without SQLite, which stops
// at the first damage that it meets.
const (
	pageLeaf     = 0x0d
	pageInterior = 0x05

	maxDepth   = 32       // of a b-tree; real ones have 5
	maxColumns = 16       // of a record that is looked at
	maxText    = 64 << 20 // bytes of a record that is no message
)

var errCell = errors.New("no row that can be read")

// pages reads the pages of a view.
type pages struct {
	v      *view
	usable int // bytes of a page without those that are reserved
}

func (p *pages) count() uint32 { return uint32(min(p.v.pages, math.MaxUint32)) }

// read returns page n, from 1 on, in buf.
func (p *pages) read(n uint32, buf []byte) ([]byte, error) {
	b := buf[:p.v.pageSize]
	if _, err := p.v.ReadAt(b, (int64(n)-1)*p.v.pageSize); err != nil {
		return nil, err
	}
	return b[:p.usable], nil
}

// header returns where the b-tree header of a page begins.
func header(n uint32) int {
	if n == 1 {
		return headerSize
	}
	return 0
}

// cellOffsets returns where the cells of a page begin; those that cannot be right are left out.
func cellOffsets(n uint32, b []byte) []int {
	h := header(n)
	size := 8
	if b[h] == pageInterior || b[h] == pageIndexInterior {
		size = 12
	}
	count := int(binary.BigEndian.Uint16(b[h+3:]))
	var out []int
	for i := range count {
		at := h + size + 2*i
		if at+2 > len(b) {
			break
		}
		off := int(binary.BigEndian.Uint16(b[at:]))
		if off >= h+size && off < len(b) {
			out = append(out, off)
		}
	}
	return out
}

// childPages returns the pages below an interior page.
func childPages(n uint32, b []byte) []uint32 {
	h := header(n)
	out := []uint32{}
	for _, off := range cellOffsets(n, b) {
		if off+4 <= len(b) {
			out = append(out, binary.BigEndian.Uint32(b[off:]))
		}
	}
	return append(out, binary.BigEndian.Uint32(b[h+8:])) // the right-most
}

// cell is a row on a leaf: where its record lies.
type cell struct {
	rowid    int64
	size     int64  // of the record
	local    []byte // the part on the leaf
	overflow uint32 // the page with the next part; 0 = there is none
}

// parseCell reads the head of the cell at off.
func (p *pages) parseCell(b []byte, off int) (cell, error) {
	c, err := parseLocal(b[off:], p.usable)
	if err != nil || c.size > p.v.pages*int64(p.usable) {
		return cell{}, errCell
	}
	return c, nil
}

// parseLocal reads what lies on a leaf of the row that begins b.
func parseLocal(b []byte, usable int) (cell, error) {
	size, n := varint(b)
	if n == 0 {
		return cell{}, errCell
	}
	off := n
	rowid, n := varint(b[off:])
	off += n
	if n == 0 || size < 2 || size > maxMessageSize+1024 {
		return cell{}, errCell
	}
	c := cell{rowid: int64(rowid), size: int64(size)}
	local := localSize(usable, c.size)
	if int64(local) < c.size {
		if off+local+4 > len(b) {
			return cell{}, errCell
		}
		c.overflow = binary.BigEndian.Uint32(b[off+local:])
	}
	if off+local > len(b) {
		return cell{}, errCell
	}
	c.local = b[off : off+local]
	return c, nil
}

// record appends the whole record of a cell to dst, following its overflow pages, of which there must be as many as its
// size asks for.
func (p *pages) record(c cell, dst, buf []byte) ([]byte, error) {
	dst = append(dst, c.local...)
	rest := c.size - int64(len(c.local))
	next := c.overflow
	for rest > 0 {
		if next < 2 || next > p.count() {
			return nil, fmt.Errorf("row %d: its next page is %d of %d", c.rowid, next, p.count())
		}
		b, err := p.read(next, buf)
		if err != nil {
			return nil, err
		}
		n := min(rest, int64(p.usable-4))
		dst = append(dst, b[4:4+n]...)
		rest -= n
		next = binary.BigEndian.Uint32(b)
	}
	if next != 0 {
		return nil, fmt.Errorf("row %d: its pages go on behind its end", c.rowid)
	}
	return dst, nil
}

// column is a column of a record: its serial type, and where its bytes lie in the record.
type column struct {
	serial uint64
	at     int64
	size   int64
}

func (c column) isInt() bool  { return c.serial >= 1 && c.serial <= 6 || c.serial == 8 || c.serial == 9 }
func (c column) isNull() bool { return c.serial == 0 }
func (c column) isBlob() bool { return c.serial >= 12 && c.serial%2 == 0 }
func (c column) isText() bool { return c.serial >= 13 && c.serial%2 == 1 }

// columnsOf reads the head of a record, of which the beginning is enough, and makes sure that the columns fill it.
func columnsOf(rec []byte, size int64, cols []column) ([]column, error) {
	head, n := varint(rec)
	if n == 0 || head < uint64(n) || head > uint64(len(rec)) {
		return nil, errCell
	}
	at := int64(head)
	for i := n; i < int(head); {
		serial, n := varint(rec[i:head])
		if n == 0 || len(cols) == maxColumns || serial == 10 || serial == 11 {
			return nil, errCell
		}
		i += n
		c := column{serial: serial, at: at, size: int64(serialSize(serial))}
		if c.size < 0 || c.size > size-at {
			return nil, errCell
		}
		at += c.size
		cols = append(cols, c)
	}
	if at != size {
		return nil, errCell
	}
	return cols, nil
}

func serialSize(s uint64) uint64 {
	switch {
	case s >= 12:
		return (s - 12) / 2
	case s <= 4:
		return s
	case s == 5:
		return 6
	case s <= 7:
		return 8
	}
	return 0
}

// int returns the value of a whole number; rec must reach as far.
func (c column) int(rec []byte) int64 {
	switch c.serial {
	case 8:
		return 0
	case 9:
		return 1
	}
	b := rec[c.at : c.at+c.size]
	if len(b) == 0 {
		return 0
	}
	v := int64(int8(b[0]))
	for _, x := range b[1:] {
		v = v<<8 | int64(x)
	}
	return v
}

func (c column) text(rec []byte) string { return string(rec[c.at : c.at+c.size]) }

// varint reads a number of up to nine bytes, big end first; n is 0 where b is too short.
func varint(b []byte) (v uint64, n int) {
	for i := range 9 {
		if i >= len(b) {
			return 0, 0
		}
		if i == 8 {
			return v<<8 | uint64(b[8]), 9
		}
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
