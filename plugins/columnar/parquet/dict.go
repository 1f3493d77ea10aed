package parquet

import (
	"bytes"
	"math"
	"math/bits"
	"math/rand/v2"
)

// A dictionary is given up when it has more entries than this, or more bytes of strings.
const (
	maxDictEntries = 1 << 15
	maxDictBytes   = 1 << 20
)

// dict maps the values of a column to running numbers. Numbers are kept as their bits, strings in an arena.
type dict struct {
	table  []uint32 // number + 1, by hash; a power of two long
	words  []uint64
	data   []byte
	ends   []uint32
	small  []uint32 // number + 1 of words below smallWords
	next   []uint32 // by number: 1 + the number that followed last time; a guess
	beside []uint32 // by number in another column: 1 + the number that stood beside it last time; a guess
	of     *dict    // that other column's
	seen   []uint32 // by number: the page it was last seen in
	page   uint32
}

const smallWords = 1024

func (d *dict) len() int { return max(len(d.words), len(d.ends)) }

func (d *dict) reset() {
	clear(d.table)
	clear(d.small)
	d.words, d.data, d.ends, d.next = d.words[:0], d.data[:0], d.ends[:0], d.next[:0]
	d.beside, d.of = d.beside[:0], nil
}

func hashWord(w uint64) uint64 { return bits.ReverseBytes64(w * 0x9e3779b97f4a7c15) }

// addWord returns the number of w.
func (d *dict) addWord(w uint64) uint32 {
	if w >= smallWords {
		return d.hashWord(w)
	}
	if d.small == nil {
		d.small = make([]uint32, smallWords)
	}
	if d.small[w] == 0 {
		d.small[w] = d.hashWord(w) + 1
	}
	return d.small[w] - 1
}

func (d *dict) hashWord(w uint64) uint32 {
	if 2*len(d.words) >= len(d.table) {
		d.growTable()
		for i, x := range d.words {
			d.place(hashWord(x), uint32(i+1))
		}
	}
	mask := uint64(len(d.table) - 1)
	for h := hashWord(w) & mask; ; h = (h + 1) & mask {
		n := d.table[h]
		if n == 0 {
			d.words = append(d.words, w)
			d.table[h] = uint32(len(d.words))
			return uint32(len(d.words) - 1)
		}
		if d.words[n-1] == w {
			return n - 1
		}
	}
}

// hashKeys make it hard to find texts that collide. They are odd.
var hashKeys = [2]uint64{rand.Uint64() | 1, rand.Uint64() | 1}

func hashBytes(s []byte) uint64 {
	n := len(s)
	var a, b uint64
	switch {
	case n > 16:
		for ; len(s) > 16; s = s[8:] {
			a = bits.RotateLeft64((a^le.Uint64(s))*hashKeys[1], 29)
		}
		a ^= le.Uint64(s)
		b = le.Uint64(s[len(s)-8:])
	case n >= 8:
		a, b = le.Uint64(s), le.Uint64(s[n-8:])
	case n >= 4:
		a, b = uint64(le.Uint32(s)), uint64(le.Uint32(s[n-4:]))
	case n > 0:
		a = uint64(s[0]) | uint64(s[n>>1])<<8 | uint64(s[n-1])<<16
	}
	hi, lo := bits.Mul64((a^uint64(n))+hashKeys[0], b^hashKeys[1])
	return hi ^ lo
}

// addBytes returns the number of s.
func (d *dict) addBytes(s []byte) uint32 {
	if 2*len(d.ends) >= len(d.table) {
		d.growTable()
		for i := range d.ends {
			d.place(hashBytes(d.at(uint32(i))), uint32(i+1))
		}
	}
	mask := uint64(len(d.table) - 1)
	for h := hashBytes(s) & mask; ; h = (h + 1) & mask {
		n := d.table[h]
		if n == 0 {
			d.data = append(d.data, s...)
			d.ends = append(d.ends, uint32(len(d.data)))
			d.table[h] = uint32(len(d.ends))
			return uint32(len(d.ends) - 1)
		}
		if bytes.Equal(d.at(n-1), s) {
			return n - 1
		}
	}
}

func (d *dict) at(n uint32) []byte {
	start := uint32(0)
	if n > 0 {
		start = d.ends[n-1]
	}
	return d.data[start:d.ends[n]]
}

func (d *dict) growTable() { d.table = make([]uint32, max(64, 4*len(d.table))) }

func (d *dict) place(h uint64, n uint32) {
	mask := uint64(len(d.table) - 1)
	for h &= mask; d.table[h] != 0; h = (h + 1) & mask {
	}
	d.table[h] = n
}

// full says whether the dictionary has outgrown its use.
func (d *dict) full() bool { return d.len() > maxDictEntries || len(d.data) > maxDictBytes }

// indexNumbers appends the dictionary numbers of v to idx; false where the dictionary is full.
func indexNumbers[T int32 | int64 | float32 | float64](d *dict, idx []uint32, v []T) ([]uint32, bool) {
	if len(v) == 0 {
		return idx, true
	}
	last := word(v[0])
	n := d.addWord(last)
	for _, x := range v {
		if w := word(x); w != last {
			last, n = w, d.addWord(w)
			if len(d.words) > maxDictEntries {
				return idx, false
			}
		}
		idx = append(idx, n)
	}
	return idx, true
}

// indexBytes is indexNumbers for strings. Texts come in patterns: what followed the last one before is tried first.
func indexBytes(d *dict, idx []uint32, data []byte, ends []uint32) ([]uint32, bool) {
	n, known := uint32(0), false
	start := uint32(0)
	for _, end := range ends {
		s := data[start:end]
		start = end
		if known && d.next[n] != 0 && bytes.Equal(d.at(d.next[n]-1), s) {
			n = d.next[n] - 1
		} else {
			m := d.addBytes(s)
			if d.full() {
				return idx, false
			}
			for len(d.next) < len(d.ends) {
				d.next = append(d.next, 0)
			}
			if known {
				d.next[n] = m + 1
			}
			n, known = m, true
		}
		idx = append(idx, n)
	}
	return idx, true
}

// indexBeside is indexBytes for a column of texts that may go with those of another, as the region goes with the host:
// what stood beside the other's text last time is tried first. There are as many values as numbers of the other.
func indexBeside(d *dict, idx []uint32, data []byte, ends []uint32, other []uint32, of *dict) ([]uint32, bool) {
	if d.of != of {
		clear(d.beside)
		d.of = of
	}
	if n := of.len(); len(d.beside) < n {
		d.beside = append(d.beside, make([]uint32, n-len(d.beside))...)
	}
	start := uint32(0)
	for i, end := range ends {
		s := data[start:end]
		start = end
		o := other[i]
		n := d.beside[o]
		if n == 0 || !bytes.Equal(d.at(n-1), s) {
			n = d.addBytes(s) + 1
			if d.full() {
				return idx, false
			}
			d.beside[o] = n
		}
		idx = append(idx, n-1)
	}
	return idx, true
}

// appendPage appends the dictionary as the body of its page.
func (d *dict) appendPage(dst []byte, l *Leaf) []byte {
	switch l.physical() {
	case typeInt32, typeFloat:
		for _, w := range d.words {
			dst = le.AppendUint32(dst, uint32(w))
		}
	case typeInt64, typeDouble:
		for _, w := range d.words {
			dst = le.AppendUint64(dst, w)
		}
	case typeBytes:
		for i := range d.ends {
			s := d.at(uint32(i))
			dst = append(le.AppendUint32(dst, uint32(len(s))), s...)
		}
	case typeFixed:
		dst = append(dst, d.data...)
	}
	return dst
}

// bounds are those of the values that idx names.
func (d *dict) bounds(l *Leaf, idx []uint32) bounds {
	if len(idx) == 0 {
		return bounds{none: true}
	}
	if l.Kind == Bytes {
		return bounds{}
	}
	d.seen = append(d.seen, make([]uint32, d.len()-min(d.len(), len(d.seen)))...)
	d.page++
	var v Values
	seen, page := d.seen, d.page
	for _, n := range idx {
		if seen[n] == page {
			continue
		}
		seen[n] = page
		switch l.physical() {
		case typeInt32:
			v.I32 = append(v.I32, int32(d.words[n]))
		case typeInt64:
			v.I64 = append(v.I64, int64(d.words[n]))
		case typeFloat:
			v.F32 = append(v.F32, math.Float32frombits(uint32(d.words[n])))
		case typeDouble:
			v.F64 = append(v.F64, math.Float64frombits(d.words[n]))
		case typeBytes, typeFixed:
			v.Data = append(v.Data, d.at(n)...)
			v.Ends = append(v.Ends, uint32(len(v.Data)))
		}
	}
	return boundsOf(l, &v)
}
