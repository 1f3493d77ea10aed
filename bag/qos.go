package bag

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Infinite is a duration without end, as in package ros.
const Infinite = time.Duration(math.MaxInt64)

// QoSProfile is a quality of service profile as bags store it. The numbers of the policies are those of rosbag2's files
// (RMW) and of package ros; a zero duration means that none was given.
type QoSProfile struct {
	History                      int // 1 keep last, 2 keep all, 3 unknown
	Depth                        int
	Reliability                  int // 1 reliable, 2 best effort, 3 unknown, 4 best available
	Durability                   int // 1 transient local, 2 volatile, 3 unknown, 4 best available
	Deadline                     time.Duration
	Lifespan                     time.Duration
	Liveliness                   int // 1 automatic, 2 by node, 3 by topic, 4 unknown, 5 best available
	LivelinessLeaseDuration      time.Duration
	AvoidROSNamespaceConventions bool
}

// DefaultQoSProfile is ROS 2's default profile: keep last 10, reliable, volatile.
func DefaultQoSProfile() QoSProfile {
	return QoSProfile{History: 1, Depth: 10, Reliability: 1, Durability: 2, Deadline: Infinite, Lifespan: Infinite,
		Liveliness: 1, LivelinessLeaseDuration: Infinite}
}

// The names of the policies by number; "" has no name of its own.
var (
	historyNames     = []string{"system_default", "keep_last", "keep_all", "unknown"}
	reliabilityNames = []string{"system_default", "reliable", "best_effort", "unknown", "best_available"}
	durabilityNames  = []string{"system_default", "transient_local", "volatile", "unknown", "best_available"}
	livelinessNames  = []string{"system_default", "automatic", "manual_by_node", "manual_by_topic", "unknown", "best_available"}
)

// The nine keys of a profile, in the order in which rosbag2 writes them.
const (
	keyHistory     = "history"
	keyDepth       = "depth"
	keyReliability = "reliability"
	keyDurability  = "durability"
	keyDeadline    = "deadline"
	keyLifespan    = "lifespan"
	keyLiveliness  = "liveliness"
	keyLease       = "liveliness_lease_duration"
	keyAvoid       = "avoid_ros_namespace_conventions"
)

var qosKeys = []string{keyHistory, keyDepth, keyReliability, keyDurability, keyDeadline, keyLifespan, keyLiveliness, keyLease, keyAvoid}

// EncodeQoS returns profiles as the YAML list that rosbag2 stores with a topic: with the names of the policies (Jazzy and
// later) or with their numbers. No profile at all gives "".
func EncodeQoS(profiles []QoSProfile, names bool) string {
	w := &yamlWriter{}
	for _, q := range profiles {
		q.encode(w, 0, names)
	}
	return w.b.String()
}

func (q QoSProfile) encode(w *yamlWriter, d int, names bool) {
	policy := func(key string, n int, table []string) string {
		if !names {
			return key + ": " + strconv.Itoa(n)
		}
		if n < 0 || n >= len(table) {
			return key + ": unknown"
		}
		return key + ": " + table[n]
	}
	duration := func(key string, t time.Duration) {
		w.line(d+1, key+":")
		w.line(d+2, "sec: "+strconv.FormatInt(int64(t/time.Second), 10))
		w.line(d+2, "nsec: "+strconv.FormatInt(int64(t%time.Second), 10))
	}
	w.line(d, "- "+policy(keyHistory, q.History, historyNames))
	w.line(d+1, keyDepth+": "+strconv.Itoa(q.Depth))
	w.line(d+1, policy(keyReliability, q.Reliability, reliabilityNames))
	w.line(d+1, policy(keyDurability, q.Durability, durabilityNames))
	duration(keyDeadline, q.Deadline)
	duration(keyLifespan, q.Lifespan)
	w.line(d+1, policy(keyLiveliness, q.Liveliness, livelinessNames))
	duration(keyLease, q.LivelinessLeaseDuration)
	w.line(d+1, keyAvoid+": "+strconv.FormatBool(q.AvoidROSNamespaceConventions))
}

// DecodeQoS reads a list that any version of rosbag2 stored with a topic, policies as numbers or names. "" is no profile.
// A profile needs all nine keys; anything else is a [*YAMLError].
func DecodeQoS(text string) ([]QoSProfile, error) {
	if text == "" {
		return nil, nil
	}
	v, err := parseYAML([]byte(text))
	if err != nil {
		return nil, err
	}
	return parseQoSList(v)
}

// parseQoSField reads offered_qos_profiles of a metadata.yaml: a list, or a text that holds one.
func parseQoSField(v yval) ([]QoSProfile, error) {
	if v.null() || v.kind() == "a list" {
		return parseQoSList(v)
	}
	text, err := v.str()
	if err != nil {
		return nil, err
	}
	return DecodeQoS(text)
}

func parseQoSList(v yval) ([]QoSProfile, error) {
	items, err := v.items()
	if err != nil {
		return nil, err
	}
	var out []QoSProfile
	for _, it := range items {
		var q QoSProfile
		for _, key := range qosKeys {
			f, err := it.need(key)
			if err != nil {
				return nil, err
			}
			if err := q.set(key, f); err != nil {
				return nil, err
			}
		}
		out = append(out, q)
	}
	return out, nil
}

// set reads the value of one of the nine keys.
func (q *QoSProfile) set(key string, v yval) (err error) {
	switch key {
	case keyHistory:
		q.History, err = v.policy(historyNames)
	case keyDepth:
		var u uint64
		u, err = v.uint(math.MaxUint64) // a size_t in rosbag2; what exceeds an int means "all" just as well
		q.Depth = int(min(u, math.MaxInt))
	case keyReliability:
		q.Reliability, err = v.policy(reliabilityNames)
	case keyDurability:
		q.Durability, err = v.policy(durabilityNames)
	case keyDeadline:
		q.Deadline, err = v.qosDuration()
	case keyLifespan:
		q.Lifespan, err = v.qosDuration()
	case keyLiveliness:
		q.Liveliness, err = v.policy(livelinessNames)
	case keyLease:
		q.LivelinessLeaseDuration, err = v.qosDuration()
	case keyAvoid:
		q.AvoidROSNamespaceConventions, err = v.bool()
	}
	return err
}

// policy reads a number or a name of the table.
func (v yval) policy(table []string) (int, error) {
	if v.n != nil && v.kind() != "a map" && v.kind() != "a list" {
		s, _ := v.str()
		for i, name := range table {
			if s == name {
				return i, nil
			}
		}
		if u, err := strconv.ParseUint(s, 10, 8); err == nil && int(u) < len(table) {
			return int(u), nil
		}
	}
	return 0, v.errorf("%s is not one of %s (0 to %d)", v.kind(), joinNames(table), len(table)-1)
}

// qosDuration reads {sec, nsec}. Besides rosbag2's infinity (the largest int64, in ns) it knows those that foxy took
// over from Fast DDS and Connext.
func (v yval) qosDuration() (time.Duration, error) {
	s, err := v.need("sec")
	if err != nil {
		return 0, err
	}
	sec, err := s.uint(math.MaxUint64)
	if err != nil {
		return 0, err
	}
	n, err := v.need("nsec")
	if err != nil {
		return 0, err
	}
	nsec, err := n.uint(math.MaxUint64)
	if err != nil {
		return 0, err
	}
	const dds = math.MaxInt32 // seconds of DDS's DURATION_INFINITE
	if sec == dds && (nsec == math.MaxUint32 || nsec == dds) {
		return Infinite, nil
	}
	if sec > math.MaxInt64/1_000_000_000 || nsec > math.MaxInt64-sec*1_000_000_000 {
		return Infinite, nil
	}
	return time.Duration(sec*1_000_000_000 + nsec), nil
}

func joinNames(table []string) string {
	s := ""
	for i, n := range table {
		if i > 0 {
			s += ", "
		}
		s += n
	}
	return s
}

// NormalizeQoS returns a stored QoS text in the other spelling: names of policies, or numbers. Text that cannot be read
// is an error.
func NormalizeQoS(text string, names bool) (string, error) {
	ps, err := DecodeQoS(text)
	if err != nil {
		return "", fmt.Errorf("qos profiles: %w", err)
	}
	return EncodeQoS(ps, names), nil
}
