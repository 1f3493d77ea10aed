package ros

import (
	"math"
	"time"
)

// Infinite is the duration of a policy that is switched off.
const Infinite = time.Duration(math.MaxInt64)

// History says how many samples an endpoint keeps. The numbers of all policies are those of rosbag2's files (RMW).
type History uint8

// History policies.
const (
	HistorySystemDefault History = 0
	KeepLast             History = 1
	KeepAll              History = 2
	HistoryUnknown       History = 3
)

// Reliability says whether lost samples are sent again.
type Reliability uint8

// Reliability policies.
const (
	ReliabilitySystemDefault Reliability = 0
	Reliable                 Reliability = 1
	BestEffort               Reliability = 2
	ReliabilityUnknown       Reliability = 3
	ReliabilityBestAvailable Reliability = 4 // subscriptions: whatever each publisher offers
)

// Durability says whether late joiners get earlier samples.
type Durability uint8

// Durability policies.
const (
	DurabilitySystemDefault Durability = 0
	TransientLocal          Durability = 1
	Volatile                Durability = 2
	DurabilityUnknown       Durability = 3
	DurabilityBestAvailable Durability = 4 // subscriptions: whatever each publisher offers
)

// Liveliness says who asserts that a publisher is alive.
type Liveliness uint8

// Liveliness policies.
const (
	LivelinessSystemDefault Liveliness = 0
	Automatic               Liveliness = 1
	ManualByNode            Liveliness = 2
	ManualByTopic           Liveliness = 3
	LivelinessUnknown       Liveliness = 4
)

// QoS is a quality of service profile. The zero value means system defaults throughout; zero durations mean Infinite.
type QoS struct {
	History                      History
	Depth                        int
	Reliability                  Reliability
	Durability                   Durability
	Deadline                     time.Duration
	Lifespan                     time.Duration
	Liveliness                   Liveliness
	LivelinessLeaseDuration      time.Duration
	AvoidROSNamespaceConventions bool
}

// DefaultQoS is ROS 2's default profile: keep last 10, reliable, volatile.
func DefaultQoS() QoS {
	return QoS{History: KeepLast, Depth: 10, Reliability: Reliable, Durability: Volatile, Deadline: Infinite, Lifespan: Infinite,
		Liveliness: Automatic, LivelinessLeaseDuration: Infinite}
}

// BestAvailableQoS asks every publisher for the most it offers; for subscriptions only.
func BestAvailableQoS() QoS {
	q := DefaultQoS()
	q.Reliability, q.Durability = ReliabilityBestAvailable, DurabilityBestAvailable
	return q
}
