package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/gobag/gobag/cdr"
)

// Inline QoS parameters that are read (RTPS 2.5 §9.6.3; the vendor's one: Fast DDS before 2.10 knows no other).
const (
	pidKeyHash           = 0x0070
	pidStatusInfo        = 0x0071
	pidRelatedIdentity   = 0x0083
	pidRelatedIdentityF  = 0x800f
	relatedIdentityBytes = 24
)

func (d *Decoder) decodeData(s *submessage) (deliver bool, what string) {
	p := &d.data
	*p = Data{}
	s.skip(2) // extra flags
	toQoS := int(s.u16())
	p.Reader, p.Writer, p.Seq = s.entity(), s.entity(), s.seq()
	if !validSeq(p.Seq) {
		return false, badSeq("sequence number", p.Seq)
	}
	if what = s.toInlineQoS(toQoS - 16); what != "" {
		return false, what
	}
	if what = d.inlineQoS(s, &p.InlineQoS); what != "" {
		return false, what
	}
	hasData, hasKey := s.flags&flagData != 0, s.flags&flagKey != 0
	switch {
	case hasData && hasKey:
		return false, "both data and key flag set"
	case s.flags&flagNonStandard != 0:
		return false, ""
	case hasData || hasKey:
		if len(s.b) < cdr.HeaderSize {
			return false, fmt.Sprintf("payload of %d bytes has no encapsulation header", len(s.b))
		}
		p.Payload, p.Key = s.b, hasKey
	}
	return true, ""
}

func (d *Decoder) decodeDataFrag(s *submessage) (deliver bool, what string) {
	p := &d.frag
	*p = DataFrag{}
	s.skip(2) // extra flags
	toQoS := int(s.u16())
	p.Reader, p.Writer, p.Seq = s.entity(), s.entity(), s.seq()
	p.First, p.Count, p.Size, p.SampleSize = s.u32(), s.u16(), s.u16(), s.u32()
	p.Key = s.flags&flagFragKey != 0
	if !validSeq(p.Seq) {
		return false, badSeq("sequence number", p.Seq)
	}
	if p.First < 1 || p.Count < 1 || p.Size < 1 || p.SampleSize < cdr.HeaderSize {
		return false, fmt.Sprintf("%d fragments from %d, %d bytes each, of a sample of %d bytes", p.Count, p.First, p.Size, p.SampleSize)
	}
	if what = s.toInlineQoS(toQoS - 28); what != "" {
		return false, what
	}
	if what = d.inlineQoS(s, &p.InlineQoS); what != "" {
		return false, what
	}
	if s.flags&flagFragNonStd != 0 {
		return false, ""
	}
	// The last fragment must begin inside the sample; all of the sample's bytes that the fragments cover must be here.
	first, size := uint64(p.First-1)*uint64(p.Size), uint64(p.SampleSize)
	if first+uint64(p.Count-1)*uint64(p.Size) >= size {
		return false, fmt.Sprintf("%d fragments from %d, %d bytes each, exceed the sample of %d bytes", p.Count, p.First, p.Size, p.SampleSize)
	}
	want := min(uint64(p.Count)*uint64(p.Size), size-first)
	if uint64(len(s.b)) < want {
		return false, fmt.Sprintf("%d fragments of %d bytes, %d bytes there", p.Count, p.Size, len(s.b))
	}
	p.Payload = s.b[:want:want]
	return true, ""
}

// toInlineQoS moves over fields that a later version of the protocol may have put before the inline QoS. Called right
// after the last field we know.
func (s *submessage) toInlineQoS(n int) (what string) {
	if n < 0 || n > len(s.b) {
		return fmt.Sprintf("inline QoS %d bytes behind the fixed part, %d bytes left", n, len(s.b))
	}
	s.skip(n)
	return ""
}

// inlineQoS reads the parameter list of DATA and DATA_FRAG, if there is one. A list with an unknown parameter that must
// be understood counts as empty.
func (d *Decoder) inlineQoS(s *submessage, q *InlineQoS) (what string) {
	if s.flags&flagInlineQoS == 0 {
		return ""
	}
	var list cdr.ParamReader
	list.Reset(s.b, !s.little)
	discard := false
	for p := (cdr.Param{}); list.Next(&p); {
		switch {
		case p.ID == pidKeyHash && len(p.Value) >= 16:
			q.HasKeyHash, q.KeyHash = true, GUID(p.Value[:16])
		case p.ID == pidStatusInfo && len(p.Value) >= 4:
			q.Status = binary.BigEndian.Uint32(p.Value) & 3 // big-endian whatever the submessage is
		case (p.ID == pidRelatedIdentity || p.ID == pidRelatedIdentityF && sharesFastPIDs(d.ctx.Vendor)) && len(p.Value) >= relatedIdentityBytes:
			v := reader{b: p.Value[16:], little: s.little}
			q.HasRelated, q.RelatedGUID, q.RelatedSeq = true, GUID(p.Value[:16]), v.seq()
		case p.ID&cdr.PIDMustUnderstand != 0:
			discard = true
		}
	}
	if err := list.Err(); err != nil {
		return "inline QoS: " + err.Error()
	}
	if discard {
		*q = InlineQoS{}
	}
	q.Present = true
	s.skip(list.Pos())
	return ""
}

// sharesFastPIDs reports whether a vendor gives Fast DDS's vendor-specific service parameter the same meaning.
func sharesFastPIDs(v VendorID) bool {
	return v == VendorFast || v == VendorRustDDS || v == VendorGobag
}

// Offset is where Payload belongs in the sample, in bytes.
func (d *DataFrag) Offset() uint64 { return uint64(d.First-1) * uint64(d.Size) }
