package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros"
)

// defaultStorage is what record uses without -s.
const defaultStorage = "sqlite3"

// runRecord records until a signal or a limit and prints the ledger.
func runRecord(a *app, f *recordFlags) error {
	if err := a.setLevel(f.logLevel); err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	limitMemory(o, a.env)

	var rec *recorder.Recorder
	stop := newStopper(a.ctx, func(sig os.Signal, n int) {
		switch {
		case n == 1:
			a.logger.Info(fmt.Sprintf("%v: stopping", sig))
		case n == 2 && rec != nil:
			a.logger.Warn(fmt.Sprintf("%v again: stopping at once, without what is still in memory", sig))
		}
	})
	defer stop.Close()
	if f.untilStdinCloses {
		go func() {
			io.Copy(io.Discard, a.in)
			stop.stop()
		}()
	}

	node, err := openNode(a, &f.node)
	if err != nil {
		return err
	}
	defer node.Close()
	o.Node, o.Logger = node, a.logger
	if o.Compat == "" {
		if o.Compat = chooseCompat(stop.ctx, node.Graph()); o.Compat == plugin.CompatHumble {
			a.logger.Info("no publisher announces a type hash: writing a bag that Humble can open (--compat jazzy overrides)")
		}
	}
	o.OnEvent = func(e recorder.Event) { a.logger.Log(a.ctx, e.Level, e.Text) }
	if rec, err = recorder.New(o); err != nil {
		return &exitError{exitUsage, err}
	}
	return record(a, rec, stop)
}

// record runs rec with a live line until the first signal; the second aborts.
func record(a *app, rec *recorder.Recorder, stop *stopper) error {
	done := make(chan struct{})
	aborted := make(chan struct{})
	go func() {
		defer close(aborted)
		select {
		case <-stop.hurry.Done():
			rec.Abort()
		case <-done:
		}
	}()
	live := startLive(a.con, 500*time.Millisecond, func() string { return recordStatus(rec.Snapshot()) })
	res, err := rec.Run(stop.ctx)
	close(done)
	<-aborted
	live.Stop()
	if res.Output != "" {
		if _, werr := io.WriteString(a.out, recordReport(res)); err == nil {
			err = werr
		}
	}
	return recordError(err)
}

// recordError gives a recording's error its exit code.
func recordError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, recorder.ErrDiskFull):
		return &exitError{exitDiskFull, err}
	case errors.Is(err, plugin.ErrExists), errors.Is(err, recorder.ErrGaveUp):
		return &exitError{exitFailure, err}
	case onlyNothing(err):
		return &exitError{exitNothing, err}
	}
	return &exitError{exitFailure, err}
}

// onlyNothing: nothing else is wrong than that topics or messages did not come.
func onlyNothing(err error) bool {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if !onlyNothing(part) {
				return false
			}
		}
		return true
	case *recorder.MissingTopicsError:
		return true
	case interface{ Unwrap() error }:
		return e.Unwrap() != nil && onlyNothing(e.Unwrap())
	}
	return err == recorder.ErrNothingRecorded
}

// options turns the flags into the recorder's options, Node and sinks excepted. Compat is "" for auto.
func (f *recordFlags) options() (recorder.Options, error) {
	o := recorder.Options{
		Output: f.output, Storage: f.storage, Preset: f.preset, MaxBagSize: int64(f.maxBagSize),
		MaxBagDuration: time.Duration(f.maxBagDuration), SyncInterval: time.Duration(f.syncInterval),
		CustomData: parsePairs(f.customData), All: f.all || f.allTopics, Topics: f.topics, Regex: f.regex, ExcludeRegex: f.excludeRegex,
		ExcludeTopics: f.excludeTopics, TopicTypes: f.topicTypes, ExcludeTopicTypes: f.excludeTopicTypes,
		IncludeHidden: f.includeHidden, IncludeUnpublished: f.includeUnpublished, NoDiscovery: f.noDiscovery,
		PollingInterval: time.Duration(f.polling), MaxCacheSize: int64(f.maxCacheSize), Duration: time.Duration(f.duration),
		MaxMessages: f.maxMessages, MinFreeSpace: int64(f.minFreeSpace),
	}
	if f.minFreeSet && f.minFreeSpace == 0 {
		o.MinFreeSpace = -1 // 0 was asked for: no limit
	}
	if !o.All && len(o.Topics) == 0 && o.Regex == "" && len(o.TopicTypes) == 0 {
		return o, usageError("record: nothing to record: name topics, or give -a, --regex or --topic-types")
	}
	if time.Duration(f.syncInterval) == 0 {
		return o, usageError("record: --sync-interval must be above 0")
	}
	if o.Storage == "" {
		o.Storage = defaultStorage
	}
	drv, err := plugin.Lookup(o.Storage)
	if err != nil {
		return o, &exitError{exitUsage, fmt.Errorf("record: %w", err)}
	}
	if low := drv.Features().MinSplitSize; o.MaxBagSize > 0 && o.MaxBagSize < low {
		return o, usageError("record: --max-bag-size %d: %s needs at least %d bytes", o.MaxBagSize, o.Storage, low)
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
	if o.Config, err = readYAML(f.configFile); err != nil {
		return o, fmt.Errorf("--storage-config-file: %w", err)
	}
	if o.QoSOverrides, err = readQoS(f.qosFile); err != nil {
		return o, fmt.Errorf("--qos-profile-overrides-path: %w", err)
	}
	if o.Output == "" {
		o.Output = time.Now().Format("rosbag2_2006_01_02-15_04_05")
	}
	if exists(o.Output) {
		return o, fmt.Errorf("output %s exists already: choose another directory with -o", o.Output)
	}
	return o, nil
}

// limitMemory makes the garbage collector keep to the memory that the cache size allows: cache, the format's buffers and
// 24 MiB for everything else. An explicit GOMEMLIMIT stays.
func limitMemory(o recorder.Options, env func(string) string) {
	if env("GOMEMLIMIT") != "" {
		return
	}
	limit := o.MaxCacheSize
	if limit == 0 {
		limit = recorder.DefaultCacheSize()
	}
	limit += 24 << 20
	if drv, err := plugin.Lookup(o.Storage); err == nil {
		limit += drv.Features().Buffers
	}
	if limit > 0 && limit < math.MaxInt64/2 {
		debug.SetMemoryLimit(limit)
	}
}

// Times of chooseCompat.
const (
	compatLimit  = 500 * time.Millisecond // for the first publisher to appear
	compatSettle = 200 * time.Millisecond // for more to appear behind it
)

// chooseCompat is --compat auto: Humble when publishers are there and none announces a type hash, as Humble's do not.
// A publisher with a hash decides at once; with nobody there it takes half a second.
func chooseCompat(ctx context.Context, g ros.Graph) plugin.Compat {
	limit := time.NewTimer(compatLimit)
	defer limit.Stop()
	var settled <-chan time.Time
	for {
		changed := g.Changed()
		seen := false
		for _, t := range g.Topics() {
			for _, p := range t.Publishers {
				if p.Local {
					continue
				}
				if p.Topic.TypeHash != "" {
					return plugin.CompatJazzy
				}
				seen = true
			}
		}
		if seen && settled == nil {
			t := time.NewTimer(compatSettle)
			defer t.Stop()
			settled = t.C
		}
		select {
		case <-changed:
		case <-settled:
			return plugin.CompatHumble
		case <-limit.C:
			if seen {
				return plugin.CompatHumble
			}
			return plugin.CompatJazzy
		case <-ctx.Done():
			return plugin.CompatJazzy
		}
	}
}

// readQoS reads a file of QoS overrides; "" is none.
func readQoS(path string) (map[string]ros.QoS, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	profiles, err := bag.ParseQoSOverrides(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m := make(map[string]ros.QoS, len(profiles))
	for topic, q := range profiles {
		m[topic] = rosQoS(q)
	}
	return m, nil
}
