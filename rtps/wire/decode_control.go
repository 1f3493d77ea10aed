package wire

import "fmt"

func (d *Decoder) decodeAckNack(s *submessage) (what string) {
	a := &d.ack
	a.Reader, a.Writer, a.Set.Base, a.Final = s.entity(), s.entity(), s.seq(), s.flags&flagFinal != 0
	if what = s.bits(&a.Set.NumBits, &a.Set.Bits); what != "" {
		return what
	}
	// Fast DDS asks for a first HEARTBEAT with base 0 and no bits; base 0 has no other use.
	if !validSeq(a.Set.Base) && (a.Set.Base != 0 || a.Set.NumBits != 0) {
		return badSeq("base", a.Set.Base)
	}
	return s.count(&a.Count)
}

func (d *Decoder) decodeNackFrag(s *submessage) (what string) {
	n := &d.nack
	n.Reader, n.Writer, n.Seq, n.Set.Base = s.entity(), s.entity(), s.seq(), s.u32()
	if !validSeq(n.Seq) {
		return badSeq("sequence number", n.Seq)
	}
	if what = s.bits(&n.Set.NumBits, &n.Set.Bits); what != "" {
		return what
	}
	if n.Set.Base < 1 || n.Set.Base > 1<<32-1-SetBits {
		return fmt.Sprintf("fragment base %d, 1 to 2^32-257 expected", n.Set.Base)
	}
	return s.count(&n.Count)
}

func (d *Decoder) decodeGap(s *submessage) (what string) {
	g := &d.gap
	g.Reader, g.Writer, g.Start, g.Set.Base = s.entity(), s.entity(), s.seq(), s.seq()
	if !validSeq(g.Start) {
		return badSeq("start", g.Start)
	}
	if !validSeq(g.Set.Base) {
		return badSeq("base", g.Set.Base)
	}
	g.Start = min(g.Start, g.Set.Base) // an interval that ends before it begins is empty, as Cyclone DDS reads it
	return s.bits(&g.Set.NumBits, &g.Set.Bits)
}

func (d *Decoder) decodeHeartbeat(s *submessage) (what string) {
	h := &d.hb
	h.Final, h.Liveliness = s.flags&flagFinal != 0, s.flags&flagLiveliness != 0
	h.Reader, h.Writer, h.First, h.Last, h.Count = s.entity(), s.entity(), s.seq(), s.seq(), s.u32()
	if !validSeq(h.First) {
		return badSeq("first sequence number", h.First)
	}
	if h.Last < h.First-1 || h.Last > MaxSeq {
		return fmt.Sprintf("last sequence number %d after first %d", h.Last, h.First)
	}
	return ""
}

func (d *Decoder) decodeHeartbeatFrag(s *submessage) (what string) {
	h := &d.hbf
	h.Reader, h.Writer, h.Seq, h.LastFrag, h.Count = s.entity(), s.entity(), s.seq(), s.u32(), s.u32()
	if !validSeq(h.Seq) {
		return badSeq("sequence number", h.Seq)
	}
	if h.LastFrag < 1 {
		return "last fragment 0, they count from 1"
	}
	return ""
}

// count reads the count behind a set.
func (r *reader) count(n *uint32) (what string) {
	if len(r.b) < 4 {
		return fmt.Sprintf("count missing, %d bytes left", len(r.b))
	}
	*n = r.u32()
	return ""
}
