package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros"
)

// What `record --dry-run` does: it listens for so long, then writes a file for so long, which it removes.
const (
	dryListen = 5 * time.Second
	dryDisk   = 3 * time.Second
	dryBytes  = 128 << 20
	dryShare  = 0.8 // of the measured speed of the disk: what recording may need of it
	perRecord = 64  // bytes that a message takes in a bag beside its payload, about
)

var errDoesNotFit = errors.New("record --dry-run: the recording does not fit")

// runDry says what a recording with these options would record and whether the disk takes it. Nothing is left behind.
func runDry(a *app, o recorder.Options, stop *stopper, graph ros.Graph) error {
	asked := o
	listen := dryListen
	if o.Duration > 0 {
		listen = min(listen, o.Duration)
	}
	o.Storage, o.Duration, o.MaxMessages, o.Compression = recorder.StorageNull, listen, 0, bag.Compression{}
	o.SnapshotMode, o.PostRoll, o.Triggers, o.StartPaused, o.UseSimTime = false, 0, nil, false, false
	o.Backpressure, o.OnSplit, o.MinFreeSpace = nil, nil, -1
	rec, err := recorder.New(o)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	a.logger.Info(fmt.Sprintf("listening for %s: nothing is recorded", listen))
	live := startLive(a.con, 500*time.Millisecond, func() string { return recordStatus(rec.Snapshot()) })
	res, err := rec.Run(stop.ctx)
	live.Stop()
	if err != nil && !onlyNothing(err) {
		return err
	}
	text, need := dryTopics(res, qosByTopic(graph))
	disk, fits := dryTarget(stop, asked, need)
	if _, werr := io.WriteString(a.out, text+disk+dryLimits(asked)); werr != nil {
		return werr
	}
	switch {
	case len(res.Topics) == 0 || len(res.Missing) > 0:
		return recordError(err)
	case !fits:
		return &exitError{exitFailure, errDoesNotFit}
	}
	return nil
}

// qosByTopic says how topics are offered.
func qosByTopic(graph ros.Graph) map[string]string {
	out := map[string]string{}
	for _, t := range graph.Topics() {
		var all []string
		for _, p := range t.Publishers {
			if s := qosWords(p.QoS); !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		out[t.Name] = strings.Join(all, " / ")
	}
	return out
}

// qosWords is the part of a profile that says what may get lost.
func qosWords(q ros.QoS) string {
	s := q.Reliability.String() + ", " + q.Durability.String() + ", " + q.History.String()
	if q.History == ros.KeepLast {
		s += fmt.Sprintf(" %d", q.Depth)
	}
	return s
}

// dryTopics is the table of topics, the largest first, and the bytes a second that they need on disk.
func dryTopics(res recorder.Result, qos map[string]string) (text string, need float64) {
	topics := slices.Clone(res.Topics)
	slices.SortFunc(topics, func(x, y recorder.TopicSnapshot) int {
		return cmp.Or(cmp.Compare(y.ByteRate, x.ByteRate), cmp.Compare(x.Name, y.Name))
	})
	t := table{header: []string{"Topic", "type", "Hz", "MB/s", "lost", "offered"}, right: map[int]bool{2: true, 3: true, 4: true}}
	for _, s := range topics {
		t.add(printable(s.Name), printable(s.Type), count(s.Rate), fmt.Sprintf("%.3f", s.ByteRate/1e6), fmt.Sprint(s.Lost.Total()), qos[s.Name])
		need += s.ByteRate + s.Rate*perRecord
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nWould record %s, %.3f MB/s (measured over %.1f s):\n\n", plural(uint64(len(topics)), "topic"), need/1e6, res.Elapsed.Seconds())
	b.WriteString(t.String() + "\n")
	for _, w := range res.Missing {
		fmt.Fprintf(&b, "%s is not there\n", printable(w.String()))
	}
	return b.String(), need
}

// dryTarget measures the disk of the target.
func dryTarget(stop *stopper, o recorder.Options, need float64) (text string, fits bool) {
	storage := cmp.Or(o.Storage, bag.DefaultStorage(o.Compat))
	var b strings.Builder
	fmt.Fprintf(&b, "Into %s, storage %s, preset %s.\n", o.Output, storage, cmp.Or(o.Preset, plugin.PresetResilient))
	if storage == recorder.StorageNull {
		return b.String(), true
	}
	dir := o.Output
	for {
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
			break
		}
		dir = filepath.Dir(filepath.Clean(dir))
	}
	disk, err := measureDisk(stop.ctx, dir, dryBytes, dryDisk)
	if err != nil {
		fmt.Fprintf(&b, "Nothing can be written to %s: %v\n", dir, err)
		return b.String(), false
	}
	fits = need <= disk.speed*dryShare
	verdict := "fits"
	if !fits {
		verdict = fmt.Sprintf("does not fit: more than %.0f %% of that", 100*dryShare)
	}
	fmt.Fprintf(&b, "The disk of %s takes %.0f MB/s, its longest wait was %s: %s.\n", dir, disk.speed/1e6, disk.worst.Round(time.Millisecond), verdict)
	if free, _, err := fsx.Free(dir); err == nil && need > 0 {
		until := time.Duration(min(float64(free)/need, 1e9)) * time.Second
		fmt.Fprintf(&b, "%s are free: enough for %s.\n", fileSize(free), until.Round(time.Minute))
	}
	return b.String(), fits
}

// dryLimits names what would end or split the recording.
func dryLimits(o recorder.Options) string {
	var parts []string
	say := func(given bool, format string, args ...any) {
		if given {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	say(o.SnapshotMode, "snapshot mode")
	say(o.Duration > 0, "ends after %s", o.Duration)
	say(o.MaxMessages > 0, "ends after %s", plural(o.MaxMessages, "message"))
	say(o.MaxBagSize > 0, "a new file at %s", fileSize(o.MaxBagSize))
	say(o.MaxBagDuration > 0, "a new file after %s", o.MaxBagDuration)
	say(o.MaxBagFiles > 0, "keeps %s", plural(uint64(o.MaxBagFiles), "file"))
	say(o.MaxTotalSize > 0, "keeps %s", fileSize(o.MaxTotalSize))
	cache := o.MaxCacheSize
	if cache == 0 {
		cache = recorder.DefaultCacheSize()
	}
	parts = append(parts, "cache "+fileSize(cache))
	return "Limits: " + strings.Join(parts, ", ") + ".\n"
}
