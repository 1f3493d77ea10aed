package netsim

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/gobag/gobag/rtps/wire"
)

// Kind is the kind of a submessage that carries or controls data.
type Kind uint8

// Kinds.
const (
	Data Kind = iota + 1
	DataFrag
	Heartbeat
	HeartbeatFrag
	AckNack
	NackFrag
	Gap
)

func (k Kind) String() string {
	names := [...]string{Data: "DATA", DataFrag: "DATA_FRAG", Heartbeat: "HEARTBEAT", HeartbeatFrag: "HEARTBEAT_FRAG", AckNack: "ACKNACK", NackFrag: "NACK_FRAG", Gap: "GAP"}
	if int(k) < len(names) && k > 0 {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Submessage is what a rule sees of a submessage.
type Submessage struct {
	Kind           Kind
	Reader, Writer wire.EntityID
	Seq            int64  // of the sample; HEARTBEAT: the last, ACKNACK: the base, GAP: the start
	Frag           uint32 // DATA_FRAG: the first fragment, HEARTBEAT_FRAG: the last, NACK_FRAG: the base
}

// Datagram is a datagram on its way from one host to another. Rules must not change or keep it.
type Datagram struct {
	From, To    netip.AddrPort // a multicast datagram comes once for each receiver; its To is the receiver's
	Multicast   bool
	N           int // how many there have been from From's address to To's, this one included
	Bytes       []byte
	Submessages []Submessage
}

// Has reports whether a submessage matches.
func (d *Datagram) Has(match func(*Submessage) bool) bool {
	for i := range d.Submessages {
		if match(&d.Submessages[i]) {
			return true
		}
	}
	return false
}

// Any matches submessages of the given kinds.
func Any(kinds ...Kind) func(*Submessage) bool {
	return func(s *Submessage) bool { return slices.Contains(kinds, s.Kind) }
}

// User matches submessages of the given kinds that do not belong to discovery.
func User(kinds ...Kind) func(*Submessage) bool {
	return func(s *Submessage) bool { return slices.Contains(kinds, s.Kind) && !s.Writer.Builtin() }
}

// From matches submessages of the given kinds that name the given writer.
func From(writer wire.EntityID, kinds ...Kind) func(*Submessage) bool {
	return func(s *Submessage) bool { return slices.Contains(kinds, s.Kind) && s.Writer == writer }
}

// DropNth is a rule that loses the n-th datagrams, counted from 1, of those that have a matching submessage.
func DropNth(match func(*Submessage) bool, n ...int) func(*Datagram) bool {
	count := 0
	return func(d *Datagram) bool {
		if !d.Has(match) {
			return false
		}
		count++
		return slices.Contains(n, count)
	}
}

// DropEvery is a rule that loses every n-th datagram of those that have a matching submessage; 1 loses all.
func DropEvery(match func(*Submessage) bool, n int) func(*Datagram) bool {
	count := 0
	return func(d *Datagram) bool {
		if !d.Has(match) {
			return false
		}
		count++
		return count%n == 0
	}
}

// parser collects the submessages of a datagram.
type parser struct {
	decoder wire.Decoder
	list    []Submessage
}

func (p *parser) parse(b []byte) []Submessage {
	p.list = p.list[:0]
	_ = p.decoder.Decode(b, p) // what is malformed is the receiver's business
	return p.list
}

func (p *parser) Data(_ *wire.Context, d *wire.Data) {
	p.list = append(p.list, Submessage{Data, d.Reader, d.Writer, d.Seq, 0})
}

func (p *parser) DataFrag(_ *wire.Context, d *wire.DataFrag) {
	p.list = append(p.list, Submessage{DataFrag, d.Reader, d.Writer, d.Seq, d.First})
}

func (p *parser) AckNack(_ *wire.Context, a *wire.AckNack) {
	p.list = append(p.list, Submessage{AckNack, a.Reader, a.Writer, a.Set.Base, 0})
}

func (p *parser) NackFrag(_ *wire.Context, n *wire.NackFrag) {
	p.list = append(p.list, Submessage{NackFrag, n.Reader, n.Writer, n.Seq, n.Set.Base})
}

func (p *parser) Heartbeat(_ *wire.Context, h *wire.Heartbeat) {
	p.list = append(p.list, Submessage{Heartbeat, h.Reader, h.Writer, h.Last, 0})
}

func (p *parser) HeartbeatFrag(_ *wire.Context, h *wire.HeartbeatFrag) {
	p.list = append(p.list, Submessage{HeartbeatFrag, h.Reader, h.Writer, h.Seq, h.LastFrag})
}

func (p *parser) Gap(_ *wire.Context, g *wire.Gap) {
	p.list = append(p.list, Submessage{Gap, g.Reader, g.Writer, g.Start, 0})
}
