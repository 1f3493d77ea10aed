package cdr

import (
	"encoding/binary"
	"fmt"
)

// HeaderSize is the length of the encapsulation header in bytes.
const HeaderSize = 4

// Kind is the encapsulation identifier: the first two bytes of a payload, always big-endian. Odd numbers are
// little-endian (XTypes 1.3 §7.6.3.1.2).
type Kind uint16

// Encapsulation identifiers.
const (
	CDRBE    Kind = 0x0000 // XCDR1
	CDRLE    Kind = 0x0001
	PLCDRBE  Kind = 0x0002 // XCDR1 parameter list: discovery data and mutable types
	PLCDRLE  Kind = 0x0003
	XML      Kind = 0x0004
	CDR2BE   Kind = 0x0006 // plain XCDR2
	CDR2LE   Kind = 0x0007
	DCDR2BE  Kind = 0x0008 // delimited XCDR2: appendable types
	DCDR2LE  Kind = 0x0009
	PLCDR2BE Kind = 0x000a // XCDR2 parameter list: mutable types
	PLCDR2LE Kind = 0x000b
)

// BigEndian reports the byte order of the values.
func (k Kind) BigEndian() bool { return k&1 == 0 }

// Version is 1 for XCDR1, 2 for XCDR2 and 0 for anything else.
func (k Kind) Version() int {
	switch k {
	case CDRBE, CDRLE, PLCDRBE, PLCDRLE:
		return 1
	case CDR2BE, CDR2LE, DCDR2BE, DCDR2LE, PLCDR2BE, PLCDR2LE:
		return 2
	}
	return 0
}

// ParameterList reports whether the payload is a parameter list.
func (k Kind) ParameterList() bool {
	return k == PLCDRBE || k == PLCDRLE || k == PLCDR2BE || k == PLCDR2LE
}

// maxAlign is the largest alignment of a primitive: 8 in XCDR1, 4 in XCDR2.
func (k Kind) maxAlign() int {
	if k.Version() == 2 {
		return 4
	}
	return 8
}

var kindNames = map[Kind]string{
	CDRBE: "CDR_BE", CDRLE: "CDR_LE", PLCDRBE: "PL_CDR_BE", PLCDRLE: "PL_CDR_LE", XML: "XML",
	CDR2BE: "CDR2_BE", CDR2LE: "CDR2_LE", DCDR2BE: "D_CDR2_BE", DCDR2LE: "D_CDR2_LE",
	PLCDR2BE: "PL_CDR2_BE", PLCDR2LE: "PL_CDR2_LE",
}

func (k Kind) String() string {
	if s, ok := kindNames[k]; ok {
		return s
	}
	return fmt.Sprintf("encapsulation 0x%04x", uint16(k))
}

// Split takes a payload apart into its encapsulation identifier, its options and the rest, which aliases payload. The
// rest keeps the trailing pad bytes; Padding(options) of them are declared.
func Split(payload []byte) (kind Kind, options uint16, body []byte, err error) {
	if len(payload) < HeaderSize {
		return 0, 0, nil, &Error{Offset: 0, What: fmt.Sprintf("payload of %d bytes has no encapsulation header", len(payload))}
	}
	return Kind(binary.BigEndian.Uint16(payload)), binary.BigEndian.Uint16(payload[2:]), payload[HeaderSize:], nil
}

// Padding is the number of pad bytes (0..3) that the encapsulation options declare at the end of the payload. Cyclone
// DDS declares them, Fast DDS and rmw_cyclonedds do not.
func Padding(options uint16) int { return int(options & 3) }

// AppendHeader appends an encapsulation header without options.
func AppendHeader(b []byte, kind Kind) []byte {
	return append(b, byte(kind>>8), byte(kind), 0, 0)
}

// Error says where the bytes are not what they should be.
type Error struct {
	Offset int    // in bytes from where decoding began; the encapsulation header counts where there is one
	What   string // what is wrong, with the value found
}

func (e *Error) Error() string { return fmt.Sprintf("cdr: offset %d: %s", e.Offset, e.What) }
