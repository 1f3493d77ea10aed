package perf

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// tsbsQuestion is a question in the dialects of who is asked.
type tsbsQuestion struct {
	id, about string
	ours      string
	sqlite    string // in its best form
	duck      string
	cold      bool // is also asked with nothing in the page cache
}

const (
	minute = int64(60e9)
	hour   = 60 * minute
)

// cpuQuestions are the seven queries. Ranges lie inside the data; hosts of the questions are not silent ones.
func cpuQuestions(s *cpuSource) []tsbsQuestion {
	rng := rand.New(rand.NewPCG(7, uint64(len(s.hosts))))
	var hosts []string
	for len(hosts) < min(9, len(s.hosts)/2) {
		h := &s.hosts[rng.IntN(len(s.hosts))]
		if h.ends == s.steps && !contains(hosts, h.tags[0]) {
			hosts = append(hosts, h.tags[0])
		}
	}
	end := columnarStart + int64(s.steps)*cpuStep
	span := min(8*hour, end-columnarStart)
	from := columnarStart + (end-columnarStart-span)/2/minute*minute
	middleOf := columnarStart + (end-columnarStart)/2/minute*minute
	all := strings.Join(append(append([]string{}, cpuTags...), cpuFields...), ", ")
	var tops []string
	for _, f := range cpuFields {
		tops = append(tops, fmt.Sprintf("max(%s)", f))
	}
	host := "hostname = '" + hosts[0] + "'"
	eight := "hostname IN ('" + strings.Join(hosts[1:], "', '") + "')"
	within := func(from, to int64) (ours, duck string) {
		return fmt.Sprintf("_log_time >= %d AND _log_time < %d", from, to), fmt.Sprintf("_log_time >= make_timestamp_ns(%d) AND _log_time < make_timestamp_ns(%d)", from, to)
	}
	const stamp = "epoch_ns(_log_time)"
	var qs []tsbsQuestion
	add := func(id, about string, cold bool, ours, duck string) {
		qs = append(qs, tsbsQuestion{id: id, about: about, ours: ours, sqlite: strings.ReplaceAll(ours, "_log_time", "ts"), duck: duck, cold: cold})
	}
	in, duckIn := within(middleOf, middleOf+5*minute)
	add("1", "all columns of one host, 5 minutes", true,
		fmt.Sprintf("SELECT _log_time, %s FROM cpu WHERE %s AND %s ORDER BY _log_time", all, host, in),
		fmt.Sprintf("SELECT %s, %s FROM cpu WHERE %s AND %s ORDER BY _log_time", stamp, all, host, duckIn))
	add("2", "count of all rows", false, "SELECT count(*) FROM cpu", "SELECT count(*) FROM cpu")
	grouped := func(id, about string, cold bool, what, where string, from, to, width int64) {
		in, duckIn := within(from, to)
		add(id, about, cold,
			fmt.Sprintf("SELECT _log_time/%d AS t, %s FROM cpu WHERE %s AND %s GROUP BY t ORDER BY t", width, what, where, in),
			fmt.Sprintf("SELECT %s//%d AS t, %s FROM cpu WHERE %s AND %s GROUP BY t ORDER BY t", stamp, width, what, where, duckIn))
	}
	grouped("3", "max of the 10 fields of one host, 8 hours, by hour", true, strings.Join(tops, ", "), host, from, from+span, hour)
	grouped("4", "the same for 8 hosts together, by hour", false, strings.Join(tops, ", "), eight, from, from+span, hour)
	grouped("5", "max of one field of one host, 1 hour, by minute", true, "max(usage_user)", host, middleOf, middleOf+min(hour, span/2), minute)
	grouped("5b", "the same, 8 hours", true, "max(usage_user)", host, from, from+span, minute)
	list := strings.Join(append(append([]string{}, cpuTags[1:]...), cpuFields...), ", ")
	add("6", "newest row of every host", false,
		fmt.Sprintf("SELECT hostname, max(_log_time), %s FROM cpu GROUP BY hostname ORDER BY hostname", list),
		fmt.Sprintf("SELECT hostname, %s, %s FROM cpu JOIN (SELECT hostname, max(_log_time) AS _log_time FROM cpu GROUP BY hostname) USING (hostname, _log_time) ORDER BY hostname", stamp, list))
	// A loose index scan: the next host is found by the index, and its newest row too.
	qs[len(qs)-1].sqlite = fmt.Sprintf("WITH RECURSIVE h(name) AS (SELECT min(hostname) FROM cpu UNION ALL SELECT (SELECT min(hostname) FROM cpu WHERE hostname > h.name) FROM h WHERE h.name IS NOT NULL) "+
		"SELECT hostname, ts, %s FROM h JOIN cpu ON hostname = h.name AND ts = (SELECT max(ts) FROM cpu WHERE hostname = h.name) ORDER BY hostname", list)
	add("7", "newest row of one host", true,
		fmt.Sprintf("SELECT _log_time, %s FROM cpu WHERE %s ORDER BY _log_time DESC LIMIT 1", all, host),
		fmt.Sprintf("SELECT %s, %s FROM cpu WHERE %s ORDER BY _log_time DESC LIMIT 1", stamp, all, host))
	return qs
}
