package wire

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gobag/gobag/cdr"
)

// defaultLease applies where a participant announces none (RTPS 2.5 §8.5.3.2).
const defaultLease = 100 * time.Second

// ParticipantData is what SPDP announces about a participant.
type ParticipantData struct {
	GUID      GUID
	Version   Version // zero: Protocol when appended
	Vendor    VendorID
	Endpoints uint32        // Builtin… bits
	Lease     time.Duration // after so long without a sign of life it is gone; 0 = infinite

	MetaUnicast, MetaMulticast       []Locator // for discovery; kinds we cannot use included
	DefaultUnicast, DefaultMulticast []Locator // for endpoints that have no locators of their own

	DomainID  int    // -1: not announced
	DomainTag string // participants with another tag do not see each other
	Name      string
	UserData  []byte

	ExpectsInlineQoS bool
	Secured          bool   // it has an identity of DDS Security (1.1 §7.4.1.3)
	RecvBuffer       uint32 // bytes of the socket's receive buffer, 0 unknown; Cyclone DDS says it
}

// ParseParticipant reads the payload of an SPDP DATA. inline may be nil; it is where Fast DDS may have the GUID. vendor
// is the sender's: it decides which vendor-specific parameters mean anything. Nothing of payload is kept.
func ParseParticipant(payload []byte, inline *InlineQoS, vendor VendorID) (ParticipantData, error) {
	d := ParticipantData{Vendor: vendor, Lease: defaultLease, DomainID: -1}
	if err := d.parse(payload, inline); err != nil {
		return ParticipantData{}, fmt.Errorf("parse participant data: %w", err)
	}
	return d, nil
}

func (d *ParticipantData) parse(payload []byte, inline *InlineQoS) error {
	var l list
	if err := l.open(payload); err != nil {
		return err
	}
	sender := d.Vendor
	var hash GUID
	for l.next() {
		switch l.p.ID {
		case pidParticipantGUID:
			d.GUID = l.guid()
		case pidKeyHash:
			hash = l.guid()
		case pidProtocolVersion:
			d.Version = Version{l.v.Uint8(), l.v.Uint8()}
		case pidVendorID:
			d.Vendor = VendorID{l.v.Uint8(), l.v.Uint8()}
		case pidBuiltinEndpoints:
			d.Endpoints = l.v.Uint32()
		case pidParticipantLease:
			d.Lease = l.limit()
		case pidMetaUnicast:
			d.MetaUnicast = addLocator(d.MetaUnicast, &l.v)
		case pidMetaMulticast:
			d.MetaMulticast = addLocator(d.MetaMulticast, &l.v)
		case pidDefaultUnicast:
			d.DefaultUnicast = addLocator(d.DefaultUnicast, &l.v)
		case pidDefaultMulticast:
			d.DefaultMulticast = addLocator(d.DefaultMulticast, &l.v)
		case pidDomainID:
			d.DomainID = int(min(l.v.Uint32(), math.MaxInt32))
		case pidDomainTag:
			d.DomainTag = l.str()
		case pidEntityName:
			d.Name = l.str()
		case pidUserData:
			d.UserData = l.octets()
		case pidExpectsInlineQoS:
			d.ExpectsInlineQoS = l.v.Bool()
		case pidIdentityToken, pidPermissionsToken, pidParticipantSecurity:
			d.Secured = true
		case pidCycloneRecvBuffer:
			if sender == VendorCyclone {
				d.RecvBuffer = l.v.Uint32()
			}
		default:
			l.unknown()
		}
	}
	if l.err != nil {
		return l.err
	}
	d.GUID = firstGUID(d.GUID, hash, inline)
	if d.GUID == (GUID{}) {
		return errors.New("no participant GUID")
	}
	return nil
}

// firstGUID is the first that is known of a GUID parameter, a KEY_HASH parameter and an inline KEY_HASH.
func firstGUID(param, hash GUID, inline *InlineQoS) GUID {
	switch {
	case param != GUID{}:
		return param
	case hash != GUID{}:
		return hash
	case inline != nil && inline.HasKeyHash:
		return inline.KeyHash
	}
	return GUID{}
}

// Append appends the payload of an SPDP DATA, encapsulation header included. Empty strings and lists are left out.
func (d *ParticipantData) Append(b []byte) []byte {
	var e cdr.Encoder
	e.Reset(b, cdr.PLCDRLE)
	putVersions(&e, d.Version, d.Vendor)
	putGUID(&e, pidParticipantGUID, d.GUID)
	putUint32(&e, pidBuiltinEndpoints, d.Endpoints)
	e.BeginParam(pidParticipantLease)
	putLimit(&e, d.Lease)
	e.EndParam()
	putLocators(&e, pidMetaUnicast, d.MetaUnicast)
	putLocators(&e, pidMetaMulticast, d.MetaMulticast)
	putLocators(&e, pidDefaultUnicast, d.DefaultUnicast)
	putLocators(&e, pidDefaultMulticast, d.DefaultMulticast)
	if d.DomainID >= 0 {
		putUint32(&e, pidDomainID, uint32(d.DomainID))
	}
	if d.DomainTag != "" {
		putStr(&e, pidDomainTag, d.DomainTag)
	}
	if d.Name != "" {
		putStr(&e, pidEntityName, d.Name)
	}
	if len(d.UserData) > 0 {
		putOctets(&e, pidUserData, d.UserData)
	}
	if d.ExpectsInlineQoS {
		e.BeginParam(pidExpectsInlineQoS)
		e.Bool(true)
		e.EndParam()
	}
	if d.RecvBuffer != 0 && d.Vendor == VendorCyclone {
		putUint32(&e, pidCycloneRecvBuffer, d.RecvBuffer)
	}
	e.Sentinel()
	return e.Bytes()
}
