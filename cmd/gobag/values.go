package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// secondsValue is a span of time in rosbag2's form, a plain number of seconds ("30", "0.5"), or in Go's ("90s", "5m").
type secondsValue time.Duration

func (v *secondsValue) String() string {
	return strconv.FormatFloat(time.Duration(*v).Seconds(), 'f', -1, 64)
}
func (v *secondsValue) Type() string { return "SECONDS" }

func (v *secondsValue) Set(s string) error {
	d, err := parseSpan(s, time.Second)
	*v = secondsValue(d)
	return err
}

// millisValue is a span of time as a plain number of milliseconds, or in Go's form.
type millisValue time.Duration

func (v *millisValue) String() string {
	return strconv.FormatFloat(float64(time.Duration(*v))/1e6, 'f', -1, 64)
}
func (v *millisValue) Type() string { return "MS" }

func (v *millisValue) Set(s string) error {
	d, err := parseSpan(s, time.Millisecond)
	*v = millisValue(d)
	return err
}

func parseSpan(s string, unit time.Duration) (time.Duration, error) {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		if math.IsNaN(n) || n < 0 || n*float64(unit) > math.MaxInt64/2 {
			return 0, fmt.Errorf("%q is not a span of time", s)
		}
		return time.Duration(math.Round(n * float64(unit))), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a span of time (\"30\", \"1.5\", \"90s\", \"5m\")", s)
	}
	return d, nil
}

// bytesValue is a number of bytes, plain or with a unit: "100000000", "100MB" (10^6), "100MiB" (2^20).
type bytesValue int64

func (v *bytesValue) String() string { return strconv.FormatInt(int64(*v), 10) }
func (v *bytesValue) Type() string   { return "BYTES" }

func (v *bytesValue) Set(s string) error {
	n, err := parseBytes(s)
	*v = bytesValue(n)
	return err
}

var byteUnits = map[string]float64{"": 1, "b": 1, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9, "t": 1e12, "tb": 1e12,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}

func parseBytes(s string) (int64, error) {
	i := strings.LastIndexAny(s, "0123456789.") + 1
	unit, known := byteUnits[strings.ToLower(strings.TrimSpace(s[i:]))]
	number := strings.TrimSpace(s[:i])
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && known && unit == 1 && n >= 0 {
		return n, nil
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !known || math.IsNaN(n) || n < 0 || n*unit >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a number of bytes (\"1000000\", \"1MB\", \"1MiB\")", s)
	}
	return int64(n * unit), nil
}

// parsePairs reads KEY=VALUE words. The last value of a key wins; a word without '=' has an empty value (rosbag2's
// --custom-data).
func parsePairs(words []string) map[string]string {
	if len(words) == 0 {
		return nil
	}
	m := make(map[string]string, len(words))
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		m[k] = v
	}
	return m
}

// parseThrottles reads TOPIC=HZ words.
func parseThrottles(words []string) (map[string]float64, error) {
	if len(words) == 0 {
		return nil, nil
	}
	m := make(map[string]float64, len(words))
	for _, w := range words {
		topic, n, ok := strings.Cut(w, "=")
		hz, err := strconv.ParseFloat(n, 64)
		if !ok || err != nil || topic == "" || !(hz > 0) || hz > 1e6 {
			return nil, usageError("--throttle %q: want TOPIC=HZ, HZ above 0 and at most 1000000", w)
		}
		m[topic] = hz
	}
	return m, nil
}

// parsePriorities reads TOPIC=N words.
func parsePriorities(words []string) (map[string]int, error) {
	if len(words) == 0 {
		return nil, nil
	}
	m := make(map[string]int, len(words))
	for _, w := range words {
		topic, n, ok := strings.Cut(w, "=")
		p, err := strconv.Atoi(n)
		if !ok || err != nil || topic == "" {
			return nil, usageError("--priority %q: want TOPIC=N, N a whole number", w)
		}
		m[topic] = p
	}
	return m, nil
}
