package ros

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The names of the policies in rosbag2's metadata version 9 and in QoS override files (rmw/qos_string_conversions.c and
// rosbag2_storage/qos.cpp), by number.
var (
	historyNames     = []string{"system_default", "keep_last", "keep_all", "unknown"}
	reliabilityNames = []string{"system_default", "reliable", "best_effort", "unknown", "best_available"}
	durabilityNames  = []string{"system_default", "transient_local", "volatile", "unknown", "best_available"}
	livelinessNames  = []string{"system_default", "automatic", "manual_by_node", "manual_by_topic", "unknown"}
)

// String is rosbag2's name of the policy.
func (h History) String() string { return policyName(historyNames, uint8(h)) }

// String is rosbag2's name of the policy.
func (r Reliability) String() string { return policyName(reliabilityNames, uint8(r)) }

// String is rosbag2's name of the policy.
func (d Durability) String() string { return policyName(durabilityNames, uint8(d)) }

// String is rosbag2's name of the policy.
func (l Liveliness) String() string { return policyName(livelinessNames, uint8(l)) }

// ParseHistory reads rosbag2's name of the policy, or its number. The error lists the names.
func ParseHistory(s string) (History, error) {
	n, err := parsePolicy("history", historyNames, s)
	return History(n), err
}

// ParseReliability reads rosbag2's name of the policy, or its number. The error lists the names.
func ParseReliability(s string) (Reliability, error) {
	n, err := parsePolicy("reliability", reliabilityNames, s)
	return Reliability(n), err
}

// ParseDurability reads rosbag2's name of the policy, or its number. The error lists the names.
func ParseDurability(s string) (Durability, error) {
	n, err := parsePolicy("durability", durabilityNames, s)
	return Durability(n), err
}

// ParseLiveliness reads rosbag2's name of the policy, or its number. The error lists the names.
func ParseLiveliness(s string) (Liveliness, error) {
	n, err := parsePolicy("liveliness", livelinessNames, s)
	return Liveliness(n), err
}

func policyName(names []string, n uint8) string {
	if int(n) < len(names) {
		return names[n]
	}
	return strconv.Itoa(int(n))
}

func parsePolicy(policy string, names []string, s string) (uint8, error) {
	for i, name := range names {
		if s == name {
			return uint8(i), nil
		}
	}
	if n, err := strconv.ParseUint(s, 10, 8); err == nil && int(n) < len(names) {
		return uint8(n), nil
	}
	return 0, fmt.Errorf("%s %s: not one of %s", policy, quote(s), strings.Join(names, ", "))
}

// String describes the profile for people: "reliable, volatile, keep_last 10", then what differs from the default.
func (q QoS) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %s", q.Reliability, q.Durability, q.History)
	if q.History == KeepLast {
		fmt.Fprintf(&b, " %d", q.Depth)
	}
	duration := func(name string, d time.Duration) {
		if d != 0 && d != Infinite {
			fmt.Fprintf(&b, ", %s %v", name, d)
		}
	}
	duration("deadline", q.Deadline)
	duration("lifespan", q.Lifespan)
	if q.Liveliness != Automatic && q.Liveliness != LivelinessSystemDefault {
		fmt.Fprintf(&b, ", %s", q.Liveliness)
	}
	duration("lease", q.LivelinessLeaseDuration)
	return b.String()
}
