package wire

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gobag/gobag/cdr"
)

// defaultMaxBlocking is a reliable writer's (DDS 1.4 §2.2.3).
const defaultMaxBlocking = 100 * time.Millisecond

// EndpointData is what SEDP announces about a reader or a writer.
type EndpointData struct {
	GUID        GUID
	Participant GUID // derived from GUID where it is not announced
	Version     Version
	Vendor      VendorID // who announced it
	Topic, Type string
	QoS         QoS

	Unicast, Multicast []Locator // empty: the participant's defaults apply

	UserData         []byte
	Name             string
	ExpectsInlineQoS bool // of a reader
}

// ParseEndpoint reads the payload of an SEDP DATA, of a publication if writer is set, else of a subscription. inline may
// be nil. vendor is the sender's. Type information is passed over: names decide. Nothing of payload is kept.
func ParseEndpoint(payload []byte, inline *InlineQoS, vendor VendorID, writer bool) (EndpointData, error) {
	d := EndpointData{Vendor: vendor}
	if writer {
		d.QoS.Reliability = Reliable
	}
	if err := d.parse(payload, inline, writer); err != nil {
		return EndpointData{}, fmt.Errorf("parse endpoint data: %w", err)
	}
	return d, nil
}

func (d *EndpointData) parse(payload []byte, inline *InlineQoS, writer bool) error {
	var l list
	if err := l.open(payload); err != nil {
		return err
	}
	var hash GUID
	for l.next() {
		switch l.p.ID {
		case pidEndpointGUID:
			d.GUID = l.guid()
		case pidKeyHash:
			hash = l.guid()
		case pidParticipantGUID:
			d.Participant = l.guid()
		case pidTopicName:
			d.Topic = l.str()
		case pidTypeName:
			d.Type = l.str()
		case pidProtocolVersion:
			d.Version = Version{l.v.Uint8(), l.v.Uint8()}
		case pidVendorID:
			d.Vendor = VendorID{l.v.Uint8(), l.v.Uint8()}
		case pidUnicastLocator:
			d.Unicast = addLocator(d.Unicast, &l.v)
		case pidMulticastLocator:
			d.Multicast = addLocator(d.Multicast, &l.v)
		case pidUserData:
			d.UserData = l.octets()
		case pidEntityName:
			d.Name = l.str()
		case pidExpectsInlineQoS:
			d.ExpectsInlineQoS = l.v.Bool()
		default:
			if !d.QoS.parse(&l) {
				l.unknown()
			}
		}
	}
	if l.err != nil {
		return l.err
	}
	d.GUID = firstGUID(d.GUID, hash, inline)
	if d.Participant == (GUID{}) {
		d.Participant = MakeGUID(d.GUID.Prefix(), EntityParticipant)
	}
	switch {
	case d.GUID == GUID{}:
		return errors.New("no endpoint GUID")
	case writer && !d.GUID.Entity().Writer(), !writer && !d.GUID.Entity().Reader():
		return fmt.Errorf("entity id %s is not that of a %s", d.GUID.Entity(), pick(int(flagIf(writer, 1)), "reader", "writer"))
	case d.Topic == "":
		return errors.New("no topic name")
	case d.Type == "":
		return errors.New("no type name")
	}
	return nil
}

// parse reads the parameter at hand if it is a QoS policy.
func (q *QoS) parse(l *list) bool {
	switch l.p.ID {
	case pidReliability:
		k := l.v.Uint32()
		if k < 1 || k > 2 {
			l.v.Fail(fmt.Sprintf("reliability kind %d, 1 or 2 expected", k))
			break
		}
		q.Reliability = Reliability(k - 1)
		if l.v.Left() >= 8 {
			q.MaxBlocking = l.duration()
		}
	case pidDurability:
		q.Durability = Durability(l.enum(uint32(Persistent)))
	case pidHistory:
		q.History, q.Depth = History(l.enum(uint32(KeepAll))), int(max(0, l.v.Int32()))
	case pidDeadline:
		q.Deadline = l.limit()
	case pidLatencyBudget:
		q.LatencyBudget = l.duration()
	case pidLiveliness:
		q.Liveliness, q.LeaseDuration = Liveliness(l.enum(uint32(ManualByTopic))), l.limit()
	case pidLifespan:
		q.Lifespan = l.limit()
	case pidOwnership:
		q.Ownership = Ownership(l.enum(uint32(Exclusive)))
	case pidOwnershipStrength:
		q.OwnershipStrength = l.v.Int32()
	case pidDestinationOrder:
		q.DestinationOrder = DestinationOrder(l.enum(uint32(BySource)))
	case pidPresentation:
		q.Presentation = Presentation{Scope(l.enum(uint32(ScopeGroup))), l.v.Bool(), l.v.Bool()}
	case pidPartition:
		q.Partition = l.partitions()
	case pidRepresentation:
		q.Representation = l.representations()
	default:
		return false
	}
	return true
}

func (l *list) partitions() (names []string) {
	n := l.v.Len(4)
	if n > maxPartitions {
		l.v.Fail(fmt.Sprintf("%d partitions, %d at most", n, maxPartitions))
		return nil
	}
	for range n {
		names = append(names, l.str())
	}
	return names
}

func (l *list) representations() (ids []int16) {
	n := l.v.Len(2)
	if n > maxRepr {
		l.v.Fail(fmt.Sprintf("%d data representations, %d at most", n, maxRepr))
		return nil
	}
	for range n {
		ids = append(ids, l.v.Int16())
	}
	return ids
}

// Append appends the payload of an SEDP DATA, encapsulation header included. All policies that matter for matching are
// written out, defaults too, since vendors differ in what they assume. A name or user data of more than 65 kB cannot be
// expressed and is left out.
func (d *EndpointData) Append(b []byte, writer bool) []byte {
	var e cdr.Encoder
	e.Reset(b, cdr.PLCDRLE)
	putVersions(&e, d.Version, d.Vendor)
	putGUID(&e, pidEndpointGUID, d.GUID)
	putGUID(&e, pidParticipantGUID, MakeGUID(d.GUID.Prefix(), EntityParticipant))
	putStr(&e, pidTopicName, d.Topic)
	putStr(&e, pidTypeName, d.Type)
	putLocators(&e, pidUnicastLocator, d.Unicast)
	putLocators(&e, pidMulticastLocator, d.Multicast)
	d.QoS.append(&e, writer)
	if len(d.UserData) > 0 {
		putOctets(&e, pidUserData, d.UserData)
	}
	if d.Name != "" {
		putStr(&e, pidEntityName, d.Name)
	}
	if d.ExpectsInlineQoS && !writer {
		e.BeginParam(pidExpectsInlineQoS)
		e.Bool(true)
		e.EndParam()
	}
	e.Sentinel()
	return e.Bytes()
}

func (q *QoS) append(e *cdr.Encoder, writer bool) {
	e.BeginParam(pidReliability)
	e.Uint32(uint32(q.Reliability) + 1)
	blocking := q.MaxBlocking
	if blocking == 0 {
		blocking = defaultMaxBlocking
	}
	putDuration(e, blocking)
	e.EndParam()

	putUint32(e, pidDurability, uint32(q.Durability))

	e.BeginParam(pidHistory)
	e.Uint32(uint32(q.History))
	e.Int32(int32(min(max(q.Depth, 1), math.MaxInt32)))
	e.EndParam()

	e.BeginParam(pidDeadline)
	putLimit(e, q.Deadline)
	e.EndParam()

	e.BeginParam(pidLatencyBudget)
	putDuration(e, q.LatencyBudget)
	e.EndParam()

	e.BeginParam(pidLiveliness)
	e.Uint32(uint32(q.Liveliness))
	putLimit(e, q.LeaseDuration)
	e.EndParam()

	putUint32(e, pidOwnership, uint32(q.Ownership))
	putUint32(e, pidDestinationOrder, uint32(q.DestinationOrder))

	e.BeginParam(pidPresentation)
	e.Uint32(uint32(q.Presentation.Scope))
	e.Bool(q.Presentation.Coherent)
	e.Bool(q.Presentation.Ordered)
	e.EndParam()

	if writer {
		e.BeginParam(pidLifespan)
		putLimit(e, q.Lifespan)
		e.EndParam()
		putUint32(e, pidOwnershipStrength, uint32(q.OwnershipStrength))
	}
	if len(q.Partition) > 0 {
		e.BeginParam(pidPartition)
		e.SeqLen(len(q.Partition))
		for _, name := range q.Partition {
			e.Str(name)
		}
		e.EndParam()
	}
	if len(q.Representation) > 0 {
		e.BeginParam(pidRepresentation)
		e.SeqLen(len(q.Representation))
		for _, id := range q.Representation {
			e.Int16(id)
		}
		e.EndParam()
	}
}
