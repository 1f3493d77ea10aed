package wire

import (
	"encoding/hex"
	"fmt"
)

// Entity ids of the builtin endpoints (RTPS 2.5 §9.3.1.3).
var (
	EntityUnknown          = EntityID{}
	EntityParticipant      = EntityID{0x00, 0x00, 0x01, 0xc1}
	EntitySPDPWriter       = EntityID{0x00, 0x01, 0x00, 0xc2}
	EntitySPDPReader       = EntityID{0x00, 0x01, 0x00, 0xc7}
	EntityPubWriter        = EntityID{0x00, 0x00, 0x03, 0xc2} // SEDP publications
	EntityPubReader        = EntityID{0x00, 0x00, 0x03, 0xc7}
	EntitySubWriter        = EntityID{0x00, 0x00, 0x04, 0xc2} // SEDP subscriptions
	EntitySubReader        = EntityID{0x00, 0x00, 0x04, 0xc7}
	EntityLivelinessWriter = EntityID{0x00, 0x02, 0x00, 0xc2} // participant messages
	EntityLivelinessReader = EntityID{0x00, 0x02, 0x00, 0xc7}
)

// Kinds of user entities: the last byte of an EntityID. ROS topics are keyless.
const (
	KindWriterKeyed   = 0x02
	KindWriterKeyless = 0x03
	KindReaderKeyless = 0x04
	KindReaderKeyed   = 0x07
)

// Bits of PID_BUILTIN_ENDPOINT_SET (RTPS 2.5 §9.3.2, table 9.4).
const (
	BuiltinSPDPWriter       = 1 << 0
	BuiltinSPDPReader       = 1 << 1
	BuiltinPubWriter        = 1 << 2
	BuiltinPubReader        = 1 << 3
	BuiltinSubWriter        = 1 << 4
	BuiltinSubReader        = 1 << 5
	BuiltinLivelinessWriter = 1 << 10
	BuiltinLivelinessReader = 1 << 11

	// BuiltinAll is what a participant of this package's users has: 0x0c3f.
	BuiltinAll = BuiltinSPDPWriter | BuiltinSPDPReader | BuiltinPubWriter | BuiltinPubReader |
		BuiltinSubWriter | BuiltinSubReader | BuiltinLivelinessWriter | BuiltinLivelinessReader
)

// Keyed reports whether the entity's topic has a key.
func (e EntityID) Keyed() bool { k := e[3] & 0x3f; return k == KindWriterKeyed || k == KindReaderKeyed }

// Writer reports whether the entity is a writer.
func (e EntityID) Writer() bool {
	k := e[3] & 0x3f
	return k == KindWriterKeyed || k == KindWriterKeyless
}

// Reader reports whether the entity is a reader.
func (e EntityID) Reader() bool {
	k := e[3] & 0x3f
	return k == KindReaderKeyed || k == KindReaderKeyless
}

// Builtin reports whether the entity serves discovery, by the top bits of its kind.
func (e EntityID) Builtin() bool { return e[3]&0xc0 == 0xc0 }

func (e EntityID) String() string { return hex.EncodeToString(e[:]) }

func (p Prefix) String() string {
	return fmt.Sprintf("%x.%x.%x", p[:4], p[4:8], p[8:])
}

// MakeGUID joins a prefix and an entity id.
func MakeGUID(p Prefix, e EntityID) (g GUID) {
	copy(g[:12], p[:])
	copy(g[12:], e[:])
	return g
}

// Prefix names the participant.
func (g GUID) Prefix() Prefix { return Prefix(g[:12]) }

// Entity names the endpoint within its participant.
func (g GUID) Entity() EntityID { return EntityID(g[12:]) }

// String is the form of Fast DDS and of `ros2 topic info -v`: bytes in hexadecimal, groups separated by dots.
func (g GUID) String() string { return g.Prefix().String() + "." + g.Entity().String() }

// Vendors seen in the field (list at dds-foundation.org), and ours, which is not assigned to anyone.
var (
	VendorUnknown    = VendorID{0, 0}
	VendorRTI        = VendorID{1, 1}
	VendorOpenSplice = VendorID{1, 2}
	VendorOpenDDS    = VendorID{1, 3}
	VendorCoreDX     = VendorID{1, 6}
	VendorFast       = VendorID{1, 0x0f}
	VendorCyclone    = VendorID{1, 0x10}
	VendorRustDDS    = VendorID{1, 0x12}
	VendorDust       = VendorID{1, 0x14}
	VendorGobag      = VendorID{1, 0xff}
)

func (v VendorID) String() string {
	switch v {
	case VendorUnknown:
		return "unknown vendor"
	case VendorRTI:
		return "RTI Connext"
	case VendorOpenSplice:
		return "OpenSplice"
	case VendorOpenDDS:
		return "OpenDDS"
	case VendorCoreDX:
		return "CoreDX"
	case VendorFast:
		return "Fast DDS"
	case VendorCyclone:
		return "Cyclone DDS"
	case VendorRustDDS:
		return "RustDDS"
	case VendorDust:
		return "Dust DDS"
	case VendorGobag:
		return "gobag"
	}
	return fmt.Sprintf("vendor %02x.%02x", v[0], v[1])
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Protocol is the version that we send: 2.3, which every ROS 2 middleware takes.
var Protocol = Version{2, 3}
