package wire

import (
	"errors"
	"fmt"

	"github.com/gobag/gobag/cdr"
)

// ParseKey finds the GUID in the goodbye of a participant or an endpoint. Cyclone DDS sends a key payload, Fast DDS no
// payload and the GUID as inline KEY_HASH. payload and inline may be nil.
func ParseKey(payload []byte, inline *InlineQoS) (GUID, error) {
	var guid, hash, participant GUID
	if len(payload) > 0 {
		var l list
		if err := l.open(payload); err != nil {
			return GUID{}, fmt.Errorf("parse key: %w", err)
		}
		for l.next() {
			switch l.p.ID {
			case pidEndpointGUID:
				guid = l.guid()
			case pidParticipantGUID:
				participant = l.guid()
			case pidKeyHash:
				hash = l.guid()
			default:
				l.unknown()
			}
		}
		if l.err != nil {
			return GUID{}, fmt.Errorf("parse key: %w", l.err)
		}
	}
	if guid == (GUID{}) {
		guid = participant
	}
	if guid = firstGUID(guid, hash, inline); guid == (GUID{}) {
		return GUID{}, errors.New("parse key: no GUID in payload or inline QoS")
	}
	return guid, nil
}

// AppendKey appends the key payload of a goodbye, encapsulation header included, for a participant or an endpoint. Send
// it with InlineQoS Status 3 and KeyHash = g, then every vendor understands it.
func AppendKey(b []byte, g GUID) []byte {
	id := uint16(pidEndpointGUID)
	if g.Entity() == EntityParticipant {
		id = pidParticipantGUID
	}
	var e cdr.Encoder
	e.Reset(b, cdr.PLCDRLE)
	putGUID(&e, id, g)
	e.Sentinel()
	return e.Bytes()
}
