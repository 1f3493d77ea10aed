package transcode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var (
	le       = binary.LittleEndian
	errShort = errors.New("the payload ends before its definition does")
	zeros    [8]byte
)

// maxEmpty bounds the elements of a sequence whose elements take no byte.
const maxEmpty = 1 << 16

// Append appends the turned payload to dst, which is returned unchanged with an error. seq is the number that
// Header.seq gets on the way to ROS 1. Of payloads towards ROS 1 every plain CDR is read: XCDR1 and XCDR2, of either byte
// order; what is written is XCDR1, little endian.
func (p *Program) Append(dst, payload []byte, seq uint32) ([]byte, error) {
	var out []byte
	var err error
	if p.Format == FormatCDR {
		e := encoder{b: append(dst, 0, 1, 0, 0), s: payload}
		e.base = len(e.b)
		if err = e.run(p.ops); err == nil && len(e.s) > 0 {
			err = fmt.Errorf("%d bytes are left behind the end of its definition", len(e.s))
		}
		out = e.b
	} else {
		out, err = p.decode(dst, payload, seq)
	}
	if err != nil {
		return dst, fmt.Errorf("message of type %s: %w", p.from, err)
	}
	return out, nil
}

// encoder writes CDR from a payload of ROS 1.
type encoder struct {
	b    []byte
	base int    // where alignment counts from
	s    []byte // what is left of the payload
}

func (e *encoder) align(n int) {
	if r := (len(e.b) - e.base) & (n - 1); r != 0 {
		e.b = append(e.b, zeros[:n-r]...)
	}
}

// take returns the next n bytes of the payload.
func (e *encoder) take(n int) ([]byte, error) {
	if n > len(e.s) {
		return nil, errShort
	}
	b := e.s[:n]
	e.s = e.s[n:]
	return b, nil
}

// count reads the length of a sequence and writes it.
func (e *encoder) count(o *op) (int, error) {
	b, err := e.take(4)
	if err != nil {
		return 0, err
	}
	n := le.Uint32(b)
	if o.least > 0 && uint64(n) > uint64(len(e.s)/o.least) {
		return 0, fmt.Errorf("field %s claims %d elements, more than the payload has room for: %w", o.field, n, errShort)
	}
	if o.least == 0 && n > maxEmpty {
		return 0, fmt.Errorf("field %s claims %d elements without content", o.field, n)
	}
	if o.bound > 0 && uint64(n) > uint64(o.bound) {
		return 0, fmt.Errorf("field %s has %d elements, ROS 2 takes %d at most", o.field, n, o.bound)
	}
	e.align(4)
	e.b = append(e.b, b...)
	return int(n), nil
}

func (e *encoder) run(ops []op) error {
	for i := range ops {
		if err := e.step(&ops[i]); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) step(o *op) error {
	switch o.kind {
	case opCopy:
		b, err := e.take(o.size)
		if err != nil {
			return err
		}
		e.align(o.align)
		e.b = append(e.b, b...)
	case opBool:
		return e.bools(o.n)
	case opString:
		return e.strings(o, o.n)
	case opTime, opSpan:
		return e.times(o, o.n)
	case opMessages:
		for range o.n {
			if err := e.run(o.sub); err != nil {
				return err
			}
		}
	case opSeq:
		n, err := e.count(o)
		if err != nil || n == 0 {
			return err
		}
		b, err := e.take(n * o.size)
		if err != nil {
			return err
		}
		e.align(o.align)
		e.b = append(e.b, b...)
	case opSeqBool:
		n, err := e.count(o)
		if err != nil {
			return err
		}
		return e.bools(n)
	case opSeqString:
		n, err := e.count(o)
		if err != nil {
			return err
		}
		return e.strings(o, n)
	case opSeqTime, opSeqSpan:
		n, err := e.count(o)
		if err != nil || n == 0 {
			return err
		}
		return e.times(o, n)
	case opSeqMessages:
		n, err := e.count(o)
		for ; n > 0 && err == nil; n-- {
			err = e.run(o.sub)
		}
		return err
	case opDefault, opDefaultSeq:
		e.align(o.align)
		e.b = append(e.b, o.fill...)
	case opDefaultString:
		e.align(4)
		e.b = append(le.AppendUint32(e.b, uint32(len(o.fill)+1)), o.fill...)
		e.b = append(e.b, 0)
	case opDummy:
		e.b = append(e.b, 0)
	case opHeaderSeq:
		_, err := e.take(4)
		return err
	case opNoString:
		return e.skipString()
	case opNoStrings:
		b, err := e.take(4)
		if err != nil {
			return err
		}
		for n := le.Uint32(b); n > 0; n-- {
			if err := e.skipString(); err != nil {
				return err
			}
		}
	case opLevel:
		b, err := e.take(1)
		if err != nil {
			return err
		}
		level, ok := levelTo2(b[0])
		if !ok {
			return fmt.Errorf("field %s is %d, which is no level of ROS 1", o.field, b[0])
		}
		e.b = append(e.b, level)
	}
	return nil
}

func (e *encoder) bools(n int) error {
	b, err := e.take(n)
	if err != nil {
		return err
	}
	for _, c := range b {
		if c != 0 {
			c = 1
		}
		e.b = append(e.b, c)
	}
	return nil
}

func (e *encoder) strings(o *op, n int) error {
	for range n {
		b, err := e.take(4)
		if err != nil {
			return err
		}
		l := le.Uint32(b)
		if uint64(l) > uint64(len(e.s)) || l == math.MaxUint32 {
			return errShort
		}
		if b, err = e.take(int(l)); err != nil {
			return err
		}
		if bytes.IndexByte(b, 0) >= 0 {
			return fmt.Errorf("field %s: the string has a NUL in it, which ROS 2's strings cannot hold", o.field)
		}
		if o.kind == opString && o.bound > 0 && len(b) > o.bound {
			return fmt.Errorf("field %s: the string has %d bytes, ROS 2 takes %d at most", o.field, len(b), o.bound)
		}
		e.align(4)
		e.b = append(le.AppendUint32(e.b, l+1), b...)
		e.b = append(e.b, 0)
	}
	return nil
}

func (e *encoder) times(o *op, n int) error {
	b, err := e.take(8 * n)
	if err != nil {
		return err
	}
	span := o.kind == opSpan || o.kind == opSeqSpan
	for i := 0; i < len(b); i += 8 {
		if sec := le.Uint32(b[i:]); !span && sec > math.MaxInt32 {
			return fmt.Errorf("field %s: %d s since 1970 are more than ROS 2's times can hold (2^31-1)", o.field, sec)
		}
		if nsec := int32(le.Uint32(b[i+4:])); span && nsec < 0 {
			return fmt.Errorf("field %s: a duration with %d ns, which ROS 2's cannot hold", o.field, nsec)
		}
	}
	e.align(4)
	e.b = append(e.b, b...)
	return nil
}

func (e *encoder) skipString() error {
	b, err := e.take(4)
	if err != nil {
		return err
	}
	n := le.Uint32(b)
	if uint64(n) > uint64(len(e.s)) {
		return errShort
	}
	_, err = e.take(int(n))
	return err
}

// The levels of log messages: 1, 2, 4, 8, 16 in ROS 1, 10 to 50 in ROS 2.
func levelTo2(l byte) (byte, bool) {
	for i := range byte(5) {
		if l == 1<<i {
			return 10 * (i + 1), true
		}
	}
	return 0, false
}

func levelTo1(l byte) (byte, bool) {
	if l%10 != 0 || l == 0 || l > 50 {
		return 0, false
	}
	return 1 << (l/10 - 1), true
}
