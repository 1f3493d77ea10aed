package wire

import (
	"fmt"
	"net/netip"

	"github.com/gobag/gobag/cdr"
)

// Kinds of locators (RTPS 2.5 §9.3.2). All others, shared memory among them, are of no use to us.
const (
	LocatorInvalid int32 = -1
	LocatorUDPv4   int32 = 1
	LocatorUDPv6   int32 = 2
	LocatorTCPv4   int32 = 4
	LocatorTCPv6   int32 = 8
	LocatorSHM     int32 = 16 // Fast DDS, and old Cyclone DDS with iceoryx
)

// maxLocators is how many locators of one list are kept; further ones are passed over.
const maxLocators = 64

// Locator says where an endpoint can be reached. An IPv4 address is in the last 4 bytes of Addr.
type Locator struct {
	Kind int32
	Port uint32
	Addr [16]byte
}

// LocatorFrom makes a UDP locator.
func LocatorFrom(a netip.AddrPort) Locator {
	l := Locator{Kind: LocatorUDPv6, Port: uint32(a.Port()), Addr: a.Addr().As16()}
	if a.Addr().Unmap().Is4() {
		v4 := a.Addr().Unmap().As4()
		l.Kind, l.Addr = LocatorUDPv4, [16]byte{}
		copy(l.Addr[12:], v4[:])
	}
	return l
}

// AddrPort is the UDP address; false for other transports and for impossible ports.
func (l Locator) AddrPort() (netip.AddrPort, bool) {
	if l.Port < 1 || l.Port > 0xffff {
		return netip.AddrPort{}, false
	}
	switch l.Kind {
	case LocatorUDPv4:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(l.Addr[12:])), uint16(l.Port)), true
	case LocatorUDPv6:
		return netip.AddrPortFrom(netip.AddrFrom16(l.Addr), uint16(l.Port)), true
	}
	return netip.AddrPort{}, false
}

func (l Locator) String() string {
	if a, ok := l.AddrPort(); ok {
		return "udp/" + a.String()
	}
	switch l.Kind {
	case LocatorTCPv4, LocatorTCPv6:
		return fmt.Sprintf("tcp port %d", uint16(l.Port)) // the upper half is a logical port
	case LocatorSHM:
		return fmt.Sprintf("shared memory port %d", l.Port)
	case LocatorInvalid:
		return "invalid locator"
	}
	return fmt.Sprintf("locator of kind %d", l.Kind)
}

// addLocator reads a locator and adds it to the list, unless that is full.
func addLocator(list []Locator, d *cdr.Decoder) []Locator {
	l := Locator{Kind: d.Int32(), Port: d.Uint32()}
	copy(l.Addr[:], d.Bytes(16))
	if d.Err() != nil || len(list) >= maxLocators {
		return list
	}
	return append(list, l)
}

func putLocators(e *cdr.Encoder, id uint16, list []Locator) {
	for _, l := range list {
		e.BeginParam(id)
		e.Int32(l.Kind)
		e.Uint32(l.Port)
		e.Raw(l.Addr[:])
		e.EndParam()
	}
}
