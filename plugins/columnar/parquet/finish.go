package parquet

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
)

const magic = "PAR1"

// KeyValue is an entry of a file's key-value metadata.
type KeyValue struct{ Key, Value string }

// Keys of our own entries.
const (
	keyPages  = "gobag.pages"  // page groups, sizes and checksums of all pages; see appendPages
	keyFooter = "gobag.footer" // CRC-32C of the footer with these eight digits zero
)

const noCRC = "00000000"

// Codecs.
const (
	codecNone = 0
	codecZstd = 6
)

// chunkPlace is where a column chunk and its indexes lie.
type chunkPlace struct {
	dict, data          int64 // offsets; dict 0: none
	dictSize            int
	dictCRC             uint32
	size, raw           int64
	index, offsets      int64
	indexLen, offsetLen int
}

// sink counts and remembers the first error.
type sink struct {
	w   io.Writer
	off int64
	err error
}

func (s *sink) write(b []byte) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
	s.off += int64(len(b))
}

// Opened says that Options.Open was called: Finish goes on with what it returned.
func (w *Writer) Opened() bool { return w.out != nil }

// Finish writes the file and empties the writer: to what Options.Open has returned, or to out if that was not called.
// It returns the size of the file.
func (w *Writer) Finish(out io.Writer, kv []KeyValue) (int64, error) {
	if len(w.groups) == 0 {
		return 0, errors.New("finish: no rows")
	}
	s := w.out
	small := make([]byte, 0, 64<<10)
	if s == nil {
		s = &sink{w: out}
		small = append(small, magic...)
	}
	flush := func() { s.write(small); small = small[:0] }
	put := func(b []byte) {
		if len(b) >= 32<<10 {
			flush()
			s.write(b)
			return
		}
		if small = append(small, b...); len(small) >= 32<<10 {
			flush()
		}
	}
	at := func() int64 { return s.off + int64(len(small)) }
	places := make([]chunkPlace, len(w.cols))
	for i := range w.cols {
		c, p := &w.cols[i], &places[i]
		if w.out != nil && w.spilled == i {
			p.data, p.size, p.raw = int64(len(magic)), c.raw, c.raw
			continue
		}
		if c.dictPages > 0 {
			d := w.dictPage(c)
			p.dict, p.dictSize, p.dictCRC = at(), len(d), crc32.Checksum(d, castagnoli)
			put(d)
		}
		p.data = at()
		for _, b := range c.buf.pieces {
			put(b)
		}
		p.size, p.raw = int64(p.dictSize+c.buf.n), c.raw
	}
	for i := range w.cols {
		if t := w.columnIndex(&w.cols[i]); t != nil {
			places[i].index, places[i].indexLen = at(), len(t)
			put(t)
		}
	}
	for i := range w.cols {
		t := w.offsetIndex(&w.cols[i], places[i].data)
		places[i].offsets, places[i].offsetLen = at(), len(t)
		put(t)
	}
	kv = append(kv[:len(kv):len(kv)], KeyValue{keyPages, base64.StdEncoding.EncodeToString(w.appendPages(nil, places))}, KeyValue{keyFooter, noCRC})
	t := w.footer(places, kv)
	put(t)
	put(append(le.AppendUint32(nil, uint32(len(t))), magic...))
	flush()
	if s.err != nil {
		return s.off, s.err
	}
	w.Reset()
	return s.off, nil
}

// dictPage returns the dictionary page of a column.
func (w *Writer) dictPage(c *column) []byte {
	body := c.dict.appendPage(w.body[:0], c.leaf)
	w.body = body
	head, packed := w.pack(c, body, c.dict.len(), plain, true)
	return append(append(make([]byte, 0, len(head)+len(packed)), head...), packed...)
}

// columnIndex returns nil where a page has values but no bounds.
func (w *Writer) columnIndex(c *column) []byte {
	for i := range c.pages {
		if b := &c.pages[i].bounds; !b.known && !b.none {
			return nil
		}
	}
	t := &w.head
	t.reset()
	t.list(1, thriftFalse, len(c.pages))
	for i := range c.pages {
		if c.pages[i].bounds.none {
			t.b = append(t.b, thriftTrue)
		} else {
			t.b = append(t.b, thriftFalse)
		}
	}
	t.list(2, thriftBinary, len(c.pages))
	for i := range c.pages {
		t.bytes(c.pages[i].bounds.min)
	}
	t.list(3, thriftBinary, len(c.pages))
	for i := range c.pages {
		t.bytes(c.pages[i].bounds.max)
	}
	order := int64(1) // ascending
	var last *bounds
	for i := range c.pages {
		b := &c.pages[i].bounds
		if b.none {
			continue
		}
		if last != nil && (less(c.leaf, b.min, last.min) || less(c.leaf, b.max, last.max)) {
			order = 0
		}
		last = b
	}
	t.i32(4, order)
	t.list(5, thriftI64, len(c.pages))
	for i := range c.pages {
		t.number(c.pages[i].nulls)
	}
	t.stop()
	return append([]byte(nil), t.b...)
}

func (w *Writer) offsetIndex(c *column, off int64) []byte {
	t := &w.head
	t.reset()
	t.list(1, thriftStruct, len(c.pages))
	row := int64(0)
	for i := range c.pages {
		t.element()
		t.i64(1, off+int64(c.pages[i].off))
		t.i32(2, int64(c.pages[i].size))
		t.i64(3, row)
		t.end()
		row += int64(w.groups[i].rows)
	}
	t.stop()
	return append([]byte(nil), t.b...)
}

// appendPages appends what keyPages holds: the number of page groups, rows and bytes of each, then for every column the
// size of its dictionary page (0: none) with its checksum, and size and checksum of every other page. Numbers are
// uvarints, checksums little endian.
func (w *Writer) appendPages(b []byte, places []chunkPlace) []byte {
	b = binary.AppendUvarint(b, uint64(len(w.groups)))
	for _, g := range w.groups {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(g.rows)), uint64(g.bytes))
	}
	for i := range w.cols {
		b = binary.AppendUvarint(b, uint64(places[i].dictSize))
		if places[i].dictSize > 0 {
			b = le.AppendUint32(b, places[i].dictCRC)
		}
		for _, p := range w.cols[i].pages {
			b = le.AppendUint32(binary.AppendUvarint(b, uint64(p.size)), p.crc)
		}
	}
	return b
}

func (w *Writer) footer(places []chunkPlace, kv []KeyValue) []byte {
	t := &w.head
	t.reset()
	t.i32(1, 2)
	t.list(2, thriftStruct, w.nodes+1)
	t.element()
	t.text(4, "schema")
	t.i32(5, int64(len(w.fields)))
	t.end()
	for i := range w.fields {
		t.schemaField(&w.fields[i])
	}
	t.i64(3, w.rows)
	t.list(4, thriftStruct, 1)
	t.element()
	t.list(1, thriftStruct, len(w.cols))
	var raw, size int64
	for i := range w.cols {
		t.chunk(&w.cols[i], &places[i])
		raw, size = raw+places[i].raw, size+places[i].size
	}
	t.i64(2, raw)
	t.i64(3, w.rows)
	t.i64(5, int64(len(magic)))
	t.i64(6, size)
	t.end()
	t.list(5, thriftStruct, len(kv))
	crcAt := 0
	for _, e := range kv {
		t.element()
		t.text(1, e.Key)
		t.text(2, e.Value)
		crcAt = len(t.b) - len(noCRC) // of the last one, which is keyFooter
		t.end()
	}
	t.text(6, createdBy)
	t.list(7, thriftStruct, len(w.cols))
	for range w.cols {
		t.element()
		t.begin(1)
		t.end()
		t.end()
	}
	t.stop()
	copy(t.b[crcAt:], fmt.Sprintf("%08x", crc32.Checksum(t.b, castagnoli)))
	return t.b
}

const createdBy = "gobag columnar version 1"

func (t *thriftWriter) chunk(c *column, p *chunkPlace) {
	t.element()
	t.i64(2, 0)
	t.begin(3)
	t.i32(1, int64(c.leaf.physical()))
	encodings := c.encodings | 1<<rleLevels
	if c.dictPages > 0 {
		encodings |= 1 << plain
	}
	t.list(2, thriftI32, bits.OnesCount32(encodings))
	for e := range 32 {
		if encodings>>e&1 != 0 {
			t.number(int64(e))
		}
	}
	t.list(3, thriftBinary, len(c.leaf.Path))
	for _, s := range c.leaf.Path {
		t.string(s)
	}
	codec := codecZstd
	if c.store {
		codec = codecNone
	}
	t.i32(4, int64(codec))
	t.i64(5, c.values)
	t.i64(6, c.raw)
	t.i64(7, p.size)
	t.i64(9, p.data)
	if p.dict > 0 {
		t.i64(11, p.dict)
	}
	if c.bounds.known || c.bounds.none {
		t.begin(12)
		t.i64(3, c.nulls)
		if c.bounds.known {
			t.binary(5, c.bounds.max)
			t.binary(6, c.bounds.min)
		}
		t.end()
	}
	t.end()
	t.i64(4, p.offsets)
	t.i32(5, int64(p.offsetLen))
	if p.indexLen > 0 {
		t.i64(6, p.index)
		t.i32(7, int64(p.indexLen))
	}
	t.end()
}

// Converted types, which older readers look at.
const (
	convertedUTF8  = 0
	convertedList  = 3
	convertedUint8 = 11 // 12, 13, 14 for 16, 32, 64 bits
	convertedInt8  = 15 // 16 for 16 bits
)

func (t *thriftWriter) schemaField(f *Field) {
	if f.List {
		t.element()
		t.i32(3, 0)
		t.text(4, f.Name)
		t.i32(5, 1)
		t.i32(6, convertedList)
		t.begin(10)
		t.begin(3)
		t.end()
		t.end()
		t.end()
		t.element()
		t.i32(3, 2)
		t.text(4, "list")
		t.i32(5, 1)
		t.end()
		element := *f
		element.Name, element.List = "element", false
		t.schemaField(&element)
		return
	}
	t.element()
	if f.Kind == 0 {
		t.i32(3, 0)
		t.text(4, f.Name)
		t.i32(5, int64(len(f.Fields)))
		t.end()
		for i := range f.Fields {
			t.schemaField(&f.Fields[i])
		}
		return
	}
	l := Leaf{Kind: f.Kind, Fixed: f.Fixed}
	t.i32(1, int64(l.physical()))
	if l.physical() == typeFixed {
		t.i32(2, int64(f.Fixed))
	}
	t.i32(3, 0)
	t.text(4, f.Name)
	switch f.Kind {
	case String:
		t.i32(6, convertedUTF8)
		t.begin(10)
		t.begin(1)
		t.end()
		t.end()
	case Timestamp:
		t.begin(10)
		t.begin(8)
		t.flag(1, false)
		t.begin(2)
		t.begin(3)
		t.end()
		t.end()
		t.end()
		t.end()
	case UInt8, UInt16, UInt32, UInt64, Int8, Int16:
		converted, width, signed := integerType(f.Kind)
		t.i32(6, converted)
		t.begin(10)
		t.begin(10)
		t.field(1, thriftByte)
		t.b = append(t.b, width)
		t.flag(2, signed)
		t.end()
		t.end()
	}
	t.end()
}

func integerType(k Kind) (converted int64, width byte, signed bool) {
	switch k {
	case UInt8:
		return convertedUint8, 8, false
	case UInt16:
		return convertedUint8 + 1, 16, false
	case UInt32:
		return convertedUint8 + 2, 32, false
	case UInt64:
		return convertedUint8 + 3, 64, false
	case Int8:
		return convertedInt8, 8, true
	}
	return convertedInt8 + 1, 16, true
}
