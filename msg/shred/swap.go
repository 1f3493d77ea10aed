package shred

import "encoding/binary"

// swapper reverses the bytes of all numbers of a body in place, from or to big-endian. Where the body cannot be walked
// it stops and leaves the rest.
type swapper struct {
	body []byte
	back bool // from little-endian: lengths are read before they are reversed
}

// length reverses the aligned uint32 at pos and returns its value and the position behind it, negative at the end.
func (s *swapper) length(pos int) (int, int) {
	pos = (pos + 3) &^ 3
	if len(s.body)-pos < 4 {
		return 0, -1
	}
	b := s.body[pos:]
	n := binary.BigEndian.Uint32(b)
	if s.back {
		n = binary.LittleEndian.Uint32(b)
	}
	s.reverse(pos, 4, 1)
	return int(n), pos + 4
}

// reverse reverses n numbers of size bytes at pos, which is aligned, and returns the position behind them.
func (s *swapper) reverse(pos, size, n int) int {
	if n > (len(s.body)-pos)/size {
		return -1
	}
	b := s.body[pos : pos+n*size]
	switch size {
	case 2:
		for i := 0; i < len(b); i += 2 {
			b[i], b[i+1] = b[i+1], b[i]
		}
	case 4:
		for i := 0; i < len(b); i += 4 {
			binary.LittleEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
		}
	case 8:
		for i := 0; i < len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], binary.BigEndian.Uint64(b[i:]))
		}
	}
	return pos + len(b)
}

func (s *swapper) run(ops []op, pos int) int {
	for i := range ops {
		o := &ops[i]
		n := o.n
		switch o.code {
		case opRun:
			pos = s.reverse((pos+o.align)&^o.align, o.size, n)
		case opSkip:
			pos = (pos + o.align) &^ o.align
			if o.size > len(s.body)-pos {
				return -1
			}
			pos += o.size
		case opNumbers, opSkipNumbers:
			if n == 0 {
				if n, pos = s.length(pos); n == 0 || pos < 0 {
					break
				}
			}
			pos = s.reverse((pos+o.align)&^o.align, o.size, n)
		case opBytes, opString:
			if n, pos = s.length(pos); pos >= 0 {
				pos = s.reverse(pos, 1, n)
			}
		case opFixedBytes:
			pos = s.reverse(pos, 1, n)
		case opWString:
			if n, pos = s.length(pos); pos >= 0 {
				pos = s.reverse(pos, 4, n)
			}
		case opTime:
			pos = s.reverse((pos+3)&^3, 4, 2)
		case opList:
			pos = s.list(o, pos)
		}
		if pos < 0 {
			return pos
		}
	}
	return pos
}

func (s *swapper) list(o *op, pos int) int {
	if o.delim {
		if _, pos = s.length(pos); pos < 0 {
			return pos
		}
	}
	n := o.n
	if n == 0 {
		if n, pos = s.length(pos); pos < 0 {
			return pos
		}
	}
	if n > (len(s.body)-pos)/o.min {
		return -1
	}
	for range n {
		if pos = s.run(o.body, pos); pos < 0 {
			return pos
		}
	}
	return pos
}
