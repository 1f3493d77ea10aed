package main

import (
	"cmp"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros"
)

// options turns the flags into the recorder's options, Node and sinks excepted. Compat is "" for auto.
func (f *recordFlags) options() (recorder.Options, error) {
	o := recorder.Options{
		Output: f.output, Storage: f.storage, Preset: f.preset, MaxBagSize: int64(f.maxBagSize),
		MaxBagDuration: time.Duration(f.maxBagDuration), SyncInterval: time.Duration(f.syncInterval),
		CustomData: parsePairs(f.customData), All: f.all, AllTopics: f.allTopics, AllServices: f.allServices, AllActions: f.allActions,
		Topics: f.topics, Services: f.services, Actions: f.actions, TopicTypes: f.topicTypes, Regex: f.regex, ExcludeRegex: f.excludeRegex,
		ExcludeTopics: f.excludeTopics, ExcludeServices: f.excludeServices, ExcludeActions: f.excludeActions,
		ExcludeTopicTypes: f.excludeTopicTypes, MsgPath: f.msgPath,
		IncludeHidden: f.includeHidden, IncludeUnpublished: f.includeUnpublished, NoDiscovery: f.noDiscovery,
		PollingInterval: time.Duration(f.polling), MaxCacheSize: int64(f.maxCacheSize), Duration: time.Duration(f.duration),
		MaxMessages: f.maxMessages, MinFreeSpace: int64(f.minFreeSpace),
		MaxBagFiles: f.maxBagFiles, MaxTotalSize: int64(f.maxTotalSize), MaxCacheDuration: time.Duration(f.maxCacheDuration),
		SnapshotMode: f.snapshotMode, PostRoll: time.Duration(f.postRoll), StartPaused: f.startPaused, UseSimTime: f.useSimTime,
		IgnoreLeaf: f.ignoreLeaf, Backpressure: f.backpressure, RepeatAllTransientLocal: f.repeatAll, Watchdog: time.Duration(f.watchdog),
	}
	if f.repeatAll == 0 {
		o.RepeatAllTransientLocal = -1
	}
	if f.watchdog == 0 {
		o.Watchdog = -1
	}
	if f.minFreeSet && f.minFreeSpace == 0 {
		o.MinFreeSpace = -1 // 0 was asked for: no limit
	}
	if err := f.checkSelection(); err != nil {
		return o, err
	}
	if err := (msg.Options{Dirs: o.MsgPath}).Validate(); err != nil {
		return o, usageError("record: --msg-path: %w", err)
	}
	if f.serialization != "" && f.serialization != "cdr" {
		return o, usageError("record: --serialization-format %q: messages are stored as they come off the wire, which is cdr", f.serialization)
	}
	if err := f.checkModes(&o); err != nil {
		return o, err
	}
	if time.Duration(f.syncInterval) == 0 {
		return o, usageError("record: --sync-interval must be above 0")
	}
	storage := o.Storage // for the checks; what auto finds is checked when it is known
	if storage == "" {
		storage = bag.DefaultStorage(plugin.Compat(f.compat))
	}
	var err error
	if o.Compression, err = f.compression.options("record"); err != nil {
		return o, err
	}
	if err := f.checkStorage(&o, storage); err != nil {
		return o, err
	}
	switch f.compat {
	case "auto", "":
	case string(plugin.CompatHumble), string(plugin.CompatJazzy):
		o.Compat = plugin.Compat(f.compat)
	default:
		return o, usageError("record: --compat %q: not one of auto, humble, jazzy", f.compat)
	}
	if o.Priority, err = parsePriorities(f.priority); err != nil {
		return o, err
	}
	if o.Throttle, err = parseThrottles(f.throttle); err != nil {
		return o, err
	}
	if len(f.backpressure) > 0 && f.snapshotMode {
		return o, usageError("record: --backpressure and --snapshot-mode: one of them, since the memory of snapshots is always full")
	}
	if o.Config, err = readYAML(f.configFile); err != nil {
		return o, fmt.Errorf("--storage-config-file: %w", err)
	}
	if o.QoSOverrides, err = readQoS(f.qosFile); err != nil {
		return o, fmt.Errorf("--qos-profile-overrides-path: %w", err)
	}
	if o.Output == "" {
		o.Output = "rosbag2_" + time.Now().Format("2006_01_02-15_04_05")
	}
	if exists(o.Output) && !f.snapshotMode {
		return o, fmt.Errorf("output %s exists already: choose another directory with -o", o.Output)
	}
	return o, nil
}

// checkStorage says what a storage cannot do that is asked for.
func (f *recordFlags) checkStorage(o *recorder.Options, storage string) error {
	if storage == recorder.StorageNull {
		if f.snapshotMode {
			return usageError("record: --snapshot-mode needs a storage that keeps what it gets, not %s", storage)
		}
		return nil
	}
	drv, err := plugin.Lookup(storage)
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("record: %w", err)}
	}
	if low := drv.Features().MinSplitSize; o.MaxBagSize > 0 && o.MaxBagSize < low {
		return usageError("record: --max-bag-size %d: %s needs at least %d bytes", o.MaxBagSize, storage, low)
	}
	if err := (bag.WriterOptions{StorageID: storage, Compression: o.Compression}).Validate(); err != nil {
		return usageError("record: %w", err)
	}
	return nil
}

// checkSelection says in terms of flags what package recorder would refuse: nothing chosen, or an exclusion from nothing.
// The rules are rosbag2's.
func (f *recordFlags) checkSelection() error {
	topics := f.all || f.allTopics || f.regex != "" || len(f.topicTypes) > 0
	services, actions := f.all || f.allServices || f.regex != "", f.all || f.allActions || f.regex != ""
	any := topics || services || actions
	if !any && len(f.topics)+len(f.services)+len(f.actions) == 0 && f.staticTopics == "" {
		return usageError("record: nothing to record: name topics, services or actions, or give -a, --all-topics, --all-services, --all-actions, --regex, --topic-types or --static-topics-path")
	}
	for _, x := range []struct {
		flag    string
		given   bool
		allowed bool
		need    string
	}{
		{"exclude-regex", f.excludeRegex != "", any, "-a, --all-topics, --all-services, --all-actions, --topic-types or --regex"},
		{"exclude-topics", len(f.excludeTopics) > 0, topics, "-a, --all-topics, --topic-types or --regex"},
		{"exclude-topic-types", len(f.excludeTopicTypes) > 0, any, "-a, --all-topics, --all-services, --all-actions, --topic-types or --regex"},
		{"exclude-services", len(f.excludeServices) > 0, services, "-a, --all-services or --regex"},
		{"exclude-actions", len(f.excludeActions) > 0, actions, "-a, --all-actions or --regex"},
	} {
		if x.given && !x.allowed {
			return usageError("record: --%s needs something to exclude from: %s", x.flag, x.need)
		}
	}
	return nil
}

// What limitMemory allows beside the cache and the format's buffers.
const (
	reassemblyMemory = 64 << 20 // incomplete samples, at most; normally next to nothing
	otherMemory      = 24 << 20
	gcPercent        = 30 // garbage per live memory: samples come from pools, so there is little of it
)

// limitMemory keeps the garbage collector to what the cache size allows. The percentage keeps the process small; the
// limit is the last resort and lies above all that can be alive at once, since a collector that runs against its limit
// takes the CPU that reception needs. Explicit GOGC and GOMEMLIMIT stay.
func limitMemory(o recorder.Options, env func(string) string) {
	if env("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if env("GOMEMLIMIT") != "" {
		return
	}
	limit := o.MaxCacheSize
	if limit == 0 {
		limit = recorder.DefaultCacheSize()
	}
	limit += reassemblyMemory + otherMemory
	if drv, err := plugin.Lookup(cmp.Or(o.Storage, defaultStorage)); err == nil {
		limit += drv.Features().Buffers
	}
	if limit > 0 && limit < math.MaxInt64/2 {
		debug.SetMemoryLimit(limit)
	}
}

// readQoS reads a file of QoS overrides; "" is none. Topics may lack their slash, as on the command line.
func readQoS(path string) (map[string]ros.QoS, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	profiles, err := bag.ParseQoSOverrides(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m := make(map[string]ros.QoS, len(profiles))
	for topic, q := range profiles {
		if !strings.HasPrefix(topic, "/") {
			topic = "/" + topic
			if _, twice := profiles[topic]; twice {
				return nil, fmt.Errorf("%s: %s is given with and without its slash", path, topic)
			}
		}
		m[topic] = rosQoS(q)
	}
	return m, nil
}
