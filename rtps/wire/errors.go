package wire

import (
	"errors"
	"fmt"
)

// ErrNotRTPS is returned for datagrams without an RTPS header. They are common (Cyclone DDS sends single bytes to wake
// its own threads, RTI sends "RTPX") and call for no warning.
var ErrNotRTPS = errors.New("not an RTPS datagram")

// ErrMustUnderstand is returned for discovery data with an unknown parameter that asks to be understood: the sender
// wants to be ignored by those who do not know it.
var ErrMustUnderstand = errors.New("parameter that must be understood is unknown")

// Error says what is malformed in a datagram and where.
type Error struct {
	Offset int    // of the submessage, in bytes from the start of the datagram
	What   string // "HEARTBEAT: 12 bytes, at least 28 expected"
}

func (e *Error) Error() string { return fmt.Sprintf("rtps datagram, offset %d: %s", e.Offset, e.What) }
