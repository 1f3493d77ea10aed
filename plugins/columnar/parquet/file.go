package parquet

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// maxFooter bounds the footer that is read.
const maxFooter = 64 << 20

// File is an open file. It is immutable and safe for concurrent use.
type File struct {
	*layout
	r       io.ReaderAt
	size    int64 // up to the footer
	checked bool
	groups  []group
	starts  []int64 // first row of each group
	rows    int64
	cols    []chunk
	kv      []KeyValue
}

// chunk is a column chunk as the footer describes it.
type chunk struct {
	codec   int
	dict    filePage // size 0: none
	pages   []filePage
	bounds  bounds
	typ     int
	path    []string
	data    int64
	dictOff int64
	values  int64
	length  int64
}

type filePage struct {
	off  int64
	size int
	crc  uint32
}

// DamageError says that a file is not what was written.
type DamageError struct {
	Offset int64
	Err    error
}

func (e *DamageError) Error() string { return fmt.Sprintf("at byte %d: %v", e.Offset, e.Err) }

// Unwrap returns what is wrong.
func (e *DamageError) Unwrap() error { return e.Err }

// Open reads the footer of a file that a Writer wrote. Every error but that of r itself is a *DamageError.
func Open(r io.ReaderAt, size int64) (*File, error) { return open(r, size, true) }

// open is Open; tests read files without looking at checksums, as if somebody had made them right.
func open(r io.ReaderAt, size int64, checked bool) (*File, error) {
	const tail = 8
	if size < int64(len(magic)+tail) {
		return nil, &DamageError{0, errors.New("too short for a Parquet file")}
	}
	var b [tail]byte
	if err := readAt(r, b[:4], 0); err != nil {
		return nil, err
	}
	if string(b[:4]) != magic {
		return nil, &DamageError{0, errors.New("no Parquet file")}
	}
	if err := readAt(r, b[:], size-tail); err != nil {
		return nil, err
	}
	n := int64(le.Uint32(b[:]))
	if string(b[4:]) != magic || n > min(maxFooter, size-int64(len(magic)+tail)) {
		return nil, &DamageError{size - tail, errors.New("the end of the Parquet file is damaged")}
	}
	footer := make([]byte, n)
	at := size - tail - n
	if err := readAt(r, footer, at); err != nil {
		return nil, err
	}
	f := &File{r: r, size: at, checked: checked}
	if err := f.parse(footer); err != nil {
		return nil, &DamageError{at, fmt.Errorf("footer: %w", err)}
	}
	return f, nil
}

func readAt(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return &DamageError{off + int64(n), io.ErrUnexpectedEOF}
	}
	return err
}

// Groups is the number of page groups.
func (f *File) Groups() int { return len(f.groups) }

// GroupRows is the number of rows of a page group, GroupBytes its Batch.Bytes.
func (f *File) GroupRows(i int) int { return f.groups[i].rows }

// GroupBytes is what the rows of a page group stand for.
func (f *File) GroupBytes(i int) int64 { return f.groups[i].bytes }

// Rows is the number of rows.
func (f *File) Rows() int64 { return f.rows }

// Leaves are the columns. The slice is the file's.
func (f *File) Leaves() []Leaf { return f.leaves }

// Lists are the lists. The slice is the file's.
func (f *File) Lists() []List { return f.lists }

// Schema are the fields. The slice is the file's.
func (f *File) Schema() []Field { return f.fields }

// Value is an entry of the key-value metadata, "" if there is none of that key.
func (f *File) Value(key string) string {
	for _, e := range f.kv {
		if e.Key == key {
			return e.Value
		}
	}
	return ""
}

// Bounds returns the least and largest value of a column as PLAIN has them; ok is false where they are not known.
func (f *File) Bounds(leaf int) (lo, hi []byte, ok bool) {
	b := &f.cols[leaf].bounds
	return b.min, b.max, b.known
}

// parse takes the footer apart.
func (f *File) parse(footer []byte) error {
	t := &thriftReader{b: footer}
	var elements []element
	groups := 0
	created := ""
	t.structure(func(id, typ int) bool {
		switch {
		case id == 2 && typ == thriftList:
			t.list(thriftStruct, func() { elements = append(elements, t.element()) })
		case id == 3 && typ == thriftI64:
			f.rows = t.number()
		case id == 4 && typ == thriftList:
			t.list(thriftStruct, func() { groups++; f.rowGroup(t) })
		case id == 5 && typ == thriftList:
			t.list(thriftStruct, func() {
				var e KeyValue
				t.structure(func(id, typ int) bool {
					if typ != thriftBinary || id > 2 {
						return false
					}
					if s := string(t.bytes()); id == 1 {
						e.Key = s
					} else {
						e.Value = s
					}
					return true
				})
				f.kv = append(f.kv, e)
			})
		case id == 6 && typ == thriftBinary:
			created = string(t.bytes())
		default:
			return false
		}
		return true
	})
	if t.bad {
		return errThrift
	}
	if created != createdBy {
		return fmt.Errorf("written by %.100q, not by gobag", created)
	}
	if f.checked {
		if err := f.checkCRC(footer); err != nil {
			return err
		}
	}
	if groups != 1 {
		return fmt.Errorf("%d row groups, there should be one", groups)
	}
	fields, rest, err := fieldsOf(elements)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return errors.New("schema: elements too many")
	}
	if f.layout, err = newLayout(fields); err != nil {
		return err
	}
	if len(f.leaves) != len(f.cols) {
		return fmt.Errorf("%d column chunks for %d columns", len(f.cols), len(f.leaves))
	}
	for i := range f.cols {
		if c := &f.cols[i]; c.typ != f.leaves[i].physical() || !slices.Equal(c.path, f.leaves[i].Path) {
			return fmt.Errorf("column chunk %d is not that of column %s", i, f.leaves[i].Name)
		}
		f.cols[i].checkBounds(&f.leaves[i])
	}
	return f.pages()
}

// checkBounds drops bounds that have not the length of a value.
func (c *chunk) checkBounds(l *Leaf) {
	want := -1
	switch l.physical() {
	case typeBoolean:
		want = 1
	case typeInt32, typeFloat:
		want = 4
	case typeInt64, typeDouble:
		want = 8
	}
	if want >= 0 && (len(c.bounds.min) != want || len(c.bounds.max) != want) {
		c.bounds = bounds{}
	}
}

func (f *File) checkCRC(footer []byte) error {
	want := f.Value(keyFooter)
	at := lastIndex(footer, keyFooter)
	if at < 0 || len(want) != len(noCRC) {
		return errors.New("checksum is missing")
	}
	at += len(keyFooter) + 2 // field head and length
	if at+len(noCRC) > len(footer) || string(footer[at:at+len(noCRC)]) != want {
		return errors.New("checksum is not in its place")
	}
	zeroed := slices.Clone(footer)
	copy(zeroed[at:], noCRC)
	if got := fmt.Sprintf("%08x", crc32.Checksum(zeroed, castagnoli)); got != want {
		return errors.New("checksum is wrong")
	}
	return nil
}

func lastIndex(b []byte, s string) int {
	for i := len(b) - len(s); i >= 0; i-- {
		if string(b[i:i+len(s)]) == s {
			return i
		}
	}
	return -1
}

func (f *File) rowGroup(t *thriftReader) {
	t.structure(func(id, typ int) bool {
		if id != 1 || typ != thriftList {
			return false
		}
		t.list(thriftStruct, func() {
			var c chunk
			t.structure(func(id, typ int) bool {
				if id != 3 || typ != thriftStruct {
					return false
				}
				c.parse(t)
				return true
			})
			f.cols = append(f.cols, c)
		})
		return true
	})
}

func (c *chunk) parse(t *thriftReader) {
	t.structure(func(id, typ int) bool {
		switch {
		case id == 1 && typ == thriftI32:
			c.typ = int(t.number())
		case id == 3 && typ == thriftList:
			t.list(thriftBinary, func() { c.path = append(c.path, string(t.bytes())) })
		case id == 4 && typ == thriftI32:
			c.codec = int(t.number())
		case id == 5 && typ == thriftI64:
			c.values = t.number()
		case id == 7 && typ == thriftI64:
			c.length = t.number()
		case id == 9 && typ == thriftI64:
			c.data = t.number()
		case id == 11 && typ == thriftI64:
			c.dictOff = t.number()
		case id == 12 && typ == thriftStruct:
			t.structure(func(id, typ int) bool {
				if typ != thriftBinary || id != 5 && id != 6 {
					return false
				}
				c.bounds.known = true
				if s := slices.Clone(t.bytes()); id == 5 {
					c.bounds.max = s
				} else {
					c.bounds.min = s
				}
				return true
			})
		default:
			return false
		}
		return true
	})
}

// pages reads our own entry on pages: see Writer.appendPages.
func (f *File) pages() error {
	b, err := base64.StdEncoding.DecodeString(f.Value(keyPages))
	if err != nil {
		return fmt.Errorf("%s: %w", keyPages, err)
	}
	bad := errors.New(keyPages + " is damaged")
	num := func(most uint64) uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > most {
			b, err = nil, bad
			return 0
		}
		b = b[n:]
		return v
	}
	var rows int64
	for n := num(uint64(len(b))); n > 0 && err == nil; n-- {
		g := group{int(num(1 << 31)), int64(num(1 << 31))}
		f.starts = append(f.starts, rows)
		f.groups = append(f.groups, g)
		rows += int64(g.rows)
	}
	cut := func(off int64) filePage {
		p := filePage{off: off, size: int(num(1 << 31))}
		if err == nil && p.size > 0 {
			if len(b) < 4 {
				b, err = nil, bad
				return p
			}
			p.crc, b = le.Uint32(b), b[4:]
		}
		return p
	}
	for i := range f.cols {
		c := &f.cols[i]
		at := c.data
		if c.dict = cut(c.dictOff); c.dict.size > 0 {
			if c.dictOff+int64(c.dict.size) != c.data || c.dictOff < int64(len(magic)) {
				return bad
			}
		}
		for range f.groups {
			p := cut(at)
			if err != nil {
				return err
			}
			c.pages = append(c.pages, p)
			at += int64(p.size)
		}
		if c.data < int64(len(magic)) || at > f.size || c.length != at-c.data+int64(c.dict.size) {
			return bad
		}
	}
	if err == nil && (rows != f.rows || len(b) > 0) {
		err = bad
	}
	return err
}

// element is a node of the schema as the footer lists it.
type element struct {
	name               string
	typ, length, rep   int
	kids, converted    int
	logical, bitWidth  int
	signed, hasLogical bool
}

func (t *thriftReader) element() element {
	e := element{typ: -1, converted: -1}
	t.structure(func(id, typ int) bool {
		switch {
		case id == 10 && typ == thriftStruct:
			e.hasLogical = true
			t.structure(func(id, typ int) bool {
				e.logical = id
				if id != 10 || typ != thriftStruct {
					return false
				}
				t.structure(func(id, typ int) bool {
					switch {
					case id == 1 && typ == thriftByte:
						e.bitWidth = int(t.byte())
					case id == 2:
						e.signed = typ == thriftTrue
					default:
						return false
					}
					return true
				})
				return true
			})
		case id == 4 && typ == thriftBinary:
			e.name = string(t.bytes())
		case typ == thriftI32:
			n := int(t.number())
			switch id {
			case 1:
				e.typ = n
			case 2:
				e.length = n
			case 3:
				e.rep = n
			case 5:
				e.kids = n
			case 6:
				e.converted = n
			}
		default:
			return false
		}
		return true
	})
	return e
}

// fieldsOf makes the fields below the first element, and returns the elements that follow them.
func fieldsOf(es []element) ([]Field, []element, error) {
	if len(es) == 0 || es[0].typ >= 0 {
		return nil, nil, errors.New("schema: no root")
	}
	return structFields(es[0].kids, es[1:], 0)
}

func structFields(n int, es []element, depth int) ([]Field, []element, error) {
	if depth > maxDepth || n < 0 || n > len(es) {
		return nil, nil, errors.New("schema: elements missing")
	}
	var fields []Field
	for range n {
		var f Field
		var err error
		if f, es, err = fieldOf(es, depth); err != nil {
			return nil, nil, err
		}
		fields = append(fields, f)
	}
	return fields, es, nil
}

func fieldOf(es []element, depth int) (Field, []element, error) {
	if len(es) == 0 {
		return Field{}, nil, errors.New("schema: elements missing")
	}
	e := es[0]
	es = es[1:]
	if e.rep != 0 {
		return Field{}, nil, fmt.Errorf("schema: field %.100q is not required", e.name)
	}
	f := Field{Name: e.name}
	if e.typ < 0 && e.converted == convertedList {
		if len(es) < 2 || e.kids != 1 || es[0].rep != 2 || es[0].kids != 1 || es[0].name != "list" || depth > maxDepth {
			return f, nil, fmt.Errorf("schema: list %.100q is not like ours", e.name)
		}
		element, rest, err := fieldOf(es[1:], depth+1)
		if err != nil {
			return f, nil, err
		}
		if element.List {
			return f, nil, fmt.Errorf("schema: list %.100q of lists", e.name)
		}
		element.Name, element.List = e.name, true
		return element, rest, nil
	}
	if e.typ < 0 {
		var err error
		f.Fields, es, err = structFields(e.kids, es, depth+1)
		return f, es, err
	}
	if f.Kind = e.kind(); f.Kind == 0 {
		return f, nil, fmt.Errorf("schema: field %.100q has an unknown type", e.name)
	}
	if e.typ == typeFixed {
		if f.Fixed = e.length; f.Fixed <= 0 {
			return f, nil, fmt.Errorf("schema: field %.100q has no length", e.name)
		}
	}
	return f, es, nil
}

func (e *element) kind() Kind {
	switch e.typ {
	case typeBoolean:
		return Bool
	case typeFloat:
		return Float32
	case typeDouble:
		return Float64
	case typeFixed:
		return Bytes
	case typeBytes:
		if e.converted == convertedUTF8 {
			return String
		}
		return Bytes
	case typeInt64:
		switch {
		case e.hasLogical && e.logical == 8:
			return Timestamp
		case e.converted == convertedUint8+3:
			return UInt64
		}
		return Int64
	case typeInt32:
		switch e.converted {
		case convertedUint8:
			return UInt8
		case convertedUint8 + 1:
			return UInt16
		case convertedUint8 + 2:
			return UInt32
		case convertedInt8:
			return Int8
		case convertedInt8 + 1:
			return Int16
		}
		return Int32
	}
	return 0
}
