//go:build linux

package lab

import (
	"encoding/binary"
	"net/netip"

	"github.com/gobag/gobag/rtps/wire"
)

// Submessage is what a rule sees of a submessage that carries or controls data.
type Submessage struct {
	Kind           string // "DATA", "DATA_FRAG", "HEARTBEAT", "HEARTBEAT_FRAG", "ACKNACK", "NACK_FRAG", "GAP"
	Reader, Writer wire.EntityID
	Seq            int64   // of the sample; HEARTBEAT: the last, ACKNACK: the base, GAP: the start
	First          int64   // HEARTBEAT: the first; DATA_FRAG: the first fragment; NACK_FRAG: the base
	Set            []int64 // ACKNACK, GAP: sequence numbers; NACK_FRAG: fragments
	Fragments      int     // DATA_FRAG: in this submessage
	Count          uint32
	Final          bool
	Liveliness     bool
	Size           int         // DATA, DATA_FRAG: bytes of payload
	Dest           wire.Prefix // DATA, DATA_FRAG: whom it is for; zero = anyone
}

// Packet is a UDP datagram on its way through a relay. It is valid during the call only.
type Packet struct {
	FromA      bool
	From, To   netip.AddrPort
	Multicast  bool
	RTPS       bool
	Vendor     wire.VendorID
	Prefix     wire.Prefix // of the sender
	Payload    []byte      // of UDP
	Submessage []Submessage
	Fragmented bool   // an IP fragment; the first one of a datagram has ports and the beginning of Payload, the others have neither
	First      bool   // the first or only frame of its datagram
	ID         uint16 // of the IP header: the same in all fragments of a datagram

	frame   []byte
	ip      int // where the IP header begins
	udp     int
	decoder wire.Decoder
}

const etherHeader = 14

// parse reads a frame and reports whether it is a UDP datagram. It clears the UDP checksum: the kernel leaves it to a
// network card that is not there.
func (p *Packet) parse(frame []byte, fromA bool) bool {
	if len(frame) < etherHeader+28 || binary.BigEndian.Uint16(frame[12:]) != 0x0800 {
		return false
	}
	ip := frame[etherHeader:]
	head := int(ip[0]&15) * 4
	total := int(binary.BigEndian.Uint16(ip[2:]))
	if ip[0]>>4 != 4 || head < 20 || ip[9] != 17 || total < head+8 || total > len(ip) {
		return false
	}
	*p = Packet{FromA: fromA, frame: frame, ip: etherHeader, udp: etherHeader + head, decoder: p.decoder, Submessage: p.Submessage[:0]}
	from, to := netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20]))
	offset := binary.BigEndian.Uint16(ip[6:])
	p.ID, p.First = binary.BigEndian.Uint16(ip[4:]), offset&0x1fff == 0
	if offset&0x1fff != 0 { // not the first fragment
		p.From, p.To, p.Fragmented = netip.AddrPortFrom(from, 0), netip.AddrPortFrom(to, 0), true
		return true
	}
	udp := ip[head:total]
	udp[6], udp[7] = 0, 0
	p.From = netip.AddrPortFrom(from, binary.BigEndian.Uint16(udp))
	p.To = netip.AddrPortFrom(to, binary.BigEndian.Uint16(udp[2:]))
	p.Multicast = to.IsMulticast()
	p.Payload = udp[8:]
	p.Fragmented = offset&0x2000 != 0
	if len(p.Payload) >= wire.HeaderSize && string(p.Payload[:4]) == "RTPS" {
		p.RTPS = true
		p.Vendor = wire.VendorID(p.Payload[6:8])
		p.Prefix = wire.Prefix(p.Payload[8:20])
		if !p.Fragmented {
			_ = p.decoder.Decode(p.Payload, (*collector)(p))
		}
	}
	return true
}

// replace returns the frame with another UDP payload.
func (p *Packet) replace(payload []byte) []byte {
	b := append([]byte(nil), p.frame[:p.udp+8]...)
	b = append(b, payload...)
	binary.BigEndian.PutUint16(b[p.udp+4:], uint16(8+len(payload)))
	ip := b[p.ip:p.udp]
	binary.BigEndian.PutUint16(ip[2:], uint16(len(b)-p.ip))
	ip[10], ip[11] = 0, 0
	sum := uint32(0)
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
	return b
}

// Has reports whether a submessage of that kind is in it that does not belong to discovery.
func (p *Packet) Has(kind string) bool { return p.Find(kind) != nil }

// Find returns the first submessage of that kind that does not belong to discovery, nil if there is none.
func (p *Packet) Find(kind string) *Submessage {
	for i := range p.Submessage {
		if s := &p.Submessage[i]; s.Kind == kind && !s.Writer.Builtin() {
			return s
		}
	}
	return nil
}

// FindFrom is Find for a given writer, builtin or not.
func (p *Packet) FindFrom(kind string, writer wire.EntityID) *Submessage {
	for i := range p.Submessage {
		if s := &p.Submessage[i]; s.Kind == kind && s.Writer == writer {
			return s
		}
	}
	return nil
}

// collector fills Packet.Submessage.
type collector Packet

func (c *collector) add(s Submessage) { c.Submessage = append(c.Submessage, s) }

func (c *collector) Data(ctx *wire.Context, d *wire.Data) {
	c.add(Submessage{Kind: "DATA", Reader: d.Reader, Writer: d.Writer, Seq: d.Seq, Size: len(d.Payload), Dest: ctx.Dest})
}

func (c *collector) DataFrag(ctx *wire.Context, d *wire.DataFrag) {
	c.add(Submessage{Kind: "DATA_FRAG", Reader: d.Reader, Writer: d.Writer, Seq: d.Seq, First: int64(d.First), Fragments: int(d.Count),
		Size: len(d.Payload), Dest: ctx.Dest})
}

func (c *collector) AckNack(_ *wire.Context, a *wire.AckNack) {
	s := Submessage{Kind: "ACKNACK", Reader: a.Reader, Writer: a.Writer, Seq: a.Set.Base, Count: a.Count, Final: a.Final}
	for seq := range a.Set.All() {
		s.Set = append(s.Set, seq)
	}
	c.add(s)
}

func (c *collector) NackFrag(_ *wire.Context, n *wire.NackFrag) {
	s := Submessage{Kind: "NACK_FRAG", Reader: n.Reader, Writer: n.Writer, Seq: n.Seq, First: int64(n.Set.Base), Count: n.Count}
	for f := range n.Set.All() {
		s.Set = append(s.Set, int64(f))
	}
	c.add(s)
}

func (c *collector) Heartbeat(_ *wire.Context, h *wire.Heartbeat) {
	c.add(Submessage{Kind: "HEARTBEAT", Reader: h.Reader, Writer: h.Writer, Seq: h.Last, First: h.First, Count: h.Count, Final: h.Final,
		Liveliness: h.Liveliness})
}

func (c *collector) HeartbeatFrag(_ *wire.Context, h *wire.HeartbeatFrag) {
	c.add(Submessage{Kind: "HEARTBEAT_FRAG", Reader: h.Reader, Writer: h.Writer, Seq: h.Seq, First: int64(h.LastFrag), Count: h.Count})
}

func (c *collector) Gap(_ *wire.Context, g *wire.Gap) {
	s := Submessage{Kind: "GAP", Reader: g.Reader, Writer: g.Writer, Seq: g.Start, First: g.Set.Base}
	for seq := range g.Set.All() {
		s.Set = append(s.Set, seq)
	}
	c.add(s)
}
