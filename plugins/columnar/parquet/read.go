package parquet

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// PageReader reads page groups of files. It belongs to one goroutine.
type PageReader struct {
	dec  *Decompressor
	raw  []byte
	lv   levels
	idx  []uint32
	lens []int32
	dict Values // of the column that is being read
	// Limit bounds the values and bytes of a page group beside what the group's own Bytes ask for; 0 is 64 Mi.
	Limit int64
}

// NewPageReader returns a page reader. Close gives its memory back.
func NewPageReader() (*PageReader, error) {
	dec, err := NewDecompressor()
	if err != nil {
		return nil, err
	}
	return &PageReader{dec: dec}, nil
}

// Close ends the use of r.
func (r *PageReader) Close() { r.dec.Close() }

// Read fills v, emptied before, with the values of a column in a page group. Damage is a *DamageError.
func (r *PageReader) Read(f *File, group, leaf int, v *Values) error {
	c, l := &f.cols[leaf], &f.leaves[leaf]
	p := c.pages[group]
	v.Reset()
	if err := r.read(f, c, l, p, group, v); err != nil {
		var damage *DamageError
		if errors.As(err, &damage) {
			return err
		}
		return &DamageError{p.off, fmt.Errorf("column %s: %w", l.Name, err)}
	}
	return nil
}

// Counts appends the element counts of the list at a depth, from 1 on, which the column that was read last is in.
func (r *PageReader) Counts(dst []uint32, depth int) ([]uint32, error) {
	return r.lv.counts(dst, uint8(depth))
}

func (r *PageReader) read(f *File, c *chunk, l *Leaf, p filePage, group int, v *Values) error {
	g := f.groups[group]
	most := g.bytes + cmp.Or(r.Limit, 64<<20)
	if int64(g.rows) > most {
		return fmt.Errorf("page group of %d rows", g.rows)
	}
	h, body, err := r.page(f, c, p, most)
	if err != nil {
		return err
	}
	if h.kind != 0 || h.slots < 0 || int64(h.slots) > most {
		return errors.New("page head is damaged")
	}
	n := h.slots
	if l.List >= 0 {
		depth := f.lists[l.List].Depth
		if body, err = r.lv.cut(body, n, depth); err != nil {
			return err
		}
		n = r.lv.elements
	} else if n != g.rows {
		return fmt.Errorf("%d values for %d rows", n, g.rows)
	}
	if h.encoding != dictionary {
		return cutValues(body, l, v, h.encoding, n, &r.lens)
	}
	if len(body) == 0 || body[0] > 32 {
		return errShort
	}
	r.idx = grown(r.idx, n)
	width := int(body[0])
	rest, err := cutHybrid(body[1:], r.idx, width)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return errors.New("bytes too many")
	}
	return r.lookup(f, c, l, v, most)
}

// lookup replaces the dictionary numbers in r.idx by values.
func (r *PageReader) lookup(f *File, c *chunk, l *Leaf, v *Values, most int64) error {
	if c.dict.size == 0 {
		return errors.New("no dictionary")
	}
	h, body, err := r.page(f, c, c.dict, most)
	if err != nil {
		return err
	}
	if h.kind != 2 || h.slots < 0 || h.slots > 1<<20 {
		return errors.New("dictionary head is damaged")
	}
	r.dict.Reset()
	if err := cutValues(body, l, &r.dict, plain, h.slots, &r.lens); err != nil {
		return fmt.Errorf("dictionary: %w", err)
	}
	for _, i := range r.idx {
		if int(i) >= h.slots {
			return errors.New("number beyond the dictionary")
		}
	}
	switch l.physical() {
	case typeInt32:
		v.I32 = lookup(v.I32, r.dict.I32, r.idx)
	case typeInt64:
		v.I64 = lookup(v.I64, r.dict.I64, r.idx)
	case typeFloat:
		v.F32 = lookup(v.F32, r.dict.F32, r.idx)
	case typeDouble:
		v.F64 = lookup(v.F64, r.dict.F64, r.idx)
	case typeBytes:
		size := int64(0)
		for _, i := range r.idx {
			if size += int64(len(r.dict.At(int(i)))); size > most {
				return errors.New("strings are too long together")
			}
		}
		v.Data = slices.Grow(v.Data, int(size))
		for _, i := range r.idx {
			v.Data = append(v.Data, r.dict.At(int(i))...)
			v.Ends = append(v.Ends, uint32(len(v.Data)))
		}
	case typeFixed:
		if int64(l.Fixed)*int64(len(r.idx)) > most {
			return errors.New("values are too long together")
		}
		for _, i := range r.idx {
			v.Data = append(v.Data, r.dict.Data[int(i)*l.Fixed:(int(i)+1)*l.Fixed]...)
		}
	default:
		return errors.New("dictionary of bools")
	}
	return nil
}

func lookup[T any](out, dict []T, idx []uint32) []T {
	at := len(out)
	out = slices.Grow(out, len(idx))[:at+len(idx)]
	for k, i := range idx {
		out[at+k] = dict[i]
	}
	return out
}

// pageHead is the head of a page.
type pageHead struct {
	kind, raw, size, slots int
	encoding               encoding
}

// page reads and checks a page and returns its body, uncompressed; it is valid until the next call.
func (r *PageReader) page(f *File, c *chunk, p filePage, most int64) (pageHead, []byte, error) {
	r.raw = grown(r.raw, p.size)
	if err := readAt(f.r, r.raw, p.off); err != nil {
		return pageHead{}, nil, err
	}
	if f.checked && crc32.Checksum(r.raw, castagnoli) != p.crc {
		return pageHead{}, nil, errors.New("checksum of page is wrong")
	}
	t := &thriftReader{b: r.raw}
	h := pageHead{encoding: undecided}
	t.structure(func(id, typ int) bool {
		switch {
		case typ == thriftStruct && (id == 5 || id == 7):
			t.structure(func(id, typ int) bool {
				if typ != thriftI32 {
					return false
				}
				switch n := t.number(); id {
				case 1:
					h.slots = int(n)
				case 2:
					h.encoding = encoding(n)
				}
				return true
			})
		case typ == thriftI32:
			n := int(t.number())
			switch id {
			case 1:
				h.kind = n
			case 2:
				h.raw = n
			case 3:
				h.size = n
			}
		default:
			return false
		}
		return true
	})
	if t.bad || h.size != len(t.b) || h.raw < 0 || int64(h.raw) > 2*most+int64(len(t.b)) {
		return h, nil, errors.New("page head is damaged")
	}
	switch c.codec {
	case codecNone:
		if h.raw != h.size {
			return h, nil, errors.New("page head is damaged")
		}
		return h, t.b, nil
	case codecZstd:
		body, err := r.dec.zstd(t.b, h.raw)
		return h, body, err
	}
	return h, nil, fmt.Errorf("compression %d is unknown", c.codec)
}

// cutValues reads n values from b onto v.
func cutValues(b []byte, l *Leaf, v *Values, e encoding, n int, lens *[]int32) (err error) {
	switch t := l.physical(); {
	case t == typeBoolean && e == plain:
		b, v.U8, err = cutBools(b, v.U8, n)
	case t == typeInt32 && e == plain:
		b, v.I32, err = cutPlain(b, v.I32, n)
	case t == typeInt32 && e == delta:
		b, v.I32, err = cutDelta(b, v.I32, n)
	case t == typeInt64 && e == plain:
		b, v.I64, err = cutPlain(b, v.I64, n)
	case t == typeInt64 && e == delta:
		b, v.I64, err = cutDelta(b, v.I64, n)
	case t == typeFloat && e == plain:
		b, v.F32, err = cutPlain(b, v.F32, n)
	case t == typeFloat && e == byteSplit:
		b, v.F32, err = cutSplit(b, v.F32, n)
	case t == typeDouble && e == plain:
		b, v.F64, err = cutPlain(b, v.F64, n)
	case t == typeDouble && e == byteSplit:
		b, v.F64, err = cutSplit(b, v.F64, n)
	case t == typeFixed && e == plain:
		if n > len(b)/l.Fixed {
			return errShort
		}
		v.Data, b = append(v.Data, b[:n*l.Fixed]...), b[n*l.Fixed:]
	case t == typeBytes && e == plain:
		for range n {
			if len(b) < 4 || uint64(le.Uint32(b)) > uint64(len(b)-4) {
				return errShort
			}
			end := 4 + le.Uint32(b)
			v.Data = append(v.Data, b[4:end]...)
			v.Ends = append(v.Ends, uint32(len(v.Data)))
			b = b[end:]
		}
	case t == typeBytes && e == deltaLength:
		if b, *lens, err = cutDelta(b, (*lens)[:0], n); err != nil {
			return err
		}
		total := uint64(0)
		for _, x := range *lens {
			if total += uint64(uint32(x)); x < 0 || total > uint64(len(b)) {
				return errShort
			}
			v.Ends = append(v.Ends, uint32(total))
		}
		v.Data, b = append(v.Data, b[:total]...), b[total:]
	default:
		return fmt.Errorf("encoding %d is unknown", e)
	}
	if err == nil && len(b) > 0 {
		err = errors.New("bytes too many")
	}
	return err
}
