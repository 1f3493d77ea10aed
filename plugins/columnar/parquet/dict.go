package parquet

import (
	"bytes"
	"hash/maphash"
	"math/bits"
)

// A dictionary is given up when it has more entries than this, or more bytes of strings.
const (
	maxDictEntries = 1 << 15
	maxDictBytes   = 1 << 20
)

// dict maps the values of a column to running numbers. Numbers are kept as their bits, strings in an arena.
type dict struct {
	table []uint32 // number + 1, by hash; a power of two long
	words []uint64
	data  []byte
	ends  []uint32
	seed  maphash.Seed
}

func (d *dict) len() int { return max(len(d.words), len(d.ends)) }

func (d *dict) reset() {
	clear(d.table)
	d.words, d.data, d.ends = d.words[:0], d.data[:0], d.ends[:0]
}

func hashWord(w uint64) uint64 { return bits.ReverseBytes64(w * 0x9e3779b97f4a7c15) }

// addWord returns the number of w.
func (d *dict) addWord(w uint64) uint32 {
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

func (d *dict) hashBytes(s []byte) uint64 {
	if len(s) > 8 {
		return maphash.Bytes(d.seed, s)
	}
	w := uint64(len(s)) << 56
	for i, c := range s {
		w ^= uint64(c) << (8 * i)
	}
	return hashWord(w)
}

// addBytes returns the number of s.
func (d *dict) addBytes(s []byte) uint32 {
	if 2*len(d.ends) >= len(d.table) {
		if len(d.table) == 0 {
			d.seed = maphash.MakeSeed()
		}
		d.growTable()
		for i := range d.ends {
			d.place(d.hashBytes(d.at(uint32(i))), uint32(i+1))
		}
	}
	mask := uint64(len(d.table) - 1)
	for h := d.hashBytes(s) & mask; ; h = (h + 1) & mask {
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

// indexBytes is indexNumbers for strings.
func indexBytes(d *dict, idx []uint32, data []byte, ends []uint32) ([]uint32, bool) {
	var last []byte
	n := uint32(0)
	start := uint32(0)
	for i, end := range ends {
		s := data[start:end]
		start = end
		if i == 0 || !bytes.Equal(s, last) {
			n = d.addBytes(s)
			last = s
			if d.full() {
				return idx, false
			}
		}
		idx = append(idx, n)
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
