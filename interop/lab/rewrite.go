//go:build linux

package lab

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/gobag/gobag/rtps/wire"
)

// Rewriting of RTPS messages by a relay, so that real peers say things in ways in which they do not by themselves. Written
// from RTPS 2.5 §9.4, not from the code under test.

// RawSubmessage is a submessage as it lies in a datagram, in the byte order that Flags tells.
type RawSubmessage struct {
	ID, Flags byte
	Body      []byte
}

// Submessage ids used here.
const (
	idPad, idAckNack, idHeartbeat, idGap, idInfoTS = 0x01, 0x06, 0x07, 0x08, 0x09
	idInfoDst, idNackFrag, idHeartbeatFrag         = 0x0e, 0x12, 0x13
	idData, idDataFrag                             = 0x15, 0x16
)

var errMessage = errors.New("not a whole RTPS message")

// SplitMessage takes a datagram apart: the 20 bytes of the header and the submessages. The slices alias it.
func SplitMessage(b []byte) (header []byte, list []RawSubmessage, err error) {
	if len(b) < wire.HeaderSize {
		return nil, nil, errMessage
	}
	header, b = b[:wire.HeaderSize], b[wire.HeaderSize:]
	for len(b) > 0 {
		if len(b) < 4 {
			return nil, nil, errMessage
		}
		s := RawSubmessage{ID: b[0], Flags: b[1]}
		n := int(s.order().Uint16(b[2:]))
		b = b[4:]
		if n == 0 && s.ID != idPad && s.ID != idInfoTS {
			n = len(b)
		}
		if n > len(b) {
			return nil, nil, errMessage
		}
		s.Body, b = b[:n], b[n:]
		list = append(list, s)
	}
	return header, list, nil
}

func (s RawSubmessage) order() binary.ByteOrder {
	if s.Flags&1 != 0 {
		return binary.LittleEndian
	}
	return binary.BigEndian
}

// JoinMessage is the inverse of SplitMessage. With open set the last submessage has length 0: it runs to the end.
func JoinMessage(header []byte, list []RawSubmessage, open bool) []byte {
	b := slices.Clone(header)
	for i, s := range list {
		n := uint16(len(s.Body))
		if open && i == len(list)-1 {
			n = 0
		}
		b = append(b, s.ID, s.Flags)
		length := make([]byte, 2)
		s.order().PutUint16(length, n)
		b = append(append(b, length...), s.Body...)
	}
	return b
}

// BigEndian returns a little-endian submessage in big-endian byte order; one of a kind that it does not know as it is.
func (s RawSubmessage) BigEndian() RawSubmessage {
	if s.Flags&1 == 0 {
		return s
	}
	b := slices.Clone(s.Body)
	at := 0
	swap := func(size int) {
		if at+size <= len(b) {
			slices.Reverse(b[at : at+size])
		}
		at += size
	}
	number := func() { swap(4); swap(4) }
	set := func(base int) { // base in words: 2 for sequence numbers, 1 for fragment numbers
		for range base {
			swap(4)
		}
		swap(4)
		for at < len(b)-4 { // the words; the count behind them is swapped by the caller
			swap(4)
		}
	}
	switch s.ID {
	case idInfoTS:
		number()
	case idAckNack:
		at = 8
		set(2)
		swap(4)
	case idNackFrag:
		at = 8
		number()
		set(1)
		swap(4)
	case idHeartbeat:
		at = 8
		number()
		number()
		swap(4)
	case idHeartbeatFrag:
		at = 8
		number()
		swap(4)
		swap(4)
	case idGap:
		at = 8
		number()
		for at < len(b) {
			swap(4)
		}
	case idData, idDataFrag:
		swap(2)
		swap(2)
		at = 12
		number()
		if s.ID == idDataFrag {
			swap(4)
			swap(2)
			swap(2)
			swap(4)
		}
		if s.Flags&2 != 0 {
			swapParameters(b, 4+int(binary.LittleEndian.Uint16(s.Body[2:])))
		}
	case idPad, idInfoDst:
	default:
		return s
	}
	return RawSubmessage{s.ID, s.Flags &^ 1, b}
}

// swapParameters turns the inline QoS at b[at:] to big-endian. The values that occur (KEY_HASH, STATUS_INFO, vendors') are
// octets, but for the identity of a related sample, which nobody here sends.
func swapParameters(b []byte, at int) {
	for at+4 <= len(b) {
		pid, size := binary.LittleEndian.Uint16(b[at:]), int(binary.LittleEndian.Uint16(b[at+2:]))
		slices.Reverse(b[at : at+2])
		slices.Reverse(b[at+2 : at+4])
		if at += 4 + size; pid == 1 {
			return
		}
	}
}

// payloadAt is where the payload of a DATA submessage begins, -1 where it has none.
func (s RawSubmessage) payloadAt() int {
	if s.ID != idData || s.Flags&0x0c == 0 || len(s.Body) < 20 {
		return -1
	}
	at := 4 + int(s.order().Uint16(s.Body[2:]))
	for s.Flags&2 != 0 { // inline QoS
		if at+4 > len(s.Body) {
			return -1
		}
		pid, size := s.order().Uint16(s.Body[at:]), int(s.order().Uint16(s.Body[at+2:]))
		if at += 4 + size; pid == 1 {
			break
		}
	}
	if at > len(s.Body) {
		return -1
	}
	return at
}

// Writer is the writer of a DATA submessage.
func (s RawSubmessage) Writer() wire.EntityID {
	if s.ID != idData || len(s.Body) < 12 {
		return wire.EntityID{}
	}
	return wire.EntityID(s.Body[8:12])
}

// Payload is the payload of a DATA submessage, encapsulation header included; nil where it has none.
func (s RawSubmessage) Payload() []byte {
	if at := s.payloadAt(); at >= 0 {
		return s.Body[at:]
	}
	return nil
}

// WithPayload is a DATA submessage with another payload.
func (s RawSubmessage) WithPayload(payload []byte) RawSubmessage {
	at := s.payloadAt()
	if at < 0 {
		return s
	}
	s.Body = append(slices.Clone(s.Body[:at]), payload...)
	for len(s.Body)%4 != 0 {
		s.Body = append(s.Body, 0)
	}
	return s
}

// Parameter is an entry of a parameter list.
type Parameter struct {
	ID    uint16
	Value []byte
}

// ParameterList reads a PL_CDR_LE payload, without the sentinel.
func ParameterList(payload []byte) (list []Parameter, err error) {
	if len(payload) < 4 || payload[0] != 0 || payload[1] != 3 {
		return nil, errMessage
	}
	for b := payload[4:]; len(b) >= 4; {
		id, size := binary.LittleEndian.Uint16(b), int(binary.LittleEndian.Uint16(b[2:]))
		if id == 1 {
			return list, nil
		}
		if size > len(b)-4 {
			break
		}
		list = append(list, Parameter{id, b[4 : 4+size]})
		b = b[4+size:]
	}
	return nil, errMessage
}

// AppendParameterList is the inverse of ParameterList.
func AppendParameterList(b []byte, list []Parameter) []byte {
	b = append(b, 0, 3, 0, 0)
	for _, p := range list {
		b = binary.LittleEndian.AppendUint16(b, p.ID)
		b = binary.LittleEndian.AppendUint16(b, uint16(len(p.Value)))
		b = append(b, p.Value...)
	}
	return append(b, 1, 0, 0, 0)
}

// Rewrite applies f to every submessage of a datagram. A datagram that is not whole comes back as it is.
func Rewrite(b []byte, f func(RawSubmessage) RawSubmessage) []byte {
	header, list, err := SplitMessage(b)
	if err != nil {
		return b
	}
	for i := range list {
		list[i] = f(list[i])
	}
	return JoinMessage(header, list, false)
}

// RewriteParticipant applies f to the parameters of a participant's announcement in the datagram.
func RewriteParticipant(b []byte, f func([]Parameter) []Parameter) []byte {
	return Rewrite(b, func(s RawSubmessage) RawSubmessage {
		if s.Writer() != wire.EntitySPDPWriter {
			return s
		}
		list, err := ParameterList(s.Payload())
		if err != nil {
			return s
		}
		return s.WithPayload(AppendParameterList(nil, f(list)))
	})
}
