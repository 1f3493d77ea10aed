package wire

import (
	"time"
)

// Reliability says whether lost samples are sent again.
type Reliability uint8

// Reliability kinds. (The wire has them as 1 and 2.)
const (
	BestEffort Reliability = iota
	Reliable
)

func (r Reliability) String() string { return pick(int(r), "best effort", "reliable") }

// Durability says which earlier samples a late reader gets.
type Durability uint8

// Durability kinds, ascending.
const (
	Volatile Durability = iota
	TransientLocal
	Transient
	Persistent
)

func (d Durability) String() string {
	return pick(int(d), "volatile", "transient local", "transient", "persistent")
}

// History says how many samples are kept.
type History uint8

// History kinds.
const (
	KeepLast History = iota
	KeepAll
)

func (h History) String() string { return pick(int(h), "keep last", "keep all") }

// Liveliness says who asserts that a writer is alive.
type Liveliness uint8

// Liveliness kinds, ascending.
const (
	Automatic Liveliness = iota
	ManualByParticipant
	ManualByTopic
)

func (l Liveliness) String() string {
	return pick(int(l), "automatic", "manual by participant", "manual by topic")
}

// Ownership says whether several writers may update an instance.
type Ownership uint8

// Ownership kinds.
const (
	Shared Ownership = iota
	Exclusive
)

func (o Ownership) String() string { return pick(int(o), "shared", "exclusive") }

// DestinationOrder says by which time samples of several writers are ordered.
type DestinationOrder uint8

// DestinationOrder kinds, ascending.
const (
	ByReception DestinationOrder = iota
	BySource
)

func (d DestinationOrder) String() string { return pick(int(d), "by reception", "by source") }

// Scope is the extent of coherent and ordered access.
type Scope uint8

// Scopes, ascending.
const (
	ScopeInstance Scope = iota
	ScopeTopic
	ScopeGroup
)

func (s Scope) String() string { return pick(int(s), "instance", "topic", "group") }

// Presentation is the policy of coherent and ordered access.
type Presentation struct {
	Scope             Scope
	Coherent, Ordered bool
}

// Data representations (XTypes 1.3 §7.6.3.1.1).
const (
	XCDR1 int16 = 0
	XML   int16 = 1
	XCDR2 int16 = 2
)

// QoS is the quality of service of an endpoint, in the terms of DDS. The zero value has the defaults of a reader: best
// effort, volatile, keep last 1, no deadline, no lifespan, automatic liveliness without lease. A writer's defaults
// differ in its reliability (reliable); parsed data has them filled in.
type QoS struct {
	Reliability Reliability
	MaxBlocking time.Duration // of a reliable writer's Write; 0 = 100 ms
	Durability  Durability

	// History and Depth are advice: readers and writers match whatever they are. Depth 0 means that nothing was said,
	// which stands for 1 (Fast DDS never says it); it means nothing for KeepAll.
	History History
	Depth   int

	Deadline      time.Duration // 0 = infinite
	Lifespan      time.Duration // of a writer; 0 = infinite
	LatencyBudget time.Duration // 0 = none
	Liveliness    Liveliness
	LeaseDuration time.Duration // of liveliness; 0 = infinite

	Ownership         Ownership
	OwnershipStrength int32 // of a writer
	DestinationOrder  DestinationOrder
	Presentation      Presentation
	Partition         []string // names, with wildcards in readers or writers; nil = the partition ""
	Representation    []int16  // XCDR1, XML, XCDR2 by preference; nil = XCDR1 only
}

func pick(i int, names ...string) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}
