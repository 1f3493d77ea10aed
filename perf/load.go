package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gobag/gobag/ros"
)

// LoadTopicRoot is the prefix of the topics of a load: /perf/t0000, /perf/t0001, …
const LoadTopicRoot = "/perf/"

// loadType is the type of a load's messages, the one of rosbag2's own benchmark: `byte[] data`.
const loadType = "rosbag2_performance_benchmarking_msgs/msg/ByteArray"

// loadStamp is how much of each message's data is overwritten: topic, running number and the time it was due (wall clock,
// ns), each as a little-endian uint64.
const loadStamp = 24

// maxTopics bounds the topics of a load.
const maxTopics = 10000

// Group is a number of equal publishers, each on a topic of its own.
type Group struct {
	Name      string  `json:"name"`            // of the topics /perf/NAME0000 …: letters, digits and underscores, a letter last
	Instances int     `json:"instances"`       // publishers
	Frequency float64 `json:"frequency_hz"`    // messages per second of each
	Size      int     `json:"size_bytes"`      // data in a message; the serialized message is 8 bytes longer
	Count     int     `json:"count,omitempty"` // messages of each publisher; 0: what is due within the load's Duration

	Reliability  string  `json:"reliability,omitempty"`  // "reliable" (default) or "best_effort"
	Durability   string  `json:"durability,omitempty"`   // "volatile" (default) or "transient_local"
	Depth        int     `json:"depth,omitempty"`        // of the history; 0 keep all
	Compressible float64 `json:"compressible,omitempty"` // share of the data that compresses to next to nothing, 0..1
}

// QoS is the profile of the group's publishers.
func (g Group) QoS() (q ros.QoS, err error) {
	q = ros.DefaultQoS()
	if q.Depth = g.Depth; g.Depth == 0 {
		q.History = ros.KeepAll
	}
	q.Reliability = ros.Reliable
	if g.Reliability != "" {
		if q.Reliability, err = ros.ParseReliability(g.Reliability); err != nil {
			return q, err
		}
	}
	q.Durability = ros.Volatile
	if g.Durability != "" {
		q.Durability, err = ros.ParseDurability(g.Durability)
	}
	return q, err
}

// validate returns all problems, joined.
func (g Group) validate() error {
	var errs []error
	if ros.ValidName(LoadTopicRoot+g.Name+"0") != nil || strings.TrimRight(g.Name, "0123456789_") != g.Name || g.Name == "" {
		errs = append(errs, fmt.Errorf("name %q: not letters, digits and underscores with a letter last", g.Name))
	}
	if g.Instances < 1 || g.Instances > maxTopics {
		errs = append(errs, fmt.Errorf("instances %d: not in 1..%d", g.Instances, maxTopics))
	}
	if !(g.Frequency > 0) || g.Frequency > 1e6 {
		errs = append(errs, fmt.Errorf("frequency %g: not above 0 and at most 1000000", g.Frequency))
	}
	if g.Size < loadStamp || g.Size > 1<<30 {
		errs = append(errs, fmt.Errorf("size %d: not in %d..%d bytes", g.Size, loadStamp, 1<<30))
	}
	if g.Count < 0 || g.Depth < 0 {
		errs = append(errs, errors.New("count and depth must not be negative"))
	}
	if !(g.Compressible >= 0 && g.Compressible <= 1) {
		errs = append(errs, fmt.Errorf("compressible %g: not in 0..1", g.Compressible))
	}
	q, err := g.QoS()
	switch {
	case err != nil:
		errs = append(errs, err)
	case q.Reliability != ros.Reliable && q.Reliability != ros.BestEffort:
		errs = append(errs, errors.New("reliability: neither reliable nor best_effort"))
	case q.Durability != ros.Volatile && q.Durability != ros.TransientLocal:
		errs = append(errs, errors.New("durability: neither volatile nor transient_local"))
	}
	return errors.Join(errs...)
}

// perTopic is the number of messages of each publisher of the group in a load of this duration.
func (g Group) perTopic(d time.Duration) uint64 {
	if g.Count > 0 {
		return uint64(g.Count)
	}
	return max(1, uint64(d.Seconds()*g.Frequency+0.5))
}

// Expected is the number of messages of all publishers of the group in a load of this duration.
func (g Group) Expected(d time.Duration) uint64 { return uint64(g.Instances) * g.perTopic(d) }

// Load is what publishers do together.
type Load struct {
	Groups   []Group       `json:"groups"`
	Duration time.Duration `json:"duration_ns"` // how long groups without a Count publish
	Seed     uint64        `json:"seed"`        // of the payloads' noise
}

// Validate returns all problems, joined.
func (l Load) Validate() error {
	var errs []error
	if len(l.Groups) == 0 {
		errs = append(errs, errors.New("no group of publishers"))
	}
	names := map[string]bool{}
	topics := 0
	for _, g := range l.Groups {
		if err := g.validate(); err != nil {
			errs = append(errs, err)
		}
		if names[g.Name] {
			errs = append(errs, fmt.Errorf("two groups have the name %q", g.Name))
		}
		names[g.Name] = true
		topics += max(0, min(g.Instances, maxTopics))
	}
	if topics > maxTopics {
		errs = append(errs, fmt.Errorf("%d topics: more than %d", topics, maxTopics))
	}
	if l.Duration <= 0 {
		errs = append(errs, fmt.Errorf("duration %v: not above 0", l.Duration))
	}
	return errors.Join(errs...)
}

// Expected is the number of messages of the whole load.
func (l Load) Expected() (n uint64) {
	for _, g := range l.Groups {
		n += g.Expected(l.Duration)
	}
	return n
}

// Bytes is the data of the whole load.
func (l Load) Bytes() (n float64) {
	for _, g := range l.Groups {
		n += float64(g.Expected(l.Duration)) * float64(g.Size)
	}
	return n
}

// Span is how long the load publishes when nothing holds it up: the longest of its groups.
func (l Load) Span() (d time.Duration) {
	for _, g := range l.Groups {
		d = max(d, time.Duration(float64(g.perTopic(l.Duration))/g.Frequency*float64(time.Second)))
	}
	return d
}

// Topics names the topics of the load, those of each group together.
func (l Load) Topics() []ros.Topic {
	var ts []ros.Topic
	for _, g := range l.Groups {
		for i := range g.Instances {
			ts = append(ts, ros.Topic{Name: fmt.Sprintf("%s%s%04d", LoadTopicRoot, g.Name, i), Type: loadType, TypeHash: hashByteArray})
		}
	}
	return ts
}

// groupData is what the data of a group's messages are made of: noise, but for the share that compresses, which lies in
// every 1,024 bytes.
func (l Load) groupData(group int) []byte {
	g := l.Groups[group]
	data := noise(g.Size, l.Seed+uint64(group))
	const block = 1024
	plain := int(g.Compressible * block)
	for at := 0; at < len(data); at += block {
		part := data[at:min(at+block, len(data))]
		clear(part[len(part)-min(plain, len(part)):])
	}
	return data
}

// messageKey is different for every message of a load.
func messageKey(seed uint64, topic int, number uint64) uint64 {
	z := seed ^ uint64(topic)<<40 ^ number // splitmix64
	z = (z + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fillMessage makes the data of one message: the group's with every word changed by the message's key, so that no message
// repeats a piece of another and compression across messages gains nothing. What was plain is a repeated word.
func fillMessage(data, group []byte, key uint64) {
	n := len(group) &^ 7
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], binary.LittleEndian.Uint64(group[i:])^key)
	}
	for i := n; i < len(group); i++ {
		data[i] = group[i] ^ byte(key>>(8*(i-n)))
	}
}

// isMessage compares data, but for the stamp, with what fillMessage makes.
func isMessage(data, group []byte, key uint64) bool {
	if len(data) != len(group) {
		return false
	}
	n := len(group) &^ 7
	diff := uint64(0)
	for i := loadStamp; i < n; i += 8 {
		diff |= binary.LittleEndian.Uint64(group[i:]) ^ key ^ binary.LittleEndian.Uint64(data[i:])
	}
	for i := max(n, loadStamp); i < len(group); i++ {
		diff |= uint64(data[i] ^ group[i] ^ byte(key>>(8*(i-n))))
	}
	return diff == 0
}

// LoadResult says what a load did.
type LoadResult struct {
	Expected uint64   `json:"expected"` // what was due
	Sent     uint64   `json:"sent"`
	PerTopic []uint64 `json:"per_topic,omitempty"` // sent, by number of the topic
	Dropped  uint64   `json:"dropped"`             // given up by the publisher before a subscription had acknowledged it
	Acked    bool     `json:"acked"`               // everything else was acknowledged in the end
	Start    int64    `json:"start_ns"`            // wall clock when the first message was due
	Seconds  float64  `json:"seconds"`             // from the first message due to the last call's return
	// Lateness is the time from when a message was due until Publish had returned, in nanoseconds: a stall shows in
	// every message that was due meanwhile.
	LateP50 time.Duration `json:"late_p50_ns"`
	LateP99 time.Duration `json:"late_p99_ns"`
	LateMax time.Duration `json:"late_max_ns"`
	CallMax time.Duration `json:"call_max_ns"` // the longest single call of Publish
	// LateOverTime is the largest lateness of the messages due in each interval of SeriesInterval, from Start on.
	LateOverTime []time.Duration `json:"late_over_time_ns,omitempty"`
	Usage                        // of the publishers' process; filled in by who started it
}

// SeriesInterval is the width of the intervals that a load of this span is looked at in: at least 250 ms, and at most
// 240 of them.
func SeriesInterval(span time.Duration) time.Duration {
	return max(250*time.Millisecond, (span / 240).Round(time.Millisecond))
}
