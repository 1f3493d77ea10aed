package wire

import (
	"fmt"
	"time"

	"github.com/gobag/gobag/cdr"
)

// Parameters of discovery data that are read or written (RTPS 2.5 §9.6.3, XTypes 1.3 §7.6.3, DDS Security 1.1, Cyclone DDS).
const (
	pidParticipantLease  = 0x0002
	pidTopicName         = 0x0005
	pidOwnershipStrength = 0x0006
	pidTypeName          = 0x0007
	pidDomainID          = 0x000f
	pidDomainTag         = 0x4014
	pidProtocolVersion   = 0x0015
	pidVendorID          = 0x0016
	pidReliability       = 0x001a
	pidLiveliness        = 0x001b
	pidDurability        = 0x001d
	pidOwnership         = 0x001f
	pidPresentation      = 0x0021
	pidDeadline          = 0x0023
	pidDestinationOrder  = 0x0025
	pidLatencyBudget     = 0x0027
	pidPartition         = 0x0029
	pidLifespan          = 0x002b
	pidUserData          = 0x002c
	pidUnicastLocator    = 0x002f
	pidMulticastLocator  = 0x0030
	pidDefaultUnicast    = 0x0031
	pidMetaUnicast       = 0x0032
	pidMetaMulticast     = 0x0033
	pidHistory           = 0x0040
	pidExpectsInlineQoS  = 0x0043
	pidDefaultMulticast  = 0x0048
	pidParticipantGUID   = 0x0050
	pidBuiltinEndpoints  = 0x0058
	pidEndpointGUID      = 0x005a
	pidEntityName        = 0x0062
	pidRepresentation    = 0x0073
	// DDS Security 1.1 §7.4.1.3: what a participant says that is secured.
	pidIdentityToken       = 0x1001
	pidPermissionsToken    = 0x1002
	pidParticipantSecurity = 0x1005

	pidCycloneRecvBuffer = 0x8019 // of Cyclone DDS: size of its receive buffer
)

// Limits on what a remote participant can make us keep.
const (
	maxString     = 4096 // bytes of a name
	maxPartitions = 128
	maxRepr       = 16
)

// list is a discovery payload that is being read: the parameters one after the other, each with a decoder of its value.
type list struct {
	params cdr.ParamReader
	kind   cdr.Kind
	p      cdr.Param
	v      cdr.Decoder
	err    error
}

// open checks the encapsulation.
func (l *list) open(payload []byte) error {
	kind, _, body, err := cdr.Split(payload)
	if err != nil {
		return err
	}
	if kind != cdr.PLCDRLE && kind != cdr.PLCDRBE {
		return fmt.Errorf("%s, a parameter list (PL_CDR) expected", kind)
	}
	l.kind = kind
	l.params.Reset(body, kind.BigEndian())
	return nil
}

// next advances to the next parameter. It is false at the end and after an error in a list or in a value.
func (l *list) next() bool {
	if l.err != nil {
		return false
	}
	if err := l.v.Err(); err != nil {
		l.err = fmt.Errorf("parameter 0x%04x: %w", l.p.ID, err)
		return false
	}
	if !l.params.Next(&l.p) {
		l.err = l.params.Err()
		return false
	}
	l.v.ResetBody(l.p.Value, l.kind)
	return true
}

// unknown handles a parameter that nobody wanted.
func (l *list) unknown() {
	if l.p.ID&cdr.PIDMustUnderstand != 0 {
		l.err = fmt.Errorf("parameter 0x%04x: %w", l.p.ID, ErrMustUnderstand)
	}
}

// str reads a string of bounded length.
func (l *list) str() string {
	b := l.v.StrBytes()
	if len(b) > maxString {
		l.v.Fail(fmt.Sprintf("string of %d bytes, %d at most", len(b), maxString))
		return ""
	}
	return string(b)
}

// octets reads a sequence of octets; a parameter cannot have more than 65528.
func (l *list) octets() []byte { return append([]byte(nil), l.v.ByteSeq()...) }

func (l *list) guid() (g GUID) {
	copy(g[:], l.v.Bytes(16))
	return g
}

func (l *list) duration() time.Duration { return duration(l.v.Int32(), l.v.Uint32()) }

// limit is a duration for which infinite is written as 0; a real 0 becomes the shortest one there is.
func (l *list) limit() time.Duration {
	switch d := l.duration(); d {
	case infinite:
		return 0
	case 0:
		return 1
	default:
		return d
	}
}

// enum reads a kind and fails beyond the largest.
func (l *list) enum(largest uint32) uint32 {
	v := l.v.Uint32()
	if v > largest {
		l.v.Fail(fmt.Sprintf("kind %d, %d at most", v, largest))
		return 0
	}
	return v
}

func putDuration(e *cdr.Encoder, d time.Duration) {
	sec, frac := wireDuration(d)
	e.Int32(sec)
	e.Uint32(frac)
}

// putLimit writes a duration for which 0 means infinite.
func putLimit(e *cdr.Encoder, d time.Duration) {
	if d <= 0 {
		d = infinite
	}
	putDuration(e, d)
}

func putStr(e *cdr.Encoder, id uint16, s string) {
	e.BeginParam(id)
	e.Str(s)
	e.EndParam()
}

func putOctets(e *cdr.Encoder, id uint16, b []byte) {
	e.BeginParam(id)
	e.ByteSeq(b)
	e.EndParam()
}

func putGUID(e *cdr.Encoder, id uint16, g GUID) {
	e.BeginParam(id)
	e.Raw(g[:])
	e.EndParam()
}

func putUint32(e *cdr.Encoder, id uint16, v uint32) {
	e.BeginParam(id)
	e.Uint32(v)
	e.EndParam()
}

func putVersions(e *cdr.Encoder, v Version, vendor VendorID) {
	if v == (Version{}) {
		v = Protocol
	}
	e.BeginParam(pidProtocolVersion)
	e.Raw([]byte{v.Major, v.Minor})
	e.EndParam()
	e.BeginParam(pidVendorID)
	e.Raw(vendor[:])
	e.EndParam()
}
