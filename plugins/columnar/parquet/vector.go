package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Vector is a column of a page group for whoever looks at values without copying them: either values, or numbers of
// dictionary entries in the narrowest of the slices that holds them.
type Vector struct {
	Values          // where no codes are
	Codes8  []uint8 // numbers of dictionary entries
	Codes16 []uint16
	Codes32 []uint32
}

// Coded says whether v has numbers of dictionary entries.
func (v *Vector) Coded() bool { return v.Codes8 != nil || v.Codes16 != nil || v.Codes32 != nil }

// Dictionary fills v, emptied before, with the dictionary of a column, in the order of its numbers, and returns how many
// entries it has; 0 where there is none. Damage is a *DamageError.
func (r *PageReader) Dictionary(f *File, leaf int, v *Values) (int, error) {
	c, l := &f.cols[leaf], &f.leaves[leaf]
	v.Reset()
	if c.dict.size == 0 {
		return 0, nil
	}
	h, body, err := r.page(f, c, c.dict, f.most(0, r.Limit))
	if err == nil && (h.kind != 2 || h.slots < 0 || h.slots > 1<<20) {
		err = errors.New("dictionary head is damaged")
	}
	if err == nil {
		err = cutValues(body, l, v, plain, h.slots, &r.lens)
	}
	if err != nil {
		return 0, damaged(c.dict.off, fmt.Errorf("column %s: dictionary: %w", l.Name, err))
	}
	return h.slots, nil
}

func damaged(off int64, err error) error {
	var damage *DamageError
	if errors.As(err, &damage) {
		return err
	}
	return &DamageError{off, err}
}

// most bounds the values and bytes of a page group.
func (f *File) most(group int, limit int64) int64 {
	if limit == 0 {
		limit = 64 << 20
	}
	if group < len(f.groups) {
		return f.groups[group].bytes + limit
	}
	return limit
}

// Vector fills v, emptied before but for its memory, with a column that is in no list. entries is what Dictionary returned:
// no number is above it. Damage is a *DamageError.
func (r *PageReader) Vector(f *File, group, leaf, entries int, v *Vector) error {
	c, l := &f.cols[leaf], &f.leaves[leaf]
	v.Reset()
	if l.List >= 0 {
		return fmt.Errorf("column %s is in a list", l.Name)
	}
	p := c.pages[group]
	if err := r.vector(f, c, l, p, group, entries, v); err != nil {
		return damaged(p.off, fmt.Errorf("column %s: %w", l.Name, err))
	}
	return nil
}

func (r *PageReader) vector(f *File, c *chunk, l *Leaf, p filePage, group, entries int, v *Vector) error {
	n, most := f.groups[group].rows, f.most(group, r.Limit)
	if int64(n) > most {
		return fmt.Errorf("page group of %d rows", n)
	}
	h, body, err := r.page(f, c, p, most)
	if err != nil {
		return err
	}
	if h.kind != 0 || h.slots != n {
		return errors.New("page head is damaged")
	}
	codes8, codes16, codes32 := v.Codes8[:0], v.Codes16[:0], v.Codes32[:0]
	v.Codes8, v.Codes16, v.Codes32 = nil, nil, nil
	if h.encoding != dictionary {
		return cutValues(body, l, &v.Values, h.encoding, n, &r.lens)
	}
	if len(body) == 0 || body[0] > 32 {
		return errShort
	}
	width := int(body[0])
	var rest []byte
	switch {
	case entries <= 1<<8:
		v.Codes8 = slices.Grow(codes8, n)[:n]
		if rest, err = cutCodes8(body[1:], v.Codes8, width); err == nil {
			err = within8(v.Codes8, entries)
		}
	default:
		r.idx = grown(r.idx, n)
		if rest, err = cutHybrid(body[1:], r.idx, width); err != nil {
			break
		}
		if err = within(r.idx, entries); err != nil {
			break
		}
		if entries > 1<<16 {
			v.Codes32 = append(codes32, r.idx...)
			break
		}
		v.Codes16 = slices.Grow(codes16, n)[:n]
		for i, x := range r.idx {
			v.Codes16[i] = uint16(x)
		}
	}
	if err == nil && len(rest) > 0 {
		err = errors.New("bytes too many")
	}
	return err
}

// within8 is within for bytes, eight at a time.
func within8(codes []uint8, entries int) error {
	if entries > 0xff {
		return nil
	}
	if entries > 0 && entries <= 0x80 {
		const high = 0x8080808080808080
		add := uint64(0x80-entries) * 0x0101010101010101 // to what is too large this adds the highest bit
		seen := uint64(0)
		for len(codes) >= 8 {
			w := le.Uint64(codes)
			seen |= w | (w&^high + add)
			codes = codes[8:]
		}
		if seen&high != 0 {
			return errors.New("number beyond the dictionary")
		}
	}
	return within(codes, entries)
}

// within checks that numbers are those of dictionary entries.
func within[T uint8 | uint32](codes []T, entries int) error {
	most := T(0)
	for _, x := range codes {
		most = max(most, x)
	}
	if len(codes) > 0 && int(most) >= entries {
		return errors.New("number beyond the dictionary")
	}
	return nil
}

// cutCodes8 is cutHybrid for numbers below 256, whose bytes are copied where they have 8 bits.
func cutCodes8(b []byte, out []uint8, width int) ([]byte, error) {
	if width != 8 {
		if width > 8 {
			return nil, errors.New("numbers wider than the dictionary needs")
		}
		return cutHybrid(b, out, width)
	}
	for len(out) > 0 {
		h, k := binary.Uvarint(b)
		if k <= 0 {
			return nil, errShort
		}
		b = b[k:]
		if h&1 == 0 {
			n := h >> 1
			if n == 0 || n > uint64(len(out)) || len(b) == 0 {
				return nil, errShort
			}
			for i := range out[:n] {
				out[i] = b[0]
			}
			out, b = out[n:], b[1:]
			continue
		}
		groups := h >> 1
		if groups == 0 || groups > uint64(len(b))/8 {
			return nil, errShort
		}
		k = copy(out, b[:groups*8])
		out, b = out[k:], b[groups*8:]
	}
	return b, nil
}

// From is f with another way to read its bytes: so several goroutines can read a file, each with an open file of its own.
func (f *File) From(r io.ReaderAt) *File {
	g := *f
	g.r = r
	return &g
}

// Coded says whether a page has numbers of dictionary entries. It reads the page's head alone.
func (f *File) Coded(group, leaf int) (bool, error) {
	p := f.cols[leaf].pages[group]
	b := make([]byte, min(p.size, 64))
	if err := readAt(f.r, b, p.off); err != nil {
		return false, err
	}
	t := &thriftReader{b: b}
	enc := undecided
	t.structure(func(id, typ int) bool {
		if id != 5 || typ != thriftStruct {
			return false
		}
		t.structure(func(id, typ int) bool {
			if id != 2 || typ != thriftI32 {
				return false
			}
			enc = encoding(t.number())
			return true
		})
		return true
	})
	if t.bad {
		return false, &DamageError{p.off, errThrift}
	}
	return enc == dictionary, nil
}
