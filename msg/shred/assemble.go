package shred

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/gobag/gobag/cdr"
)

// Cursor is a place between two rows of a batch. It belongs to one goroutine; the batch must not change meanwhile.
type Cursor struct {
	row   int
	cols  []int // next value
	lists []int // next of Counts
}

// NewCursor returns a cursor before the first row.
func (p *Program) NewCursor() *Cursor {
	return &Cursor{cols: make([]int, len(p.cols)), lists: make([]int, len(p.lists))}
}

// Row is the number of the row that Assemble writes next.
func (c *Cursor) Row() int { return c.row }

// Rewind goes before the first row.
func (c *Cursor) Rewind() {
	c.row = 0
	clear(c.cols)
	clear(c.lists)
}

// Check takes over a batch whose exported fields were filled from elsewhere, such as a file: its columns must have the
// lengths that go together, their values must be of the range of their kinds. Assemble may be called only for batches
// that Append filled or Check returned nil for.
func (p *Program) Check(b *Batch) error {
	if len(b.Cols) != len(p.cols) || len(b.Counts) != len(p.lists) {
		return fmt.Errorf("check batch of %s: %d columns and %d lists, want %d and %d", p.typ, len(b.Cols), len(b.Counts), len(p.cols), len(p.lists))
	}
	rows := len(b.Forms)
	for i, f := range b.Forms {
		if f&^formMask != 0 {
			return fmt.Errorf("check batch of %s: row %d: unknown form %#x", p.typ, i, uint8(f))
		}
	}
	occurrences := func(parent int) int {
		if parent < 0 {
			return rows
		}
		return b.elems[parent]
	}
	b.elems, b.pending = make([]int, len(p.lists)), make([]int, len(p.lists))
	for i := range p.lists {
		l := &p.lists[i]
		n := occurrences(l.Parent)
		sum := uint64(n) * uint64(l.Fixed)
		if l.Fixed == 0 {
			if len(b.Counts[i]) != n {
				return fmt.Errorf("check batch of %s: list %s: %d counts for %d occurrences", p.typ, l.Name(), len(b.Counts[i]), n)
			}
			for _, c := range b.Counts[i] {
				sum += uint64(c)
			}
		}
		if sum > maxBatch {
			return fmt.Errorf("check batch of %s: list %s has %d elements: %w", p.typ, l.Name(), sum, ErrFull)
		}
		b.elems[i] = int(sum)
	}
	copy(b.pending, b.elems)
	b.size = 0
	for i := range p.cols {
		c := &p.cols[i]
		n := occurrences(c.List)
		if got := b.Cols[i].Len(c); got != n {
			return fmt.Errorf("check batch of %s: column %s: %d values for %d occurrences", p.typ, c.Name(), got, n)
		}
		if err := b.Cols[i].check(c); err != nil {
			return fmt.Errorf("check batch of %s: column %s: %w", p.typ, c.Name(), err)
		}
		b.size += n*int(wireSize[min(int(c.Kind), len(wireSize)-1)]) + len(b.Cols[i].Data)
	}
	return nil
}

// ranges of the kinds that are held in a wider type.
var ranges = map[Kind][2]int32{Int8: {math.MinInt8, math.MaxInt8}, UInt8: {0, math.MaxUint8}, Int16: {math.MinInt16, math.MaxInt16}, UInt16: {0, math.MaxUint16}}

// check tells whether the values can be those of c.
func (v *Values) check(c *Column) error {
	if r, ok := ranges[c.Kind]; ok {
		for _, x := range v.I32 {
			if x < r[0] || x > r[1] {
				return fmt.Errorf("%d is no %v", x, c.Kind)
			}
		}
	}
	switch c.Kind {
	case Bool:
		for _, x := range v.U8 {
			if x > 1 {
				return fmt.Errorf("%d is no bool", x)
			}
		}
	case Time, Duration:
		for _, x := range v.I64 {
			if x < math.MinInt32*1e9 || x > math.MaxInt32*1e9+999_999_999 {
				return fmt.Errorf("%d ns are out of the range of %v", x, c.Kind)
			}
		}
	case String, WString, Bytes:
		if c.Fixed > 0 {
			if len(v.Data)%c.Fixed != 0 {
				return fmt.Errorf("%d bytes are no multiple of %d", len(v.Data), c.Fixed)
			}
			return nil
		}
		last := uint32(0)
		for _, e := range v.Ends {
			if e < last || uint64(e) > uint64(len(v.Data)) {
				return fmt.Errorf("ends of values do not ascend to %d", len(v.Data))
			}
			last = e
		}
	}
	return nil
}

// Assemble appends the payload of the next row of b to dst and moves c behind it. io.EOF behind the last row.
func (p *Program) Assemble(dst []byte, b *Batch, c *Cursor) ([]byte, error) {
	if c.row >= len(b.Forms) {
		return dst, io.EOF
	}
	form := b.Forms[c.row]
	c.row++
	kind, ops := cdr.CDRLE, p.ops[0]
	if form&FormXCDR2 != 0 {
		kind, ops = cdr.CDR2LE, p.ops[1]
	}
	if form&FormBigEndian != 0 {
		kind--
	}
	a := assembler{b: b, c: c, dst: append(dst, 0, byte(kind), 0, byte(form.Declared())), base: len(dst) + cdr.HeaderSize}
	a.run(ops)
	dst = a.dst
	if form&FormBigEndian != 0 {
		s := swapper{body: dst[a.base:], back: true}
		s.run(ops, 0)
	}
	return append(dst, zeros[:form.Tail()]...), nil
}

var zeros [8]byte

type assembler struct {
	b    *Batch
	c    *Cursor
	dst  []byte
	base int // alignment counts from here
}

func (a *assembler) pad(mask int) {
	if n := -(len(a.dst) - a.base) & mask; n != 0 {
		a.dst = append(a.dst, zeros[:n]...)
	}
}

func (a *assembler) u32(v int) {
	a.pad(3)
	a.dst = binary.LittleEndian.AppendUint32(a.dst, uint32(v))
}

// next takes n values of a column and returns the index of the first.
func (a *assembler) next(col, n int) int {
	i := a.c.cols[col]
	a.c.cols[col] = i + n
	return i
}

// count takes and writes the element count of a sequence.
func (a *assembler) count(list int) int {
	n := int(a.b.Counts[list][a.c.lists[list]])
	a.c.lists[list]++
	a.u32(n)
	return n
}

func (a *assembler) run(ops []op) {
	for i := range ops {
		o := &ops[i]
		switch o.code {
		case opRun:
			a.pad(o.align)
			for col := o.col; col < o.col+o.n; col++ {
				a.numbers(o.kind, col, 1)
			}
		case opNumbers:
			n := o.n
			if n == 0 {
				if n = a.count(o.list); n == 0 {
					break
				}
			}
			a.pad(o.align)
			a.numbers(o.kind, o.col, n)
		case opBytes:
			s := a.b.Cols[o.col].Bytes(a.next(o.col, 1))
			a.u32(len(s))
			a.dst = append(a.dst, s...)
		case opFixedBytes:
			i := a.next(o.col, 1) * o.n
			a.dst = append(a.dst, a.b.Cols[o.col].Data[i:i+o.n]...)
		case opString:
			s := a.b.Cols[o.col].Bytes(a.next(o.col, 1))
			a.u32(len(s) + 1)
			a.dst = append(append(a.dst, s...), 0)
		case opWString:
			a.wide(a.b.Cols[o.col].Bytes(a.next(o.col, 1)))
		case opTime:
			ns := a.b.Cols[o.col].I64[a.next(o.col, 1)]
			sec := ns / 1e9
			if ns -= sec * 1e9; ns < 0 {
				sec, ns = sec-1, ns+1e9
			}
			a.pad(3)
			a.dst = binary.LittleEndian.AppendUint64(a.dst, uint64(uint32(sec))|uint64(ns)<<32)
		case opList:
			a.list(o)
		}
	}
}

func (a *assembler) list(o *op) {
	start := 0
	if o.delim {
		a.u32(0)
		start = len(a.dst)
	}
	n := o.n
	if n == 0 {
		n = a.count(o.list)
	}
	for range n {
		a.run(o.body)
	}
	if o.delim {
		binary.LittleEndian.PutUint32(a.dst[start-4:], uint32(len(a.dst)-start))
	}
}

// wide writes a wide string: the number of UTF-16 units, then 4 bytes for each.
func (a *assembler) wide(s []byte) {
	a.u32(0)
	start := len(a.dst)
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		s = s[n:]
		if r >= 0x10000 {
			r -= 0x10000
			a.dst = binary.LittleEndian.AppendUint32(a.dst, 0xd800|uint32(r)>>10)
			r = 0xdc00 | r&0x3ff
		}
		a.dst = binary.LittleEndian.AppendUint32(a.dst, uint32(r))
	}
	binary.LittleEndian.PutUint32(a.dst[start-4:], uint32(len(a.dst)-start)/4)
}
