package wire

import "encoding/binary"

// le is the byte order of everything that we send.
var le = binary.LittleEndian

// AppendHeader appends the header of a datagram. A zero version means Protocol.
func AppendHeader(b []byte, h Header) []byte {
	if h.Version == (Version{}) {
		h.Version = Protocol
	}
	b = append(b, 'R', 'T', 'P', 'S', h.Version.Major, h.Version.Minor, h.Vendor[0], h.Vendor[1])
	return append(b, h.Prefix[:]...)
}

// AppendInfoDst appends an INFO_DST: what follows is for participant p only, or for everyone if p is zero.
func AppendInfoDst(b []byte, p Prefix) []byte {
	b = appendSubmessage(b, idInfoDst, 0, 12)
	return append(b, p[:]...)
}

// AppendInfoTS appends an INFO_TS: the source time of the DATA that follows.
func AppendInfoTS(b []byte, t Timestamp) []byte {
	b = appendSubmessage(b, idInfoTS, 0, 8)
	b = le.AppendUint32(b, uint32(t>>32))
	return le.AppendUint32(b, uint32(t))
}

// AppendAckNack appends an ACKNACK.
func AppendAckNack(b []byte, a *AckNack) []byte {
	n := min(a.Set.NumBits, SetBits)
	b = appendSubmessage(b, idAckNack, flagIf(a.Final, flagFinal), 24+4*words(n))
	b = appendEntities(b, a.Reader, a.Writer)
	b = appendSeq(b, a.Set.Base)
	b = appendBits(b, n, &a.Set.Bits)
	return le.AppendUint32(b, a.Count)
}

// AppendNackFrag appends a NACK_FRAG.
func AppendNackFrag(b []byte, f *NackFrag) []byte {
	n := min(f.Set.NumBits, SetBits)
	b = appendSubmessage(b, idNackFrag, 0, 28+4*words(n))
	b = appendEntities(b, f.Reader, f.Writer)
	b = appendSeq(b, f.Seq)
	b = le.AppendUint32(b, f.Set.Base)
	b = appendBits(b, n, &f.Set.Bits)
	return le.AppendUint32(b, f.Count)
}

// AppendHeartbeat appends a HEARTBEAT.
func AppendHeartbeat(b []byte, h *Heartbeat) []byte {
	b = appendSubmessage(b, idHeartbeat, flagIf(h.Final, flagFinal)|flagIf(h.Liveliness, flagLiveliness), 28)
	b = appendEntities(b, h.Reader, h.Writer)
	b = appendSeq(b, h.First)
	b = appendSeq(b, h.Last)
	return le.AppendUint32(b, h.Count)
}

// AppendHeartbeatFrag appends a HEARTBEAT_FRAG.
func AppendHeartbeatFrag(b []byte, h *HeartbeatFrag) []byte {
	b = appendSubmessage(b, idHeartbeatFrag, 0, 24)
	b = appendEntities(b, h.Reader, h.Writer)
	b = appendSeq(b, h.Seq)
	b = le.AppendUint32(b, h.LastFrag)
	return le.AppendUint32(b, h.Count)
}

// AppendGap appends a GAP. For a single range set Set.Base to the number behind its end and leave the bits empty.
func AppendGap(b []byte, g *Gap) []byte {
	n := min(g.Set.NumBits, SetBits)
	b = appendSubmessage(b, idGap, 0, 28+4*words(n))
	b = appendEntities(b, g.Reader, g.Writer)
	b = appendSeq(b, g.Start)
	b = appendSeq(b, g.Set.Base)
	return appendBits(b, n, &g.Set.Bits)
}

// appendSubmessage appends a submessage header. n is the length of the body, a multiple of 4; a body over 65535 bytes,
// which only the last submessage of a datagram can have, gets length 0: "to the end of the datagram".
func appendSubmessage(b []byte, id, flags byte, n int) []byte {
	if n > 0xffff {
		n = 0
	}
	return append(b, id, flags|flagLittleEndian, byte(n), byte(n>>8))
}

func appendEntities(b []byte, reader, writer EntityID) []byte {
	b = append(b, reader[:]...)
	return append(b, writer[:]...)
}

func appendSeq(b []byte, sn int64) []byte {
	b = le.AppendUint32(b, uint32(sn>>32))
	return le.AppendUint32(b, uint32(sn))
}

func appendBits(b []byte, n uint32, m *bitmap) []byte {
	b = le.AppendUint32(b, n)
	for _, w := range m[:words(n)] {
		b = le.AppendUint32(b, w)
	}
	return b
}

func flagIf(set bool, flag byte) byte {
	if set {
		return flag
	}
	return 0
}
