package rtps

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// QoS is the quality of service of an endpoint in the terms of DDS. The zero value is best effort, volatile, keep last
// 1, without deadline, lifespan or liveliness lease.
type QoS = wire.QoS

type (
	// Reliability is the kind of the policy: BestEffort or Reliable.
	Reliability = wire.Reliability
	// Durability is the kind of the policy: from Volatile to Persistent.
	Durability = wire.Durability
	// History is the kind of the policy: KeepLast or KeepAll.
	History = wire.History
	// Liveliness is the kind of the policy: who says that a writer lives.
	Liveliness = wire.Liveliness
	// Ownership is the kind of the policy: whether several writers may update an instance.
	Ownership = wire.Ownership
	// DestinationOrder is the kind of the policy: by which stamp a reader orders samples.
	DestinationOrder = wire.DestinationOrder
	// Presentation is the whole policy: how far order and coherence reach, and whether they are wanted.
	Presentation = wire.Presentation
)

// Values of the policies.
const (
	BestEffort = wire.BestEffort
	Reliable   = wire.Reliable

	Volatile       = wire.Volatile
	TransientLocal = wire.TransientLocal
	Transient      = wire.Transient
	Persistent     = wire.Persistent

	KeepLast = wire.KeepLast
	KeepAll  = wire.KeepAll

	Automatic           = wire.Automatic
	ManualByParticipant = wire.ManualByParticipant
	ManualByTopic       = wire.ManualByTopic
)

// Compatible reports whether a writer's offer satisfies a reader's request, by the rules of DDS 1.4 §2.2.3 and, for the
// data representation, XTypes 1.3 §7.6.3.1.1. The reason names the first policy that does not:
// "durability: offered volatile, requested transient local".
func Compatible(offered, requested QoS) (reason string, ok bool) {
	if offered.Reliability < requested.Reliability {
		return incompatible("reliability", offered.Reliability, requested.Reliability)
	}
	if offered.Durability < requested.Durability {
		return incompatible("durability", offered.Durability, requested.Durability)
	}
	if limit(offered.Deadline) > limit(requested.Deadline) {
		return incompatible("deadline", limitText(offered.Deadline), limitText(requested.Deadline))
	}
	if offered.LatencyBudget > requested.LatencyBudget {
		return incompatible("latency budget", offered.LatencyBudget, requested.LatencyBudget)
	}
	if offered.Liveliness < requested.Liveliness {
		return incompatible("liveliness", offered.Liveliness, requested.Liveliness)
	}
	if limit(offered.LeaseDuration) > limit(requested.LeaseDuration) {
		return incompatible("liveliness lease", limitText(offered.LeaseDuration), limitText(requested.LeaseDuration))
	}
	if offered.Ownership != requested.Ownership {
		return incompatible("ownership", offered.Ownership, requested.Ownership)
	}
	if offered.DestinationOrder < requested.DestinationOrder {
		return incompatible("destination order", offered.DestinationOrder, requested.DestinationOrder)
	}
	o, r := offered.Presentation, requested.Presentation
	if o.Scope < r.Scope || !o.Coherent && r.Coherent || !o.Ordered && r.Ordered {
		return incompatible("presentation", presentationText(o), presentationText(r))
	}
	if !partitionsMeet(offered.Partition, requested.Partition) {
		return incompatible("partition", fmt.Sprintf("%q", offered.Partition), fmt.Sprintf("%q", requested.Partition))
	}
	// A writer writes in the first representation that it offers.
	if w, r := representations(offered.Representation), representations(requested.Representation); !slices.Contains(r, w[0]) {
		return incompatible("data representation", representationText(w[:1]), representationText(r))
	}
	return "", true
}

func incompatible(policy string, offered, requested any) (string, bool) {
	return fmt.Sprintf("%s: offered %v, requested %v", policy, offered, requested), false
}

// limit turns the 0 of "no limit" into the largest duration.
func limit(d time.Duration) time.Duration {
	if d <= 0 {
		return math.MaxInt64
	}
	return d
}

func limitText(d time.Duration) string {
	if limit(d) == math.MaxInt64 {
		return "infinite"
	}
	return d.String()
}

func presentationText(p Presentation) string {
	s := fmt.Sprint(p.Scope)
	if p.Coherent {
		s += ", coherent"
	}
	if p.Ordered {
		s += ", ordered"
	}
	return s
}

func representations(r []int16) []int16 {
	if len(r) == 0 {
		return []int16{wire.XCDR1}
	}
	return r
}

func representationText(r []int16) string {
	var names []string
	for _, id := range r {
		switch id {
		case wire.XCDR1:
			names = append(names, "XCDR1")
		case wire.XML:
			names = append(names, "XML")
		case wire.XCDR2:
			names = append(names, "XCDR2")
		default:
			names = append(names, fmt.Sprint(id))
		}
	}
	return strings.Join(names, " or ")
}

// partitionsMeet reports whether some name of one side matches one of the other. No name at all is the name "". A
// pattern matches names, but no pattern matches a pattern (DDS 1.4 §2.2.3.13).
func partitionsMeet(a, b []string) bool {
	if len(a) == 0 {
		a = []string{""}
	}
	if len(b) == 0 {
		b = []string{""}
	}
	for _, x := range a {
		for _, y := range b {
			if x == y || partitionMatch(x, y) || partitionMatch(y, x) {
				return true
			}
		}
	}
	return false
}

func partitionMatch(pattern, name string) bool {
	if !isPattern(pattern) || isPattern(name) {
		return false
	}
	// path.Match treats "/" as special, fnmatch without FNM_PATHNAME does not.
	r := strings.NewReplacer("/", "\x01", "[!", "[^")
	ok, err := path.Match(r.Replace(pattern), strings.ReplaceAll(name, "/", "\x01"))
	return ok && err == nil
}

func isPattern(s string) bool { return strings.ContainsAny(s, "*?[") }
