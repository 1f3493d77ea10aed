package transcode

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/gobag/gobag/cdr"
)

// decode appends the ROS 1 form of a CDR payload to dst.
func (p *Program) decode(dst, payload []byte, seq uint32) ([]byte, error) {
	kind, _, body, err := cdr.Split(payload)
	if err != nil {
		return nil, err
	}
	d := decoder{s: body, max: 8, out: dst, seq: seq, swap: kind.BigEndian()}
	switch kind {
	case cdr.CDRBE, cdr.CDRLE:
	case cdr.CDR2BE, cdr.CDR2LE:
		d.max = 4
	default:
		return nil, fmt.Errorf("its encoding %v is not plain CDR", kind)
	}
	if err := d.run(p.ops); err != nil {
		return nil, err
	}
	if left := len(d.s) - d.i; left > 3 {
		return nil, fmt.Errorf("%d bytes are left behind the end of its definition", left)
	}
	return d.out, nil
}

// decoder writes a payload of ROS 1 from CDR.
type decoder struct {
	s    []byte
	i    int
	max  int  // the largest alignment
	swap bool // numbers are big endian
	out  []byte
	seq  uint32
}

// take returns the next n bytes, aligned.
func (d *decoder) take(align, n int) ([]byte, error) {
	align = min(align, d.max)
	d.i = (d.i + align - 1) &^ (align - 1)
	if n < 0 || d.i > len(d.s) || n > len(d.s)-d.i {
		return nil, errShort
	}
	b := d.s[d.i : d.i+n]
	d.i += n
	return b, nil
}

func (d *decoder) u32() (uint32, error) {
	b, err := d.take(4, 4)
	if err != nil {
		return 0, err
	}
	v := le.Uint32(b)
	if d.swap {
		v = bits.ReverseBytes32(v)
	}
	return v, nil
}

// copy appends n numbers of size bytes.
func (d *decoder) copy(b []byte, size int) {
	if !d.swap || size == 1 {
		d.out = append(d.out, b...)
		return
	}
	for ; len(b) >= size; b = b[size:] {
		for k := size - 1; k >= 0; k-- {
			d.out = append(d.out, b[k])
		}
	}
}

// count reads the length of a sequence and writes it.
func (d *decoder) count(o *op) (int, error) {
	n, err := d.u32()
	if err != nil {
		return 0, err
	}
	if o.least > 0 && uint64(n) > uint64((len(d.s)-d.i)/o.least) {
		return 0, fmt.Errorf("field %s claims %d elements, more than the payload has room for: %w", o.field, n, errShort)
	}
	d.out = le.AppendUint32(d.out, n)
	return int(n), nil
}

func (d *decoder) run(ops []op) error {
	for i := range ops {
		if err := d.step(&ops[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) step(o *op) error {
	switch o.kind {
	case opCopy:
		b, err := d.take(o.align, o.size)
		if err != nil {
			return err
		}
		if !d.swap {
			d.out = append(d.out, b...)
			return nil
		}
		for _, p := range o.parts {
			d.copy(b[:p.size*p.n], p.size)
			b = b[p.size*p.n:]
		}
	case opBool:
		return d.bools(o, o.n)
	case opString:
		return d.strings(o, o.n)
	case opTime, opSpan:
		return d.times(o, o.n)
	case opMessages:
		for range o.n {
			if err := d.run(o.sub); err != nil {
				return err
			}
		}
	case opSeq:
		n, err := d.count(o)
		if err != nil || n == 0 {
			return err
		}
		b, err := d.take(o.align, n*o.size)
		if err != nil {
			return err
		}
		d.copy(b, o.parts[0].size)
	case opSeqBool:
		n, err := d.count(o)
		if err != nil {
			return err
		}
		return d.bools(o, n)
	case opSeqString:
		n, err := d.count(o)
		if err != nil {
			return err
		}
		return d.strings(o, n)
	case opSeqTime, opSeqSpan:
		n, err := d.count(o)
		if err != nil || n == 0 {
			return err
		}
		return d.times(o, n)
	case opSeqMessages:
		n, err := d.count(o)
		for ; n > 0 && err == nil; n-- {
			err = d.run(o.sub)
		}
		return err
	case opDefault:
		b, err := d.take(o.align, len(o.fill))
		if err != nil {
			return err
		}
		begin := len(d.out)
		d.copy(b, o.size)
		same := bytes.Equal(d.out[begin:], o.fill)
		d.out = d.out[:begin]
		if !same {
			return noPlace(o)
		}
	case opDefaultString:
		b, err := d.text(o)
		if err == nil && !bytes.Equal(b, o.fill) {
			err = noPlace(o)
		}
		return err
	case opDefaultSeq:
		n, err := d.u32()
		if err == nil && n != 0 {
			err = noPlace(o)
		}
		return err
	case opDummy:
		_, err := d.take(1, 1)
		return err
	case opHeaderSeq:
		d.out = le.AppendUint32(d.out, d.seq)
	case opNoString, opNoStrings:
		d.out = append(d.out, 0, 0, 0, 0)
	case opLevel:
		b, err := d.take(1, 1)
		if err != nil {
			return err
		}
		level, ok := levelTo1(b[0])
		if !ok {
			return fmt.Errorf("field %s is %d, which is none of the levels that ROS 1 has too", o.field, b[0])
		}
		d.out = append(d.out, level)
	}
	return nil
}

func noPlace(o *op) error {
	return fmt.Errorf("field %s is set, and ROS 1's type has no such field", o.field)
}

func (d *decoder) bools(o *op, n int) error {
	b, err := d.take(1, n)
	if err != nil {
		return err
	}
	for _, c := range b {
		if c > 1 {
			return fmt.Errorf("field %s is a bool with the value %d", o.field, c)
		}
	}
	d.out = append(d.out, b...)
	return nil
}

// text reads a string without its NUL.
func (d *decoder) text(o *op) ([]byte, error) {
	n, err := d.u32()
	if err != nil || n == 0 { // some write an empty string so
		return nil, err
	}
	if uint64(n) > uint64(len(d.s)-d.i) {
		return nil, errShort
	}
	b, err := d.take(1, int(n))
	if err != nil {
		return nil, err
	}
	if b[n-1] != 0 {
		return nil, fmt.Errorf("field %s: the string does not end with NUL", o.field)
	}
	b = b[:n-1]
	if bytes.IndexByte(b, 0) >= 0 {
		return nil, fmt.Errorf("field %s: the string has a NUL in it", o.field)
	}
	return b, nil
}

func (d *decoder) strings(o *op, n int) error {
	for range n {
		b, err := d.text(o)
		if err != nil {
			return err
		}
		d.out = append(le.AppendUint32(d.out, uint32(len(b))), b...)
	}
	return nil
}

func (d *decoder) times(o *op, n int) error {
	b, err := d.take(4, 8*n)
	if err != nil {
		return err
	}
	begin := len(d.out)
	d.copy(b, 4)
	span := o.kind == opSpan || o.kind == opSeqSpan
	for ; begin < len(d.out); begin += 8 {
		if nsec := le.Uint32(d.out[begin+4:]); span && nsec > math.MaxInt32 {
			return fmt.Errorf("field %s: a duration with %d ns, which ROS 1's cannot hold", o.field, nsec)
		}
		if sec := int32(le.Uint32(d.out[begin:])); !span && sec < 0 {
			return fmt.Errorf("field %s: %d s lie before 1970, which ROS 1's times cannot hold", o.field, sec)
		}
	}
	return nil
}

var errWide = errors.New("ROS 1 has no wide strings and no long double")
