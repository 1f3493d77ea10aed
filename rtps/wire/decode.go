package wire

import "fmt"

// Submessage ids (RTPS 2.5 §9.4.5.1.1).
const (
	idPad           = 0x01
	idAckNack       = 0x06
	idHeartbeat     = 0x07
	idGap           = 0x08
	idInfoTS        = 0x09
	idInfoSrc       = 0x0c
	idInfoDst       = 0x0e
	idNackFrag      = 0x12
	idHeartbeatFrag = 0x13
	idData          = 0x15
	idDataFrag      = 0x16
)

// Flags of submessages.
const (
	flagLittleEndian = 0x01
	flagFinal        = 0x02 // ACKNACK, HEARTBEAT
	flagLiveliness   = 0x04 // HEARTBEAT
	flagInvalidate   = 0x02 // INFO_TS
	flagInlineQoS    = 0x02 // DATA, DATA_FRAG
	flagData         = 0x04 // DATA
	flagKey          = 0x08 // DATA
	flagNonStandard  = 0x10 // DATA
	flagFragKey      = 0x04 // DATA_FRAG
	flagFragNonStd   = 0x08 // DATA_FRAG
)

// HeaderSize is the length of the header of a datagram in bytes.
const HeaderSize = 20

// MaxSeq is the largest sequence number that is accepted; it leaves room to compute a few hundred beyond it.
const MaxSeq = 1<<63 - 1 - 1024

// Decoder walks datagrams. Its zero value is ready; using the same one again and again allocates nothing. It must not
// be used by two goroutines at once.
type Decoder struct {
	ctx  Context
	data Data
	frag DataFrag
	ack  AckNack
	nack NackFrag
	hb   Heartbeat
	hbf  HeartbeatFrag
	gap  Gap
}

// Decode walks a datagram with a fresh Decoder.
func Decode(datagram []byte, h Handler) error { return new(Decoder).Decode(datagram, h) }

// Decode hands every submessage of datagram to h, in order. It does not look at destinations: ctx.Dest tells for whom
// a submessage is. Unknown, vendor-specific and security submessages are skipped, and so is data in a non-standard
// representation.
//
// The error is ErrNotRTPS for anything without a header, or an *Error for what is malformed; as the specification asks
// (RTPS 2.5 §8.3.4.1) nothing behind a malformed submessage is looked at, and everything before it has been delivered.
//
// What h is given is checked: sequence numbers lie in 1..MaxSeq (Gap.Start and set bases too; an AckNack's Base may
// also be 0 with an empty set), sets have at most 256 bits and none beyond NumBits, a Heartbeat has First ≥ 1 and
// Last ≥ First-1, a Gap has Start ≤ Set.Base, a DataFrag is consistent in itself and has all its bytes. Ranges are not
// bounded: a Gap may span 2^62 sequence numbers and a DataFrag may claim a sample of 4 GiB. Nor are entity ids looked
// at: a DATA may name a reader where a writer belongs.
func (d *Decoder) Decode(datagram []byte, h Handler) error {
	if len(datagram) < HeaderSize || string(datagram[:4]) != "RTPS" {
		return ErrNotRTPS
	}
	d.ctx = Context{Header: Header{
		Version: Version{datagram[4], datagram[5]},
		Vendor:  VendorID(datagram[6:8]),
		Prefix:  Prefix(datagram[8:20]),
	}}
	if v := d.ctx.Header.Version; v.Major != 2 || v.Minor < 1 {
		return &Error{Offset: 4, What: fmt.Sprintf("protocol version %s, 2.1 or a later 2.x expected", v)}
	}
	d.ctx.Source, d.ctx.Vendor = d.ctx.Header.Prefix, d.ctx.Header.Vendor

	for pos := HeaderSize; pos < len(datagram); {
		s, next, what := split(datagram, pos)
		if what == "" {
			what = d.submessage(&s, h)
		}
		if what != "" {
			return &Error{Offset: pos, What: what}
		}
		pos = next
	}
	return nil
}

// submessage is one submessage: its header and its body, read in its own byte order.
type submessage struct {
	id, flags byte
	reader
}

// split takes the submessage at pos out of a datagram and says where the next one begins. A length of 0 means "to the
// end of the datagram", except for PAD and INFO_TS, which are really empty then (RTPS 2.5 §9.4.5.1.3).
func split(datagram []byte, pos int) (s submessage, next int, what string) {
	rest := datagram[pos:]
	if len(rest) < 4 {
		return s, 0, fmt.Sprintf("%d bytes left, a submessage header has 4", len(rest))
	}
	s.id, s.flags = rest[0], rest[1]
	s.reader = reader{b: rest[2:], little: s.flags&flagLittleEndian != 0}
	n := int(s.u16())
	if n == 0 && s.id != idPad && s.id != idInfoTS {
		n = len(rest) - 4
	}
	if n > len(rest)-4 {
		return s, 0, fmt.Sprintf("%s: %d bytes, %d left in the datagram", name(s.id), n, len(rest)-4)
	}
	s.b = rest[4 : 4+n : 4+n]
	return s, pos + 4 + n, ""
}

// submessage delivers one submessage or says what is wrong with it.
func (d *Decoder) submessage(s *submessage, h Handler) (what string) {
	if n := fixedSize(s.id, s.flags); len(s.b) < n {
		return fmt.Sprintf("%s: %d bytes, at least %d expected", name(s.id), len(s.b), n)
	}
	switch s.id {
	case idInfoTS:
		d.ctx.Time, d.ctx.HasTime = 0, false
		if s.flags&flagInvalidate == 0 {
			d.ctx.Time = Timestamp(s.u32())<<32 | Timestamp(s.u32())
			d.ctx.HasTime = d.ctx.Time != TimestampInvalid
		}
	case idInfoSrc:
		s.skip(6) // unused, version
		d.ctx.Vendor = VendorID(s.raw(2))
		d.ctx.Source = Prefix(s.raw(12))
		d.ctx.Time, d.ctx.HasTime = 0, false
	case idInfoDst:
		d.ctx.Dest = Prefix(s.raw(12))
	case idData:
		var deliver bool
		if deliver, what = d.decodeData(s); deliver {
			h.Data(&d.ctx, &d.data)
		}
	case idDataFrag:
		var deliver bool
		if deliver, what = d.decodeDataFrag(s); deliver {
			h.DataFrag(&d.ctx, &d.frag)
		}
	case idHeartbeat:
		if what = d.decodeHeartbeat(s); what == "" {
			h.Heartbeat(&d.ctx, &d.hb)
		}
	case idHeartbeatFrag:
		if what = d.decodeHeartbeatFrag(s); what == "" {
			h.HeartbeatFrag(&d.ctx, &d.hbf)
		}
	case idAckNack:
		if what = d.decodeAckNack(s); what == "" {
			h.AckNack(&d.ctx, &d.ack)
		}
	case idNackFrag:
		if what = d.decodeNackFrag(s); what == "" {
			h.NackFrag(&d.ctx, &d.nack)
		}
	case idGap:
		if what = d.decodeGap(s); what == "" {
			h.Gap(&d.ctx, &d.gap)
		}
	}
	if what != "" {
		what = name(s.id) + ": " + what
	}
	return what
}

// fixedSize is the length of the part that every submessage of that id has.
func fixedSize(id, flags byte) int {
	switch id {
	case idAckNack, idHeartbeatFrag:
		return 24
	case idHeartbeat, idGap, idNackFrag:
		return 28
	case idInfoTS:
		if flags&flagInvalidate != 0 {
			return 0
		}
		return 8
	case idInfoSrc, idData:
		return 20
	case idInfoDst:
		return 12
	case idDataFrag:
		return 32
	}
	return 0
}

// name is the specification's name of a submessage id.
func name(id byte) string {
	switch id {
	case idPad:
		return "PAD"
	case idAckNack:
		return "ACKNACK"
	case idHeartbeat:
		return "HEARTBEAT"
	case idGap:
		return "GAP"
	case idInfoTS:
		return "INFO_TS"
	case idInfoSrc:
		return "INFO_SRC"
	case idInfoDst:
		return "INFO_DST"
	case idNackFrag:
		return "NACK_FRAG"
	case idHeartbeatFrag:
		return "HEARTBEAT_FRAG"
	case idData:
		return "DATA"
	case idDataFrag:
		return "DATA_FRAG"
	}
	return fmt.Sprintf("submessage 0x%02x", id)
}
