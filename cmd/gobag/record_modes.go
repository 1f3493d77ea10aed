package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros"
	"go.yaml.in/yaml/v3"
)

// durationCache times the default is the cache when only its duration is limited (--max-cache-size 0
// --max-cache-duration S): up to 1 GB, at most half of the memory.
const durationCache = 10

// checkModes reads the flags of snapshot mode, rings of files, latched and static topics into o.
func (f *recordFlags) checkModes(o *recorder.Options) (err error) {
	switch {
	case f.maxBagFiles < 0:
		return usageError("record: --max-bag-files %d is negative", f.maxBagFiles)
	case f.maxBagFiles > 0 && f.maxBagSize == 0 && f.maxBagDuration == 0:
		return usageError("record: --max-bag-files needs -b or -d: a bag that is not split has one file")
	case f.repeatAll < 0:
		return usageError("record: --repeat-all-transient-local %d is negative", f.repeatAll)
	case f.statsRate < 0 || f.statsRate > 1000:
		return usageError("record: --stats_max_publishing_rate %g: not in 0..1000", f.statsRate)
	case f.useSimTime && f.noDiscovery:
		return usageError("record: --use-sim-time needs discovery to find /clock: leave --no-discovery out")
	case !f.snapshotMode && (f.postRoll != 0 || len(f.triggers) > 0):
		return usageError("record: --post-roll and --trigger need --snapshot-mode")
	case f.snapshotMode && f.cacheSet && f.maxCacheSize == 0 && f.maxCacheDuration == 0:
		return usageError("record: --snapshot-mode needs memory: --max-cache-size above 0, or a --max-cache-duration")
	case f.snapshotMode && f.maxMessages > 0:
		return usageError("record: --max-messages and --snapshot-mode: one of them")
	case f.snapshotMode && f.maxBagFiles > 0:
		return usageError("record: --max-bag-files and --snapshot-mode: --max-total-size limits snapshots")
	}
	if f.cacheSet && f.maxCacheSize == 0 && f.maxCacheDuration > 0 { // the time alone bounds it, within reason
		o.MaxCacheSize = durationCache * recorder.DefaultCacheSize()
	} // else the default: what comes is written straight away in any case, and waits only while the disk does not follow
	if o.RepeatTransientLocal, err = parseRepeats(f.repeat); err != nil {
		return err
	}
	if f.staticTopics != "" {
		text, err := readConfig(f.staticTopics)
		if err != nil {
			return fmt.Errorf("--static-topics-path: %w", err)
		}
		if o.StaticTopics, err = parseStaticTopics(text); err != nil {
			return fmt.Errorf("--static-topics-path: %s: %w", f.staticTopics, err)
		}
	}
	for _, text := range f.triggers {
		t, err := parseTrigger(text)
		if err != nil {
			return usageError("record: --trigger %q: %w", text, err)
		}
		o.Triggers = append(o.Triggers, t)
	}
	return nil
}

// parseRepeats reads TOPIC[=DEPTH] words.
func parseRepeats(words []string) (map[string]int, error) {
	if len(words) == 0 {
		return nil, nil
	}
	m := map[string]int{}
	for _, w := range words {
		topic, text, given := strings.Cut(w, "=")
		n, err := 1, error(nil)
		if given {
			n, err = strconv.Atoi(text)
		}
		if err != nil || n <= 0 || topic == "" {
			return nil, usageError("record: --repeat-transient-local %q: want TOPIC or TOPIC=DEPTH, DEPTH above 0", w)
		}
		m["/"+strings.TrimPrefix(topic, "/")] = n
	}
	return m, nil
}

// parseStaticTopics reads rosbag2's file of topics that are subscribed without discovery.
func parseStaticTopics(text []byte) ([]ros.Topic, error) {
	var file struct {
		List [][]string `yaml:"static_topics_and_types_list"`
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(file.List) == 0 {
		return nil, errors.New("no static_topics_and_types_list with pairs of name and type")
	}
	var out []ros.Topic
	for i, pair := range file.List {
		if len(pair) != 2 {
			return nil, fmt.Errorf("static_topics_and_types_list: entry %d has %d words, want name and type", i+1, len(pair))
		}
		t := ros.Topic{Name: "/" + strings.TrimPrefix(pair[0], "/"), Type: pair[1]}
		if err := errors.Join(ros.ValidName(t.Name), ros.ValidType(t.Type)); err != nil {
			return nil, fmt.Errorf("static_topics_and_types_list: entry %d: %w", i+1, err)
		}
		out = append(out, t)
	}
	return out, nil
}

// statsPeriod is the least time between two events about losses; 0 = there are none.
func statsPeriod(hz float64) time.Duration {
	if hz <= 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / hz)
}
