package cdr

import "fmt"

// Parameter ids with a meaning for the list itself (RTPS 2.5 §9.4.2.11, §9.6.3).
const (
	PIDPad      = 0x0000 // skipped
	PIDSentinel = 0x0001 // ends the list
)

// Bits of a parameter id.
const (
	PIDVendorSpecific = 0x8000 // means something with the sender's vendor id only
	PIDMustUnderstand = 0x4000 // a reader that does not know it must ignore the whole list
)

// Param is one parameter. Value aliases the list and may be longer than its content needs.
type Param struct {
	ID    uint16
	Value []byte
}

// ParamReader walks a parameter list of XCDR1 form: id u16, length u16, value, up to the sentinel.
type ParamReader struct {
	buf   []byte
	pos   int
	order byteOrder
	done  bool
	err   *Error
}

// Reset makes r read the list at the start of b.
func (r *ParamReader) Reset(b []byte, bigEndian bool) {
	*r = ParamReader{buf: b, order: byteOrder(bigEndian)}
}

// Next stores the next parameter in p; false at the sentinel and on an error. PAD parameters are skipped.
func (r *ParamReader) Next(p *Param) bool {
	for !r.done && r.err == nil {
		rest := r.buf[r.pos:]
		if len(rest) < 4 {
			r.err = &Error{Offset: r.pos, What: "parameter list without sentinel"}
			break
		}
		id, n := r.order.u16(rest), int(r.order.u16(rest[2:]))
		if id == PIDSentinel {
			r.done = true
			r.pos += 4
			break
		}
		if n%4 != 0 {
			r.err = &Error{Offset: r.pos, What: fmt.Sprintf("parameter 0x%04x: length %d is not a multiple of 4", id, n)}
			break
		}
		if n > len(rest)-4 {
			r.err = &Error{Offset: r.pos, What: fmt.Sprintf("parameter 0x%04x: length %d, %d bytes left", id, n, len(rest)-4)}
			break
		}
		r.pos += 4 + n
		if id != PIDPad {
			p.ID, p.Value = id, rest[4:4+n:4+n]
			return true
		}
	}
	return false
}

// Err is the error that ended the list, or nil.
func (r *ParamReader) Err() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// Pos is the number of bytes read, the sentinel included.
func (r *ParamReader) Pos() int { return r.pos }

// BeginParam appends the head of a parameter of a list; values follow, aligned from the parameter's first byte. End it
// with EndParam before the next one begins.
func (e *Encoder) BeginParam(id uint16) {
	e.Align(4)
	e.Uint16(id)
	e.Uint16(0)
	e.origin = len(e.buf)
}

// EndParam pads the parameter begun last to a multiple of 4 and sets its length. Values over 65532 bytes cannot be
// expressed; EndParam then cuts the parameter out and returns false.
func (e *Encoder) EndParam() bool {
	e.Align(4)
	n := len(e.buf) - e.origin
	if n > 0xfffc {
		e.buf = e.buf[:e.origin-4]
		e.origin = len(e.buf)
		return false
	}
	p := e.buf[e.origin-2 : e.origin]
	if e.order {
		p[0], p[1] = byte(n>>8), byte(n)
	} else {
		p[0], p[1] = byte(n), byte(n>>8)
	}
	return true
}

// Sentinel ends a parameter list.
func (e *Encoder) Sentinel() {
	e.BeginParam(PIDSentinel)
	e.EndParam()
}
