package shred

import (
	"encoding/binary"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gobag/gobag/cdr"
)

// Append adds a payload, header included, as a row. A payload that would not come back byte for byte is refused with a
// *NotCanonical, and b is as before. ErrFull if there is no room.
func (p *Program) Append(b *Batch, payload []byte) error {
	reason, at, err := p.append(b, payload, false)
	if err == nil && reason != Canonical {
		err = &NotCanonical{reason, at}
	}
	return err
}

// AppendLoose adds a payload as Append does, but takes one with wrong form too: padding counts as zero, a bool that is
// neither 0 nor 1 as true, bytes of a string that are not UTF-8 become '?', nanoseconds of a second or more are taken
// over into the seconds, what is behind the value is left out. What was wrong first is returned; Assemble then gives a
// payload that differs, mostly in a few bytes. A *NotCanonical is returned for a payload that cannot be walked at all
// (Reason above Structure).
func (p *Program) AppendLoose(b *Batch, payload []byte) (Reason, error) {
	reason, _, err := p.append(b, payload, true)
	return reason, err
}

func (p *Program) append(b *Batch, payload []byte, loose bool) (Reason, int, error) {
	if len(payload) < cdr.HeaderSize {
		return Canonical, 0, &NotCanonical{Short, len(payload)}
	}
	if len(payload) > maxBatch-b.size {
		return Canonical, 0, ErrFull
	}
	w := walker{b: b, body: payload[cdr.HeaderSize:]}
	ops, form := p.ops[0], Form(0)
	switch cdr.Kind(binary.BigEndian.Uint16(payload)) {
	case cdr.CDRLE:
	case cdr.CDRBE:
		form = FormBigEndian
	case cdr.CDR2LE:
		ops, form = p.ops[1], FormXCDR2
	case cdr.CDR2BE:
		ops, form = p.ops[1], FormXCDR2|FormBigEndian
	default:
		return Canonical, 0, &NotCanonical{Encoding, 0}
	}
	if payload[2] != 0 || payload[3] > 3 {
		w.odd(BadOptions, 2-cdr.HeaderSize)
	}
	if form&FormBigEndian != 0 {
		b.scratch = append(b.scratch[:0], w.body...)
		w.body = b.scratch
		s := swapper{body: w.body}
		s.run(ops, 0) // what it cannot walk it leaves, for the walk below to find
	}
	pos := w.run(ops, 0)
	tail := len(w.body) - pos
	if pos >= 0 && tail > 0 {
		if tail > 3 {
			w.odd(Trailing, pos)
			tail = 0
		}
		for i := range tail {
			if w.body[pos+i] != 0 {
				w.odd(DirtyTail, pos+i)
			}
		}
	}
	if pos < 0 || w.reason != Canonical && !loose {
		p.rollback(b)
		if pos < 0 {
			return w.reason, w.at, &NotCanonical{w.broken, w.brokenAt + cdr.HeaderSize}
		}
		return w.reason, w.at + cdr.HeaderSize, nil
	}
	p.commit(b)
	b.size += len(payload)
	b.Forms = append(b.Forms, form|Form(payload[3]&3)<<formDeclared|Form(tail)<<formTail)
	if n := len(b.Forms); n >= 256 && n <= 8<<10 && n&(n-1) == 0 {
		b.double()
	}
	return w.reason, w.at + cdr.HeaderSize, nil
}

// commit takes over the element counts of the row that was walked.
func (p *Program) commit(b *Batch) {
	for i := range p.lists {
		if l := &p.lists[i]; l.Fixed > 0 {
			b.pending[i] = l.Fixed
			if l.Parent >= 0 {
				b.pending[i] *= b.pending[l.Parent] - b.elems[l.Parent]
			}
			b.pending[i] += b.elems[i]
		}
	}
	copy(b.elems, b.pending)
}

// rollback takes the values away that are not of a committed row.
func (p *Program) rollback(b *Batch) {
	copy(b.pending, b.elems)
	occurrences := func(parent int) int {
		if parent < 0 {
			return len(b.Forms)
		}
		return b.elems[parent]
	}
	for i := range p.lists {
		if l := &p.lists[i]; p.counts(i) {
			b.Counts[i] = b.Counts[i][:occurrences(l.Parent)]
		}
	}
	for i := range p.cols {
		if !p.stores(i) {
			continue
		}
		b.Cols[i].truncate(&p.cols[i], occurrences(p.cols[i].List))
	}
}

// walker adds the values of one payload to a batch. Positions count from behind the encapsulation header, as alignment
// does.
type walker struct {
	b        *Batch
	body     []byte
	reason   Reason // first oddity of form
	broken   Reason // why the walk ended
	at       int
	brokenAt int
}

func (w *walker) odd(r Reason, at int) {
	if w.reason == Canonical {
		w.reason, w.at = r, at
	}
}

// stop ends the walk.
func (w *walker) stop(r Reason, at int) int {
	w.broken, w.brokenAt = r, at
	return -1
}

// pad moves to the next multiple of mask+1.
func (w *walker) pad(pos, mask int) int {
	next := (pos + mask) &^ mask
	if next > len(w.body) {
		return w.stop(Short, len(w.body))
	}
	for i, c := range w.body[pos:next] {
		if c != 0 {
			w.odd(DirtyPadding, pos+i)
			break
		}
	}
	return next
}

// u32 reads an aligned uint32; the position is negative if there is none.
func (w *walker) u32(pos int) (uint32, int) {
	if pos&3 != 0 {
		if pos = w.pad(pos, 3); pos < 0 {
			return 0, pos
		}
	}
	if len(w.body)-pos < 4 {
		return 0, w.stop(Short, len(w.body))
	}
	return binary.LittleEndian.Uint32(w.body[pos:]), pos + 4
}

// run walks ops from pos and returns where it ends, negative if the walk was stopped.
func (w *walker) run(ops []op, pos int) int {
	for i := range ops {
		o := &ops[i]
		switch o.code {
		case opRun:
			if pos&o.align != 0 {
				if pos = w.pad(pos, o.align); pos < 0 {
					return pos
				}
			}
			end := pos + o.n*o.size
			if end > len(w.body) {
				return w.stop(Short, len(w.body))
			}
			w.row(o.kind, w.b.Cols[o.col:o.col+o.n], w.body[pos:end], pos)
			pos = end
		case opNumbers:
			pos = w.numberList(o, pos)
		case opString:
			pos = w.text(&w.b.Cols[o.col], pos)
		case opBytes:
			n, next := w.u32(pos)
			if pos = next; pos < 0 {
				return pos
			}
			if uint64(n) > uint64(len(w.body)-pos) {
				return w.stop(Short, pos)
			}
			v := &w.b.Cols[o.col]
			v.Data = append(v.Data, w.body[pos:pos+int(n)]...)
			v.Ends = append(v.Ends, uint32(len(v.Data)))
			pos += int(n)
		case opFixedBytes:
			if o.n > len(w.body)-pos {
				return w.stop(Short, len(w.body))
			}
			v := &w.b.Cols[o.col]
			v.Data = append(v.Data, w.body[pos:pos+o.n]...)
			pos += o.n
		case opWString:
			pos = w.wide(o, pos)
		case opTime:
			sec, next := w.u32(pos)
			if pos = next; pos < 0 {
				return pos
			}
			ns, next := w.u32(pos)
			if pos = next; pos < 0 {
				return pos
			}
			if ns >= 1e9 {
				w.odd(BadNanosec, pos-4)
			}
			v := &w.b.Cols[o.col]
			v.I64 = append(v.I64, int64(int32(sec))*1e9+int64(ns))
		case opList:
			pos = w.list(o, pos)
		case opSkip:
			if pos = (pos + o.align) &^ o.align; o.size > len(w.body)-pos {
				return w.stop(Short, len(w.body))
			}
			pos += o.size
		case opSkipNumbers:
			pos = w.skip(o, pos)
		}
		if pos < 0 {
			return pos
		}
	}
	return pos
}

// numberList walks a sequence or array of numbers.
func (w *walker) numberList(o *op, pos int) int {
	n := o.n
	if n == 0 {
		count, next := w.u32(pos)
		if pos = next; pos < 0 {
			return pos
		}
		if uint64(count) > uint64(len(w.body)-pos) {
			return w.stop(Short, pos)
		}
		n = int(count)
		w.count(o.list, count)
		if n == 0 {
			return pos
		}
	}
	if pos&o.align != 0 {
		if pos = w.pad(pos, o.align); pos < 0 {
			return pos
		}
	}
	if n > (len(w.body)-pos)/o.size {
		return w.stop(Short, pos)
	}
	end := pos + n*o.size
	w.many(o.kind, &w.b.Cols[o.col], w.body[pos:end], pos)
	return end
}

// skip walks over a sequence or array of numbers.
func (w *walker) skip(o *op, pos int) int {
	n := o.n
	if n == 0 {
		count, next := w.u32(pos)
		if pos = next; pos < 0 || count == 0 {
			return pos
		}
		n = int(count)
	}
	if pos = (pos + o.align) &^ o.align; n > (len(w.body)-pos)/o.size {
		return w.stop(Short, min(pos, len(w.body)))
	}
	return pos + n*o.size
}

func (w *walker) count(list int, n uint32) {
	w.b.Counts[list] = append(w.b.Counts[list], n)
	w.b.pending[list] += int(n)
}

// list walks a sequence or array of anything but numbers.
func (w *walker) list(o *op, pos int) int {
	end := 0
	if o.delim {
		size, next := w.u32(pos)
		if pos = next; pos < 0 {
			return pos
		}
		if uint64(size) > uint64(len(w.body)-pos) {
			return w.stop(Short, pos)
		}
		end = pos + int(size)
	}
	n := o.n
	if n == 0 {
		count, next := w.u32(pos)
		if pos = next; pos < 0 {
			return pos
		}
		if uint64(count) > uint64((len(w.body)-pos)/o.min) {
			return w.stop(Short, pos)
		}
		n = int(count)
		if o.list >= 0 {
			w.count(o.list, count)
		}
	} else if n > (len(w.body)-pos)/o.min {
		return w.stop(Short, pos)
	}
	if len(o.body) == 1 && o.body[0].code == opString {
		v := &w.b.Cols[o.body[0].col]
		for range n {
			if pos = w.text(v, pos); pos < 0 {
				return pos
			}
		}
	} else {
		for range n {
			if pos = w.run(o.body, pos); pos < 0 {
				return pos
			}
		}
	}
	if o.delim && pos != end {
		return w.stop(Delimiter, pos)
	}
	return pos
}

// text walks a string.
func (w *walker) text(v *Values, pos int) int {
	if pos&3 != 0 {
		if pos = w.pad(pos, 3); pos < 0 {
			return pos
		}
	}
	if len(w.body)-pos < 4 {
		return w.stop(Short, len(w.body))
	}
	n := binary.LittleEndian.Uint32(w.body[pos:])
	pos += 4
	if uint64(n) > uint64(len(w.body)-pos) {
		return w.stop(Short, pos)
	}
	s := w.body[pos : pos+int(n)]
	if k := len(s) - 1; k >= 0 && s[k] == 0 {
		s = s[:k]
	} else {
		w.odd(NoNUL, pos)
	}
	start := len(v.Data)
	var plain bool
	if len(s) <= 16 && len(w.body)-pos >= 16 && cap(v.Data)-start >= 16 {
		plain = short(v.Data[start:start+16], w.body[pos:pos+16], len(s))
		v.Data = v.Data[:start+len(s)]
	} else {
		v.Data = append(v.Data, s...)
		plain = ascii(s)
	}
	if !plain && !utf8.Valid(s) {
		w.odd(BadUTF8, pos)
		question(v.Data[start:])
	}
	v.Ends = append(v.Ends, uint32(len(v.Data)))
	return pos + int(n)
}

// short copies 16 bytes and tells whether the first n of them, 16 at most, are below 0x80: two words instead of a call to
// copy and a loop.
func short(dst, src []byte, n int) bool {
	lo, hi := binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[8:])
	binary.LittleEndian.PutUint64(dst, lo)
	binary.LittleEndian.PutUint64(dst[8:], hi)
	if n < 8 {
		return lo<<(64-8*n)&0x8080808080808080 == 0
	}
	return (lo|hi<<(128-8*n))&0x8080808080808080 == 0
}

// ascii tells whether all bytes are below 0x80. Strings of ROS are short and nearly always are.
func ascii(s []byte) bool {
	all := uint64(0)
	switch n := len(s); {
	case n >= 8:
		all = binary.LittleEndian.Uint64(s[n-8:])
		for ; len(s) > 8; s = s[8:] {
			all |= binary.LittleEndian.Uint64(s)
		}
	case n >= 4:
		all = uint64(binary.LittleEndian.Uint32(s) | binary.LittleEndian.Uint32(s[n-4:]))
	default:
		for _, c := range s {
			all |= uint64(c)
		}
	}
	return all&0x8080808080808080 == 0
}

// question overwrites bytes that are not UTF-8 with '?'.
func question(s []byte) {
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n == 1 {
			s[0] = '?'
		}
		s = s[n:]
	}
}

// wide walks a wide string: the number of UTF-16 units, then 4 bytes for each.
func (w *walker) wide(o *op, pos int) int {
	n, next := w.u32(pos)
	if pos = next; pos < 0 {
		return pos
	}
	if uint64(n) > uint64(len(w.body)-pos)/4 {
		return w.stop(Short, pos)
	}
	v := &w.b.Cols[o.col]
	v.Data = slices.Grow(v.Data, int(n))
	end := pos + 4*int(n)
	for ; pos < end; pos += 4 {
		u := binary.LittleEndian.Uint32(w.body[pos:])
		r := rune(u)
		switch {
		case u > 0xffff:
			r = utf8.RuneError
			w.odd(BadUTF16, pos)
		case utf16.IsSurrogate(r):
			second := rune(0)
			if pos+4 < end {
				second = rune(min(binary.LittleEndian.Uint32(w.body[pos+4:]), utf8.MaxRune))
			}
			if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
				w.odd(BadUTF16, pos)
			} else {
				pos += 4
			}
		}
		v.Data = utf8.AppendRune(v.Data, r)
	}
	v.Ends = append(v.Ends, uint32(len(v.Data)))
	return pos
}
