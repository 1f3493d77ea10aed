package ros

import (
	"fmt"
	"time"
)

// Normalized replaces what a profile leaves open: system defaults and unknown policies by those of DefaultQoS, a
// keep-last depth below 1 by its depth, and durations that are zero or negative by Infinite. BestAvailable stays.
func (q QoS) Normalized() QoS {
	d := DefaultQoS()
	if q.History != KeepLast && q.History != KeepAll {
		q.History, q.Depth = d.History, d.Depth
	}
	if q.History == KeepLast && q.Depth < 1 {
		q.Depth = d.Depth
	}
	switch q.Reliability {
	case Reliable, BestEffort, ReliabilityBestAvailable:
	default:
		q.Reliability = d.Reliability
	}
	switch q.Durability {
	case TransientLocal, Volatile, DurabilityBestAvailable:
	default:
		q.Durability = d.Durability
	}
	switch q.Liveliness {
	case Automatic, ManualByNode, ManualByTopic:
	default:
		q.Liveliness = d.Liveliness
	}
	for _, p := range []*time.Duration{&q.Deadline, &q.Lifespan, &q.LivelinessLeaseDuration} {
		if *p <= 0 {
			*p = Infinite
		}
	}
	return q
}

// Resolve replaces the BestAvailable policies of a requested profile by what a publisher offers, so that the two match
// in these policies.
func (q QoS) Resolve(offered QoS) QoS {
	offered = offered.Normalized()
	if q.Reliability == ReliabilityBestAvailable {
		q.Reliability = offered.Reliability
	}
	if q.Durability == DurabilityBestAvailable {
		q.Durability = offered.Durability
	}
	return q
}

// Compatible reports whether a publisher's offer satisfies a subscription's request (DDS 1.4 table 2.2.3: requested
// versus offered), and if not, which policy stands in the way: "reliability: offered best_effort, requested reliable".
// History, depth and lifespan never do. BestAvailable policies of the request are always satisfied.
func Compatible(offered, requested QoS) (reason string, ok bool) {
	offered = offered.Normalized()
	requested = requested.Normalized().Resolve(offered)
	switch {
	case requested.Reliability == Reliable && offered.Reliability != Reliable:
		return fmt.Sprintf("reliability: offered %s, requested %s", offered.Reliability, requested.Reliability), false
	case requested.Durability == TransientLocal && offered.Durability != TransientLocal:
		return fmt.Sprintf("durability: offered %s, requested %s", offered.Durability, requested.Durability), false
	case offered.Deadline > requested.Deadline:
		return fmt.Sprintf("deadline: offered %s, requested %s", durationName(offered.Deadline), durationName(requested.Deadline)), false
	case offered.Liveliness < requested.Liveliness:
		return fmt.Sprintf("liveliness: offered %s, requested %s", offered.Liveliness, requested.Liveliness), false
	case offered.LivelinessLeaseDuration > requested.LivelinessLeaseDuration:
		return fmt.Sprintf("liveliness lease: offered %s, requested %s", durationName(offered.LivelinessLeaseDuration),
			durationName(requested.LivelinessLeaseDuration)), false
	}
	return "", true
}

// AdaptQoS chooses one profile that every one of the publishers satisfies, as rosbag2's recorder does (Rosbag2QoS::
// adapt_request_to_offers): reliable only if all are, transient local only if all are, keep last with the biggest depth
// offered if that is more than 1, else keep all, everything else default. Without publishers it is DefaultQoS.
//
// mixed names each policy in which the publishers differ, with what that costs. A subscription with BestAvailableQoS
// has no such cost; AdaptQoS is for the profile that is written down.
func AdaptQoS(offers []QoS) (q QoS, mixed []string) {
	q = DefaultQoS()
	if len(offers) == 0 {
		return q, nil
	}
	var reliable, transient, depth int
	for _, o := range offers {
		if o.Reliability == Reliable {
			reliable++
		}
		if o.Durability == TransientLocal {
			transient++
		}
		if o.History != KeepAll {
			depth = max(depth, o.Depth)
		}
	}
	if q.Depth = depth; depth <= 1 {
		q.History, q.Depth = KeepAll, 0
	}
	if reliable < len(offers) {
		q.Reliability = BestEffort
		if reliable > 0 {
			mixed = append(mixed, fmt.Sprintf("reliability: %d of %d publishers offer reliable, all are received best effort, so some of their messages may be lost",
				reliable, len(offers)))
		}
	}
	if transient == len(offers) {
		q.Durability = TransientLocal
	} else if transient > 0 {
		mixed = append(mixed, fmt.Sprintf("durability: %d of %d publishers offer transient_local, all are received as volatile, so messages published earlier are not received",
			transient, len(offers)))
	}
	return q, mixed
}

// PlaybackQoS chooses the profile that a topic is published with at playback, as rosbag2's player does (Rosbag2QoS::
// adapt_offer_to_recorded_offers): the recorded one if all recorded profiles agree but for history and lifespan, with
// keep last 10; else DefaultQoS, and a warning says so. Policies that the recording did not know become defaults.
func PlaybackQoS(recorded []QoS) (q QoS, warning string) {
	d := DefaultQoS()
	if len(recorded) == 0 {
		return d, ""
	}
	q = recorded[0].offer()
	for _, r := range recorded[1:] {
		if policy := differsIn(q, r.offer()); policy != "" {
			return d, fmt.Sprintf("the %d recorded publishers did not offer the same %s; publishing with the default profile (%s)",
				len(recorded), policy, d)
		}
	}
	q.History, q.Depth = d.History, d.Depth
	return q, ""
}

// offer is the profile as a publisher can offer it: BestAvailable, which a recording may hold, becomes the default.
func (q QoS) offer() QoS {
	return q.Normalized().Resolve(DefaultQoS())
}

// differsIn names the first policy in which two normalized offers differ, history and lifespan aside.
func differsIn(a, b QoS) string {
	switch {
	case a.Reliability != b.Reliability:
		return "reliability"
	case a.Durability != b.Durability:
		return "durability"
	case a.Deadline != b.Deadline:
		return "deadline"
	case a.Liveliness != b.Liveliness:
		return "liveliness"
	case a.LivelinessLeaseDuration != b.LivelinessLeaseDuration:
		return "liveliness lease duration"
	}
	return ""
}

func durationName(d time.Duration) string {
	if d == Infinite {
		return "infinite"
	}
	return d.String()
}
